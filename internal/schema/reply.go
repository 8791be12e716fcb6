package schema

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"loki/internal/value"
)

const fence = "```"

// ParseReply reads a model's reply that is one JSON value of any type, perhaps inside
// a Markdown code fence without language or with the language json. White space
// around the value is ignored; anything else around it is an error.
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
		return value.Value{}, fmt.Errorf("the reply is not one JSON value: %w", err)
	}
	return v, nil
}
