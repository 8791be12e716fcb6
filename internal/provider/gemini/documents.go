package gemini

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strings"

	"loki/internal/provider/sse"
	"loki/internal/provider/wire"
)

// documents returns the JSON documents of a stream as they arrive: the data of
// server-sent events, or JSON values in a row, with or without an array around them,
// which is what the API sends without alt=sse. The first error ends the sequence.
func documents(body io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		r := bufio.NewReader(body)
		first, err := firstByte(r)
		switch {
		case err == io.EOF:
			return
		case err != nil:
			yield(nil, err)
		case first == '{' || first == '[':
			jsonDocuments(r, first == '[', yield)
		case first == '<':
			page, _ := io.ReadAll(io.LimitReader(r, maxShown)) // a web page: events would be looked for in vain
			yield(nil, wire.BadReply("the reply is not a stream", page))
		default:
			eventDocuments(r, yield)
		}
	}
}

// maxShown is how much of what is no reply is looked at.
const maxShown = 2 << 10

// firstByte returns the first byte of r that is neither white space nor part of a byte
// order mark, without taking it.
func firstByte(r *bufio.Reader) (byte, error) {
	for {
		b, err := r.ReadByte()
		if err != nil {
			return 0, err
		}
		if !strings.ContainsRune(" \t\r\n", rune(b)) && strings.IndexByte("\uFEFF", b) < 0 {
			return b, r.UnreadByte()
		}
	}
}

func eventDocuments(r io.Reader, yield func([]byte, error) bool) {
	for event, err := range sse.Decode(r, 0) {
		if errors.Is(err, sse.ErrTooLarge) {
			err = wire.BadReply(err.Error(), nil)
		}
		data := strings.TrimSpace(event.Data)
		if err == nil && (data == "" || data == "[DONE]") { // some gateways end like this
			continue
		}
		if !yield([]byte(data), err) || err != nil {
			return
		}
	}
}

// jsonDocuments yields JSON values in a row.
func jsonDocuments(r io.Reader, array bool, yield func([]byte, error) bool) {
	d := json.NewDecoder(r)
	if array {
		if _, err := d.Token(); err != nil {
			yield(nil, jsonError(err))
			return
		}
	}
	for {
		if array && !d.More() {
			if _, err := d.Token(); err != nil {
				yield(nil, jsonError(err))
			}
			return
		}
		var doc json.RawMessage
		err := d.Decode(&doc)
		if err == io.EOF && !array {
			return
		}
		if err != nil {
			yield(nil, jsonError(err))
			return
		}
		if !yield(bytes.TrimSpace(doc), nil) {
			return
		}
	}
}

// jsonError tells malformed JSON from a failure to read; an end within an array is one.
func jsonError(err error) error {
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return wire.BadReply("the reply is not JSON: "+err.Error(), nil)
	}
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
