package grep

import (
	"bytes"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// compiled is a regular expression that never matches across lines.
type compiled struct {
	re *regexp.Regexp
	// needles are texts of which every matching line holds one; none if no such texts are known.
	needles []string
	fold    bool // the needles are in lower case, and the case of ASCII letters does not matter
}

// compile reads an expression of RE2. Lines end at a line feed, and a carriage return
// before it does not count for $.
func compile(expr string) (*compiled, error) {
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("the pattern is not a valid regular expression (RE2): %w", err)
	}
	// The tree is written and parsed again, because the literals of a changed tree
	// are not joined.
	text := byLine(tree).String()
	re, err := regexp.Compile(text)
	if err == nil {
		tree, err = syntax.Parse(text, syntax.Perl)
	}
	if err != nil {
		return nil, fmt.Errorf("the pattern cannot be used: %w", err)
	}
	c := &compiled{re: re}
	c.needles = c.needlesOf(tree.Simplify())
	if c.fold {
		for i, n := range c.needles {
			c.needles[i] = string(lower([]byte(n)))
		}
	}
	return c, nil
}

// byLine rewrites a tree so that it matches within lines only: no class and no dot
// matches a line feed, and anchors of the text become anchors of the line.
func byLine(re *syntax.Regexp) *syntax.Regexp {
	for i, sub := range re.Sub {
		re.Sub[i] = byLine(sub)
	}
	switch re.Op {
	case syntax.OpAnyChar:
		re.Op = syntax.OpAnyCharNotNL
	case syntax.OpBeginText:
		re.Op = syntax.OpBeginLine
	case syntax.OpEndText, syntax.OpEndLine:
		return endOfLine()
	case syntax.OpLiteral:
		if slices.Contains(re.Rune, '\n') {
			return &syntax.Regexp{Op: syntax.OpNoMatch}
		}
	case syntax.OpCharClass:
		re.Rune = without(re.Rune, '\n')
		if len(re.Rune) == 0 {
			re.Op = syntax.OpNoMatch
		}
	}
	return re
}

func endOfLine() *syntax.Regexp {
	re, err := syntax.Parse(`(?m:\r?$)`, syntax.Perl)
	if err != nil {
		panic(err) // the expression is a constant
	}
	return re
}

// without removes a character from the pairs of a class.
func without(ranges []rune, r rune) []rune {
	out := make([]rune, 0, len(ranges)+2)
	for i := 0; i < len(ranges); i += 2 {
		lo, hi := ranges[i], ranges[i+1]
		if lo > r || hi < r {
			out = append(out, lo, hi)
			continue
		}
		if lo < r {
			out = append(out, lo, r-1)
		}
		if hi > r {
			out = append(out, r+1, hi)
		}
	}
	return out
}

// mostNeedles bounds how many texts are looked for at once.
const mostNeedles = 8

// needlesOf returns texts of which every match of a tree has one, nil if none are known.
func (c *compiled) needlesOf(re *syntax.Regexp) (needles []string) {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return []string{string(re.Rune)}
		}
		c.fold = true
		// k and s have another case that is not in ASCII.
		parts := strings.FieldsFunc(string(re.Rune), func(r rune) bool { return r >= 0x80 || strings.ContainsRune("kKsS", r) })
		if len(parts) > 0 {
			needles = []string{slices.MaxFunc(parts, func(a, b string) int { return len(a) - len(b) })}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return c.needlesOf(re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if n := c.needlesOf(sub); weight(n) > weight(needles) {
				needles = n
			}
		}
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			n := c.needlesOf(sub)
			if needles = append(needles, n...); n == nil || len(needles) > mostNeedles {
				return nil
			}
		}
	}
	return needles
}

// weight says how well needles filter: by the length of the shortest, less for each further one; 0 without needles.
func weight(needles []string) int {
	if len(needles) == 0 {
		return 0
	}
	shortest := slices.MinFunc(needles, func(a, b string) int { return len(a) - len(b) })
	return mostNeedles + 2*len(shortest) - len(needles)
}

// lower returns a copy of a text with ASCII letters in lower case.
func lower(text []byte) []byte {
	text = bytes.Clone(text)
	for i, c := range text {
		if 'A' <= c && c <= 'Z' {
			text[i] = c + 'a' - 'A'
		}
	}
	return text
}
