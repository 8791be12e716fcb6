package openai

import (
	"cmp"
	"encoding/json"
	"strings"

	"loki/internal/chat"
	"loki/internal/provider/wire"
)

// wireCall is a tool call, or a piece of one, as servers send it.
type wireCall struct {
	ID       wire.String
	Index    *wire.Int
	Function *wireFunction
	Extra    *extraContent `json:"extra_content"` // Google
}

// wireCalls is a list of calls. Some gateways send the only one without a list around it.
type wireCalls []wireCall

// UnmarshalJSON implements [json.Unmarshaler]. What is neither a list nor an object is no
// call.
func (c *wireCalls) UnmarshalJSON(v []byte) error {
	*c = nil
	switch v[0] {
	case '[':
		return json.Unmarshal(v, (*[]wireCall)(c))
	case '{':
		*c = make(wireCalls, 1)
		return json.Unmarshal(v, &(*c)[0])
	}
	return nil
}

type wireFunction struct {
	Name      wire.String
	Arguments arguments
}

// callAssembler puts tool calls together from their pieces. Servers mark the pieces
// of one call by id, by index, by both, by neither, or send
// each call whole; ids come with the first piece or with all of them.
type callAssembler struct {
	calls   []*partialCall
	current *partialCall // the call that took the last piece
}

type partialCall struct {
	id        string
	index     wire.Int
	hasIndex  bool
	name      string
	arguments strings.Builder
	signature string
}

// add takes a piece of a call.
func (a *callAssembler) add(piece wireCall) {
	if piece.Function == nil {
		return
	}
	c := a.find(piece)
	if c == nil {
		c = a.start(piece)
	}
	if c.id == "" {
		c.id = string(piece.ID)
	}
	c.signature = cmp.Or(piece.Extra.signature(), c.signature)
	c.addName(string(piece.Function.Name))
	c.addArguments(string(piece.Function.Arguments))
	a.current = c
}

// addWhole takes a call that is complete.
func (a *callAssembler) addWhole(call wireCall) {
	if call.Function == nil {
		return
	}
	c := a.start(call)
	c.id, c.name, c.signature = string(call.ID), string(call.Function.Name), call.Extra.signature()
	c.arguments.WriteString(string(call.Function.Arguments))
}

func (a *callAssembler) start(piece wireCall) *partialCall {
	c := &partialCall{hasIndex: piece.Index != nil}
	if c.hasIndex {
		c.index = *piece.Index
	}
	a.calls = append(a.calls, c)
	return c
}

// find returns the call that a piece continues, nil for a new one.
func (a *callAssembler) find(piece wireCall) *partialCall {
	sameIndex := func(c *partialCall) bool {
		return piece.Index != nil && c.hasIndex && c.index == *piece.Index
	}
	if piece.ID != "" {
		id := string(piece.ID)
		if c := a.last(func(c *partialCall) bool { return c.id == id && (piece.Index == nil || sameIndex(c)) }); c != nil {
			if c.repeatedBy(piece) {
				return nil // an id that the server gives twice
			}
			return c
		}
		if c := a.last(func(c *partialCall) bool { return c.id == "" && sameIndex(c) && !c.repeatedBy(piece) }); c != nil {
			return c
		}
		if piece.Function.Name != "" {
			return nil
		}
		// Every call begins with its name: this server makes up an id per piece.
	}
	c := a.current
	if piece.Index != nil {
		c = a.last(sameIndex)
	}
	if c != nil && c.repeatedBy(piece) {
		return nil
	}
	return c
}

func (a *callAssembler) last(match func(*partialCall) bool) *partialCall {
	for i := len(a.calls) - 1; i >= 0; i-- {
		if match(a.calls[i]) {
			return a.calls[i]
		}
	}
	return nil
}

// repeatedBy reports whether piece starts a call of its own although nothing but
// its content says: c is whole, and piece has another name or arguments too.
func (c *partialCall) repeatedBy(piece wireCall) bool {
	name := string(piece.Function.Name)
	if name == "" || c.name == "" || !c.whole() {
		return false
	}
	return name != c.name || strings.TrimSpace(string(piece.Function.Arguments)) != ""
}

// whole reports whether the arguments are an object from its beginning to its end.
func (c *partialCall) whole() bool {
	s := strings.TrimRight(c.arguments.String(), space)
	return strings.HasSuffix(s, "}") && json.Valid([]byte(s))
}

// addArguments takes a piece of the arguments. An empty object at the beginning may
// be a placeholder for the object that follows.
func (c *partialCall) addArguments(piece string) {
	if c.arguments.String() == "{}" && strings.HasPrefix(piece, "{") {
		c.arguments.Reset()
	}
	c.arguments.WriteString(piece)
}

// addName takes a piece of the name. Some servers repeat the name, or all of it so
// far, with each piece.
func (c *partialCall) addName(piece string) {
	if strings.HasPrefix(piece, c.name) {
		c.name = piece
		return
	}
	c.name += piece
}

// list returns the calls as the server sent them, in the order in which they began.
func (a *callAssembler) list() []chat.ToolCall {
	calls := make([]chat.ToolCall, len(a.calls))
	for i, c := range a.calls {
		calls[i] = chat.ToolCall{ID: c.id, Name: c.name, Arguments: c.arguments.String(), Signature: c.signature}
	}
	return calls
}
