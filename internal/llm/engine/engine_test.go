package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine/token"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/llm/provider"
)

// fake is a provider that plays replies, one a call, and keeps the requests.
type fake struct {
	mu       sync.Mutex
	replies  [][]provider.Chunk
	err      error // after the last reply
	requests []provider.Request
}

func (f *fake) Chat(_ context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, req)
	if len(f.replies) == 0 {
		return func(yield func(provider.Chunk, error) bool) { yield(provider.Chunk{}, f.err) }
	}
	reply := f.replies[0]
	f.replies = f.replies[1:]
	return func(yield func(provider.Chunk, error) bool) {
		for _, c := range reply {
			if !yield(c, nil) {
				return
			}
		}
		if reply[len(reply)-1].Kind != provider.End {
			yield(provider.Chunk{}, f.err)
		}
	}
}

// says is a reply of text pieces.
func says(pieces ...string) []provider.Chunk {
	var reply []provider.Chunk
	for _, p := range pieces {
		reply = append(reply, provider.Chunk{Kind: provider.Text, Text: p})
	}
	return append(reply, end(chat.StopEnd))
}

// calls is a reply that says text and calls tools.
func calls(text string, calls ...chat.ToolCall) []provider.Chunk {
	var reply []provider.Chunk
	if text != "" {
		reply = append(reply, provider.Chunk{Kind: provider.Text, Text: text})
	}
	for _, c := range calls {
		reply = append(reply, provider.Chunk{Kind: provider.ToolCall, ToolCall: c})
	}
	return append(reply, end(chat.StopToolCalls))
}

func end(stop chat.StopReason) provider.Chunk {
	return provider.Chunk{Kind: provider.End, Stop: stop, Usage: chat.Usage{InputTokens: 10, OutputTokens: 1}}
}

// one is Models of one model.
type one Model

func (m one) ChatModel(_ context.Context, id string) (Model, error) {
	if id != "c:m" {
		return Model{}, fault.New(fault.NotFound, "no model %q", id)
	}
	return Model(m), nil
}

func newEngine(t *testing.T, m Model) *Engine {
	t.Helper()
	m.ID, m.Name = "c:m", "m"
	e, err := New(Options{Models: one(m)})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func newContext() (*RequestContext, *eventtest.Collector) {
	c := new(eventtest.Collector)
	return &RequestContext{Model: "c:m", Events: event.NewScope(c, event.Source{Node: "n"}, nil)}, c
}

func user(text string) Request {
	return Request{Messages: []chat.Message{chat.Text(chat.User, text)}}
}

func TestNewNeedsModels(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("an engine without models")
	}
}

func TestRunWithoutTools(t *testing.T) {
	boom := &provider.Error{Kind: provider.Transient, Msg: "boom"}
	for _, tt := range []struct {
		name    string
		reply   []provider.Chunk
		want    string
		stop    chat.StopReason
		types   []string
		wantErr error
	}{
		{name: "pieces", reply: says("Hel", "lo"), want: "Hello", stop: chat.StopEnd, types: []string{"model_call", "delta", "delta", "reply"}},
		{name: "cut", reply: []provider.Chunk{{Kind: provider.Text, Text: "Hel"}, end(chat.StopLength)}, want: "Hel", stop: chat.StopLength, types: []string{"model_call", "delta", "reply", "warning"}},
		{name: "reasoning", reply: append([]provider.Chunk{{Kind: provider.Reasoning, Text: "hm", Signature: "s"}}, says("Hello")...), want: "Hello", stop: chat.StopEnd, types: []string{"model_call", "reasoning", "delta", "reply"}},
		{name: "fails", reply: nil, types: []string{"model_call"}, wantErr: boom},
		{name: "breaks", reply: []provider.Chunk{{Kind: provider.Text, Text: "Hel"}}, want: "Hel", types: []string{"model_call", "delta"}, wantErr: boom},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &fake{err: boom}
			if tt.reply != nil {
				f.replies = [][]provider.Chunk{tt.reply}
			}
			rc, events := newContext()
			reply, err := newEngine(t, Model{Provider: f}).Run(t.Context(), rc, user("hi"))
			if !errors.Is(err, tt.wantErr) || (err == nil) != (tt.wantErr == nil) {
				t.Fatalf("error %v, want %v", err, tt.wantErr)
			}
			if err != nil && !strings.Contains(err.Error(), "c:m") {
				t.Errorf("%v does not name the model", err)
			}
			if reply.Text != tt.want || reply.Stop != tt.stop || reply.Model != "c:m" {
				t.Errorf("reply %+v", reply)
			}
			if diff := cmp.Diff(tt.types, types(events)); diff != "" {
				t.Errorf("events:\n%s", diff)
			}
		})
	}
}

func types(c *eventtest.Collector) []string {
	var names []string
	for _, ev := range c.Events() {
		names = append(names, ev.Body.Type())
	}
	return names
}

func TestReasoningIsKeptForTheNextTurn(t *testing.T) {
	f := &fake{replies: [][]provider.Chunk{
		append([]provider.Chunk{
			{Kind: provider.Reasoning, Text: "I "},
			{Kind: provider.Reasoning, Text: "think"},
			{Kind: provider.Reasoning, Signature: "a"},
			{Kind: provider.Reasoning, Signature: "secret"},
			{Kind: provider.Text, Text: "well, "},
			{Kind: provider.Reasoning, Text: "again"},
		}, says("so")...),
	}}
	rc, _ := newContext()
	reply, err := newEngine(t, Model{Provider: f}).Run(t.Context(), rc, user("hi"))
	if err != nil {
		t.Fatal(err)
	}
	want := []chat.Part{
		{Type: chat.ReasoningPart, Text: "I think", Signature: "a"},
		{Type: chat.ReasoningPart, Signature: "secret"},
		{Type: chat.TextPart, Text: "well, "},
		{Type: chat.ReasoningPart, Text: "again"},
		{Type: chat.TextPart, Text: "so"},
	}
	if diff := cmp.Diff(want, reply.Messages[0].Parts); diff != "" {
		t.Error(diff)
	}
}

func TestRequestToTheProvider(t *testing.T) {
	temperature := func(v float64) *float64 { return &v }
	for _, tt := range []struct {
		name   string
		model  Model
		rc     RequestContext
		req    Request
		stream bool
		temp   float64
	}{
		{name: "context", rc: RequestContext{Sampling: chat.Sampling{Temperature: temperature(0.5)}}, req: user("x"), stream: true, temp: 0.5},
		{name: "request_beats_context", rc: RequestContext{Sampling: chat.Sampling{Temperature: temperature(0.5)}}, req: Request{Messages: user("x").Messages, Sampling: chat.Sampling{Temperature: temperature(0)}}, stream: true},
		{name: "user_wants_one_piece", rc: RequestContext{NoStream: true, Sampling: chat.Sampling{Temperature: temperature(1)}}, req: user("x"), temp: 1},
		{name: "model_cannot_stream", model: Model{NoStream: true}, rc: RequestContext{Sampling: chat.Sampling{Temperature: temperature(1)}}, req: user("x"), temp: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &fake{replies: [][]provider.Chunk{says("y")}}
			tt.model.Provider, tt.model.MaxOutputTokens = f, 99
			tt.rc.Model = "c:m"
			if _, err := newEngine(t, tt.model).Run(t.Context(), &tt.rc, tt.req); err != nil {
				t.Fatal(err)
			}
			got := f.requests[0]
			if got.Model != "m" || got.Stream != tt.stream || *got.Temperature != tt.temp || got.TopP != nil || got.MaxOutputTokens != 99 || got.Tools != nil {
				t.Errorf("request %+v", got)
			}
		})
	}
}

func TestSystemMessages(t *testing.T) {
	system, text := chat.Text(chat.System, "Be brief."), chat.Text(chat.User, "hi")
	for _, tt := range []struct {
		name     string
		model    Model
		messages []chat.Message
		want     []string // role: text
	}{
		{"as_they_are", Model{}, []chat.Message{system, text}, []string{"system: Be brief.", "user: hi"}},
		{"prefix", Model{SystemPromptPrefix: "P"}, []chat.Message{system, text}, []string{"system: P\n\nBe brief.", "user: hi"}},
		{"prefix_alone", Model{SystemPromptPrefix: "P"}, []chat.Message{text}, []string{"system: P", "user: hi"}},
		{"no_system", Model{NoSystemMessage: true}, []chat.Message{system, text}, []string{"user: Be brief.\n\nhi"}},
		{"no_system_to_merge", Model{NoSystemMessage: true}, []chat.Message{text}, []string{"user: hi"}},
		{"system_alone", Model{NoSystemMessage: true}, []chat.Message{system}, []string{"system: Be brief."}},
		{"prefix_of_nothing", Model{SystemPromptPrefix: "P"}, nil, []string{"system: P"}},
		{"prefix_and_no_system", Model{SystemPromptPrefix: "P", NoSystemMessage: true}, []chat.Message{system, text}, []string{"user: P\n\nBe brief.\n\nhi"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &fake{replies: [][]provider.Chunk{says("y"), says("y")}}
			tt.model.Provider = f
			e := newEngine(t, tt.model)
			for range 2 { // the caller's messages stay as they are, so a second time is the same
				rc, _ := newContext()
				if _, err := e.Run(t.Context(), rc, Request{Messages: tt.messages}); err != nil {
					t.Fatal(err)
				}
			}
			for _, req := range f.requests {
				var got []string
				for _, m := range req.Messages {
					got = append(got, string(m.Role)+": "+m.Text())
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestTooLongAConversationIsNotSent(t *testing.T) {
	f := &fake{replies: [][]provider.Chunk{says("y")}}
	e := newEngine(t, Model{Provider: f, MaxInputTokens: 50})
	rc, _ := newContext()
	if _, err := e.Run(t.Context(), rc, user("short")); err != nil {
		t.Errorf("a short one: %v", err)
	}
	_, err := e.Run(t.Context(), rc, user(strings.Repeat("long ", 100)))
	if p, ok := errors.AsType[*provider.Error](err); !ok || p.Kind != provider.ContextOverflow || !strings.Contains(err.Error(), "50") {
		t.Errorf("error %v", err)
	}
	if len(f.requests) != 1 {
		t.Errorf("%d requests were sent", len(f.requests))
	}
}

// TestAnEstimateOfAThirdIsCounted: some scripts take several tokens a character, of which
// the estimate knows nothing.
func TestAnEstimateOfAThirdIsCounted(t *testing.T) {
	t.Parallel()
	req := user(strings.Repeat("\U00012000", 100)) // cuneiform
	limit := 3 * token.Estimate().Messages(req.Messages)
	if exact := token.For("gpt-4o").Messages(req.Messages); exact <= limit {
		t.Fatalf("%d tokens, which fit into %d", exact, limit)
	}
	f := &fake{replies: [][]provider.Chunk{says("y")}}
	e, err := New(Options{Models: one(Model{ID: "c:m", Name: "gpt-4o", Provider: f, MaxInputTokens: limit})})
	if err != nil {
		t.Fatal(err)
	}
	rc, _ := newContext()
	_, err = e.Run(t.Context(), rc, req)
	if p, ok := errors.AsType[*provider.Error](err); !ok || p.Kind != provider.ContextOverflow || len(f.requests) != 0 {
		t.Errorf("error %v after %d requests", err, len(f.requests))
	}
}

func TestUnknownModel(t *testing.T) {
	rc, events := newContext()
	rc.Model = "c:other"
	if _, err := newEngine(t, Model{}).Run(t.Context(), rc, user("hi")); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("error %v", err)
	}
	if got := events.Events(); len(got) != 0 {
		t.Errorf("events %v", got)
	}
}

func TestEmitterErrorEndsTheRequest(t *testing.T) {
	full := errors.New("disk full")
	f := &fake{replies: [][]provider.Chunk{says("a", "b", "c")}}
	rc := &RequestContext{Model: "c:m", Events: event.NewScope(event.Func(func(_ context.Context, ev event.Event) error {
		if d, ok := ev.Body.(event.Delta); ok && d.Text == "b" {
			return full
		}
		return nil
	}), event.Source{}, nil)}
	reply, err := newEngine(t, Model{Provider: f}).Run(t.Context(), rc, user("hi"))
	if !errors.Is(err, full) || reply.Text != "ab" {
		t.Errorf("reply %q, error %v", reply.Text, err)
	}
}

// tools is a [Tools] of functions.
type tools map[string]func(ctx context.Context, arguments string) (string, bool, error)

func (ts tools) Declarations() []chat.Tool { return []chat.Tool{{Name: "slow"}, {Name: "fast"}} }

func (ts tools) Call(ctx context.Context, call chat.ToolCall, _ steps.Steps) (string, bool, error) {
	fn, ok := ts[call.Name]
	if !ok {
		return fmt.Sprintf("there is no tool %q", call.Name), true, nil
	}
	return fn(ctx, call.Arguments)
}

func TestToolLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{replies: [][]provider.Chunk{
			calls("Let me see.", chat.ToolCall{ID: "1", Name: "slow", Arguments: "{}"}, chat.ToolCall{ID: "2", Name: "fast", Arguments: "{}"}, chat.ToolCall{ID: "3", Name: "none", Arguments: "{}"}),
			says("Done."),
		}}
		ts := tools{
			"slow": func(context.Context, string) (string, bool, error) {
				time.Sleep(time.Second)
				return "was slow", false, nil
			},
			"fast": func(context.Context, string) (string, bool, error) { return "was fast", false, nil },
		}
		rc, events := newContext()
		req := user("hi")
		req.Tools = ts
		reply, err := newEngine(t, Model{Provider: f, SupportsTools: true}).Run(t.Context(), rc, req)
		if err != nil {
			t.Fatal(err)
		}
		if reply.Text != "Let me see.\nDone." || reply.Usage.InputTokens != 20 || len(reply.Messages) != 5 {
			t.Errorf("reply %+v", reply)
		}
		// The results are in the order of the calls, whichever came first.
		second := f.requests[1].Messages
		var got []string
		for _, m := range second[2:] {
			got = append(got, fmt.Sprintf("%s %s %t: %s", m.ToolCallID, m.ToolName, m.Failed, m.Text()))
		}
		want := []string{"1 slow false: was slow", "2 fast false: was fast", `3 none true: there is no tool "none"`}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if f.requests[0].Origin.Turn != 1 || f.requests[1].Origin.Turn != 2 || f.requests[1].Origin.Node != "n" {
			t.Errorf("origins %+v, %+v", f.requests[0].Origin, f.requests[1].Origin)
		}
		if len(f.requests[0].Tools) != 2 {
			t.Errorf("declared %v", f.requests[0].Tools)
		}
		var failed []string
		for _, r := range eventtest.Bodies[event.ToolResult](events) {
			if r.Failed {
				failed = append(failed, r.Name)
			}
		}
		if len(eventtest.Bodies[event.ToolCall](events)) != 3 || len(failed) != 1 || failed[0] != "none" {
			t.Errorf("events %v", events.Events())
		}
	})
}

func TestToolCallsRunSideBySideUpToALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var many []chat.ToolCall
		for i := range 2*toolConcurrency + 1 {
			many = append(many, chat.ToolCall{ID: fmt.Sprint(i), Name: "wait"})
		}
		f := &fake{replies: [][]provider.Chunk{calls("", many...), says("Done.")}}
		var mu sync.Mutex
		running, most := 0, 0
		ts := tools{"wait": func(context.Context, string) (string, bool, error) {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			running--
			mu.Unlock()
			return "", false, nil
		}}
		rc, _ := newContext()
		req := user("hi")
		req.Tools = ts
		begin := time.Now()
		if _, err := newEngine(t, Model{Provider: f, SupportsTools: true}).Run(t.Context(), rc, req); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); most != toolConcurrency || took != 3*time.Second {
			t.Errorf("%d at once, for %s", most, took)
		}
	})
}

func TestToolLoopEnds(t *testing.T) {
	call := chat.ToolCall{ID: "1", Name: "again"}
	broken := errors.New("out of order")
	again := func(context.Context, string) (string, bool, error) { return "again", false, nil }
	for _, tt := range []struct {
		name  string
		tools Tools
		max   int
		calls int
		check func(error) bool
	}{
		{"after_max_turns", tools{"again": again}, 3, 3, func(err error) bool {
			e, ok := errors.AsType[*MaxTurnsError](err)
			return ok && e.Turns == 3
		}},
		{"without_tools", nil, 3, 1, func(err error) bool {
			e, ok := errors.AsType[*provider.Error](err)
			return ok && e.Kind == provider.BadReply
		}},
		{"by_an_error", tools{"again": func(context.Context, string) (string, bool, error) { return "", false, broken }}, 3, 1, func(err error) bool {
			return errors.Is(err, broken) && strings.Contains(err.Error(), "tool again")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &fake{}
			for range 5 {
				f.replies = append(f.replies, calls("more", call))
			}
			rc, _ := newContext()
			req := user("hi")
			req.Tools, req.MaxTurns = tt.tools, tt.max
			_, err := newEngine(t, Model{Provider: f, SupportsTools: true}).Run(t.Context(), rc, req)
			if !tt.check(err) {
				t.Errorf("error %v", err)
			}
			if len(f.requests) != tt.calls {
				t.Errorf("the model was called %d times", len(f.requests))
			}
		})
	}
}

func TestCanceledBetweenTools(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := &fake{replies: [][]provider.Chunk{calls("", chat.ToolCall{ID: "1", Name: "stop"}), says("never")}}
	rc, _ := newContext()
	req := user("hi")
	req.Tools = tools{"stop": func(ctx context.Context, _ string) (string, bool, error) { cancel(); return "", false, ctx.Err() }}
	if _, err := newEngine(t, Model{Provider: f, SupportsTools: true}).Run(ctx, rc, req); fault.CodeOf(err) != fault.Canceled {
		t.Errorf("error %v", err)
	}
	if len(f.requests) != 1 {
		t.Errorf("the model was called %d times", len(f.requests))
	}
}

// record is a [steps.Recorder] in memory.
type record struct{ results sync.Map } // by key

func (r *record) Lookup(_ context.Context, key string, _ steps.Step) (steps.Record, error) {
	result, ok := r.results.Load(key)
	if !ok {
		return steps.Record{}, nil
	}
	return steps.Record{Result: result.([]byte), Done: true}, nil
}
func (*record) Begin(context.Context, string, steps.Step) error { return nil }
func (*record) Forget(context.Context, string) error            { return nil }

func (r *record) Record(_ context.Context, key string, _ steps.Step, result []byte) error {
	r.results.Store(key, result)
	return nil
}

// keys returns the keys of what is recorded, sorted.
func (r *record) keys() []string {
	var keys []string
	r.results.Range(func(key, _ any) bool {
		keys = append(keys, key.(string))
		return true
	})
	slices.Sort(keys)
	return keys
}

func TestRecordedTurnIsNotMadeAgain(t *testing.T) {
	var rec record
	run := func(f *fake) Reply {
		t.Helper()
		rc, _ := newContext()
		rc.Steps = steps.New(&rec)
		req := user("hi")
		req.Tools = tools{"again": func(context.Context, string) (string, bool, error) { return "again", false, nil }}
		reply, err := newEngine(t, Model{Provider: f, SupportsTools: true}).Run(t.Context(), rc, req)
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	first := &fake{replies: [][]provider.Chunk{calls("See:", chat.ToolCall{ID: "1", Name: "again"}), says("Done.")}}
	want := run(first)
	second := &fake{err: errors.New("must not be called")}
	if got := run(second); got.Text != want.Text || len(second.requests) != 0 {
		t.Errorf("got %q after %d calls, want %q without any", got.Text, len(second.requests), want.Text)
	}
}

// spendings is a [Budget] without limits that adds up what is spent without a reservation.
type spendings struct {
	spent, settled chat.Usage
	most           chat.Usage // of the last reservation
	bounded        bool
}

func (s *spendings) Reserve(_ context.Context, _, most chat.Usage, bounded bool) (func(chat.Usage), error) {
	s.most, s.bounded = most, bounded
	return func(used chat.Usage) { s.settled = s.settled.Add(used) }, nil
}

func (s *spendings) Spend(used chat.Usage) { s.spent = s.spent.Add(used) }

// TestRecordedTurnCountsInTheBudget: a call that is made is settled with its reservation,
// a recorded one has none. A call that fails is not a recorded one.
func TestRecordedTurnCountsInTheBudget(t *testing.T) {
	t.Parallel()
	var rec record
	for _, tt := range []struct {
		name           string
		replies        [][]provider.Chunk
		fails          bool
		spent, settled int // input tokens
	}{
		{"fails", nil, true, 0, 0},
		{"made", [][]provider.Chunk{says("Done.")}, false, 0, 10},
		{"recorded", nil, false, 10, 0},
	} {
		var b spendings
		rc, _ := newContext()
		rc.Steps, rc.Budget = steps.New(&rec), &b
		f := &fake{replies: tt.replies, err: errors.New("out of order")}
		if _, err := newEngine(t, Model{Provider: f}).Run(t.Context(), rc, user("hi")); (err != nil) != tt.fails {
			t.Errorf("%s: error %v", tt.name, err)
		}
		if b.spent.InputTokens != tt.spent || b.settled.InputTokens != tt.settled {
			t.Errorf("%s: spent %d tokens, settled %d", tt.name, b.spent.InputTokens, b.settled.InputTokens)
		}
	}
}

// TestReservationsAreBoundedByTheOutputLimit that the request is sent with, or else the
// model's own; without one it is not known how much a call uses.
func TestReservationsAreBoundedByTheOutputLimit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		model   Model
		most    int // output tokens
		bounded bool
	}{
		{"of_the_request", Model{MaxOutputTokens: 64, OutputLimit: 99}, 64, true},
		{"of_the_model", Model{OutputLimit: 99}, 99, true},
		{"none", Model{}, 0, false},
	} {
		var b spendings
		rc, _ := newContext()
		rc.Budget, tt.model.Provider = &b, &fake{replies: [][]provider.Chunk{says("Done.")}}
		if _, err := newEngine(t, tt.model).Run(t.Context(), rc, user("hi")); err != nil {
			t.Fatal(err)
		}
		if b.most.OutputTokens != tt.most || b.bounded != tt.bounded {
			t.Errorf("%s: at most %d output tokens, bounded: %v", tt.name, b.most.OutputTokens, b.bounded)
		}
	}
}

// recorder is a [Tools] whose only tool records a step of its own.
type recorder struct{}

func (recorder) Declarations() []chat.Tool { return []chat.Tool{{Name: "save"}} }

func (recorder) Call(ctx context.Context, _ chat.ToolCall, st steps.Steps) (string, bool, error) {
	text, err := steps.Do(ctx, st, steps.Step{Kind: steps.Tool, Key: "run"}, func(context.Context) (string, error) { return "saved", nil })
	return text, false, err
}

// TestKeysOfRecordedSteps: journals of earlier versions are resumed by these keys.
func TestKeysOfRecordedSteps(t *testing.T) {
	t.Parallel()
	save := func(id string) chat.ToolCall {
		return chat.ToolCall{ID: id, Name: "save", Arguments: `{"id":"` + id + `"}`}
	}
	f := &fake{replies: [][]provider.Chunk{calls("", save("a"), save("b")), calls("", save("c")), says("Done.")}}
	var rec record
	rc, _ := newContext()
	rc.Steps = steps.New(&rec)
	req := user("hi")
	req.Tools = recorder{}
	if _, err := newEngine(t, Model{Provider: f, SupportsTools: true}).Run(t.Context(), rc, req); err != nil {
		t.Fatal(err)
	}
	want := []string{"model/1", "model/2", "model/3", "tool/1/1/run", "tool/1/2/run", "tool/2/1/run"}
	if diff := cmp.Diff(want, rec.keys()); diff != "" {
		t.Error(diff)
	}
}
