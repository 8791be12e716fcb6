//go:build unix

package flow_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// shown is a model for screens: Markdown, a question to the user, a tool, and an answer that does not end.
const shown = `rules:
  - {match: {text: color, turn: 1}, tool_calls: [{name: user__ask, arguments: {question: "Which color is the hull?", options: [red, blue, "as it was before the boat was repaired in the spring"]}}]}
  - {match: {text: color, turn: 2}, reply: 'So be it: {{tool_result}}'}
  - {match: {text: note, turn: 1}, tool_calls: [{name: note, arguments: {text: "buy resin, two brushes and sandpaper before the week ends"}}]}
  - {match: {text: note, turn: 2}, reply: 'It is {{tool_result}}.'}
  - {match: {text: tale}, reply: one two three four five six, chunk_delay: 1h}
  - match: {text: repair}
    reply: "# Repair\n\nA *leaking* hull is repaired in **three** steps, which take a day if the weather is dry and two if it is not:\n\n1. dry it\n2. seal it with ` + "`resin`" + `\n\n| step | hours |\n|---|---|\n| dry | 10 |\n| seal | 2 |\n\n` + "```sh\\nls boats | wc -l\\n```" + `"
default: {reply: "You said: {{text}}"}
`

// TestScreens compares the main screens with files. They are the same with both bindings of keys.
func TestScreens(t *testing.T) {
	t.Parallel()
	files := map[string]string{"config/roles/writer.md": "You write letters.", "config/roles/painter.md": "You paint."}
	for name, text := range helpers {
		files[name] = text
	}
	for _, keybindings := range []string{"emacs", "vi"} {
		for _, columns := range []int{80, 120} {
			size := "_" + strconv.Itoa(columns)
			t.Run(keybindings+size, func(t *testing.T) {
				t.Parallel()
				u := begin(t, setup{columns: columns, rows: 100, rules: shown, files: files, config: "permission: {note: ask}\nkeybindings: " + keybindings + "\n"})
				u.golden("welcome" + size)
				for _, screen := range screens {
					u.fresh()
					screen.play(u)
					u.golden(screen.name + size)
				}
			})
		}
	}
}

// screens are what a user does for each screen, at a prompt without anything in force. They leave as they began,
// after the screen was compared, with [user.fresh].
var screens = []struct {
	name string
	play func(u *user)
}{
	{"help", func(u *user) { u.do(".help") }},
	{"markdown", func(u *user) { u.do("repair it") }},
	{"role", func(u *user) {
		u.do(".role writer")
		u.do("hello")
		u.do(".info role")
		u.typed("half a line")
		u.sees(`half a line$`)
	}},
	{"session", func(u *user) {
		u.do(".exit role")
		u.do(".set save_session false")
		u.do(".session letters")
		u.do("hello")
		u.do("repair it")
		u.do(".info session")
	}},
	{"agents", func(u *user) {
		u.do(".exit session")
		u.do(".agent helper who=Bob")
		u.do("hello")
		u.do(".starter")
	}},
	{"question", func(u *user) {
		u.enter("which color")
		u.sees(`Which color is the hull`, `to choose`)
	}},
	{"permission", func(u *user) {
		u.enter("take a note")
		u.sees(`note.*resin`, `press y`)
	}},
	{"interrupted", func(u *user) {
		u.do(".exit agent")
		before := u.enter("a tale")
		u.sees(`^one$`)
		u.keys("C-c")
		u.idle(before + 1)
	}},
	{"menu_commands", func(u *user) { u.menu(".", `^\.rag`) }},
	{"menu_set", func(u *user) { u.menu(".set ", `\d+ of \d+$`) }},
	{"menu_models", func(u *user) { u.menu(".model builtin", `^builtin:echo`) }},
	{"menu_roles", func(u *user) { u.menu(".role ", `writer$`) }},
	{"menu_delete", func(u *user) { u.menu(".delete ", `agent-data`) }},
	{"mistakes", func(u *user) {
		u.do(".rloe writer")
		u.do(".set temprature 1")
		u.do(".set temperature warm")
		u.do(".role nobody x")
		u.do(".agent nobody")
		u.do(".model nothing")
		u.do(".info session")
		u.do(".file nothing.txt -- hello")
		u.do(".vault get KEY")
	}},
}

// menu opens the menu for a text.
func (u *user) menu(text, row string) {
	u.t.Helper()
	u.typed(text)
	u.sees(regexp.QuoteMeta(strings.TrimRight(text, " ")) + `$`)
	u.keys("Tab")
	u.sees(row)
}

// fresh gives up what is asked or typed, and begins a new screen.
func (u *user) fresh() {
	u.t.Helper()
	if all := u.joined(); !prompt.MatchString(lastLine(all)) { // a question, a text or a menu
		before := prompts(all)
		u.keys("C-c")
		u.idle(before + 1)
	}
	u.keys("C-l")
	u.until("a clear screen", func(string) bool { return strings.Count(u.screen(), "\n") == 1 })
	u.run("clear-history")
}
