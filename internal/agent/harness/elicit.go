package harness

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"loki/internal/agent/harness/acp"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/text"
)

// elicit puts a question of the program to the user: one for each field of its form.
func (t *talk) elicit(ctx context.Context, r *acp.ElicitationRequest) (any, error) {
	ctx, stop := t.untilCanceled(ctx)
	defer stop()
	if r.Mode != acp.ElicitationForm || r.RequestedSchema == nil {
		return nil, acp.Invalid("mode", "only forms are supported")
	}
	fields := r.RequestedSchema.Properties
	names := slices.Sorted(maps.Keys(fields))
	args, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	st := t.place("question", r.Message, args)
	content := make(map[string]any)
	for i, name := range names {
		q := t.fieldQuestion(r, name)
		q.ID = st.At(fmt.Sprint(i + 1)).Key("field")
		answer, err := t.a.Asker.Ask(ctx, q)
		switch {
		case ctx.Err() != nil:
			return acp.ElicitationResponse{Action: "cancel"}, nil
		case errors.Is(err, ask.ErrUnavailable) && fault.CodeOf(err) != fault.Suspended:
			return acp.ElicitationResponse{Action: "decline"}, nil
		case err != nil:
			t.fail(err)
			return acp.ElicitationResponse{Action: "cancel"}, nil
		}
		if answer == "" && !slices.Contains(r.RequestedSchema.Required, name) {
			continue
		}
		_, values := choicesOf(fields[name])
		if content[name], err = typedAnswer(fields[name].Type, answer, values); err != nil {
			return acp.ElicitationResponse{Action: "decline"}, nil
		}
	}
	return acp.ElicitationResponse{Action: "accept", Content: content}, nil
}

// choicesOf returns the texts that a field takes, by what people read; nil for any text.
func choicesOf(f acp.Property) (shown []string, values map[string]string) {
	items := cmp.Or(f.Items, new(acp.Items))
	options := slices.Concat(f.OneOf, items.AnyOf)
	for _, v := range slices.Concat(f.Enum, items.Enum) {
		options = append(options, acp.EnumOption{Const: v})
	}
	values = make(map[string]string, len(options))
	for _, o := range options {
		name := text.OneLine(text.Printable(cmp.Or(o.Title, o.Const)), 200)
		if _, taken := values[name]; !taken && name != "" {
			shown, values[name] = append(shown, name), o.Const
		}
	}
	if f.Type == "boolean" {
		return []string{"yes", "no"}, map[string]string{"yes": "true", "no": "false"}
	}
	return shown, values
}

// fieldQuestion returns the question for a field of a form.
func (t *talk) fieldQuestion(r *acp.ElicitationRequest, name string) ask.Question {
	f := r.RequestedSchema.Properties[name]
	q := t.a.From
	q.Text = text.Visible(strings.TrimSpace(r.Message))
	if label := cmp.Or(f.Title, f.Description, name); len(r.RequestedSchema.Properties) > 1 || r.Message == "" {
		q.Text = strings.TrimSpace(q.Text + "\n" + text.Visible(label))
	}
	shown, values := choicesOf(f)
	q.Kind, q.Options = ask.Text, shown
	switch {
	case len(shown) > 0 && f.Type == "array":
		q.Kind = ask.Multi
	case len(shown) > 0:
		q.Kind = ask.Select
	default:
		q.Validate = func(answer string) error {
			_, err := typedAnswer(f.Type, answer, values)
			return err
		}
	}
	if f.Default != nil && f.Type != "array" {
		given := fmt.Sprint(f.Default)
		if f.Type == "boolean" {
			given = map[string]string{"true": "yes", "false": "no"}[given]
		}
		if len(shown) == 0 || slices.Contains(shown, given) {
			q.Default, q.HasDefault = given, true
		}
	}
	return q
}

// typedAnswer returns an answer as a value of the type of a field.
func typedAnswer(kind, answer string, values map[string]string) (any, error) {
	switch kind {
	case "boolean":
		return answer == "yes", nil
	case "integer":
		n, err := strconv.ParseInt(strings.TrimSpace(answer), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a whole number", answer)
		}
		return n, nil
	case "number":
		n, err := strconv.ParseFloat(strings.TrimSpace(answer), 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number", answer)
		}
		return n, nil
	case "array":
		list, err := ask.SplitAnswers(answer)
		for i, a := range list {
			list[i] = cmp.Or(values[a], a)
		}
		return list, err
	}
	return cmp.Or(values[answer], answer), nil
}
