package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/fault/steps/stepstest"
	"loki/internal/tool"
	"loki/internal/tool/permission"
)

// makeFake makes the call of a program.
func makeFake(t testing.TB, b *tool.Box, st steps.Steps) (tool.Made, error) {
	t.Helper()
	return b.Make(t.Context(), "1", "fake", json.RawMessage(`{"a":1}`), st)
}

// TestMakeReturnsTheOutput: nothing is wrapped for a model, and a result on record is not made again.
func TestMakeReturnsTheOutput(t *testing.T) {
	t.Parallel()
	for _, output := range []string{"", "plain text", `{"output": "x"}`, "007"} {
		calls, rec := 0, new(stepstest.Recorder)
		subject := fake{name: "fake", call: func(context.Context, tool.Call) (tool.Result, error) {
			calls++
			return tool.Result{Output: output, Stderr: "noise"}, nil
		}}
		for range 2 {
			made, err := makeFake(t, newBox(t, tool.Options{}, subject), steps.New(rec))
			if err != nil || made.Output != output || made.Notes != nil {
				t.Errorf("%q: got %+v, %v", output, made, err)
			}
		}
		if calls != 1 {
			t.Errorf("%d calls, want 1", calls)
		}
	}
}

// TestMakeForgetsFailures: a call that failed is made again when the run is resumed, under the same key.
func TestMakeForgetsFailures(t *testing.T) {
	t.Parallel()
	rec := new(stepstest.Recorder)
	var keys []string
	subject := fake{name: "fake", call: func(_ context.Context, c tool.Call) (tool.Result, error) {
		if keys = append(keys, c.IdempotencyKey); len(keys) == 1 {
			return tool.Result{Output: "half", Stderr: "no disk\n"}, errors.New("it broke")
		}
		return tool.Result{Output: "whole"}, nil
	}}
	o := tool.Options{Run: "r", Key: "2/send"}
	_, err := makeFake(t, newBox(t, o, subject), steps.New(rec).At("retry/1"))
	if failed, ok := errors.AsType[*tool.CallError](err); !ok || failed.Text != "it broke; no disk; half" || fault.CodeOf(err) != fault.Tool {
		t.Errorf("got %v", err)
	}
	if len(rec.Keys()) != 0 {
		t.Errorf("on record are %v", rec.Keys())
	}
	made, err := makeFake(t, newBox(t, o, subject), steps.New(rec).At("retry/2"))
	if err != nil || made.Output != "whole" {
		t.Errorf("got %+v, %v", made, err)
	}
	if want := []string{"r/2/send", "r/2/send"}; !slices.Equal(keys, want) {
		t.Errorf("the keys are %q, want %q", keys, want)
	}
}

// TestMakeForgetsRefusals: what was refused may be allowed later, and the result has no advice for a model.
func TestMakeForgetsRefusals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		o    tool.Options
		want string
	}{
		{"rule", tool.Options{Judge: judgeOf(t, permission.Options{Rules: permission.Rules{List: []permission.Rule{{Tool: "fake", Action: permission.Deny}}}})}, "fake was not run: it is not allowed ("},
		{"user", tool.Options{Asker: ask.Func(func(context.Context, ask.Question) (string, error) { return "no", nil })}, "fake was not run: the user did not consent."},
		{"unattended", tool.Options{}, "fake was not run: it needs the user's consent, and the user cannot be asked here."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			subject, rec := newCounter(tool.Hints{Destructive: true}), new(stepstest.Recorder)
			_, err := makeFake(t, newBox(t, tt.o, subject), steps.New(rec))
			if _, ok := errors.AsType[*tool.CallError](err); !ok || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "Do not try") {
				t.Errorf("got %v", err)
			}
			if len(*subject.keys) > 0 || len(rec.Keys()) > 0 {
				t.Errorf("%d calls, on record are %v", len(*subject.keys), rec.Keys())
			}
			if made, err := makeFake(t, newBox(t, tool.Options{AutoConfirm: true}, subject), steps.New(rec)); err != nil || made.Output != "done" {
				t.Errorf("allowed later: got %+v, %v", made, err)
			}
		})
	}
}

// TestMakeSaysWhoAsks: the question names the node, since no model asked for the call.
func TestMakeSaysWhoAsks(t *testing.T) {
	t.Parallel()
	var asked ask.Question
	o := tool.Options{By: `Node "send"`, Asker: ask.Func(func(_ context.Context, q ask.Question) (string, error) {
		asked = q
		return "yes", nil
	})}
	if _, err := makeFake(t, newBox(t, o, newCounter(tool.Hints{Destructive: true})), steps.Steps{}); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(asked.Text, `Node "send" of the graph makes this call.`) || !strings.Contains(asked.Text, `{"a":1}`) {
		t.Errorf("asked: %s", asked.Text)
	}
}

// TestUncertainCallOfAProgram: what becomes of it is the policy's decision.
func TestUncertainCallOfAProgram(t *testing.T) {
	t.Parallel()
	for policy, want := range map[tool.Policy]int{tool.Skip: 1, tool.Retry: 2} {
		subject, rec := newCounter(tool.Hints{}), &stepstest.Recorder{Lose: "call"}
		o := tool.Options{Uncertain: policy}
		if _, err := makeFake(t, newBox(t, o, subject), steps.New(rec)); !errors.Is(err, stepstest.ErrDied) {
			t.Fatal(err)
		}
		rec.Lose = ""
		_, err := makeFake(t, newBox(t, o, subject), steps.New(rec))
		if skipped := errors.Is(err, steps.ErrSkipped); skipped != (policy == tool.Skip) || err != nil && !skipped {
			t.Errorf("%s: %v", policy, err)
		}
		if len(*subject.keys) != want {
			t.Errorf("%s: %d calls, want %d", policy, len(*subject.keys), want)
		}
	}
}
