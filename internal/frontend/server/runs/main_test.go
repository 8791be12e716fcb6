package runs_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"loki/internal/frontend/api"
	"loki/internal/frontend/server/servertest"
)

// agents are those of the servers in these tests.
var agents = servertest.Files{
	"agents/asker/graph.yaml": `
name: asker
start: who
initial_state: {n: 1}
nodes:
  who: {type: input, question: "Who?", state_updates: {who: "{{input}}"}, next: review}
  review: {type: approval, question: "Greet {{who}}?", options: [yes, no], routes: {yes: hello, no: bye}, on_other: bye}
  hello: {type: end, output: "Hello, {{who}} {{n}}."}
  bye: {type: end, output: "Bye."}
`,
	"agents/review/graph.yaml": `
name: review
start: first
nodes:
  first: {type: approval, question: "Ship it?", options: [yes, no], routes: {yes: second, no: second}, on_other: second, assignees: [carol], state_updates: {first: "{{choice}}"}}
  second: {type: input, question: "Why?", state_updates: {second: "{{input}}"}, next: done}
  done: {type: end, output: "{{first}}, {{second}}"}
`,
	"agents/gate/graph.yaml": `
name: gate
sandbox: full
start: wait
nodes:
  wait: {type: script, script: wait.sh, next: think}
  think: {type: llm, model: "builtin:echo", prompt: "one two {{initial_prompt}}", state_updates: {said: "{{output}}"}, next: done}
  done: {type: end, output: "{{said}}"}
`,
	// It works until a file called as the prompt is there.
	"agents/gate/wait.sh": `#!/bin/sh
name=$(printf '%s' "$GRAPH_STATE" | sed -n 's/.*"initial_prompt": *"\([a-z]*\)".*/\1/p')
touch "$HOME/$name.begun"
while [ ! -e "$HOME/$name.open" ]; do sleep 0.02; done
echo '{"waited": true}'
`,
	"agents/saga/graph.yaml": `
name: saga
sandbox: full
state: {token: {secret: true}}
start: book
nodes:
  book: {type: script, script: book.sh, compensate: cancel, next: [{when: "initial_prompt == 'ask'", to: ask}, {to: work}]}
  ask: {type: input, question: "Pay?", next: done}
  work: {type: script, script: work.sh, next: done}
  cancel: {type: script, script: cancel.sh}
  done: {type: end}
`,
	"agents/saga/book.sh":   "echo '{\"token\": \"silver key\"}'\n",
	"agents/saga/work.sh":   "touch \"$HOME/work.begun\"; while :; do sleep 0.02; done\n",
	"agents/saga/cancel.sh": `case "$GRAPH_STATE" in *'"writes":{"token":"silver key"}'*) echo '{"note": "canceled the silver key"}' ;; esac` + "\n",
	"agents/inner/graph.yaml": `
name: inner
default_model: builtin:echo
start: own
nodes:
  own:
    type: graph
    with: {p: "{{initial_prompt}}"}
    state: {token: {secret: true}, pin: {secret: true, default: 471147114711}}
    outputs: {left: said}
    start: a
    nodes:
      a: {type: llm, prompt: "sk-inner-{{p}}", state_updates: {token: "{{output}}"}, next: b}
      b: {type: llm, prompt: "got {{token}}", state_updates: {said: "{{output}}"}, next: z}
      z: {type: end}
    next: ask
  ask: {type: approval, question: "Is {{left}} right?", options: [yes, sk-inner-x, got sk-inner-x], default: "{{left}}", on_other: done, routes: {yes: done, sk-inner-x: done, got sk-inner-x: done}, state_updates: {chosen: "{{choice}}"}}
  done: {type: end, output: "{{left}}"}
`,
	"agents/broken/graph.yaml":    "name: broken\nstart: one\nnodes:\n  one: {type: nothing}\n",
	"agents/guide/config.yaml":    "name: guide\nmodel: builtin:echo\ninstructions: Guide through {{place}}.\nvariables:\n  - {name: place, description: where}\n  - {name: pace, description: how fast, default: slow}\nconversation_starters: [Where to?]\n",
	"agents/toolsmith/graph.yaml": "name: toolsmith\nstart: think\nnodes:\n  think: {type: llm, prompt: \"{{initial_prompt}}\", state_updates: {said: \"{{output}}\"}, next: done}\n  done: {type: end, output: \"{{said}}\"}\n",
}

// start starts a server with lines of its own at the end of the configuration.
func start(t *testing.T, lines ...string) *servertest.Server {
	t.Helper()
	files := servertest.Files{"config.yaml": "model: builtin:echo\nclients:\n  - {type: builtin, name: own, script: rules.yaml}\n" + strings.Join(lines, "\n"), "rules.yaml": "default: {reply: by rule}\n"}
	for name, text := range agents {
		files[name] = text
	}
	return servertest.Start(t, files)
}

// people returns the lines of the configuration with keys of subjects who may read and write, and what has
// requests come from one of them.
func people(names ...string) (lines string, as map[string][]string) {
	lines, as = "  auth:\n    keys:\n", make(map[string][]string)
	for i, name := range names {
		key, entry := servertest.Key(name, i+1, "read, write")
		lines += entry
		as[name] = []string{"Authorization", "Bearer " + key}
	}
	return lines, as
}

// want reports an answer with another status.
func want(t *testing.T, a servertest.Answer, status int) servertest.Answer {
	t.Helper()
	if a.Status != status {
		t.Fatalf("status %d, want %d: %s", a.Status, status, a.Body)
	}
	return a
}

// refused reports an answer that is not an error with a status, a code, and parts of its text.
func refused(t *testing.T, a servertest.Answer, status int, code string, parts ...string) {
	t.Helper()
	if a.Status != status || a.Code() != code {
		t.Errorf("%d %s, want %d %s", a.Status, a.Body, status, code)
	}
	for _, part := range parts {
		if !strings.Contains(a.Body, part) {
			t.Errorf("%s does not say %q", a.Body, part)
		}
	}
}

// begin begins a run and returns it.
func begin(t *testing.T, s *servertest.Server, agent, body string, headers ...string) api.Run {
	t.Helper()
	var r api.Run
	a := want(t, s.Post("/v1/agents/"+agent+"/runs", body, headers...), http.StatusCreated)
	if a.JSON(t, &r); a.Header.Get("Location") != "/v1/runs/"+r.ID {
		t.Errorf("the run %s is at %q", r.ID, a.Header.Get("Location"))
	}
	return r
}

// get returns a run.
func get(t *testing.T, s *servertest.Server, id string, headers ...string) api.RunDetail {
	t.Helper()
	var r api.RunDetail
	want(t, s.Get("/v1/runs/"+id, headers...), http.StatusOK).JSON(t, &r)
	return r
}

// answer answers the question of a node, and returns when the run rests.
func answer(t *testing.T, s *servertest.Server, id, node, text string, headers ...string) {
	t.Helper()
	for _, q := range get(t, s, id, headers...).Pending {
		if q.Node == node {
			want(t, s.Post("/v1/runs/"+id+"/answers", fmt.Sprintf("{%q: %q}", q.ID, text), headers...), http.StatusOK)
			rest(t, s, id, headers...)
			return
		}
	}
	t.Fatalf("run %s has no question of %s", id, node)
}

// rest returns a run once it is not at work.
func rest(t *testing.T, s *servertest.Server, id string, headers ...string) api.RunDetail {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) { // which only a watcher could wait for
		if r := get(t, s, id, headers...); !r.Active {
			return r
		}
		if time.Now().After(deadline) {
			t.Fatalf("run %s does not rest", id)
		}
	}
}

// open lets the agent gate go on that was asked name.
func open(t *testing.T, s *servertest.Server, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.Dir, name+".open"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// begun waits until the agent gate is at work that was asked name.
func begun(t *testing.T, s *servertest.Server, name string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) { // it is another process
		if _, err := os.Stat(filepath.Join(s.Dir, name+".begun")); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not at work", name)
		}
	}
}

// frame is an event of a stream.
type frame struct {
	id         int // 0 for one without
	name, data string
}

// frames are the events of a stream.
func frames(t *testing.T, body string) (list []frame) {
	t.Helper()
	for block := range strings.SplitSeq(body, "\n\n") {
		var f frame
		for line := range strings.SplitSeq(block, "\n") {
			field, text, _ := strings.Cut(line, ": ")
			switch field {
			case "id":
				n, err := strconv.Atoi(text)
				if err != nil {
					t.Errorf("the id of an event is %q", text)
				}
				f.id = n
			case "event":
				f.name = text
			case "data":
				f.data += text
			}
		}
		if f.name != "" {
			list = append(list, f)
		}
	}
	return list
}

// numbered reports events whose numbers do not follow each other from first on, and returns the last number.
func numbered(t *testing.T, list []frame, first int) int {
	t.Helper()
	next := first
	for _, f := range list {
		if f.id == 0 {
			continue
		}
		if f.id != next {
			t.Errorf("event %d comes in place of %d", f.id, next)
		}
		next = f.id + 1
	}
	return next - 1
}
