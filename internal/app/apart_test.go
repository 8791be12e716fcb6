package app_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"loki/internal/agent/role"
	"loki/internal/app"
	"loki/internal/base/ask"
	"loki/internal/conversation"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
)

// user is one of many who talk with models at the same time.
type user struct {
	word   string // that is in all that concerns this user
	events eventtest.Collector

	mu    sync.Mutex
	asked []string
}

// Ask implements [ask.Asker].
func (u *user) Ask(_ context.Context, q ask.Question) (string, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asked = append(u.asked, q.Text)
	return "yes", nil
}

// talk has the model of one program use a tool that prints and one that asks for leave, under
// a role that names a tool there is not, in a session of whose file a line is damaged.
func (u *user) talk(ctx context.Context, a *app.App) (conversation.Answer, error) {
	c := a.Conversations().Begin(conversation.Options{Caller: conversation.Caller{Events: a.Events(&u.events), Asker: u}})
	tools := "tell,execute_command,no-" + u.word
	if err := c.UseRole(ctx, role.Role{Name: "r", File: "r.md", Settings: chat.Settings{EnabledTools: &tools}}); err != nil {
		return conversation.Answer{}, err
	}
	if err := c.UseSession(ctx, u.word); err != nil {
		return conversation.Answer{}, err
	}
	q := conversation.Question{Asked: conversation.Asked{User: chat.Text(chat.User, "do "+u.word)}}
	answer, err := c.Ask(ctx, q)
	if err == nil {
		err = c.Record(ctx, q.Asked, answer)
	}
	if closeErr := c.Close(ctx); err == nil {
		err = closeErr
	}
	return answer, err
}

// TestConversationsAreApart: many conversations at once in one program. Each hears what
// concerns it, and nothing of the others.
func TestConversationsAreApart(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("the tool that prints is written in Python")
	}
	made := t.TempDir()
	script := filepath.Join(made, "rules.yaml")
	write := func(file, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(script, `rules:
  - match: {turn: 1, regex: '^do (\w+)$'}
    tool_calls:
      - {name: tell, arguments: {who: $1}}
      - {name: execute_command, arguments: {command: "touch `+made+`/$1", sandbox: full, reason: it asks for a file}}
  - match: {turn: 2}
    reply: done
`)
	a, home := newApp(t, "model: builtin:script\n", "LOKI_SCRIPT_FILE="+script, "PATH="+os.Getenv("PATH"))
	write(filepath.Join(home, "functions", "tools", "tell.py"), "def run(who: str):\n    \"\"\"Tell something.\"\"\"\n    print('telling ' + who)\n    return 'told ' + who\n")
	defer a.Close()

	users := make([]*user, 20)
	for i := range users {
		users[i] = &user{word: fmt.Sprintf("w%02dw", i)}
		write(filepath.Join(home, "sessions", "by-name", users[i].word), "damaged\n")
	}
	var wg sync.WaitGroup
	for _, u := range users {
		wg.Go(func() {
			if answer, err := u.talk(t.Context(), a); err != nil || answer.Text != "done" {
				t.Errorf("%s: %q, %v", u.word, answer.Text, err)
			}
		})
	}
	wg.Wait()
	for _, u := range users {
		u.check(t, users)
		if _, err := os.Stat(filepath.Join(made, u.word)); err != nil {
			t.Error(err)
		}
	}
}

// check checks what one user has heard and was asked.
func (u *user) check(t *testing.T, users []*user) {
	if len(u.asked) != 1 || !strings.Contains(u.asked[0], u.word) {
		t.Errorf("%s was asked %q", u.word, u.asked)
	}
	var warnings []string
	for _, w := range eventtest.Bodies[event.Warning](&u.events) {
		warnings = append(warnings, w.Text)
	}
	slices.Sort(warnings)
	if len(warnings) != 2 || !strings.Contains(warnings[0], filepath.Join("by-name", u.word)+" is ignored") || warnings[1] != "no tool is called no-"+u.word {
		t.Errorf("%s was warned of %q", u.word, warnings)
	}
	output := eventtest.Bodies[event.ToolOutput](&u.events)
	if len(output) != 1 || output[0] != (event.ToolOutput{Name: "tell", Text: "telling " + u.word}) {
		t.Errorf("%s got the output %v", u.word, output)
	}
	for _, ev := range u.events.Events() {
		text, err := ev.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range users {
			if other != u && strings.Contains(string(text), other.word) {
				t.Errorf("%s heard %s", u.word, text)
			}
		}
	}
}
