package bedrock

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
)

// rawDocument is JSON text as a document of the SDK. The SDK's own encoder would
// order the members of objects at random, and with every other order the prompt
// cache of the model misses.
type rawDocument struct {
	document.Interface // what makes it a document of the SDK; not used
	text               json.RawMessage
}

// raw returns text, which must be valid, as a document.
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
