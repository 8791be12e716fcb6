package filestore_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"loki/internal/base/file/atomicfile"
	"loki/internal/conversation/session"
	"loki/internal/conversation/session/filestore"
	"loki/internal/conversation/session/sessiontest"
	"loki/internal/llm/chat"
)

// files lists what is below dir.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			list = append(list, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return list
}

func none() (session.Settings, error) {
	return session.Settings{Settings: chat.Settings{Model: "m"}}, nil
}

func TestLayout(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sessions")
	o := filestore.Options{Options: session.Options{Now: func() time.Time { return time.Unix(1_800_000_000, 0) }}, Dir: dir}
	st := open(t, o)
	s, err := st.OpenOrCreate(t.Context(), "", "my project", none)
	if err != nil {
		t.Fatal(err)
	}
	if got := files(t, dir); got != nil {
		t.Errorf("looking at sessions leaves %v behind", got)
	}
	if err := s.Append(t.Context(), sessiontest.Turn(1)); err != nil {
		t.Fatal(err)
	}
	id := string(s.ID())
	want := []string{"by-id/" + id + "/lock", "by-id/" + id + "/messages.jsonl", "by-id/" + id + "/state.yaml", "by-name/my project", "lock"}
	if got := files(t, dir); !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
	for file, want := range map[string]string{
		"by-name/my project":          id + "\n",
		"by-id/" + id + "/state.yaml": "model: m\naliases:\n- my project\ncreated: \"2027-01-15T08:00:00Z\"\n",
		"by-id/" + id + "/messages.jsonl": `{"role":"system","parts":[{"type":"text","text":"Be brief."}]}
{"role":"user","parts":[{"type":"text","text":"1?"}]}
{"role":"assistant","parts":[{"type":"text","text":"2."}]}
{"role":"user","parts":[{"type":"text","text":"question 1"}]}
{"role":"assistant","parts":[{"type":"text","text":"answer 1"}]}
{"mark":"turn","messages":5,"lead":3,"at":"2027-01-15T08:00:00Z"}
`,
	} {
		path := filepath.Join(dir, filepath.FromSlash(file))
		if got := string(read(t, path)); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", file, got, want)
		}
		if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s can be read by others: %v, %v", file, info.Mode(), err)
		}
	}
	if err := st.Delete(t.Context(), "", s.ID()); err != nil {
		t.Fatal(err)
	}
	if got := files(t, dir); !slices.Equal(got, []string{"lock"}) {
		t.Errorf("deleting leaves %v behind", got)
	}
}

func TestNamesWithoutASession(t *testing.T) {
	for _, tt := range []struct {
		name, content string
		warns         bool
	}{
		{"garbage", "not an id", true},
		{"empty", "", true},
		{"dangling", string(session.NewID()), false},
		{"path", "../../etc", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "by-name", "a"), []byte(tt.content))
			warnings := 0
			st := open(t, filestore.Options{Options: session.Options{Warn: func(context.Context, error) { warnings++ }}, Dir: dir, NoSync: true})
			if _, err := st.Resolve(t.Context(), "", "a"); !errors.Is(err, session.ErrNotFound) {
				t.Fatalf("the name stands for something: %v", err)
			}
			if (warnings > 0) != tt.warns {
				t.Errorf("%d warnings", warnings)
			}
			s, err := st.OpenOrCreate(t.Context(), "", "a", none)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Append(t.Context(), sessiontest.Turn(1)); err != nil {
				t.Fatal(err)
			}
			if id, err := st.Resolve(t.Context(), "", "a"); err != nil || id != s.ID() {
				t.Errorf("the name stands for %s: %v", id, err)
			}
		})
	}
}

func TestUnfinishedSessionsAreNone(t *testing.T) {
	dir := t.TempDir()
	half := filepath.Join(dir, "by-id", ".new-"+string(session.NewID()))
	write(t, filepath.Join(half, "state.yaml"), []byte("model: m\n"))
	write(t, filepath.Join(dir, "by-id", string(session.NewID()), "messages.jsonl"), nil)
	st := open(t, filestore.Options{Dir: dir, NoSync: true})
	if list, err := st.List(t.Context(), ""); err != nil || len(list) != 0 {
		t.Errorf("sessions %v, %v", list, err)
	}
	if _, err := st.Create(t.Context(), "", "a", session.Settings{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(half); err == nil {
		t.Error("what a process that died has left behind is still there")
	}
}

func TestStateThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	st := open(t, filestore.Options{Dir: dir, NoSync: true})
	s, err := st.Create(t.Context(), "", "a", session.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "by-id", string(s.ID()), "state.yaml")
	write(t, file, []byte("model: m\ntemperature: hot\nunknown: 1\n"))
	_, err = open(t, st.options).Open(t.Context(), "", s.ID())
	if err == nil || !strings.Contains(err.Error(), "state.yaml:2:14") {
		t.Errorf("the error is %v", err)
	}
	if list, err := st.List(t.Context(), ""); err != nil || len(list) != 1 {
		t.Errorf("it is not listed any more: %v, %v", list, err)
	}
}

func TestWaitingForAnotherProcessEnds(t *testing.T) {
	dir := t.TempDir()
	st := open(t, filestore.Options{Dir: dir, NoSync: true, LockTimeout: 20 * time.Millisecond})
	s, err := st.Create(t.Context(), "", "a", session.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	held, err := atomicfile.OpenLocked(t.Context(), filepath.Join(dir, "by-id", string(s.ID()), "lock"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), sessiontest.Turn(1)); err == nil || !s.Dirty() {
		t.Errorf("the error is %v, dirty %v", err, s.Dirty())
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), sessiontest.Turn(2)); err != nil || s.Dirty() {
		t.Errorf("the error is %v, dirty %v", err, s.Dirty())
	}
	again, err := open(t, st.options).Open(t.Context(), "", s.ID())
	if err != nil || len(again.Messages()) != 7 {
		t.Errorf("both turns should be there: %v, %v", again.Messages(), err)
	}
}

func TestScopesStayInside(t *testing.T) {
	st := open(t, filestore.Options{Dir: t.TempDir()})
	for _, scope := range []session.Scope{"..", ".", "a/b", "../x", "/etc"} {
		if _, err := st.Create(t.Context(), scope, "a", session.Settings{}); err == nil {
			t.Errorf("an agent called %q", scope)
		}
		if _, err := st.List(t.Context(), scope); err == nil {
			t.Errorf("sessions of an agent called %q", scope)
		}
		if err := st.Temp(scope, session.Settings{}).Save(t.Context()); err == nil {
			t.Errorf("a session of an agent called %q", scope)
		}
	}
}

func TestAFullDiskLosesNothing(t *testing.T) {
	dir := t.TempDir()
	st := open(t, filestore.Options{Dir: dir, NoSync: true})
	s, err := st.Create(t.Context(), "", "a", session.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "by-id", string(s.ID()), "messages.jsonl")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(file, 0o700); err != nil { // nothing can be written there
		t.Fatal(err)
	}
	for i := range 2 {
		if err := s.Append(t.Context(), sessiontest.Turn(i)); err == nil || !s.Dirty() {
			t.Errorf("the error is %v, dirty %v", err, s.Dirty())
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	again, err := open(t, st.options).Open(t.Context(), "", s.ID())
	if err != nil || len(again.Messages()) != 7 {
		t.Errorf("both turns should be there: %v, %v", again.Messages(), err)
	}
}

func TestEditedByHand(t *testing.T) {
	st := open(t, filestore.Options{Dir: t.TempDir(), NoSync: true})
	s := mustOpen(t, st, "", "a")
	if got := st.StateFile(s); got != "" {
		t.Errorf("a session that is not stored is in %s", got)
	}
	if err := s.Append(t.Context(), sessiontest.Turn(1)); err != nil {
		t.Fatal(err)
	}
	write(t, st.StateFile(s), []byte("model: other # better\ntemperature: 1\naliases: [a]\n"))
	if err := s.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.Settings(); got.Model != "other" || *got.Temperature != 1 || s.Dirty() || len(s.Messages()) != 5 {
		t.Errorf("settings %+v, dirty %v, %d messages", got, s.Dirty(), len(s.Messages()))
	}
}
