package runtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

func question(i int) run.Pending {
	p := run.Pending{
		ID: fmt.Sprintf("%s/1", nodeName(i)), Step: 1, Node: nodeName(i), Key: fmt.Sprintf("item/%d/question", i),
		Text: fmt.Sprintf("go <on> with %d?", i), Asked: at,
	}
	if i%2 == 0 {
		p.Options = []string{"yes", "no"}
	}
	if i%3 == 0 {
		p.Default = new(fmt.Sprint("default ", i))
		p.Deadline = at.AddDate(0, 0, i)
	}
	return p
}

// askedAgain asks questions again that wait, later and in other words: the later words count, and the first time.
func (s *suite) askedAgain() {
	j := s.begin()
	var want []run.Pending
	for i := range 2 {
		s.ok(j.Asked(s.Context(), question(i)))
		p := question(i)
		p.Text = "in other words"
		want = append(want, p)
	}
	for _, p := range want {
		p.Asked = p.Asked.Add(time.Hour)
		s.ok(j.Asked(s.Context(), p))
	}
	s.same("pending", s.history(j.ID()).Pending, want)
	s.ok(j.Close())
}

// closedStore closes a store with a run that is being run and one that is not: the lease
// ends.
func (s *suite) closedStore() {
	s.ok(s.begin().Close())
	j := s.begin()
	if err := context.Cause(j.Lease()); err != nil {
		s.Errorf("the lease ended before: %v", err)
	}
	s.ok(s.store.Close())
	if context.Cause(j.Lease()) == nil {
		s.Error("the lease goes on when the store is closed")
	}
	s.ok(s.store.Close()) // once more does no harm
}

// questions answers ten questions in random order, from outside, and resumes.
func (s *suite) questions() {
	ctx := s.Context()
	j := s.begin()
	var want []run.Pending
	for i := range 10 {
		want = append(want, question(i))
		s.ok(j.Asked(ctx, question(i)))
	}
	s.same("pending", s.history(j.ID()).Pending, want)
	s.ok(j.End(ctx, run.Ending{Status: run.Suspended}))
	s.ok(j.Close())
	s.reopen()
	s.same("pending after suspension", s.history(j.ID()).Pending, want)

	rnd := rand.New(rand.NewPCG(3, 0))
	for n, i := range rnd.Perm(10) {
		s.ok(s.store.Answer(ctx, j.ID()[:run.IDLength-1], question(i).ID, run.Reply{Text: fmt.Sprintf("answer \"%d\"", i)}))
		err := s.store.Answer(ctx, j.ID(), question(i).ID, run.Reply{Text: "another"})
		if !errors.Is(err, run.ErrAnswered) {
			s.Errorf("second answer: %v", err)
		}
		if n == 4 {
			s.reopen()
		}
		if got := len(s.history(j.ID()).Pending); got != 9-n {
			s.Errorf("%d questions are pending after %d answers", got, n+1)
		}
	}
	answered, err := s.store.Answered(ctx, j.ID())
	s.ok(err)
	s.same("answered", answered, want)
	j, _ = s.resume(j.ID())
	for i := range 10 {
		q := question(i)
		s.known(j.Task(1, q.Node), q.Key, done(text(fmt.Sprintf("answer \"%d\"", i))))
		s.known(j.Task(1, q.Node), "item/question", steps.Record{})
	}
	h := s.history(j.ID())
	if len(h.Steps) != 10 {
		s.Fatalf("%d steps are on record, want 10", len(h.Steps))
	}
	for i, st := range h.Steps {
		if st.Kind != steps.Question || !st.Done || st.Number != i+1 {
			s.Errorf("step %+v", st)
		}
	}
	s.record(j.Task(1, "a"), "next", `1`)
	if h = s.history(j.ID()); h.Steps[10].Number != 11 {
		s.Errorf("the step after the answers has number %d", h.Steps[10].Number)
	}
}

// openedUnless opens a run that must not have some statuses: what refuses it leaves it as it is.
func (s *suite) openedUnless() {
	ctx := s.Context()
	j := s.begin()
	for _, status := range []run.Status{run.Canceled, run.Suspended} {
		s.ok(j.End(ctx, run.Ending{Status: status}))
		s.ok(j.Close())
		ended := new(run.EndedError)
		if _, _, err := s.store.Open(ctx, j.ID(), run.Failed, status); !errors.As(err, &ended) || ended.Status != status {
			s.Errorf("opened although it is %s: %v", status, err)
		}
		if info, err := s.store.Info(ctx, j.ID()); err != nil || info.Status != status || info.Active {
			s.Errorf("it is %+v afterwards, %v", info, err)
		}
		next, _, err := s.store.Open(ctx, j.ID(), run.Failed)
		s.ok(err)
		j = next
	}
	s.ok(j.Close())
}

// questionEnds checks the ways in which a question is over.
func (s *suite) questionEnds() {
	ctx := s.Context()
	j := s.begin()
	for i := range 3 {
		s.ok(j.Asked(ctx, question(i)))
	}
	again := question(1)
	again.Text = "asked again"
	s.ok(j.Asked(ctx, again))
	s.same("asked again", s.history(j.ID()).Pending, []run.Pending{question(0), again, question(2)})

	s.record(j.Task(1, nodeName(0)), question(0).Key, `"from the terminal"`)
	s.record(j.Task(1, nodeName(2)), "another/question", `"else"`)
	s.record(j.Task(1, "z"), question(2).Key, `"else"`)
	s.record(j.Task(2, nodeName(2)), question(2).Key, `"else"`)
	s.same("after an answer", s.history(j.ID()).Pending, []run.Pending{again, question(2)})

	later := question(5)
	later.Step = 2
	s.ok(j.Asked(ctx, later))
	s.ok(j.Commit(ctx, run.Checkpoint{Step: 1, State: state()}, nil))
	s.same("after the commit", s.history(j.ID()).Pending, []run.Pending{later})
	s.ok(j.Close())
	s.code("answer to a question whose super-step is over", s.store.Answer(ctx, j.ID(), again.ID, run.Reply{Text: "x"}), fault.NotFound)
	if err := s.store.Answer(ctx, j.ID(), question(0).ID, run.Reply{Text: "x"}); !errors.Is(err, run.ErrAnswered) {
		s.Errorf("answer to a question that the run has seen answered: %v", err)
	}
	j, _ = s.resume(j.ID())
	s.ok(j.End(ctx, run.Ending{Status: run.Done}))
	s.ok(j.Close())
	if p := s.history(j.ID()).Pending; len(p) > 0 {
		s.Errorf("a run that is done waits for %+v", p)
	}
	if _, ok := errors.AsType[*run.EndedError](s.store.Answer(ctx, j.ID(), later.ID, run.Reply{Text: "x"})); !ok {
		s.Error("a question of a run that is done was answered")
	}
}

// firstAnswer answers questions of a run that a journal holds, from outside and from within, in both orders. The first answer counts.
func (s *suite) firstAnswer() {
	ctx := s.Context()
	j := s.begin()
	for i := range 3 {
		s.ok(j.Asked(ctx, question(i)))
	}
	record := func(i int, result string) error {
		return j.Task(1, nodeName(i)).Record(ctx, question(i).Key, steps.Step{Kind: steps.Question, Key: question(i).Key, Name: question(i).ID}, []byte(result))
	}
	outside := run.Reply{Text: "from outside", Via: "page", By: "ann"}
	s.ok(s.store.Answer(ctx, j.ID(), question(0).ID, outside))
	if err := record(0, `"from within"`); !errors.Is(err, run.ErrAnswered) {
		s.Errorf("an answer from within to a question that has one: %v", err)
	}
	s.known(j.Task(1, nodeName(0)), question(0).Key, done(`{"text":"from outside","via":"page","by":"ann"}`))
	s.ok(record(1, `"from within"`))
	if err := s.store.Answer(ctx, j.ID(), question(1).ID, outside); !errors.Is(err, run.ErrAnswered) {
		s.Errorf("an answer from outside to a question that has one: %v", err)
	}
	s.record(j.Task(1, "a"), "next", `1`)
	s.known(j.Task(1, nodeName(1)), question(1).Key, done(`"from within"`))
	s.same("waiting", s.history(j.ID()).Pending, []run.Pending{question(2)})

	// The answer comes right before the work withdraws the question, and is not looked at.
	s.ok(s.store.Answer(ctx, j.ID(), question(2).ID, outside))
	s.ok(j.Commit(ctx, run.Checkpoint{Step: 1, State: state()}, nil))
	s.record(j.Task(2, "b"), "next", `2`)
	s.ok(j.Close())
	last := 0
	for _, st := range s.history(j.ID()).Steps {
		if st.Number <= last {
			s.Errorf("step %q has the number %d, after %d", st.Key, st.Number, last)
		}
		last = st.Number
	}

	// Many at once.
	j = s.begin()
	for i := range 10 {
		s.ok(j.Asked(ctx, question(i)))
	}
	var wg sync.WaitGroup
	for i := range 10 {
		var won atomic.Int32
		count := func(err error) {
			switch {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, run.ErrAnswered):
				s.Errorf("answer to question %d: %v", i, err)
			}
		}
		for n := range 4 {
			wg.Go(func() {
				if n == 0 {
					count(record(i, `"from within"`))
					return
				}
				count(s.store.Answer(ctx, j.ID(), question(i).ID, run.Reply{Text: fmt.Sprint(n), Via: "rest"}))
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			s.Errorf("%d answers to question %d won", won.Load(), i)
		}
	}
	s.ok(j.Close())
}

func (s *suite) answerErrors() {
	ctx := s.Context()
	j := s.begin()
	s.ok(j.Asked(ctx, question(0)))
	s.ok(j.Close())
	s.code("unknown question", s.store.Answer(ctx, j.ID(), "other/1", run.Reply{Text: "x"}), fault.NotFound)

	var won, lost atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			switch err := s.store.Answer(ctx, j.ID(), question(0).ID, run.Reply{Text: "x"}); {
			case err == nil:
				won.Add(1)
			case errors.Is(err, run.ErrAnswered):
				lost.Add(1)
			default:
				s.Errorf("answer: %v", err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || lost.Load() != 7 {
		s.Errorf("of 8 answers at once %d won and %d came too late", won.Load(), lost.Load())
	}
}

func (s *suite) lease() {
	ctx := s.Context()
	j := s.begin()
	_, _, err := s.store.Open(ctx, j.ID())
	s.leased("open of a new run", err)
	s.ok(j.End(ctx, run.Ending{Status: run.Suspended}))
	_, _, err = s.store.Open(ctx, j.ID())
	s.leased("open before the close", err)
	s.ok(j.Close())
	s.ok(j.Close())

	var opened atomic.Int32
	var wg sync.WaitGroup
	var mu sync.Mutex
	var holder run.Journal
	for range 8 {
		wg.Go(func() {
			k, _, err := s.store.Open(ctx, j.ID())
			if err != nil {
				s.leased("open at once", err)
				return
			}
			opened.Add(1)
			mu.Lock()
			holder = k
			mu.Unlock()
		})
	}
	wg.Wait()
	if opened.Load() != 1 {
		s.Fatalf("%d of 8 opened the run at once", opened.Load())
	}
	if i := s.info(j.ID()); !i.Active || i.Status != run.Running {
		s.Errorf("an opened run is %s, active %v", i.Status, i.Active)
	}
	s.ok(holder.Close())
	if i := s.info(j.ID()); i.Active || i.Status != run.Running {
		s.Errorf("an interrupted run is %s, active %v", i.Status, i.Active)
	}
	k, _ := s.resume(j.ID())
	s.ok(k.Close())
}

// takenOver checks that a journal which lost its lease writes nothing any more, finds
// that by itself and harms the one that has it now in no way.
func (s *suite) takenOver() {
	ctx := s.Context()
	j := s.begin()
	r := j.Task(1, "a")
	s.record(r, "before", `1`)
	s.ok(j.Confirm(ctx))
	s.ok(context.Cause(j.Lease()))
	k := s.takeOver(s.T, s.store, j.ID())
	defer k.Close()
	for name, write := range map[string]func() error{
		"record":   func() error { return r.Record(ctx, "late", steps.Step{}, []byte(`1`)) },
		"begin":    func() error { return r.Begin(ctx, "late", steps.Step{}) },
		"forget":   func() error { return r.Forget(ctx, "before") },
		"finished": func() error { return j.Finished(ctx, run.TaskRecord{Step: 1}) },
		"commit":   func() error { return j.Commit(ctx, run.Checkpoint{Step: 1}, nil) },
		"asked":    func() error { return j.Asked(ctx, question(0)) },
		"end":      func() error { return j.End(ctx, run.Ending{Status: run.Done}) },
		"gap":      func() error { return j.Gap(ctx, run.Gap{Step: 1}) },
	} {
		if err := write(); !errors.Is(err, run.ErrLeaseLost) {
			s.Errorf("%s after the run was taken over: %v", name, err)
		}
		// One write is enough to know.
		if err := context.Cause(j.Lease()); !errors.Is(err, run.ErrLeaseLost) {
			s.Errorf("after %s was refused the lease ends with %v", name, err)
		}
		if err := j.Confirm(ctx); !errors.Is(err, run.ErrLeaseLost) {
			s.Errorf("after %s was refused the lease is confirmed: %v", name, err)
		}
	}
	s.ok(j.Close())
	s.ok(k.Confirm(ctx))
	s.record(k.Task(1, "a"), "after", `2`)
	s.ok(k.Commit(ctx, run.Checkpoint{Step: 1, State: state("n", 1)}, nil))
	s.ok(k.Close())
	h := s.history(j.ID())
	if len(h.Steps) != 2 || h.Steps[0].Key != "before" || h.Steps[1].Key != "after" || h.Info.Steps != 1 || len(h.Pending) > 0 || h.Info.Status != run.Running || h.Info.Gap != nil {
		s.Errorf("the record is %+v", h)
	}
}

// takeovers has process after process die at a run, and counts those at whose death nothing was new on record.
func (s *suite) takeovers() {
	ctx := s.Context()
	j := s.begin()
	works := func() {
		s.Helper()
		s.ok(j.Working(ctx))
	}
	dies := func(what string, want int) {
		s.Helper()
		j = s.takeOver(s.T, s.store, j.ID())
		s.Cleanup(func() { _ = j.Close() })
		if got := s.history(j.ID()).Info.Takeovers; got != want || s.info(j.ID()).Takeovers != want {
			s.Errorf("%s: %d takeovers, want %d", what, got, want)
		}
	}
	rests := func(what string, want int) {
		s.Helper()
		s.ok(j.Close())
		var found run.Recovery
		if j, found = s.resume(j.ID()); found.Info.Takeovers != want {
			s.Errorf("%s: %d takeovers, want %d", what, found.Info.Takeovers, want)
		}
	}
	dies("it had no turn", 0)
	works()
	dies("its first turn", 1)
	dies("it had no turn since then", 1)
	works()
	s.ok(j.Task(1, "a").Begin(ctx, "effect", steps.Step{Kind: steps.Tool, Effect: true}))
	dies("an effect was begun only", 2)
	works()
	rests("given back", 2)
	works()
	s.ok(j.Task(1, "a").Begin(ctx, "effect", steps.Step{Kind: steps.Tool, Effect: true}))
	dies("the same effect", 3)
	works()
	s.record(j.Task(1, "a"), "effect", `1`)
	dies("a step", 1)
	works()
	dies("no other one", 2)
	works()
	s.ok(j.Finished(ctx, run.TaskRecord{Step: 1, Result: graph.Result{Node: "a"}, Visit: run.Visit{Step: 1, Node: "a", Number: 1}}))
	dies("a task", 1)
	works()
	s.ok(j.Commit(ctx, run.Checkpoint{Step: 1, State: state("n", 1), Position: run.Position{Frontier: []string{"a"}}}, nil))
	dies("a super-step", 1)
	works()
	dies("no other super-step", 2)
	works()
	s.record(j.Task(2, "a"), "1", `1`)
	rests("given back after a step", 0)
	works()
	dies("before another one", 1)
	works()
	s.ok(j.End(ctx, run.Ending{Status: run.Failed, Error: "e"}))
	rests("it failed", 0)
	works()
	s.ok(j.End(ctx, run.Ending{Status: run.Suspended}))
	dies("it was suspended", 0)
}

// gap notes that a part of a run is not on record.
func (s *suite) gap() {
	ctx := s.Context()
	for _, status := range []run.Status{"", run.Suspended, run.Failed, run.Done} {
		j := s.begin()
		s.ok(j.Asked(ctx, question(0)))
		s.ok(j.Commit(ctx, run.Checkpoint{Step: 1, State: state("n", 1)}, nil))
		s.ok(j.Asked(ctx, question(1)))
		s.ok(j.Gap(ctx, run.Gap{Reason: "the disk is full", Step: 1}))
		want := run.Gap{Reason: "the disk is full", Since: at.UTC(), Step: 1, Nodes: map[string]int{"a": 3}, Status: status, Error: strings.Repeat("e", 3000)}
		s.ok(j.Gap(ctx, want))
		s.ok(j.Close())
		s.reopen()
		info := s.history(j.ID()).Info
		if info.Gap == nil {
			s.Fatalf("%q: there is no gap on record", status)
		}
		s.same("gap", *info.Gap, want)
		if status != "" && (info.Status != status || info.Error != want.Error) {
			s.Errorf("the run is %s with error %.20q, want %s", info.Status, info.Error, status)
		}
		listed := s.info(j.ID())
		if listed.Gap == nil || listed.Status != info.Status {
			s.Errorf("listed is %+v", listed)
		}
		refused := func(what string, err error) {
			s.Helper()
			if status == run.Done {
				if _, ok := errors.AsType[*run.EndedError](err); !ok {
					s.Errorf("%s of a run that is done: %v", what, err)
				}
				return
			}
			e, ok := errors.AsType[*run.GapError](err)
			if !ok || e.ID != j.ID() || e.Gap.Step != 1 || !strings.Contains(e.Error(), "the disk is full") {
				s.Errorf("%s of a run with a gap: %v", what, err)
			}
		}
		_, _, err := s.store.Open(ctx, j.ID())
		refused("open", err)
		refused("answer", s.store.Answer(ctx, j.ID(), question(1).ID, run.Reply{Text: "yes"}))
		if status == run.Done {
			s.deletes([]string{j.ID()}, j.ID())
			continue
		}
		s.ok(s.store.AcceptGap(ctx, j.ID()))
		k, found := s.resume(j.ID())
		if found.Info.Gap != nil || found.Last.Step != 1 {
			s.Errorf("after the gap was accepted, found is %+v", found)
		}
		s.leased("accepting the gap of a run at work", s.store.AcceptGap(ctx, j.ID()))
		s.ok(k.Commit(ctx, next(found.Last, state("n", 2)), nil))
		s.ok(k.End(ctx, run.Ending{Status: run.Done}))
		s.ok(k.Close())
		s.reopen()
		if info := s.info(j.ID()); info.Gap != nil || info.Status != run.Done || info.Steps != 2 {
			s.Errorf("gone on with, the run is %+v", info)
		}
	}
	s.code("accepting a gap of an unknown run", s.store.AcceptGap(ctx, "00000000"), fault.NotFound)
}

func (s *suite) closedJournal() {
	ctx := s.Context()
	j := s.begin()
	r := j.Task(1, "a")
	s.ok(j.Close())
	j.Event(event.Event{Time: at, Body: event.Warning{Text: "nobody hears"}})
	for name, err := range map[string]error{
		"record":   r.Record(ctx, "k", steps.Step{}, []byte(`1`)),
		"begin":    r.Begin(ctx, "k", steps.Step{}),
		"forget":   r.Forget(ctx, "k"),
		"lookup":   second(r.Lookup(ctx, "k", steps.Step{})),
		"finished": j.Finished(ctx, run.TaskRecord{Step: 1}),
		"commit":   j.Commit(ctx, run.Checkpoint{Step: 1}, nil),
		"asked":    j.Asked(ctx, question(0)),
		"end":      j.End(ctx, run.Ending{Status: run.Done}),
		"gap":      j.Gap(ctx, run.Gap{}),
		"confirm":  j.Confirm(ctx),
		"lease":    context.Cause(j.Lease()),
	} {
		if !errors.Is(err, run.ErrClosed) {
			s.Errorf("%s on a closed journal: %v", name, err)
		}
	}
	s.ok(j.Close())
	h := s.history(j.ID())
	if len(h.Steps)+len(h.Events)+len(h.Pending) > 0 || h.Info.Steps > 0 || h.Info.Status != run.Running {
		s.Errorf("a closed journal wrote %+v", h)
	}
}
