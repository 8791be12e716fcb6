package tool

import (
	"context"
	"encoding/json"
	"strings"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
)

// Bound is a tool as a program calls it that knows its name. A tool of an MCP server may be called through another function.
type Bound struct {
	Tool     Tool            // what is called
	Name     string          // of the tool itself, for messages
	Takes    json.RawMessage // JSON Schema of its arguments; nil if it is not known
	Of, Sent string          // members with the tool's name and its arguments in those of Tool; empty if that takes the arguments itself
}

// Arguments returns the arguments of b.Tool for those of the tool that it presents.
func (b Bound) Arguments(args json.RawMessage) (json.RawMessage, error) {
	if b.Of == "" {
		return args, nil
	}
	return json.Marshal(map[string]any{b.Of: b.Name, b.Sent: args})
}

// Fit returns the arguments in the types that the tool declares, as [Fit] does. The error says what else is wrong with them.
// If it is not known what the tool takes, nothing is.
func (b Bound) Fit(args json.RawMessage) (json.RawMessage, error) {
	args, err := Fit(b.Takes, args, FitOptions{})
	if err == nil {
		err = checkArguments(chat.Tool{Name: b.Name, Parameters: b.Takes}, args)
	}
	return args, err
}

// Made is the result of a call that [Box.Make] made.
type Made struct {
	Output string   // as the tool returned it, cut to the limit of its output
	Notes  []string // what hooks and the sandbox say about it, for the user
}

// CallError is the failure of a call that [Box.Make] made or refused. Its code is [fault.Tool].
type CallError struct {
	Text string
}

func (e *CallError) Error() string { return e.Text }

// FaultCode implements the interface of package fault.
func (e *CallError) FaultCode() fault.Code { return fault.Tool }

// Make makes a call that the program itself asks for, such as that of a graph node, and not a model. It is judged,
// confined, asked about and recorded as in [Box.Call]. A call that fails or is refused is a [*CallError] and leaves nothing on
// record, so that it is made when the run is resumed; one that is uncertain and not repeated is [steps.ErrSkipped]. The id
// is that of the call in events.
func (b *Box) Make(ctx context.Context, id, name string, args json.RawMessage, st steps.Steps) (Made, error) {
	own := &Box{o: b.o, human: b.human, asked: func() {}, over: func() {}, known: b.known, plain: true}
	own.o.From.Call = &ask.Call{ID: id, Tool: name, Arguments: string(args)}
	out, err := own.call(ctx, chat.ToolCall{ID: id, Name: name, Arguments: string(args)}, st)
	if err == nil && out.Failed {
		err = out.failure()
	}
	return Made{Output: out.Text, Notes: out.Notes}, err
}

// failure returns the error of a failed outcome.
func (o outcome) failure() *CallError {
	var m struct {
		message
		Output string `json:"output"`
	}
	if err := json.Unmarshal([]byte(o.Text), &m); err != nil {
		return &CallError{Text: o.Text} // a hook wrote it
	}
	parts := []string{m.Error}
	for _, part := range []string{m.Stderr, m.Output, m.Sandbox, m.Notice} {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return &CallError{Text: strings.Join(parts, "; ")}
}

// unrecordedError returns the error that keeps a failed outcome from being recorded, nil for any other and for calls of models.
func (b *Box) unrecordedError(out outcome) error {
	if !b.plain || !out.Failed {
		return nil
	}
	return out.failure()
}

// refusal is unrecorded for a decision.
func (b *Box) refusal(name string, refused string) error {
	if !b.plain || refused == "" {
		return nil
	}
	return failure("%s was not run: %s", name, refused).failure()
}

// advice returns what a result suggests to a model; empty if no model reads it.
func (b *Box) advice(text string) string {
	if b.plain {
		return ""
	}
	return text
}
