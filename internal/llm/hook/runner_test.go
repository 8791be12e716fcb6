package hook_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"loki/internal/base/process"
	"loki/internal/base/process/environ"
	"loki/internal/base/process/sandbox"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/llm/hook"
)

// options are those of hooks whose commands are texts for sh.
func options(t testing.TB, hooks ...hook.Hook) hook.Options {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the hooks are texts for sh")
	}
	for i := range hooks {
		h := &hooks[i]
		if h.Kind == "" {
			h.Kind = hook.BeforeTool
		}
		if h.Name == "" {
			h.Name = "h"
		}
		if h.Timeout == 0 {
			h.Timeout = time.Minute
		}
		if h.OnFailure == "" {
			h.OnFailure = hook.Continue
		}
		h.Where = "config.yaml:7"
	}
	return hook.Options{Hooks: hooks, Shell: process.Shell{Path: "/bin/sh", Name: "sh", Flag: "-c"}, Child: environ.Child{Environ: os.Environ()}}
}

// call is the event before a call of fs_write.
func call() hook.Event {
	return hook.Event{Kind: hook.BeforeTool, ID: "1", Tool: &hook.ToolCall{Name: "fs_write", Arguments: json.RawMessage(`{"path":"a"}`)}}
}

// run runs hooks before a call and returns the warnings, too.
func run(t testing.TB, o hook.Options, e hook.Event) (hook.Decision, string) {
	t.Helper()
	var events eventtest.Collector
	ctx := event.NewContext(t.Context(), event.NewScope(&events, event.Source{Run: "r1", Agent: "coder", Node: "fix", Depth: 1}, nil))
	d, err := hook.New(o).Run(ctx, e, nil)
	if err != nil {
		t.Fatal(err)
	}
	var warnings []string
	for _, w := range eventtest.Bodies[event.Warning](&events) {
		warnings = append(warnings, w.Text)
	}
	return d, strings.Join(warnings, "\n")
}

// TestHostileHooks runs hooks that fail in every way there is. With on_failure: refuse each of them refuses.
func TestHostileHooks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, command, want string }{
		{"status", "exit 3", "sh failed with exit status 3"},
		{"signal", "kill -9 $$", "sh was ended by SIGKILL"},
		{"flood", "while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done", "printed more than"},
		{"flood_of_errors", "head -c 3000000 /dev/zero >&2; exit 1", "sh failed with exit status 1"},
		{"hang", "sleep 300 & sleep 300", "timed out"},
		{"invalid", "echo nonsense", "its answer is not JSON"},
		{"huge", `printf '{"note": "'; head -c 2000000 /dev/zero | tr '\0' x; echo '"}'`, "printed more than"},
		{"deep", `head -c 900000 /dev/zero | tr '\0' '['`, "its answer is not JSON"},
		{"other_tool", `echo '{"tool": {"name": "execute_command"}, "arguments": {}}'`, `its answer has the member "tool"`},
		{"twice", `echo '{"action": "refuse"} {"action": "allow"}'`, "its answer is not a JSON object"},
		{"missing", "/does/not/exist", "sh failed with exit status 127"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			timeout := time.Minute
			if tt.name == "hang" {
				timeout = 200 * time.Millisecond
			}
			d, warnings := run(t, options(t, hook.Hook{Command: tt.command, Timeout: timeout}), call())
			if d.Refused() || d.Notes != nil || d.Arguments != nil {
				t.Errorf("got %+v", d)
			}
			if !strings.HasPrefix(warnings, "hook h (config.yaml:7) failed: ") || !strings.Contains(warnings, tt.want) || !strings.HasSuffix(warnings, "; continuing without it") || len(warnings) > 600 {
				t.Errorf("the warnings are %q", warnings)
			}
			if d, _ := run(t, options(t, hook.Hook{Command: tt.command, Timeout: timeout, OnFailure: hook.Refuse}), call()); !d.Refused() {
				t.Error("it does not refuse")
			}
		})
	}
}

func TestHookThatDoesNotRead(t *testing.T) {
	t.Parallel()
	e := call()
	e.Tool.Arguments = json.RawMessage(`{"text":"` + strings.Repeat("x", 5<<20) + `"}`)
	if d, warnings := run(t, options(t, hook.Hook{Command: `echo '{"note": "n"}'`}), e); warnings != "" || len(d.Notes) != 1 {
		t.Errorf("got %+v, %q", d, warnings)
	}
}

func TestEventOfAHook(t *testing.T) {
	t.Parallel()
	o := options(t, hook.Hook{Name: "tell", Command: `read -r line; printf '{"note": "%s"}' "$(printf '%s' "$LOKI_HOOK $line" | base64 | tr -d '\n')"`})
	o.Seal = func(text string) string { return strings.ReplaceAll(text, "hunter2", "***PASSWORD***") }
	e := call()
	e.Tool.Arguments = json.RawMessage(`{"text":"<hunter2>"}`)
	var events eventtest.Collector
	ctx := event.NewContext(t.Context(), event.NewScope(&events, event.Source{Run: "r1", Agent: "coder", Node: "fix", Depth: 1}, nil))
	d, err := hook.New(o).In("work").Run(ctx, e, nil)
	if err != nil || len(d.Notes) != 1 {
		t.Fatalf("got %+v, %v", d, err)
	}
	var note []byte
	if err := json.Unmarshal([]byte(`"`+d.Notes[0].Text+`"`), &note); err != nil {
		t.Fatal(err)
	}
	want := `tell {"kind":"before_tool","hook":"tell","id":"1","run":"r1","session":"work","agent":"coder","depth":1,"node":"fix","tool":{"name":"fs_write","arguments":{"text":"<***PASSWORD***>"}}}`
	if string(note) != want {
		t.Errorf("got %s", note)
	}
}

func TestSecretsComeBack(t *testing.T) {
	t.Parallel()
	o := options(t, hook.Hook{Command: `echo '{"arguments": {"text": "***PASSWORD***"}, "note": "***PASSWORD***"}'`})
	o.Seal = func(text string) string { return strings.ReplaceAll(text, "hunter2", "***PASSWORD***") }
	o.Unseal = func(text, sent string) string {
		if !strings.Contains(sent, "***PASSWORD***") {
			t.Errorf("sent is %s", sent)
		}
		return strings.ReplaceAll(text, "***PASSWORD***", "hunter2")
	}
	e := call()
	e.Tool.Arguments = json.RawMessage(`{"text":"hunter2"}`)
	d, _ := run(t, o, e)
	if string(d.Arguments) != `{"text": "hunter2"}` || d.Notes[0].Text != "***PASSWORD***" {
		t.Errorf("got %s, %v", d.Arguments, d.Notes)
	}
}

func TestHooksInOrder(t *testing.T) {
	t.Parallel()
	d, warnings := run(t, options(
		t,
		hook.Hook{Name: "a", Command: `echo '{"arguments": {"path": "b"}, "note": "one"}'`},
		hook.Hook{Name: "other", Match: "fs_cat", Command: "exit 2"},
		hook.Hook{Name: "b", Match: "*_w*e", Command: `grep -q '"path":"b"' && echo '{"action": "refuse", "reason": "b is mine", "note": "two"}'`},
		hook.Hook{Name: "c", Command: `echo '{"note": "three"}'`},
	), call())
	if d.By != "b" || d.Reason != "b is mine" || d.Arguments != nil || d.Text() != "[Note of the hook a]\none\n\n[Note of the hook b]\ntwo" {
		t.Errorf("got %+v", d)
	}
	want := "hook a (config.yaml:7) changed the arguments of fs_write to {\"path\": \"b\"}\nhook b (config.yaml:7) refused the call of fs_write: b is mine"
	if warnings != want {
		t.Errorf("the warnings are %s", warnings)
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"", "x", true},
		{"x", "x", true},
		{"x", "xy", false},
		{"*", "", true},
		{"*", "a/b", true},
		{"fs_*", "fs_write", true},
		{"fs_*", "fs", false},
		{"*_write", "fs_write", true},
		{"a*b*c", "aXbYc", true},
		{"a*b*c", "acb", false},
		{"a*a", "a", false},
		{"openai:*", "openai:org/model", true},
		{"[a]", "a", false},
	} {
		marker := filepath.Join(t.TempDir(), "ran")
		e := call()
		e.Tool.Name = tt.name
		run(t, options(t, hook.Hook{Match: tt.pattern, Args: []string{"touch", marker}}), e)
		if _, err := os.Stat(marker); (err == nil) != tt.want {
			t.Errorf("%q matches %q: %v", tt.pattern, tt.name, !tt.want)
		}
	}
}

func TestCanceledHook(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	started := filepath.Join(t.TempDir(), "started")
	if err := exec.Command("mkfifo", started).Run(); err != nil {
		t.Skip(err)
	}
	o := options(t, hook.Hook{Command: "echo >" + started + "; sleep 300 | sleep 300"})
	done := make(chan error, 1)
	go func() {
		_, err := hook.New(o).Run(ctx, call(), nil)
		done <- err
	}()
	if _, err := os.ReadFile(started); err != nil { // waits for the hook
		t.Error(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestConfinedHook(t *testing.T) {
	t.Parallel()
	o := options(t, hook.Hook{Command: "true"}, hook.Hook{Command: "echo never", Level: sandbox.Write, OnFailure: hook.Refuse})
	var asked []sandbox.Level
	o.Confine = func(_ context.Context, h hook.Hook) (process.Confinement, error) {
		asked = append(asked, h.Level)
		return nil, errors.New("nothing holds it here")
	}
	d, warnings := run(t, o, call())
	if !d.Refused() || !slices.Equal(asked, []sandbox.Level{sandbox.Write}) || !strings.Contains(warnings, "nothing holds it here") {
		t.Errorf("got %+v, asked about %v, %s", d, asked, warnings)
	}
}

func TestNoHooks(t *testing.T) {
	if hook.New(hook.Options{}) != nil {
		t.Error("a runner of nothing is not nil")
	}
	var r *hook.Runner
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		if r.Has(hook.BeforeTool) || r.In("x") != nil {
			t.Error("nil has hooks")
		}
		if _, err := r.Run(ctx, hook.Event{Kind: hook.BeforeTool}, nil); err != nil {
			t.Error(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkNoHooks(b *testing.B) {
	var r *hook.Runner
	b.ReportAllocs()
	for b.Loop() {
		if r.Has(hook.BeforeTool) {
			b.Fatal("nil has hooks")
		}
	}
}

func BenchmarkHook(b *testing.B) {
	r := hook.New(options(b, hook.Hook{Args: []string{"/bin/true"}}))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Run(b.Context(), call(), nil); err != nil {
			b.Fatal(err)
		}
	}
}
