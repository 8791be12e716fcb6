// Package sqltext splits SQL into statements and says which of them only read.
//
// A dialect decides what is a quote and what a comment. A text is ambiguous if dialects
// disagree about it in a way that could hide a statement, such as a backslash in a string,
// which is an escape only for MySQL. A statement counts as reading only if that is
// certain.
package sqltext

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Dialect says how SQL is read.
type Dialect int

const (
	// Unknown is any database: an ambiguous text does not count as reading.
	Unknown Dialect = iota
	// SQLite reads as SQLite does.
	SQLite
)

// Statement is one statement, without the semicolon behind it.
type Statement struct {
	Text string // as written, with comments in it, without blanks around it

	words     []word
	ambiguous bool
}

// word is a keyword or name without quotes, in upper case, or a single other character.
// A quoted text is the word "'".
type word string

// Split splits text at the semicolons between statements. Semicolons in strings, names
// and comments do not count, nor do those in the body of a trigger. Statements of
// comments only are left out.
func Split(text string, d Dialect) []Statement {
	s := &splitter{text: text, dialect: d}
	for s.at < len(s.text) {
		s.step()
	}
	s.end(len(text), len(text))
	return s.list
}

// ReadOnly reports whether a text only reads. A text without a statement does.
func ReadOnly(text string, d Dialect) bool {
	return !slices.ContainsFunc(Split(text, d), func(s Statement) bool { return !s.ReadOnly(d) })
}

// splitter is the state of Split.
type splitter struct {
	text    string
	dialect Dialect
	at      int
	start   int // of the statement
	current Statement
	list    []Statement
}

// end ends a statement whose text ends at to; the next starts at next.
func (s *splitter) end(to, next int) {
	s.current.Text = strings.TrimSpace(s.text[s.start:to])
	if len(s.current.words) > 0 || s.current.ambiguous {
		s.list = append(s.list, s.current)
	}
	s.current, s.start = Statement{}, next
}

func (s *splitter) word(w word) { s.current.words = append(s.current.words, w) }

// step reads one word, quote or comment.
func (s *splitter) step() {
	rest := s.text[s.at:]
	r, n := utf8.DecodeRuneInString(rest)
	switch {
	case r == ';':
		if s.inTrigger() {
			s.word(";")
		} else {
			s.end(s.at, s.at+1)
		}
		s.at++
	case unicode.IsSpace(r):
		s.at += n
	case strings.HasPrefix(rest, "--"):
		// For MySQL this is a comment only with a blank behind it.
		// PostgreSQL ends it at a carriage return, others may at further line ends.
		line, _, _ := strings.Cut(rest, "\n")
		s.current.ambiguous = s.current.ambiguous || len(rest) > 2 && rest[2] > ' ' ||
			strings.ContainsAny(strings.TrimSuffix(line, "\r"), "\r\v\f\u0085\u2028\u2029")
		s.skipPast("\n")
	case strings.HasPrefix(rest, "/*"):
		s.comment()
	case r == '\'' || r == '"' || r == '`':
		start := s.at
		// Oracle has q'[it's]', where quotes are literal.
		if w := s.current.words; len(w) > 0 && (w[len(w)-1] == "Q" || w[len(w)-1] == "NQ") {
			s.current.ambiguous = true
		}
		s.skipQuoted(byte(r))
		if r == '`' && strings.Contains(s.text[start:s.at], ";") { // no quote for PostgreSQL
			s.current.ambiguous = true
		}
		s.word("'")
	case r == '[' && s.dialect == SQLite:
		s.skipPast("]")
		s.word("'")
	case r == '[':
		// SQL Server has names in brackets, others have indexes.
		inner, _, _ := strings.Cut(rest, "]")
		s.current.ambiguous = s.current.ambiguous || strings.ContainsAny(inner, "'\"`;-/$")
		s.word("[")
		s.at++
	case r == '$' && s.dialect != SQLite:
		s.current.ambiguous = s.current.ambiguous || dollarQuote(rest)
		s.word("$")
		s.at++
	case r == '_' || r >= 0x80 || unicode.IsLetter(r):
		end := strings.IndexFunc(rest, func(r rune) bool {
			return r != '_' && r != '$' && r < 0x80 && !unicode.IsLetter(r) && !unicode.IsDigit(r)
		})
		if end < 0 {
			end = len(rest)
		}
		s.word(word(strings.ToUpper(rest[:end])))
		s.at += end
	default:
		// A backslash begins a command of the client, and "#" a comment for MySQL.
		s.current.ambiguous = s.current.ambiguous || r == '\\' || r == '#' || r == 0
		s.word(word(rest[:n]))
		s.at += n
	}
}

// skipPast moves behind the next occurrence of end, or to the end.
func (s *splitter) skipPast(end string) {
	if i := strings.Index(s.text[s.at:], end); i >= 0 {
		s.at += i + len(end)
	} else {
		s.at = len(s.text)
	}
}

// comment skips a comment. PostgreSQL lets comments hold comments, and MySQL runs what is
// in a comment that begins with an exclamation mark.
func (s *splitter) comment() {
	start := s.at
	s.at += 2
	s.skipPast("*/")
	inner := s.text[start+2 : s.at]
	if strings.HasPrefix(inner, "!") || strings.HasPrefix(inner, "M!") || strings.Contains(inner, "/*") || strings.HasPrefix(inner, "/") {
		s.current.ambiguous = true
	}
}

// skipQuoted skips a quoted text, in which a doubled quote means one.
func (s *splitter) skipQuoted(quote byte) {
	s.at++
	for s.at < len(s.text) {
		i := strings.IndexByte(s.text[s.at:], quote)
		inner := s.text[s.at:]
		if i >= 0 {
			inner = inner[:i]
		}
		if strings.Contains(inner, `\`) {
			s.current.ambiguous = true
		}
		if i < 0 {
			s.at = len(s.text)
			s.current.ambiguous = true
			return
		}
		if s.at += i + 1; s.at == len(s.text) || s.text[s.at] != quote {
			return
		}
		s.at++
	}
}

// dollarQuote reports whether text begins with a quote of PostgreSQL such as $$ or $tag$.
func dollarQuote(text string) bool {
	end := strings.IndexByte(text[1:], '$')
	if end < 0 {
		return false
	}
	for _, r := range text[1 : 1+end] {
		if r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return false
		}
	}
	return true
}

// inTrigger reports whether the statement so far is a trigger whose body is not closed. An
// END closes it directly behind a semicolon only, as CASE has one too.
func (s *splitter) inTrigger() bool {
	w := s.current.words
	if len(w) < 2 || w[0] != "CREATE" {
		return false
	}
	if head := w[1:min(len(w), 4)]; !slices.Contains(head, "TRIGGER") {
		return false
	}
	if !slices.Contains(w, "BEGIN") {
		return false
	}
	return len(w) < 2 || w[len(w)-1] != "END" || w[len(w)-2] != ";"
}
