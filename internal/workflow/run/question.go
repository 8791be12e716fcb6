package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/base/fault/steps"
	"loki/internal/base/text"
	"loki/internal/llm/event"
	"loki/internal/tool"
)

// Questions puts the questions of one piece of work, such as a node or a turn, to the user. The
// answers are steps of the record: a resumed run gets them again. Where no user can be
// asked, the error has code [fault.Suspended], so that the run waits for the answer. Its methods
// may be called from several goroutines, with different keys.
type Questions struct {
	Asker  ask.Asker    // nil means that the user cannot be asked
	Steps  steps.Steps  // of the work
	Events event.Scope  // likewise
	From   ask.Question // origin of the questions: node, agent, depth, child

	// Escalated says that Asker is another agent. The user does not see such questions, and they do
	// not wait on record.
	Escalated bool

	// Place is the beginning of the ids of the questions, for users to type. It names the work
	// within its run: no other work of the run has the same. Base is the beginning of the full
	// keys of the work's steps, which ids leave out.
	Place, Base string

	// Turn is when the question that is the work itself is put to the user; nil for at once. The caller ends it.
	Turn *Turn

	// Lapses says that the work continues without an answer when the time for one is over. The question is over then, which is
	// recorded; otherwise that is found anew each time.
	Lapses bool

	Secrets *Secrets // of the state of a graph, which questions do not show; nil for none

	Waits string           // what waits for the answers, for messages, such as: node "review"
	Now   func() time.Time // nil means time.Now
}

// QuestionRecorder is a [steps.Recorder] of a task whose questions can wait for their answers on record.
type QuestionRecorder interface {
	// Asked keeps a question that waits for the step with its key. The recorder fills in its step and node.
	Asked(ctx context.Context, p Pending) error
	// Replied reports whether an answer that completes the step with a full key is on record, which another process may give.
	Replied(ctx context.Context, key string) bool
	// Answered reports whether the question with an id was answered to resume the run, so that the answer is an
	// event again.
	Answered(question string) bool
}

// ownKey is the step of the work's own question.
const ownKey = "question"

// Ask asks the question that is the work itself, or reads the recorded answer.
func (q Questions) Ask(ctx context.Context, question ask.Question) (string, error) {
	return q.askOwn(ctx, question, func(context.Context) (time.Time, error) { return time.Time{}, nil })
}

// AskWithin is Ask with a limit: the work waits that long since the question was first asked,
// interruptions included, and then takes the default. Without a default that is an error.
func (q Questions) AskWithin(ctx context.Context, question ask.Question, limit time.Duration) (string, error) {
	return q.askOwn(ctx, question, func(ctx context.Context) (time.Time, error) {
		asked, err := steps.Do(ctx, q.Steps, steps.Step{Kind: steps.Time, Key: ownKey + "/asked"}, func(context.Context) (time.Time, error) {
			return q.now(), nil
		})
		return asked.Add(limit), err
	})
}

// AskBy is Ask with a deadline, from which on the default is taken. Without a default that is an error.
func (q Questions) AskBy(ctx context.Context, question ask.Question, deadline time.Time) (string, error) {
	return q.askOwn(ctx, question, func(context.Context) (time.Time, error) { return deadline, nil })
}

// askOwn asks the question that is the work itself when its turn comes, until the deadline that by returns then.
func (q Questions) askOwn(ctx context.Context, question ask.Question, by func(context.Context) (time.Time, error)) (string, error) {
	return q.ask(ctx, ownKey, question, func(ctx context.Context) (time.Time, error) {
		if err := q.Turn.Wait(ctx); err != nil {
			return time.Time{}, err
		}
		return by(ctx)
	})
}

// AskOnce asks a question whose answer holds once: after another interruption the same question
// is asked again. The key is that of the question within the work.
func (q Questions) AskOnce(ctx context.Context, key string, question ask.Question) (string, error) {
	for n := 1; ; n++ {
		numbered := fmt.Sprintf("%s/%d", key, n)
		if _, used, err := steps.ReadNote[bool](ctx, q.Steps, numbered+"/used"); err != nil {
			return "", err
		} else if used {
			continue
		}
		answer, err := q.ask(ctx, numbered, question, nil)
		if err != nil {
			return "", err
		}
		return answer, steps.WriteNote(ctx, q.Steps, numbered+"/used", true)
	}
}

// Answered reports whether the answer to the question that is the work itself is on record.
func (q Questions) Answered(ctx context.Context) (bool, error) {
	if !q.Steps.Recording() {
		return false, nil
	}
	key := q.Steps.Key(ownKey)
	known, err := q.Steps.Recorder().Lookup(ctx, key, steps.Step{Kind: steps.Question, Key: ownKey, Name: q.id(ownKey)})
	return known.Done, err
}

// DecideUncertain lets the user decide what to do with the work's effect, which was begun and
// whose end is unknown.
func (q Questions) DecideUncertain(ctx context.Context, text string) (steps.Decision, error) {
	question := tool.UncertainQuestion(ask.Question{}, text)
	answer, err := q.AskOnce(ctx, "uncertain", question)
	if err == nil {
		err = question.Validate(answer)
	}
	return steps.Decision(answer), err
}

// ForTools returns the asker for the calls of tools, see [tool.Options]. In work that is
// recorded each answer holds once; other work asks directly.
func (q Questions) ForTools() ask.Asker {
	if !q.Steps.Recording() {
		return q.Asker
	}
	return ask.Func(func(ctx context.Context, question ask.Question) (string, error) {
		key := strings.TrimPrefix(question.ID, q.Steps.Key(""))
		if call, ok := strings.CutSuffix(key, "/call"); ok { // the call itself asks
			_, consented, err := steps.ReadNote[bool](ctx, q.Steps, call+"/consent/answer/1/used")
			if err != nil {
				return "", err
			}
			if consented { // that question has the short id
				return q.AskOnce(ctx, key+"/question", question)
			}
		}
		return q.AskOnce(ctx, key+"/answer", question)
	})
}

// ask asks a question until the deadline that by returns, zero for none. by is called when the question must be asked, and
// not if its answer is on record; nil is none.
func (q Questions) ask(ctx context.Context, key string, question ask.Question, by func(context.Context) (time.Time, error)) (string, error) {
	question.ID = q.id(key)
	question.Node, question.Agent, question.Depth, question.Child = q.From.Node, q.From.Agent, q.From.Depth, q.From.Child
	question.Map, question.Item = q.From.Map, q.From.Item
	shown := q.Secrets.question(question)
	question = shown.Question
	step := steps.Step{Kind: steps.Question, Key: key, Name: question.ID, Request: func() any { return describe(question) }}
	var asked bool     // here, so that the answer is an event
	var given Reply    // here
	var onRecord Reply // which differs if another process was faster
	var err error
	for try := 1; try == 1 || errors.Is(err, ErrAnswered) && try < 4; try++ { // then the answer is on record
		onRecord, err = steps.Do(ctx, q.Steps, step, func(ctx context.Context) (Reply, error) {
			var deadline time.Time
			if by != nil {
				var err error
				if deadline, err = by(ctx); err != nil {
					return Reply{}, err
				}
			}
			asked = !q.Escalated
			answer, err := q.put(ctx, key, question, deadline)
			if q.Lapses && errors.Is(err, errDeadline) {
				asked = false
				return Reply{lapsed: deadline}, nil
			}
			given = answer
			return answer, err
		})
	}
	if err == nil && !onRecord.lapsed.IsZero() {
		return "", noAnswer(onRecord.lapsed)
	}
	if rec, ok := q.Steps.Recorder().(QuestionRecorder); ok && rec.Answered(question.ID) {
		asked = true
	}
	if err == nil && asked {
		from := onRecord
		if from.Via == "" && from.Text == given.Text {
			from = given
		}
		err = q.Events.Emit(ctx, event.Answer{ID: question.ID, Text: from.Text, TimedOut: from.Via == event.ViaTimeout, Via: from.Via, By: from.By, Here: from == given})
	}
	if err != nil {
		return onRecord.Text, err
	}
	return shown.meaning(onRecord.Text), nil
}

// put puts a question to the user, until the deadline, zero for none. The error wraps [ErrAnswered] if another process has the answer.
func (q Questions) put(ctx context.Context, key string, question ask.Question, deadline time.Time) (Reply, error) {
	if q.Escalated {
		return q.answer(ctx, question, deadline)
	}
	asked := event.Question{ID: question.ID, Kind: question.Form(), Text: question.Text, Options: question.Options, Deadline: deadline}
	if question.HasDefault {
		asked.Default = &question.Default
	}
	if err := q.keep(ctx, asked, q.Steps.Key(key), question); err != nil {
		return Reply{}, err
	}
	if err := q.Events.Emit(ctx, asked); err != nil {
		return Reply{}, err
	}
	rec, ok := q.Steps.Recorder().(QuestionRecorder)
	if !ok {
		return q.answer(ctx, question, deadline)
	}
	waitCtx, stop := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop(nil)
	watching.Go(func() { // ends with waitCtx, or with an answer
		for retry.Sleep(waitCtx, lookEvery) == nil {
			if rec.Replied(waitCtx, q.Steps.Key(key)) {
				stop(ask.ErrElsewhere)
			}
		}
	})
	answer, err := q.answer(waitCtx, question, deadline)
	if err != nil && errors.Is(context.Cause(waitCtx), ask.ErrElsewhere) || fault.CodeOf(err) == fault.Suspended && rec.Replied(ctx, q.Steps.Key(key)) {
		return Reply{}, ErrAnswered
	}
	return answer, err
}

// lookEvery is how often the record is looked at for an answer that another process gave.
const lookEvery = 200 * time.Millisecond

// Reply is the answer to a question, as it is on record: the text in JSON if no more is known, else an object.
type Reply struct {
	Text string    `json:"text"`
	Via  event.Via `json:"via,omitempty"`
	By   string    `json:"by,omitempty"` // the subject who answered; empty on the command line

	lapsed time.Time // when the time for an answer was over; zero for a question with an answer
}

// lapse is the record of a question that lapsed.
type lapse struct {
	Lapsed time.Time `json:"lapsed"`
}

// MarshalJSON implements [json.Marshaler].
func (r Reply) MarshalJSON() ([]byte, error) {
	type members Reply
	switch {
	case !r.lapsed.IsZero():
		return json.Marshal(lapse{r.lapsed})
	case r.Via == "" && r.By == "":
		return json.Marshal(r.Text)
	}
	return json.Marshal(members(r))
}

// UnmarshalJSON implements [json.Unmarshaler].
func (r *Reply) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &r.Text) == nil {
		return nil
	}
	type members Reply
	of := struct {
		*members
		lapse
	}{members: (*members)(r)}
	err := json.Unmarshal(data, &of)
	r.lapsed = of.Lapsed
	return err
}

// describe returns a question as records describe the step.
func describe(q ask.Question) any {
	d := struct {
		Text    string   `json:"text"`
		Options []string `json:"options,omitempty"`
		Default *string  `json:"default,omitempty"`
	}{Text: q.Text, Options: q.Options}
	if q.HasDefault {
		d.Default = &q.Default
	}
	return d
}

// keep puts a question on record as one that waits for the step with a full key.
func (q Questions) keep(ctx context.Context, asked event.Question, key string, question ask.Question) error {
	rec, ok := q.Steps.Recorder().(QuestionRecorder)
	if !ok {
		return nil
	}
	return rec.Asked(ctx, Pending{
		ID: asked.ID, Kind: asked.Kind, Item: question.Item, Key: key, Text: asked.Text, Options: asked.Options, Default: asked.Default, Deadline: asked.Deadline, Asked: q.now(),
		Open: question.Kind == ask.Choice && !question.Consent, Multi: question.Kind == ask.Multi, Rule: question.Rule, Schemas: question.Schemas, Assignees: question.Assignees,
	})
}

// errDeadline ends the wait for an answer.
var errDeadline = errors.New("no answer in time")

// answer waits for the user until the deadline, zero for none, from which on the answer is the default.
func (q Questions) answer(ctx context.Context, question ask.Question, deadline time.Time) (Reply, error) {
	waitCtx := ctx
	if !deadline.IsZero() {
		left := deadline.Sub(q.now())
		if left <= 0 {
			return defaultAnswer(question, deadline)
		}
		var cancel context.CancelFunc
		waitCtx, cancel = context.WithTimeoutCause(ctx, left, errDeadline)
		defer cancel()
	}
	asker := q.Asker
	if asker == nil {
		asker = ask.Unavailable{}
	}
	answer, err := asker.Ask(waitCtx, question)
	switch {
	case err == nil:
		return Reply{Text: answer, Via: viaOf(asker)}, nil
	case ctx.Err() != nil:
		return Reply{}, context.Cause(ctx)
	case errors.Is(context.Cause(waitCtx), errDeadline):
		return defaultAnswer(question, deadline)
	case errors.Is(err, ask.ErrUnavailable):
		return Reply{}, q.suspension(question, deadline)
	}
	return Reply{}, err
}

// viaOf returns the way in which an asker gets its answers.
func viaOf(a ask.Asker) event.Via {
	if v, ok := a.(interface{ Via() event.Via }); ok {
		return v.Via()
	}
	if ask.AtTerminal(a) {
		return event.ViaTerminal
	}
	return event.ViaCommand
}

func (q Questions) now() time.Time {
	if q.Now == nil {
		return time.Now()
	}
	return q.Now()
}

// defaultAnswer returns the answer to a question whose time is over.
func defaultAnswer(question ask.Question, deadline time.Time) (Reply, error) {
	if !question.HasDefault {
		return Reply{}, noAnswer(deadline)
	}
	return Reply{Text: question.Default, Via: event.ViaTimeout}, nil
}

// noAnswer is the failure of a question whose time is over.
func noAnswer(deadline time.Time) error {
	return fmt.Errorf("%w: the question expired at %s, and the node has no default", errDeadline, deadline.Local().Format(time.DateTime))
}

// suspension returns the error of work that has to wait for an answer.
func (q Questions) suspension(question ask.Question, deadline time.Time) error {
	waiting := fmt.Sprintf("%s waits for an answer to: %s", q.Waits, text.OneLine(cmp.Or(question.Subject, question.Text), 200))
	if !deadline.IsZero() && question.HasDefault {
		waiting += fmt.Sprintf(" (from %s on the default %q is taken)", deadline.Local().Format(time.DateTime), text.Cut(question.Default, 60))
	}
	f := fault.Wrap(fault.Suspended, &waitError{waiting, fmt.Sprintf("%s waits for an answer", q.Waits)}, "")
	answer := "answer it: loki --resume " + q.Events.Run + " --answer TEXT"
	if question.Subject != "" && len(question.Options) > 0 {
		answer = fmt.Sprintf("accept it: loki --resume %s --answer %s", q.Events.Run, text.Word(question.Options[0]))
	} else if question.Kind == ask.Multi {
		answer += ", with commas between several options"
	}
	const beforehand = "allow such calls with a rule under permission in config.yaml, or consent to all with --yes"
	switch {
	case q.Steps.Recording() && question.Consent && question.Subject == "":
		return f.WithHint("%s; to be asked less often, %s", answer, beforehand)
	case q.Steps.Recording():
		return f.WithHint("%s", answer)
	case question.Consent:
		return f.WithHint("run it in a terminal, %s", beforehand)
	}
	return f.WithHint("run it in a terminal, or pipe the answers in, one a line")
}

// waitError says that work waits for answers. The text quotes the questions, which the reason does not.
type waitError struct{ text, reason string }

func (e *waitError) Error() string { return e.text }

// id names a question within its run, for users to type: the place, and as short as possible
// what distinguishes it from the place's other questions. No other question of the run has the
// same id, as long as no other work has the same place.
func (q Questions) id(key string) string {
	full := strings.TrimPrefix(q.Steps.Key(key), q.Base)
	if full == ownKey {
		return q.Place
	}
	return q.Place + "/" + shortKey(full)
}

// shortKey shortens the key of a question that is not the work's own:
//
//	tool/1/2/consent/answer/1     1.2              may call 2 of turn 1 be made?
//	tool/1/2/call/answer/1        1.2              what the call itself asks
//	tool/1/2/call/question/1      1.2/call         the same of a call that had to be allowed first
//	tool/1/2/uncertain/answer/1   1.2/again        repeat the call?
//	uncertain/2                   again/2          the same of a script, asked a second time
//	attempt/2/tool/1/1/...        attempt/2/1.1
func shortKey(key string) string {
	key = toolPart().ReplaceAllString(key, "$1$2.$3$4")
	key = strings.Replace(key, "/consent/answer/", "/", 1)
	key = strings.Replace(key, "/call/answer/", "/", 1)
	key = strings.Replace(key, "/call/question/", "/call/", 1)
	key = strings.Replace(key, "uncertain/answer/", "uncertain/", 1)
	key = strings.Replace(key, "uncertain/", "again/", 1)
	return strings.TrimSuffix(key, "/1")
}

// toolPart is the part of a key that names a tool call: its turn and its place in it.
var toolPart = text.Regexp(`(^|/)tool/(\d+)/(\d+)(/)`)
