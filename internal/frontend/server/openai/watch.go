package openai

import (
	"context"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/frontend/server/rest"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
)

// watch follows the events of the work on an answer.
type watch struct {
	ctx  context.Context // of the request
	out  listener        // nil for none
	held bool            // the answer is not passed on before it is complete

	before   chat.Usage // of the run, before it resumed
	run      string     // id of the run; "" for none
	asked    *question  // that waits for a human; nil for none
	model    string     // that answered last
	end      event.Finished
	warnings []string

	sent    strings.Builder // what out has got
	between bool            // what follows is the text of another reply
}

// mostWarnings is how many warnings an answer has.
const mostWarnings = 20

func (w *watch) warn(text string) {
	if len(w.warnings) < mostWarnings {
		w.warnings = append(w.warnings, text)
	}
}

// emit implements [event.Emitter].
func (w *watch) emit(ctx context.Context, ev event.Event) error {
	rest.Progress(w.ctx)
	if ev.Run != "" {
		w.run = ev.Run
	}
	switch b := ev.Body.(type) {
	case event.Question:
		w.asked = &question{b.ID, b.Text, b.Options, b.Default}
		return nil
	case event.Answer:
		if w.asked != nil && w.asked.ID == b.ID {
			w.asked = nil
		}
		return nil
	case event.Warning:
		w.warn(b.Text)
		return nil
	}
	if ev.Depth > 0 || ev.Node != "" { // a part of the work, which is not the answer
		return nil
	}
	switch b := ev.Body.(type) {
	case event.Reply:
		w.model = b.Model
	case event.Finished:
		w.end = b
	}
	if w.out == nil || w.held {
		return nil
	}
	switch b := ev.Body.(type) {
	case event.Delta:
		text := b.Text
		if w.between && w.sent.Len() > 0 {
			text = "\n" + text
		}
		w.between = false
		return w.pass(ctx, text)
	case event.Reasoning:
		return w.out.reasoning(ctx, b.Text)
	case event.Reply:
		w.between = b.Text != ""
	case event.Retry:
		if w.sent.Len() > 0 {
			return fault.New(fault.Provider, "the reply broke off: %s", b.Error).WithHint("ask again")
		}
	}
	return nil
}

func (w *watch) pass(ctx context.Context, text string) error {
	if text == "" {
		return nil
	}
	w.sent.WriteString(text)
	return w.out.text(ctx, text)
}

// finish passes on what is missing of the whole text.
func (w *watch) finish(ctx context.Context, text string) error {
	rest, ok := strings.CutPrefix(text, w.sent.String())
	if w.out == nil || !ok {
		return nil
	}
	return w.pass(ctx, rest)
}
