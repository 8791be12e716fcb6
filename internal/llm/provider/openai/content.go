package openai

import (
	"bytes"
	"encoding/json"

	"loki/internal/llm/provider/wire"
)

// content is what a message says: a string, or a list of parts, among which may be
// the model's reasoning.
type content struct {
	text      string
	reasoning string
	refusal   string
}

func (c *content) UnmarshalJSON(v []byte) error {
	*c = content{}
	switch v[0] {
	case '"':
		c.text = wire.Unquote(v)
	case '[':
		var parts []json.RawMessage
		if json.Unmarshal(v, &parts) == nil {
			for _, p := range parts {
				c.add(p)
			}
		}
	case '{':
		c.add(v)
	}
	return nil
}

func (c *content) add(v json.RawMessage) {
	if v[0] == '"' {
		c.text += wire.Unquote(v)
		return
	}
	var p struct {
		Type      wire.String
		Text      wire.String
		Thinking  json.RawMessage // a string, or text parts
		Reasoning wire.String
		Refusal   wire.String
	}
	if wire.Tolerate(json.Unmarshal(v, &p)) != nil {
		return
	}
	switch p.Type {
	case "thinking", "reasoning":
		var inner content
		if len(p.Thinking) > 0 {
			inner.UnmarshalJSON(bytes.TrimSpace(p.Thinking))
		}
		c.reasoning += inner.text + string(p.Reasoning) + string(p.Text)
	case "refusal":
		c.refusal += string(p.Refusal)
	default:
		c.text += string(p.Text)
	}
}
