package record

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"loki/internal/base/value"
)

// A JSON text in a document is
//
//	tag, uvarint of the number of blobs,
//	for each: uvarint of the bytes of text before it, the hash,
//	the text
//
// where each blob replaces a string of the text, quotes included. A blob holds what
// the string means, so that one that was escaped in another way is the same blob, and
// the same as that string in the state. It comes back in the shortest escapes.

// EncodeJSON returns the JSON text as a document.
func (f Sealer) EncodeJSON(text []byte) Document {
	d := f.newDocument(64 + min(len(text), 4*blobFrom))
	d.json(text)
	return d.seal()
}

// Encode returns x, which can be marshalled, as a document.
func (f Sealer) Encode(x any) (Document, error) {
	text, err := json.Marshal(x)
	if err != nil {
		return Document{}, err
	}
	return f.EncodeJSON(text), nil
}

func (d *Document) json(text []byte) {
	d.Data = append(d.Data, tagJSON)
	type hole struct {
		start, end int
		content    []byte
	}
	var holes []hole
	for start, end := range longStrings(text) {
		if content, ok := unquote(text[start:end]); ok && len(content) >= blobFrom {
			holes = append(holes, hole{start, end, content})
		}
	}
	d.uvarint(uint64(len(holes)))
	pos := 0
	var around []byte // what is left in the document
	for _, h := range holes {
		part := d.hide.Bytes(text[pos:h.start])
		d.uvarint(uint64(len(part)))
		d.reference(h.content)
		around = append(around, part...)
		pos = h.end
	}
	d.Data = append(append(d.Data, around...), d.hide.Bytes(text[pos:])...)
}

// jsonAround appends the JSON text that consists of before, long as a string, and
// after.
func (d *Document) jsonAround(before []byte, long string, after []byte) {
	d.Data = append(d.Data, tagJSON)
	before, after = d.hide.Bytes(before), d.hide.Bytes(after)
	d.uvarint(1)
	d.uvarint(uint64(len(before)))
	d.reference([]byte(long))
	d.Data = append(append(d.Data, before...), after...)
}

// longStrings ranges over the places of the strings in a JSON text that may be long
// enough for a blob, quotes included.
func longStrings(text []byte) func(yield func(start, end int) bool) {
	return func(yield func(start, end int) bool) {
		for pos := 0; ; {
			start := bytes.IndexByte(text[pos:], '"')
			if start < 0 {
				return
			}
			start += pos
			end := start + 1
			for {
				i := bytes.IndexByte(text[end:], '"')
				if i < 0 {
					return // not JSON; it is kept as it is
				}
				end += i + 1
				escapes := 0
				for text[end-2-escapes] == '\\' {
					escapes++
				}
				if escapes%2 == 0 {
					break
				}
			}
			if end-start >= blobFrom && !yield(start, end) {
				return
			}
			pos = end
		}
	}
}

// unquote returns what a JSON string means, or false if it is none.
func unquote(s []byte) (content []byte, ok bool) {
	s = s[1 : len(s)-1]
	out := make([]byte, 0, len(s)) // no escape is shorter than what it means
	for {
		i := bytes.IndexByte(s, '\\')
		if i < 0 {
			return append(out, s...), true
		}
		if i+1 == len(s) {
			return nil, false
		}
		out = append(out, s[:i]...)
		c := s[i+1]
		s = s[i+2:]
		if c == 'u' {
			var ok bool
			if out, s, ok = appendEscape(out, s); !ok {
				return nil, false
			}
			continue
		}
		if c = meanings[c]; c == 0 {
			return nil, false
		}
		out = append(out, c)
	}
}

// meanings has the bytes that escapes of one character mean.
var meanings = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// appendEscape appends what the escape means of which s has the digits, and returns
// what is left of s. Half of a surrogate pair means U+FFFD.
func appendEscape(out, s []byte) (longer, rest []byte, ok bool) {
	r, ok := hex4(s)
	if !ok {
		return nil, nil, false
	}
	s = s[4:]
	if utf16.IsSurrogate(r) {
		high := r
		r = utf8.RuneError
		if len(s) >= 6 && s[0] == '\\' && s[1] == 'u' {
			if low, ok := hex4(s[2:]); ok {
				if r = utf16.DecodeRune(high, low); r != utf8.RuneError {
					s = s[6:]
				}
			}
		}
	}
	return utf8.AppendRune(out, r), s, true
}

func hex4(s []byte) (rune, bool) {
	if len(s) < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(s[:4]), 16, 16)
	return rune(n), err == nil
}

// JSON returns the JSON text of a document.
func (r Reader) JSON(data []byte) ([]byte, error) {
	content, err := unseal(data)
	if err != nil {
		return nil, err
	}
	d := decoder{data: content, blobs: r}
	text := d.json()
	return text, d.err
}

func (d *decoder) json() []byte {
	if d.byte() != tagJSON {
		d.fail()
		return nil
	}
	type hole struct {
		gap  int
		text string
	}
	holes := make([]hole, d.length(1+hashSize))
	size := 0
	for i := range holes {
		holes[i].gap = int(min(d.uvarint(), 1<<40))
		holes[i].text = d.reference()
		size += len(holes[i].text) + len(holes[i].text)/16
	}
	out := make([]byte, 0, len(d.data)+size)
	for _, h := range holes {
		out = append(out, d.part(h.gap)...)
		out = value.Of(h.text).AppendJSON(out)
	}
	return append(out, d.part(len(d.data))...)
}

// part returns the next n bytes of a text as they were before it was sealed.
func (d *decoder) part(n int) []byte {
	if d.blobs.Show == nil {
		return d.bytes(n)
	}
	return []byte(d.blobs.Show(string(d.bytes(n))))
}

// Decode sets x, a pointer, to what a document that Encode made holds.
func (r Reader) Decode(data []byte, x any) error {
	text, err := r.JSON(data)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, x); err != nil {
		return ErrDamaged
	}
	return nil
}
