//go:build unix

package builtin_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/base/fault/steps"
	"loki/internal/base/fault/steps/stepstest"
	"loki/internal/base/process/environ"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
	models "loki/internal/llm/provider/builtin"
	"loki/internal/tool"
	"loki/internal/tool/builtin"
)

// rules play a model that calls a tool in two turns and answers in the third. The first
// turn has two calls, one of them with arguments that need repair.
const rules = `rules:
  - match: {turn: 1}
    tool_calls:
      - {name: execute_command, arguments: {command: "echo first >>log; echo one"}}
      - {name: execute_command.sh, arguments: '{"command": "exit 4",}'}
  - match: {turn: 2, tool_result: exited with code 4}
    tool_calls:
      - {name: execute_command, arguments: {command: "echo second >>log; echo two >&2; printf three"}}
  - match: {turn: 3, tool_result: '{"output":"three","stderr":"two"}'}
    reply: All done.
`

// scripted is the only model there is.
type scripted struct{ provider *models.Provider }

func (s scripted) ChatModel(context.Context, string) (engine.Model, error) {
	return engine.Model{ID: "builtin:script", Name: models.Script, Provider: s.provider, SupportsTools: true}, nil
}

// world is a directory that commands run in, and the record of a run.
type world struct {
	dir string
	rec *stepstest.Recorder
}

func newWorld(t *testing.T) world {
	t.Helper()
	w := world{t.TempDir(), new(stepstest.Recorder)}
	if err := os.WriteFile(filepath.Join(w.dir, "rules.yaml"), []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

// answer runs the tool loop as a new process would.
func (w world) answer(t *testing.T, o tool.Options) (engine.Reply, error) {
	t.Helper()
	e, err := engine.New(engine.Options{Models: scripted{models.New(models.Options{ScriptFile: filepath.Join(w.dir, "rules.yaml")})}})
	if err != nil {
		t.Fatal(err)
	}
	o.Run, o.AutoConfirm = "run-1", true
	box := newBox(t, builtin.Options{Child: environ.Child{Environ: testEnviron()}, Dir: w.dir}, o)
	rc := &engine.RequestContext{Steps: steps.New(w.rec), Events: event.Scope{}}
	return e.Run(t.Context(), rc, engine.Request{Messages: []chat.Message{chat.Text(chat.User, "Go.")}, Tools: box})
}

// log is what the commands wrote, in one line.
func (w world) log(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(data)), " ")
}

func TestToolLoop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	reply, err := w.answer(t, tool.Options{})
	if err != nil || reply.Text != "All done." {
		t.Fatalf("got %q, %v", reply.Text, err)
	}
	var results []string
	for _, m := range reply.Messages {
		if m.Role == chat.ToolRole {
			results = append(results, m.Text())
		}
	}
	want := []string{
		`{"output":"one\n"}`,
		`{"tool_call_error":"Tool call 'execute_command' exited with code 4"}`,
		`{"output":"three","stderr":"two"}`,
	}
	if strings.Join(results, "\n") != strings.Join(want, "\n") {
		t.Errorf("results:\n%s\nwant:\n%s", strings.Join(results, "\n"), strings.Join(want, "\n"))
	}

	before := w.rec.Keys()
	again, err := w.answer(t, tool.Options{})
	if err != nil || again.Text != reply.Text || w.log(t) != "first second" {
		t.Errorf("replayed: %q, %v, log %q", again.Text, err, w.log(t))
	}
	if len(before) == 0 || len(w.rec.Keys()) != len(before) {
		t.Errorf("the replay recorded something: %d steps before, %d after", len(before), len(w.rec.Keys()))
	}
}

func TestToolLoopGoesOnInTheMiddle(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		policy tool.Policy
		log    string
	}{
		{"retry", tool.Retry, "first second second"},
		{"skip", tool.Skip, "first second"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.rec.Lose = "tool/2/1/call"
			if _, err := w.answer(t, tool.Options{}); !errors.Is(err, stepstest.ErrDied) {
				t.Fatalf("error %v, want that of the recorder", err)
			}
			w.rec.Lose = ""
			reply, err := w.answer(t, tool.Options{Uncertain: tt.policy})
			if log := w.log(t); log != tt.log {
				t.Errorf("log %q, want %q", log, tt.log)
			}
			if tt.policy == tool.Skip {
				// No rule answers this result, so the loop ends with what the model was told.
				last := reply.Messages[len(reply.Messages)-1]
				if err == nil || !last.Failed || !strings.Contains(last.Text(), "unknown whether it did its work") {
					t.Errorf("error %v, last message %+v", err, last)
				}
				return
			}
			if err != nil || reply.Text != "All done." {
				t.Errorf("got %q, %v", reply.Text, err)
			}
		})
	}
}

func BenchmarkExecuteCommand(b *testing.B) {
	box := newBox(b, builtin.Options{Child: environ.Child{Environ: testEnviron()}}, tool.Options{AutoConfirm: true})
	call := command(b, "true")
	for b.Loop() {
		if _, failed, err := box.Call(b.Context(), call, steps.Steps{}); failed || err != nil {
			b.Fatal(err)
		}
	}
}
