package grep

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// compiled is a regular expression that never matches across lines. Every matching line
// holds one of its needles.
type compiled struct {
	re *regexp.Regexp
	// needles are the texts; empty if they are not known.
	needles []needle
	// exact is true if each line with a needle matches.
	exact bool
}

// compile reads an expression of RE2. Lines end at a line feed, and a carriage return
// before it does not count for $.
func compile(expr string) (*compiled, error) {
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("the pattern is not a valid regular expression (RE2): %w", err)
	}
	tree = byLine(tree)
	re, err := regexp.Compile(tree.String())
	if err != nil {
		return nil, fmt.Errorf("the pattern cannot be used: %w", err)
	}
	c := &compiled{re: re}
	// The tree is written and parsed again, because the literals of a changed tree
	// are not joined.
	if tree, err = syntax.Parse(tree.String(), syntax.Perl); err != nil {
		return nil, fmt.Errorf("the pattern cannot be used: %w", err)
	}
	literals := requiredLiterals(tree.Simplify())
	for _, l := range literals.texts {
		c.needles = append(c.needles, newNeedle(l))
	}
	c.exact = literals.exact && len(c.needles) > 0
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
		for _, r := range re.Rune {
			if r == '\n' {
				return &syntax.Regexp{Op: syntax.OpNoMatch}
			}
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

// literal is a text, perhaps in letters of any case.
type literal struct {
	text string
	fold bool
}

// literals are texts of which every match holds one. Empty means that none is known.
type literals struct {
	texts []literal
	exact bool // each text is a match
}

// maxLiterals bounds how many texts are looked for at once.
const maxLiterals = 8

// requiredLiterals finds the literals of a tree.
func requiredLiterals(re *syntax.Regexp) literals {
	switch re.Op {
	case syntax.OpLiteral:
		return ofRunes(re.Rune, re.Flags&syntax.FoldCase != 0)
	case syntax.OpCapture:
		return requiredLiterals(re.Sub[0])
	case syntax.OpPlus:
		l := requiredLiterals(re.Sub[0])
		return l
	case syntax.OpRepeat:
		if re.Min > 0 {
			l := requiredLiterals(re.Sub[0])
			l.exact = l.exact && re.Min == 1
			return l
		}
	case syntax.OpConcat:
		var best literals
		for _, sub := range re.Sub {
			if l := requiredLiterals(sub); better(l, best) {
				best = l
			}
		}
		best.exact = best.exact && len(re.Sub) == 1
		return best
	case syntax.OpAlternate:
		all := literals{exact: true}
		for _, sub := range re.Sub {
			l := requiredLiterals(sub)
			if len(l.texts) == 0 || len(all.texts)+len(l.texts) > maxLiterals {
				return literals{}
			}
			all.texts = append(all.texts, l.texts...)
			all.exact = all.exact && l.exact
		}
		return all
	}
	return literals{}
}

// better reports whether a is the better filter: fewer texts, then longer ones.
func better(a, b literals) bool {
	return len(a.texts) > 0 && (len(b.texts) == 0 || a.weight() > b.weight())
}

// weight is the length of the shortest text, less for each further text.
func (l literals) weight() int {
	shortest := len(l.texts[0].text)
	for _, t := range l.texts[1:] {
		shortest = min(shortest, len(t.text))
	}
	return 2*shortest - len(l.texts)
}

// ofRunes returns the filter of a literal. If case does not matter, that is its longest
// part of characters whose only other case is in ASCII: k and s have others too.
func ofRunes(runes []rune, fold bool) literals {
	if !fold {
		return literals{texts: []literal{{text: string(runes)}}, exact: true}
	}
	text := string(runes)
	longest := ""
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r >= 0x80 || strings.ContainsRune("kKsS", r) }) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	if longest == "" {
		return literals{}
	}
	return literals{texts: []literal{{text: strings.ToLower(longest), fold: true}}, exact: longest == text}
}
