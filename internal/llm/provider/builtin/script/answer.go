package script

import (
	"time"

	"loki/internal/base/value"
	"loki/internal/llm/chat"
)

// answer is the answer of a rule before it is filled in.
type answer struct {
	reasoning, text   template
	calls             []call
	chunk             int
	delay, chunkDelay time.Duration
	usage             Usage
	stop              chat.StopReason
	fail              *Failure
}

// call is a tool call before it is filled in.
type call struct {
	id, name  string
	arguments []jsonPiece
}

// jsonPiece is a part of the arguments of a call: JSON as it is, or a string value
// that is still to be filled in and quoted.
type jsonPiece struct {
	raw   string
	value template // nil if the piece is raw
}

// fill returns a for one query.
func (a answer) fill(s scope) Answer {
	out := Answer{
		Reasoning:  a.reasoning.fill(s),
		Text:       a.text.fill(s),
		Chunk:      a.chunk,
		Delay:      a.delay,
		ChunkDelay: a.chunkDelay,
		Usage:      a.usage,
		Stop:       a.stop,
		Fail:       a.fail,
	}
	for _, c := range a.calls {
		out.Calls = append(out.Calls, chat.ToolCall{ID: c.id, Name: c.name, Arguments: fillJSON(c.arguments, s)})
	}
	return out
}

func fillJSON(pieces []jsonPiece, s scope) string {
	var out []byte
	for _, p := range pieces {
		out = append(out, p.raw...)
		if p.value != nil {
			out = value.Of(p.value.fill(s)).AppendJSON(out)
		}
	}
	return string(out)
}
