package engine

import (
	"context"
	"fmt"
	"slices"

	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/hook"
)

// askWithHooks asks as [Engine.ask] does, with the hooks of the context around it. A dry run has none.
func (e *Engine) askWithHooks(ctx context.Context, c *call, turn int) (turnResult, error) {
	hooks := c.rc.Hooks
	if e.showRequests || !hooks.Has(hook.BeforeModel) && !hooks.Has(hook.AfterModel) {
		return e.ask(ctx, c, turn)
	}
	model := hook.ModelCall{ID: c.model.ID, Turn: turn}
	id := c.rc.Steps.Key(fmt.Sprintf("model/%d", turn))
	if hooks.Has(hook.BeforeModel) {
		about := model
		about.Messages = hook.Messages(c.messages...)
		if c.model.SupportsTools {
			for _, t := range c.tools() {
				about.Tools = append(about.Tools, t.Name)
			}
		}
		d, err := hooks.Run(ctx, hook.Event{Kind: hook.BeforeModel, ID: id, Model: &about}, nil)
		switch {
		case err != nil:
			return turnResult{}, err
		case d.Refused():
			return turnResult{}, &hook.RefusedError{What: fmt.Sprintf("model %s was not asked", c.model.ID), Refusal: d.Refusal()}
		}
		c.note = d.Text()
	}
	t, err := e.ask(ctx, c, turn)
	if c.note = ""; err != nil || !hooks.Has(hook.AfterModel) {
		return t, err
	}
	model.ID, model.Stop, model.Usage, model.Reply = c.model.ID, t.Stop, &t.Usage, &hook.Messages(t.Message)[0]
	d, err := hooks.Run(ctx, hook.Event{Kind: hook.AfterModel, ID: id, Model: &model}, nil)
	if t.Note = d.Text(); d.Refused() {
		t.Refused, t.Message = d.Refusal(), chat.Message{Role: chat.Assistant}
	}
	return t, err
}

// refusal returns the error of a reply that a hook refused, nil for others.
func (c *call) refusal(t turnResult) error {
	if t.Refused == "" {
		return nil
	}
	return &hook.RefusedError{What: fmt.Sprintf("the reply of model %s is not used", c.model.ID), Refusal: t.Refused}
}

// withNote returns the messages with a note of hooks at the end of the last one that is not of a model. It is a part of
// its own where messages have parts.
func withNote(messages []chat.Message, note string) []chat.Message {
	if note == "" {
		return messages
	}
	for i, m := range slices.Backward(messages) {
		switch m.Role {
		case chat.User:
			m.Parts = append(slices.Clip(m.Parts), chat.Part{Type: chat.TextPart, Text: "\n\n" + note})
		case chat.ToolRole:
			m.Parts = []chat.Part{{Type: chat.TextPart, Text: m.Text() + "\n\n" + note}}
		default:
			continue
		}
		messages = slices.Clone(messages)
		messages[i] = m
		return messages
	}
	return messages
}

// addNote adds what hooks noted about a reply to the last result of its calls. If there is none, the model does not
// continue, and the user gets it.
func (c *call) addNote(ctx context.Context, note string, results []chat.Message) error {
	switch {
	case note == "":
		return nil
	case len(results) == 0:
		return c.rc.Events.Emit(ctx, event.Warning{Text: note})
	}
	last := &results[len(results)-1]
	last.Parts = []chat.Part{{Type: chat.TextPart, Text: last.Text() + "\n\n" + note}}
	return nil
}
