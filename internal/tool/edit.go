package tool

import (
	"context"
	"encoding/json"
	"strings"

	"loki/internal/base/ask"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
)

// edit asks the user for other arguments of a call.
func (b *Box) edit(ctx context.Context, e entry, call Call, st steps.Steps) (decision, error) {
	q := b.o.From
	q.ID, q.Kind, q.Consent = st.Key("consent/edit"), ask.Text, true
	q.Text = "Edit the arguments of " + call.Name + ". They are checked again, and you are asked again if that is needed."
	q.Default, q.HasDefault, q.Prefilled = string(call.Arguments), true, true
	var edited json.RawMessage
	q.Validate = func(answer string) (err error) {
		if edited, err = chat.ParseArguments(answer); err == nil {
			edited, err = fit(e.tool, e.declared, edited)
		}
		return err
	}
	answer, err := b.ask(ctx, q)
	if err != nil {
		return decision{}, err
	}
	if err := q.Validate(answer); err != nil {
		return decision{Refused: "the arguments that the user gave instead are not valid: " + err.Error()}, nil
	}
	return decision{Edited: edited}, nil
}

// change makes a call with the arguments that the user gave it. Hooks and rules judge them like those of a new call.
func (b *Box) change(ctx context.Context, e entry, id string, original, edited json.RawMessage, st steps.Steps) (outcome, error) {
	if string(original) != string(edited) { // else the user went back, and is asked again
		b.known.change(id, original, edited)
	}
	out, err := b.checkAndCall(ctx, e, id, edited, st.At("edited"))
	if ran, _, _ := b.EditedArguments(chat.ToolCall{ID: id}); err == nil && ran == string(edited) {
		out.Text = strings.TrimLeft(out.Text+"\n\n[The user edited the arguments of this call. They are now: "+ran+"]", "\n")
	}
	return out, err
}

// change notes that the user edited the arguments of a call. The original ones are those of the model.
func (k *known) change(id string, original, edited json.RawMessage) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if first, ok := k.edited[id]; ok {
		original = json.RawMessage(first[1])
	}
	k.edited[id] = [2]string{string(edited), string(original)}
}

// EditedArguments returns the arguments that the user gave a call, and those of the model. It reports false if the user did not edit any.
func (b *Box) EditedArguments(call chat.ToolCall) (ran, original string, ok bool) {
	both, ok := recall(b.known, b.known.edited, call.ID)
	return both[0], both[1], ok
}
