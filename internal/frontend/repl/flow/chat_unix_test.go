//go:build unix

package flow_test

import (
	"strings"
	"testing"
)

// story is a model that tells a story in two parts, differently each time, and needs long for a tale.
const story = `rules:
  - match: {text: story}
    times: 1
    reply: Once upon a time
    stop: length
  - match: {text: story}
    times: 1
    reply: there was a boat.
  - match: {text: story}
    reply: Long ago, there was a ship.
  - match: {text: tale}
    reply: one two three four five six
    delay: 10ms
    chunk_delay: 1m
  - match: {text: code}
    reply: "First:\n\n` + "```sh\\nls\\n```\\n\\nSecond:\\n\\n```go\\nx := 1\\n```" + `"
default: {reply: "You said: {{text}}"}
`

func TestChat(t *testing.T) {
	t.Parallel()
	eachFace(t, setup{rules: story}, func(t *testing.T, u *user, name string) {
		u.do("hello", `^You said: hello$`)
		u.keys("Enter") // an empty line
		u.idle(3)
		u.do("tell a story", `^Once upon a time$`)
		u.do(".continue", `^there was a boat\.$`)
		u.do(".regenerate", `^Long ago, there was a ship\.$`)
		u.do(".copy")
		if got := u.run("show-buffer"); got != "Long ago, there was a ship." {
			u.t.Errorf("%q is on the clipboard", got)
		}
		u.golden(name)
	})
}

func TestSeveralLines(t *testing.T) {
	t.Parallel()
	eachFace(t, setup{}, func(t *testing.T, u *user, name string) {
		u.typed(":::")
		u.keys("Enter")
		u.typed("one")
		u.keys("Enter")
		u.typed("two :::")
		u.sees(`two :::$`)
		u.keys("Enter")
		u.idle(2)
		u.sees(`^You said: one$`, `^two$`)
		u.paste("three\nfour")
		u.sees(`four$`)
		if all := u.joined(); prompts(all) != 2 || strings.Contains(all, "You said: three") {
			t.Errorf("what is pasted was sent:\n%s", all)
		}
		u.keys("Enter")
		u.idle(3)
		u.sees(`^You said: three$`, `^four$`)
		u.typed("five")
		u.keys("C-j")
		u.typed("six")
		u.sees(`six$`)
		u.keys("Enter")
		u.idle(4)
		u.sees(`^You said: five$`, `^six$`)
		u.golden(name)
	})
}

func TestHelpAndInfo(t *testing.T) {
	t.Parallel()
	u := begin(t, setup{rows: 100})
	u.do(".help", `^Roles .*  \.role `, `^Agents +\.agent `, ` \.vault `)
	u.do("help", `^Roles .*  \.role `)
	u.do(".help all", `^ +\.role `, `^ +\.agent `, `^ +\.vault `, `^ +:::`, `Ctrl\+C`)
	u.do(".info", `^model +builtin:script$`, `^sessions_dir`)
	u.do(".info files", `^config_dir`)
	u.do(".info nothing", `no part "nothing"`)
}

// TestInterrupt: Ctrl-C stops an answer and what came of it is kept; what was typed ahead is there at the next prompt.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	eachFace(t, setup{rules: story}, func(t *testing.T, u *user, name string) {
		u.do(".session tales")
		before := u.enter("a tale")
		u.sees(`^one`)
		u.typed("typed ahead")
		u.keys("C-c")
		u.until("what was typed ahead", func(all string) bool {
			return prompts(all) > before && strings.Contains(lastLine(all), ") typed ahead")
		})
		u.keys("Enter")
		u.idle(before + 2)
		u.sees(`^You said: typed ahead$`)
		u.do(".info session", `one`, `interrupted`)
	})
}

// TestLeaveDuringAnswer: Ctrl-D ends the answer and the program.
func TestLeaveDuringAnswer(t *testing.T) {
	t.Parallel()
	u := begin(t, setup{rules: story})
	u.enter("a tale")
	u.sees(`^one`)
	u.keys("C-d")
	u.leaves(0)
}

// TestBeyond: what chat programs of today have.
func TestBeyond(t *testing.T) {
	t.Parallel()
	u := begin(t, setup{rules: story, config: "save_session: true\n", files: map[string]string{"notes.txt": "the notes\n", "my file.txt": "mine\n"}})
	u.do(".session one")
	u.do("hello", `^You said: hello$`)
	u.do("code")
	u.do(".copy 2")
	if got := u.run("show-buffer"); strings.TrimSpace(got) != "x := 1" {
		t.Errorf("%q is on the clipboard", got)
	}
	u.do(".undo")
	u.do(".usage", `^session one`, `^last answer`)
	u.do("see @notes.txt", `the notes`)
	u.do("see @nothing.txt and a@b", `^You said: see @nothing.txt and a@b$`)
	u.do(".fork two")
	u.prompted("builtin:script)two)")
	u.do(".save last answer.md")
	if got := u.read("answer.md"); !strings.Contains(got, "a@b") {
		t.Errorf("answer.md is %q", got)
	}
	u.do("!echo from the shell", `^from the shell$`)
}
