package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
)

// ReadPatch reads a patch as people write it. Mistakes are reported to the document of n.
func ReadPatch(n *yamldoc.Node) *Patch {
	m := n.Map()
	patch := &Patch{}
	m.Str("url", &patch.URL)
	if body := m.Map("body"); body != nil {
		v, _ := body.Node().Value()
		patch.Body = v.AsObject()
	}
	for header := range m.Map("headers").All() {
		h := Header{Name: header.Key}
		if header.Node.Kind() != yamldoc.Null {
			text, _ := header.Node.Text()
			h.Value = &text
		}
		patch.Headers = append(patch.Headers, h)
	}
	m.Done()
	return patch
}

// patchJSON is the JSON form of a [Patch]. Headers are an object of strings and nulls; a
// value keeps the order of its members.
type patchJSON struct {
	URL     string      `json:"url,omitempty"`
	Body    value.Value `json:"body,omitzero"`
	Headers value.Value `json:"headers,omitzero"`
}

// MarshalJSON implements [json.Marshaler].
func (p *Patch) MarshalJSON() ([]byte, error) {
	written := patchJSON{URL: p.URL}
	if p.Body != nil {
		written.Body = p.Body.Value()
	}
	var headers []value.Member
	for _, h := range p.Headers {
		m := value.Member{Name: h.Name}
		if h.Value != nil {
			m.Value = value.Of(*h.Value)
		}
		headers = append(headers, m)
	}
	if headers != nil {
		written.Headers = value.ObjectOf(headers...).Value()
	}
	return json.Marshal(written)
}

// UnmarshalJSON implements [json.Unmarshaler]. Unknown members are an error.
func (p *Patch) UnmarshalJSON(text []byte) error {
	var read patchJSON
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&read); err != nil {
		return err
	}
	for _, v := range []value.Value{read.Body, read.Headers} {
		if !v.IsNull() && v.AsObject() == nil {
			return errors.New("a patch with a body or headers that are not an object")
		}
	}
	*p = Patch{URL: read.URL, Body: read.Body.AsObject()}
	for name, v := range read.Headers.AsObject().All() {
		h := Header{Name: name}
		if text, ok := v.AsString(); ok {
			h.Value = &text
		} else if !v.IsNull() {
			return fmt.Errorf("a patch with header %q, which is neither a string nor null", name)
		}
		p.Headers = append(p.Headers, h)
	}
	return nil
}

// String returns what p is, and nothing of what it holds: secrets may be part of it.
func (p Patch) String() string { return "a patch of requests" }

// GoString is [Patch.String].
func (p Patch) GoString() string { return p.String() }
