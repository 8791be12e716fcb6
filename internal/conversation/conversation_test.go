package conversation_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loki/internal/agent/role"
	"loki/internal/base/fault"
	"loki/internal/conversation"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/llm/provider"
)

// script is a model whose replies are written beforehand: texts, and errors.
type script struct{ replies []any }

func (s *script) ChatModel(_ context.Context, id string) (engine.Model, error) {
	if id != "test:script" {
		return engine.Model{}, fault.New(fault.NotFound, "no model %s", id)
	}
	return engine.Model{ID: id, Provider: s}, nil
}

func (s *script) Chat(ctx context.Context, _ provider.Request) iter.Seq2[provider.Chunk, error] {
	next := s.replies[0]
	s.replies = s.replies[1:]
	return func(yield func(provider.Chunk, error) bool) {
		if err, ok := next.(error); ok {
			yield(provider.Chunk{}, err)
			return
		}
		if ctx.Err() != nil {
			yield(provider.Chunk{}, ctx.Err())
			return
		}
		if yield(provider.Chunk{Kind: provider.Text, Text: next.(string)}, nil) {
			yield(provider.Chunk{Kind: provider.End, Stop: chat.StopEnd, Usage: chat.Usage{InputTokens: 10}}, nil)
		}
	}
}

// begin begins a conversation with a model that gives these replies.
func begin(t *testing.T, replies ...any) (*conversation.Conversation, *eventtest.Collector) {
	t.Helper()
	e, err := engine.New(engine.Options{Models: &script{replies}})
	if err != nil {
		t.Fatal(err)
	}
	service := &conversation.Service{Engine: e, Settings: chat.Settings{Model: "test:script", Sampling: chat.Sampling{Temperature: new(1.0), Effort: chat.LowEffort}}}
	var events eventtest.Collector
	return service.Begin(conversation.Options{Caller: conversation.Caller{Events: event.NewScope(&events, event.Source{}, nil)}}), &events
}

func question(text string) conversation.Question {
	return conversation.Question{Asked: conversation.Asked{User: chat.Text(chat.User, text)}}
}

func types(events *eventtest.Collector) (names []string) {
	for _, ev := range events.Events() {
		names = append(names, ev.Body.Type())
	}
	return names
}

func TestTurnsAreRuns(t *testing.T) {
	boom := &provider.Error{Kind: provider.BadReply, Msg: "boom"}
	c, events := begin(t, "Hello", boom)
	a, err := c.Ask(t.Context(), question("hi"))
	if err != nil || a.Text != "Hello" || a.Model != "test:script" || a.Usage.InputTokens != 10 {
		t.Fatalf("%+v, %v", a, err)
	}
	if _, err := c.Ask(t.Context(), question("hi")); !errors.Is(err, boom) || fault.CodeOf(err) != fault.Provider {
		t.Fatalf("error %v", err)
	}
	want := []string{"started", "model_call", "delta", "reply", "finished", "started", "model_call", "finished"}
	if diff := cmp.Diff(want, types(events)); diff != "" {
		t.Error(diff)
	}
	fin := eventtest.Bodies[event.Finished](events)
	if fin[0].Output != "Hello" || fin[0].Error != "" || fin[0].Usage.InputTokens != 10 || fin[0].Stop != chat.StopEnd {
		t.Errorf("finished %+v", fin[0])
	}
	if !strings.Contains(fin[1].Error, "boom") || fin[1].Code == "" {
		t.Errorf("finished %+v", fin[1])
	}
	if started := eventtest.Bodies[event.Started](events); started[0].Model != "test:script" || events.Events()[0].Run != "" {
		t.Errorf("started %+v", events.Events()[0])
	}
}

func TestCanceledTurnIsFinished(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c, events := begin(t, "Hello")
	if _, err := c.Ask(ctx, question("hi")); fault.CodeOf(err) != fault.Canceled {
		t.Errorf("error %v", err)
	}
	if fin := eventtest.Bodies[event.Finished](events); len(fin) != 1 || fin[0].Code != string(fault.Canceled) {
		t.Errorf("finished %+v", fin)
	}
}

func TestUnknownModelStartsNothing(t *testing.T) {
	c, events := begin(t)
	if err := c.UseRole(t.Context(), role.Role{Name: "r", Settings: chat.Settings{Model: "test:other"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Ask(t.Context(), question("hi")); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("error %v", err)
	}
	if got := events.Events(); len(got) != 0 {
		t.Errorf("events %v", got)
	}
}

// TestSettingsOfRoles: a role with a model of its own does not take the temperature of the
// configuration, and every role says which tools there are.
func TestSettingsOfRoles(t *testing.T) {
	for _, tt := range []struct {
		name string
		own  chat.Settings
		want chat.Settings
	}{
		{"nothing", chat.Settings{}, chat.Settings{Model: "test:script", Sampling: chat.Sampling{Temperature: new(1.0), Effort: chat.LowEffort}}},
		{"model", chat.Settings{Model: "c:own"}, chat.Settings{Model: "c:own", Sampling: chat.Sampling{Effort: chat.LowEffort}}},
		{
			"temperature",
			chat.Settings{Sampling: chat.Sampling{Temperature: new(0.0)}, EnabledTools: new("fs_ls")},
			chat.Settings{Model: "test:script", Sampling: chat.Sampling{Temperature: new(0.0), Effort: chat.LowEffort}, EnabledTools: new("fs_ls")},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, _ := begin(t)
			if err := c.UseRole(t.Context(), role.Role{Name: "r", Settings: tt.own}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, c.Settings()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
