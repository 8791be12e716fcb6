package session_test

import (
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

func TestRecents(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)
	f := session.Recents{
		Path: filepath.Join(t.TempDir(), "last"), Now: func() time.Time { return now },
		Hide: func(text string) string { return strings.ReplaceAll(text, "sesame", "***KEY***") },
	}
	if _, ok, err := f.Last("/a", nil); ok || err != nil {
		t.Errorf("there is one at first: %v", err)
	}
	note := func(r session.Recent) {
		t.Helper()
		now = now.Add(time.Minute)
		if err := f.Note(r); err != nil {
			t.Fatal(err)
		}
	}
	st := session.State{Settings: session.Settings{Settings: chat.Settings{Model: "m"}, RoleName: "coder"}}
	note(session.Recent{Dir: "/a", State: string(st.Encode()), User: chat.Text(chat.User, "open sesame"), Reply: []chat.Message{chat.Text(chat.Assistant, "no")}})
	note(session.Recent{Dir: "/b", Session: "b"})
	r, ok, err := f.Last("/a", nil)
	if err != nil || !ok || r.User.Text() != "open ***KEY***" || len(r.Turn().Reply) != 1 {
		t.Errorf("the last of /a is %+v, %v", r, err)
	}
	if s, err := r.Settings(); err != nil || s.RoleName != "coder" || s.Model != "m" {
		t.Errorf("settings %+v, %v", s, err)
	}

	// With agents the last of all, or the one that is asked for.
	none, agent := session.Scope(""), session.Scope("sql")
	note(session.Recent{Dir: "/a", Scope: agent, Agent: "sql", Session: "s"})
	for _, tt := range []struct {
		scope *session.Scope
		want  session.ID
	}{{nil, "s"}, {&agent, "s"}, {&none, ""}} {
		if r, ok, err := f.Last("/a", tt.scope); err != nil || !ok || r.Session != tt.want {
			t.Errorf("scope %v: %+v, %v", tt.scope, r, err)
		}
	}

	// A record that cannot be read does not hide another one.
	files, err := filepath.Glob(filepath.Join(f.Path, "*", "*.json"))
	if err != nil || len(files) != 3 {
		t.Fatalf("files %v, %v", files, err)
	}
	for _, file := range files {
		if data, err := os.ReadFile(file); err != nil || strings.Contains(string(data), `"/a"`) && strings.Contains(string(data), "sql") {
			if err := os.WriteFile(file, data[:len(data)/2], 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if r, ok, err := f.Last("/a", nil); err != nil || !ok || r.Session != "" {
		t.Errorf("beside a damaged one: %+v, %v", r, err)
	}
	if _, _, err := f.Last("/a", &agent); err == nil {
		t.Error("a damaged record is none")
	}
}

func TestRecentsAreBounded(t *testing.T) {
	now := time.Now()
	f := session.Recents{Path: filepath.Join(t.TempDir(), "last"), Now: func() time.Time { return now }}
	for i := range 510 {
		if err := f.Note(session.Recent{Dir: fmt.Sprint("/", i), Session: "s"}); err != nil {
			t.Fatal(err)
		}
	}
	if dirs, err := os.ReadDir(f.Path); err != nil || len(dirs) != 500 {
		t.Errorf("%d directories, %v", len(dirs), err)
	}
	if _, ok, _ := f.Last("/509", nil); !ok {
		t.Error("the newest is gone")
	}
	now = now.Add(91 * 24 * time.Hour)
	if err := f.Note(session.Recent{Dir: "/new", Session: "s"}); err != nil {
		t.Fatal(err)
	}
	if dirs, err := os.ReadDir(f.Path); err != nil || len(dirs) != 1 {
		t.Errorf("%d directories after 91 days, %v", len(dirs), err)
	}
}

func TestRecentsOfSeveralAtOnce(t *testing.T) {
	f := session.Recents{Path: filepath.Join(t.TempDir(), "last")}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 20 {
				if err := f.Note(session.Recent{Dir: "/a", Session: session.ID(fmt.Sprint(i, "-", n))}); err != nil {
					t.Error(err)
				}
				if _, ok, err := f.Last("/a", nil); !ok || err != nil {
					t.Errorf("between the writes there is none: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkRecent(b *testing.B) {
	f := session.Recents{Path: filepath.Join(b.TempDir(), "last")}
	r := session.Recent{Dir: "/a", User: chat.Text(chat.User, strings.Repeat("question ", 100)), Reply: []chat.Message{chat.Text(chat.Assistant, strings.Repeat("answer ", 400))}}
	for b.Loop() {
		if err := f.Note(r); err != nil {
			b.Fatal(err)
		}
	}
}
