package providertest

import (
	"encoding/json"
	"iter"
	"strings"
	"testing"

	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
)

// Reply is a reply put together from its chunks.
type Reply struct {
	Text      string
	Reasoning string
	Signature string
	ToolCalls []chat.ToolCall
	Notes     []string
	Stop      chat.StopReason // empty if the reply failed
	Usage     chat.Usage
	Chunks    int   // how many chunks came, the end included
	Err       error // what the sequence failed with, nil if it was complete

	parts []chat.Part
}

// Message returns the reply as the message of the conversation that it is. A part
// ends where text and reasoning change, and with a signature.
func (r Reply) Message() chat.Message {
	return chat.Message{Role: chat.Assistant, Parts: r.parts, ToolCalls: r.ToolCalls}
}

// add puts a piece of text or reasoning to the parts.
func (r *Reply) add(c provider.Chunk) {
	typ := chat.TextPart
	if c.Kind == provider.Reasoning {
		typ = chat.ReasoningPart
	}
	if n := len(r.parts); n == 0 || r.parts[n-1].Type != typ || r.parts[n-1].Signature != "" {
		r.parts = append(r.parts, chat.Part{Type: typ})
	}
	last := &r.parts[len(r.parts)-1]
	last.Text += c.Text
	last.Signature = c.Signature
}

// Collect ranges over seq to its end and reports to t whatever breaks the rules of
// a reply: chunks without a kind or without content, tool calls without id, name
// or arguments, ids given twice, no end or two ends, a negative usage, anything
// after an end or an error.
func Collect(t testing.TB, seq iter.Seq2[provider.Chunk, error]) Reply {
	t.Helper()
	var r Reply
	var text, reasoning, signature strings.Builder
	ids := make(map[string]bool)
	over := ""
	for c, err := range seq {
		if over != "" {
			t.Errorf("the sequence goes on after %s: chunk %+v, error %v", over, c, err)
		}
		if err != nil {
			if c != (provider.Chunk{}) {
				t.Errorf("chunk %+v comes along with the error %v", c, err)
			}
			r.Err, over = err, "an error"
			continue
		}
		r.Chunks++
		switch c.Kind {
		case provider.Text:
			if c.Text == "" {
				t.Errorf("chunk %d: text without a character", r.Chunks)
			}
			text.WriteString(c.Text)
			r.add(c)
		case provider.Reasoning:
			if c.Text == "" && c.Signature == "" {
				t.Errorf("chunk %d: reasoning with neither text nor signature", r.Chunks)
			}
			reasoning.WriteString(c.Text)
			signature.WriteString(c.Signature)
			r.add(c)
		case provider.ToolCall:
			checkCall(t, c.ToolCall, ids)
			r.ToolCalls = append(r.ToolCalls, c.ToolCall)
		case provider.Note:
			if c.Text == "" {
				t.Errorf("chunk %d: a note without a character", r.Chunks)
			}
			r.Notes = append(r.Notes, c.Text)
		case provider.End:
			checkEnd(t, c)
			r.Stop, r.Usage, over = c.Stop, c.Usage, "its end"
		default:
			t.Errorf("chunk %d has the unknown kind %d", r.Chunks, c.Kind)
		}
	}
	if over == "" {
		t.Errorf("the sequence stops with neither an end nor an error")
	}
	r.Text, r.Reasoning, r.Signature = text.String(), reasoning.String(), signature.String()
	return r
}

func checkCall(t testing.TB, c chat.ToolCall, ids map[string]bool) {
	t.Helper()
	if c.ID == "" || c.Name == "" || c.Arguments == "" {
		t.Errorf("tool call %+v: id, name and arguments have to be set", c)
	}
	if ids[c.ID] {
		t.Errorf("tool call %+v: the id is taken by an earlier call", c)
	}
	ids[c.ID] = true
}

func checkEnd(t testing.TB, c provider.Chunk) {
	t.Helper()
	switch c.Stop {
	case chat.StopEnd, chat.StopLength, chat.StopToolCalls, chat.StopFiltered, chat.StopOther:
	default:
		t.Errorf("the end has the unknown stop reason %q", c.Stop)
	}
	u := c.Usage
	if u.InputTokens < 0 || u.OutputTokens < 0 || u.CachedInputTokens < 0 || u.ReasoningTokens < 0 {
		t.Errorf("usage %+v: a count is negative", u)
	}
}

// Object returns the JSON object that v is written as, such as the body of a patch. It
// panics if v is none.
func Object(v any) *value.Object {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	parsed, err := value.ParseJSON(data)
	if err != nil {
		panic(err)
	}
	return parsed.AsObject()
}
