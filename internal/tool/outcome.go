package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"loki/internal/base/process/sandbox"
	"loki/internal/base/text"
	"loki/internal/llm/chat"
)

// outcome is the text of a call for the model, as it is recorded.
type outcome struct {
	Text   string      `json:"text"`
	Failed bool        `json:"failed,omitempty"`
	Images []chat.Part `json:"images,omitempty"`
	Usage  chat.Usage  `json:"usage,omitzero"` // of the models that the tool asked

	Refused []sandbox.Refusal `json:"refused,omitempty"` // what the sandbox stopped
	Notes   []string          `json:"notes,omitempty"`   // see [Made]
}

// message is the JSON form of an outcome.
type message struct {
	Error  string `json:"tool_call_error,omitempty"`
	Output any    `json:"output,omitempty"`
	Stderr string `json:"stderr,omitempty"`

	Sandbox string `json:"sandbox,omitempty"` // what the sandbox stopped, and how to continue
	Notice  string `json:"notice,omitempty"`  // what the user needs to know, too, such as settings that changed
}

// failure returns the outcome of a call that was not made or whose effect is
// unknown.
func failure(format string, args ...any) outcome {
	return outcome{Text: marshal(message{Error: fmt.Sprintf(format, args...)}), Failed: true}
}

// failureOutcome returns the outcome of a call that returned r and err. The texts share limit
// bytes: the error gets at most a quarter, and stderr at most another. held is what the program of the call was allowed,
// and most the highest level that any can have.
func failureOutcome(r Result, err error, held sandbox.Declaration, most sandbox.Level, limit int) outcome {
	stopped, noticed := sandbox.Apart(r.Refused)
	m := message{Sandbox: stopNote(held, most, stopped), Notice: noticeOf(held, noticed), Error: cut(err.Error(), limit/4), Stderr: cut(strings.TrimSpace(r.Stderr), limit/4)}
	if out := cut(r.Output, limit-len(m.Error)-len(m.Stderr)); out != "" {
		m.Output = out
	}
	return outcome{Text: marshal(m), Failed: true, Refused: stopped}
}

// successOutcome returns the outcome of a call that returned r: at most limit bytes, plus
// notes on what was left out.
func successOutcome(r Result, held sandbox.Declaration, most sandbox.Level, limit int) outcome {
	stopped, noticed := sandbox.Apart(r.Refused)
	m := message{Sandbox: stopNote(held, most, stopped), Notice: noticeOf(held, noticed), Stderr: cut(strings.TrimSpace(r.Stderr), limit/4)}
	out := cut(r.Output, limit-len(m.Stderr))
	doc, isJSON := compact(out)
	var printed message
	_ = json.Unmarshal(doc, &printed) // what a program prints is no notice of this one
	if printed.Notice == "" && m.Stderr == "" && m.Sandbox == "" && m.Notice == "" {
		switch {
		case out == "" || string(doc) == "null":
			return outcome{Images: r.Pictures}
		case isJSON:
			return outcome{Text: string(doc), Images: r.Pictures}
		}
	}
	m.Output = out // also if it is empty: a program that printed nothing has not failed
	if isJSON {
		m.Output = doc
	}
	return outcome{Text: marshal(m), Refused: stopped, Images: r.Pictures}
}

// plainOutcome returns the outcome of a call that returned r and that no model reads.
func plainOutcome(r Result, held sandbox.Declaration, most sandbox.Level, limit int) outcome {
	stopped, noticed := sandbox.Apart(r.Refused)
	out := outcome{Text: cut(r.Output, limit), Refused: stopped}
	for _, note := range []string{stopNote(held, most, stopped), noticeOf(held, noticed)} {
		if note != "" {
			out.Notes = append(out.Notes, note)
		}
	}
	return out
}

// compact returns text without needless blanks if it is one JSON value.
func compact(text string) (json.RawMessage, bool) {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		return nil, false
	}
	return b.Bytes(), true
}

// cut returns s as valid UTF-8. If s is longer than limit bytes, only its two ends
// remain, with a note between them that is not counted.
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
