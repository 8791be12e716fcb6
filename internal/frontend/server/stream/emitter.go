package stream

import (
	"context"
	"strconv"
	"sync"

	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
)

// Emitter writes the events of one answer to a stream, each as a frame with a number from 1. Those of the
// answer itself have the names and members of the REST API. All others, such as those of nodes and child
// agents, are as [event.Event] is in JSON, under the names they have there.
//
//	assistant_delta  {text}
//	reasoning_delta  {text}
//	tool_call        {id, name, args}
//	tool_result      {id, name, result, is_error}
//	usage            {model, stop, usage}   of one call of a model
//
// The first and the last frame are the caller's, see [Emitter.Send]: started and finished of the answer
// are not written.
type Emitter struct {
	w *Writer

	mu   sync.Mutex // guards what follows
	last int        // number of the last frame
}

// NewEmitter returns an Emitter that writes to w.
func NewEmitter(w *Writer) *Emitter { return &Emitter{w: w} }

// Emit writes an event.
func (e *Emitter) Emit(ctx context.Context, ev event.Event) error {
	name, data := frame(ev)
	if name == "" {
		return nil
	}
	return e.Send(ctx, name, data)
}

// Send writes a frame. data becomes JSON.
func (e *Emitter) Send(ctx context.Context, name string, data any) error {
	text, err := value.Marshal(data)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last++
	return e.w.Send(ctx, Event{ID: strconv.Itoa(e.last), Name: name, Data: text})
}

// piece is the data of a delta.
type piece struct {
	Text string `json:"text"`
}

// call is the data of a call of a tool.
type call struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Args string `json:"args"`
}

// result is the data of the result of a tool.
type result struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Result  string `json:"result"`
	IsError bool   `json:"is_error"`
}

// used is the data of what a call of a model used.
type used struct {
	Model string     `json:"model"`
	Stop  string     `json:"stop"`
	Usage chat.Usage `json:"usage"`
}

// frame returns the name and the data of an event, "" if it is not written.
func frame(ev event.Event) (name string, data any) {
	if ev.Depth > 0 || ev.Node != "" {
		return ev.Body.Type(), ev
	}
	switch b := ev.Body.(type) {
	case event.Started, event.Finished:
		return "", nil
	case event.Delta:
		return "assistant_delta", piece(b)
	case event.Reasoning:
		return "reasoning_delta", piece(b)
	case event.ToolCall:
		return "tool_call", call{b.ID, b.Name, b.Arguments}
	case event.ToolResult:
		return "tool_result", result{b.ID, b.Name, b.Text, b.Failed}
	case event.Reply:

		return "usage", used{b.Model, string(b.Stop), b.Usage}
	}
	return ev.Body.Type(), ev
}
