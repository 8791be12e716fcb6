package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
)

// Limits of the pictures of one result. Providers take 5 MB for each.
const (
	maxPicture  = 5 << 20 // in bytes
	maxPictures = 20
)

// maxUnknown is how much of content of an unknown kind is shown, in bytes.
const maxUnknown = 4 << 10

// toolResult is the result of a call of a tool as the server sent it.
type toolResult struct {
	Content    json.RawMessage `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool            `json:"isError"`
	Type       string          `json:"resultType"`
	Task       string          `json:"taskId"` // of a call that continues as a task, if Type says so
}

// block is a piece of content.
type block struct {
	Type        string          `json:"type"`
	Text        *string         `json:"text"`
	Data        string          `json:"data"` // in base64
	MIMEType    string          `json:"mimeType"`
	URI         string          `json:"uri"`
	Description string          `json:"description"`
	Resource    json.RawMessage `json:"resource"`
	Blob        *string         `json:"blob"` // in base64
}

// contents is what a server returned, for a model.
type contents struct {
	texts    []string // one for each block
	pictures []chat.Part
	keep     func(kind string, data []byte) (file string, err error) // see [Options]; may be nil
}

func (c *contents) text() string { return strings.Join(c.texts, "\n") }

func (c *contents) note(format string, args ...any) {
	c.texts = append(c.texts, strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// add adds a list of blocks. A single block, or a text, is taken for a list of one.
func (c *contents) add(raw json.RawMessage) {
	raw = bytes.TrimSpace(raw)
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}
	for _, item := range list {
		c.addBlock(item)
	}
}

func (c *contents) addBlock(raw json.RawMessage) {
	var b block
	var plain string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return
	case json.Unmarshal(raw, &plain) == nil:
		c.texts = append(c.texts, plain)
		return
	case json.Unmarshal(raw, &b) != nil:
		c.note("[content that is not understood: %s]", text.Cut(string(raw), maxUnknown))
		return
	}
	switch {
	case b.Type == "text" && b.Text != nil:
		c.texts = append(c.texts, *b.Text)
	case b.Type == "image" || b.Type == "audio":
		c.addBytes(b.Type, b.MIMEType, b.Data)
	case b.Type == "resource_link":
		c.note("[resource %s] %s", b.URI, b.Description)
	case b.Type == "resource":
		c.addResource(b.Resource)
	default:
		c.note("[content of the unknown kind %q: %s]", b.Type, text.Cut(string(raw), maxUnknown))
	}
}

// addResource adds a resource of which there is a text or bytes.
func (c *contents) addResource(raw json.RawMessage) {
	var b block
	switch {
	case json.Unmarshal(raw, &b) != nil:
	case b.Blob != nil:
		c.addBytes("resource "+b.URI+",", b.MIMEType, *b.Blob)
	case b.Text != nil:
		c.texts = append(c.texts, *b.Text)
	}
}

// addBytes adds a picture, and a note of other bytes. The bytes say what it is, not the server.
func (c *contents) addBytes(kind, declared, encoded string) {
	if _, data, ok := strings.Cut(encoded, ";base64,"); ok {
		encoded = data
	}
	encoded = strings.TrimRight(strings.Map(func(r rune) rune {
		switch r {
		case '\n', '\r', ' ':
			return -1
		case '-':
			return '+'
		case '_':
			return '/'
		}
		return r
	}, encoded), "=")
	data, err := base64.RawStdEncoding.DecodeString(encoded)
	found := http.DetectContentType(data)
	switch found {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
	default:
		found = ""
	}
	size := fmt.Sprintf("%s %s, %d bytes", kind, text.Name(declared), len(data))
	switch {
	case err != nil:
		c.note("[%s %s, not shown: its data is not base64]", kind, text.Name(declared))
	case found == "":
		c.note("[%s, %s]", size, c.fileNote(declared, data, ""))
	case len(data) > maxPicture:
		c.note("[%s, %s]", size, c.fileNote(found, data, fmt.Sprintf(": a picture has at most %d MiB", maxPicture>>20)))
	case len(c.pictures) == maxPictures:
		c.note("[%s, %s]", size, c.fileNote(found, data, fmt.Sprintf(": a result has at most %d pictures", maxPictures)))
	default:
		c.pictures = append(c.pictures, chat.Part{Type: chat.ImagePart, URL: "data:" + found + ";base64," + base64.StdEncoding.EncodeToString(data)})
		c.note("[picture %d: %s, %d bytes]", len(c.pictures), found, len(data))
	}
}

// fileNote puts bytes that are not shown into a file, and says where they are.
func (c *contents) fileNote(kind string, data []byte, why string) string {
	if c.keep != nil && len(data) > 0 {
		if file, err := c.keep(kind, data); err == nil {
			return "in the file " + file
		}
	}
	return "not shown" + why
}

// contents returns the result for a model: the texts, one after the other, and a line for each other content. A
// structured result is appended, unless it says the same as the texts; then it comes once.
func (r toolResult) contents(keep func(kind string, data []byte) (file string, err error)) contents {
	c := contents{keep: keep}
	c.add(r.Content)
	var compact bytes.Buffer
	if string(r.Structured) == "null" || json.Compact(&compact, r.Structured) != nil {
		return c
	}
	structured := compact.String()
	v, err := value.ParseJSON(compact.Bytes())
	if err != nil {
		return c
	}
	wrapped := v.AsObject().Len() == 1 // such as {"result": "..."}
	switch texts := c.texts; {
	case len(texts) == 0:
		c.texts = []string{structured}
	case len(c.pictures) == 0 && sameJSON(c.text(), v):
	case holds(v, c.text()) || !slices.ContainsFunc(texts, func(s string) bool { return !holds(v, s) }):
		if !wrapped || len(texts) > 1 {
			c.texts = []string{structured}
		}
	default:
		both, err := value.Marshal(struct {
			Text       string          `json:"text"`
			Structured json.RawMessage `json:"structuredContent"`
		}{c.text(), json.RawMessage(structured)})
		if err == nil {
			c.texts = []string{string(both)}
		}
	}
	return c
}

// sameJSON reports whether text is the value v.
func sameJSON(s string, v value.Value) bool {
	read, err := value.ParseJSON([]byte(s))
	return err == nil && value.Equal(read, v)
}

// holds reports whether v has a text, or what it is as JSON, as one of its members or elements at any depth.
func holds(v value.Value, s string) bool {
	if own, ok := v.AsString(); ok {
		return strings.TrimSpace(own) == strings.TrimSpace(s)
	}
	if k := v.Kind(); (k == value.ObjectKind || k == value.ListKind) && sameJSON(s, v) {
		return true
	}
	if list, ok := v.AsList(); ok {
		for _, item := range list.All() {
			if holds(item, s) {
				return true
			}
		}
	}
	for _, m := range v.AsObject().All() {
		if holds(m, s) {
			return true
		}
	}
	return false
}
