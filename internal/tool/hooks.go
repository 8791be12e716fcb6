package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"loki/internal/base/fault/steps"
	"loki/internal/base/value"
	"loki/internal/base/value/schema"
	"loki/internal/llm/chat"
	"loki/internal/llm/hook"
)

// errNoHooks ends a step that only looks for the decision of hooks that there are no more.
var errNoHooks = errors.New("there are no hooks")

// runBefore returns what the hooks before a call of a declared tool come to, or what they came to when the step was made.
// A decision on record counts also if there are no such hooks any more: what follows on record was done with it.
func (b *Box) runBefore(ctx context.Context, declared chat.Tool, id string, args json.RawMessage, st steps.Steps) (hook.Decision, error) {
	has := b.o.Hooks.Has(hook.BeforeTool)
	if !has && !st.Recording() {
		return hook.Decision{}, nil
	}
	step := steps.Step{Kind: steps.Hook, Key: string(hook.BeforeTool), Name: declared.Name}
	d, err := steps.Do(ctx, st, step, func(ctx context.Context) (hook.Decision, error) {
		if !has {
			return hook.Decision{}, errNoHooks
		}
		e := hook.Event{Kind: hook.BeforeTool, ID: id, Tool: &hook.ToolCall{Name: declared.Name, Arguments: args}}
		d, err := b.o.Hooks.Run(ctx, e, func(changed json.RawMessage) error { return checkArguments(declared, changed) })
		if err == nil && d.Refused() {
			err = b.refusal(declared.Name, d.Refusal())
		}
		return d, err
	})
	if errors.Is(err, errNoHooks) {
		return hook.Decision{}, nil
	}
	return d, err
}

// runAfter returns the outcome of a call as the hooks after it leave it.
func (b *Box) runAfter(ctx context.Context, call Call, id string, h Hints, out outcome) (outcome, error) {
	if !b.o.Hooks.Has(hook.AfterTool) {
		return out, nil
	}
	e := hook.Event{Kind: hook.AfterTool, ID: id, Tool: &hook.ToolCall{Name: call.Name, Arguments: call.Arguments, Result: &out.Text, Failed: out.Failed}}
	d, err := b.o.Hooks.Run(ctx, e, nil)
	switch {
	case err != nil:
		return outcome{}, err
	case d.Refused():
		out = failure("%s was run, but its result is withheld: %s", call.Name, d.Refusal())
	case d.Result != nil:
		out.Text, out.Images = cut(*d.Result, cmp.Or(h.MaxOutput, b.o.MaxOutput)), nil
	}
	b.note(&out, d)
	return out, nil
}

// note adds the notes of hooks to an outcome.
func (b *Box) note(out *outcome, d hook.Decision) {
	if !b.plain {
		out.Text = d.AddTo(out.Text)
	} else if text := d.Text(); text != "" {
		out.Notes = append(out.Notes, text)
	}
}

// checkArguments returns what is wrong with arguments that a hook wrote for a tool.
func checkArguments(declared chat.Tool, args json.RawMessage) error {
	if _, err := chat.ParseArguments(string(args)); err != nil {
		return err
	}
	v, err := value.ParseJSON(args)
	if err != nil || len(declared.Parameters) == 0 {
		return err
	}
	declaration, err := value.ParseJSON(declared.Parameters)
	if err != nil {
		return err
	}
	form, err := schema.CompileLoosely(declaration)
	if err != nil {
		return nil // the schema of a server that is not understood; the tool checks what it gets
	}
	var wrong []string
	for _, violation := range form.Validate(v) {
		wrong = append(wrong, violation.String())
	}
	if wrong != nil {
		return errors.New(strings.Join(wrong, "; "))
	}
	return nil
}
