package highlight

import (
	"math/bits"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2/syntax"
)

// class is a set of characters.
type class struct {
	ascii [2]uint64
	wide  *syntax.CharSet // decides about the characters beyond ASCII; nil means only and not do
	only  rune            // the one character of the class
	not   bool            // the class has every character but that one
}

// hasByte reports whether an ASCII character is in the class.
func (c *class) hasByte(b byte) bool { return c.ascii[b>>6&1]>>(b&63)&1 != 0 }

// has reports whether a character is in the class.
func (c *class) has(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return c.hasByte(byte(r))
	case c.wide != nil:
		return c.wide.CharIn(r)
	}
	return (r == c.only) != c.not
}

// classes has the classes that were met, by what defines them: \w costs 128 look-ups only once.
type classes map[string]*class

// of returns the class of the characters that the node n of a tree takes.
func (cs classes) of(n *syntax.RegexNode) *class {
	c := &class{only: n.Ch, not: n.IsNotoneFamily()}
	key := "=" + string(n.Ch)
	switch {
	case n.IsSetFamily():
		c.wide = n.Set
		if few := n.Set.GetSetChars(4); len(few) > 0 && !n.Set.IsNegated() {
			key = "[" + string(few)
		} else {
			key = "#" + string(n.Set.Hash())
		}
	case c.not:
		key = "^" + string(n.Ch)
	}
	if known := cs[key]; known != nil {
		return known
	}
	for b := range rune(utf8.RuneSelf) {
		if c.wide != nil && c.wide.CharIn(b) || c.wide == nil && (b == c.only) != c.not {
			c.ascii[b>>6] |= 1 << (b & 63)
		}
	}
	cs[key] = c
	return c
}

// firstSet has the bytes that a match may begin with. Characters beyond ASCII are
// all in it, or none.
type firstSet struct {
	ascii [2]uint64
	wide  bool // a character beyond ASCII
	empty bool // a match may be empty, so that it does not matter what follows
}

func (f *firstSet) addByte(b byte) { f.ascii[b>>6] |= 1 << (b & 63) }

func (f *firstSet) add(g firstSet) {
	f.ascii[0] |= g.ascii[0]
	f.ascii[1] |= g.ascii[1]
	f.wide = f.wide || g.wide
}

// each calls do with the ASCII characters of f, and with jumpWide and jumpEnd if a match may
// begin with another one or be empty.
func (f *firstSet) each(do func(c int)) {
	all := f.ascii
	if f.empty {
		all = [2]uint64{^uint64(0), ^uint64(0)}
	}
	for i, word := range all {
		for ; word != 0; word &= word - 1 {
			do(64*i + bits.TrailingZeros64(word))
		}
	}
	if f.wide || f.empty {
		do(jumpWide)
	}
	if f.empty {
		do(jumpEnd)
	}
}

// first returns what a match of n may begin with.
func (cs classes) first(n *syntax.RegexNode) firstSet {
	var f firstSet
	switch n.T {
	case syntax.NtOne, syntax.NtNotone, syntax.NtSet,
		syntax.NtOneloop, syntax.NtNotoneloop, syntax.NtSetloop,
		syntax.NtOnelazy, syntax.NtNotonelazy, syntax.NtSetlazy,
		syntax.NtOneloopatomic, syntax.NtNotoneloopatomic, syntax.NtSetloopatomic:
		c := cs.of(n)
		f.ascii, f.wide = c.ascii, c.wide != nil || c.not || c.only >= utf8.RuneSelf
		f.empty = n.T != syntax.NtOne && n.T != syntax.NtNotone && n.T != syntax.NtSet && n.M == 0
	case syntax.NtMulti:
		if c := n.Str[0]; c < utf8.RuneSelf {
			f.addByte(byte(c))
		} else {
			f.wide = true
		}
	case syntax.NtConcatenate:
		f.empty = true
		for _, child := range n.Children {
			g := cs.first(child)
			f.add(g)
			if !g.empty {
				f.empty = false
				break
			}
		}
	case syntax.NtAlternate:
		for _, child := range n.Children {
			g := cs.first(child)
			f.add(g)
			f.empty = f.empty || g.empty
		}
	case syntax.NtCapture, syntax.NtGroup, syntax.NtAtomic:
		return cs.first(n.Children[0])
	case syntax.NtLoop, syntax.NtLazyloop:
		f = cs.first(n.Children[0])
		f.empty = f.empty || n.M == 0
	case syntax.NtNothing:
	case syntax.NtRef:
		return firstSet{ascii: [2]uint64{1<<64 - 1, 1<<64 - 1}, wide: true, empty: true}
	default: // conditions, which match nothing
		f.empty = true
	}
	return f
}
