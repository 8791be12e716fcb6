package bedrock

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"

	"loki/internal/provider/wire"
)

// rawDocument is JSON text as a document of the SDK. The SDK's own encoder would
// order the members of objects at random, and with every other order the prompt
// cache of the model misses.
type rawDocument struct {
	document.Interface // what makes it a document of the SDK; not used
	text               json.RawMessage
}

// raw returns text, which has to be valid, as a document.
func raw(text json.RawMessage) rawDocument {
	return rawDocument{Interface: document.NewLazyDocument(nil), text: text}
}

// MarshalSmithyDocument returns the text.
func (d rawDocument) MarshalSmithyDocument() ([]byte, error) {
	var b bytes.Buffer
	err := json.Compact(&b, d.text)
	return b.Bytes(), err
}

// UnmarshalSmithyDocument decodes the text into v.
func (d rawDocument) UnmarshalSmithyDocument(v any) error { return json.Unmarshal(d.text, v) }

// isObject reports whether s is a JSON object and nothing else.
func isObject(s string) bool {
	return strings.HasPrefix(strings.TrimLeft(s, " \t\r\n"), "{") && json.Valid([]byte(s))
}

// objectArguments returns the arguments of a call as a JSON object. One malformed
// call of the past must not get the whole conversation rejected; the model still
// sees what it wrote.
func objectArguments(s string) json.RawMessage {
	switch t := strings.TrimSpace(s); {
	case t == "" || t == "null":
		return json.RawMessage("{}")
	case isObject(t):
		return json.RawMessage(t)
	}
	wrapped, err := wire.Encode(map[string]string{"malformed_arguments": s})
	if err != nil {
		return json.RawMessage("{}")
	}
	return wrapped
}

// objectSchema returns schema as the schema of an object, which Converse requires.
func objectSchema(schema json.RawMessage) json.RawMessage {
	members := make(map[string]json.RawMessage)
	if len(bytes.TrimSpace(schema)) > 0 && json.Unmarshal(schema, &members) != nil {
		members = nil
	}
	if members == nil { // null, or no object
		members = make(map[string]json.RawMessage)
	}
	if members["type"] != nil && members["properties"] != nil {
		return schema
	}
	if members["type"] == nil {
		members["type"] = json.RawMessage(`"object"`)
	}
	if members["properties"] == nil {
		members["properties"] = json.RawMessage("{}")
	}
	out, err := wire.Encode(members)
	if err != nil {
		return schema
	}
	return out
}
