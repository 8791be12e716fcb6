package openai

import (
	"encoding/json"

	"loki/internal/llm/provider/toolcall"
	"loki/internal/llm/provider/wire"
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
	Arguments wire.Arguments
}

// piece returns what c contains of a call. Calls of another type than function have no name here.
func (c wireCall) piece() toolcall.Piece {
	p := toolcall.Piece{ID: string(c.ID), Index: (*int)(c.Index), Signature: c.Extra.signature()}
	if c.Function != nil {
		p.Name, p.Arguments = string(c.Function.Name), string(c.Function.Arguments)
	}
	return p
}
