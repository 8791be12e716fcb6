package render_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"loki/internal/base/fault"
	"loki/internal/frontend/render"
	"loki/internal/workflow/graph"
)

func TestError(t *testing.T) {
	notFound := &fs.PathError{Op: "open", Path: "a.yaml", Err: syscall.ENOENT}
	provider := fault.New(fault.Provider, "model openai:gpt-5: the API key was refused").WithHint("set OPENAI_API_KEY")
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{name: "nil"},
		{name: "plain", err: errors.New("broken"), want: "Error: broken\n"},
		{name: "message_and_hint", err: provider, want: "Error: model openai:gpt-5: the API key was refused\nhint: set OPENAI_API_KEY\n"},
		{
			name: "one_cause", err: fault.Wrap(fault.Config, errors.New("line one\nline two"), "cannot read a.yaml"),
			want: "Error: cannot read a.yaml: line one\n    line two\n",
		},
		{
			name: "chain", err: fault.Wrap(fault.Provider, fmt.Errorf("at node %q: %w", "draft", fmt.Errorf("attempt 2:\nagain: %w", provider)), "graph execution failed for agent writer"),
			want: "Error: graph execution failed for agent writer: at node \"draft\": attempt 2: model openai:gpt-5: the API key was refused\n    again\nhint: set OPENAI_API_KEY\n",
		},
		{
			name: "node_error", err: fault.Wrap(fault.Failure, &graph.NodeError{Node: "a", Err: errors.New("broken")}, "graph execution failed for agent writer"),
			want: "Error: graph execution failed for agent writer: at node \"a\": broken\n",
		},
		{name: "foreign_errors_stay_whole", err: fmt.Errorf("reading: %w", notFound), want: "Error: reading: open a.yaml: no such file or directory\n"},
		{name: "wrapper_without_words", err: fault.Wrap(fault.Config, notFound, ""), want: "Error: open a.yaml: no such file or directory\n"},
		{name: "cause_inside_the_text", err: fmt.Errorf("got %w, gave up", errors.New("a refusal")), want: "Error: got a refusal, gave up\n"},
		{name: "several_causes", err: errors.Join(errors.New("first"), errors.New("second")), want: "Error: first\nsecond\n"},
		{
			name: "two_wrapped", err: fmt.Errorf("both: %w; %w", errors.New("first"), errors.New("second")),
			want: "Error: both: first; second\n",
		},
		{name: "long_hint", err: fault.New(fault.Config, "no model").WithHint("one of:\nloki -m x\nloki --help"), want: "Error: no model\nhint: one of:\n      loki -m x\n      loki --help\n"},
		{name: "escapes_are_dropped", err: errors.New("a\x1b[2Jb\x07c\rd"), want: "Error: abcd\n"},
		{name: "interrupted", err: fmt.Errorf("at node %q: %w", "a", context.Canceled), want: "Canceled.\n"},
		{
			name: "interrupted_with_hint", err: fault.Wrap(fault.Canceled, context.Canceled, "stopped").WithHint("loki --resume 7"),
			want: "Canceled.\nhint: loki --resume 7\n",
		},
		{
			name: "suspended", err: fault.Wrap(fault.Suspended, errors.New("no user can be asked here"), "node %q asks", "a").WithHint("loki --resume 7"),
			want: "Suspended: node \"a\" asks: no user can be asked here\nhint: loki --resume 7\n",
		},
		{name: "empty", err: errors.New(""), want: "Error: unknown error\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			render.Error(&out, tt.err, false, 0)
			if got := out.String(); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			var colored bytes.Buffer
			render.Error(&colored, tt.err, true, 0)
			if got := escapes.ReplaceAllString(colored.String(), ""); got != tt.want {
				t.Errorf("in color the text is\n%s\nwant\n%s", got, tt.want)
			}
			if tt.err != nil && !strings.HasPrefix(colored.String(), "\x1b[3") {
				t.Errorf("in color there is none: %q", colored.String())
			}
		})
	}
}

// TestErrorIsWrapped: lines are broken at words, and never within an option.
func TestErrorIsWrapped(t *testing.T) {
	var out bytes.Buffer
	render.Error(&out, fault.Wrap(fault.Config, errors.New("the file has no key and no --model was given"), "cannot read a.yaml").WithHint("set the key of the client, or choose another model with --model NAME"), false, 30)
	want := "Error: cannot read a.yaml: the\nfile has no key and no --model\nwas given\nhint: set the key of the\n      client, or choose\n      another model with\n      --model NAME\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, want := render.Warning("one two three four five six", false, 20), "warning: one two\nthree four five six"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestErrorIsRed(t *testing.T) {
	var out bytes.Buffer
	render.Error(&out, fault.Wrap(fault.Tool, errors.New("b\nd"), "a").WithHint("c"), true, 0)
	want := "\x1b[31mError: a: b\x1b[0m\n\x1b[31m    d\x1b[0m\n\x1b[36mhint:\x1b[0m c\n"
	if got := out.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestErrorWithDiff: the diff in an error has the colors of a diff.
func TestErrorWithDiff(t *testing.T) {
	var b strings.Builder
	err := fault.New(fault.Failure, "it is not the one\n--- recorded\n+++ made\n@@ -1 +1 @@\n-a\n+b")
	render.Error(&b, err, true, 80)
	if got := b.String(); !strings.Contains(got, "\x1b[31m-a\x1b[0m\n\x1b[32m+b\x1b[0m\n") {
		t.Errorf("%q", got)
	}
	b.Reset()
	render.Error(&b, err, false, 80)
	if got := b.String(); strings.Contains(got, "\x1b") {
		t.Errorf("without color: %q", got)
	}
}

func TestWarning(t *testing.T) {
	if got, want := render.Warning("two\nlines\x1b[5m\n", false, 0), "warning: two\nlines"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := render.Warning("two\nlines", true, 0), "\x1b[33mwarning: two\x1b[0m\n\x1b[33mlines\x1b[0m"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFindings(t *testing.T) {
	findings := graph.Findings{
		{Severity: graph.SeverityError, Rule: graph.RuleJoin, Node: "fetch", Pos: graph.Pos{Line: 12, Column: 5}, Message: "next names no node: fatch", Hint: "did you mean fetch?"},
		{Severity: graph.SeverityWarning, Rule: graph.RulePlaceholder, Pos: graph.Pos{Line: 3}, Message: "two\nlines\x1b[2J"},
		{Severity: graph.SeverityError, Rule: graph.RuleZeroLimit, Message: "without a place"},
	}
	var plain, colored bytes.Buffer
	render.Findings(&plain, "graph.yaml", findings, false)
	want := "graph.yaml:12:5: error: fetch: next names no node: fatch; did you mean fetch? [join]\n" +
		"graph.yaml:3:1: warning: two lines [placeholder]\n" +
		"graph.yaml: error: without a place [zero-limit]\n"
	if plain.String() != want {
		t.Errorf("got\n%s\nwant\n%s", plain.String(), want)
	}
	render.Findings(&colored, "graph.yaml", findings, true)
	if got := escapes.ReplaceAllString(colored.String(), ""); got != want {
		t.Errorf("in color the text is\n%s\nwant\n%s", got, want)
	}
	for _, part := range []string{"\x1b[31merror:\x1b[0m fetch", "\x1b[33mwarning:\x1b[0m two"} {
		if !strings.Contains(colored.String(), part) {
			t.Errorf("in color %q is missing from %q", part, colored.String())
		}
	}
}

func TestColorEnabled(t *testing.T) {
	for _, tt := range []struct {
		name     string
		env      map[string]string
		terminal bool
		want     bool
	}{
		{name: "terminal", terminal: true, want: true},
		{name: "no_terminal"},
		{name: "no_color", env: map[string]string{"NO_COLOR": "1"}, terminal: true},
		{name: "no_color_any_value", env: map[string]string{"NO_COLOR": "false"}, terminal: true},
		{name: "no_color_empty_counts_as_unset", env: map[string]string{"NO_COLOR": ""}, terminal: true, want: true},
		{name: "no_color_wins", env: map[string]string{"NO_COLOR": "1", "FORCE_COLOR": "1", "CLICOLOR_FORCE": "1"}, terminal: true},
		{name: "clicolor_force", env: map[string]string{"CLICOLOR_FORCE": "1"}, want: true},
		{name: "clicolor_force_0", env: map[string]string{"CLICOLOR_FORCE": "0"}},
		{name: "force_color", env: map[string]string{"FORCE_COLOR": "3"}, want: true},
		{name: "force_color_over_dumb", env: map[string]string{"FORCE_COLOR": "1", "TERM": "dumb"}, terminal: true, want: true},
		{name: "force_color_0_turns_off", env: map[string]string{"FORCE_COLOR": "0"}, terminal: true},
		{name: "force_color_false_turns_off", env: map[string]string{"FORCE_COLOR": "False"}, terminal: true},
		{name: "clicolor_0", env: map[string]string{"CLICOLOR": "0"}, terminal: true},
		{name: "dumb", env: map[string]string{"TERM": "dumb"}, terminal: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			getenv := func(name string) string { return tt.env[name] }
			if got := render.ColorEnabled(getenv, tt.terminal); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestIsTerminal(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if render.IsTerminal(f, func(string) string { return "xterm" }) {
		t.Error("the null device is taken for a terminal")
	}
	if columns, rows := render.Size(f)(); columns != 0 || rows != 0 {
		t.Errorf("the null device has %d by %d characters", columns, rows)
	}
}
