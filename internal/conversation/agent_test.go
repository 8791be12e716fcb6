package conversation_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"loki/internal/agent"
	"loki/internal/agent/team"
	"loki/internal/conversation"
	"loki/internal/conversation/session"
	"loki/internal/conversation/session/memstore"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
	"loki/internal/llm/provider"
	"loki/internal/workflow/run"
)

// thinker is a model that thinks, repeats the texts of its conversation and may then fail.
type thinker struct{ err error }

func (e *thinker) ChatModel(context.Context, string) (engine.Model, error) {
	return engine.Model{ID: "test:echo", Provider: e, SupportsTools: true}, nil
}

func (e *thinker) Chat(_ context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		var texts []string
		for _, m := range req.Messages {
			text, _, _ := strings.Cut(m.Text(), "\n\n") // without the sections that explain tools
			texts = append(texts, string(m.Role)+" "+text)
		}
		if !yield(provider.Chunk{Kind: provider.Text, Text: "<think>hm</think>" + strings.Join(texts, ", ")}, nil) {
			return
		}
		if e.err != nil {
			yield(provider.Chunk{}, e.err)
			return
		}
		yield(provider.Chunk{Kind: provider.End, Stop: chat.StopEnd, Usage: chat.Usage{InputTokens: 10}}, nil)
	}
}

// helper is an agent with these lines in its definition.
func helper(t *testing.T, lines string) conversation.Agent {
	t.Helper()
	d, _, err := agent.Parse("helper/config.yaml", []byte("name: helper\ninstructions: Help {{who}}.\nvariables: [{name: who, description: w}]\n"+lines))
	if err != nil {
		t.Fatal(err)
	}
	return conversation.Agent{
		Agent: agent.Agent{Ref: agent.Ref{Name: "helper"}, Definition: d, InForce: d}, Scope: "helper",
		Variables:    func(context.Context) (map[string]string, error) { return map[string]string{"who": "Ann"}, nil },
		Instructions: func(context.Context, map[string]string) (string, error) { return d.Instructions, nil },
		Texts:        func(v map[string]string) agent.Texts { return agent.Texts{Variables: v} },
	}
}

// talks returns what begins conversations with a model, and where their sessions are.
func talks(t *testing.T, model *thinker) (*conversation.Service, session.Store) {
	t.Helper()
	e, err := engine.New(engine.Options{Models: model})
	if err != nil {
		t.Fatal(err)
	}
	store := memstore.New(session.Options{})
	return &conversation.Service{
		Engine: e, Sessions: func() (session.Store, error) { return store, nil }, InputLimit: func(string) int { return 0 },
		Tools: func(context.Context, conversation.Wanted) (conversation.Kit, func(), error) {
			return conversation.Kit{Calling: true}, func() {}, nil
		},
	}, store
}

// askChild has a child answer a prompt.
func askChild(t *testing.T, s *conversation.Service, a conversation.Agent, prompt string) (run.Outcome, error) {
	t.Helper()
	parent, err := team.New(t.Context(), team.Options{Agent: "parent"})
	if err != nil {
		t.Fatal(err)
	}
	c := s.Begin(conversation.Options{Member: parent.Root()})
	if err := c.UseAgent(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	job, err := c.Job(t.Context(), prompt)
	if err != nil {
		t.Fatal(err)
	}
	work, done, err := job.Make(t.Context(), run.Point{})
	if err != nil {
		t.Fatal(err)
	}
	return run.RunNested(t.Context(), run.NestedOptions{Work: work, Done: done, Events: event.Scope{}})
}

// TestChildGoesOnInMemory: an agent that another one starts has read its session, and writes
// none. What it thinks is not part of its output.
func TestChildGoesOnInMemory(t *testing.T) {
	t.Parallel()
	s, store := talks(t, new(thinker))
	a := helper(t, "agent_session: daily\n")
	c := s.Begin(conversation.Options{})
	if err := c.UseAgent(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if err := c.UseSession(t.Context(), "daily"); err != nil {
		t.Fatal(err)
	}
	q := question("first")
	answer, err := c.Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Record(t.Context(), q.Asked, answer), c.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	out, err := askChild(t, s, a, "second")
	if want := "system Help Ann., user first, assistant <think>hm</think>system Help Ann., user first, user second"; err != nil || out.Output != want {
		t.Errorf("got %q, %v, want %q", out.Output, err, want)
	}
	if out, err := askChild(t, s, helper(t, ""), "third"); err != nil || out.Output != "system Help Ann., user third" || out.Usage.InputTokens != 10 {
		t.Errorf("got %+v, %v", out, err)
	}
	list, err := store.List(t.Context(), "helper")
	if err != nil || len(list) != 1 {
		t.Fatalf("%d sessions, %v", len(list), err)
	}
	stored, err := store.Open(t.Context(), "helper", list[0].ID)
	if err != nil || len(stored.Messages()) != 3 {
		t.Errorf("%d messages, %v", len(stored.Messages()), err)
	}
	if got := stored.Settings(); len(got.AgentVariables) != 1 || got.AgentVariables[0].Value != "Ann" || *got.AgentInstructions != "Help {{who}}." {
		t.Errorf("%+v", got)
	}
}

// TestChildThatFailsKeepsItsOutput: what came before the failure is there.
func TestChildThatFailsKeepsItsOutput(t *testing.T) {
	t.Parallel()
	boom := &provider.Error{Kind: provider.BadReply, Msg: "boom"}
	s, _ := talks(t, &thinker{err: boom})
	out, err := askChild(t, s, helper(t, ""), "go")
	if !errors.Is(err, boom) || out.Output != "system Help Ann., user go" {
		t.Errorf("got %q, %v", out.Output, err)
	}
}
