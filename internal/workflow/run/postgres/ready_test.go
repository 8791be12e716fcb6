package postgres

import (
	"slices"
	"testing"
	"time"

	"loki/internal/base/fault"
	"loki/internal/service/postgres/postgrestest"
	"loki/internal/workflow/run"
)

// TestReady asks which runs can go on, in the order in which they came to wait.
func TestReady(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := open(t, postgrestest.Database(t), Options{Now: func() time.Time { return now }})
	ready := func(what string, want ...string) {
		t.Helper()
		ids, err := s.Ready(t.Context(), 10)
		if err != nil || !slices.Equal(ids, want) {
			t.Errorf("%s: ready %q (%v), want %q", what, ids, err, want)
		}
	}
	queued := func(id string, want bool) {
		t.Helper()
		info, err := s.Info(t.Context(), id)
		infos, listErr := s.Runs(t.Context(), run.Query{})
		if err != nil || listErr != nil || info.Queued != want || !slices.ContainsFunc(infos, func(i run.Info) bool { return i.ID == id && i.Queued == want }) {
			t.Errorf("run %s: %+v, %+v (%v, %v)", id, info, infos, err, listErr)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	begin := func(served bool) run.Journal {
		t.Helper()
		now = now.Add(time.Millisecond)
		j, err := s.Create(t.Context(), run.Info{Served: served}, run.Checkpoint{})
		must(err)
		return j
	}
	rest := func(j run.Journal, e run.Ending) {
		t.Helper()
		now = now.Add(time.Millisecond)
		must(j.End(t.Context(), e))
		must(j.Close())
	}
	open := func(id string) run.Journal {
		t.Helper()
		now = now.Add(time.Millisecond)
		j, _, err := s.Open(t.Context(), id)
		must(err)
		return j
	}
	suspended := run.Ending{Status: run.Suspended, Code: fault.Suspended}

	first, second, local := begin(true), begin(true), begin(false)
	ready("held")
	must(local.Close())
	must(second.Close())
	now = now.Add(time.Millisecond)
	must(first.Close())
	ready("given back", second.ID(), first.ID())
	queued(first.ID(), true)
	queued(local.ID(), false)
	if ids, err := s.Ready(t.Context(), 1); err != nil || len(ids) != 1 {
		t.Errorf("one of them: %q, %v", ids, err)
	}
	rest(open(second.ID()), run.Ending{Status: run.Done})
	ready("done", first.ID())

	id := first.ID()
	j := open(id)
	queued(id, false)
	ask := func(question string, deadline time.Time) {
		t.Helper()
		must(j.Asked(t.Context(), run.Pending{ID: question, Key: question, Asked: now, Deadline: deadline}))
	}
	ask("a", time.Time{})
	ask("b", now.Add(time.Hour))
	rest(j, suspended)
	ready("asked")
	now = now.Add(2 * time.Hour)
	ready("too late", id)
	j = open(id)
	rest(j, suspended)
	ready("too late before it was opened last")
	must(s.Answer(t.Context(), id, "a", run.Reply{Text: "yes"}))
	ready("one answer", id)
	j = open(id)
	rest(j, suspended)
	ready("opened since the answer")
	j = open(id)
	must(s.Answer(t.Context(), id, "b", run.Reply{Text: "no"}))
	ready("answered at work")
	rest(j, suspended)
	ready("at rest after that", id)
	j = open(id)
	rest(j, run.Ending{Status: run.Suspended, Code: fault.Suspended, Until: now.Add(time.Minute)})
	ready("waits for its provider")
	now = now.Add(time.Hour)
	ready("the provider is back", id)
	j = open(id)
	must(j.Gap(t.Context(), run.Gap{Reason: "the disk is full"}))
	must(j.Close())
	ready("a gap")
	queued(id, false)
}
