package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"loki/internal/base/ask"
	"loki/internal/llm/chat"
	"loki/internal/tool"
)

// UserTools returns the tools by which a model asks the user: for one of several options
// (user__ask), for yes or no (user__confirm), for a text (user__input), and for any number of
// options (user__checkbox). They put their questions to a, each with the origin (agent, node,
// depth) that from names. If a cannot reach the user, the call fails and the model reads why,
// unless a's error has code fault.Suspended: that ends the request, so that the run can wait for
// an answer. If the error has a method Fallback, which returns what to do without an answer, the
// result is {"error": "...", "fallback": "..."}. The ID of a question is the key of the call.
func UserTools(a ask.Asker, from ask.Question) []tool.Tool {
	const question, options = `"question":{"type":"string","description":"The question to the user."}`, `"options":{"type":"array","items":{"type":"string"},"description":"The options to choose from."}`
	with := func(properties, required string) json.RawMessage {
		return json.RawMessage(`{"type":"object","properties":{` + properties + `},"required":[` + required + `]}`)
	}
	plain, choice := with(question, `"question"`), with(question+","+options, `"question","options"`)
	return []tool.Tool{
		&userTool{a, from, ask.Choice, chat.Tool{
			Name: "user__ask",
			Description: "Ask the user a question with options to choose from. The user can also give an answer of their own. " +
				`Mark the option that you recommend by adding "(Recommended)" to its text. Returns {"answer": "..."}.`,
			Parameters: choice,
		}},
		&userTool{a, from, ask.Multi, chat.Tool{
			Name:        "user__checkbox",
			Description: `Ask the user a question with options of which any number can be chosen. Returns {"answers": ["...", ...]}.`,
			Parameters:  choice,
		}},
		&userTool{a, from, ask.Select, chat.Tool{
			Name:        "user__confirm",
			Description: `Ask the user a question that is answered with yes or no. Returns {"answer": "yes"} or {"answer": "no"}.`,
			Parameters:  plain,
		}},
		&userTool{a, from, ask.Text, chat.Tool{
			Name:        "user__input",
			Description: `Ask the user a question that is answered with any text. Returns {"answer": "..."}.`,
			Parameters:  plain,
		}},
	}
}

// userTool is one of the tools of [UserTools], distinguished by its kind of
// question.
type userTool struct {
	asker    ask.Asker
	from     ask.Question
	kind     ask.Kind
	declared chat.Tool
}

// Declaration implements [tool.Tool].
func (t *userTool) Declaration() chat.Tool { return t.declared }

// Hints implements [tool.Tool].
func (t *userTool) Hints() tool.Hints { return tool.Hints{ReadOnly: true, Interactive: true} }

// Fit implements [tool.Fitter]. Models write options in several ways, which [options] reads.
func (t *userTool) Fit(args json.RawMessage) (json.RawMessage, error) { return args, nil }

// Call implements [tool.Tool].
func (t *userTool) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	args, err := tool.Decode[struct {
		Question string          `json:"question"`
		Options  json.RawMessage `json:"options"`
	}](call)
	if err != nil {
		return tool.Result{}, err
	}
	q := t.from
	q.ID, q.Kind, q.Text = call.Key, t.kind, strings.TrimSpace(args.Question)
	if q.Text == "" {
		return tool.Result{}, errors.New(`argument "question" is missing or empty`)
	}
	switch t.kind {
	case ask.Select:
		q.Options, q.Default, q.HasDefault = []string{"yes", "no"}, "yes", true
	case ask.Choice, ask.Multi:
		if q.Options, err = options(args.Options); err != nil {
			return tool.Result{}, err
		}
		if t.kind == ask.Multi && len(q.Options) == 0 {
			return tool.Result{}, errors.New(`argument "options" has no options`)
		}
	}
	if t.kind == ask.Choice && len(q.Options) == 0 {
		q.Kind = ask.Text // nothing to choose from, but an answer all the same
	}
	answer, err := t.asker.Ask(ctx, q)
	if instead, ok := errors.AsType[withFallback](err); ok && ctx.Err() == nil {
		out, err := json.Marshal(noAnswer{instead.Error(), instead.Fallback()})
		return tool.Result{Output: string(out)}, err
	}
	switch {
	case errors.Is(err, ask.ErrUnavailable):
		return tool.Result{}, fmt.Errorf("%w. Use your own judgment, or continue without", err)
	case err != nil:
		return tool.Result{}, err
	}
	return t.result(answer)
}

// withFallback is the error of an asker that says what to do without an answer.
type withFallback interface {
	error
	Fallback() string
}

// noAnswer is the result of a question without an answer.
type noAnswer struct {
	Error    string `json:"error"`
	Fallback string `json:"fallback"`
}

// result returns the answer as the model reads it.
func (t *userTool) result(answer string) (tool.Result, error) {
	var v any = map[string]string{"answer": answer}
	if t.kind == ask.Multi {
		answers, err := ask.SplitAnswers(answer)
		if err != nil {
			return tool.Result{}, err
		}
		if answers == nil {
			answers = []string{}
		}
		v = map[string][]string{"answers": answers}
	}
	out, err := json.Marshal(v)
	return tool.Result{Output: string(out)}, err
}

// options reads a list of options, which models also write as a string with a list in it.
// Entries that are not strings are left out.
func options(raw json.RawMessage) ([]string, error) {
	form := errors.New(`argument "options" must be a list of strings, such as ["yes", "no"]`)
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = json.RawMessage(text)
	}
	var list []any
	if err := json.Unmarshal(raw, &list); err != nil || list == nil {
		return nil, form
	}
	found := make([]string, 0, len(list))
	for _, v := range list {
		if s, ok := v.(string); ok {
			found = append(found, s)
		}
	}
	return found, nil
}
