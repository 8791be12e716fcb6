package conversation_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/base/fault"
	"loki/internal/conversation/session"
	"loki/internal/conversation/session/filestore"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
)

// remembers begins an interactive conversation that remembers.
func remembers(t *testing.T, replies ...any) *room {
	t.Helper()
	r := enter(t, &actor{replies: replies})
	r.service.Remember, r.service.PromptLog = true, true
	r.Conversation = r.begin()
	return r
}

func TestRemembers(t *testing.T) {
	t.Parallel()
	r := remembers(t, "one", "two")
	if r.Session() != nil {
		t.Error("there is a session before the first question")
	}
	r.tell("first")
	r.tell("second")
	r.sends("user first | assistant one | user second")
	st := r.State().Session
	if st == nil || !st.Unnamed || st.UserMessages != 2 {
		t.Fatalf("%+v", st)
	}
	id := r.Session().ID()

	// Another conversation can continue it.
	other := r.begin()
	if err := other.UseSession(t.Context(), string(id)); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Tell(t.Context(), question("third")); err != nil {
		t.Fatal(err)
	}
	r.sends("user first | assistant one | user second | assistant two | user third")

	if err := r.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.tell("alone")
	r.sends("user alone")
	if r.Session().ID() == id {
		t.Error("the old conversation continues")
	}
	if n := len(r.asker.Asked()); n != 0 {
		t.Errorf("%d questions", n)
	}
}

// TestRemembersUnlessToldNotTo: each of what turns it off.
func TestRemembersUnlessToldNotTo(t *testing.T) {
	t.Parallel()
	r := remembers(t)
	r.service.Remember = false
	r.tell("first")
	r.tell("second")
	r.sends("user second")

	r = remembers(t)
	mustSet(t, r, "dry_run", "true")
	r.tell("first")
	if r.Session() != nil {
		t.Error("a session in a dry run")
	}

	r = remembers(t) // in memory only
	mustSet(t, r, "save_session", "false")
	r.tell("first")
	r.tell("second")
	r.sends("user first | assistant ok | user second")
	if r.Session().Stored() || r.Close(t.Context()) != nil || r.kept() != 0 {
		t.Errorf("%d sessions are stored", r.kept())
	}
}

// TestPromptLog: where nothing is remembered, each question outside of sessions is kept by itself.
func TestPromptLog(t *testing.T) {
	t.Parallel()
	files := func() *room {
		r := remembers(t)
		store, err := filestore.New(filestore.Options{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		r.service.Sessions = func() (session.Store, error) { return store, nil }
		return r
	}
	r := files()
	r.service.Remember = false
	r.tell("first")
	r.tell("second")
	if r.kept() != 2 {
		t.Errorf("%d sessions are stored, want one for each question", r.kept())
	}
	mustSet(t, r, "prompt_log", "false")
	if r.tell("third"); r.kept() != 2 {
		t.Errorf("%d sessions are stored without a log", r.kept())
	}

	r = files() // what is remembered stays in memory from the second question on
	r.tell("first")
	mustSet(t, r, "prompt_log", "false")
	r.tell("second")
	r.sends("user first | assistant ok | user second")
	store, _ := r.service.Sessions() // it has no error
	if _, turns, err := store.(*filestore.Store).Glance(t.Context(), "", r.Session().ID()); err != nil || turns != 1 {
		t.Errorf("%d turns are stored, %v", turns, err)
	}
}

// kept returns how many sessions are stored.
func (r *room) kept() int {
	r.t.Helper()
	store, err := r.service.Sessions()
	if err != nil {
		r.t.Fatal(err)
	}
	list, err := store.List(r.t.Context(), "")
	if err != nil {
		r.t.Fatal(err)
	}
	return len(list)
}

// TestFailedQuestionsLeaveNothing: a question that failed is not part of what was said, and not stored.
func TestFailedQuestionsLeaveNothing(t *testing.T) {
	t.Parallel()
	r := remembers(t, errors.New("down"), "fine")
	if _, err := r.Tell(t.Context(), question("first")); err == nil {
		t.Fatal("no error")
	}
	if n := r.kept(); n != 0 {
		t.Errorf("%d sessions are stored", n)
	}
	r.tell("again")
	r.sends("user again")
	if n := r.kept(); n != 1 {
		t.Errorf("%d sessions are stored", n)
	}
}

// TestSetAside: entering something else leaves what has no name, without a question, and what was set stays.
func TestSetAside(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		enter func(r *room) error
		sent  string // of the next question
	}{
		"session":   {func(r *room) error { return r.UseSession(r.t.Context(), "trip") }, "user next"},
		"temporary": {func(r *room) error { return r.UseSession(r.t.Context(), "") }, "user next"},
		"role": {func(r *room) error {
			of, _, err := r.service.Roles().Load("poet")
			return errors.Join(err, r.UseRole(r.t.Context(), of))
		}, "system Answer in verse. | user next"},
		"prompt": {func(r *room) error { return r.UsePrompt(r.t.Context(), "Be brief.") }, "system Be brief. | user next"},
		"new":    {func(r *room) error { return r.Renew(r.t.Context()) }, "user next"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := remembers(t)
			r.tell("first")
			mustSet(t, r, "temperature", "0.25")
			if err := tt.enter(r); err != nil {
				t.Fatal(err)
			}
			r.tell("next")
			r.sends(tt.sent)
			if got := r.actor.requests[1].Temperature; got == nil || *got != 0.25 {
				t.Errorf("temperature %v", got)
			}
			if n := len(r.asker.Asked()); n != 0 || r.kept() == 0 {
				t.Errorf("%d questions, %d sessions", n, r.kept())
			}
		})
	}
	r := remembers(t)
	r.tell("first")
	if err := r.EnterAgent(t.Context(), "nobody", "", nil); fault.CodeOf(err) != fault.NotFound {
		t.Error(err)
	}
	r.tell("second")
	r.sends("user first | assistant ok | user second") // what cannot be entered leaves nothing
}

// TestRoleStays: a role applies to all that is said in it, and is still there in a new conversation.
func TestRoleStays(t *testing.T) {
	t.Parallel()
	r := remembers(t)
	if err := r.UsePrompt(t.Context(), "Be brief."); err != nil {
		t.Fatal(err)
	}
	r.tell("first")
	r.tell("second")
	r.sends("system Be brief. | user first | assistant ok | user second")
	if err := r.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.tell("third")
	r.sends("system Be brief. | user third")
	if err := r.ExitRole(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.tell("fourth")
	r.sends("user fourth")
}

// TestNameLater: what was said becomes a session with a name, which is then like any other.
func TestNameLater(t *testing.T) {
	t.Parallel()
	r := remembers(t)
	if r.CanName(t.Context(), "trip") {
		t.Error("there is nothing to name")
	}
	r.tell("first")
	if _, err := r.SaveSession(t.Context(), ""); fault.CodeOf(err) != fault.Usage {
		t.Error(err)
	}
	if !r.CanName(t.Context(), "trip") || r.CanName(t.Context(), "a/b") {
		t.Error("which names can be given")
	}
	if _, err := r.SaveSession(t.Context(), "trip"); err != nil {
		t.Fatal(err)
	}
	if st := r.State().Session; st.Unnamed || st.Name != "trip" || r.CanName(t.Context(), "other") {
		t.Errorf("%+v", st)
	}
	r.tell("second")
	r.sends("user first | assistant ok | user second")
	if err := r.UseSession(t.Context(), "other"); fault.CodeOf(err) != fault.Usage {
		t.Errorf("another session: %v", err)
	}
	if err := r.ExitSession(t.Context()); err != nil || r.stored("") != "trip" {
		t.Errorf("%v, %s", err, r.stored(""))
	}
	r.tell("third")
	r.sends("user third")
	if r.CanName(t.Context(), "trip") {
		t.Error("the name of another session")
	}
}

// TestUnkeptGoesOn: where a session cannot be written the conversation continues, with one warning.
func TestUnkeptGoesOn(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := remembers(t)
	store, err := filestore.New(filestore.Options{Dir: filepath.Join(file, "sessions")})
	if err != nil {
		t.Fatal(err)
	}
	r.service.Sessions = func() (session.Store, error) { return store, nil }
	r.Conversation = r.begin()
	r.tell("first")
	r.tell("second")
	r.sends("user first | assistant ok | user second")
	if w := eventtest.Bodies[event.Warning](r.events); len(w) == 0 || !w[0].Once || !strings.Contains(w[0].Text, "not kept on disk") {
		t.Errorf("warnings %+v", w)
	}
}

// TestLeavesWhatIsNotKept: where nothing can be written, the chat can be left, begun anew and taken back all the same.
func TestLeavesWhatIsNotKept(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := remembers(t)
	store, err := filestore.New(filestore.Options{Dir: filepath.Join(file, "sessions")})
	if err != nil {
		t.Fatal(err)
	}
	r.service.Sessions = func() (session.Store, error) { return store, nil }
	r.Conversation = r.begin()
	r.tell("first")
	r.tell("second")
	if _, err := r.Undo(t.Context()); err != nil {
		t.Error(err)
	}
	r.tell("third")
	r.sends("user first | assistant ok | user third")
	if err := r.UsePrompt(t.Context(), "Be brief."); err != nil {
		t.Error(err)
	}
	r.tell("fourth")
	r.sends("system Be brief. | user fourth")
	if err := r.Renew(t.Context()); err != nil {
		t.Error(err)
	}
	r.tell("fifth")
	r.sends("system Be brief. | user fifth")
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestDeletedElsewhere: a chat whose session is deleted by another process continues with everything that was said.
func TestDeletedElsewhere(t *testing.T) {
	t.Parallel()
	r := remembers(t)
	store, err := filestore.New(filestore.Options{Dir: filepath.Join(t.TempDir(), "sessions")})
	if err != nil {
		t.Fatal(err)
	}
	r.service.Sessions = func() (session.Store, error) { return store, nil }
	r.Conversation = r.begin()
	r.tell("first")
	if err := store.Delete(t.Context(), "", r.Session().ID()); err != nil {
		t.Fatal(err)
	}
	r.tell("second")
	r.sends("user first | assistant ok | user second")
	if _, err := r.SaveSession(t.Context(), "trip"); err != nil {
		t.Error(err)
	}
	if got := r.stored(""); got != "trip" {
		t.Errorf("stored %q", got)
	}
}

// TestPromptLogOffAndOn: what is said while the log is off is remembered, and written only if the user saves it.
func TestPromptLogOffAndOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := remembers(t)
	store, err := filestore.New(filestore.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	r.service.Sessions = func() (session.Store, error) { return store, nil }
	for i, say := range []string{"first", "off", "private", "gone", "on", "third"} {
		switch say {
		case "on", "off":
			mustSet(t, r, "prompt_log", say)
			continue
		}
		r.tell(say)
		if say == "gone" {
			if _, err := r.Undo(t.Context()); err != nil {
				t.Fatal(i, err)
			}
		}
	}
	r.sends("user first | assistant ok | user private | assistant ok | user third")
	log := func() string { return logs(t, dir) }
	if got := log(); !strings.Contains(got, `"first"`) || !strings.Contains(got, `"third"`) || strings.Contains(got, "private") || strings.Contains(got, "gone") {
		t.Errorf("the log is\n%s", got)
	}
	mustSet(t, r, "prompt_log", "off")
	r.tell("later")
	if _, err := r.Undo(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.SaveSession(t.Context(), "trip"); err != nil {
		t.Fatal(err)
	}
	r.tell("fourth")
	if got := log(); !strings.Contains(got, "private") || strings.Contains(got, "gone") || strings.Contains(got, "later") || !strings.Contains(got, "fourth") {
		t.Errorf("saved under a name, the log is\n%s", got)
	}
	again, err := filestore.New(filestore.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	s, err := again.Open(t.Context(), "", r.Session().ID())
	if err != nil || s.UserMessages() != 4 || len(s.Messages()) != 8 {
		t.Fatalf("%d messages, %v", len(s.Messages()), err)
	}
}

// TestSaveWritesWhatIsShown: turns that were taken back while nothing was kept are not in the file.
func TestSaveWritesWhatIsShown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := remembers(t)
	store, err := filestore.New(filestore.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	r.service.Sessions = func() (session.Store, error) { return store, nil }
	mustSet(t, r, "prompt_log", "off")
	r.tell("secret plan")
	if _, err := r.Undo(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.tell("harmless")
	if _, err := r.SaveSession(t.Context(), "trip"); err != nil {
		t.Fatal(err)
	}
	if got := logs(t, dir); strings.Contains(got, "secret") || !strings.Contains(got, "harmless") {
		t.Errorf("the log is\n%s", got)
	}
}

// logs returns the text of all messages below dir.
func logs(t *testing.T, dir string) (all string) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "by-id", "*", "messages.jsonl")) // the pattern is well formed
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all += string(data)
	}
	return all
}
