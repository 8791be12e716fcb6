package engine

import (
	"context"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/fault/steps/stepstest"
	"loki/internal/base/process"
	"loki/internal/base/process/environ"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/llm/hook"
	"loki/internal/llm/provider"
)

// hooks returns what runs hooks with texts for sh, by the kinds in front of them: "before_model: text".
func hooks(t *testing.T, entries ...string) *hook.Runner {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the hooks are texts for sh")
	}
	o := hook.Options{Shell: process.Shell{Path: "/bin/sh", Name: "sh", Flag: "-c"}, Child: environ.Child{Environ: os.Environ()}}
	for _, entry := range entries {
		kind, command, _ := strings.Cut(entry, ": ")
		o.Hooks = append(o.Hooks, hook.Hook{Kind: hook.Kind(kind), Name: "h", Command: command, Timeout: time.Minute, OnFailure: hook.Refuse, Where: "config.yaml:1"})
	}
	return hook.New(o)
}

// sent returns the texts of the messages of a request.
func sent(messages []chat.Message) string {
	var texts []string
	for _, m := range messages {
		texts = append(texts, string(m.Role)+": "+m.Text())
	}
	return strings.Join(texts, "\n")
}

// ask asks a fake with hooks and returns the reply and the warnings.
func askWith(t *testing.T, f *fake, h *hook.Runner, st steps.Steps) (Reply, []event.Warning, error) {
	t.Helper()
	e, err := New(Options{Models: one(Model{ID: "c:m", Name: "m", Provider: f, SupportsTools: true})})
	if err != nil {
		t.Fatal(err)
	}
	var events eventtest.Collector
	rc := RequestContext{Model: "c:m", Hooks: h, Steps: st, Events: event.NewScope(&events, event.Source{}, nil)}
	reply, err := e.Run(t.Context(), &rc, Request{Tools: quiet{}, Messages: []chat.Message{chat.Text(chat.System, "be kind"), chat.Text(chat.User, "hello")}})
	return reply, eventtest.Bodies[event.Warning](&events), err
}

// quiet is a tool that says ok.
type quiet struct{}

func (quiet) Declarations() []chat.Tool { return []chat.Tool{{Name: "t"}} }
func (quiet) Call(context.Context, chat.ToolCall, steps.Steps) (string, bool, error) {
	return "ok", false, nil
}

func TestHookRefusesARequest(t *testing.T) {
	t.Parallel()
	f := &fake{replies: [][]provider.Chunk{says("hi")}}
	h := hooks(t, `before_model: grep -q '"id":"c:m","turn":1,"tools":\["t"\],"messages":\[{"role":"system","text":"be kind"},{"role":"user","text":"hello"}\]' && { echo no hellos >&2; exit 2; }`)
	reply, _, err := askWith(t, f, h, steps.Steps{})
	if fault.CodeOf(err) != fault.Refused || err.Error() != "model c:m was not asked: the hook h refused it: no hellos." || len(f.requests) != 0 || reply.Text != "" {
		t.Errorf("got %q, %v, %d requests", reply.Text, err, len(f.requests))
	}
}

func TestHookRefusesAReply(t *testing.T) {
	t.Parallel()
	f := &fake{replies: [][]provider.Chunk{says("a secret")}}
	h := hooks(t, `after_model: grep -q '"reply":{"role":"assistant","text":"a secret"}' && echo '{"action":"refuse","reason":"it has a secret"}'`)
	rec := new(stepstest.Recorder)
	for range 2 { // the second time it is on record
		reply, _, err := askWith(t, f, h, steps.New(rec))
		if fault.CodeOf(err) != fault.Refused || err.Error() != "the reply of model c:m is not used: the hook h refused it: it has a secret." || reply.Text != "" || reply.Messages != nil || reply.Usage.OutputTokens != 1 {
			t.Errorf("got %+v, %v", reply, err)
		}
	}
	if len(f.requests) != 1 {
		t.Errorf("%d requests", len(f.requests))
	}
	for _, r := range rec.Records {
		if strings.Contains(string(r.Result), "a secret\"") {
			t.Errorf("the record has the reply: %s", r.Result)
		}
	}
}

func TestNotesOfHooks(t *testing.T) {
	t.Parallel()
	f := &fake{replies: [][]provider.Chunk{calls("", chat.ToolCall{ID: "1", Name: "t", Arguments: "{}"}), says("done")}}
	h := hooks(t, `before_model: echo '{"note":"it is Monday"}'`, `after_model: echo '{"note":"well done"}'`)
	reply, warnings, err := askWith(t, f, h, steps.Steps{})
	if err != nil || reply.Text != "done" || len(f.requests) != 2 {
		t.Fatalf("got %q, %v, %d requests", reply.Text, err, len(f.requests))
	}
	const before, after = "\n\n[Note of the hook h]\nit is Monday", "\n\n[Note of the hook h]\nwell done"
	if got, want := sent(f.requests[0].Messages), "system: be kind\nuser: hello"+before; got != want {
		t.Errorf("the first request has %s", got)
	}
	if got, want := sent(f.requests[1].Messages), "system: be kind\nuser: hello\nassistant: \ntool: ok"+after+before; got != want {
		t.Errorf("the second request has %s", got)
	}
	if strings.Contains(sent(reply.Messages), "Monday") {
		t.Errorf("the note of one request stays in the conversation: %s", sent(reply.Messages))
	}
	if len(warnings) != 1 || warnings[0].Text != strings.TrimPrefix(after, "\n\n") {
		t.Errorf("warnings %v", warnings)
	}
}

func TestDryRunHasNoHooks(t *testing.T) {
	t.Parallel()
	e, err := New(Options{Models: one(Model{ID: "c:m", Provider: &fake{replies: [][]provider.Chunk{says("hi")}}}), ShowRequests: true})
	if err != nil {
		t.Fatal(err)
	}
	rc := RequestContext{Model: "c:m", Hooks: hooks(t, "before_model: exit 2")}
	if reply, err := e.Run(t.Context(), &rc, Request{Messages: []chat.Message{chat.Text(chat.User, "hello")}}); err != nil || reply.Text != "hi" {
		t.Errorf("got %q, %v", reply.Text, err)
	}
}
