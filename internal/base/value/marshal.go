package value

import (
	"bytes"
	"encoding/json"
)

// AppendJSON appends x to dst as compact JSON. Unlike [json.Marshal], which otherwise is
// the same, it leaves <, > and & as they are: the texts of models are full of them, and
// escapes cost tokens.
func AppendJSON(dst []byte, x any) ([]byte, error) {
	b := bytes.NewBuffer(dst)
	if err := encoder(b).Encode(x); err != nil {
		return dst, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Marshal returns x as [AppendJSON] appends it.
func Marshal(x any) ([]byte, error) { return AppendJSON(nil, x) }

// MarshalLines returns x as [Marshal], but indented for people, and ended by a line feed.
func MarshalLines(x any) ([]byte, error) {
	var b bytes.Buffer
	e := encoder(&b)
	e.SetIndent("", "  ")
	err := e.Encode(x)
	return b.Bytes(), err
}

func encoder(b *bytes.Buffer) *json.Encoder {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	return e
}
