package session_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"loki/internal/conversation/session"
	"loki/internal/llm/chat"
)

var at = time.Date(2026, 11, 21, 9, 30, 0, 0, time.FixedZone("", 3600))

func answer(text string) []chat.Message { return []chat.Message{chat.Text(chat.Assistant, text)} }

func TestMessagesEntries(t *testing.T) {
	rounds := []chat.Message{
		{Role: chat.Assistant, Parts: []chat.Part{{Type: chat.TextPart, Text: "Let me look."}}, ToolCalls: []chat.ToolCall{{ID: "1", Name: "ls", Arguments: `{"p": "<a>"}`}, {ID: "2", Name: "cat", Arguments: `{"p`}}},
		{Role: chat.ToolRole, ToolCallID: "2", Parts: []chat.Part{{Type: chat.TextPart, Text: "two"}}},
		{Role: chat.ToolRole, ToolCallID: "1", Parts: []chat.Part{{Type: chat.TextPart, Text: "one\n"}}},
	}
	const calls = "<tool_calls>\nLet me look.\n" + `[{"call":{"name":"ls","arguments":{"p":"<a>"},"id":"1"},"output":"one\n"},{"call":{"name":"cat","arguments":"{\"p","id":"2"},"output":"two"}]` + "\n</tool_calls>\n"
	for _, tt := range []struct {
		name  string
		entry session.MessagesEntry
		want  string
	}{
		{"plain", session.MessagesEntry{Input: "hi\nthere", Reply: answer("hello")}, "# CHAT: hi there [2026-11-21T09:30:00+01:00]\nhi\nthere\n--------\nhello\n--------\n\n"},
		{"role", session.MessagesEntry{Role: "coder", Input: "q", Reply: answer("a")}, "# CHAT: q [2026-11-21T09:30:00+01:00] (coder)\nq\n--------\na\n--------\n\n"},
		{"role_and_rag", session.MessagesEntry{Role: "coder", RAG: "docs", Input: "q", Reply: answer("a")}, "# CHAT: q [2026-11-21T09:30:00+01:00] (coder#docs)\nq\n--------\na\n--------\n\n"},
		{"rag", session.MessagesEntry{RAG: "docs", Input: "q", Reply: answer("a")}, "# CHAT: q [2026-11-21T09:30:00+01:00] (#docs)\nq\n--------\na\n--------\n\n"},
		{"files", session.MessagesEntry{Input: "q", Sources: []string{"/a/b", "https://x"}, Reply: answer("a")}, "# CHAT: q [2026-11-21T09:30:00+01:00]\n.file /a/b https://x -- q\n--------\na\n--------\n\n"},
		{"tools", session.MessagesEntry{Input: "q", Reply: append(rounds, answer("a")...)}, "# CHAT: q [2026-11-21T09:30:00+01:00]\nq\n--------\n" + calls + "a\n--------\n\n"},
		{"tools_without_an_answer", session.MessagesEntry{Input: "q", Reply: append(rounds, answer("")...)}, "# CHAT: q [2026-11-21T09:30:00+01:00]\nq\n--------\n" + calls + "\n--------\n\n"},
		{"no_answer", session.MessagesEntry{Input: "q", Reply: answer("")}, ""},
		{"nothing", session.MessagesEntry{Input: "q"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := session.MessagesFile{Path: filepath.Join(t.TempDir(), "deep", "down", "messages.md"), Now: func() time.Time { return at }}
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // the turn has been paid for
			if err := f.Append(ctx, tt.entry); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(f.Path)
			if err != nil && tt.want != "" {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestMessagesHeadline(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"short", " a\tb\r\nc ", "a b  c"},
		{"fits", strings.Repeat("a", 80), strings.Repeat("a", 80)},
		{"long", strings.Repeat("a", 81), strings.Repeat("a", 77) + "..."},
		{"wide_fits", strings.Repeat("日", 40), strings.Repeat("日", 40)},
		{"wide", strings.Repeat("日", 41), strings.Repeat("日", 38) + "..."},
		{"escape", "\x1b[31mred", " [31mred"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := session.MessagesFile{Path: filepath.Join(t.TempDir(), "messages.md"), Now: func() time.Time { return at }}
			if err := f.Append(t.Context(), session.MessagesEntry{Input: tt.text, Reply: answer("a")}); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(f.Path)
			if want := "# CHAT: " + tt.want + " [2026-"; err != nil || !strings.HasPrefix(string(got), want) {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		})
	}
}

func TestMessagesOfManyWriters(t *testing.T) {
	f := session.MessagesFile{Path: filepath.Join(t.TempDir(), "messages.md")}
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if err := f.Append(t.Context(), session.MessagesEntry{Input: fmt.Sprint("q", i), Reply: answer(strings.Repeat("a\n", 100))}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got, err := os.ReadFile(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(got), "\n--------\n\n# CHAT: "); n != 49 {
		t.Errorf("%d of 50 entries are followed by another", n)
	}
}
