package conversation_test

import (
	"context"
	"strings"
	"testing"

	"loki/internal/agent"
	"loki/internal/agent/team/todo"
	"loki/internal/base/fault"
	"loki/internal/conversation"
	"loki/internal/conversation/session"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
)

// client begins a conversation of a service's client.
func (r *room) client() *conversation.Conversation {
	return r.service.Begin(conversation.Options{Caller: conversation.Caller{Events: event.NewScope(r.events, event.Source{}, nil)}})
}

// message returns a message of text, with the role in front of it.
func message(text string) chat.Message {
	role, text, _ := strings.Cut(text, " ")
	return chat.Text(chat.Role(role), text)
}

func messages(texts ...string) (list []chat.Message) {
	for _, text := range texts {
		list = append(list, message(text))
	}
	return list
}

func TestHistory(t *testing.T) {
	t.Parallel()
	wrap := "Translate: __INPUT__"
	for _, tt := range []struct {
		name    string
		prompt  string // of the role
		history []chat.Message
		user    chat.Message
		want    string
	}{
		{name: "none", user: message("user b"), want: "user b"},
		{name: "turn", history: messages("user a", "assistant A"), user: message("user b"), want: "user a | assistant A | user b"},
		{name: "ends_with_a_result", history: messages("user a", "tool done"), want: "user a | tool done"},
		{
			name: "system_messages", history: messages("system one", "user a", "assistant A", "system two"), user: message("user b"),
			want: "system one\n\ntwo | user a | assistant A | user b",
		},
		{name: "role", prompt: "Be kind.", history: messages("user a", "assistant A"), user: message("user b"), want: "system Be kind. | user a | assistant A | user b"},
		{name: "role_and_system", prompt: "Be kind.", history: messages("system Be short."), user: message("user b"), want: "system Be kind.\n\nBe short. | user b"},
		{name: "role_puts_the_first", prompt: wrap, history: messages("user a", "assistant A"), user: message("user b"), want: "user Translate: a | assistant A | user b"},
		{name: "role_puts_the_only", prompt: wrap, history: messages("system Be short."), user: message("user b"), want: "system Be short. | user Translate: b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := enter(t, new(actor))
			c := r.client()
			if tt.prompt != "" {
				if err := c.UsePrompt(t.Context(), tt.prompt); err != nil {
					t.Fatal(err)
				}
			}
			history := append([]chat.Message(nil), tt.history...)
			a, err := c.Ask(t.Context(), conversation.Question{Asked: conversation.Asked{User: tt.user}, History: history})
			if err != nil || a.Text != "ok" {
				t.Fatalf("answer %q, %v", a.Text, err)
			}
			if got := r.actor.sent(0); got != tt.want {
				t.Errorf("sent %q, want %q", got, tt.want)
			}
			if got, want := said(history), said(tt.history); got != want {
				t.Errorf("the caller's history is %q now", got)
			}
		})
	}
}

var show = []chat.Tool{{Name: "show"}}

func showCall(id string) chat.ToolCall { return chat.ToolCall{ID: id, Name: "show", Arguments: "{}"} }

// TestClientToolsEndTheTurn: neither a todo list with open items nor a form has the model go on when a call
// waits for its caller.
func TestClientToolsEndTheTurn(t *testing.T) {
	t.Parallel()
	a := &actor{replies: []any{
		[]chat.ToolCall{{ID: "1", Name: "todo__add", Arguments: `{"task": "dig"}`}}, []chat.ToolCall{showCall("2")},
	}}
	r := enter(t, a)
	r.service.Todo = todo.Settings{Enabled: true, Max: 5}
	form, err := conversation.NewForm("test", []byte(`{"type": "object"}`))
	if err != nil {
		t.Fatal(err)
	}
	q := question("plan")
	q.Tools, q.Form = show, form
	answer, err := r.client().Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.Calls) != 1 || answer.Calls[0].ID != "2" || answer.Stop != chat.StopToolCalls || len(a.requests) != 2 {
		t.Errorf("calls %v, stop %s after %d requests", answer.Calls, answer.Stop, len(a.requests))
	}
}

// TestSessionWithOpenCalls: a session goes on after a reply that called the client's tools, with the results or
// without.
func TestSessionWithOpenCalls(t *testing.T) {
	t.Parallel()
	result := func(id, text string) chat.Message {
		m := message("tool " + text)
		m.ToolCallID = id
		return m
	}
	for _, tt := range []struct {
		name    string
		history []chat.Message
		user    chat.Message
		want    string
		wantErr string
	}{
		{name: "results", history: []chat.Message{result("2", "two"), result("1", "one")}, want: "user a | assistant  | tool one | tool two"},
		{
			name: "one_result", history: []chat.Message{result("2", "two")}, user: message("user b"),
			want: "user a | assistant  | tool show was not run: the user continued without it. | tool two | user b",
		},
		{
			name: "another_question", user: message("user b"),
			want: "user a | assistant  | tool show was not run: the user continued without it. | tool show was not run: the user continued without it. | user b",
		},
		{name: "unknown_call", history: []chat.Message{result("3", "three")}, wantErr: `does not wait for the result of a call "3"`},
		{name: "history", history: messages("user x"), wantErr: "cannot bring it along"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := enter(t, &actor{replies: []any{[]chat.ToolCall{showCall("1"), showCall("2")}}})
			ask := func(q conversation.Question) error {
				t.Helper()
				c := r.client()
				err := c.UseSession(t.Context(), "work")
				if err == nil {
					var a conversation.Answer
					if a, err = c.Ask(t.Context(), q); err == nil {
						err = c.Record(t.Context(), q.Asked, a)
					}
				}
				if closeErr := c.Close(t.Context()); closeErr != nil {
					t.Fatal(closeErr)
				}
				return err
			}
			first := question("a")
			first.Tools = show
			if err := ask(first); err != nil {
				t.Fatal(err)
			}
			err := ask(conversation.Question{Asked: conversation.Asked{User: tt.user}, History: tt.history, Tools: show})
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) || fault.CodeOf(err) != fault.Usage {
					t.Errorf("error %v, want %q", err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := r.actor.sent(-1); got != tt.want {
				t.Errorf("sent %q, want %q", got, tt.want)
			}
			// What was lost on the way to the client is asked for again.
			if err := ask(conversation.Question{History: tt.history}); err != nil {
				t.Error(err)
			}
			if got, want := r.actor.sent(-1), tt.want+" | assistant ok"; got != want {
				t.Errorf("then sent %q, want %q", got, want)
			}
		})
	}
}

// TestSessionChangesItsAgent: a session without messages becomes one of an agent and back, under the same id.
func TestSessionChangesItsAgent(t *testing.T) {
	t.Parallel()
	r := enter(t, new(actor))
	r.service.Agent = func(_ context.Context, name string, given map[string]string, _ conversation.Caller) (conversation.Agent, error) {
		a := conversation.Agent{Scope: session.Scope(name), Variables: func(context.Context) (map[string]string, error) { return given, nil }}
		a.Name, a.InForce = name, &agent.Definition{Model: "test:agent", Variables: []graph.Variable{{Name: "place"}}}
		a.Instructions = func(context.Context, map[string]string) (string, error) { return "", nil }
		return a, nil
	}
	open := func(use func(c *conversation.Conversation) error) {
		t.Helper()
		c := r.client()
		if err := use(c); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var id session.ID
	open(func(c *conversation.Conversation) error {
		if err := c.UseSession(t.Context(), "work"); err != nil {
			return err
		}
		c.Session().Set(func(s *session.Settings) { s.RoleName = "poet" })
		if err := c.Session().Save(t.Context()); err != nil {
			return err
		}
		id = c.Session().ID()
		if err := c.KeepKnowledge("notes"); err != nil || c.Knowledge() != "notes" {
			t.Errorf("knowledge base %q, %v", c.Knowledge(), err)
		}
		if err := c.AttachAgent(t.Context(), "guide", map[string]string{"place": "Graz"}); err != nil {
			return err
		}
		s := c.Session().Settings()
		if c.Session().ID() != id || s.Model != "test:agent" || s.RoleName != "" || s.Knowledge != "" || len(s.AgentVariables) != 1 || s.AgentVariables[0].Value != "Graz" {
			t.Errorf("settings %+v", s)
		}
		if err := c.AttachAgent(t.Context(), "other", nil); fault.CodeOf(err) != fault.Usage {
			t.Errorf("a second agent: %v", err)
		}
		return c.DetachAgent(t.Context())
	})
	open(func(c *conversation.Conversation) error {
		if err := c.UseSession(t.Context(), string(id)); err != nil {
			return err
		}
		if s := c.Session().Settings(); s.Model != "test:a" || len(s.AgentVariables) != 0 {
			t.Errorf("settings %+v", s)
		}
		q := question("a")
		q.Settings.Model = "test:once"
		a, err := c.Ask(t.Context(), q)
		if err != nil || a.Model != "test:once" || c.Session().Settings().Model != "test:a" {
			t.Errorf("model %q, of the session %q: %v", a.Model, c.Session().Settings().Model, err)
		}
		if err := c.Record(t.Context(), q.Asked, a); err != nil {
			return err
		}
		if err := c.AttachAgent(t.Context(), "guide", nil); err == nil || err.Error() != "leave session work before entering an agent" {
			t.Errorf("an agent for a session with messages: %v", err)
		}
		return nil
	})
}
