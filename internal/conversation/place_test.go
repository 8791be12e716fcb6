package conversation_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loki/internal/agent"
	"loki/internal/base/ask"
	"loki/internal/conversation"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
)

// TestPlace: an agent has its place from the first question to the end of the conversation, and the session knows its name for the next one.
func TestPlace(t *testing.T) {
	t.Parallel()
	model := new(thinker)
	s, _ := talks(t, model)
	var said []string
	dirs := func(w conversation.Wanted) { said = append(said, "asks in "+w.Agent.Workdir) }
	tools := s.Tools
	s.Tools = func(ctx context.Context, w conversation.Wanted) (conversation.Kit, func(), error) {
		dirs(w)
		return tools(ctx, w)
	}
	s.Place = func(_ context.Context, of agent.Agent, name, _ string) (*conversation.Place, error) {
		said = append(said, fmt.Sprintf("opens %q of %s", name, of.Name))
		return &conversation.Place{Dir: "/trees/w1", Name: "w1", Note: "works in w1", Leave: func(_ context.Context, cause error, asker ask.Asker, _ func(context.Context, string) error) (string, error) {
			said = append(said, fmt.Sprintf("leaves: %v, %v", cause, asker))
			return "kept w1", nil
		}}, nil
	}
	var events eventtest.Collector
	talk := func(questions ...string) {
		t.Helper()
		c := s.Begin(conversation.Options{Caller: conversation.Caller{Events: event.NewScope(&events, event.Source{}, nil)}})
		if err := errors.Join(c.UseAgent(t.Context(), helper(t, "")), c.UseSession(t.Context(), "daily")); err != nil {
			t.Fatal(err)
		}
		for _, text := range questions {
			_, _ = c.Tell(t.Context(), question(text))
		}
		c.Session().ForceSave()
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	talk("first", "second")
	model.err = errors.New("no model")
	talk("third")
	talk()
	want := []string{
		`opens "" of helper`, "asks in /trees/w1", "asks in /trees/w1", "leaves: <nil>, <nil>",
		`opens "w1" of helper`, "asks in /trees/w1", "leaves: model test:echo: no model, <nil>",
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Error(diff)
	}
	var notes []string
	for _, ev := range events.Events() {
		if out, ok := ev.Body.(event.ToolOutput); ok {
			notes = append(notes, out.Text)
		}
	}
	if diff := cmp.Diff([]string{"works in w1", "kept w1", "works in w1", "kept w1"}, notes); diff != "" {
		t.Error(diff)
	}
}
