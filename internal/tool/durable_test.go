package tool_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/fault/steps/stepstest"
	"loki/internal/tool"
)

// counter is a tool that counts its calls, and the keys it was called with.
type counter struct {
	fake
	keys *[]string
}

func newCounter(h tool.Hints) counter {
	keys := new([]string)
	return counter{keys: keys, fake: fake{name: "fake", hints: h, call: func(_ context.Context, c tool.Call) (tool.Result, error) {
		*keys = append(*keys, c.IdempotencyKey)
		return tool.Result{Output: "done"}, nil
	}}}
}

func TestRecordedCallIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		hints tool.Hints
		args  string
		o     tool.Options
	}{
		{"effect", tool.Hints{}, "{}", tool.Options{}},
		{"read_only", tool.Hints{ReadOnly: true}, "{}", tool.Options{}},
		{"repaired_arguments", tool.Hints{}, `{"a": 1,}`, tool.Options{}},
		{"consent_in_advance", tool.Hints{Destructive: true}, "{}", tool.Options{AutoConfirm: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			subject, rec := newCounter(tt.hints), new(stepstest.Recorder)
			var first string
			for i := range 3 {
				// The later processes have nobody to ask and no consent in advance.
				o := tt.o
				o.AutoConfirm = o.AutoConfirm && i == 0
				text, failed, err := newBox(t, o, subject).Call(t.Context(), callFake(tt.args), steps.New(rec))
				if err != nil || failed || i > 0 && text != first {
					t.Fatalf("got %s, failed %v, error %v", text, failed, err)
				}
				first = text
			}
			if len(*subject.keys) != 1 {
				t.Errorf("%d calls, want 1", len(*subject.keys))
			}
		})
	}
}

// TestStatefulCallIsMadeAgain resumes a run: the call brings back its state, under the same key,
// and nothing about it is uncertain.
func TestStatefulCallIsMadeAgain(t *testing.T) {
	t.Parallel()
	rec := new(stepstest.Recorder)
	var keys []string
	subject := fake{name: "fake", hints: tool.Hints{Stateful: true}, call: func(_ context.Context, c tool.Call) (tool.Result, error) {
		keys = append(keys, c.Key)
		return tool.Result{Output: "made"}, nil
	}}
	for range 2 {
		text, failed, err := newBox(t, tool.Options{}, subject).Call(t.Context(), callFake("{}"), steps.New(rec).At("tool/1/1"))
		if err != nil || failed || text != `{"output":"made"}` {
			t.Fatalf("got %s, failed %v, error %v", text, failed, err)
		}
	}
	if want := []string{"tool/1/1/call", "tool/1/1/call"}; !slices.Equal(keys, want) {
		t.Errorf("the keys are %v, want %v", keys, want)
	}
	if len(rec.Keys()) != 0 {
		t.Errorf("on record are %v", rec.Keys())
	}
}

func TestRefusalIsRemembered(t *testing.T) {
	t.Parallel()
	subject, rec := newCounter(tool.Hints{Destructive: true}), new(stepstest.Recorder)
	for _, o := range []tool.Options{{}, {AutoConfirm: true}} {
		text, failed, err := newBox(t, o, subject).Call(t.Context(), callFake("{}"), steps.New(rec))
		if err != nil || !failed || !strings.Contains(text, "the user cannot be asked") {
			t.Errorf("got %s, %v", text, err)
		}
	}
	if len(*subject.keys) != 0 {
		t.Error("the call was made after it had been refused")
	}
}

func TestInterruptedQuestionLeavesNoDoubt(t *testing.T) {
	t.Parallel()
	subject, rec := newCounter(tool.Hints{Destructive: true}), new(stepstest.Recorder)
	ctx, cancel := context.WithCancel(t.Context())
	box := newBox(t, tool.Options{Asker: ask.Func(func(ctx context.Context, _ ask.Question) (string, error) {
		cancel()
		return "", ctx.Err()
	})}, subject)
	if _, _, err := box.Call(ctx, callFake("{}"), steps.New(rec)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if len(rec.Keys()) != 0 {
		t.Errorf("recorded %v, want nothing", rec.Keys())
	}
}

// died returns the record of a process that died between a call and its recording.
func died(t *testing.T, subject tool.Tool) *stepstest.Recorder {
	t.Helper()
	rec := new(stepstest.Recorder)
	rec.Lose = "call"
	if _, _, err := newBox(t, tool.Options{Run: "r"}, subject).Call(t.Context(), callFake("{}"), steps.New(rec)); !errors.Is(err, stepstest.ErrDied) {
		t.Fatalf("error %v, want that of the recorder", err)
	}
	rec.Lose = ""
	return rec
}

func TestUncertainCall(t *testing.T) {
	t.Parallel()
	answer := func(text string, err error) ask.Asker {
		return ask.Func(func(context.Context, ask.Question) (string, error) { return text, err })
	}
	for _, tt := range []struct {
		name  string
		hints tool.Hints
		o     tool.Options
		calls int // both processes together
		text  string
		code  fault.Code
	}{
		{"retry", tool.Hints{}, tool.Options{Uncertain: tool.Retry}, 2, "done", ""},
		{"skip", tool.Hints{}, tool.Options{Uncertain: tool.Skip}, 1, "unknown whether it did its work", ""},
		{"ask_yes", tool.Hints{}, tool.Options{Asker: answer("retry", nil)}, 2, "done", ""},
		{"ask_no", tool.Hints{}, tool.Options{Asker: answer("skip", nil)}, 1, "unknown whether it did its work", ""},
		{"ask_interactive", tool.Hints{Interactive: true}, tool.Options{Asker: answer("retry", nil)}, 2, "done", ""},
		{"ask_nobody", tool.Hints{}, tool.Options{Asker: answer("", ask.ErrUnavailable)}, 1, "", fault.Suspended},
		{"the_run_waits", tool.Hints{}, tool.Options{Asker: answer("", fault.New(fault.Suspended, "waits"))}, 1, "", fault.Suspended},
		{"no_way_to_ask", tool.Hints{}, tool.Options{}, 1, "", fault.Suspended},
		{"broken_off", tool.Hints{}, tool.Options{Asker: answer("", context.Canceled)}, 1, "", fault.Canceled},
		{"read_only", tool.Hints{ReadOnly: true}, tool.Options{Uncertain: tool.Skip}, 2, "done", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			subject := newCounter(tt.hints)
			rec := died(t, subject)
			o := tt.o
			o.Run = "r"
			text, _, err := newBox(t, o, subject).Call(t.Context(), callFake("{}"), steps.New(rec))
			if fault.CodeOf(err) != tt.code || !strings.Contains(text, tt.text) {
				t.Errorf("got %s, error %v", text, err)
			}
			if len(*subject.keys) != tt.calls {
				t.Fatalf("%d calls, want %d", len(*subject.keys), tt.calls)
			}
			for _, key := range *subject.keys {
				if key != "r/call" {
					t.Errorf("idempotency key %q, want r/call both times", key)
				}
			}
		})
	}
}

func TestSkippedCallStaysSkipped(t *testing.T) {
	t.Parallel()
	subject := newCounter(tool.Hints{})
	rec := died(t, subject)
	var texts []string
	for _, policy := range []tool.Policy{tool.Skip, tool.Retry} {
		text, failed, err := newBox(t, tool.Options{Uncertain: policy}, subject).Call(t.Context(), callFake("{}"), steps.New(rec))
		if err != nil || !failed {
			t.Fatalf("got %s, error %v", text, err)
		}
		texts = append(texts, text)
	}
	if texts[0] != texts[1] || len(*subject.keys) != 1 {
		t.Errorf("the model went on from %q, and is now told %q; %d calls", texts[0], texts[1], len(*subject.keys))
	}
}

func TestRetryIsAskedAboutEachTime(t *testing.T) {
	t.Parallel()
	subject := newCounter(tool.Hints{})
	rec := died(t, subject)
	asked := 0
	o := tool.Options{Asker: ask.Func(func(context.Context, ask.Question) (string, error) { asked++; return "retry", nil })}
	for range 2 {
		rec.Lose = "call"
		if _, _, err := newBox(t, o, subject).Call(t.Context(), callFake("{}"), steps.New(rec)); !errors.Is(err, stepstest.ErrDied) {
			t.Fatalf("error %v", err)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times, want 2: one consent is for one attempt", asked)
	}
}
