package conversation_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"loki/internal/agent/team/todo"
	"loki/internal/conversation"
	"loki/internal/conversation/session"
	"loki/internal/conversation/session/memstore"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/llm/provider"
)

// planner is a model that adds an item to its todo list when it is asked to plan.
type planner struct{}

func (p planner) ChatModel(context.Context, string) (engine.Model, error) {
	return engine.Model{ID: "test:planner", Provider: p, SupportsTools: true}, nil
}

func (planner) Chat(_ context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		reply, stop := provider.Chunk{Kind: provider.Text, Text: "ok"}, chat.StopEnd
		if last := req.Messages[len(req.Messages)-1]; last.Role == chat.User && last.Text() == "plan" {
			call := chat.ToolCall{ID: "1", Name: "todo__add", Arguments: `{"task": "dig"}`}
			reply, stop = provider.Chunk{Kind: provider.ToolCall, ToolCall: call}, chat.StopToolCalls
		}
		if yield(reply, nil) {
			yield(provider.Chunk{Kind: provider.End, Stop: stop}, nil)
		}
	}
}

// TestTodoListOutlivesCompression: a recap of a session holds the list of the model, which stays
// what it was until an agent is entered.
func TestTodoListOutlivesCompression(t *testing.T) {
	t.Parallel()
	e, err := engine.New(engine.Options{Models: planner{}})
	if err != nil {
		t.Fatal(err)
	}
	store := memstore.New(session.Options{})
	s := &conversation.Service{
		Engine: e, Sessions: func() (session.Store, error) { return store, nil }, InputLimit: func(string) int { return 0 },
		Todo: todo.Settings{Enabled: true, Max: 1}, Compression: conversation.Compression{Threshold: new(1)},
		Tools: func(context.Context, conversation.Wanted) (conversation.Kit, func(), error) {
			return conversation.Kit{Calling: true}, func() {}, nil
		},
	}
	var events eventtest.Collector
	c := s.Begin(conversation.Options{Caller: conversation.Caller{Events: event.NewScope(&events, event.Source{}, nil)}})
	if err := c.UseSession(t.Context(), "work"); err != nil {
		t.Fatal(err)
	}
	say := func(text string) {
		q := question(text)
		a, err := c.Ask(t.Context(), q)
		if err == nil {
			err = c.Record(t.Context(), q.Asked, a)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"plan", "dig", "rest", "sleep"} {
		say(text)
	}
	if got := c.Session().Messages()[0].Text(); !strings.Contains(got, "[ACTIVE TODO LIST]\nProgress: 0/1 completed\n  ○ 1. dig\n\n") {
		t.Errorf("the recap is %q", got)
	}
	// Each question is continued once, as the list stays open.
	if n := len(eventtest.Bodies[event.AutoContinue](&events)); n != 4 {
		t.Errorf("%d continuations", n)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestEnteringAnAgentEmptiesTheList: the list of the model is one of the work with the agent.
func TestEnteringAnAgentEmptiesTheList(t *testing.T) {
	t.Parallel()
	e, err := engine.New(engine.Options{Models: planner{}})
	if err != nil {
		t.Fatal(err)
	}
	s := &conversation.Service{
		Engine: e, Todo: todo.Settings{Enabled: true},
		Tools: func(context.Context, conversation.Wanted) (conversation.Kit, func(), error) {
			return conversation.Kit{Calling: true}, func() {}, nil
		},
	}
	var events eventtest.Collector
	c := s.Begin(conversation.Options{Caller: conversation.Caller{Events: event.NewScope(&events, event.Source{}, nil)}})
	if _, err := c.Ask(t.Context(), question("plan")); err != nil {
		t.Fatal(err)
	}
	if err := c.UseAgent(t.Context(), helper(t, "auto_continue: true\nmax_auto_continues: 0\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Ask(t.Context(), question("plan")); err != nil {
		t.Fatal(err)
	}
	updates := eventtest.Bodies[event.TodoUpdated](&events)
	if len(updates) != 2 || len(updates[1].Todos) != 1 {
		t.Errorf("the lists were %+v", updates)
	}
}

// TestListOfTheCaller: neither a macro nor an agent that cannot be entered changes the list of the
// model.
func TestListOfTheCaller(t *testing.T) {
	t.Parallel()
	e, err := engine.New(engine.Options{Models: planner{}})
	if err != nil {
		t.Fatal(err)
	}
	s := &conversation.Service{
		Engine: e, Todo: todo.Settings{Enabled: true},
		Tools: func(context.Context, conversation.Wanted) (conversation.Kit, func(), error) {
			return conversation.Kit{Calling: true}, func() {}, nil
		},
		Agent: func(context.Context, string, map[string]string, conversation.Caller) (conversation.Agent, error) {
			return helper(t, ""), nil
		},
		Sessions: func() (session.Store, error) { return nil, errors.New("no sessions") },
	}
	c := s.Begin(conversation.Options{})
	if _, err := c.Ask(t.Context(), question("plan")); err != nil {
		t.Fatal(err)
	}
	m := c.Isolate()
	if err := m.UseAgent(t.Context(), helper(t, "")); err != nil {
		t.Fatal(err)
	}
	if err := c.EnterAgent(t.Context(), "helper", "s", nil); err == nil || c.State().Agent != "" {
		t.Errorf("the agent was entered: %v", err)
	}
	if cleared, err := c.Isolate().ClearTodo(); !cleared || err != nil {
		t.Errorf("the macro has no list: %v", err)
	}
	if cleared, err := c.ClearTodo(); !cleared || err != nil {
		t.Errorf("the list is empty: %v", err)
	}
}
