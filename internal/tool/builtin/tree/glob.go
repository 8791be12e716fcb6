package tree

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ErrPattern says that a glob pattern is malformed. Errors of [Compile] wrap it.
var ErrPattern = errors.New("malformed pattern")

// maxAlternatives bounds what the braces of one pattern stand for.
const maxAlternatives = 256

// Glob is a compiled glob pattern:
//
//   - any text without a slash
//     ?        one character, not a slash
//     [a-z]    one of these characters; [!a-z] and [^a-z] one of the others
//     **       as a whole segment: any number of segments, also none
//     {a,b}    a or b
//     \x       x itself
//
// A pattern without a slash is about names: it matches the last segment of a path. Any
// other is about whole paths. It may be used from several goroutines.
type Glob struct {
	names bool // matches the last segment only
	any   []segments
}

// Compile reads a pattern.
func Compile(pattern string) (*Glob, error) {
	alternatives, err := expand(pattern, nil)
	if err != nil {
		return nil, err
	}
	g := &Glob{names: !strings.Contains(pattern, "/")}
	for _, a := range alternatives {
		s, err := parseSegments(strings.TrimPrefix(a, "/"))
		if err != nil {
			return nil, fmt.Errorf("%w %q: %w", ErrPattern, pattern, err)
		}
		g.any = append(g.any, s)
	}
	return g, nil
}

// Match reports whether the pattern matches a path with slashes, relative to where the
// pattern starts.
func (g *Glob) Match(path string) bool {
	if g.names {
		path = path[strings.LastIndexByte(path, '/')+1:]
	}
	for _, s := range g.any {
		if s.match(path) {
			return true
		}
	}
	return false
}

// expand appends the patterns without braces that pattern stands for.
func expand(pattern string, to []string) ([]string, error) {
	open, shut, commas := braces(pattern)
	if open < 0 {
		if len(to) == maxAlternatives {
			return nil, fmt.Errorf("%w: it has more than %d alternatives", ErrPattern, maxAlternatives)
		}
		return append(to, pattern), nil
	}
	var err error
	from := open + 1
	for _, at := range append(commas, shut) {
		if to, err = expand(pattern[:open]+pattern[from:at]+pattern[shut+1:], to); err != nil {
			return nil, err
		}
		from = at + 1
	}
	return to, nil
}

// braces finds the first pair of braces and the commas directly in it; open is -1 if
// there is none. A brace without its partner stands for itself.
func braces(pattern string) (open, shut int, commas []int) {
	depth, class := 0, false
	open = -1
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[' && strings.IndexByte(pattern[i:], ']') > 1:
			class = true
		case c == '{':
			if depth++; depth == 1 {
				open, commas = i, nil
			}
		case c == ',' && depth == 1:
			commas = append(commas, i)
		case c == '}' && depth > 0:
			if depth--; depth == 0 {
				return open, i, commas
			}
		}
	}
	return -1, -1, nil
}

// segments is a pattern without braces, split at its slashes. A nil segment is "**".
type segments []segment

// parseSegments splits and parses a pattern.
func parseSegments(pattern string) (segments, error) {
	var list segments
	for text := range strings.SplitSeq(pattern, "/") {
		if text == "**" {
			if len(list) == 0 || list[len(list)-1] != nil { // two in a row are one
				list = append(list, nil)
			}
			continue
		}
		s, err := parseSegment(text)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// match compares segment by segment. After a mismatch it is enough to go back to the last
// "**" and let it take one segment more: what an earlier one takes more, the last can too.
func (s segments) match(path string) bool {
	rest, left := path, s
	var backLeft segments // behind the last "**"
	var backRest string   // what that has to match, with one segment less each time
	done := false         // rest is used up, the empty path has one empty segment
	backDone, starred := false, false
	for {
		if len(left) > 0 && left[0] == nil {
			backLeft, backRest, backDone, starred = left[1:], rest, done, true
			left = left[1:]
			if len(left) == 0 {
				return !done // "a/**" is about what is below a
			}
			continue
		}
		if len(left) == 0 && done {
			return true
		}
		if len(left) > 0 && !done {
			name, more, found := strings.Cut(rest, "/")
			if left[0].match(name) {
				rest, left, done = more, left[1:], !found
				continue
			}
		}
		if !starred || backDone {
			return false
		}
		_, more, found := strings.Cut(backRest, "/")
		backRest, backDone = more, !found
		rest, left, done = backRest, backLeft, backDone
	}
}

// segment matches one name.
type segment []token

// token is a literal text, a star, any character, or a class of them.
type token struct {
	literal string
	star    bool
	class   *class // nil, and no literal and no star, is any character
}

type class struct {
	negated bool
	ranges  []rune // pairs of the first and the last
}

func (c *class) has(r rune) bool {
	for i := 0; i < len(c.ranges); i += 2 {
		if c.ranges[i] <= r && r <= c.ranges[i+1] {
			return !c.negated
		}
	}
	return c.negated
}

// parseSegment parses a pattern without slashes.
func parseSegment(text string) (segment, error) {
	list := segment{}
	literal := func(s string) {
		if n := len(list); n > 0 && list[n-1].literal != "" {
			list[n-1].literal += s
			return
		}
		list = append(list, token{literal: s})
	}
	for i := 0; i < len(text); {
		switch text[i] {
		case '*':
			if n := len(list); n == 0 || !list[n-1].star {
				list = append(list, token{star: true})
			}
			i++
		case '?':
			list = append(list, token{})
			i++
		case '[':
			c, n, err := parseClass(text[i:])
			if err != nil {
				return nil, err
			}
			list = append(list, token{class: c})
			i += n
		case '\\':
			if i+1 == len(text) {
				return nil, errors.New("a backslash at the end")
			}
			_, n := utf8.DecodeRuneInString(text[i+1:])
			literal(text[i+1 : i+1+n])
			i += 1 + n
		default:
			n := strings.IndexAny(text[i:], `*?[\`)
			if n < 0 {
				n = len(text) - i
			}
			literal(text[i : i+n])
			i += n
		}
	}
	return list, nil
}

// parseClass parses a class at the start of text and returns its length.
func parseClass(text string) (*class, int, error) {
	c, i := new(class), 1
	if i < len(text) && (text[i] == '!' || text[i] == '^') {
		c.negated = true
		i++
	}
	char := func() (rune, bool) {
		if i < len(text) && text[i] == '\\' {
			i++
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		i += n
		return r, n > 0
	}
	for first := true; ; first = false {
		if i < len(text) && text[i] == ']' && !first {
			return c, i + 1, nil
		}
		lo, ok := char()
		hi := lo
		if i+1 < len(text) && text[i] == '-' && text[i+1] != ']' {
			i++
			hi, ok = char()
		}
		if !ok {
			return nil, 0, errors.New("a bracket that is not closed")
		}
		c.ranges = append(c.ranges, lo, hi)
	}
}

// match compares with a name. As in [segments.match], only the last star can need to take
// more.
func (s segment) match(name string) bool {
	t, rest := 0, name
	backT, backRest := -1, ""
	for {
		if t < len(s) && s[t].star {
			if t++; t == len(s) {
				return true
			}
			backT, backRest = t, rest
			continue
		}
		if t == len(s) && rest == "" {
			return true
		}
		if t < len(s) {
			if n := s[t].prefix(rest); n > 0 {
				t, rest = t+1, rest[n:]
				continue
			}
		}
		if backT < 0 || backRest == "" {
			return false
		}
		_, n := utf8.DecodeRuneInString(backRest)
		backRest = backRest[n:]
		t, rest = backT, backRest
	}
}

// prefix returns how many bytes of text the token matches, 0 for none.
func (t token) prefix(text string) int {
	if t.literal != "" {
		if strings.HasPrefix(text, t.literal) {
			return len(t.literal)
		}
		return 0
	}
	r, n := utf8.DecodeRuneInString(text)
	if n == 0 || t.class != nil && !t.class.has(r) {
		return 0
	}
	return n
}
