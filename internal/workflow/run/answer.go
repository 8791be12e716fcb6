package run

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/base/fault/steps"
	"loki/internal/base/value"
	"loki/internal/base/value/schema"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
)

// giveAnswers records the answers the user gave on the command line, and returns the
// questions they are to.
func giveAnswers(ctx context.Context, store Store, id string, r Resumption) (questions []string, err error) {
	if !r.answers() {
		return nil, nil
	}
	h, err := store.History(ctx, id)
	if err != nil {
		return nil, err
	}
	answers := r.Answers
	switch {
	case len(r.Typed) > 0:
		if answers, err = TypedAnswers(id, ids(h.Pending), h.answered, r.Typed); err != nil {
			return nil, err
		}
	case r.Answer != nil && len(h.Pending) > 1:
		return nil, severalWait(id, ids(h.Pending))
	case r.Answer != nil && len(h.Pending) == 1:
		answers = map[string]string{h.Pending[0].ID: *r.Answer}
	}
	if err := NotLists(h.Pending, r.Lists); err != nil {
		return nil, err
	}
	return recordAnswers(ctx, store, h, answers, func(question, text string) error {
		reply := Reply{Text: text, Via: cmp.Or(r.Via, event.ViaCommand), By: r.By}
		return patiently(ctx, r.Events, func() error { return store.Answer(ctx, id, question, reply) })
	})
}

// AcceptTyped is Accept for answers that users typed, see [TypedAnswers].
func (h History) AcceptTyped(answers []string, now time.Time) (accepted map[string]string, err error) {
	byID, err := TypedAnswers(h.Info.ID, ids(h.Pending), h.answered, answers)
	if err != nil {
		return nil, err
	}
	return h.Accept(byID, now)
}

// AnswerOnRecord records answers, by the ids of the questions, of a run that any process may hold. Work that waits for one of them
// takes it soon; others are used when the run resumes after it has come to rest. Of from only Via and By count.
func AnswerOnRecord(ctx context.Context, store Store, id string, answers map[string]string, from Reply) error {
	h, err := store.History(ctx, id)
	if err == nil {
		_, err = recordAnswers(ctx, store, h, answers, func(question, text string) error {
			from.Text = text
			return store.Answer(ctx, id, question, from)
		})
	}
	return err
}

// recordAnswers calls record with each of the answers, and returns the questions they are to.
func recordAnswers(ctx context.Context, store Store, h History, answers map[string]string, record func(question, text string) error) (questions []string, err error) {
	if err := h.Waits(ctx, store, answers); err != nil {
		return nil, err
	}
	accepted, err := h.Accept(answers, time.Now())
	if err != nil {
		return nil, err
	}
	for _, p := range h.Pending {
		if text, ok := accepted[p.ID]; ok {
			if err := record(p.ID, text); errors.Is(err, ErrAnswered) {
				return nil, AnsweredBefore(ctx, store, h.Info.ID, p.ID)
			} else if err != nil {
				return nil, refusal(err, h.Info.Kind)
			}
			questions = append(questions, p.ID)
		}
	}
	return questions, nil
}

// Waits returns an error unless the run waits for each of the answers, by the ids of their questions. It is a
// [*RefusedError] if a question was answered before, and then says how.
func (h History) Waits(ctx context.Context, store Store, answers map[string]string) error {
	return h.waits(answers, func(question string) *fault.Error { return answeredBefore(ctx, store, h.Info.ID, question) })
}

// waits is Waits. Late returns the failure of a second answer.
func (h History) waits(answers map[string]string, late func(question string) *fault.Error) error {
	waiting := ids(h.Pending)
	for _, id := range slices.Sorted(maps.Keys(answers)) {
		hint := "waiting: " + strings.Join(waiting, ", ")
		switch {
		case slices.Contains(waiting, id):
		case h.answered(id) && len(waiting) > 0:
			return &RefusedError{late(id).WithHint("%s", hint)}
		case h.answered(id):
			return &RefusedError{late(id).WithHint("%s", h.next())}
		case len(waiting) > 0:
			return fault.New(fault.Usage, "run %s has no waiting question %q", h.Info.ID, id).WithHint("%s", hint).ThatMisses("question")
		}
	}
	if len(waiting) > 0 {
		return nil
	}
	for _, s := range slices.Backward(h.Steps) { // the answer names no question
		if s.Kind == steps.Question {
			return &RefusedError{late(s.Name).WithHint("%s", h.next())}
		}
	}
	return &RefusedError{fault.New(fault.Usage, "run %s waits for no answer: it asks nothing", h.Info.ID).WithHint("%s", h.next())}
}

// next says what to do with a run that waits for no answer.
func (h History) next() string {
	switch {
	case h.Info.Active:
		return "it is at work; see how far it has come: loki --run " + h.Info.ID
	case h.Info.Status == Done:
		return "it is done; " + outputHint(h.Info.ID, h.Info.Kind)
	}
	return "resume it: loki --resume " + h.Info.ID
}

// AnsweredBefore returns the failure of a second answer to a question.
func AnsweredBefore(ctx context.Context, store Store, id, question string) *RefusedError {
	return &RefusedError{answeredBefore(ctx, store, id, question)}
}

// answeredBefore is AnsweredBefore. It says how the first answer came, if the record does.
func answeredBefore(ctx context.Context, store Store, id, question string) *fault.Error {
	h, _ := store.History(ctx, id) // without it, there are no steps
	for _, s := range h.Steps {
		var first Reply
		if s.Kind != steps.Question || s.Name != question {
			continue
		}
		if data, err := store.Step(ctx, id, s.Number); err == nil && json.Unmarshal(data, &first) == nil && first.Via != "" {
			return fault.New(fault.Usage, "question %q of run %s was answered by %s", question, id, first.Via)
		}
	}
	return answeredWithout(id, question)
}

func answeredWithout(id, question string) *fault.Error {
	return fault.New(fault.Usage, "question %q of run %s has an answer already", question, id)
}

// Accept returns what texts, by the ids of questions, mean as the answers to questions that wait at now. A recorded answer
// cannot be changed, so all are looked at before one is recorded.
func (h History) Accept(answers map[string]string, now time.Time) (accepted map[string]string, err error) {
	if err := h.waits(answers, func(question string) *fault.Error { return answeredWithout(h.Info.ID, question) }); err != nil {
		return nil, err
	}
	accepted = make(map[string]string, len(answers))
	for _, p := range h.Pending {
		text, ok := answers[p.ID]
		if !ok {
			continue
		}
		if err := inTime(h.Info.ID, p, now); err != nil {
			return nil, err
		}
		if accepted[p.ID], err = accept(p, text); err != nil {
			return nil, fault.Wrap(fault.Usage, err, "the answer to %s cannot be taken", p.ID)
		}
	}
	return accepted, nil
}

// NotLists returns an error if one of the questions that have a list of texts as their answer takes a single answer.
func NotLists(pending []Pending, lists []string) error {
	for _, p := range pending {
		if slices.Contains(lists, p.ID) && !p.Multi {
			return fault.New(fault.Usage, "the answer to %s cannot be taken: one answer is expected, and not a list", p.ID)
		}
	}
	return nil
}

// Unheard returns the questions of a run that have an answer on record, but no event that says so, because the process that
// recorded the answer ended before the work took it.
func Unheard(ctx context.Context, store Store, id string) (silent []string, err error) {
	answered, err := store.Answered(ctx, id)
	if err != nil || len(answered) == 0 {
		return nil, err
	}
	asked := make(map[string]bool)
	const page = 1000
	for after, more := 0, true; more; {
		events, err := store.Events(ctx, id, after, page)
		if err != nil {
			return nil, err
		}
		more = len(events) == page
		for _, ev := range events {
			after = ev.Number
			if !bytes.HasPrefix(ev.JSON, questionEvent) && !bytes.HasPrefix(ev.JSON, answerEvent) {
				continue
			}
			switch parsed, err := event.Parse(ev.JSON); b := parsed.Body.(type) {
			case event.Question:
				asked[b.ID] = err == nil
			case event.Answer:
				delete(asked, b.ID)
			}
		}
	}
	for _, p := range answered {
		if asked[p.ID] {
			silent = append(silent, p.ID)
		}
	}
	return silent, nil
}

// How events begin that are on record.
var (
	questionEvent = []byte(`{"type":"` + event.Question{}.Type() + `"`)
	answerEvent   = []byte(`{"type":"` + event.Answer{}.Type() + `"`)
)

// answered reports whether the run has an answer to a question.
func (h History) answered(id string) bool {
	return slices.ContainsFunc(h.Steps, func(s StepRecord) bool { return s.Kind == steps.Question && s.Name == id })
}

// TypedAnswers returns the answers that users typed, by the ids of their questions, of which waiting are those of the run that
// wait: each is QUESTION=TEXT, or the only one is the TEXT for the only question. With answered, if it is not nil, QUESTION=TEXT
// for a question that has its answer is not taken for the text of another one.
func TypedAnswers(run string, waiting []string, answered func(id string) bool, typed []string) (map[string]string, error) {
	answers := make(map[string]string)
	for _, text := range typed {
		id := ""
		for _, name := range waiting {
			if strings.HasPrefix(text, name+"=") && len(name) > len(id) {
				id = name
			}
		}
		other, _, named := strings.Cut(text, "=")
		switch {
		case id != "":
			text = text[len(id)+1:]
		case named && answered != nil && answered(other):
			id = other // which is refused
		case len(waiting) == 0:
			return answers, nil // likewise
		case len(waiting) > 1:
			return nil, severalWait(run, waiting)
		default:
			id = waiting[0]
		}
		if _, twice := answers[id]; twice {
			return nil, fault.New(fault.Usage, "question %q has two answers", id).WithHint("give each question of run %s one: %s=TEXT", run, waiting[0])
		}
		answers[id] = text
	}
	return answers, nil
}

// severalWait is the failure of an answer that does not say which question it is to.
func severalWait(run string, waiting []string) error {
	return fault.New(fault.Usage, "%d questions of run %s wait: %s", len(waiting), run, strings.Join(waiting, ", ")).
		WithHint("answer one of them with --answer %s=TEXT, or answer them with --answers FILE, a YAML file with a line for each: %[1]s: ANSWER", waiting[0])
}

// ids returns the ids of questions.
func ids(waiting []Pending) []string {
	list := make([]string, len(waiting))
	for i, p := range waiting {
		list[i] = p.ID
	}
	return list
}

// inTime refuses an answer that is given at now to a question of run id whose time is over.
func inTime(id string, p Pending, now time.Time) error {
	if p.Deadline.IsZero() || now.Before(p.Deadline) {
		return nil
	}
	err := fault.New(fault.Usage, "the answer to %s comes too late: its time was over at %s", p.ID, p.Deadline.Local().Format(time.DateTime))
	if p.Default == nil {
		return err.WithHint("the question has no default, so its node fails; resume with that: loki --resume %s", id)
	}
	return err.WithHint("resume with the default, %q: loki --resume %s", *p.Default, id)
}

// Question returns a question on record as a user is asked it in another place.
func (p Pending) Question() ask.Question {
	asked := ask.Question{ID: p.ID, Kind: ask.Text, Text: p.Text, Node: p.Node, Options: p.Options}
	if p.Item != nil {
		asked.Map, asked.Item = p.Node, p.Item
	}
	switch {
	case p.Kind == "secret":
		asked.Kind = ask.Secret
	case p.Multi:
		asked.Kind = ask.Multi
	case len(p.Options) > 0 && p.Open:
		asked.Kind = ask.Choice
	case len(p.Options) > 0:
		asked.Kind = ask.Select
		// Of an older release, what may be a tool's question for consent is one: a record does not say.
		permits := len(p.Options) > 1 && slices.Equal(p.Options[:2], []string{"yes", "no"})
		asked.Consent = p.Kind == "consent" || p.Kind == "" && permits
		asked.Lasts = asked.Consent && !permits // nor which answer grants more, such as one to a plan
	}
	if p.Default != nil {
		asked.Default, asked.HasDefault = *p.Default, true
	}
	return asked
}

// WhileOpen returns a context that ends, with [ask.ErrElsewhere] as its cause, once a question of a run that rests waits no more. The caller calls stop.
func WhileOpen(ctx context.Context, store Store, id, question string) (waiting context.Context, stop func()) {
	waiting, end := context.WithCancelCause(ctx)
	var looking sync.WaitGroup
	looking.Go(func() { // ends with waiting
		for answered := 0; retry.Sleep(waiting, lookEvery) == nil; {
			pending, err := store.Pending(waiting, id)
			if err != nil || slices.Contains(ids(pending), question) {
				continue
			}
			answered++ // who answered resumes the run, soon
			if info, err := store.Info(waiting, id); answered > 3 || err == nil && (info.Active || info.Status != Suspended) {
				end(ask.ErrElsewhere)
			}
		}
	})
	return waiting, func() {
		end(nil)
		looking.Wait()
	}
}

// accept returns what a text means as the answer to a question.
func accept(p Pending, text string) (string, error) {
	q := ask.Question{Kind: ask.Text, Options: p.Options}
	switch {
	case p.Multi:
		q.Kind = ask.Multi
	case len(p.Options) > 0:
		q.Kind = ask.Choice
	}
	if p.Default != nil {
		q.Default, q.HasDefault = *p.Default, true
	}
	answer, err := q.Match(text)
	switch {
	case err != nil:
		return "", err
	case q.Kind == ask.Choice && !p.Open && !slices.Contains(p.Options, answer):
		return "", fmt.Errorf("it must be one of %s", strings.Join(p.Options, ", "))
	case text == "" && q.HasDefault:
		return answer, nil
	case p.Rule != "":
		valid, err := graph.ParsePredicate(p.Rule)
		if err == nil && !valid.Holds(answer) {
			err = fmt.Errorf("it must satisfy %s", p.Rule)
		}
		if err != nil {
			return answer, err
		}
	}
	return answer, FitsSchemas(answer, p.Schemas)
}

// FitsSchemas returns what keeps an answer from fitting one of the JSON Schemas, nil if it fits all of them.
func FitsSchemas(answer string, schemas []value.Value) error {
	for _, s := range schemas {
		form, err := schema.Compile(s)
		if err != nil {
			return err
		}
		if wrong := form.Validate(value.Of(answer)); wrong != nil {
			return fmt.Errorf("it cannot be stored in the state: %s", schema.List(wrong, "; "))
		}
	}
	return nil
}
