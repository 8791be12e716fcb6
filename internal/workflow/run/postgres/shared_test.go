package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/event"
	"loki/internal/service/auth"
	"loki/internal/service/postgres/postgrestest"
	"loki/internal/workflow/run"
)

// ready checks which runs are Ready.
func ready(t *testing.T, s run.Shared, when string, want ...string) {
	t.Helper()
	got, err := s.Ready(t.Context(), 10)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%s: ready are %v, %v, want %v", when, got, err, want)
	}
}

// rest ends a journal as a run that rests.
func rest(t *testing.T, j run.Journal, e run.Ending) {
	t.Helper()
	if err := errors.Join(j.End(t.Context(), e), j.Close()); err != nil {
		t.Fatal(err)
	}
}

func ask(t *testing.T, j run.Journal, id string, deadline time.Time) {
	t.Helper()
	err := j.Asked(t.Context(), run.Pending{ID: id, Step: 1, Node: "a", Key: "q/" + id, Text: "go on?", Asked: time.Now(), Deadline: deadline})
	if err != nil {
		t.Fatal(err)
	}
}

// TestAnswerAtWork answers a question at another server while the run is at work.
func TestAnswerAtWork(t *testing.T) {
	t.Parallel()
	a := open(t, postgrestest.Database(t), Options{})
	b := open(t, a.address, Options{})
	j := create(t, a, run.Info{Agent: "a", Served: true})
	ask(t, j, "one", time.Time{})
	if err := b.Answer(t.Context(), j.ID(), "one", run.Reply{Text: "yes"}); err != nil {
		t.Fatal(err)
	}
	if err := b.Answer(t.Context(), j.ID(), "one", run.Reply{Text: "no"}); !errors.Is(err, run.ErrAnswered) {
		t.Errorf("a second answer: %v", err)
	}
	r := j.Task(1, "a")
	if got, err := r.Lookup(t.Context(), "q/one", steps.Step{Kind: steps.Question}); err != nil || string(got.Result) != `"yes"` {
		t.Errorf("the run at work finds %q, %v", got.Result, err)
	}
	if err := r.Record(t.Context(), "other", steps.Step{Kind: steps.Tool}, []byte(`1`)); err != nil {
		t.Errorf("a record after the answer: %v", err)
	}
	ready(t, b, "it is at work")
	rest(t, j, run.Ending{Status: run.Suspended, Code: fault.Suspended})
	ready(t, b, "it rests", j.ID())
	h, err := b.History(t.Context(), j.ID())
	if err != nil || len(h.Steps) != 2 || h.Steps[0].Number != 1 || h.Steps[1].Number != 2 {
		t.Errorf("steps %+v, %v", h.Steps, err)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	a := open(t, postgrestest.Database(t), Options{})
	b := open(t, a.address, Options{})
	for _, tt := range []struct {
		asker server
		keep  bool
	}{{a, false}, {b, false}, {a, true}, {b, true}} {
		asker := tt.asker
		j := create(t, a, run.Info{Agent: "a", Served: true})
		if asked, err := asker.Cancel(t.Context(), j.ID()[:6], tt.keep); !asked || err != nil {
			t.Fatalf("asked %v, %v", asked, err)
		}
		select {
		case <-j.Lease().Done():
		case <-time.After(30 * time.Second):
			t.Fatal("the run is not canceled")
		}
		if err := context.Cause(j.Lease()); fault.CodeOf(err) != fault.Canceled || errors.Is(err, run.ErrLeaseLost) {
			t.Errorf("it ends with %v", err)
		} else if _, keep := errors.AsType[*run.StopError](err); keep != tt.keep {
			t.Errorf("what it did is kept: %v, want %v", keep, tt.keep)
		}
		rest(t, j, run.Ending{Status: run.Canceled})
		if asked, err := asker.Cancel(t.Context(), j.ID(), tt.keep); asked || err != nil {
			t.Errorf("a run that rests: asked %v, %v", asked, err)
		}
		k, _, err := b.Open(t.Context(), j.ID())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(b.lookForCanceled(), context.Cause(k.Lease()), k.Close()); err != nil {
			t.Errorf("after it was opened again: %v", err)
		}
	}
	if _, err := a.Cancel(t.Context(), "zzzz", false); fault.CodeOf(err) != fault.NotFound {
		t.Error(err)
	}
}

// TestChanges follows a run of another process.
func TestChanges(t *testing.T) {
	t.Parallel()
	a := open(t, postgrestest.Database(t), Options{EventDelay: time.Millisecond})
	b := open(t, a.address, Options{})
	heard := make(chan string, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { _ = b.Changes(ctx, func(id string) { heard <- id }) })
	defer done.Wait()
	defer cancel()
	expect := func(when, want string) {
		t.Helper()
		for {
			select {
			case got := <-heard:
				if got == want {
					return
				}
			case <-time.After(30 * time.Second):
				t.Fatalf("%s: nothing is heard of %q", when, want)
			}
		}
	}
	expect("at the beginning", "")
	j := create(t, a, run.Info{Agent: "a", Served: true})
	for i := range 3 {
		if n := j.Event(event.Event{Time: time.Now(), Body: event.Warning{Text: "x"}}); n != i+1 {
			t.Errorf("event %d has number %d", i+1, n)
		}
		expect("an event", j.ID())
		until(t, "the event is on record", func() bool {
			events, err := b.Events(t.Context(), j.ID(), i, 10)
			if err != nil {
				t.Fatal(err)
			}
			return len(events) == 1 && events[0].Number == i+1
		})
	}
	ask(t, j, "one", time.Time{})
	rest(t, j, run.Ending{Status: run.Suspended, Code: fault.Suspended})
	expect("it rests", j.ID())
	if err := b.Answer(t.Context(), j.ID(), "one", run.Reply{Text: "yes"}); err != nil {
		t.Fatal(err)
	}
	expect("an answer", j.ID())
}

// TestOddTexts keeps what PostgreSQL has no text for.
func TestOddTexts(t *testing.T) {
	t.Parallel()
	s := open(t, postgrestest.Database(t), Options{})
	odd := "\xff\x00odd"
	j := create(t, s, run.Info{Agent: odd, Dir: "/" + odd, Owner: &auth.Owner{Subject: odd, KeyID: odd}})
	if err := j.Task(1, odd).Record(t.Context(), odd, steps.Step{Kind: steps.Tool, Name: odd}, []byte(`"\u0000"`)); err != nil {
		t.Fatal(err)
	}
	rest(t, j, run.Ending{Status: run.Failed, Error: odd})
	infos, err := s.Runs(t.Context(), run.Query{Dir: "/" + odd, Agent: odd, View: &auth.View{Subject: odd}})
	if err != nil || len(infos) != 1 || infos[0].Agent != odd || infos[0].Owner.KeyID != odd {
		t.Errorf("%+v, %v", infos, err)
	}
	h, err := s.History(t.Context(), j.ID())
	if err != nil || h.Steps[0].Node != odd || h.Steps[0].Key != odd || h.Steps[0].Name != odd {
		t.Errorf("%+v, %v", h.Steps, err)
	}
}

// TestSealed looks for a secret in all that is in the database.
func TestSealed(t *testing.T) {
	t.Parallel()
	const secret, seal = "s3cret", "{{KEY}}"
	s := open(t, postgrestest.Database(t), Options{
		Seal:   func(text string) string { return strings.ReplaceAll(text, secret, seal) },
		Unseal: func(text string) string { return strings.ReplaceAll(text, seal, secret) },
	})
	long := strings.Repeat(secret+" ", 1000)
	j := create(t, s, run.Info{Agent: "a", Prompt: long, Variables: map[string]string{"key": secret}})
	j.Event(event.Event{Time: time.Now(), Body: event.Warning{Text: secret}})
	ask(t, j, "one", time.Time{})
	text, _ := json.Marshal(long)
	if err := errors.Join(j.Task(1, "a").Record(t.Context(), "k", steps.Step{Kind: steps.Tool}, text),
		j.Gap(t.Context(), run.Gap{Step: 1, Reason: secret, Status: run.Failed, Error: secret}), j.Close()); err != nil {
		t.Fatal(err)
	}
	for _, table := range append([]string{"runs", "leases"}, rowsOf[:]...) {
		rows, err := s.db.Pool().Query(t.Context(), "SELECT * FROM loki."+table)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			values, err := rows.Values()
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range values {
				if data, ok := v.([]byte); ok {
					v = string(data)
				}
				if strings.Contains(fmt.Sprint(v), secret) {
					t.Errorf("table %s: column %s has the secret", table, rows.FieldDescriptions()[i].Name)
				}
			}
		}
		rows.Close()
	}
	h, err := s.History(t.Context(), j.ID())
	if err != nil || h.Info.Prompt != long || h.Info.Gap.Reason != secret || h.Info.Error != secret {
		t.Errorf("%+.300v, %v", h.Info, err)
	}
	if got, err := s.Step(t.Context(), j.ID(), 1); err != nil || string(got) != string(text) {
		t.Errorf("%.100s, %v", got, err)
	}
}

// TestDamaged changes a document of one run: the others are listed as before.
func TestDamaged(t *testing.T) {
	t.Parallel()
	s := open(t, postgrestest.Database(t), Options{})
	good, bad, blob := create(t, s, run.Info{Agent: "good"}), create(t, s, run.Info{Agent: "bad"}), create(t, s, run.Info{Agent: "blob", Prompt: strings.Repeat("x", 2000)})
	rest(t, bad, run.Ending{Status: run.Failed})
	s.exec(t, "UPDATE loki.runs SET about = about || 'x' WHERE name = $1", bad.ID())
	s.exec(t, "UPDATE loki.blobs SET data = data || 'x' WHERE run = (SELECT id FROM loki.runs WHERE name = $1)", blob.ID())
	infos, err := s.Runs(t.Context(), run.Query{})
	if err != nil || len(infos) != 3 || infos[2].ID != good.ID() || infos[2].Damaged || !infos[1].Damaged {
		t.Errorf("%+v, %v", infos, err)
	}
	for _, id := range []string{bad.ID(), blob.ID()} {
		if _, err := s.Info(t.Context(), id); fault.CodeOf(err) != fault.Failure || !strings.Contains(err.Error(), id) || errors.Is(err, run.ErrPassing) {
			t.Errorf("run %s: %v", id, err)
		}
	}
	if _, _, err := s.Open(t.Context(), bad.ID()); err == nil || !strings.Contains(err.Error(), bad.ID()) {
		t.Error(err)
	}
	if deleted, err := s.Delete(t.Context(), bad.ID()); err != nil || len(deleted) != 1 {
		t.Errorf("deleted %v, %v", deleted, err)
	}
}

// TestDelete deletes a run of many rows, and what a process left that died while it did so.
func TestDelete(t *testing.T) {
	t.Parallel()
	s := open(t, postgrestest.Database(t), Options{})
	big, kept := create(t, s, run.Info{Agent: "a"}), create(t, s, run.Info{Agent: "b", Prompt: strings.Repeat("x", 2000)})
	s.exec(t, "INSERT INTO loki.events SELECT (SELECT id FROM loki.runs WHERE name = $1), n, 'x' FROM generate_series(1, $2) AS n", big.ID(), 2*sweepRows+1)
	rest(t, big, run.Ending{Status: run.Done})
	s.exec(t, "INSERT INTO loki.deleted VALUES (1000000)")
	s.exec(t, "INSERT INTO loki.blobs VALUES (1000000, 'h', 'left')")
	if deleted, err := s.Delete(t.Context(), big.ID(), kept.ID(), "00000000"); err != nil || !slices.Equal(deleted, []string{big.ID()}) {
		t.Errorf("deleted %v, %v", deleted, err)
	}
	for table, want := range map[string]int{"runs": 1, "leases": 1, "events": 0, "blobs": 1, "checkpoints": 1, "deleted": 0} {
		var n int
		if err := s.db.Pool().QueryRow(t.Context(), "SELECT count(*) FROM loki."+table).Scan(&n); err != nil || n != want {
			t.Errorf("table %s has %d rows, %v, want %d", table, n, err, want)
		}
	}
}
