//go:build linux || darwin

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/agent/workspace/trust"
	"loki/internal/base/ptytest"
	"loki/internal/base/text/sample"
)

// impatient is what a user types while a model works: the next command of the shell, answers, keys and a paste.
const impatient = "make test\nyes\ny\ne\r1\n\n\njkgG\x1b[B\x1b[B\r\x1b[200~e\ny\n\x1b[201~drop\nn\x1b]11;rgb:ee/ee/ee\x07e"

// seesQuestion waits for a question, and until keys count at it. Behind a bar is what shows that of a list which grants something.
func seesQuestion(x *ptytest.Terminal, term, question string) {
	text, counts, list := strings.Cut(question, "|")
	x.Sees(text)
	switch {
	case list && term == "dumb":
		x.Sees("Number", ": ")
	case list:
		x.Sees(counts)
	case term == "dumb" && strings.HasSuffix(text, "?"):
		x.Sees(": ")
	}
}

// TestTypedAhead types while the program works, before each kind of question. Only what is typed at the question answers it.
func TestTypedAhead(t *testing.T) {
	const (
		graph = `
name: mail
start: think
nodes:
  think: {type: llm, prompt: think, next: ok}
  ok: {type: approval, question: "Mail it to 500 people?", options: [send, drop], routes: {send: s, drop: who}, on_other: d}
  who: {type: input, question: "Why?", state_updates: {why: "{{input}}"}, next: d}
  s: {type: end, output: "SENT"}
  d: {type: end, output: "dropped: {{why}}"}
`
		writes = `
rules:
  - match: {turn: 1}
    delay: 500ms
    tool_calls: [{name: fs_write, arguments: {path: one.txt, contents: new}}]
default: {reply: "the end"}
`
	)
	slow := func(reply string) string { return "default: {delay: 500ms, reply: '" + reply + "'}\n" }
	type step struct{ sees, types string }
	for _, tt := range []struct {
		name  string
		rules string
		args  []string
		steps []step
		shows string
		one   string // the content of one.txt
	}{
		{"menu", slow("echo new >one.txt"), []string{"-e", "list"}, []step{{"quit: ", "y"}, {"Press one of these keys: e, r, d, c, q\r\n", ""}, {"quit: ", "q"}}, "", "old"},
		{"menu_executes", slow("echo new >one.txt"), []string{"-e", "list"}, []step{{"quit: ", "e"}}, "", "new\n"},
		{"permission_refused", writes, []string{"-a", "writer", "x"}, []step{{"Replace the contents|press ", "n"}}, "the end", "old"},
		{"permission_given", writes, []string{"-a", "writer", "x"}, []step{{"Replace the contents|press ", "y"}}, "the end", "new"},
		{"approval_and_input", slow("done"), []string{"-q", "-a", "./mail", "x"}, []step{{"500 people?|type or", "drop\r"}, {"Why?", "too many\r"}}, "dropped: too many", "old"},
		{"approval_by_digit", slow("done"), []string{"-q", "-a", "./mail", "x"}, []step{{"500 people?|type or", "\r1"}}, "SENT", "old"},
	} {
		for _, term := range []string{"xterm-256color", "dumb"} {
			t.Run(tt.name+"_"+term, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				write(t, filepath.Join(dir, "one.txt"), "old")
				write(t, filepath.Join(dir, "rules.yaml"), tt.rules)
				write(t, filepath.Join(dir, "mail", "graph.yaml"), graph)
				write(t, filepath.Join(dir, "home", "config", "agents", "writer", "config.yaml"), "name: writer\ninstructions: You write.\nglobal_tools: [fs_write]\n")
				cmd := exec.Command("loki", append([]string{"-m", "builtin:script/rules.yaml"}, tt.args...)...)
				cmd.Dir, cmd.Env = dir, append(emptyHome(dir), "TERM="+term, "NO_COLOR=")
				x := ptytest.Start(t, 40, cmd)
				x.Types(impatient)
				for _, s := range tt.steps {
					seesQuestion(x, term, s.sees)
					if term == "dumb" && !strings.Contains(tt.name, "menu") {
						s.types = strings.TrimPrefix(strings.TrimSuffix(s.types, "\r"), "\r") + "\r"
					}
					x.Types(s.types)
				}
				if tt.shows != "" {
					x.Sees(tt.shows)
				}
				if status := x.Ends(); status != 0 {
					t.Errorf("status %d\n%s", status, x.Drawn())
				}
				if got, err := os.ReadFile(filepath.Join(dir, "one.txt")); err != nil || string(got) != tt.one {
					t.Errorf("one.txt is %q, %v\n%s", got, err, x.Drawn())
				}
			})
		}
	}
}

// TestTypedAheadOfQuestions types random texts while the program starts or works, before a question of each kind. Only what is
// typed at the question answers it: no consent, answer or line of a shell comes of the rest.
func TestTypedAheadOfQuestions(t *testing.T) {
	const (
		approval = `
name: mail
start: ok
nodes:
  ok: {type: approval, question: "Mail it to 500 people?", options: [send, drop], routes: {send: s, drop: who}, on_other: d}
  who: {type: input, question: "Why?", state_updates: {why: "{{input}}"}, next: d}
  s: {type: end, output: "SENT"}
  d: {type: end, output: "dropped: {{why}}"}
`
		writes = `
rules:
  - match: {turn: 1}
    tool_calls: [{name: fs_write, arguments: {path: one.txt, contents: new}}]
default: {reply: "the end"}
`
		writer  = "name: writer\ninstructions: You write.\nglobal_tools: [fs_write]\n"
		clients = "clients:\n" +
			"  - {type: openai-compatible, name: first, api_base: 'http://127.0.0.1:1/v1', auth: oauth, oauth: {client_id: a, authorize_url: 'http://127.0.0.1:1/a', token_url: 'http://127.0.0.1:1/t'}}\n" +
			"  - {type: openai-compatible, name: second, api_base: 'http://127.0.0.1:1/v1', auth: oauth, oauth: {client_id: a, authorize_url: 'http://127.0.0.1:1/a', token_url: 'http://127.0.0.1:1/t'}}\n"
		session = "model: builtin:echo\nmessages:\n- role: user\n  content: hello\n- role: assistant\n  content: hello\n"
	)
	ollama := startOllama("gemma3:latest", "llama3.2:latest")
	t.Cleanup(ollama.Close)
	for name, tt := range map[string]struct {
		files  map[string]string
		env    string
		args   []string
		steps  []string // texts that are waited for, and what is typed then
		status int
		file   string // what must not be there if it is begun with !
		has    string
	}{
		"wizard_declined": {env: "OLLAMA_HOST=127.0.0.1:1", args: []string{"hello"}, steps: []string{"Create one now?|type or", "No\r", "no model to talk to", ""}, status: 3, file: "!home/config/config.yaml"},
		"wizard": {
			env: "OLLAMA_HOST=" + ollama.URL, args: []string{"--info"}, file: "home/config/config.yaml", has: "model: ollama:llama3.2:latest",
			steps: []string{"Create one now?|type or", "Yes\r", "openai-compatible|", "1\r", "llama3.2:latest|", "llama\r", "Saved", ""},
		},
		"trust": {
			files: map[string]string{
				"evil/graph.yaml": "name: evil\nstart: work\nnodes:\n  work: {type: script, script: work.sh, sandbox: write, next: done}\n  done: {type: end, output: ended}\n",
				"evil/work.sh":    "touch made 2>/dev/null\necho '{}'\n",
			},
			env: "LOKI_TRUSTED_DIRS=", args: []string{"-m", "builtin:echo", "-a", "./evil", "x"}, steps: []string{trust.QuestionEnd + "|press ", "run it restricted\r", "ended", ""}, file: "!made",
		},
		"plan": {
			files: map[string]string{"rules.yaml": planRules}, args: []string{"-q", "-m", "builtin:script/rules.yaml", "--plan", "a wish"},
			steps: []string{"this plan?|press ", "no\r", "nothing was run or saved", ""}, file: "!ran",
		},
		"approval_and_input": {
			files: map[string]string{"mail/graph.yaml": approval}, args: []string{"-q", "-a", "./mail", "x"},
			steps: []string{"500 people?|type or", "drop\r", "Why?", "too many\r", "dropped: too many", ""},
		},
		"permission": {
			files: map[string]string{"rules.yaml": writes, "one.txt": "old", "home/config/agents/writer/config.yaml": writer},
			args:  []string{"-m", "builtin:script/rules.yaml", "-a", "writer", "x"}, steps: []string{"Replace the contents|press ", "n\r", "the end", ""}, file: "one.txt", has: "old",
		},
		"picker_of_clients": {
			files: map[string]string{"home/config/config.yaml": clients}, args: []string{"--authenticate"}, steps: []string{"Log in to which client?", "\x03"}, status: 130,
		},
		"deletion": {
			files: map[string]string{"home/config/sessions/trip.yaml": session}, args: []string{"-m", "builtin:echo", "--delete-session", "trip"},
			steps: []string{"Delete session|press ", "no\r"}, status: 0, file: "home/config/sessions/trip.yaml", has: "hello",
		},
		"menu": {
			files: map[string]string{"rules.yaml": "default: {reply: 'touch made'}\n"}, args: []string{"-m", "builtin:script/rules.yaml", "-e", "make it"},
			steps: []string{"quit: ", "q"}, file: "!made",
		},
	} {
		for i, ahead := range ptytest.TypedAhead(200) {
			if i%sample.Step(200) != 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", name, i), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				for file, text := range tt.files {
					write(t, filepath.Join(dir, file), text)
				}
				cmd := exec.Command("loki", tt.args...)
				term := []string{"xterm-256color", "dumb"}[i%2]
				cmd.Dir, cmd.Env = dir, append(emptyHome(dir), "TERM="+term, "NO_COLOR=", tt.env)
				x := ptytest.Open(t, 100)
				x.Types(ahead)
				x.Start(cmd)
				for i := 0; i < len(tt.steps); i += 2 {
					seesQuestion(x, term, tt.steps[i])
					keys := tt.steps[i+1]
					if i+3 < len(tt.steps) && tt.steps[i+3] != "" {
						keys += ahead // of the next question
					}
					x.Types(keys)
				}
				if status := x.Ends(); status != tt.status {
					t.Errorf("status %d, want %d", status, tt.status)
				}
				if lines := x.Unread(); strings.Contains(lines, "\n") {
					t.Errorf("%q is left for the next program", lines)
				}
				file, absent := strings.CutPrefix(tt.file, "!")
				got, err := os.ReadFile(filepath.Join(dir, file))
				if tt.file != "" && ((err != nil) != absent || !strings.Contains(string(got), tt.has)) {
					t.Errorf("%s is %q, %v", file, got, err)
				}
				if t.Failed() {
					t.Logf("%q was typed ahead\n%s", ahead, x.Drawn())
				}
			})
		}
	}
}

// TestOptionAfterText asks at a terminal whether an option is meant as a part of the text, before anything is sent.
func TestOptionAfterText(t *testing.T) {
	for _, tt := range []struct {
		name, key string
		status    int
		shows     string
	}{
		{"not_sent", "n", 2, "nothing was sent: -f comes after the text"},
		{"enter", "\r", 2, "options come first: loki -f ... TEXT"},
		{"sent", "y", 0, "a question -f a.md"},
		{"interrupted", "\x03", 130, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			cmd := exec.Command("loki", "-m", "builtin:echo", "a question", "-f", "a.md")
			cmd.Dir, cmd.Env = dir, append(emptyHome(dir), "TERM=xterm-256color", "NO_COLOR=1")
			x := ptytest.Start(t, 80, cmd)
			x.Sees("-f comes after the text", "y/N: ")
			x.Types(tt.key)
			if tt.shows != "" {
				x.Sees(tt.shows)
			}
			if status := x.Ends(); status != tt.status {
				t.Errorf("status %d, want %d\n%s", status, tt.status, x.Drawn())
			}
		})
	}
}
