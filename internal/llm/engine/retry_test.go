package engine

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/llm/provider"
)

// flaky fails with its errors, one after the other, and then says its text.
type flaky struct {
	errors   []error
	partial  string // said before each failure
	text     string
	calls    []chat.ToolCall // made in the first reply
	requests []provider.Request
}

func (f *flaky) Chat(_ context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	f.requests = append(f.requests, req)
	return func(yield func(provider.Chunk, error) bool) {
		if len(f.errors) > 0 {
			err := f.errors[0]
			f.errors = f.errors[1:]
			if f.partial != "" && !yield(provider.Chunk{Kind: provider.Text, Text: f.partial}, nil) {
				return
			}
			yield(provider.Chunk{}, err)
			return
		}
		if !yield(provider.Chunk{Kind: provider.Text, Text: f.text}, nil) {
			return
		}
		for _, call := range f.calls {
			if !yield(provider.Chunk{Kind: provider.ToolCall, ToolCall: call}, nil) {
				return
			}
		}
		f.calls = nil
		yield(provider.Chunk{Kind: provider.End, Stop: chat.StopEnd, Usage: chat.Usage{InputTokens: 10, OutputTokens: 1}}, nil)
	}
}

type modelMap map[string]Model

func (m modelMap) ChatModel(_ context.Context, id string) (Model, error) {
	model, ok := m[id]
	if !ok {
		return Model{}, fault.New(fault.NotFound, "no model %s", id)
	}
	model.ID, model.Name = id, strings.TrimPrefix(id, "c:")
	return model, nil
}

func overloaded() error {
	return &provider.Error{Kind: provider.Transient, Status: 529, Msg: "overloaded"}
}

func rateLimited() error {
	return &provider.Error{Kind: provider.RateLimited, RetryAfter: 7 * time.Second, Msg: "slow down"}
}

// threeTimes waits for 0.5 to 1 and for 1 to 2 seconds.
var threeTimes = retry.Policy{Attempts: 3, Backoff: 750 * time.Millisecond, Factor: 2, MaxBackoff: 15 * time.Second, Jitter: 1. / 3}

func TestRetry(t *testing.T) {
	t.Parallel()
	longWait := &provider.Error{Kind: provider.RateLimited, RetryAfter: time.Hour, Msg: "tomorrow"}
	halfADay := &provider.Error{Kind: provider.RateLimited, RetryAfter: 12 * time.Hour, Msg: "tonight"}
	invalid := &provider.Error{Kind: provider.Invalid, Msg: "no such thing"}
	after := func(d time.Duration) error {
		return &provider.Error{Kind: provider.RateLimited, RetryAfter: d, Msg: "slow down"}
	}
	second := after(time.Second)
	now := time.Date(2026, 11, 22, 9, 30, 0, 0, time.Local)
	for _, tt := range []struct {
		name    string
		errors  []error
		partial string
		calls   int
		waits   []time.Duration // the longest that each may be
		want    string          // text, or the error
		later   bool            // the error is a LaterError
	}{
		{"at_once", nil, "", 1, nil, "hello", false},
		{"transient", []error{overloaded(), overloaded()}, "", 3, []time.Duration{time.Second, 2 * time.Second}, "hello", false},
		{"as_asked", []error{rateLimited()}, "", 2, []time.Duration{7 * time.Second}, "hello", false},
		{"as_asked_the_longest", []error{after(time.Minute)}, "", 2, []time.Duration{time.Minute}, "hello", false},
		{"too_often", []error{overloaded(), overloaded(), overloaded()}, "", 3, []time.Duration{time.Second, 2 * time.Second}, "model c:m: overloaded (HTTP 529)", false},
		{"too_often_as_asked", []error{second, second, second}, "", 3, []time.Duration{time.Second, 2 * time.Second}, "model c:m: slow down; try again in 1 second, at 09:30:01", false},
		{"too_often_as_asked_the_longest", []error{second, second, after(time.Minute)}, "", 3, []time.Duration{time.Second, 2 * time.Second}, "model c:m: slow down; try again in 60 seconds, at 09:31:00", false},
		{"too_long", []error{longWait}, "", 1, nil, "model c:m: tomorrow; try again in 60 minutes, at 10:30:00", true},
		{"half_a_day", []error{halfADay}, "", 1, nil, "model c:m: tonight; try again in 12 hours, at November 22, 21:30", true},
		{"for_good", []error{invalid}, "", 1, nil, "model c:m: no such thing", false},
		{"something_was_said", []error{overloaded()}, "hel", 1, nil, "model c:m: overloaded (HTTP 529)", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := &flaky{errors: tt.errors, partial: tt.partial, text: "hello"}
			var waits []time.Duration
			e, err := New(Options{
				Models: modelMap{"c:m": {Provider: f, Retry: threeTimes}},
				Now:    func() time.Time { return now },
				Sleep:  func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			rc, _ := newContext()
			reply, err := e.Run(t.Context(), rc, user("hi"))
			got := reply.Text
			if err != nil {
				got = err.Error()
			}
			if got != tt.want || len(f.requests) != tt.calls {
				t.Errorf("%q after %d calls", got, len(f.requests))
			}
			if l, ok := errors.AsType[*LaterError](err); ok != tt.later || ok && !l.At.After(now.Add(threeTimes.Patience())) {
				t.Errorf("later: %+v", l)
			}
			if len(waits) != len(tt.waits) {
				t.Fatalf("waits %v", waits)
			}
			for i, most := range tt.waits {
				if waits[i] > most || waits[i] < most/2 {
					t.Errorf("wait %d is %v, not within %v", i+1, waits[i], most)
				}
			}
		})
	}
}

func TestTheWarningOfARetryRoundsTheWait(t *testing.T) {
	t.Parallel()
	f := &flaky{errors: []error{&provider.Error{Kind: provider.RateLimited, RetryAfter: 7049 * time.Millisecond, Msg: "slow down"}}, text: "hello"}
	e, err := New(Options{
		Models: modelMap{"c:m": {Provider: f, Retry: threeTimes}},
		Sleep:  func(context.Context, time.Duration) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	rc, events := newContext()
	if _, err := e.Run(t.Context(), rc, user("hi")); err != nil {
		t.Fatal(err)
	}
	want := []event.Warning{{Text: "model c:m: slow down; trying again in 7s"}}
	if diff := cmp.Diff(want, eventtest.Bodies[event.Warning](events)); diff != "" {
		t.Error(diff)
	}
}

func TestRoundedWait(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		time.Second: "1 second", 1500 * time.Millisecond: "2 seconds", 119 * time.Second: "119 seconds", 2 * time.Minute: "2 minutes",
		61*time.Minute + time.Second: "62 minutes", 2*time.Hour + time.Second: "3 hours", 24 * time.Hour: "24 hours",
	} {
		if got := roundedWait(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}

// TestFailuresAreShared: tries of the same work do not renew the repetitions of its calls, until
// one of them succeeds.
func TestFailuresAreShared(t *testing.T) {
	t.Parallel()
	f := &flaky{text: "hello"}
	e, err := New(Options{
		Models: modelMap{"c:m": {Provider: f, Retry: threeTimes}},
		Sleep:  func(context.Context, time.Duration) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	rc, _ := newContext()
	rc.Failures = new(Failures)
	for i, tt := range []struct{ failing, calls int }{{9, 3}, {6, 1}, {5, 1}, {0, 1}, {2, 3}} {
		f.errors, f.requests = slices.Repeat([]error{overloaded()}, tt.failing), nil
		if _, err := e.Run(t.Context(), rc, user("hi")); (err == nil) != (len(f.errors) == 0) || len(f.requests) != tt.calls {
			t.Errorf("request %d made %d calls, %v", i+1, len(f.requests), err)
		}
	}
}

func TestRetryEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	e, err := New(Options{Models: modelMap{"c:m": {Provider: &flaky{errors: []error{rateLimited()}}, Retry: threeTimes}}})
	if err != nil {
		t.Fatal(err)
	}
	rc, c := newContext()
	rc.Events = event.NewScope(event.Func(func(ctx context.Context, ev event.Event) error {
		if _, ok := ev.Body.(event.Warning); ok {
			cancel()
		}
		return c.Emit(ctx, ev)
	}), event.Source{}, nil)
	if _, err := e.Run(ctx, rc, user("hi")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestFallbackAtOnce: a model that is known to be out of reach is not asked again.
func TestFallbackAtOnce(t *testing.T) {
	t.Parallel()
	gone := &provider.Error{Kind: provider.Transient, Away: true, RetryAfter: 10 * time.Second, Msg: "gone"}
	first := &flaky{errors: []error{gone, gone, gone}}
	e, err := New(Options{Models: modelMap{"c:m": {Provider: first, Retry: threeTimes, Fallbacks: []string{"c:n"}}, "c:n": {Provider: &flaky{text: "done"}}}})
	if err != nil {
		t.Fatal(err)
	}
	rc, _ := newContext()
	if reply, err := e.Run(t.Context(), rc, user("hi")); err != nil || reply.Text != "done" || len(first.requests) != 1 {
		t.Errorf("%q, %v after %d calls", reply.Text, err, len(first.requests))
	}
}

func TestFallback(t *testing.T) {
	t.Parallel()
	perToken := func(u chat.Usage) (float64, bool) { return float64(u.InputTokens), true }
	first := &flaky{text: "thinking", calls: []chat.ToolCall{{ID: "1", Name: "look", Arguments: "{}", Signature: "proof"}}}
	second := &flaky{errors: []error{overloaded()}}
	third := &flaky{text: "done"}
	e, err := New(Options{Models: modelMap{
		"c:m": {Provider: first, SupportsTools: true, Fallbacks: []string{"c:n", "c:o"}, SystemPromptPrefix: "as m"},
		"c:n": {Provider: second},
		"c:o": {Provider: third, Price: perToken, Fallbacks: []string{"c:m"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	rc, collected := newContext()
	req := user("hi")
	req.Tools = toolFunc(func(chat.ToolCall) string {
		first.errors = []error{overloaded()} // from now on
		return "seen"
	})
	reply, err := e.Run(t.Context(), rc, req)
	if err != nil {
		t.Fatal(err)
	}
	if reply.Text != "thinking\ndone" || reply.Model != "c:o" || reply.Usage.Cost != 10 {
		t.Errorf("%+v", reply)
	}
	var warnings []string
	for _, ev := range collected.Events() {
		if w, ok := ev.Body.(event.Warning); ok {
			warnings = append(warnings, w.Text)
		}
	}
	want := []string{
		"model c:m is out of reach; asking c:n instead: model c:m: overloaded (HTTP 529)",
		"model c:n is out of reach; asking c:o instead: model c:n: overloaded (HTTP 529)",
	}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Error(diff)
	}
	sent := third.requests[0].Messages
	if len(sent) != 3 || sent[0].Role != chat.User || sent[1].ToolCalls[0].Signature != "" || sent[2].Text() != "seen" {
		t.Errorf("the fallback got %+v", sent)
	}
	if first.requests[1].Messages[2].ToolCalls[0].Signature != "proof" {
		t.Error("the model did not get its own proof back")
	}
}

// TestRecordedFallbackStays: a request that goes on from its record asks the fallback that
// answered, not the model that was out of reach.
func TestRecordedFallbackStays(t *testing.T) {
	t.Parallel()
	var rec record
	run := func(first, second provider.Chat) (Reply, error) {
		e, err := New(Options{Models: modelMap{
			"c:m": {Provider: first, SupportsTools: true, Fallbacks: []string{"c:n"}},
			"c:n": {Provider: second, SupportsTools: true},
		}})
		if err != nil {
			t.Fatal(err)
		}
		rc, _ := newContext()
		rc.Steps = steps.New(&rec)
		req := user("hi")
		req.Tools = toolFunc(func(chat.ToolCall) string { return "seen" })
		return e.Run(t.Context(), rc, req)
	}
	look := chat.ToolCall{ID: "1", Name: "look", Arguments: "{}"}
	if reply, err := run(&fake{err: overloaded()}, &fake{replies: [][]provider.Chunk{calls("I look.", look)}, err: errors.New("killed")}); err == nil {
		t.Fatalf("reply %+v", reply)
	}
	first, second := &fake{replies: [][]provider.Chunk{says("not me")}}, &fake{replies: [][]provider.Chunk{says("Done.")}}
	reply, err := run(first, second)
	if err != nil || reply.Text != "I look.\nDone." || reply.Model != "c:n" {
		t.Errorf("%+v, %v", reply, err)
	}
	if len(first.requests) != 0 || len(second.requests) != 1 {
		t.Errorf("%d requests to the first, %d to the fallback", len(first.requests), len(second.requests))
	}
}

// What a provider does in another way than asked is a warning, once for each model
// in a conversation.
func TestNotes(t *testing.T) {
	t.Parallel()
	e, err := New(Options{Models: modelMap{"c:m": {Provider: noting{}}, "c:n": {Provider: noting{}}}})
	if err != nil {
		t.Fatal(err)
	}
	rc, collected := newContext()
	for _, id := range []string{"c:m", "c:m", "c:n"} {
		rc.Model = id
		reply, err := e.Run(t.Context(), rc, user("hi"))
		if err != nil || reply.Text != "hello" {
			t.Errorf("text %q, error %v", reply.Text, err)
		}
	}
	var warnings []string
	for _, w := range eventtest.Bodies[event.Warning](collected) {
		warnings = append(warnings, w.Text)
	}
	want := []string{"model c:m: effort max is not available, so high is used", "model c:n: effort max is not available, so high is used"}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Error(diff)
	}
}

// noting is a provider with a note.
type noting struct{}

func (noting) Chat(context.Context, provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		_ = yield(provider.Chunk{Kind: provider.Note, Text: provider.MaxEffort.ReplacedNote(provider.HighEffort)}, nil) &&
			yield(provider.Chunk{Kind: provider.Text, Text: "hello"}, nil) &&
			yield(provider.Chunk{Kind: provider.End, Stop: chat.StopEnd}, nil)
	}
}

// toolFunc is one tool called look.
type toolFunc func(chat.ToolCall) string

func (toolFunc) Declarations() []chat.Tool { return []chat.Tool{{Name: "look"}} }

func (f toolFunc) Call(_ context.Context, call chat.ToolCall, _ steps.Steps) (string, bool, error) {
	return f(call), false, nil
}
