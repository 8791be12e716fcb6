package filestore_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loki/internal/conversation/session"
	"loki/internal/conversation/session/filestore"
	"loki/internal/conversation/session/sessiontest"
	"loki/internal/llm/chat"
)

// oldSessions returns a directory with sessions of an older version.
func oldSessions(t *testing.T) (string, filestore.Options) {
	dir := filepath.Join(t.TempDir(), "sessions")
	for from, to := range map[string]string{
		"garden.yaml": "garden.yaml", "tools.yaml": "_/20250102T030405-old-tools.yaml",
	} {
		write(t, filepath.Join(dir, filepath.FromSlash(to)), read(t, filepath.Join("testdata", from)))
	}
	write(t, filepath.Join(dir, "temp.yaml"), []byte("model: m\nmessages: []\n"))
	write(t, filepath.Join(dir, "notes.txt"), []byte("not a session"))
	write(t, filepath.Join(dir, "..", "agents", "coder", "sessions", "garden.yaml"), []byte("model: agent\nmessages: []\n"))
	return dir, filestore.Options{
		Options: session.Options{Warn: func(_ context.Context, err error) { t.Errorf("warning: %v", err) }}, Dir: dir, NoSync: true,
	}
}

func aliases(t *testing.T, st session.Store, scope session.Scope) []session.Alias {
	t.Helper()
	list, err := st.List(t.Context(), scope)
	if err != nil {
		t.Fatal(err)
	}
	var names []session.Alias
	for _, m := range list {
		names = append(names, m.Alias)
	}
	return names
}

func mustOpen(t *testing.T, st session.Store, scope session.Scope, alias session.Alias) *session.Session {
	t.Helper()
	s, err := st.OpenOrCreate(t.Context(), scope, alias, none)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSessionsOfOlderVersions(t *testing.T) {
	dir, o := oldSessions(t)
	st := open(t, o)
	before := files(t, dir)
	all := []session.Alias{"20250102T030405-old-tools", "garden"}
	if got := aliases(t, st, ""); !slices.Equal(got, all) {
		t.Errorf("sessions %q, want %q", got, all)
	}
	id, err := st.Resolve(t.Context(), "", "garden")
	if err != nil {
		t.Fatal(err)
	}
	if got := files(t, dir); !slices.Equal(got, before) {
		t.Errorf("looking at sessions has changed the files to %v", got)
	}

	s := mustOpen(t, st, "", "garden")
	if s.ID() != id {
		t.Errorf("id %s, it was %s", s.ID(), id)
	}
	wantSettings := session.Settings{
		Settings: chat.Settings{Model: "openai:gpt-4o", Sampling: chat.Sampling{Temperature: new(0.2)}, EnabledTools: new("fs_ls,fs_cat")}, SaveSession: new(true), RoleName: "gardener",
		AgentVariables:    []session.Variable{{Name: "zone", Value: "7b"}, {Name: "city", Value: "Graz"}},
		AgentInstructions: new("Talk about gardens.\nBe brief."),
	}
	if diff := cmp.Diff(wantSettings, s.Settings()); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	// It was compressed and nothing was said since: the last turn comes back.
	want := []chat.Message{
		chat.Text(chat.System, "Talk about gardens.\n\nThis is a recap: they asked about shade."),
		chat.Text(chat.User, "And moss?"), chat.Text(chat.Assistant, "Moss too."),
	}
	if diff := cmp.Diff(want, s.Messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if got := s.DataURLs()["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"]; got != "/home/me/rose.png" {
		t.Errorf("image %q", got)
	}
	if err := s.Append(t.Context(), sessiontest.Turn(1)); err != nil {
		t.Fatal(err)
	}
	if got := read(t, filepath.Join(dir, "garden.yaml")); !bytes.Equal(got, read(t, "testdata/garden.yaml")) {
		t.Error("the old file was changed")
	}
	again := open(t, o)
	if got := mustOpen(t, again, "", "garden"); got.ID() != id || len(got.Messages()) != 5 {
		t.Errorf("opened again it is %s with %d messages", got.ID(), len(got.Messages()))
	}
	if got := aliases(t, again, ""); !slices.Equal(got, all) {
		t.Errorf("sessions %q, want %q", got, all)
	}
	if got := mustOpen(t, again, "coder", "garden"); got.Settings().Model != "agent" || got.ID() == id {
		t.Errorf("the agent's session has model %s", got.Settings().Model)
	}
}

func TestToolCallsOfOlderVersions(t *testing.T) {
	_, o := oldSessions(t)
	alias, err := session.ParseAlias("_/20250102T030405-old-tools") // as it used to be called
	if err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, open(t, o), "", alias)
	if s.Title() != "old-tools" {
		t.Errorf("title %q", s.Title())
	}
	text := func(s string) []chat.Part { return []chat.Part{{Type: chat.TextPart, Text: s}} }
	result := func(id, name, out string) chat.Message {
		m := chat.Message{Role: chat.ToolRole, ToolCallID: id, ToolName: name}
		if out != "" {
			m.Parts = text(out)
		}
		return m
	}
	want := []chat.Message{
		{Role: chat.User, Parts: append(text("What is this?"), chat.Part{Type: chat.ImagePart, URL: "data:image/png;base64,iVBORw0KGgo="})},
		{Role: chat.Assistant, Parts: text("Let me look."), ToolCalls: []chat.ToolCall{
			{ID: "call_a", Name: "fs_ls", Arguments: `{"path":"."}`, Signature: "sig"}, {ID: "call_2", Name: "now", Arguments: "{}"},
		}},
		result("call_a", "fs_ls", `{"files":["a","b"]}`), result("call_2", "now", "12:00"),
		chat.Text(chat.Assistant, "A rose."),
		chat.Text(chat.User, "Again."),
		{Role: chat.Assistant, ToolCalls: []chat.ToolCall{{ID: "x", Name: "fs_cat", Arguments: `{"path": "a"}`}}},
		result("x", "fs_cat", ""),
		{Role: chat.Assistant, ToolCalls: []chat.ToolCall{{ID: "y", Name: "fs_cat", Arguments: `{"path":"b"}`}}},
		result("y", "fs_cat", "42"),
		{Role: chat.Assistant},
	}
	if diff := cmp.Diff(want, s.Messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestConvertedSessionsDoNotComeBack(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before func(t *testing.T, st session.Store)
	}{
		{"never_opened", func(*testing.T, session.Store) {}},
		{"opened", func(t *testing.T, st session.Store) { mustOpen(t, st, "", "garden") }},
		{"renamed", func(t *testing.T, st session.Store) {
			if err := mustOpen(t, st, "", "garden").Rename(t.Context(), "roses"); err != nil {
				t.Fatal(err)
			}
			if got := aliases(t, st, ""); !slices.Equal(got, []session.Alias{"20250102T030405-old-tools", "roses"}) {
				t.Errorf("renamed: %q", got)
			}
			if _, err := st.Resolve(t.Context(), "", "garden"); !errors.Is(err, session.ErrNotFound) {
				t.Errorf("the old name stands for something: %v", err)
			}
		}},
		{"renamed_before_it_is_opened", func(t *testing.T, st session.Store) {
			id, err := st.Resolve(t.Context(), "", "garden")
			if err != nil {
				t.Fatal(err)
			}
			if err := st.Rename(t.Context(), "", id, "roses"); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, o := oldSessions(t)
			st := open(t, o)
			id, err := st.Resolve(t.Context(), "", "garden")
			if err != nil {
				t.Fatal(err)
			}
			tt.before(t, st)
			if err := st.Delete(t.Context(), "", id); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(dir, "garden.yaml")); err == nil {
				t.Error("the old file is still there")
			}
			if got := aliases(t, st, ""); !slices.Equal(got, []session.Alias{"20250102T030405-old-tools"}) {
				t.Errorf("sessions %q", got)
			}
			if s := mustOpen(t, st, "", "garden"); !s.Empty() || s.ID() == id {
				t.Error("a deleted session came back")
			}
		})
	}
}

func TestANewSessionDoesNotHideAnOldOne(t *testing.T) {
	_, o := oldSessions(t)
	st := open(t, o)
	if _, err := st.Create(t.Context(), "", "garden", session.Settings{}); !errors.Is(err, session.ErrAliasInUse) {
		t.Errorf("the error is %v", err)
	}
	s, err := st.Create(t.Context(), "", "other", session.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Rename(t.Context(), "garden"); !errors.Is(err, session.ErrAliasInUse) {
		t.Errorf("the error is %v", err)
	}
}

func TestTwoConvertTheSame(t *testing.T) {
	dir, o := oldSessions(t)
	var wg sync.WaitGroup
	ids := make([]session.ID, 4)
	for i := range ids {
		st := open(t, o)
		wg.Go(func() {
			s, err := st.OpenOrCreate(t.Context(), "", "garden", none)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = s.ID()
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("ids %v", ids)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "by-id")); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestAnOldSessionThatCannotBeRead(t *testing.T) {
	dir, o := oldSessions(t)
	broken := []byte("model: m\nmessages:\n- role: emperor\n  content: x\n")
	write(t, filepath.Join(dir, "broken.yaml"), broken)
	st := open(t, o)
	if _, err := st.OpenOrCreate(t.Context(), "", "broken", none); err == nil || errors.Is(err, session.ErrNotFound) {
		t.Errorf("the error is %v", err)
	}
	if got := read(t, filepath.Join(dir, "broken.yaml")); !bytes.Equal(got, broken) {
		t.Error("the file was changed")
	}
}
