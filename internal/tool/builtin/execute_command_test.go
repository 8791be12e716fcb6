//go:build unix

package builtin_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"loki/internal/base/ask"
	"loki/internal/base/fault/steps"
	"loki/internal/base/process/environ"
	"loki/internal/llm/chat"
	"loki/internal/tool"
	"loki/internal/tool/builtin"
	"loki/internal/tool/tooltest"
)

// newBox returns a box of the built-in tools.
func newBox(t testing.TB, o builtin.Options, b tool.Options) *tool.Box {
	t.Helper()
	set, err := tool.NewSet(builtin.Tools(o)...)
	if err != nil {
		t.Fatal(err)
	}
	b.Tools = set
	return tool.NewBox(b)
}

// command is a call of execute_command.
func command(t testing.TB, text string) chat.ToolCall {
	t.Helper()
	args, err := json.Marshal(map[string]string{"command": text})
	if err != nil {
		t.Fatal(err)
	}
	return chat.ToolCall{ID: "1", Name: "execute_command", Arguments: string(args)}
}

func TestExecuteCommandConformance(t *testing.T) {
	tooltest.Run(t, tooltest.Case{
		New: func(t testing.TB) tool.Tool {
			return named(t, builtin.Options{Child: environ.Child{Environ: testEnviron()}}, "execute_command")
		},
		Good: []string{`{"command": "echo good"}`, `{"command": "true"}`},
		Bad:  []string{`{"command": 1}`, `{"command": " "}`, `{"command": null}`, `{"command": "exit 3"}`, `{"command": "echo \u0000"}`},
		Slow: `{"command": "sleep 600"}`,
	})
}

func TestExecuteCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, tt := range []struct {
		name, command string
		environ       []string
		want          string
		failed        bool
	}{
		{name: "text", command: "echo hello", want: `{"output":"hello\n"}`},
		{name: "json", command: `echo '{"a": 1}'`, want: `{"a":1}`},
		{name: "silence", command: "true", want: ""},
		{name: "shell_syntax", command: "for i in a b; do printf $i | tr a-z A-Z; done", want: `{"output":"AB"}`},
		{name: "lines", command: "printf a\nprintf b", want: `{"output":"ab"}`},
		{name: "stderr", command: "echo careful >&2; printf x", want: `{"output":"x","stderr":"careful"}`},
		{name: "failure", command: "echo half; echo why >&2; exit 3", want: `{"tool_call_error":"Tool call 'execute_command' exited with code 3","output":"half\n","stderr":"why"}`, failed: true},
		{name: "signal", command: "kill -9 $$", want: `{"tool_call_error":"Tool call 'execute_command' was ended by SIGKILL"}`, failed: true},
		{name: "no_input", command: "cat", want: ""},
		{name: "no_terminal", command: "(: </dev/tty) 2>/dev/null && echo yes || printf no", want: `{"output":"no"}`},
		{name: "directory", command: "pwd -P | xargs basename", want: `{"output":"` + filepath.Base(dir) + `\n"}`},
		{name: "environment", command: `printf "$GREETING"`, environ: []string{"GREETING=hi"}, want: `{"output":"hi"}`},
		{name: "no_forced_colours", command: `printf "${FORCE_COLOR-unset}${CLICOLOR_FORCE-unset}"`, environ: []string{"FORCE_COLOR=1", "CLICOLOR_FORCE=1"}, want: `{"output":"unsetunset"}`},
		{name: "ids", command: `printf "$LOKI_RUN_ID $LOKI_IDEMPOTENCY_KEY"`, want: `{"output":"run-1 run-1/tool/1/1/call"}`},
		{name: "no_shell", command: "true", environ: []string{"LOKI_SHELL=/no/such/shell"}, want: `{"tool_call_error":"start shell: no such file: /no/such/shell"}`, failed: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			box := newBox(t, builtin.Options{Child: environ.Child{Environ: testEnviron(tt.environ...)}, Dir: dir}, tool.Options{AutoConfirm: true, Run: "run-1"})
			text, failed, err := box.Call(t.Context(), command(t, tt.command), steps.Steps{}.At("tool/1/1"))
			if err != nil || failed != tt.failed || text != tt.want {
				t.Errorf("got %s, failed %v, error %v; want %s", text, failed, err, tt.want)
			}
		})
	}
}

func TestIdsOfAnOuterRunAreNotPassedOn(t *testing.T) {
	t.Parallel()
	box := newBox(t, builtin.Options{Child: environ.Child{Environ: testEnviron("LOKI_RUN_ID=outer", "LOKI_IDEMPOTENCY_KEY=outer")}}, tool.Options{AutoConfirm: true})
	text, _, err := box.Call(t.Context(), command(t, `printf "${LOKI_RUN_ID-unset}${LOKI_IDEMPOTENCY_KEY-unset}"`), steps.Steps{})
	if err != nil || text != `{"output":"unsetunset"}` {
		t.Errorf("got %s, %v", text, err)
	}
}

func TestExecuteCommandIsKilledInTime(t *testing.T) {
	t.Parallel()
	box := newBox(t, builtin.Options{Child: environ.Child{Environ: testEnviron()}, CommandTimeout: 200 * time.Millisecond}, tool.Options{AutoConfirm: true})
	began := time.Now()
	text, failed, err := box.Call(t.Context(), command(t, "printf half; sleep 600 & sleep 600"), steps.Steps{})
	if want := `{"tool_call_error":"execute_command timed out after 200ms","output":"half"}`; err != nil || !failed || text != want {
		t.Errorf("got %s, failed %v, error %v; want %s", text, failed, err, want)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestExecuteCommandPrintsTooMuch(t *testing.T) {
	t.Parallel()
	box := newBox(t, builtin.Options{Child: environ.Child{Environ: testEnviron()}}, tool.Options{AutoConfirm: true})
	text, failed, err := box.Call(t.Context(), command(t, "yes"), steps.Steps{})
	if err != nil || !failed || len(text) > 2*tool.DefaultMaxOutput || !strings.Contains(text, "printed more than 16 MiB") || !strings.Contains(text, "bytes left out here") {
		t.Errorf("%d bytes, failed %v, error %v: %.200s", len(text), failed, err, text)
	}
}

func TestConsent(t *testing.T) {
	t.Parallel()
	marker := filepath.Join(t.TempDir(), "marker")
	for _, tt := range []struct {
		name, command, question string
		yes                     bool
	}{
		{"yes", "echo x >" + marker, "Run this command with sh?\n\n    echo x >" + marker, true},
		{"no", "echo x >" + marker, "Run this command with sh?\n\n    echo x >" + marker, false},
		{"all_lines", "echo a\nrm -rf b\x1b[A", "Run this command with sh?\n\n    1  echo a\n    2  rm -rf b\\u001b[A", false},
		{"empty_lines", "echo a" + strings.Repeat("\n", 81) + "rm b\n\n\nls", "Run this command of 85 lines with sh?\n\n     1  echo a\n        (80 empty lines)\n    82  rm b\n    83\n    84\n    85  ls", false},
		{"nothing_to_run", " ", "", true},
	} {
		var asked string
		box := newBox(t, builtin.Options{Child: environ.Child{Environ: testEnviron()}}, tool.Options{Asker: ask.Func(func(_ context.Context, q ask.Question) (string, error) {
			asked = q.Text
			return yesOrNo(tt.yes), nil
		})})
		text, failed, err := box.Call(t.Context(), command(t, tt.command), steps.Steps{})
		if err != nil || asked != tt.question || failed == (tt.name == "yes") {
			t.Errorf("%s: got %s, failed %v, error %v, asked %q", tt.name, text, failed, err, asked)
		}
		_, err = os.Stat(marker)
		if ran := err == nil; ran != (tt.name == "yes") {
			t.Errorf("%s: the command was run: %v", tt.name, ran)
		}
		os.Remove(marker)
	}
}
