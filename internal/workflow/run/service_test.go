package run_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
)

// lasting is a store that stays open: it stands for a file that outlives the services.
type lasting struct {
	run.Store
	opens error // of Open, if not nil
}

func (lasting) Close() error { return nil }

func (s lasting) Open(ctx context.Context, id string, unless ...run.Status) (run.Journal, run.Recovery, error) {
	if s.opens != nil {
		return nil, run.Recovery{}, s.opens
	}
	return s.Store.Open(ctx, id, unless...)
}

// attempt is work that is one task and ends with the next of the errors.
type attempt struct{ errs []error }

func (*attempt) Started() event.Started { return event.Started{} }

func (w *attempt) Do(ctx context.Context, f *run.Frame) (run.Outcome, error) {
	err := w.errs[0]
	w.errs = w.errs[1:]
	_, stepErr := steps.Do(ctx, f.Steps(), steps.Step{Kind: steps.Note, Key: fmt.Sprintf("left/%d", len(w.errs))}, func(context.Context) (int, error) { return 0, nil })
	return run.Outcome{Output: "done"}, errors.Join(err, stepErr)
}

// job is a job of a chat whose work is w.
func job(w run.Work, events event.Emitter) run.Job {
	return run.Job{
		Info: run.Info{Kind: run.ChatRun, Agent: "chat"}, Durability: graph.DurabilityProcess, Events: event.NewScope(events, event.Source{}, nil),
		Make: func(context.Context, run.Point) (run.Work, func() error, error) { return w, nil, nil },
	}
}

// service has a store and recalls j for every run.
func service(store run.Store, j run.Job) *run.Service {
	return &run.Service{
		Open:   func(graph.Durability) (run.Store, error) { return store, nil },
		Recall: func(context.Context, run.Info, run.Checkpoint, run.Continuation) (run.Job, error) { return j, nil },
	}
}

func TestServiceStartsAndResumes(t *testing.T) {
	boom := errors.New("boom")
	j := job(&attempt{errs: []error{boom, nil}}, nil)
	s := service(lasting{Store: memstore.New(nil)}, j)
	out, err := s.Start(t.Context(), j)
	if !errors.Is(err, boom) || fault.HintOf(err) != "resume it where it stopped: loki --resume "+out.Run {
		t.Errorf("error %v, hint %q", err, fault.HintOf(err))
	}
	again, err := s.Resume(t.Context(), run.Resumption{Continuation: run.Continuation{ID: out.Run}})
	if err != nil || again.Run != out.Run || again.Output != "done" {
		t.Errorf("outcome %+v, %v", again, err)
	}
	_, err = s.Resume(t.Context(), run.Resumption{Continuation: run.Continuation{ID: out.Run}})
	if _, ended := errors.AsType[*run.EndedError](err); !ended || fault.CodeOf(err) != fault.Usage || strings.Contains(fault.HintOf(err), "--fork") {
		t.Errorf("a chat that is done: %v, hint %q", err, fault.HintOf(err))
	}
	if _, err := s.Fork(t.Context(), run.Fork{Continuation: run.Continuation{ID: out.Run}, Step: -1}); fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), "is the answer to one question") {
		t.Errorf("fork of a chat: %v", err)
	}
}

// spends is work whose only call needs 50 tokens.
type spends struct{ budget *run.Budget }

func (spends) Started() event.Started { return event.Started{} }

func (w spends) Do(ctx context.Context, _ *run.Frame) (run.Outcome, error) {
	settle, err := w.budget.Reserve(ctx, usage(50), usage(50), true)
	if err == nil {
		settle(usage(50))
	}
	return run.Outcome{Output: "done"}, err
}

// TestBudgetOfRequest has a run of a server stop at the budget that a client asked for. That holds wherever the run goes on, until it is
// raised, and does not widen the budget of the agent.
func TestBudgetOfRequest(t *testing.T) {
	j := job(nil, nil)
	j.Limit, j.LimitIn = graph.Budget{Tokens: 60}, "the agent's"
	j.Make = func(_ context.Context, p run.Point) (run.Work, func() error, error) {
		return spends{p.Budget}, nil, nil
	}
	store := lasting{Store: memstore.New(nil)}
	atTerminal, server := service(store, j), service(store, j)
	server.Enter = func(ctx context.Context, _ run.Journal, _ run.Info) (context.Context, func(context.Context) error, func()) {
		return ctx, nil, func() {}
	}
	asks := j
	asks.Info.Terms = &run.Terms{Yes: true, Budget: graph.Budget{Tokens: 20, USD: 5}}
	out, err := server.Start(t.Context(), asks)
	more := "raise the budget of the request: loki --resume " + out.Run + " --budget AMOUNT"
	refused := func(where string, err error, hint string) {
		t.Helper()
		if fault.CodeOf(err) != fault.Limit || !strings.Contains(fault.HintOf(err), hint) {
			t.Errorf("%s: %v, hint %q", where, err, fault.HintOf(err))
		}
	}
	resume := func(s *run.Service, budget graph.Budget) error {
		_, err := s.Resume(t.Context(), run.Resumption{Continuation: run.Continuation{ID: out.Run, Budget: budget}})
		return err
	}
	refused("at the server", err, more)
	refused("again", resume(server, graph.Budget{}), more)
	refused("at a terminal", resume(atTerminal, graph.Budget{}), more)
	refused("raised too little", resume(atTerminal, graph.Budget{Tokens: 30}), more)
	info, err := store.Info(t.Context(), out.Run)
	if want := (run.Terms{Yes: true, Budget: graph.Budget{Tokens: 30, USD: 5}}); err != nil || *info.Terms != want {
		t.Errorf("on record are %+v, %v", info.Terms, err)
	}
	j.Limit.Tokens = 40
	server.Recall = service(store, j).Recall
	refused("raised above the agent's", resume(server, graph.Budget{Tokens: 100}), "raise the agent's, which a budget of the command or the request does not raise\nthen resume it")
	refused("which it keeps", resume(atTerminal, graph.Budget{Tokens: 45}), more)
	if err := resume(atTerminal, graph.Budget{Tokens: 100}); err != nil {
		t.Errorf("raised: %v", err)
	}
}

// TestUnrecordedJobs opens no store for jobs that are not to be recorded.
func TestUnrecordedJobs(t *testing.T) {
	for _, tt := range []struct {
		name       string
		durability graph.Durability
		unrecorded bool
	}{{"off", graph.DurabilityOff, false}, {"unset", "", false}, {"dry_run", graph.DurabilityPower, true}} {
		t.Run(tt.name, func(t *testing.T) {
			j := job(&attempt{errs: []error{errors.New("boom")}}, nil)
			j.Durability = tt.durability
			s := &run.Service{Unrecorded: tt.unrecorded, Open: func(graph.Durability) (run.Store, error) {
				t.Error("the store is opened")
				return nil, errors.New("no store")
			}}
			if out, err := s.Start(t.Context(), j); out.Recorded || out.Run != "" || fault.HintOf(err) != "" {
				t.Errorf("outcome %+v, %v", out, err)
			}
		})
	}
	s := &run.Service{Unrecorded: true}
	if _, err := s.Resume(t.Context(), run.Resumption{}); fault.CodeOf(err) != fault.Usage {
		t.Errorf("resumed as a dry run: %v", err)
	}
}

// TestUnrecordableJob runs a job although the store cannot be opened.
func TestUnrecordableJob(t *testing.T) {
	var events eventtest.Collector
	j := job(&attempt{errs: []error{nil}}, &events)
	s := &run.Service{Open: func(graph.Durability) (run.Store, error) {
		return nil, fault.New(fault.Failure, "disk full").WithHint("free some")
	}}
	out, err := s.Start(t.Context(), j)
	warnings := eventtest.Bodies[event.Warning](&events)
	if err != nil || out.Output != "done" || len(warnings) != 1 || warnings[0].Text != "the run is not recorded and cannot be resumed: disk full; free some" {
		t.Errorf("outcome %+v, warnings %+v, %v", out, warnings, err)
	}
}

func TestRefusedRuns(t *testing.T) {
	soon := time.Now().Add(25 * time.Second)
	for _, tt := range []struct {
		name  string
		err   error
		hint  []string
		never string
	}{
		{"living", &run.LeaseError{ID: "k3v9k3v9", Owner: "process 7 on h"}, []string{"wait until it ends there, or stop that process"}, "sign of life"},
		{"in_a_container", &run.LeaseError{ID: "k3v9k3v9", Owner: "process 1 on pod", Until: soon}, []string{"can be resumed from " + soon.Format(time.TimeOnly), "(in 2"}, ""},
		{"gap", &run.GapError{ID: "k3v9k3v9", Gap: run.Gap{Step: 3, Nodes: map[string]int{"b": 2, "a": 1}}}, []string{"after super-step 3, at least a, b (2 times)", "loki --resume k3v9k3v9 --force"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := memstore.New(nil)
			journal, err := store.Create(t.Context(), run.Info{Kind: run.ChatRun}, run.Checkpoint{})
			if err != nil {
				t.Fatal(err)
			}
			s := service(lasting{store, tt.err}, job(nil, nil))
			_, err = s.Resume(t.Context(), run.Resumption{Continuation: run.Continuation{ID: journal.ID()}})
			if !errors.Is(err, tt.err) || fault.CodeOf(err) != fault.Failure {
				t.Errorf("the error is %v with code %s", err, fault.CodeOf(err))
			}
			hint := fault.HintOf(err)
			for _, part := range tt.hint {
				if !strings.Contains(hint, part) {
					t.Errorf("the hint %q lacks %q", hint, part)
				}
			}
			if tt.never != "" && strings.Contains(hint, tt.never) {
				t.Errorf("the hint %q has %q", hint, tt.never)
			}
		})
	}
}

func TestAcceptGap(t *testing.T) {
	store := memstore.New(nil)
	j, err := store.Create(t.Context(), run.Info{Kind: run.ChatRun, Agent: "a"}, run.Checkpoint{})
	if err == nil {
		err = errors.Join(j.Gap(t.Context(), run.Gap{Reason: "the disk is full", Nodes: map[string]int{"pay": 1}}), j.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	var events eventtest.Collector
	work := &attempt{errs: []error{nil}}
	s := service(lasting{Store: store}, job(work, &events))
	r := run.Resumption{Continuation: run.Continuation{ID: j.ID()}}
	if _, err := s.Resume(t.Context(), r); err == nil || len(events.Events()) > 0 || len(work.errs) == 0 {
		t.Errorf("a gap is accepted without --force: %v", err)
	}
	if _, _, err := store.Open(t.Context(), j.ID()); err == nil {
		t.Error("a refused run can be opened")
	}
	r.Force = true
	if _, err := s.Resume(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	warnings := eventtest.Bodies[event.Warning](&events)
	if len(warnings) != 1 || !strings.Contains(warnings[0].Text, "and repeats everything the run did after super-step 0, at least pay") {
		t.Errorf("warnings are %v", warnings)
	}
}

// TestResumeWaits: where the caller waits, a run is resumed again at the time that its provider
// named, as often as that names one. Else, and for other errors, it is resumed once.
func TestResumeWaits(t *testing.T) {
	boom := errors.New("boom")
	later := func(after time.Duration) error {
		return fault.Wrap(fault.Suspended, &engine.LaterError{At: time.Now().Add(after), Err: errors.New("later")}, "")
	}
	const pause = 2 * time.Minute
	for _, tt := range []struct {
		name  string
		waits int
		errs  func() []error
		want  error
	}{
		{"waits", 2, func() []error { return []error{later(pause), later(2 * pause), boom} }, boom},
		{"does_not_wait", -1, func() []error { return []error{later(pause)} }, nil},
		{"fails", 0, func() []error { return []error{boom} }, boom},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memstore.New(nil)
				journal, err := store.Create(t.Context(), run.Info{Kind: run.ChatRun}, run.Checkpoint{})
				if err == nil {
					err = journal.Close()
				}
				if err != nil {
					t.Fatal(err)
				}
				begin, waits := time.Now(), 0
				work := &attempt{errs: tt.errs()}
				r := run.Resumption{Continuation: run.Continuation{ID: journal.ID()}}
				if tt.waits >= 0 {
					r.Wait = func(_ string, until time.Time) {
						if waits++; time.Until(until) != pause {
							t.Errorf("it waits until %v", until)
						}
					}
				}
				_, err = service(lasting{Store: store}, job(work, nil)).Resume(t.Context(), r)
				if waits != max(0, tt.waits) || time.Since(begin) != time.Duration(waits)*pause || len(work.errs) > 0 {
					t.Errorf("%d waits in %v, %d attempts left", waits, time.Since(begin), len(work.errs))
				}
				if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
					t.Errorf("error %v", err)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		store := memstore.New(nil)
		journal, err := store.Create(t.Context(), run.Info{Kind: run.ChatRun}, run.Checkpoint{})
		if err == nil {
			err = journal.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		s := service(lasting{Store: store}, job(&attempt{errs: []error{later(time.Hour)}}, nil))
		_, err = s.Resume(ctx, run.Resumption{Continuation: run.Continuation{ID: journal.ID()}, Wait: func(string, time.Time) {}})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(fault.HintOf(err), "loki --resume "+journal.ID()+" --wait") {
			t.Errorf("error %v, hint %q", err, fault.HintOf(err))
		}
	})
}

// questioner is work that asks a question; without an asker nobody can be asked.
type questioner struct{ asker ask.Asker }

func (questioner) Started() event.Started { return event.Started{} }

func (w questioner) Do(ctx context.Context, f *run.Frame) (run.Outcome, error) {
	q := run.Questions{Asker: w.asker, Steps: f.Steps(), Events: f.Events, Place: "q", Waits: "the test"}
	answer, err := q.Ask(ctx, ask.Question{Kind: ask.Text, Text: "Go?"})
	return run.Outcome{Output: answer}, err
}

// TestAnswerWithoutEvent resumes a run whose answer was recorded by a process that ended at once.
func TestAnswerWithoutEvent(t *testing.T) {
	var events eventtest.Collector
	store := memstore.New(nil)
	j := job(questioner{}, &events)
	s := service(lasting{Store: store}, j)
	out, err := s.Start(t.Context(), j)
	if fault.CodeOf(err) != fault.Suspended {
		t.Fatal(err)
	}
	if err := store.Answer(t.Context(), out.Run, "q", run.Reply{Text: "yes"}); err != nil {
		t.Fatal(err)
	}
	again, err := s.Resume(t.Context(), run.Resumption{Continuation: run.Continuation{ID: out.Run}})
	if err != nil || again.Output != "yes" {
		t.Errorf("outcome %+v, %v", again, err)
	}
	if got := eventtest.Bodies[event.Answer](&events); len(got) != 1 || got[0].ID != "q" || got[0].Text != "yes" {
		t.Errorf("events of the answer: %+v", got)
	}
}

// TestAnsweredElsewhere answers a question from another process while the user of this one is asked, who says nothing, answers
// too late, or is faster. The first answer counts, and the event says where it came from.
func TestAnsweredElsewhere(t *testing.T) {
	elsewhere := run.Reply{Text: "from elsewhere", Via: event.ViaPage, By: "ann"}
	for _, tt := range []struct {
		name string
		here func(ctx context.Context, answer func() error) (string, error)
		want event.Answer
	}{
		{"silent", func(ctx context.Context, answer func() error) (string, error) {
			if err := answer(); err != nil {
				return "", err
			}
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), ask.ErrElsewhere) {
				return "", fmt.Errorf("the question is withdrawn because of %w", context.Cause(ctx))
			}
			return "", ctx.Err()
		}, event.Answer{ID: "q", Text: "from elsewhere", Via: event.ViaPage, By: "ann"}},
		{
			"late", func(_ context.Context, answer func() error) (string, error) { return "from here", answer() },
			event.Answer{ID: "q", Text: "from elsewhere", Via: event.ViaPage, By: "ann"},
		},
		{
			"first", func(context.Context, func() error) (string, error) { return "from here", nil },
			event.Answer{ID: "q", Text: "from here", Via: event.ViaCommand, Here: true},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var events eventtest.Collector
			store := memstore.New(nil)
			asks := 0
			asker := ask.Func(func(ctx context.Context, _ ask.Question) (string, error) {
				asks++
				return tt.here(ctx, func() error {
					runs, err := store.Runs(ctx, run.Query{})
					if err != nil {
						return err
					}
					return store.Answer(ctx, runs[0].ID, "q", elsewhere)
				})
			})
			j := job(questioner{asker}, &events)
			out, err := service(lasting{Store: store}, j).Start(t.Context(), j)
			if err != nil || out.Output != tt.want.Text || asks != 1 {
				t.Errorf("outcome %+v, %v, asked %d times", out, err, asks)
			}
			if got := eventtest.Bodies[event.Answer](&events); len(got) != 1 || got[0] != tt.want {
				t.Errorf("events of the answer: %+v", got)
			}
			if err := store.Answer(t.Context(), out.Run, "q", elsewhere); err == nil {
				t.Error("a second answer was taken")
			}
		})
	}
}

// overtaken is a store on which another process is faster, once.
type overtaken struct {
	lasting
	other func()
}

func (s overtaken) Open(ctx context.Context, id string, unless ...run.Status) (run.Journal, run.Recovery, error) {
	s.other()
	return s.lasting.Open(ctx, id, unless...)
}

// TestAnswerOfOvertakenRun resumes a run with an answer that another process sees and ends the run with, before this one can open it.
func TestAnswerOfOvertakenRun(t *testing.T) {
	store := lasting{Store: memstore.New(nil)}
	j := job(questioner{}, event.Discard)
	s := service(store, j)
	out, err := s.Start(t.Context(), j)
	if fault.CodeOf(err) != fault.Suspended {
		t.Fatal(err)
	}
	slow := service(overtaken{store, func() {
		if o, err := s.Resume(t.Context(), run.Resumption{Continuation: run.Continuation{ID: out.Run}}); err != nil || o.Output != "yes" {
			t.Errorf("the other process: %+v, %v", o, err)
		}
	}}, j)
	_, err = slow.Resume(t.Context(), run.Resumption{Continuation: run.Continuation{ID: out.Run}, Typed: []string{"yes"}})
	if taken := new(run.TakenError); !errors.As(err, &taken) || taken.ID != out.Run || taken.Owner != "" {
		t.Errorf("the answer: %v", err)
	}
}

// TestAnswerOfHeldRun resumes a run with an answer while another process is at work on it: the answer is on record, and that process
// goes on.
func TestAnswerOfHeldRun(t *testing.T) {
	store := memstore.New(nil)
	began := make(chan string, 1)
	asker := ask.Func(func(ctx context.Context, _ ask.Question) (string, error) {
		runs, err := store.Runs(ctx, run.Query{})
		if err != nil {
			return "", err
		}
		began <- runs[0].ID
		<-ctx.Done()
		return "", ctx.Err()
	})
	j := job(questioner{asker}, event.Discard)
	s := service(lasting{Store: store}, j)
	var out run.Outcome
	ended := make(chan error, 1)
	go func() { // ends with the answer
		var err error
		out, err = s.Start(t.Context(), j)
		ended <- err
	}()
	id := <-began
	if _, err := s.Resume(t.Context(), run.Resumption{Continuation: run.Continuation{ID: id}, Typed: []string{"other=yes", "no"}}); fault.CodeOf(err) != fault.Usage {
		t.Errorf("answers of which one is to no question: %v", err)
	}
	_, err := s.Resume(t.Context(), run.Resumption{Continuation: run.Continuation{ID: id}, Typed: []string{"yes"}})
	if taken := new(run.TakenError); !errors.As(err, &taken) || taken.ID != id || taken.Owner == "" {
		t.Errorf("the answer: %v", err)
	}
	if err := <-ended; err != nil || out.Output != "yes" {
		t.Errorf("the run: %+v, %v", out, err)
	}
}
