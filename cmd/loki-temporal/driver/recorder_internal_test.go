package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/base/fault/steps"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
)

// TestPulse has an execution confirm that the task is still its own.
func TestPulse(t *testing.T) {
	gone, away := errors.New("gone"), errors.New("cannot be reached")
	for _, tt := range []struct {
		name  string
		after time.Duration // since the last sign of life
		err   error         // of the next one
		beats int
		lost  bool
	}{
		{name: "recent", after: 4 * time.Second},
		{name: "old", after: 5 * time.Second, beats: 1},
		{name: "gone", after: 5 * time.Second, err: gone, beats: 1, lost: true},
		{name: "server_away_for_a_moment", after: 6 * time.Second, err: away, beats: 1},
		{name: "server_away", after: 10 * time.Second, err: away, beats: 1, lost: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithCancelCause(t.Context())
				beats := 0
				p := &pulse{
					beat: func(context.Context) error { beats++; return tt.err }, final: func(err error) bool { return errors.Is(err, gone) },
					limit: 10 * time.Second, end: end, last: time.Now(),
				}
				time.Sleep(tt.after)
				err := p.confirm(ctx)
				if (err != nil) != tt.lost || (ctx.Err() != nil) != tt.lost || beats != tt.beats {
					t.Errorf("%d signs of life, %v, %v", beats, err, context.Cause(ctx))
				}
			})
		})
	}
}

// TestPulseKeeps gives signs of life until the execution is over.
func TestPulseKeeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancelCause(t.Context())
		beats := 0
		p := &pulse{
			beat: func(context.Context) error { beats++; return nil }, final: func(error) bool { return false },
			limit: 10 * time.Second, end: end, last: time.Now(),
		}
		done := make(chan struct{})
		go func() { defer close(done); p.keep(ctx) }()
		time.Sleep(21 * time.Second)
		end(nil)
		<-done
		if beats != 10 {
			t.Errorf("%d signs of life in 21 s, want 10", beats)
		}
	})
}

// TestSentTogether has steps that are recorded while another one is being sent go together, each event once and in order.
func TestSentTogether(t *testing.T) {
	var mu sync.Mutex
	var batches []Batch
	first, goOn := make(chan struct{}), make(chan struct{})
	send := func(_ context.Context, b Batch) error {
		mu.Lock()
		batches = append(batches, b)
		n := len(batches)
		mu.Unlock()
		if n == 1 {
			close(first)
			<-goOn
		}
		return nil
	}
	synctest.Test(t, func(t *testing.T) {
		first, goOn = make(chan struct{}), make(chan struct{})
		p := &pulse{beat: func(context.Context) error { return nil }, final: func(error) bool { return false }, limit: time.Hour, end: func(error) {}, last: time.Now()}
		r := newRecorder(Task{Node: "n", Step: 3, Attempt: 2}, p, send)
		record := func(key string) {
			if err := r.Emit(t.Context(), event.Event{Body: event.Warning{Text: key}}); err != nil {
				t.Error(err)
			}
			if err := r.Record(t.Context(), key, steps.Step{Kind: steps.Note, Key: key}, []byte(`true`)); err != nil {
				t.Error(err)
			}
		}
		var all sync.WaitGroup
		all.Go(func() { record("0") })
		<-first
		for i := 1; i <= 5; i++ {
			all.Go(func() { record(fmt.Sprint(i)) })
		}
		synctest.Wait()
		close(goOn)
		all.Wait()
		if len(batches) != 2 || len(batches[1].Changes) != 5 || len(batches[1].Events) != 5 || batches[1].Node != "n" || batches[1].Step != 3 || batches[1].Attempt != 2 {
			t.Errorf("%+v", batches)
		}
		for i := range 6 {
			if rec, err := r.Lookup(t.Context(), fmt.Sprint(i), steps.Step{}); err != nil || !rec.Done {
				t.Errorf("step %d: %+v, %v", i, rec, err)
			}
		}
	})
}

// TestLostRecord ends an execution whose step cannot be recorded.
func TestLostRecord(t *testing.T) {
	ctx, end := context.WithCancelCause(t.Context())
	p := &pulse{beat: func(context.Context) error { return nil }, final: func(error) bool { return false }, limit: time.Hour, end: end, last: time.Now()}
	r := newRecorder(Task{Node: "n"}, p, func(context.Context, Batch) error { return errors.New("no connection") })
	err := r.Begin(ctx, "script", steps.Step{Kind: steps.Script, Key: "script", Effect: true})
	var stop *run.StopError
	if !errors.As(err, &stop) || ctx.Err() == nil {
		t.Errorf("%v, %v", err, ctx.Err())
	}
}

// TestLongEvents cuts long texts in events, and leaves out what is not for the record.
func TestLongEvents(t *testing.T) {
	r := newRecorder(Task{}, &pulse{}, nil)
	for _, b := range []event.Body{event.Delta{Text: "x"}, event.Reply{Text: strings.Repeat("x", 100_000)}, event.ToolResult{Text: strings.Repeat("y", 100_000)}} {
		if err := r.Emit(t.Context(), event.Event{Body: b}); err != nil {
			t.Fatal(err)
		}
	}
	events := r.rest()
	if len(events) != 2 {
		t.Fatalf("%d events", len(events))
	}
	for _, ev := range events {
		if len(ev) > 2*maxEventText || !json.Valid(ev) {
			t.Errorf("%d bytes: %s", len(ev), ev[:100])
		}
	}
}
