// Package text cuts, cleans and words texts for people.
//
// A text is cut to a limit in bytes, characters (runes) or columns of a terminal. What was
// cut ends with [Mark], which counts: no result exceeds its limit, and one that is too small
// for the mark leaves nothing. A cut is never within a character, nor within a grapheme,
// which is what a reader takes for one: a letter with its accents, a flag, a family.
//
// A text of others must not reach a terminal as it is: an escape sequence or a control
// character in it could move the cursor, change the title, show the text in another order,
// or make the terminal type for the user. [Clean] and [OneLine] drop such characters, for
// prose; [Printable] shows them as pictures, for source text and logs; [Visible] shows them
// as escapes, for what a user decides about.
package text

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/clipperhouse/uax29/v2/graphemes"
)

// Mark ends a text that was cut.
const Mark = "…"

// Cut returns s, or its beginning and [Mark] if it has more than limit bytes.
func Cut(s string, limit int) string {
	switch {
	case len(s) <= limit:
		return s
	case limit < len(Mark):
		return ""
	}
	end, _ := around(s, limit-len(Mark))
	return s[:end] + Mark
}

// CutRunes returns s, or its beginning and [Mark] if it has more than limit characters.
func CutRunes(s string, limit int) string {
	if limit <= 0 {
		return ""
	}
	n, room := 0, 0
	for i := range s {
		if n == limit-1 {
			room = i
		}
		if n == limit {
			end, _ := around(s, room)
			return s[:end] + Mark
		}
		n++
	}
	return s
}

// CutColumns returns s, or its beginning and [Mark] if it takes more than limit columns of
// a terminal. Escape sequences take none, and stay.
func CutColumns(s string, limit int) string {
	if limit <= 0 {
		return ""
	}
	return ansi.Truncate(s, limit, Mark)
}

// WrapWords breaks the lines of s at blanks, so that they have at most limit columns unless a word is longer. A name such as --keep
// stays in one piece. A limit below 20 breaks nothing.
func WrapWords(s string, limit int) string {
	if limit < 20 {
		return s
	}
	const hyphen = "\u2011" // not a place to break, and as wide
	return strings.ReplaceAll(ansi.Wordwrap(strings.ReplaceAll(s, "-", hyphen), limit, ""), hyphen, "-")
}

// Ends returns the beginning and the end of s, of limit bytes together at most. s has more
// bytes than limit, which is not negative.
func Ends(s string, limit int) (head, tail string) {
	end, _ := around(s, limit-limit/2)
	_, start := around(s, len(s)-limit/2)
	return s[:end], s[start:]
}

// around returns the borders of graphemes that are nearest to the place at in s, at itself
// if it is one.
func around(s string, at int) (before, after int) {
	// Two characters of ASCII are never one grapheme, but for CR LF.
	for before = at; before > 0 && before < len(s); before-- {
		if s[before-1] < utf8.RuneSelf && s[before] < utf8.RuneSelf && s[before-1] != '\r' {
			break
		}
	}
	after = before
	for g := graphemes.FromString(s[before:]); after < at && g.Next(); after += len(g.Value()) {
		before = after
	}
	if after == at {
		before = at
	}
	return before, after
}

// Clean returns s without escape sequences and [Hidden] characters, a carriage return
// included. Broken UTF-8 becomes U+FFFD.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if Hidden(r) {
			return -1
		}
		return r
	}, strip(s))
}

// OneLine returns the words of s with single blanks between them, cleaned as by [Clean] and
// cut to limit characters. It reads no more of a long text than it needs.
func OneLine(s string, limit int) string {
	var b strings.Builder
	n, gap := 0, false
	for _, r := range strip(s) {
		switch {
		case r == ' ' || r == '\n' || r == '\t' || r == '\r' || r == 0x85 || r == 0xa0 || r == 0x2028 || r == 0x2029:
			gap = n > 0
			continue
		case Hidden(r):
			continue
		}
		if gap {
			b.WriteByte(' ')
			n++
			gap = false
		}
		b.WriteRune(r)
		if n++; n > limit {
			if head, cut := strings.CutSuffix(CutRunes(b.String(), limit), Mark); cut {
				return strings.TrimSuffix(head, " ") + Mark
			}
			return ""
		}
	}
	return b.String()
}

func strip(s string) string {
	if strings.Contains(s, "\x1b") {
		return ansi.Strip(s)
	}
	return s
}

// Count returns n and its noun: "1 file", "3 files", "0 directories".
func Count(n int, noun string) string { return strconv.Itoa(n) + " " + Plural(n, noun) }

// Plural returns a noun, which is given in the singular, as it follows n.
func Plural(n int, noun string) string {
	switch stem, y := strings.CutSuffix(noun, "y"); {
	case n == 1:
		return noun
	case y && stem != "" && !strings.ContainsRune("aeiou", rune(stem[len(stem)-1])):
		return stem + "ies"
	}
	return noun + "s"
}

// Word returns s as one word of a POSIX shell, with quotes if it needs any.
func Word(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,@%+") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Or joins words as in "a, b or c".
func Or(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Regexp returns a function that returns the regular expression expr, which is compiled when it is first called. Packages
// keep their expressions so, since a program that starts would compile hundreds of which it needs none. The function panics
// if expr is not valid, and can be called by several goroutines.
func Regexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
