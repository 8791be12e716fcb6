package node_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/base/fault"
	"loki/internal/workflow/graph"
)

func TestScriptMerges(t *testing.T) {
	w := world{environ: []string{"GREETING=hello"}, scripts: map[string]string{"a.sh": `
printf '{"greeting": "%s", "count": 2, "list": [1, {"a": null}], "_next": "done", "state": %s}' "$GREETING" "$GRAPH_STATE"
`}}
	out, _, err := w.drive(t.Context(), t, `
initial_state: {count: 1, kept: true}
start: a
nodes:
  a: {type: script, script: a.sh, state_updates: {twice: "{{count}}{{count}}", typed: "{{count}}"}, next: other}
  other: {type: end, output: other}
  done: {type: end, output: done}
`)
	if err != nil || out.Output != "done" {
		t.Fatalf("output %q, %v", out.Output, err)
	}
	for key, want := range map[string]string{
		"greeting": `"hello"`, "count": "2", "list": `[1,{"a":null}]`, "kept": "true", "twice": `"22"`, "typed": "2", "_next": "",
		"state": `{"count":1,"kept":true}`,
	} {
		if got := state(out, key); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
}

func TestScriptFailures(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		fields       string
		end          string // output of the run
		parts        []string
		code         fault.Code // of a failed run
	}{
		{name: "to_next", script: "exit 3", fields: "next: done", end: "done", parts: []string{"script a.sh", "3"}},
		{name: "to_fallback", script: "echo why >&2; exit 3", fields: "next: done, fallback: rescued", end: "rescued", parts: []string{"why"}},
		{name: "to_nothing", script: "exit 3", fields: "fallback: rescued", end: "rescued", parts: []string{"script a.sh"}},
		{name: "alone", script: "exit 3", code: fault.Tool, parts: []string{"script a.sh"}},
		{name: "half", script: `printf '{"a":'`, fields: "next: done", end: "done", parts: []string{"valid JSON", "begins with"}},
		{name: "two", script: `echo '{} {}'`, fields: "next: done", end: "done", parts: []string{"valid JSON"}},
		{name: "silent", script: "exit 0", fields: "next: done", end: "done", parts: []string{"no output"}},
		{name: "array", script: "echo '[]'", fields: "next: done", end: "done", parts: []string{"JSON object"}},
		{name: "nowhere_to_go", script: "echo '{}'", code: fault.Failure, parts: []string{"_next", "no next"}},
		{name: "to_unknown_node", script: `echo '{"_next": "nobody"}'`, code: fault.Failure, parts: []string{"nobody"}},
		{name: "to_unknown_node_in_spite_of_a_fallback", script: `echo '{"_next": "nobody"}'`, fields: "next: done, fallback: rescued", code: fault.Failure, parts: []string{"nobody"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := world{scripts: map[string]string{"a.sh": tt.script}}
			fields := tt.fields
			if fields != "" {
				fields = ", " + fields
			}
			out, _, err := w.drive(t.Context(), t, `
settings: {on_failure: continue}
start: a
nodes:
  a: {type: script, script: a.sh`+fields+`}
  done: {type: end, output: done}
  rescued: {type: end, output: rescued}
`)
			text := state(out, graph.LastErrorKey)
			if tt.code != "" {
				if fault.CodeOf(err) != tt.code {
					t.Fatalf("error %v with code %s, want %s", err, fault.CodeOf(err), tt.code)
				}
				text = err.Error()
			} else if err != nil || out.Output != tt.end || out.Failures != 1 {
				t.Errorf("outcome %+v, %v", out, err)
			}
			for _, part := range tt.parts {
				if !strings.Contains(text, part) {
					t.Errorf("%s lacks %q", text, part)
				}
			}
		})
	}
}

// TestLargeStateGoesThroughAFile: beyond the size of an environment variable the state is
// in a file, which is gone when the script is.
func TestLargeStateGoesThroughAFile(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	w := world{scripts: map[string]string{"a.sh": `
printf '{"inline": "%s", "size": %s}' "${GRAPH_STATE+set}" "$(wc -c < "$GRAPH_STATE_FILE")"
`}}
	out, _, err := w.drive(t.Context(), t, `
initial_state: {text: "`+strings.Repeat("x", 40<<10)+`"}
start: a
nodes:
  a: {type: script, script: a.sh, next: done}
  done: {type: end, output: "{{inline}} {{size}}"}
`)
	if want := " 40971"; err != nil || out.Output != want {
		t.Errorf("output %q, %v, want %q", out.Output, err, want)
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "*state*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestScriptOutputMayBeginWithAByteOrderMark: some programs write one before their JSON.
func TestScriptOutputMayBeginWithAByteOrderMark(t *testing.T) {
	w := world{scripts: map[string]string{"a.sh": `printf '\357\273\277{"a": 1}\n'`}}
	out, _, err := w.drive(t.Context(), t, `
start: a
nodes:
  a: {type: script, script: a.sh, next: done}
  done: {type: end, output: "{{a}}"}
`)
	if err != nil || out.Output != "1" || out.Failures > 0 {
		t.Errorf("output %q, %d failures, %v", out.Output, out.Failures, err)
	}
}

func TestEndIsLenientAndHasUpdates(t *testing.T) {
	out, _, err := world{}.drive(t.Context(), t, `
initial_state: {a: 1}
start: done
nodes:
  done: {type: end, output: "{{a}} {{b}} {{nothing}}!", state_updates: {b: "{{a}}"}}
`)
	if err != nil || out.Output != "1 1 !" || state(out, "b") != "1" {
		t.Errorf("output %q, state %s, %v", out.Output, state(out, "b"), err)
	}
}
