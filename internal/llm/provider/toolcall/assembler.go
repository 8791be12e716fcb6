// Package toolcall assembles the tool calls of a reply from what servers send of them.
//
// A piece is what one event, or one entry of a list, contains of a call. It has any of an id,
// an index, a name and a part of the arguments. A call has one identity: its id; without ids
// its name, its arguments and its place in the reply. A copy of a call, such as a gateway sends
// at the end of a stream, is the same call.
//
// The clients of all providers use one [Assembler] per reply.
package toolcall

import (
	"cmp"
	"strings"

	"loki/internal/llm/chat"
)

// Piece is a part of a call, or a whole one. The zero value of a field means that the server
// did not send it.
type Piece struct {
	Key       string // a second id, which events use and models do not see
	ID        string
	Name      string // or a part of it
	Arguments string // a part of the JSON text
	Signature string // see [chat.ToolCall]
	Index     *int   // the position of the call, as the server counts

	Whole bool // Arguments are all of them
	Again bool // the piece is of a list that repeats the reply
}

// Assembler assembles the calls of one reply. The zero value has none.
type Assembler struct {
	calls     []*call
	current   *call // that took the last piece
	event     int
	ambiguous bool // a piece could belong to several calls
}

// call is a call, or what may turn out to be a copy of one.
type call struct {
	key, id, name, signature string
	index                    *int
	event                    int // that it began with
	again                    bool
	repeated                 bool  // a list that repeats the reply has it
	rest                     *call // the call whose arguments were complete when these came without a name
	announced                bool  // the name came again after the arguments: others may follow
	into                     *call // that it is a copy or a part of

	arguments strings.Builder
	extent    extent

	snapshot string // the last piece of the arguments, if each had all of them so far
	grows    bool   // not a snapshot: a piece did not begin with the one before
}

// NextEvent says that the pieces that follow come later than those before. Equal calls of one
// event are different calls.
func (a *Assembler) NextEvent() { a.event++ }

// Any reports whether there has been a piece of a call.
func (a *Assembler) Any() bool { return len(a.calls) > 0 }

// Add takes a piece.
func (a *Assembler) Add(p Piece) {
	if p.ID == "" && p.Key == "" && p.Name == "" && p.Arguments == "" {
		return
	}
	c, of := a.find(p)
	if c != nil && p.Whole && c.conflicts(p) {
		c = nil
	}
	if c == nil {
		c = a.begin(call{index: p.Index, again: p.Again, rest: of})
	}
	if c.announced && c.id == "" && c.isPlaceholder() && canBegin(p.Arguments) {
		a.ambiguous = true // the arguments of c, or those of an equal name's next call
	}
	c.announced = c.extent.over && p.Name != "" && blank(p.Arguments)
	c.key, c.id = cmp.Or(c.key, p.Key), cmp.Or(c.id, p.ID)
	if !p.Again || c.signature == "" {
		c.signature = cmp.Or(p.Signature, c.signature)
	}
	c.repeated = c.repeated || p.Again
	c.addName(p.Name)
	a.current = c
	if p.Whole {
		c.replace(p.Arguments)
		return
	}
	for rest := c.take(p.Arguments); rest != ""; rest = c.take(rest) {
		c = a.begin(call{key: c.key, id: c.id, index: c.index, rest: c})
	}
}

// begin adds a call and makes it the current one.
func (a *Assembler) begin(c call) *call {
	c.event = a.event
	if c.rest != nil && c.rest.announced {
		c.key, c.id, c.name, c.rest = c.rest.key, c.rest.id, c.rest.name, nil
	}
	a.calls = append(a.calls, &c)
	a.current = &c
	return &c
}

// find returns the call that a piece continues, nil for a new one. of is the call that a piece
// without a name follows although the arguments of the call are complete.
func (a *Assembler) find(p Piece) (c, of *call) {
	if c := a.callByID(p); c != nil {
		return c.continuedBy(p)
	}
	at := a.last(func(c *call) bool { return p.Index != nil && c.at(p.Index) })
	if at != nil && a.current.at(p.Index) { // several calls have this index
		at = a.current
	}
	switch {
	case p.Whole && (at == nil || at.id != "" && p.ID != "" || at.renamedBy(p.Name)):
		return nil, nil
	case p.Whole:
		return at, nil
	case p.ID != "" && at != nil && at.id == "" && !at.begins(p):
		return at, nil
	case p.ID != "" && p.Name != "":
		return a.unfinishedCall(p), nil
	}
	// There is no id, or the server makes one up for each piece.
	switch {
	case at == nil && p.Name == "":
		return a.underWay(p)
	case at == nil && p.Index == nil:
		at = a.current
	}
	switch {
	case at == nil:
		return a.unfinishedCall(p), nil
	case p.Name == "" && at.isOver(p):
		return nil, at
	case p.Name != "" && (at.begins(p) || p.Index == nil && at.name != "" && !strings.HasPrefix(p.Name, at.name)):
		return nil, nil
	}
	return at, nil
}

// continuedBy is find for a piece with the id of c.
func (c *call) continuedBy(p Piece) (next, of *call) {
	shifted := p.Index != nil && c.index != nil && *p.Index != *c.index
	switch {
	case p.Whole:
		return c, nil
	case c.renamedBy(p.Name), shifted && p.Name != "" && (blank(p.Arguments) || canBegin(p.Arguments) || c.extent.over):
		return nil, nil
	case !c.isOver(p):
		return c, nil
	case p.Name == "":
		return nil, c
	}
	return nil, nil
}

// callByID returns the last call with an id of p. One with the index of p comes first.
func (a *Assembler) callByID(p Piece) *call {
	same := func(c *call) bool { return c.identifiedBy(p.Key, p.ID) }
	if p.Index != nil {
		if c := a.last(func(c *call) bool { return same(c) && c.at(p.Index) }); c != nil {
			return c
		}
	}
	return a.last(same)
}

func (c *call) identifiedBy(key, id string) bool {
	return key != "" && c.key == key || id != "" && c.id == id
}

func (c *call) otherID(k *call) bool { return c.id != "" && k.id != "" && c.id != k.id }

func (c *call) at(index *int) bool { return c.index != nil && *c.index == *index }

func (a *Assembler) last(match func(*call) bool) *call {
	for i := len(a.calls) - 1; i >= 0; i-- {
		if match(a.calls[i]) {
			return a.calls[i]
		}
	}
	return nil
}

// unfinishedCall returns the call under way if a piece with a name can only continue it: no call
// begins with the middle of its arguments.
func (a *Assembler) unfinishedCall(p Piece) *call {
	c := a.current
	if c == nil || c.name != p.Name || blank(p.Arguments) || canBegin(p.Arguments) || c.blank() || c.extent.over {
		return nil
	}
	return c
}

// underWay returns the call that a piece without identity continues.
func (a *Assembler) underWay(p Piece) (c, of *call) {
	open, indexed := 0, false
	for _, k := range a.calls {
		indexed = indexed || k.index != nil
		if !k.extent.over && (!k.blank() || canBegin(p.Arguments)) {
			open++
			c = k
		}
	}
	switch {
	case open == 1:
		return c, nil
	case open > 1:
		a.ambiguous = a.ambiguous || indexed
		return a.current, nil
	case a.current != nil && a.current.isOver(p):
		return nil, a.current
	}
	return a.current, nil
}

// isOver reports whether the arguments of c were complete before those of p.
func (c *call) isOver(p Piece) bool {
	return c.extent.over && !blank(p.Arguments) && !c.isPlaceholder()
}

// renamedBy reports whether a name is that of another call, because c has arguments already.
func (c *call) renamedBy(name string) bool {
	return name != "" && c.name != "" && name != c.name && !c.blank()
}

// begins reports whether p, at the place of c, begins a call of its own.
func (c *call) begins(p Piece) bool {
	return p.Name != "" && c.name != "" && (c.renamedBy(p.Name) || c.extent.over && !blank(p.Arguments))
}

// conflicts reports whether the complete arguments of p differ from those of c.
func (c *call) conflicts(p Piece) bool {
	return c.renamedBy(p.Name) || c.extent.over && !blank(p.Arguments) && !same(c.arguments.String(), p.Arguments)
}

// addName takes a piece of the name. Some servers repeat the name, or all of it so
// far, with each piece.
func (c *call) addName(piece string) {
	if strings.HasPrefix(piece, c.name) {
		c.name = piece
	} else if c.name != piece {
		c.name += piece
	}
}

// Calls returns the calls in the order in which they began. Their ids may be missing and their
// arguments malformed, as the server sent them; a call without a name had none. If broken is
// true, a piece has no call that it certainly belongs to, so that arguments may be missing or
// in the wrong call, and none of the calls may be run.
func (a *Assembler) Calls() (calls []chat.ToolCall, broken bool) {
	var kept []*call
	for _, c := range a.calls {
		if k := original(kept, c); k != nil {
			k.absorb(c)
			c.into = k
		} else if c.name == "" && c.rest != nil && !c.otherID(c.rest.original()) { // no copy: the arguments are malformed
			c.into = c.rest.original()
			c.into.arguments.WriteString(c.arguments.String())
		} else {
			kept = append(kept, c)
		}
	}
	broken = a.ambiguous
	for _, c := range kept {
		c.collapse()
		broken = broken || c.name == ""
		calls = append(calls, chat.ToolCall{ID: cmp.Or(c.id, c.key), Name: c.name, Arguments: c.arguments.String(), Signature: c.signature})
	}
	return calls, broken
}

// original returns the call of which c is a copy, nil if it is none.
func original(kept []*call, c *call) *call {
	var equal *call
	for _, k := range kept {
		if c.name != "" && k.name != "" && c.name != k.name {
			continue
		}
		alike := same(k.arguments.String(), c.arguments.String())
		switch {
		case k.identifiedBy(c.key, c.id), c.name == "" && c.rest != nil && c.rest.original() == k && !c.otherID(k):
			if alike || c.blank() || k.blank() || !c.extent.over && strings.HasPrefix(k.arguments.String(), c.arguments.String()) {
				return k
			}
		case !alike || c.event == k.event:
		case c.again && !k.again:
			if !k.repeated && equal == nil {
				equal = k
			}
		case c.otherID(k):
		case c.index == nil && k.index == nil, c.index != nil && k.at(c.index):
			return k
		}
	}
	return equal
}

// original returns the call that c is a copy or a part of, else c.
func (c *call) original() *call {
	for c.into != nil {
		c = c.into
	}
	return c
}

// absorb takes what a copy has and c lacks.
func (c *call) absorb(copied *call) {
	c.id, c.name, c.signature = cmp.Or(c.id, copied.id), cmp.Or(c.name, copied.name), cmp.Or(c.signature, copied.signature)
	c.repeated = c.repeated || copied.again
	if c.blank() {
		c.replace(copied.arguments.String())
	}
}
