package tool_test

import (
	"context"
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/fault/steps/stepstest"
	"loki/internal/base/process"
	"loki/internal/base/process/environ"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/llm/hook"
	"loki/internal/tool"
	"loki/internal/tool/permission"
)

// hooks returns what runs hooks with shell texts, by the kinds in front of them: "before_tool: text".
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

// pathTool returns its argument path, and counts its calls.
type pathTool struct {
	hints tool.Hints
	calls *[]string
}

func (pathTool) Declaration() chat.Tool {
	return chat.Tool{Name: "fake", Description: "A fake.", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)}
}
func (p pathTool) Hints() tool.Hints { return p.hints }
func (p pathTool) Call(_ context.Context, c tool.Call) (tool.Result, error) {
	args, err := tool.Decode[struct{ Path string }](c)
	*p.calls = append(*p.calls, args.Path)
	return tool.Result{Output: "at " + args.Path}, err
}

func TestHooks(t *testing.T) {
	t.Parallel()
	const said = "[Note of the hook h]\nhi"
	for _, tt := range []struct {
		name   string
		hooks  []string
		want   string
		calls  string // paths of the calls made
		failed bool
		warns  string // the beginning of the only warning
	}{
		{name: "silent", hooks: []string{"before_tool: cat >/dev/null", "after_tool: true"}, want: `{"output":"at a"}`, calls: "a"},
		{
			name: "refused", hooks: []string{`before_tool: echo '{"action":"refuse","reason":"not on a Friday"}'`}, failed: true,
			want:  `{"tool_call_error":"fake was not run: the hook h refused it: not on a Friday. Do not try to get around this; do without, or say so to the user."}`,
			warns: "hook h (config.yaml:1) refused the call of fake: not on a Friday",
		},
		{
			name: "refused_by_status", hooks: []string{`before_tool: echo no >&2; exit 2`}, failed: true,
			want:  `{"tool_call_error":"fake was not run: the hook h refused it: no. Do not try to get around this; do without, or say so to the user."}`,
			warns: "hook h (config.yaml:1) refused the call of fake: no",
		},
		{name: "changed", hooks: []string{`before_tool: echo '{"arguments":{"path":"b"}}'`}, want: `{"output":"at b"}`, calls: "b", warns: `hook h (config.yaml:1) changed the arguments of fake to {"path":"b"}`},
		{name: "chain", hooks: []string{`before_tool: echo '{"arguments":{"path":"b"}}'`, `before_tool: grep -q '"path":"b"' && exit 0; exit 2`}, want: `{"output":"at b"}`, calls: "b", warns: `hook h (config.yaml:1) changed`},
		{
			name: "unfit", hooks: []string{`before_tool: echo '{"arguments":{"path":1}}'`}, failed: true,
			want:  `{"tool_call_error":"fake was not run: the hook h refused it: the hook failed, and what it watches over is not done then. Do not try to get around this; do without, or say so to the user."}`,
			warns: `hook h (config.yaml:1) failed: its arguments do not fit: /path: `,
		},
		{
			name: "denied_after_the_change", hooks: []string{`before_tool: echo '{"arguments":{"path":"secret"}}'`}, failed: true,
			want: `{"tool_call_error":"fake was not run: it is not allowed (`, warns: "hook h (config.yaml:1) changed",
		},
		{name: "note", hooks: []string{`before_tool: echo '{"note":"hi"}'`}, want: `{"output":"at a"}` + "\n\n" + said, calls: "a"},
		{name: "late_note", hooks: []string{`after_tool: echo '{"note":"hi"}'`}, want: `{"output":"at a"}` + "\n\n" + said, calls: "a"},
		{name: "result", hooks: []string{`after_tool: grep -q '"result":"{.*at a' && echo '{"result":"hidden"}'`}, want: "hidden", calls: "a", warns: "hook h (config.yaml:1) changed the result of fake"},
		{
			name: "withheld", hooks: []string{`after_tool: echo '{"action":"refuse","reason":"it is private."}'`}, failed: true, calls: "a",
			want: `{"tool_call_error":"fake was run, but its result is withheld: the hook h refused it: it is private."}`, warns: "hook h (config.yaml:1) refused the call of fake",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			subject := pathTool{calls: new([]string)}
			judge, err := permission.New(permission.Options{
				Root:  t.TempDir(),
				Rules: permission.Rules{List: []permission.Rule{{Tool: "fake", Action: permission.Deny, Arguments: []permission.Argument{{Name: "path", Pattern: "secret"}}}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			var events eventtest.Collector
			ctx := event.NewContext(t.Context(), event.NewScope(&events, event.Source{Agent: "a"}, nil))
			text, failed, err := newBox(t, tool.Options{Hooks: hooks(t, tt.hooks...), Judge: judge}, subject).Call(ctx, callFake(`{"path":"a"}`), steps.Steps{})
			if err != nil || failed != tt.failed || text != tt.want && (tt.calls != "" || !strings.HasPrefix(text, tt.want)) {
				t.Errorf("got %s, failed %v, error %v", text, failed, err)
			}
			if got := strings.Join(*subject.calls, " "); got != tt.calls {
				t.Errorf("the calls were %q", got)
			}
			warnings := eventtest.Bodies[event.Warning](&events)
			switch {
			case tt.warns == "" && len(warnings) > 0:
				t.Errorf("warnings %v", warnings)
			case tt.warns != "" && (len(warnings) != 1 || !strings.HasPrefix(warnings[0].Text, tt.warns)):
				t.Errorf("warnings %v", warnings)
			}
		})
	}
}

// TestHooksOfRecordedCalls makes a call three times with one record, as a run does that is resumed: the hooks run once.
func TestHooksOfRecordedCalls(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		hints tool.Hints
		hooks []string
		calls int
	}{
		{"changed", tool.Hints{}, []string{`before_tool: echo x >>"$LOG"; echo '{"arguments":{"path":"b"},"note":"n"}'`, `after_tool: echo y >>"$LOG"; echo '{"result":"r"}'`}, 1},
		{"refused", tool.Hints{}, []string{`before_tool: echo x >>"$LOG"; exit 2`}, 0},
		{"stateful", tool.Hints{Stateful: true}, []string{`before_tool: echo x >>"$LOG"`, `after_tool: echo y >>"$LOG"; echo '{"note":"n"}'`}, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			log := t.TempDir() + "/log"
			for i := range tt.hooks {
				tt.hooks[i] = strings.ReplaceAll(tt.hooks[i], "$LOG", log)
			}
			subject, rec := pathTool{hints: tt.hints, calls: new([]string)}, new(stepstest.Recorder)
			var first string
			for i := range 3 {
				o := tool.Options{Hooks: hooks(t, tt.hooks...)}
				if i == 2 && !tt.hints.Stateful {
					o.Hooks = nil // they were taken out of the configuration
				}
				text, _, err := newBox(t, o, subject).Call(t.Context(), callFake(`{"path":"a"}`), steps.New(rec))
				if err != nil || i > 0 && text != first {
					t.Fatalf("got %s, error %v; first %s", text, err, first)
				}
				first = text
			}
			if len(*subject.calls) != tt.calls {
				t.Errorf("%d calls", len(*subject.calls))
			}
			if ran, _ := os.ReadFile(log); strings.Count(string(ran), "\n") != len(tt.hooks) {
				t.Errorf("the hooks that ran: %q", ran)
			}
		})
	}
}

func TestHookOfAQuestionRefuses(t *testing.T) {
	t.Parallel()
	runner := hooks(t, `question: grep -q '"consent":true' && { echo nothing is erased here >&2; exit 2; }`)
	never := ask.Func(func(context.Context, ask.Question) (string, error) { return "yes", nil })
	text, calls, err := erasing(t, tool.Options{Asker: runner.Asker(never)}, permission.Options{}, 1)
	if err != nil || calls != 0 || text != `{"tool_call_error":"erase was not run: the user was not asked: the hook h refused it: nothing is erased here."}` {
		t.Errorf("got %s, %d calls, error %v", text, calls, err)
	}
	q := ask.Question{Kind: ask.Choice, Text: "Which?"}
	if answer, err := runner.Asker(never).Ask(t.Context(), q); err == nil && answer != "yes" || err != nil && fault.CodeOf(err) != fault.Refused {
		t.Errorf("got %s, %v", answer, err)
	}
}
