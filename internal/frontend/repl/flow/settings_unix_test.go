//go:build unix

package flow_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	eachFace(t, setup{rows: 150}, func(t *testing.T, u *user, name string) {
		for _, line := range []string{
			"temperature 0.5", "top_p 0.9", "dry_run true", "stream false", "save false", "highlight false", "save_session true",
			"compression_threshold 2000", "max_output_tokens 4096", "enabled_tools all", "function_calling_support false",
		} {
			u.do(".set " + line)
		}
		u.do(".info all", `^temperature +0\.5$`, `^top_p +0\.9$`, `^dry_run +true$`, `^stream +false$`, `^save +false$`, `^save_session +true$`,
			`^compression_threshold +2000`, `^max_output_tokens +4096`, `^enabled_tools +all$`, `^function_calling_support +false$`, `^highlight +false$`)
		u.do("hello", `hello`)
		u.do(".set dry_run false")
		u.do(".set temperature null")
		u.do(".info all", `^temperature +null$`)
		u.do(".set temperature warm", `want a number from 0 to 2, or null, found "warm"`)
		u.do(".set temprature 1", `did you mean temperature`)
		u.do(".set", `(?i)usage`)
		u.do(".set model builtin:echo")
	})
}

func TestModel(t *testing.T) {
	t.Parallel()
	u := begin(t, setup{})
	u.do(".set model builtin:echo")
	u.prompted("builtin:echo)>")
	u.do("hello", `^hello$`)
	u.do(".model builtin:script")
	u.prompted("builtin:script)>")
}

// secret answers the question for a secret, which is asked twice.
func (u *user) secret(value string) {
	u.t.Helper()
	for _, question := range []string{`\? Secret mysecret\n┃`, `\? Again`} {
		u.answer(question)
		u.typed(value)
		u.keys("Enter")
	}
}

func TestVault(t *testing.T) {
	t.Parallel()
	eachFace(t, setup{files: map[string]string{".loki_password": "secret password\n"}}, func(t *testing.T, u *user, name string) {
		before := u.enter(".vault add mysecret")
		u.secret("hidden-value")
		u.idle(before + 1)
		u.do(".vault list", `^mysecret$`)
		u.do(".vault get mysecret", `^hidden-value$`)
		before = u.enter(".vault update mysecret")
		u.secret("other-value")
		u.idle(before + 1)
		u.do(".vault get mysecret", `^other-value$`)
		u.do(".vault delete mysecret")
		u.do(".vault list")
		u.do(".vault get mysecret", `mysecret`)
		u.golden(name)
	})
}

func TestMacros(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"config/macros/greet.yaml": "variables: [{name: who}, {name: how, rest: true, default: warmly}]\nsteps:\n  - .role writer\n  - |-\n    greet {{who}}\n    {{how}}\n",
		"config/macros/fails.yaml": "steps:\n  - hello\n  - .role nobody\n  - never\n",
		"config/macros/calls.yaml": "steps:\n  - .macro greet Bob\n  - .exit\n  - after\n",
		"config/macros/loops.yaml": "steps:\n  - .macro loops\n",
		"config/macros/edits.yaml": "steps:\n  - .edit config\n",
		"config/roles/writer.md":   "You write letters.",
	}
	eachFace(t, setup{files: files, rows: 100}, func(t *testing.T, u *user, name string) {
		u.do(".macro greet Ann very kindly", `^>> \.role writer$`, `^>> greet Ann$`, `^\.\. very kindly$`, `^You said: greet Ann$`)
		u.prompted("builtin:script)>") // the role was that of the macro only
		u.do(".macro greet", `variable "who" has no value`, `greet <who> \[how\]\.\.\.`)
		u.do(".macro fails x", `macro fails, step 2 of 3 \(.*fails\.yaml:3\)`)
		u.do(".macro calls", `^You said: greet Bob$`, `^You said: after$`)
		u.do(".macro loops", `(?i)deep`)
		u.do(".macro edits", `(?i)macro`)
		u.do(".macro nobody x", `no macro is called "nobody"`)
		u.golden(name)
	})
}

func TestMakeMacro(t *testing.T) {
	t.Parallel()
	u := begin(t, setup{})
	u.write("edit", "steps:\n  - hello from the macro\n")
	before := u.enter(".macro newname")
	u.answer(`Make it\?`, "Enter")
	u.idle(before + 1)
	u.do(".macro newname", `^You said: hello from the macro$`)
	if got := u.read("edited"); got != "newname.yaml\n" {
		t.Errorf("edited: %q", got)
	}
}

// TestCommitMessage: the bundled macro sends the staged changes.
func TestCommitMessage(t *testing.T) {
	t.Parallel()
	u := begin(t, setup{rows: 60})
	u.do("!git init -q . && echo boats > fleet.txt && git add fleet.txt")
	u.do(".macro generate-commit-message in German", `^>> \.file`, `\+boats`, `in German`)
}

func TestFile(t *testing.T) {
	t.Parallel()
	u := begin(t, setup{files: map[string]string{"a.txt": "the first\n", "b c.txt": "the second\n"}})
	u.do(".file a.txt -- sum it up", `sum it up`, `the first`)
	u.do(`.file a.txt 'b c.txt' b\ c.txt`, `the first`, `the second`)
	u.do(".file `echo from a command`", `from a command`)
	u.do(".file nothing.txt -- hello", `nothing\.txt`)
	u.do(".file", `(?i)usage`)
	u.do(".file %% -- again", `from a command`)
}

// TestAddress: what .file fetches from the web goes with the question.
func TestAddress(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/page" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<html><body><h1>Boats</h1><p>The fleet sails at nine.</p></body></html>")
	}))
	t.Cleanup(web.Close)
	u := begin(t, setup{})
	u.do(".file "+web.URL+"/page -- sum it up", `sum it up`, `The fleet sails at nine\.`)
	u.do(".file "+web.URL+"/none -- sum it up", `404`)
	u.prompted("builtin:script)>")
}

func TestEdit(t *testing.T) {
	t.Parallel()
	u := begin(t, setup{})
	u.do(".edit config")
	if got := u.read("edited"); got != "config.yaml\n" {
		t.Errorf("edited: %q", got)
	}
	u.do(".edit nothing", `(?i)usage`)
}

// TestErrors: an error is shown, and the next line is as good as the first.
func TestErrors(t *testing.T) {
	t.Parallel()
	eachFace(t, setup{rows: 80, files: helpers}, func(t *testing.T, u *user, name string) {
		u.do(".set model nonexistent_model", `nonexistent_model`)
		u.do(".model nonexistent_model", `nonexistent_model`)
		u.do(".info session", `(?i)no session`)
		u.do(".info agent", `(?i)agent`)
		u.do(".info role", `(?i)role`)
		u.do(".session", "")
		u.do(".session", `(?i)already`)
		u.do(".exit session")
		u.do(".agent helper")
		u.do(".agent helper", `(?i)already`)
		u.do(".exit agent")
		u.do(".nonexistent", `\.nonexistent is not a command`, `\.help`)
		u.do(".rloe x", `did you mean \.role\?`)
		u.do("hello", `^You said: hello$`)
		u.golden(name)
	})
}
