package node

import (
	"context"
	"errors"
	"fmt"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// approval asks the user to choose and routes by the answer.
func (r *Runner) approval(ctx context.Context, t *run.Task, wanted string) (product, error) {
	a := t.Node.Approval
	q := ask.Question{Kind: ask.Choice, Options: a.Options, Assignees: a.Assignees}
	var err error
	if q.Text, err = a.Question.Strict(t.Draft); err != nil {
		return r.fail(ctx, t, fmt.Errorf("question: %w", err))
	}
	if a.Default != nil {
		q.Default, q.HasDefault = a.Default.Lenient(t.Draft), true
	}
	r.storable(t.Node, &q)
	choice, err := tryNode(ctx, r, t, func(ctx context.Context) (string, error) { return r.ask(ctx, t, q) })
	if err != nil {
		return r.fail(ctx, t, notAnswered("approval", err))
	}
	p := product{result: value.Of(choice)}
	p.wanted, p.updated = t.Draft.ApplyUpdates(t.Node.Updates, "choice", p.result, wanted)
	for _, route := range a.Routes {
		if route.Answer == choice {
			return r.depart(ctx, t, p, "routes."+route.Answer, route.Target)
		}
	}
	return r.depart(ctx, t, p, "on_other", a.OnOther)
}

// input asks the user for a text. An empty answer means the default, which is
// not validated.
func (r *Runner) input(ctx context.Context, t *run.Task, wanted string) (product, error) {
	in := t.Node.Input
	if len(t.Node.Next) == 0 && !t.Node.Defer && !isItem(t) {
		return product{}, errors.New("input node has no next")
	}
	var err error
	q := ask.Question{Kind: ask.Text, Assignees: in.Assignees}
	if r.Plan.Graph().MakesSecret(t.Node) {
		q.Kind = ask.Secret
	}
	if q.Text, err = in.Question.Strict(t.Draft); err != nil {
		return r.fail(ctx, t, fmt.Errorf("question: %w", err))
	}
	if in.Default != nil {
		q.Default = in.Default.Lenient(t.Draft)
		q.HasDefault = q.Default != "" || t.Node.HasTimeout || t.Node.Expires != nil
	}
	var valid graph.Predicate
	if in.Validation != "" {
		if valid, err = graph.ParsePredicate(in.Validation); err != nil {
			return product{}, fmt.Errorf("validation: %w", err)
		}
		q.Rule = in.Validation
		q.Validate = func(answer string) error {
			if answer == "" && q.HasDefault || valid.Holds(answer) {
				return nil
			}
			return fmt.Errorf("the answer must satisfy %s", in.Validation)
		}
	}
	r.storable(t.Node, &q)
	text, err := tryNode(ctx, r, t, func(ctx context.Context) (string, error) {
		text, err := r.ask(ctx, t, q)
		if err != nil {
			return "", notAnswered("input", err)
		}
		if text == "" {
			text = q.Default
		}
		// An answer that came from elsewhere, after the run was suspended, was not checked.
		if in.Validation != "" && !(q.HasDefault && text == q.Default) && !valid.Holds(text) {
			return "", fmt.Errorf("the answer does not satisfy %s", in.Validation)
		}
		return text, nil
	})
	if err != nil {
		return r.fail(ctx, t, err)
	}
	p := product{result: value.Of(text)}
	p.wanted, p.updated = t.Draft.ApplyUpdates(t.Node.Updates, "input", p.result, wanted)
	return r.depart(ctx, t, p, "next", t.Node.Next[:min(1, len(t.Node.Next))]...)
}

// storable has a question take only answers that the schema of the state allows.
func (r *Runner) storable(n *graph.Node, q *ask.Question) {
	q.Schemas = r.Plan.Graph().AnswerSchemas(n)
	valid := q.Validate
	if q.Schemas == nil {
		return
	}
	q.Validate = func(answer string) error {
		if valid != nil {
			if err := valid(answer); err != nil {
				return err
			}
		}
		if answer == "" && q.HasDefault {
			return nil
		}
		return run.FitsSchemas(answer, q.Schemas)
	}
}

// isItem reports whether t is an item of a map.
func isItem(t *run.Task) bool { return t.Events.Item != nil && t.Events.Node != t.Node.ID }

// notAnswered returns the error of a node whose question was not answered. A node that waits
// for the answer has not failed.
func notAnswered(kind string, err error) error {
	if fault.CodeOf(err) == fault.Suspended {
		return err
	}
	return fmt.Errorf("%s interaction failed: %w", kind, err)
}

// questions returns what puts questions of t to the user.
func (r *Runner) questions(t *run.Task) run.Questions {
	id := r.questionPlace(t)
	waits := fmt.Sprintf("node %q", r.name(t))
	if isItem(t) {
		waits += fmt.Sprintf(" for item %d of map %q", *t.Events.Item, t.Events.Node)
	}
	if t.Events.AgentID != "" {
		waits += " of " + t.Events.AgentID
	}
	return run.Questions{
		Asker: r.Asker, Escalated: r.Escalated, Steps: t.Steps, Events: t.Events, From: r.origin(t), Place: id, Base: t.Base,
		Secrets: t.Secrets, Waits: waits, Now: r.Now,
	}
}

// questionPlace returns the beginning of the ids of the questions of t: that of its node, such as review or review@2 at the
// second visit, and of an item of a map each/think[3] or, if the branch is a question or a subgraph, each#3.
func (r *Runner) questionPlace(t *run.Task) string {
	asks := t.Node.Approval != nil || t.Node.Input != nil || t.Node.Sub != nil
	id := r.place(t)
	if asks {
		id = r.below(t, numbered().ReplaceAllString(r.ownNode(t), "%23$1"))
	}
	if t.Visit > 1 {
		id += fmt.Sprintf("@%d", t.Visit)
	}
	switch item := t.Events.Item; {
	case item == nil:
	case asks:
		id += fmt.Sprintf("#%d", *item)
	default:
		id += fmt.Sprintf("[%d]", *item)
	}
	return id
}

// numbered is the end of the name of a node that looks like that of an item.
var numbered = text.Regexp(`#(\d+)$`)

// userQuestions returns what puts questions of t to the user that no agent may answer.
func (r *Runner) userQuestions(t *run.Task) run.Questions {
	q := r.questions(t)
	q.Asker, q.Escalated = r.User, false
	return q
}

// origin says where questions of t come from.
func (r *Runner) origin(t *run.Task) ask.Question {
	q := ask.Question{Node: r.name(t), Agent: r.Agent, Depth: t.Events.Depth, Child: t.Events.AgentID}
	if isItem(t) {
		q.Map, q.Item = t.Events.Node, t.Events.Item
	}
	return q
}

// ask asks the question of an approval or input node.
func (r *Runner) ask(ctx context.Context, t *run.Task, q ask.Question) (string, error) {
	questions := r.questions(t)
	questions.Turn, questions.Lapses = t.Turn, t.Node.Fallback != "" || t.Node.Retry != nil
	switch {
	case t.Node.Expires != nil:
		text, err := t.Node.Expires.Strict(t.Draft)
		if err != nil {
			return "", fmt.Errorf("expires: %w", err)
		}
		at, after, err := graph.ParseExpiry(text)
		switch {
		case err != nil:
			return "", fmt.Errorf("expires: %w", err)
		case at.IsZero():
			return questions.AskWithin(ctx, q, after)
		}
		return questions.AskBy(ctx, q, at)
	case t.Node.HasTimeout:
		return questions.AskWithin(ctx, q, t.Node.Timeout)
	}
	return questions.Ask(ctx, q)
}

// decideUncertain returns the function that decides about an effect of t that was begun when
// the run was interrupted.
func (r *Runner) decideUncertain(t *run.Task) func(context.Context, string) (steps.Decision, error) {
	return func(ctx context.Context, _ string) (steps.Decision, error) {
		switch t.Node.OnUncertain {
		case graph.UncertainSkip:
			return steps.Skip, nil
		case graph.UncertainAsk:
			return r.userQuestions(t).DecideUncertain(ctx,
				fmt.Sprintf("The script of node %s was running when the run was interrupted, and may have finished. Run it again?", t.Node.ID))
		default:
			return steps.Retry, nil
		}
	}
}
