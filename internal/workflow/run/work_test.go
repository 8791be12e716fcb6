package run_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
)

// talk is work that is one task: it makes two steps and counts those that it really made.
type talk struct {
	made int
	fail error // of the second step
}

func (*talk) Started() event.Started { return event.Started{Model: "c:m"} }

func (w *talk) Do(ctx context.Context, f *run.Frame) (run.Outcome, error) {
	record := f.Steps()
	out := run.Outcome{Usage: chat.Usage{InputTokens: 3}, Stop: chat.StopEnd}
	for i, fail := range []error{nil, w.fail} {
		text, err := steps.Do(ctx, record, steps.Step{Kind: steps.Model, Key: fmt.Sprintf("model/%d", i+1)}, func(ctx context.Context) (string, error) {
			w.made++
			return "did ", errors.Join(fail, f.Events.Emit(ctx, event.Reply{Text: "did"}))
		})
		if err != nil {
			return out, err
		}
		out.Output += text
	}
	return out, nil
}

func types(c *eventtest.Collector) (list []string) {
	for _, ev := range c.Events() {
		list = append(list, ev.Body.Type())
	}
	return list
}

func TestWorkThatIsOneTask(t *testing.T) {
	var events eventtest.Collector
	work := &talk{}
	out, err := run.Run(t.Context(), run.Options{Work: work, Events: event.NewScope(&events, event.Source{}, nil)})
	if err != nil || out.Output != "did did " || out.Run != "" || out.Recorded || out.Steps != 0 {
		t.Errorf("outcome %+v, %v", out, err)
	}
	if got, want := types(&events), []string{"started", "reply", "reply", "finished"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	fin := eventtest.Bodies[event.Finished](&events)
	if len(fin) != 1 || fin[0].Output != out.Output || fin[0].Stop != chat.StopEnd || fin[0].Usage.InputTokens != 3 || events.Events()[0].Run != "" {
		t.Errorf("finished with %+v", fin)
	}
}

// TestWorkThatIsOneTaskGoesOn has such work fail in the middle. When it is resumed, what it
// did before is read back.
func TestWorkThatIsOneTaskGoesOn(t *testing.T) {
	store := memstore.New(nil)
	journal, err := store.Create(t.Context(), run.Info{Agent: "x"}, run.Checkpoint{})
	if err != nil {
		t.Fatal(err)
	}
	var events eventtest.Collector
	work := &talk{fail: errors.New("boom")}
	scope := event.NewScope(&events, event.Source{}, nil)
	out, err := run.Run(t.Context(), run.Options{Work: work, Events: scope, Journal: journal})
	if !errors.Is(err, work.fail) || !out.Recorded || out.Run != journal.ID() || work.made != 2 || events.Events()[0].Run != journal.ID() {
		t.Errorf("outcome %+v, %v", out, err)
	}
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	journal, found, err := store.Open(t.Context(), journal.ID())
	if err != nil {
		t.Fatal(err)
	}
	work.fail = nil
	out, err = run.Run(t.Context(), run.Options{Work: work, Events: scope, Journal: journal, Resumed: true})
	if err != nil || out.Output != "did did " || work.made != 3 || out.Steps != 0 {
		t.Errorf("outcome %+v, %d steps made, %v", out, work.made, err)
	}
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	h, err := store.History(t.Context(), found.Info.ID)
	if err != nil || h.Info.Status != run.Done || h.Info.Output != out.Output || h.Info.Usage.InputTokens != 3 || len(h.Events) < 6 {
		t.Errorf("on record is %+v, %v", h, err)
	}
	if !eventtest.Bodies[event.Started](&events)[1].Resumed {
		t.Error("the second execution is not marked as resumed")
	}
}

// TestWorkThatIsOneTaskEnds has the process of such work die after its result was committed, and
// before its end was.
func TestWorkThatIsOneTaskEnds(t *testing.T) {
	store := memstore.New(nil)
	s := &run.Service{Open: func(graph.Durability) (run.Store, error) { return lasting{Store: store}, nil }}
	journal, err := store.Create(t.Context(), run.Info{Kind: run.ChatRun}, run.Checkpoint{})
	if err != nil {
		t.Fatal(err)
	}
	work := &talk{}
	if _, err := run.Run(t.Context(), run.Options{Work: work, Journal: &failing{Journal: journal, after: 100, ends: errors.New("killed")}}); err != nil {
		t.Fatal(err)
	}
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	s.Recall = func(context.Context, run.Info, run.Checkpoint, run.Continuation) (run.Job, error) {
		return run.Job{Info: run.Info{Kind: run.ChatRun}, Make: func(context.Context, run.Point) (run.Work, func() error, error) { return work, nil, nil }}, nil
	}
	out, err := s.Resume(t.Context(), run.Resumption{Continuation: run.Continuation{ID: journal.ID()}})
	if err != nil || out.Output != "did did " || !out.Recorded || work.made != 2 {
		t.Errorf("outcome %+v, %d steps made, %v", out, work.made, err)
	}
	h, err := store.History(t.Context(), journal.ID())
	if err != nil || h.Info.Status != run.Done || h.Info.Output != out.Output || h.Info.Gap != nil {
		t.Errorf("on record is %+v, %v", h.Info, err)
	}
}

// TestStartedFails has a listener that fails at once: then nothing is done.
func TestStartedFails(t *testing.T) {
	full := errors.New("disk full")
	work := &talk{}
	_, err := run.Run(t.Context(), run.Options{Work: work, Events: event.NewScope(event.Func(func(context.Context, event.Event) error { return full }), event.Source{}, nil)})
	if !errors.Is(err, full) || work.made != 0 {
		t.Errorf("%d steps made, %v", work.made, err)
	}
}
