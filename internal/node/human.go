package node

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"loki/internal/ask"
	"loki/internal/event"
	"loki/internal/fault"
	"loki/internal/graph"
	"loki/internal/run"
	"loki/internal/steps"
	"loki/internal/text"
	"loki/internal/tool"
	"loki/internal/value"
)

// questionKey is the step of an approval's or input's own question.
const questionKey = "question"

// approval asks the user to choose and routes by the answer.
func (r *Runner) approval(ctx context.Context, t *run.Task) (product, error) {
	a := t.Node.Approval
	q := ask.Question{Kind: ask.Choice, Options: a.Options}
	var err error
	if q.Text, err = a.Question.Strict(t.Draft); err != nil {
		return product{}, fmt.Errorf("question: %w", err)
	}
	if a.Default != nil {
		q.Default, q.HasDefault = a.Default.Lenient(t.Draft), true
	}
	choice, err := r.ask(ctx, t, questionKey, q)
	if err != nil {
		return product{}, notAnswered("approval", err)
	}
	t.Draft.ApplyUpdates(t.Node.Updates, "choice", value.Of(choice), "")
	for _, route := range a.Routes {
		if route.Answer == choice {
			return product{targets: []string{route.Target}}, nil
		}
	}
	return product{targets: []string{a.OnOther}}, nil
}

// input asks the user for a text. An empty answer stands for the default, which is
// not validated.
func (r *Runner) input(ctx context.Context, t *run.Task) (product, error) {
	in := t.Node.Input
	if len(t.Node.Next) == 0 {
		return product{}, errors.New("input node has no next")
	}
	var err error
	q := ask.Question{Kind: ask.Text}
	if q.Text, err = in.Question.Strict(t.Draft); err != nil {
		return product{}, fmt.Errorf("question: %w", err)
	}
	if in.Default != nil {
		q.Default = in.Default.Lenient(t.Draft)
		q.HasDefault = q.Default != "" || t.Node.HasTimeout
	}
	var valid graph.Predicate
	if in.Validation != "" {
		if valid, err = graph.ParsePredicate(in.Validation); err != nil {
			return product{}, fmt.Errorf("validation: %w", err)
		}
		q.Validate = func(answer string) error {
			if answer == "" && q.HasDefault || valid.Holds(answer) {
				return nil
			}
			return fmt.Errorf("the answer has to satisfy %s", in.Validation)
		}
	}
	text, err := r.ask(ctx, t, questionKey, q)
	if err != nil {
		return product{}, notAnswered("input", err)
	}
	if text == "" {
		text = q.Default
	}
	// An answer that came from elsewhere, after the run was suspended, was not checked.
	if in.Validation != "" && !(q.HasDefault && text == q.Default) && !valid.Holds(text) {
		return product{}, fmt.Errorf("the answer does not satisfy %s", in.Validation)
	}
	t.Draft.ApplyUpdates(t.Node.Updates, "input", value.Of(text), "")
	return product{targets: t.Node.Next[:1]}, nil
}

// notAnswered returns the error of a node whose question was not answered. A node that waits
// for the answer has not failed.
func notAnswered(kind string, err error) error {
	if fault.CodeOf(err) == fault.Suspended {
		return err
	}
	return fmt.Errorf("%s interaction failed: %w", kind, err)
}

// ask asks the user a question, or reads the recorded answer. A node with a timeout waits
// that long since the question was first asked, interruptions included, and then takes the
// default.
func (r *Runner) ask(ctx context.Context, t *run.Task, key string, q ask.Question) (string, error) {
	q.ID = questionID(t, key)
	q.Node, q.Agent, q.Depth = t.Node.ID, r.Agent, r.Depth
	var deadline time.Time
	if t.Node.HasTimeout && key == questionKey {
		asked, err := steps.Do(ctx, t.Steps, steps.Step{Kind: steps.Time, Key: key + "/asked"}, func(context.Context) (time.Time, error) {
			return r.Now(), nil
		})
		if err != nil {
			return "", err
		}
		deadline = asked.Add(t.Node.Timeout)
	}
	step := steps.Step{Kind: steps.Question, Key: key, Name: q.ID}
	onRecord := true
	answer, err := steps.Do(ctx, t.Steps, step, func(ctx context.Context) (string, error) {
		onRecord = false
		asked := event.Question{ID: q.ID, Text: q.Text, Options: q.Options, Deadline: deadline, Key: t.Steps.Key(key)}
		if q.HasDefault {
			asked.Default = &q.Default
		}
		if err := t.Events.Emit(ctx, asked); err != nil {
			return "", err
		}
		answer, err := r.answer(ctx, t, q, deadline)
		if err != nil {
			return "", err
		}
		return answer, t.Events.Emit(ctx, event.Answer{ID: q.ID, Text: answer})
	})
	if err == nil && onRecord && slices.Contains(r.Answered, q.ID) {
		err = t.Events.Emit(ctx, event.Answer{ID: q.ID, Text: answer})
	}
	return answer, err
}

// errDeadline ends the wait for an answer.
var errDeadline = errors.New("no answer in time")

// answer waits for the user until the deadline, zero for none.
func (r *Runner) answer(ctx context.Context, t *run.Task, q ask.Question, deadline time.Time) (string, error) {
	waitCtx := ctx
	if !deadline.IsZero() {
		left := deadline.Sub(r.Now())
		if left <= 0 {
			return defaultAnswer(q)
		}
		var cancel context.CancelFunc
		waitCtx, cancel = context.WithTimeoutCause(ctx, left, errDeadline)
		defer cancel()
	}
	answer, err := r.Asker.Ask(waitCtx, q)
	switch {
	case err == nil:
		return answer, nil
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case errors.Is(context.Cause(waitCtx), errDeadline):
		return defaultAnswer(q)
	case errors.Is(err, ask.ErrUnavailable):
		return "", r.suspendedError(t, q, deadline)
	}
	return "", err
}

func defaultAnswer(q ask.Question) (string, error) {
	if !q.HasDefault {
		return "", fmt.Errorf("%w, and the node has no default", errDeadline)
	}
	return q.Default, nil
}

// suspendedError returns the error of a node that has to wait for an answer.
func (r *Runner) suspendedError(t *run.Task, q ask.Question, deadline time.Time) error {
	waiting := fmt.Sprintf("node %q waits for an answer to: %s", t.Node.ID, text.OneLine(q.Text, 200))
	if !deadline.IsZero() && q.HasDefault {
		waiting += fmt.Sprintf(" (from %s on the default %q is taken)", deadline.Local().Format(time.DateTime), text.Cut(q.Default, 60))
	}
	f := fault.New(fault.Suspended, "%s", waiting)
	const beforehand = "allow such calls with a rule under permission in config.yaml, or consent to all with --yes"
	switch {
	case t.Steps.Recording() && q.Consent:
		return f.WithHint("answer it: loki --resume %s --answer TEXT; to be asked less often, %s", t.Events.Run, beforehand)
	case t.Steps.Recording():
		return f.WithHint("answer it: loki --resume %s --answer TEXT", t.Events.Run)
	case q.Consent:
		return f.WithHint("run it in a terminal, %s", beforehand)
	}
	return f.WithHint("run it in a terminal, or pipe the answers in, one a line")
}

// questionID names a question within its run, for users to type: the node, and as short as
// possible what distinguishes it from the node's other questions. No other question of the run
// has the same id, whatever the names of the nodes are.
func questionID(t *run.Task, key string) string {
	id := place(t)
	if t.Visit > 1 {
		id += fmt.Sprintf("@%d", t.Visit)
	}
	full := t.Steps.Key(key)
	if t.Events.Item != nil {
		id += fmt.Sprintf("[%d]", *t.Events.Item)
		full = strings.TrimPrefix(full, itemKey(*t.Events.Item)+"/")
	}
	if full == questionKey {
		return id
	}
	return id + "/" + shortKey(full)
}

// shortKey shortens the key of a question that is not a node's own:
//
//	tool/1/2/consent/answer/1     1.2              may call 2 of turn 1 be made?
//	tool/1/2/uncertain/answer/1   1.2/again        is it to be made again?
//	uncertain/2                   again/2          the same of a script, asked a second time
//	attempt/2/tool/1/1/...        attempt/2/1.1
func shortKey(key string) string {
	key = toolPart.ReplaceAllString(key, "$1$2.$3$4")
	key = strings.Replace(key, "/consent/answer/", "/", 1)
	key = strings.Replace(key, "uncertain/answer/", "uncertain/", 1)
	key = strings.Replace(key, "uncertain/", "again/", 1)
	return strings.TrimSuffix(key, "/1")
}

// toolPart is the part of a key that names a tool call: its turn and its place in it.
var toolPart = regexp.MustCompile(`(^|/)tool/(\d+)/(\d+)(/)`)

// decideUncertain returns the function that decides about an effect of t that was begun when
// the run was interrupted.
func (r *Runner) decideUncertain(t *run.Task) func(context.Context, string) (steps.Decision, error) {
	return func(ctx context.Context, key string) (steps.Decision, error) {
		switch t.Node.OnUncertain {
		case graph.UncertainSkip:
			return steps.Skip, nil
		case graph.UncertainAsk:
			return r.askUncertain(ctx, t, "uncertain", fmt.Sprintf("The script of node %s was running when the run was interrupted, and may have finished. Run it again?", t.Node.ID))
		default:
			return steps.Retry, nil
		}
	}
}

// askUncertain lets the user decide.
func (r *Runner) askUncertain(ctx context.Context, t *run.Task, key, question string) (steps.Decision, error) {
	q := tool.UncertainQuestion(ask.Question{}, question)
	answer, err := r.askOnce(ctx, t, key, q)
	if err == nil {
		err = q.Validate(answer)
	}
	return steps.Decision(answer), err
}

// recordedAsker returns an asker whose answers are steps of the record, so that a resumed
// task gets them again. Where the user cannot be asked the run waits for the answer.
func (r *Runner) recordedAsker(t *run.Task) ask.Asker {
	return ask.Func(func(ctx context.Context, q ask.Question) (string, error) {
		return r.askOnce(ctx, t, strings.TrimPrefix(q.ID, t.Steps.Key(""))+"/answer", q)
	})
}

// askOnce is ask for a question whose answer holds once: after another interruption the same
// question is asked again.
func (r *Runner) askOnce(ctx context.Context, t *run.Task, key string, q ask.Question) (string, error) {
	for n := 1; ; n++ {
		numbered := fmt.Sprintf("%s/%d", key, n)
		if _, used, err := readNote[bool](ctx, t.Steps, numbered+"/used"); err != nil {
			return "", err
		} else if used {
			continue
		}
		answer, err := r.ask(ctx, t, numbered, q)
		if err != nil {
			return "", err
		}
		return answer, writeNote(ctx, t.Steps, numbered+"/used", true)
	}
}
