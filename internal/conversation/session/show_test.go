package session_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/conversation/session"
	"loki/internal/llm/chat"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s:\n%s\nwant\n%s", file, got, want)
	}
}

func shown(t *testing.T) *session.Session {
	const image = "data:image/png;base64,AA=="
	return temp(t, session.Settings{
		Settings:    chat.Settings{Model: "openai:gpt-4o", Sampling: chat.Sampling{Temperature: new(0.0), TopP: new(0.25), Effort: "low"}, EnabledTools: new("fs_ls,fs_cat"), EnabledMCPServers: new("all"), AutoContinue: new(true), MaxAutoContinues: new(3), InjectTodoInstructions: new(false), ContinuationPrompt: new("Go on.")},
		SaveSession: new(false), CompressionThreshold: new(2000), RoleName: "gardener",
	}, session.Turn{
		Role: []chat.Message{chat.Text(chat.System, "You know **gardens**.")},
		User: chat.Message{Role: chat.User, Parts: []chat.Part{{Type: chat.TextPart, Text: "What is this?\nAnd this?"}, {Type: chat.ImagePart, URL: image}, {Type: chat.ImagePart, URL: "https://x/y.png"}}},
		Reply: []chat.Message{
			{Role: chat.Assistant, Parts: []chat.Part{{Type: chat.TextPart, Text: "Let me look."}}, ToolCalls: []chat.ToolCall{{ID: "call_1", Name: "fs_ls", Arguments: `{"path": "."}`}}},
			{Role: chat.ToolRole, ToolCallID: "call_1", ToolName: "fs_ls", Failed: true, Parts: []chat.Part{{Type: chat.TextPart, Text: "no: such\nfile"}}},
			chat.Text(chat.Assistant, "A *rose*.\n\nAnd a fern."),
		},
		DataURLs: map[string]string{session.DataURLHash(image): "/home/me/rose.png"},
	})
}

func TestExport(t *testing.T) {
	golden(t, "export.yaml", shown(t).Export(session.Facts{Path: "/home/me/.config/loki/sessions/by-id/x", MaxInputTokens: 10_000}))
	golden(t, "export_empty.yaml", temp(t, session.Settings{Settings: chat.Settings{Model: "m"}}).Export(session.Facts{}))
}

func TestInfo(t *testing.T) {
	golden(t, "info.txt", shown(t).Info(session.Look{
		Facts:    session.Facts{Path: "/home/me/.config/loki/sessions/by-id/x", MaxInputTokens: 10_000},
		Markdown: func(text string) string { return "<md>" + text + "</md>" },
		Dim:      func(text string) string { return "<dim>" + text + "</dim>" },
		ToolName: func(name string) string { return "coder " + name },
	}))
	golden(t, "info_empty.txt", temp(t, session.Settings{Settings: chat.Settings{Model: "m"}}).Info(session.Look{}))
}

func TestInfoOfReplies(t *testing.T) {
	look := session.Look{Markdown: func(text string) string { return "<md>" + text + "</md>" }}
	call := chat.ToolCall{ID: "1", Name: "ls", Arguments: "{}"}
	for _, tt := range []struct {
		name  string
		reply chat.Message
		want  string
	}{
		{"text", chat.Text(chat.Assistant, "Hello."), "<md>Hello.</md>\n\n"},
		{"nothing", chat.Message{Role: chat.Assistant}, "<md></md>\n\n"},
		{"call", chat.Message{Role: chat.Assistant, ToolCalls: []chat.ToolCall{call}}, "Call ls {}\n"},
		{"text_and_call", chat.Message{Role: chat.Assistant, Parts: []chat.Part{{Type: chat.TextPart, Text: "I look."}}, ToolCalls: []chat.ToolCall{call}}, "<md>I look.</md>\nCall ls {}\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := temp(t, session.Settings{}, session.Turn{User: user("q"), Reply: []chat.Message{tt.reply}}).Info(look)
			if _, got, _ = strings.Cut(got, ">> q\n"); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestPercent(t *testing.T) {
	for _, tt := range []struct {
		n, total int
		want     string
	}{{1234, 10_000, "12.34"}, {1, 3, "33.33"}, {1, 2, "50"}, {3, 2, "150"}, {1, 100_000, "0"}, {5, 0, "0"}, {0, 5, "0"}} {
		if got := session.Percent(tt.n, tt.total); got != tt.want {
			t.Errorf("%d of %d: %s, want %s", tt.n, tt.total, got, tt.want)
		}
	}
}
