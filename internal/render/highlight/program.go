package highlight

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2/syntax"
)

// program is a compiled regular expression. A matcher runs it, from its second instruction; the
// first one fails.
type program struct {
	code      []inst
	texts     []string
	series    [][]*class
	jumps     []*jumps
	registers int // two for each group, where it begins and ends, then others
	groups    int // that are known after a match, counting the whole as one; 0 if none are wanted
	first     firstSet
}

// op is what an instruction does.
type op uint8

const (
	opFail   op = iota
	opMatch     // the end of the program
	opByte      // takes the character char
	opText      // takes text x
	opClass     // takes a character of class
	opSeries    // takes a character of each class of series x
	opLoop      // takes characters of class, x to y, as many as there are, and gives them back one by one
	opKeep      // does so and gives none back
	opLazy      // takes characters of class, x to y, as few as possible
	opBack      // takes a character of class, or text x, that ends at the place: within a look behind
	opRef       // takes what the group x matched; fold ignores case

	opLineStart // conditions
	opLineEnd
	opTextStart
	opTextEnd
	opLastLine // at the end, or before the line feed at the end
	opWord     // a boundary of a word
	opNoWord

	opJump      // to x
	opSkip      // to x, behind the next byte
	opSplit     // to x, or else to y. If there is a class, the next byte decides whether x is tried
	opLazySplit // to y, or else to x, the same way
	opSwitch    // to what jumps x say
	opMark      // register x is the place
	opUnmark    // register x is none
	opAgain     // to y, unless the place is that of register x, or else on. Register x is the place then
	opLazyAgain // on, or else to y, unless the place is that of register x
	opMoved     // to y if the place is that of register x
	opOpen      // register x is the place
	opClose     // group x goes from register y to the place
	opBegin     // register x is the height of the stack
	opCut       // takes ways away that were left open since register x was set
	opLook      // registers x and x+1 are the height of the stack and the place
	opLooked    // the same as opCut, and back to the place of register x+1
	opNot       // register x is the height of the stack, and y is where to go if what follows fails
	opNotted    // fails, and so does opNot
)

// inst is an instruction.
type inst struct {
	op    op
	back  bool  // it takes what is before the place
	fold  bool  // of opRef
	undo  bool  // registers get their values back when the matcher goes back
	char  byte  // of opByte
	next  byte  // a character that has to follow a loop, 0 if that is not known
	x, y  int32 // places in the program, registers, counts
	class *class
}

// jumps says where to go on by the next byte.
type jumps [jumpEnd + 1]uint16

// Indices of jumps beyond those of ASCII.
const (
	jumpWide = utf8.RuneSelf     // another character
	jumpEnd  = utf8.RuneSelf + 1 // the end of the text
)

// maxCopies is how often something that is to be repeated stands in a program.
const maxCopies = 100

var errPattern = errors.New("unsupported regular expression")

// compiler makes a program of a tree.
type compiler struct {
	classes classes
	program
	regs  int32
	keep  map[int]bool // groups that are wanted
	loops int          // how many loops are around
	ways  int          // how many choices are around
}

// compile compiles a pattern. If groups is set, a match reports what its groups matched.
func compile(pattern string, groups bool, cs classes) (*program, error) {
	tree, err := syntax.Parse(pattern, syntax.ParseOptions{})
	if err != nil {
		return nil, err
	}
	c := &compiler{classes: cs, keep: map[int]bool{}, regs: int32(2 * tree.Captop)}
	c.keepGroups(tree.Root, groups)
	c.emit(inst{op: opFail})
	body := tree.Root.Children[0]
	if err := c.node(body, true); err != nil {
		return nil, fmt.Errorf("%w: %s", err, pattern)
	}
	c.emit(inst{op: opMatch})
	c.follow()
	if len(c.code) > math.MaxUint16 {
		return nil, fmt.Errorf("%w: too long: %s", errPattern, pattern)
	}
	c.code = slices.Clone(c.code) // without room for more
	c.registers, c.first = int(c.regs), cs.first(body)
	if len(c.keep) > 0 {
		c.groups = tree.Captop
	}
	return &c.program, nil
}

// keepGroups notes the groups that are wanted: all, or those that the pattern itself refers to.
func (c *compiler) keepGroups(n *syntax.RegexNode, all bool) {
	if n.T == syntax.NtRef || n.T == syntax.NtCapture && n.M > 0 && all {
		c.keep[n.M] = true
	}
	for _, child := range n.Children {
		c.keepGroups(child, all)
	}
}

func (c *compiler) emit(in inst) int32 {
	c.code = append(c.code, in)
	return int32(len(c.code) - 1)
}

// text appends an instruction that takes text.
func (c *compiler) text(text []rune, back bool) {
	c.texts = append(c.texts, string(text))
	in := inst{op: opText, x: int32(len(c.texts) - 1), back: back}
	if back {
		in.op = opBack
	}
	c.emit(in)
}

func (c *compiler) here() int32 { return int32(len(c.code)) }

func (c *compiler) register(n int32) int32 {
	c.regs += n
	return c.regs - n
}

// follow notes what has to follow loops.
func (c *compiler) follow() {
	for i := range c.code {
		switch in := &c.code[i]; in.op {
		case opLoop, opLazy:
			switch after := &c.code[i+1]; {
			case in.back || after.back:
			case after.op == opByte:
				in.next = after.char
			case after.op == opText && c.texts[after.x][0] < utf8.RuneSelf:
				in.next = c.texts[after.x][0]
			}
		}
	}
}

var conditions = map[syntax.NodeType]op{
	syntax.NtBol: opLineStart, syntax.NtEol: opLineEnd, syntax.NtBeginning: opTextStart, syntax.NtEnd: opTextEnd,
	syntax.NtEndZ: opLastLine, syntax.NtBoundary: opWord, syntax.NtNonboundary: opNoWord,
}

// node appends the instructions for n. Nothing goes back into the last of them if tail is set.
func (c *compiler) node(n *syntax.RegexNode, tail bool) error {
	back := n.Options&syntax.RightToLeft != 0
	switch n.T {
	case syntax.NtEmpty, syntax.NtUpdateBumpalong:
	case syntax.NtNothing:
		c.emit(inst{op: opFail})
	case syntax.NtMulti:
		c.text(n.Str, back)
	case syntax.NtOne, syntax.NtNotone, syntax.NtSet:
		switch {
		case back:
			c.emit(inst{op: opBack, class: c.classes.of(n), back: true})
		case n.T == syntax.NtOne && n.Ch < utf8.RuneSelf:
			c.emit(inst{op: opByte, char: byte(n.Ch)})
		default:
			c.emit(inst{op: opClass, class: c.classes.of(n)})
		}
	case syntax.NtOneloop, syntax.NtNotoneloop, syntax.NtSetloop:
		c.emit(inst{op: opLoop, class: c.classes.of(n), x: int32(n.M), y: int32(n.N), back: back})
	case syntax.NtOneloopatomic, syntax.NtNotoneloopatomic, syntax.NtSetloopatomic:
		c.emit(inst{op: opKeep, class: c.classes.of(n), x: int32(n.M), y: int32(n.N), back: back})
	case syntax.NtOnelazy, syntax.NtNotonelazy, syntax.NtSetlazy:
		c.emit(inst{op: opLazy, class: c.classes.of(n), x: int32(n.M), y: int32(n.N), back: back})
	case syntax.NtRef:
		c.emit(inst{op: opRef, x: int32(n.M), fold: n.Options&syntax.IgnoreCase != 0, back: back})
	case syntax.NtConcatenate:
		return c.items(n.Children, tail)
	case syntax.NtGroup:
		return c.node(n.Children[0], tail)
	case syntax.NtAlternate:
		return c.alternate(n, tail)
	case syntax.NtLoop, syntax.NtLazyloop:
		return c.loop(n)
	case syntax.NtCapture:
		return c.capture(n, tail)
	case syntax.NtAtomic, syntax.NtPosLook, syntax.NtNegLook:
		return c.atomic(n, tail)
	default:
		condition, ok := conditions[n.T]
		if !ok {
			return errPattern
		}
		c.emit(inst{op: condition})
	}
	return nil
}

// items appends the instructions for what comes one after the other.
func (c *compiler) items(list []*syntax.RegexNode, tail bool) error {
	for i := 0; i < len(list); i++ {
		n := 0
		for i+n < len(list) && list[i+n].T == syntax.NtSet && list[i+n].Options&syntax.RightToLeft == 0 {
			n++
		}
		if n > 1 { // words, where case is ignored
			series := make([]*class, n)
			for k := range series {
				series[k] = c.classes.of(list[i+k])
			}
			c.series = append(c.series, series)
			c.emit(inst{op: opSeries, x: int32(len(c.series) - 1)})
			i += n - 1
			continue
		}
		if err := c.node(list[i], tail && i == len(list)-1); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiler) capture(n *syntax.RegexNode, tail bool) error {
	if n.N != -1 {
		return errPattern // one group takes from another
	}
	if !c.keep[n.M] {
		return c.node(n.Children[0], tail)
	}
	r := c.register(1)
	c.emit(inst{op: opOpen, x: r, undo: c.loops > 0})
	if err := c.node(n.Children[0], tail); err != nil {
		return err
	}
	c.emit(inst{op: opClose, x: int32(n.M), y: r, undo: c.loops+c.ways > 0})
	return nil
}

// atomic appends an expression that the matcher does not go back into once it has matched.
func (c *compiler) atomic(n *syntax.RegexNode, tail bool) error {
	child := n.Children[0]
	if n.T == syntax.NtAtomic && tail {
		return c.node(child, true)
	}
	var begin, end inst
	switch n.T {
	case syntax.NtAtomic:
		r := c.register(1)
		begin, end = inst{op: opBegin, x: r}, inst{op: opCut, x: r}
	case syntax.NtPosLook:
		r := c.register(2)
		begin, end = inst{op: opLook, x: r}, inst{op: opLooked, x: r}
	default:
		r := c.register(1)
		begin, end = inst{op: opNot, x: r}, inst{op: opNotted, x: r}
	}
	at := c.emit(begin)
	c.ways++
	if err := c.node(child, true); err != nil {
		return err
	}
	c.ways--
	c.emit(end)
	c.code[at].y = c.here()
	return nil
}

// alternate appends the branches of n.
func (c *compiler) alternate(n *syntax.RegexNode, tail bool) error {
	c.ways++
	defer func() { c.ways-- }()
	if n.Options&syntax.RightToLeft != 0 {
		return c.tryAll(n.Children, tail)
	}
	list := make([]branch, len(n.Children))
	for i, child := range n.Children {
		list[i] = branch{items: []*syntax.RegexNode{child}, id: i}
		if child.T == syntax.NtConcatenate {
			list[i].items = child.Children
		}
	}
	a := alternation{compiler: c, tail: tail, known: map[string]int32{}, firsts: map[*syntax.RegexNode]firstSet{}}
	enter := c.emit(inst{op: opJump})
	start, err := a.choose(list)
	if err != nil {
		return err
	}
	c.code[enter].x = start
	for _, i := range a.ends {
		c.code[i].x = c.here()
	}
	return nil
}

// tryAll appends branches of which each is tried.
func (c *compiler) tryAll(list []*syntax.RegexNode, tail bool) error {
	var ends []int32
	for i, child := range list {
		var split int32
		if i < len(list)-1 {
			split = c.emit(inst{op: opSplit, x: c.here() + 1})
		}
		if err := c.node(child, tail); err != nil {
			return err
		}
		if i < len(list)-1 {
			ends = append(ends, c.emit(inst{op: opJump}))
			c.code[split].y = c.here()
		}
	}
	for _, i := range ends {
		c.code[i].x = c.here()
	}
	return nil
}

// loop appends a loop.
func (c *compiler) loop(n *syntax.RegexNode) error {
	body := n.Children[0]
	lazy := n.T == syntax.NtLazyloop
	back := n.Options&syntax.RightToLeft != 0
	for body.T == syntax.NtCapture && !c.keep[body.M] || body.T == syntax.NtGroup {
		body = body.Children[0]
	}
	if body.T == syntax.NtOne || body.T == syntax.NtNotone || body.T == syntax.NtSet {
		in := inst{op: opLoop, class: c.classes.of(body), x: int32(n.M), y: int32(n.N), back: back}
		if lazy {
			in.op = opLazy
		}
		c.emit(in)
		return nil
	}
	if n.M > maxCopies || n.N != math.MaxInt32 && n.N > maxCopies {
		return errPattern
	}
	c.loops++
	defer func() { c.loops-- }()
	first := c.classes.first(body)
	if back {
		first = firstSet{empty: true}
	}
	copies := n.M
	if n.N == math.MaxInt32 {
		copies = max(0, n.M-1)
	}
	for range copies {
		if err := c.node(body, false); err != nil {
			return err
		}
	}
	if n.N == math.MaxInt32 {
		return c.endless(body, n.M == 0, lazy, c.nullable(body), &first)
	}
	return c.optional(body, n.N-n.M, lazy, c.nullable(body), &first)
}

// nullable reports whether a match of n may be empty.
func (c *compiler) nullable(n *syntax.RegexNode) bool { return c.classes.first(n).empty }

// endless appends a loop without an end, which may match nothing if zero is set.
func (c *compiler) endless(body *syntax.RegexNode, zero, lazy, nullable bool, first *firstSet) error {
	r := int32(0)
	if nullable {
		r = c.register(1)
		mark := inst{op: opMark, x: r, undo: true}
		if zero {
			mark.op = opUnmark
		}
		c.emit(mark)
	}
	enter := int32(-1)
	if zero {
		enter = c.emit(inst{op: opJump})
	}
	start := c.here()
	if err := c.node(body, false); err != nil {
		return err
	}
	if enter >= 0 {
		c.code[enter].x = c.here()
	}
	if !nullable {
		c.split(lazy, start, c.here()+1, first)
		return nil
	}
	if !lazy {
		c.emit(inst{op: opAgain, x: r, y: start})
		return nil
	}
	at := c.emit(inst{op: opLazyAgain, x: r, y: c.here() + 2})
	over := c.emit(inst{op: opJump})
	c.emit(inst{op: opMark, x: r, undo: true})
	c.emit(inst{op: opJump, x: start})
	c.code[at].y = over + 1
	c.code[over].x = c.here()
	return nil
}

// optional appends a loop that matches body n times at most.
func (c *compiler) optional(body *syntax.RegexNode, n int, lazy, nullable bool, first *firstSet) error {
	r := int32(0)
	if nullable && n > 1 {
		r = c.register(1)
	}
	c.ways++
	defer func() { c.ways-- }()
	var ends []int32
	for range n {
		ends = append(ends, c.split(lazy, c.here()+1, 0, first))
		if r > 0 {
			c.emit(inst{op: opMark, x: r, undo: true})
		}
		if err := c.node(body, false); err != nil {
			return err
		}
		if r > 0 {
			ends = append(ends, c.emit(inst{op: opMoved, x: r}))
		}
	}
	for _, i := range ends {
		c.code[i].y = c.here()
	}
	return nil
}

// split appends a choice between the body of a loop at x and what comes after it at y.
func (c *compiler) split(lazy bool, x, y int32, first *firstSet) int32 {
	in := inst{op: opSplit, x: x, y: y}
	if lazy {
		in.op = opLazySplit
	}
	if !first.empty {
		in.class = &class{ascii: first.ascii, not: first.wide} // all beyond ASCII, or none
	}
	return c.emit(in)
}
