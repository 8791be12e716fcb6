package filestore_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"loki/internal/conversation/session"
	"loki/internal/conversation/session/filestore"
	"loki/internal/llm/chat"
)

// open returns the session called "a" as a process of its own has it.
func openIn(t *testing.T, dir string) *session.Session {
	t.Helper()
	st, err := filestore.New(filestore.Options{Dir: dir, NoSync: true, Options: session.Options{Warn: func(_ context.Context, err error) { t.Error(err) }}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := st.OpenOrCreate(t.Context(), "", "a", func() (session.Settings, error) { return session.Settings{Settings: chat.Settings{Model: "m"}}, nil })
	if err != nil {
		t.Fatal(err)
	}
	release, err := s.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	release()
	return s
}

func texts(s *session.Session) (list []string) {
	for _, m := range s.Messages() {
		list = append(list, m.Text())
	}
	return list
}

func drafts(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "by-id/*/draft-*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func begin(t *testing.T, s *session.Session, text string) *session.Draft {
	t.Helper()
	d, err := s.Begin(t.Context(), session.Turn{Role: []chat.Message{chat.Text(chat.System, "Be brief.")}, User: chat.Text(chat.User, text)})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDraftOfALiveProcessIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	a := openIn(t, dir)
	d := begin(t, a, "one")
	b := openIn(t, dir)
	if got := texts(b); len(got) > 0 || len(drafts(t, dir)) != 1 {
		t.Errorf("another process sees %q, drafts %v", got, drafts(t, dir))
	}
	if err := begin(t, b, "two").Finish(t.Context(), []chat.Message{chat.Text(chat.Assistant, "2")}, chat.Usage{}); err != nil {
		t.Fatal(err)
	}
	if err := d.Finish(t.Context(), []chat.Message{chat.Text(chat.Assistant, "1")}, chat.Usage{}); err != nil {
		t.Fatal(err)
	}
	if got, want := texts(openIn(t, dir)), []string{"Be brief.", "two", "2", "one", "1"}; !slices.Equal(got, want) || len(drafts(t, dir)) > 0 {
		t.Errorf("%q, want %q, drafts %v", got, want, drafts(t, dir))
	}
}

// TestDraftOfADeadProcess puts the file of a draft back, as a process leaves it that dies:
// within the turn, or after it has recorded it.
func TestDraftOfADeadProcess(t *testing.T) {
	for _, recorded := range []bool{false, true} {
		dir := t.TempDir()
		a := openIn(t, dir)
		d := begin(t, a, "one")
		if err := d.Add([]chat.Message{chat.Text(chat.Assistant, "round")}); err != nil {
			t.Fatal(err)
		}
		path := drafts(t, dir)[0]
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"Be brief.", "one", "round", session.Interrupted}
		if recorded {
			want = []string{"Be brief.", "one", "1"}
			err = d.Finish(t.Context(), []chat.Message{chat.Text(chat.Assistant, "1")}, chat.Usage{})
		} else {
			err = os.Remove(path)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+".jsonl", append(data, `{"role":"assi`...), 0o600); err != nil { // it died while it wrote
			t.Fatal(err)
		}
		if got := texts(openIn(t, dir)); !slices.Equal(got, want) {
			t.Errorf("recorded %t: %q, want %q", recorded, got, want)
		}
		if got := texts(openIn(t, dir)); !slices.Equal(got, want) {
			t.Errorf("recorded %t, opened again: %q, want %q", recorded, got, want)
		}
	}
}

func TestDiscardedDraftTakesItsSessionAlong(t *testing.T) {
	dir := t.TempDir()
	a := openIn(t, dir)
	d := begin(t, a, "one")
	b := openIn(t, dir) // sees it stored
	if !b.Stored() {
		t.Error("the session is not stored")
	}
	if err := d.Discard(t.Context()); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "by-id")); err != nil || len(entries) > 0 || a.Stored() {
		t.Errorf("it is still there: %v, %v", entries, err)
	}
	// The other one begins it anew, and is joined by the first.
	if err := begin(t, b, "two").Finish(t.Context(), []chat.Message{chat.Text(chat.Assistant, "2")}, chat.Usage{}); err != nil {
		t.Fatal(err)
	}
	d = begin(t, a, "three")
	if err := d.Discard(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got, want := texts(openIn(t, dir)), []string{"Be brief.", "two", "2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
