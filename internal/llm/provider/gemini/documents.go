package gemini

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"

	"loki/internal/llm/provider/wire"
)

// documents returns JSON values in a row as they arrive, with or without an array around
// them. The first error ends the sequence.
func documents(body io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var first [1]byte
		if _, err := io.ReadFull(body, first[:]); err == io.EOF {
			return
		} else if err != nil {
			yield(nil, err)
			return
		}
		array := first[0] == '['
		d := json.NewDecoder(io.MultiReader(bytes.NewReader(first[:]), body))
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
}

// jsonError distinguishes malformed JSON from a failure to read, such as an end within an
// array.
func jsonError(err error) error {
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return wire.BadReply("the reply is not JSON: "+err.Error(), nil)
	}
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
