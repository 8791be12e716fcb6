package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
)

// The loose types read a JSON value of whatever form and never fail: a server that
// writes a number for a string, or null for a number, is understood.

// looseString is a string; a number stands for its digits, anything else for "".
type looseString string

func (s *looseString) UnmarshalJSON(v []byte) error {
	*s = ""
	switch c := v[0]; {
	case c == '"':
		*s = looseString(unquote(v))
	case c == '-' || c >= '0' && c <= '9':
		*s = looseString(v)
	}
	return nil
}

// looseText is a text; null stands for "" and anything else for its JSON.
type looseText string

func (s *looseText) UnmarshalJSON(v []byte) error {
	switch {
	case v[0] == '"':
		*s = looseText(unquote(v))
	case string(v) == "null":
		*s = ""
	default:
		*s = looseText(v)
	}
	return nil
}

// looseInt is a whole number, also in quotes or with a fraction; anything else is
// 0, and so is what does not fit.
type looseInt int

func (n *looseInt) UnmarshalJSON(v []byte) error {
	*n = 0
	f, err := strconv.ParseFloat(strings.Trim(string(v), `"`), 64)
	if err == nil && math.Abs(f) < 1<<53 {
		*n = looseInt(f)
	}
	return nil
}

func unquote(v []byte) string {
	var s string
	if json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

// tolerant drops the error for values of another type than expected: what did fit
// has been read all the same.
func tolerant(err error) error {
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

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
		c.text = unquote(v)
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
		c.text += unquote(v)
		return
	}
	var p struct {
		Type      looseString
		Text      looseString
		Thinking  json.RawMessage // a string, or text parts
		Reasoning looseString
		Refusal   looseString
	}
	if tolerant(json.Unmarshal(v, &p)) != nil {
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

// arguments are the arguments of a tool call: JSON in a string, or the bare object.
type arguments string

func (a *arguments) UnmarshalJSON(v []byte) error {
	*a = ""
	switch v[0] {
	case '"':
		*a = arguments(unquote(v))
	case '{', '[':
		*a = arguments(v)
	}
	return nil
}
