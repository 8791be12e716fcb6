package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"loki/internal/base/value"
)

const fence = "```"

// ParseReply reads a model's reply that is one JSON value of any type, perhaps inside
// a Markdown code fence without language or with the language json. White space
// around the value is ignored. Other text may hold one object, which is returned; a text
// with none or several is an error.
func ParseReply(text string) (value.Value, error) {
	text = strings.TrimSpace(text)
	if rest, ok := strings.CutPrefix(text, fence+"json"); ok {
		text = strings.TrimLeftFunc(rest, unicode.IsSpace)
	} else if rest, ok := strings.CutPrefix(text, fence); ok {
		text = strings.TrimLeftFunc(rest, unicode.IsSpace)
	}
	if rest, ok := strings.CutSuffix(text, fence); ok {
		text = strings.TrimRightFunc(rest, unicode.IsSpace)
	}
	if text == "" {
		return value.Value{}, errors.New("the reply is empty")
	}
	v, err := value.ParseJSON([]byte(text))
	if err != nil {
		if object, ok := onlyObject(text); ok {
			return object, nil
		}
		return value.Value{}, fmt.Errorf("the reply is not one JSON value: %w", err)
	}
	return v, nil
}

// maxBraces bounds how many places of a text are tried that may begin an object.
const maxBraces = 1000

// Read reads a reply as [ParseReply] does, and returns its value and what violates s.
// Members that are null although they may only be absent are removed from the value.
func (s *Schema) Read(reply string) (value.Value, []Violation, error) {
	v, err := ParseReply(reply)
	if err != nil {
		return value.Value{}, nil, err
	}
	violations := s.Validate(v)
	if len(violations) == 0 {
		return v, nil, nil
	}
	lean := WithoutNulls(s.source, v)
	if better := s.Validate(lean); len(better) < len(violations) {
		return lean, better, nil
	}
	return v, violations, nil
}

// onlyObject returns the object in a text that holds exactly one. Braces whose content does
// not begin like JSON count as text.
func onlyObject(text string) (object value.Value, ok bool) {
	for range maxBraces {
		start := strings.IndexByte(text, '{')
		if start < 0 {
			break
		}
		text = text[start:]
		d := json.NewDecoder(strings.NewReader(text))
		var raw json.RawMessage
		if d.Decode(&raw) != nil {
			if text = text[1:]; strings.HasPrefix(strings.TrimSpace(text), `"`) {
				return value.Value{}, false // a broken object: a valid one within it is only a part
			}
			continue
		}
		v, err := value.ParseJSON(raw)
		if err != nil || ok {
			return value.Value{}, false
		}
		object, ok = v, true
		text = text[d.InputOffset():]
	}
	return object, ok
}
