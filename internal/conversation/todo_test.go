package conversation_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"loki/internal/agent/team/todo"
	"loki/internal/agent/workspace"
	"loki/internal/agent/workspace/skill"
	"loki/internal/base/ask/asktest"
	"loki/internal/conversation"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/tool"
)

// calling returns a reply that calls a tool.
func calling(name, arguments string) []chat.ToolCall {
	return []chat.ToolCall{{ID: name, Name: name, Arguments: arguments}}
}

// TestListBelongsToTheConversation: another conversation begins without the work of the last one, which is there again when that one continues.
func TestListBelongsToTheConversation(t *testing.T) {
	t.Parallel()
	propose := calling("plan__propose", `{"title":"Dig","summary":"s","steps":[{"text":"dig"},{"text":"rest"}]}`)
	tests := []struct {
		name  string
		begin []any // replies to the question that leaves open items
		plan  bool
		max   int
	}{
		{"list", []any{calling("todo__add", `{"task":"dig"}`), "added", "later", "later"}, false, 1},
		{"plan", []any{propose, "accepted", "later", "later"}, true, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := remembers(t, tt.begin...)
			r.service.Todo = todo.Settings{Enabled: !tt.plan, Max: 1}
			begin := func() {
				r.Conversation = r.service.Begin(conversation.Options{
					Interactive: true, AcceptPlan: true, Caller: conversation.Caller{Events: event.NewScope(r.events, event.Source{}, nil), Asker: r.asker},
				})
			}
			begin()
			if tt.plan {
				if err := r.SetMode(chat.ModePlan); err != nil {
					t.Fatal(err)
				}
			}
			continued := func(want int, of string) {
				t.Helper()
				if got := len(eventtest.Bodies[event.AutoContinue](r.events)); got != want {
					t.Errorf("%s: %d continuations, want %d", of, got, want)
				}
			}
			r.tell("begin")
			continued(1, "the work")
			first := string(r.Session().ID())

			for range 2 {
				if err := r.Renew(t.Context()); err != nil {
					t.Fatal(err)
				}
				r.tell("another matter")
				continued(1, "a new conversation")
			}
			r.enterSession("other")
			r.tell("a third matter")
			continued(1, "another session")
			if err := r.ExitSession(t.Context()); err != nil {
				t.Fatal(err)
			}

			r.enterSession(first)
			r.tell("go on")
			continued(2, "the work continued")
			if err := r.ExitSession(t.Context()); err != nil {
				t.Fatal(err)
			}

			begin() // as another process does
			r.enterSession(first)
			r.tell("go on")
			continued(3, "the work continued by another process")
			if err := r.EmptySession(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.tell("begin anew")
			continued(3, "the emptied session")
		})
	}
}

// TestConsentOfAPlan: what the user allowed by accepting a plan ends with the conversation, and what they allowed themselves does not.
func TestConsentOfAPlan(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{false, true} {
		r := remembers(t, calling("plan__propose", `{"title":"Dig","summary":"s","steps":[{"text":"dig"}]}`), "accepted")
		r.service.Tools = func(context.Context, conversation.Wanted) (conversation.Kit, func(), error) {
			return conversation.Kit{Calling: true, Calls: tool.Options{Asker: asktest.NewScripted("accept, and write unasked")}}, func() {}, nil
		}
		r.Conversation = r.begin()
		if err := r.SetMode(chat.ModePlan); err != nil {
			t.Fatal(err)
		}
		r.tell("begin")
		if r.Mode() != chat.ModeWrite {
			t.Errorf("the mode is %s", r.Mode())
		}
		want := chat.ModeAsk
		if own {
			want = chat.ModeWrite
			if err := r.SetMode(chat.ModeWrite); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r.Mode() != want {
			t.Errorf("the mode of a new conversation is %s, want %s", r.Mode(), want)
		}
	}
}

// TestChangedInstructions: of the files of the workspace those are marked that are not as they were at the last question.
func TestChangedInstructions(t *testing.T) {
	t.Parallel()
	r := remembers(t)
	sums := map[string]string{"AGENTS.md": "1", "CONTRIBUTING.md": "1"}
	r.service.Instruct = new(true)
	r.service.Workspace = func(context.Context, conversation.FromWorkspace) (in workspace.Instructions, _ []skill.Skill, _ error) {
		for _, name := range slices.Sorted(maps.Keys(sums)) {
			in.Files = append(in.Files, workspace.File{Name: name, Sum: sums[name], State: workspace.Used})
		}
		return in, nil, nil
	}
	r.Conversation = r.begin()
	r.tell("a")
	sums["AGENTS.md"] = "2"
	r.tell("b")
	delete(sums, "AGENTS.md")
	r.tell("c")
	var got []string
	for _, b := range eventtest.Bodies[event.Instructions](r.events) {
		one := fmt.Sprint(b.Changed)
		for _, f := range b.Files {
			one += fmt.Sprintf(" %s %t", f.Path, f.Changed)
		}
		got = append(got, one)
	}
	want := []string{"false AGENTS.md false CONTRIBUTING.md false", "true AGENTS.md true CONTRIBUTING.md false", "true CONTRIBUTING.md false"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
