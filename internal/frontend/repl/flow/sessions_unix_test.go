//go:build unix

package flow_test

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSessions(t *testing.T) {
	t.Parallel()
	eachFace(t, setup{}, func(t *testing.T, u *user, name string) {
		u.do(".session mytest")
		u.prompted("builtin:script)mytest)")
		u.do(".session other", `(?i)already in`)
		u.do("hello", `^You said: hello$`)
		u.do(".info session", `hello`)
		u.do(".save session myname")
		u.prompted("builtin:script)myname)")
		u.do(".exit session")
		u.prompted("builtin:script)>")
		u.do(".session myname", `hello`) // its messages are shown again
		u.do(".empty session", `^✓ The session has no messages any more$`)
		u.do(".info session")
		u.golden(name)
	})
}

func TestTemporarySession(t *testing.T) {
	t.Parallel()
	u := begin(t, setup{config: "save_session: false\n"})
	u.do(".session")
	u.prompted("builtin:script)temp)")
	u.do("hello")
	u.do(".exit session")
	u.prompted("builtin:script)>")
	if list, _ := os.ReadDir(filepath.Join(u.home, "config/sessions")); len(list) > 0 {
		t.Errorf("saved: %v", list)
	}
}

func TestEditSession(t *testing.T) {
	t.Parallel()
	u := begin(t, setup{})
	u.do(".session test")
	u.do("hello")
	u.do(".edit session")
	if u.read("edited") == "" {
		t.Error("no editor was started")
	}
	u.do(".continue", `(?i)no answer`)
}

// TestCarryOver: a session that begins after an answer can begin with it.
func TestCarryOver(t *testing.T) {
	t.Parallel()
	u := begin(t, setup{})
	u.do("hello")
	before := u.enter(".session test")
	u.answer(`Take what was said here into session \S+\?`, "Up", "Enter")
	u.idle(before + 1)
	u.do(".info session", `hello`)
}

// TestCompress: a session is compressed when the user wants it, and by itself when it becomes too long.
func TestCompress(t *testing.T) {
	t.Parallel()
	rules := "rules:\n  - match: {regex: 'Write down'}\n    times: 1\n    delay: 1h\n    reply: too late\n  - match: {regex: 'Write down'}\n    reply: we said hello\n" + answers
	u := begin(t, setup{rules: rules})
	u.do(".session test")
	for _, text := range []string{"one", "two", "three", "four"} {
		u.do(text)
	}
	before := u.enter(".compress session")
	u.sees(spinner + ` Compressing the session`)
	u.keys("C-c") // the model is too slow
	u.idle(before + 1)
	u.do(".info session", `^You said: one$`)
	u.do(".compress session", `^✓ Session compressed: `)
	u.do(".info session", `we said hello`)
	u.do(".set compression_threshold 1")
	u.do("five")
	u.sees(`(?i)compress`)
}

// TestAutoName: a temporary session that is saved by itself gets a name.
func TestAutoName(t *testing.T) {
	t.Parallel()
	rules := "rules:\n  - match: {regex: '(?s)USER:.*ASSISTANT:'}\n    reply: small-talk\n" + answers
	u := begin(t, setup{rules: rules, config: "save_session: true\n"})
	u.do(".session")
	u.do("hello")
	u.sees(`small-talk`)
	u.do(".exit session")
	list, _ := filepath.Glob(filepath.Join(u.home, "config/sessions/*/*small-talk*"))
	more, _ := filepath.Glob(filepath.Join(u.home, "config/sessions/*small-talk*"))
	if len(list)+len(more) == 0 {
		t.Error("no session is called small-talk")
	}
}
