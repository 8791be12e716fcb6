package command

import "strings"

// Words splits the arguments of a command into words, and returns the text after a word "--", as it
// is.
//
// Space, tab, CR and LF separate words. What is between two of the same quotes (', " or `) belongs to
// one word. A word in single or double quotes is without them; backquotes stay, as they mark a command.
// A quote without its partner extends to the end. A backslash outside of quotes makes a separator part of
// the word, two are one, and before other characters it is dropped. If windows is set it is a character
// like others.
func Words(args string, windows bool) (words []string, text string) {
	s := wordScanner{rest: args, windows: windows}
	for {
		word, raw, ok := s.next()
		if !ok {
			return words, ""
		}
		if raw == "--" {
			return words, cutSeparator(s.rest)
		}
		words = append(words, word)
	}
}

// cutSeparator returns s without the one separator in front.
func cutSeparator(s string) string {
	if rest, ok := strings.CutPrefix(s, "\r\n"); ok {
		return rest
	}
	if s != "" {
		return s[1:]
	}
	return s
}

// separators are what words are separated by. All are one byte, so that a text is scanned in bytes:
// bytes of longer characters are never one of them.
const separators = " \t\r\n"

type wordScanner struct {
	rest    string
	windows bool
}

// next returns the next word, and how it is written. It leaves the separator behind the word.
func (s *wordScanner) next() (word, raw string, ok bool) {
	s.rest = strings.TrimLeft(s.rest, separators)
	if s.rest == "" {
		return "", "", false
	}
	var b strings.Builder
	quote := byte(0) // that is open
	i := 0
scan:
	for ; i < len(s.rest); i++ {
		c := s.rest[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case strings.IndexByte(separators, c) >= 0:
			break scan
		case c == '\'' || c == '"' || c == '`':
			quote = c
		case c == '\\' && !s.windows:
			if i+1 == len(s.rest) || strings.IndexByte(separators+`\`, s.rest[i+1]) < 0 {
				continue
			}
			i++
			c = s.rest[i]
		}
		b.WriteByte(c)
	}
	raw, s.rest = s.rest[:i], s.rest[i:]
	return unquote(b.String()), raw, true
}

// unquote returns a word without the quotes around it.
func unquote(word string) string {
	n := len(word)
	if n >= 2 && word[0] == word[n-1] && (word[0] == '\'' || word[0] == '"') {
		return word[1 : n-1]
	}
	return word
}
