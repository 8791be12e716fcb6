package tree

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// ErrPattern reports that a glob pattern is malformed. Errors of [Compile] wrap it.
var ErrPattern = errors.New("malformed pattern")

// maxAlternatives bounds the alternatives of the braces in one pattern.
const maxAlternatives = 256

// Glob is a glob pattern:
//
//   - any text without a slash
//     ?        one character, not a slash
//     [a-z]    one of these characters; [!a-z] and [^a-z] one of the others
//     **       as a whole segment: any number of segments, also none
//     {a,b}    a or b
//     \x       x itself
//
// A pattern without a slash matches the last segment of a path. Any other matches
// whole paths. It may be used from several goroutines.
type Glob struct {
	names bool     // matches the last segment only
	any   []string // patterns without braces, as translate returns them
}

// Compile reads a pattern.
func Compile(pattern string) (*Glob, error) {
	alternatives, err := expand(pattern, nil)
	if err != nil {
		return nil, err
	}
	g := &Glob{names: !strings.Contains(pattern, "/")}
	for _, a := range alternatives {
		translated, ok := translate(strings.TrimPrefix(a, "/"))
		if !ok {
			return nil, fmt.Errorf("%w %q: a bracket that is not closed, or a backslash at the end", ErrPattern, pattern)
		}
		g.any = append(g.any, translated)
	}
	return g, nil
}

// Match reports whether the pattern matches a path with slashes, relative to where the
// pattern starts.
func (g *Glob) Match(path string) bool {
	if g.names {
		path = path[strings.LastIndexByte(path, '/')+1:]
	}
	for _, pattern := range g.any {
		if doublestar.MatchUnvalidated(pattern, path) {
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

// braces finds the first pair of braces and the commas directly in it; open is -1
// without such a pair. A brace without its partner stands for itself.
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

// translate returns a pattern in which braces stand for themselves, the one of git and of
// shells, in the library's dialect, and whether it is valid. The library's differs in five
// points: a brace has to be escaped, so has a bracket that is the first of its class, a class
// of other characters has the slash among them, "a/**" matches a, and "a***" does not.
func translate(pattern string) (translated string, ok bool) {
	var out strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; c {
		case '{', '}':
			out.WriteByte('\\')
			out.WriteByte(c)
		case '\\':
			out.WriteString(pattern[i:min(i+2, len(pattern))])
			i++
		case '*':
			run := len(pattern[i:]) - len(strings.TrimLeft(pattern[i:], "*"))
			if i += run - 1; run == 2 {
				out.WriteByte('*')
			}
			out.WriteByte('*')
		case '[':
			end := classEnd(pattern[i:])
			if end < 0 {
				return "", false
			}
			out.WriteString(translateClass(pattern[i+1 : i+end]))
			i += end
		default:
			out.WriteByte(c)
		}
	}
	translated = out.String()
	if strings.HasSuffix(translated, "/**") {
		translated += "/*"
	}
	return translated, doublestar.ValidatePattern(translated)
}

// classEnd returns the index of the bracket that closes the class at the start of text, -1
// if there is none.
func classEnd(text string) int {
	i := 1
	if i < len(text) && (text[i] == '!' || text[i] == '^') {
		i++
	}
	for first := i; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case text[i] == ']' && i > first:
			return i
		}
	}
	return -1
}

// translateClass returns the class whose content, without the brackets, is inner.
func translateClass(inner string) string {
	start := "["
	if inner[0] == '!' || inner[0] == '^' {
		start, inner = "[!/", inner[1:]
	}
	if inner[0] == ']' {
		start += `\`
	}
	return start + inner + "]"
}
