package normalize

import (
	"encoding/json"
	"strings"

	"loki/internal/base/value"
	"loki/internal/llm/chat"
)

// Arguments returns the arguments of a call of the past as a JSON object. Servers parse
// them, and one malformed call would make them reject the whole conversation.
//
// An object is returned as it is, without white space around it and halves of characters; nothing and null become
// {}. Anything else is wrapped as {"malformed_arguments": "..."}, so that the model still
// sees what it wrote.
func Arguments(s string) json.RawMessage {
	t := chat.CleanJSON(strings.TrimSpace(s))
	switch {
	case t == "" || t == "null":
		return json.RawMessage("{}")
	case t[0] == '{' && json.Valid([]byte(t)):
		return json.RawMessage(t)
	}
	wrapped, err := value.Marshal(map[string]string{"malformed_arguments": s})
	if err != nil {
		return json.RawMessage("{}") // cannot happen: a string can always be written
	}
	return wrapped
}
