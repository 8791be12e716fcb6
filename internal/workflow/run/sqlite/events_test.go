package sqlite

import (
	"path/filepath"
	"slices"
	"testing"

	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// TestEventsSoon emits events that no record follows.
func TestEventsSoon(t *testing.T) {
	wrote := make(chan string, 10)
	s := open(t, filepath.Join(t.TempDir(), "runs.db"), Options{EventDelay: 1, Wrote: func(id string) { wrote <- id }})
	j := create(t, s, graph.State{})
	for n := 1; n <= 20; n++ {
		if got := j.Event(event.Event{Body: event.Warning{Text: "w"}}); got != n {
			t.Fatalf("event %d has number %d", n, got)
		}
		if id := <-wrote; id != j.ID() {
			t.Fatalf("events of %s were written, want %s", id, j.ID())
		}
		found, err := s.Events(t.Context(), j.ID(), n-1, 0)
		if err != nil || len(found) != 1 || found[0].Number != n {
			t.Fatalf("on record after event %d: %v, %v", n, found, err)
		}
	}
	j.Event(event.Event{Body: event.Warning{Text: "the last"}})
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if found, err := s.Events(t.Context(), j.ID(), 20, 0); err != nil || len(found) != 1 {
		t.Fatalf("on record after the end: %v, %v", found, err)
	}
}

// TestUncountedEvents reads events that a version wrote which did not count them, before and after
// this one has gone on with the run.
func TestUncountedEvents(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "runs.db"), Options{})
	j := create(t, s, graph.State{})
	id := j.ID()
	next := 1
	batch := func(size int) {
		t.Helper()
		for range size {
			if got := j.Event(event.Event{Body: event.Warning{Text: "w"}}); got != next {
				t.Errorf("event %d has number %d", next, got)
			}
			next++
		}
		if err := j.End(t.Context(), run.Ending{Status: run.Failed}); err != nil {
			t.Fatal(err)
		}
	}
	check := func() {
		t.Helper()
		for after := range next {
			found, err := s.Events(t.Context(), id, after, 3)
			if err != nil {
				t.Fatal(err)
			}
			var numbers, want []int
			for i := after + 1; i < next && i <= after+3; i++ {
				want = append(want, i)
			}
			for _, ev := range found {
				numbers = append(numbers, ev.Number)
			}
			if !slices.Equal(numbers, want) {
				t.Errorf("after %d: events %v, want %v", after, numbers, want)
			}
		}
	}
	batch(3)
	batch(1)
	batch(5)
	if _, err := s.writer.c.ExecContext(t.Context(), "UPDATE events SET first = 0"); err != nil {
		t.Fatal(err)
	}
	check()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	var err error
	if j, _, err = s.Open(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	batch(2)
	batch(4)
	check()
}
