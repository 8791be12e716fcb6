package conversation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"loki/internal/conversation"
	"loki/internal/conversation/session"
	sessionstore "loki/internal/conversation/session/memstore"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/llm/provider"
	"loki/internal/tool"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
)

// worker is a model that calls its tool in its first replies, as often as rounds says. It notes the messages that it gets.
type worker struct {
	rounds   int
	requests [][]chat.Message
	asked    func(turn int) // is called by each request, from 1; nil for nothing
	fails    error          // of the last reply; nil for none
}

func (w *worker) ChatModel(context.Context, string) (engine.Model, error) {
	return engine.Model{ID: "test:worker", Provider: w, SupportsTools: true}, nil
}

func (w *worker) Chat(ctx context.Context, r provider.Request) iter.Seq2[provider.Chunk, error] {
	w.requests = append(w.requests, slices.Clone(r.Messages))
	turn := len(w.requests)
	if w.asked != nil {
		w.asked(turn)
	}
	return func(yield func(provider.Chunk, error) bool) {
		switch {
		case ctx.Err() != nil:
			yield(provider.Chunk{}, ctx.Err())
		case turn <= w.rounds:
			call := chat.ToolCall{ID: "c", Name: "work", Arguments: fmt.Sprintf(`{"n":%d}`, turn)}
			if yield(provider.Chunk{Kind: provider.ToolCall, ToolCall: call}, nil) {
				yield(provider.Chunk{Kind: provider.End, Stop: chat.StopToolCalls}, nil)
			}
		case w.fails != nil:
			yield(provider.Chunk{}, w.fails)
		default:
			if yield(provider.Chunk{Kind: provider.Text, Text: "done"}, nil) {
				yield(provider.Chunk{Kind: provider.End, Stop: chat.StopEnd}, nil)
			}
		}
	}
}

// work is the tool.
type work struct{ do func() }

func (work) Declaration() chat.Tool {
	return chat.Tool{Name: "work", Parameters: json.RawMessage(`{"type":"object"}`)}
}
func (work) Hints() tool.Hints { return tool.Hints{ReadOnly: true} }
func (w work) Call(context.Context, tool.Call) (tool.Result, error) {
	if w.do != nil {
		w.do()
	}
	return tool.Result{Output: "worked"}, nil
}

// steered begins a conversation with a worker in a session.
func steered(t *testing.T, w *worker, do func(c *conversation.Conversation)) (*conversation.Conversation, *eventtest.Collector) {
	t.Helper()
	e, err := engine.New(engine.Options{Models: w})
	if err != nil {
		t.Fatal(err)
	}
	sessions := sessionstore.New(session.Options{})
	var c *conversation.Conversation
	service := &conversation.Service{
		Engine: e, Settings: chat.Settings{Model: "test:worker"}, Sessions: func() (session.Store, error) { return sessions, nil },
		Tools: func(context.Context, conversation.Wanted) (conversation.Kit, func(), error) {
			set, err := tool.NewSet(work{func() {
				if do != nil {
					do(c)
				}
			}})
			return conversation.Kit{Calling: true, Tools: set}, func() {}, err
		},
	}
	events := new(eventtest.Collector)
	c = service.Begin(conversation.Options{Interactive: true, Caller: conversation.Caller{Events: event.NewScope(events, event.Source{}, nil)}})
	if err := c.UseSession(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	return c, events
}

// shape returns the roles and texts of messages.
func shape(messages []chat.Message) string {
	var parts []string
	for _, m := range messages {
		text := string(m.Role)
		if m.Steer {
			text += "!"
		}
		if m.Text() != "" {
			text += " " + m.Text()
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// firstIn returns in which requests a text is new: in them, and not in those before.
func firstIn(requests [][]chat.Message, text string) (in []int) {
	before := 0
	for i, messages := range requests {
		n := 0
		for _, m := range messages {
			n += strings.Count(m.Text(), text)
		}
		for range n - before {
			in = append(in, i+1)
		}
		before = n
	}
	return in
}

// TestSteer: a line that is sent while a tool works follows its result, and one that is sent during the last reply is the next question.
// Each is in one request first, and in the session once, in the turn of the question.
func TestSteer(t *testing.T) {
	t.Parallel()
	calls := 0
	w := &worker{rounds: 2}
	c, events := steered(t, w, func(c *conversation.Conversation) {
		if calls++; calls == 1 {
			for _, text := range []string{"first", "taken back", "second"} {
				if err := c.Steer(context.Background(), text); err != nil {
					t.Error(err)
				}
				if text == "taken back" && c.Unsteer(context.Background()) != text {
					t.Error("it cannot be taken back")
				}
			}
			if got := c.UnreadSteering(); !slices.Equal(got, []string{"first", "second"}) {
				t.Errorf("%q wait", got)
			}
		}
	})
	w.asked = func(turn int) {
		if turn == 3 {
			if err := c.Steer(context.Background(), "third"); err != nil {
				t.Error(err)
			}
		}
	}
	if err := c.Steer(t.Context(), "too early"); err == nil {
		t.Error("a message is sent to no answer")
	}
	a, err := c.Tell(t.Context(), question("go"))
	if err != nil || a.Text != "done\ndone" {
		t.Fatalf("%q, %v", a.Text, err)
	}
	want := "user go, assistant, tool {\"output\":\"worked\"}, user! first, user! second, assistant, tool {\"output\":\"worked\"}, assistant done, user! third, assistant done"
	if got := shape(c.Session().Messages()); got != want {
		t.Errorf("the session has\n%s\nwant\n%s", got, want)
	}
	for text, in := range map[string][]int{"first": {2}, "second": {2}, "third": {4}, "taken back": nil, "too early": nil} {
		if got := firstIn(w.requests, text); !slices.Equal(got, in) {
			t.Errorf("%q is new in the requests %v, want %v", text, got, in)
		}
	}
	var heard []string
	for _, ev := range events.Events() {
		if b, ok := ev.Body.(event.Steered); ok {
			heard = append(heard, b.Text)
		}
	}
	if !slices.Equal(heard, []string{"first", "second", "third"}) {
		t.Errorf("the events are of %q", heard)
	}
	if err := c.Steer(t.Context(), "too late"); err == nil || len(c.Unsaid()) > 0 {
		t.Errorf("after the answer: %v", err)
	}
	if n := c.Session().UserMessages(); n != 1 {
		t.Errorf("%d questions", n)
	}
	if _, err := c.Undo(t.Context()); err != nil || len(c.Session().Messages()) > 0 {
		t.Errorf("after undo there are %s, %v", shape(c.Session().Messages()), err)
	}
}

// TestSteerComesBack: what an answer that fails has not used is returned, once; what it has used stays in the session.
func TestSteerComesBack(t *testing.T) {
	t.Parallel()
	w := &worker{rounds: 1, fails: errors.New("gone")}
	c, _ := steered(t, w, func(c *conversation.Conversation) {
		if err := c.Steer(context.Background(), "used"); err != nil {
			t.Error(err)
		}
	})
	w.asked = func(turn int) {
		if turn == 2 {
			if err := c.Steer(context.Background(), "unused"); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := c.Tell(t.Context(), question("go")); err == nil {
		t.Fatal("it does not fail")
	}
	if got := c.Unsaid(); !slices.Equal(got, []string{"unused"}) || len(c.Unsaid()) > 0 {
		t.Errorf("%q came back", got)
	}
	if got := shape(c.Session().Messages()); strings.Count(got, "user! used") != 1 || strings.Contains(got, "unused") {
		t.Errorf("the session has %s", got)
	}
}

// TestSteerIsBounded: an answer takes 20 messages of 64 KiB in all that it has not read.
func TestSteerIsBounded(t *testing.T) {
	t.Parallel()
	w := &worker{rounds: 1}
	c, _ := steered(t, w, func(c *conversation.Conversation) {
		if c.Steer(context.Background(), strings.Repeat("x", 64<<10+1)) == nil {
			t.Error("a long message is taken")
		}
		for i := range 21 {
			if err := c.Steer(context.Background(), "x"); (err == nil) != (i < 20) {
				t.Errorf("message %d: %v", i+1, err)
			}
		}
	})
	if _, err := c.Tell(t.Context(), question("go")); err != nil {
		t.Fatal(err)
	}
}

// TestSteerAcrossInterruptions interrupts a recorded turn at each of its model calls and tools, and resumes it: each message is new in one
// request that was answered, and in the messages of the turn once.
func TestSteerAcrossInterruptions(t *testing.T) {
	t.Parallel()
	for cut := 1; cut <= 7; cut++ {
		w := &worker{rounds: 3}
		e, err := engine.New(engine.Options{Models: w})
		if err != nil {
			t.Fatal(err)
		}
		store := lasting{memstore.New(nil)}
		var c *conversation.Conversation
		at, interrupt := 0, context.CancelCauseFunc(nil)
		step := func() { // of a model or a tool
			if at++; at == 1 || at == 4 {
				err := c.Steer(context.Background(), map[int]string{1: "alpha", 4: "beta"}[at])
				if at <= cut && err != nil { // before the interruption
					t.Errorf("cut at %d: %v", cut, err)
				}
			}
			if at == cut {
				interrupt(run.ErrInterrupted)
			}
		}
		w.asked = func(int) { step() }
		talks := &conversation.Service{
			Engine: e, Settings: chat.Settings{Model: "test:worker"}, Durability: graph.DurabilityProcess,
			Tools: func(context.Context, conversation.Wanted) (conversation.Kit, func(), error) {
				set, err := tool.NewSet(work{step})
				return conversation.Kit{Calling: true, Tools: set}, func() {}, err
			},
		}
		talks.Runs = &run.Service{
			Open: func(graph.Durability) (run.Store, error) { return store, nil },
			Recall: func(ctx context.Context, i run.Info, _ run.Checkpoint, k run.Continuation) (run.Job, error) {
				return talks.Recall(ctx, i, k, nil)
			},
		}
		c = talks.Begin(conversation.Options{})
		ctx, cancel := context.WithCancelCause(t.Context())
		interrupt = cancel
		_, err = c.Ask(ctx, question("go"))
		if err == nil {
			t.Fatalf("cut at %d: it was not interrupted", cut)
		}
		interrupt = func(error) {}
		if _, err := talks.Runs.Resume(t.Context(), run.Resumption{}); err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		last := w.requests[len(w.requests)-1]
		text := shape(last)
		sent := []string{"alpha"}
		if cut >= 4 {
			sent = append(sent, "beta")
		}
		for _, s := range sent {
			if strings.Count(text, "user! "+s) != 1 {
				t.Errorf("cut at %d: the last request is %s", cut, text)
			}
		}
	}
}
