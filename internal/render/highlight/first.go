package highlight

import (
	"regexp/syntax"
	"unicode/utf8"
)

// firstSet has the characters that a match may begin with. All that are not ASCII belong
// to it. Trying a regular expression costs a hundred times as much as a look here, and
// most rules match at few places.
type firstSet [2]uint64

func (s *firstSet) has(c rune) bool {
	return c >= utf8.RuneSelf || s[c>>6]>>(c&63)&1 != 0
}

func (s *firstSet) add(lo, hi rune) {
	for c := lo; c <= hi && c < utf8.RuneSelf; c++ {
		s[c>>6] |= 1 << (c & 63)
	}
}

// firstOf returns what a match of pattern may begin with, nil if that is not known or a
// match may be empty. The pattern is one of the regexp2 library; those that Go's own
// parser does not understand are not known. Where the two read a pattern differently, it
// is about control characters, which belong to every set.
func firstOf(pattern string) *firstSet {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	s := &firstSet{}
	s.add(0, '\t'-1)
	s.add('\n'+1, ' '-1)
	if s.collect(re) {
		return nil
	}
	return s
}

// collect adds what a match of re may begin with, and reports whether a match may be empty.
func (s *firstSet) collect(re *syntax.Regexp) (empty bool) {
	switch re.Op {
	case syntax.OpLiteral:
		c := re.Rune[0]
		s.add(c, c)
		if re.Flags&syntax.FoldCase != 0 && c < utf8.RuneSelf {
			s.add(c|0x20, c|0x20)
			s.add(c&^0x20, c&^0x20)
		}
		return false
	case syntax.OpCharClass:
		for i := 0; i < len(re.Rune); i += 2 {
			s.add(re.Rune[i], re.Rune[i+1])
		}
		return false
	case syntax.OpAnyChar:
		s.add(0, utf8.RuneSelf-1)
		return false
	case syntax.OpAnyCharNotNL:
		s.add(0, '\n'-1)
		s.add('\n'+1, utf8.RuneSelf-1)
		return false
	case syntax.OpCapture, syntax.OpPlus:
		return s.collect(re.Sub[0])
	case syntax.OpStar, syntax.OpQuest:
		s.collect(re.Sub[0])
		return true
	case syntax.OpRepeat:
		return s.collect(re.Sub[0]) || re.Min == 0
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if !s.collect(sub) {
				return false
			}
		}
		return true
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			empty = s.collect(sub) || empty
		}
		return empty
	}
	return re.Op != syntax.OpNoMatch // the rest are conditions, which match nothing
}
