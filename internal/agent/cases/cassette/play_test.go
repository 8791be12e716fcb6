package cassette_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"loki/internal/agent/cases/cassette"
	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/event"
	"loki/internal/llm/provider"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
)

// work makes steps.
type work func(ctx context.Context, s steps.Steps) (string, error)

func (work) Started() event.Started { return event.Started{} }

func (w work) Do(ctx context.Context, f *run.Frame) (run.Outcome, error) {
	out, err := w(ctx, f.Steps())
	return run.Outcome{Output: out}, err
}

// drive does work in a store.
func drive(t *testing.T, store run.Store, w work) (string, error) {
	t.Helper()
	j, err := store.Create(t.Context(), run.Info{Kind: run.ChatRun, Agent: "tester", ByName: true, AgentDir: "/agents/tester", Prompt: "do it with tiger-secret", Variables: map[string]string{"b": "2", "a": "1"}}, run.Checkpoint{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := run.Run(t.Context(), run.Options{Work: w, Journal: j})
	return out.Output, errors.Join(err, j.Close(), store.Close())
}

// marks of the machine on which the test plays or records.
func marks(dir string) cassette.Marks {
	return cassette.Marks{
		Hide: func(text string) string { return strings.ReplaceAll(text, "tiger-secret", "***KEY***") },
		Dirs: map[string]string{"work": dir},
	}
}

// step makes a step whose request is sent and whose reply is got.
func step(ctx context.Context, s steps.Steps, kind steps.Kind, key string, sent any, got func() (string, error)) (string, error) {
	return steps.Do(ctx, s, steps.Step{Kind: kind, Key: key, Name: "it", Effect: kind == steps.Tool, Request: func() any { return sent }}, func(context.Context) (string, error) {
		return got()
	})
}

// scenario is work in dir, at a time, whose steps answer as live says.
func scenario(dir string, now time.Time, live func(string) (string, error)) work {
	return func(ctx context.Context, s steps.Steps) (string, error) {
		var parts []string
		reply, err := step(ctx, s, steps.Model, "model/10", "see "+dir+"/x with tiger-secret at "+now.Format(time.RFC3339), func() (string, error) { return live(dir + "/y and tiger-secret") })
		if err != nil {
			return "", err
		}
		parts = append(parts, reply)
		asked, err := steps.Do(ctx, s, steps.Step{Kind: steps.Time, Key: "asked"}, func(context.Context) (time.Time, error) { return now, nil })
		if err != nil || !asked.Equal(now) {
			return "", fmt.Errorf("the time is %v: %w", asked, err)
		}
		if _, err := step(ctx, s, steps.Question, "tool/1/1/consent", "may I?", func() (string, error) { return live("") }); err != nil {
			return "", err
		}
		var wg sync.WaitGroup
		results := make([]string, 3)
		for i := range results {
			wg.Go(func() {
				results[i], _ = step(ctx, s, steps.Tool, fmt.Sprintf("tool/1/%d/call", i+1), map[string]int{"n": i}, func() (string, error) { return live(fmt.Sprint("result ", i)) })
			})
		}
		wg.Wait()
		_, err = step(ctx, s, steps.Model, "model/2", nil, func() (string, error) {
			if _, err := live(""); err != nil {
				return "", err
			}
			return "", &provider.Error{Kind: provider.RateLimited, Msg: "slow down, tiger-secret", Status: 429}
		})
		if provider.KindOf(err) != provider.RateLimited {
			return "", fmt.Errorf("the failure is another one: %w", err)
		}
		if err := steps.WriteNote(ctx, s, "s1/a/done", now); err != nil {
			return "", err
		}
		return strings.Join(append(parts, results...), "; "), steps.WriteNote(ctx, s, "noted", "kept")
	}
}

func answer(text string) (string, error) { return text, nil }

func unavailable(string) (string, error) { return "", errors.New("the outside world was reached") }

func record(t *testing.T, w work) string {
	t.Helper()
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	r := cassette.NewRecorder(marks("/home/ada/work"), func() time.Time { return now })
	if out, err := drive(t, r.Store(memstore.New(nil)), w); err != nil {
		t.Fatalf("%q, %v", out, err)
	}
	return string(r.Format("c.yaml"))
}

func TestRecordAndPlay(t *testing.T) {
	then := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	text := record(t, scenario("/home/ada/work", then, answer))
	for range 5 { // in the same order, whichever step is done first
		if again := record(t, scenario("/home/ada/work", then, answer)); again != text {
			t.Fatalf("recorded again:\n%s\nwas:\n%s", again, text)
		}
	}
	for _, leak := range []string{"tiger", "/home/ada", "2026-05-04", "03:02"} {
		if strings.Contains(text, leak) {
			t.Errorf("%q is in the cassette:\n%s", leak, text)
		}
	}
	if a, b := strings.Index(text, "key: model/2"), strings.Index(text, "key: model/10"); a < 0 || b < a {
		t.Errorf("the order is not that of the keys:\n%s", text)
	}
	c, err := cassette.Parse("c.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if c.Agent != "tester" || c.Prompt != "do it with ***KEY***" || c.Variables["b"] != "2" || len(c.Entries) != 6 {
		t.Errorf("cassette %+v", c)
	}
	// Elsewhere and later.
	p := cassette.NewPlayer(c, "c.yaml", marks("/tmp/play"))
	out, err := drive(t, p.Store(), scenario("/tmp/play", then.AddDate(0, 2, 3), unavailable))
	if want := "/tmp/play/y and ***KEY***; result 0; result 1; result 2"; err != nil || out != want {
		t.Errorf("played: %q, %v", out, err)
	}
	if unused := p.UnusedSteps(); len(unused) > 0 {
		t.Errorf("unused: %v", unused)
	}
}

func TestPlayFailsLoudly(t *testing.T) {
	text := record(t, func(ctx context.Context, s steps.Steps) (string, error) {
		for _, key := range []string{"model/1", "model/2", "agents/x/model/1", "agents/x/result"} {
			kind := steps.Model
			if strings.HasSuffix(key, "result") {
				kind = steps.Agent
			}
			if _, err := step(ctx, s, kind, key, []string{"one", "two\nlines"}, func() (string, error) { return "yes", nil }); err != nil {
				return "", err
			}
		}
		return "done", nil
	})
	c, err := cassette.Parse("c.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, key string
		kind      steps.Kind
		sent      any
		want      []string
		unused    int
	}{
		{name: "same", key: "model/1", kind: steps.Model, sent: []string{"one", "two\nlines"}, unused: 1},
		{name: "another_request", key: "model/1", kind: steps.Model, sent: []string{"one", "two\nother"}, want: []string{"model/1: this call of a model is not the one that was recorded at c.yaml:", "-    lines\n", "+    other"}, unused: 2},
		{name: "another_kind", key: "model/2", kind: steps.Tool, sent: []string{"one", "two\nlines"}, want: []string{"-kind: model\n+kind: tool\n"}, unused: 2},
		{name: "not_recorded", key: "model/3", kind: steps.Model, sent: "new", want: []string{"model/3: this call of a model was not recorded", "+request: new"}, unused: 2},
		{name: "a_child_that_is_over", key: "agents/x/result", kind: steps.Agent, sent: "whatever", unused: 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := cassette.NewPlayer(c, "c.yaml", marks("/tmp/play"))
			_, err := drive(t, p.Store(), func(ctx context.Context, s steps.Steps) (string, error) {
				if _, err := step(ctx, s, tt.kind, tt.key, tt.sent, func() (string, error) { return unavailable("") }); err != nil {
					if ctx.Err() == nil {
						t.Error("the run goes on")
					}
					return "", context.Cause(ctx)
				}
				return "ok", nil
			})
			if (err == nil) != (tt.want == nil) {
				t.Fatalf("err = %v", err)
			}
			if err != nil && (!cassette.IsMismatch(err.Error()) || fault.CodeOf(err) != fault.Failure || fault.HintOf(err) == "") {
				t.Errorf("the error says nothing to do: %v", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is missing in\n%v", want, err)
				}
			}
			if unused := p.UnusedSteps(); len(unused) != tt.unused {
				t.Errorf("unused: %q", unused)
			}
		})
	}
}

func TestOfRun(t *testing.T) {
	store := memstore.New(nil)
	w := scenario("/work", time.Now(), answer)
	var id string
	out, err := drive(t, store, func(ctx context.Context, s steps.Steps) (string, error) {
		runs, _ := store.Runs(ctx, run.Query{})
		id = runs[0].ID
		return w(ctx, s)
	})
	if err != nil {
		t.Fatal(err)
	}
	h, err := store.History(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	c, err := cassette.OfRun(h, func(n int) ([]byte, error) { return store.Step(t.Context(), id, n) })
	if err != nil || c.Agent != "tester" || len(c.Entries) < 5 {
		t.Fatalf("%+v, %v", c, err)
	}
	// What failed is not on record.
	_, err = drive(t, cassette.NewPlayer(c, "run x", cassette.Marks{}).Store(), scenario("/other", time.Now(), unavailable))
	if err == nil || !strings.Contains(err.Error(), "model/2: this call of a model was not recorded") {
		t.Errorf("played %q: %v", out, err)
	}
}
