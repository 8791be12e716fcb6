package highlight

import (
	"encoding/binary"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2/syntax"
)

// branch is what is left of one of several alternatives: items without the first characters of
// the first one, which is a text then.
type branch struct {
	items []*syntax.RegexNode
	taken int
	id    int // of the alternative
	depth int // characters that were taken in all
}

// alternation makes a decision tree of alternatives: the next byte says which of them can match, and
// is taken once for all of them if each begins with a character.
type alternation struct {
	*compiler
	tail   bool
	firsts map[*syntax.RegexNode]firstSet
	known  map[string]int32 // where it is decided between branches, by what they are
	ends   []int32          // jumps behind the alternation
}

// key says what is made of a list of branches.
func key(what byte, list []branch) string {
	b := []byte{what}
	for _, br := range list {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(br.id)), uint64(br.depth))
	}
	return string(b)
}

// first returns what a match of b may begin with.
func (a *alternation) first(b branch) firstSet {
	if len(b.items) == 0 {
		return firstSet{empty: true}
	}
	n := b.items[0]
	f, known := a.firsts[n]
	if b.taken > 0 {
		f = firstSet{wide: true}
		if c := n.Str[b.taken]; c < utf8.RuneSelf {
			f.wide = false
			f.addByte(byte(c))
		}
	} else if !known {
		f = a.classes.first(n)
		a.firsts[n] = f
	}
	if f.empty {
		b.items = b.items[1:]
		g := a.first(b)
		f.add(g)
		f.empty = g.empty
	}
	return f
}

// choose returns where it is decided between branches.
func (a *alternation) choose(list []branch) (int32, error) {
	k := key('?', list)
	if at, ok := a.known[k]; ok {
		return at, nil
	}
	if len(list) == 1 {
		at, err := a.single(list[0])
		a.known[k] = at
		return at, err
	}
	at := a.emit(inst{op: opSwitch, x: int32(len(a.jumps))})
	a.known[k] = at
	j := &jumps{}
	a.jumps = append(a.jumps, j)
	var can [len(j)][]branch
	for _, b := range list {
		f := a.first(b)
		f.each(func(c int) { can[c] = append(can[c], b) })
	}
	for c, few := range can {
		to, err := a.target(few, c)
		if err != nil {
			return 0, err
		}
		j[c] = uint16(to)
	}
	return at, nil
}

// target returns where to go to try branches, in order, when the next byte is c.
func (a *alternation) target(list []branch, c int) (int32, error) {
	if len(list) == 0 {
		return 0, nil // opFail
	}
	if len(list) == 1 {
		return a.choose(list)
	}
	k := key('|', list)
	rest := make([]branch, len(list))
	together := c < utf8.RuneSelf
	for i := 0; i < len(list) && together; i++ {
		rest[i], together = list[i].after()
	}
	if together {
		k = key('>', list)
	}
	if at, ok := a.known[k]; ok {
		return at, nil
	}
	if together {
		at := a.emit(inst{op: opSkip})
		a.known[k] = at
		next, err := a.choose(rest)
		a.code[at].x = next
		return at, err
	}
	var starts []int32
	for _, b := range list {
		start, err := a.choose([]branch{b})
		if err != nil {
			return 0, err
		}
		starts = append(starts, start)
	}
	at := a.here()
	a.known[k] = at
	for i, x := range starts[:len(starts)-1] {
		y := a.here() + 1
		if i == len(starts)-2 {
			y = starts[i+1]
		}
		a.emit(inst{op: opSplit, x: x, y: y})
	}
	return at, nil
}

// after returns what is left of a branch when its first character was taken. It has to be one of
// a few.
func (b branch) after() (branch, bool) {
	if len(b.items) == 0 {
		return b, false
	}
	b.depth++
	switch n := b.items[0]; n.T {
	case syntax.NtMulti:
		if b.taken++; b.taken == len(n.Str) {
			b.taken, b.items = 0, b.items[1:]
		}
		return b, true
	case syntax.NtOne:
		b.items = b.items[1:]
		return b, true
	case syntax.NtSet:
		b.items = b.items[1:]
		return b, !n.Set.IsNegated() && len(n.Set.GetSetChars(3)) > 0
	}
	return b, false
}

// single returns where a branch begins.
func (a *alternation) single(b branch) (int32, error) {
	at := a.here()
	items := b.items
	if b.taken > 0 {
		a.text(items[0].Str[b.taken:], false)
		items = items[1:]
	}
	if err := a.items(items, a.tail); err != nil {
		return 0, err
	}
	a.ends = append(a.ends, a.emit(inst{op: opJump}))
	return at, nil
}
