package value

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// JSONPlace returns the line and the column, in characters, of what a JSON Pointer leads to
// in a JSON text, or of the nearest thing around it that is there. Both count from 1.
func JSONPlace(text []byte, pointer string) (line, column int) {
	d := json.NewDecoder(bytes.NewReader(text))
	offset := begin(text, 0)
	if pointer == "" {
		return lineAndColumn(text, offset)
	}
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		found, ok := enter(d, text, step)
		if !ok {
			break
		}
		offset = found
	}
	return lineAndColumn(text, offset)
}

// JSONErrorPlace returns where a text stops being JSON, and what is wrong there; err is nil
// if it is JSON.
func JSONErrorPlace(text []byte) (line, column int, err error) {
	// A decoder of tokens would say less about the place.
	var all json.RawMessage
	err = json.Unmarshal(text, &all)
	offset := len(text)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = max(int(syntax.Offset)-1, 0)
	}
	line, column = lineAndColumn(text, offset)
	return line, column, err
}

// enter reads up to the element of the next value that step names and returns where it
// begins.
func enter(d *json.Decoder, text []byte, step string) (offset int, ok bool) {
	open, err := d.Token()
	if err != nil || open != json.Delim('{') && open != json.Delim('[') {
		return 0, false
	}
	for i := 0; d.More(); i++ {
		name := strconv.Itoa(i)
		if open == json.Delim('{') {
			t, err := d.Token()
			if err != nil {
				return 0, false
			}
			name, _ = t.(string)
		}
		if offset = begin(text, int(d.InputOffset())); name == step {
			return offset, true
		}
		var skipped json.RawMessage
		if d.Decode(&skipped) != nil {
			return 0, false
		}
	}
	return 0, false
}

// begin returns where the value behind offset begins.
func begin(text []byte, offset int) int {
	for offset < len(text) && strings.IndexByte(" \t\r\n,:", text[offset]) >= 0 {
		offset++
	}
	return offset
}

func lineAndColumn(text []byte, offset int) (line, column int) {
	before := text[:min(offset, len(text))]
	line = bytes.Count(before, []byte("\n")) + 1
	return line, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
}
