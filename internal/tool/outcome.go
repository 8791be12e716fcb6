package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"loki/internal/text"
)

// outcome is what the model reads of a call, as it is recorded.
type outcome struct {
	Text   string `json:"text"`
	Failed bool   `json:"failed,omitempty"`
}

// message is the JSON form of an outcome.
type message struct {
	Error  string `json:"tool_call_error,omitempty"`
	Output any    `json:"output,omitempty"`
	Stderr string `json:"stderr,omitempty"`
}

// failure is the outcome of a call that was not made, or of which nothing is known.
func failure(format string, args ...any) outcome {
	return outcome{Text: marshal(message{Error: fmt.Sprintf(format, args...)}), Failed: true}
}

// failed is the outcome of a call that ended with err after it gave r. The texts share
// limit bytes: a quarter is the most that the error gets, and another that stderr gets.
func failed(r Result, err error, limit int) outcome {
	m := message{Error: cut(err.Error(), limit/4), Stderr: cut(strings.TrimSpace(r.Stderr), limit/4)}
	if out := cut(r.Output, limit-len(m.Error)-len(m.Stderr)); out != "" {
		m.Output = out
	}
	return outcome{Text: marshal(m), Failed: true}
}

// succeeded is the outcome of a call that gave r, of at most limit bytes and notes on
// what was left out.
func succeeded(r Result, limit int) outcome {
	m := message{Stderr: cut(strings.TrimSpace(r.Stderr), limit/4)}
	out := cut(r.Output, limit-len(m.Stderr))
	doc, isJSON := compact(out)
	if m.Stderr == "" {
		switch {
		case out == "" || string(doc) == "null":
			return outcome{}
		case isJSON:
			return outcome{Text: string(doc)}
		}
	}
	if isJSON {
		m.Output = doc
	} else if out != "" {
		m.Output = out
	}
	return outcome{Text: marshal(m)}
}

// compact returns the JSON value that text is without needless blanks.
func compact(text string) (json.RawMessage, bool) {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		return nil, false
	}
	return b.Bytes(), true
}

// cut returns s as valid UTF-8, and if it is longer than limit bytes only its two ends,
// with a note between them that comes on top.
func cut(s string, limit int) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	limit = max(limit, 0)
	if len(s) <= limit {
		return s
	}
	head, tail := text.Ends(s, limit)
	return fmt.Sprintf("%s\n[%d of %d bytes left out here]\n%s", head, len(s)-len(head)-len(tail), len(s), tail)
}
