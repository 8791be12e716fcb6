package repl

import (
	"strings"
	"testing"

	"loki/internal/conversation"
	"loki/internal/setup/config"
)

func TestPrompt(t *testing.T) {
	temp := &conversation.SessionState{Name: "temp", Temporary: true}
	half := 0.5
	for _, tt := range []struct {
		name        string
		state       conversation.State
		left, right string
	}{
		{"bare", conversation.State{}, "m)> ", "0"},
		{"role", conversation.State{Role: "coder"}, "m)coder> ", "0"},
		{"session", conversation.State{Session: temp}, "m)temp) ", "0"},
		{"session_and_role", conversation.State{Session: temp, Role: "coder"}, "m)temp/coder) ", "0"},
		{"agent", conversation.State{Agent: "sql"}, "m)sql>> ", "0"},
		{"agent_and_session", conversation.State{Agent: "sql", Session: temp}, "m)sql>temp) ", "0"},
		{"knowledge", conversation.State{Knowledge: "docs"}, "m)@docs> ", "0"},
		{"full_session", conversation.State{Session: &conversation.SessionState{Name: "s", Tokens: 1234, Percent: 1.23}}, "m)s) ", "1234(1.23%)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.state.Model = "m"
			got := newPrompt(&config.Config{}, tt.state, false)
			if tt.state.Session == nil {
				tt.right = "" // it is about sessions
			}
			if got.Left != tt.left || got.Right != tt.right {
				t.Errorf("the prompt is %q, %q, want %q, %q", got.Left, got.Right, tt.left, tt.right)
			}
		})
	}
	t.Run("own", func(t *testing.T) {
		left, right := "{color.red}{?temperature {temperature}}{?dry_run dry}{?stream on}{color.none}{color.reset}", "{max_input_tokens}{wrap}{role}"
		cfg := &config.Config{Chat: config.Chat{LeftPrompt: &left, RightPrompt: &right}, Wrap: "100"}
		st := conversation.State{Model: "a:b", MaxInputTokens: 5, Temperature: &half, Stream: true, Role: "evil\x1b[31m\nrole"}
		got := newPrompt(cfg, st, true)
		if want := "\x1b[31m0.5on\x1b[0m"; got.Left != want {
			t.Errorf("the left prompt is %q, want %q", got.Left, want)
		}
		if strings.ContainsAny(got.Right, "\x1b\n") || !strings.HasPrefix(got.Right, "5100evil") {
			t.Errorf("the right prompt is %q", got.Right)
		}
	})
}

func TestNotification(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  map[string]string
		want string
	}{
		{"usual", map[string]string{"TERM": "xterm-256color"}, "\x1b]9;loki: done\a"},
		{"rxvt", map[string]string{"TERM": "rxvt-unicode"}, "\x1b]777;notify;loki;done\a"},
		{"vte", map[string]string{"TERM": "xterm", "VTE_VERSION": "7000"}, "\x1b]777;notify;loki;done\a"},
		{"tmux", map[string]string{"TERM": "tmux", "TMUX": "/tmp/x"}, "\x1bPtmux;\x1b\x1b]9;loki: done\a\x1b\\\a"},
		{"console", map[string]string{"TERM": "linux"}, "\a"},
		{"unknown", nil, "\a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := notification(func(name string) string { return tt.env[name] }, "done"); got != tt.want {
				t.Errorf("the sequence is %q, want %q", got, tt.want)
			}
		})
	}
}

func TestFirstLines(t *testing.T) {
	if got := firstLines("a\nb\nc", 3); got != "a\nb\nc" {
		t.Errorf("all lines are %q", got)
	}
	if got := firstLines("a\nb\nc\nd", 2); got != "a\nb\n[... 2 more lines]" {
		t.Errorf("two of four lines are %q", got)
	}
}
