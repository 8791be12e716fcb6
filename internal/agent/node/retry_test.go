package node

import (
	"context"
	"errors"
	"testing"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// record keeps steps in memory. What stays begun is uncertain.
type record map[string]steps.Record

func (r record) Lookup(_ context.Context, key string, _ steps.Step) (steps.Record, error) {
	return r[key], nil
}

func (r record) Begin(_ context.Context, key string, _ steps.Step) error {
	r[key] = steps.Record{Begun: true}
	return nil
}

func (r record) Forget(_ context.Context, key string) error { delete(r, key); return nil }

func (r record) Record(_ context.Context, key string, _ steps.Step, result []byte) error {
	r[key] = steps.Record{Result: result, Done: true}
	return nil
}

func repeatTask(rec record) *run.Task {
	return &run.Task{Steps: steps.New(rec), Task: graph.Task{Node: &graph.Node{
		ID: "n", Type: graph.ScriptNode, Retry: &retry.Policy{Attempts: 3, Factor: 2, Backoff: time.Second, MaxBackoff: time.Minute},
	}}}
}

func repeatRunner(waits *[]time.Duration) *Runner {
	return New(Options{
		Random: func() float64 { return 0.5 },
		Sleep: func(_ context.Context, d time.Duration) error {
			*waits = append(*waits, d)
			return nil
		},
	})
}

func TestRetrying(t *testing.T) {
	boom := errors.New("boom")
	for _, tt := range []struct {
		name  string
		err   error
		calls int
		waits []time.Duration
	}{
		{"any_failure", boom, 3, []time.Duration{time.Second, 2 * time.Second}},
		{"retry_after", &provider.Error{Kind: provider.RateLimited, RetryAfter: 5 * time.Second}, 3, []time.Duration{5 * time.Second, 5 * time.Second}},
		{"waits_for_a_human", fault.New(fault.Suspended, "asks about a rate limit"), 1, nil},
		{"budget", fault.New(fault.Limit, "429 tokens"), 1, nil},
		{"taken_over", run.ErrLeaseLost, 1, nil},
		{"canceled", context.Canceled, 1, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var waits []time.Duration
			r, calls := repeatRunner(&waits), 0
			_, err := tryNode(t.Context(), r, repeatTask(record{}), func(context.Context) (int, error) {
				calls++
				return 0, tt.err
			})
			if !errors.Is(err, tt.err) || calls != tt.calls || len(waits) != len(tt.waits) {
				t.Fatalf("%d calls, waits %v, %v", calls, waits, err)
			}
			for i := range waits {
				if waits[i] != tt.waits[i] {
					t.Errorf("waits are %v, want %v", waits, tt.waits)
				}
			}
		})
	}
}

// A task that is run again goes on with the attempt it was in, and takes the record
// of that attempt.
func TestRetryingGoesOnWithItsAttempt(t *testing.T) {
	var waits []time.Duration
	r, rec := repeatRunner(&waits), record{}
	made := 0
	attempt := func(task *run.Task, die bool) (string, error) {
		return tryNode(t.Context(), r, task, func(ctx context.Context) (string, error) {
			text, err := steps.Do(ctx, task.Steps, steps.Step{Kind: steps.Script, Key: "script", Effect: true}, func(context.Context) (string, error) {
				if made++; made == 1 {
					return "", errors.New("the first attempt fails")
				}
				return "made", nil
			})
			if die && err == nil {
				panic("killed") // after the second attempt was recorded
			}
			return text, err
		})
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = attempt(repeatTask(rec), true)
	}()
	text, err := attempt(repeatTask(rec), false)
	if err != nil || text != "made" || made != 2 {
		t.Errorf("%q, %v: the effect was made %d times", text, err, made)
	}
}

// spent is a budget that only counts.
type spent struct{ chat.Usage }

func (s *spent) Spend(u chat.Usage) { s.Usage = s.Add(u) }

func (s *spent) Reserve(context.Context, chat.Usage, chat.Usage, bool) (func(chat.Usage), error) {
	return s.Spend, nil
}

// What failed attempts used counts when the run is resumed, though they are not made
// again: a run that its budget stopped must not begin anew with each resume.
func TestRetryingCountsFailedAttempts(t *testing.T) {
	rec := record{}
	budgets := [3]*spent{{}, {}, {}}
	for i, budget := range budgets {
		var waits []time.Duration
		r := repeatRunner(&waits)
		r.Context.Budget = budget
		task := repeatTask(rec)
		made := 0
		_, err := tryNode(t.Context(), r, task, func(context.Context) (int, error) {
			if made++; i == 0 && made == 3 || i == 1 {
				return 0, fault.New(fault.Limit, "the budget is used up")
			}
			if i == 2 {
				return 1, nil
			}
			budget.Spend(chat.Usage{OutputTokens: 100, Cost: 0.5})
			addUsage(task, chat.Usage{OutputTokens: 100, Cost: 0.5})
			return 0, errors.New("boom")
		})
		if (err == nil) != (i == 2) {
			t.Fatalf("round %d: %v", i, err)
		}
		if budget.OutputTokens != 200 || budget.Cost != 1 || task.Usage.OutputTokens != 200 || task.Retries != 2 {
			t.Errorf("round %d: the budget has %+v, the task %+v and %d retries", i, budget.Usage, task.Usage, task.Retries)
		}
	}
}

// Records of versions that did not keep what an attempt used are read.
func TestFailedAttemptOfOldRecords(t *testing.T) {
	rec := record{"a": {Done: true, Result: []byte("true")}, "b": {Done: true, Result: []byte(`{"usage":{"output_tokens":7}}`)}}
	for key, want := range map[string]int{"a": 0, "b": 7} {
		f, failed, err := steps.ReadNote[failedAttempt](t.Context(), steps.New(rec), key)
		if err != nil || !failed || f.Usage.OutputTokens != want {
			t.Errorf("%s: %+v, %v, %v", key, f, failed, err)
		}
	}
	if _, failed, err := steps.ReadNote[failedAttempt](t.Context(), steps.New(rec), "c"); failed || err != nil {
		t.Errorf("%v, %v", failed, err)
	}
}
