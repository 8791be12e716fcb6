package script_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loki/internal/base/process/npmtest"
	"loki/internal/tool/script"
)

// byHand runs a program of the directory of runners, without the variables of a call.
func (h home) byHand(t *testing.T, env []string, program string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(h.o.Bin, program), args...)
	cmd.Dir = h.dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

const optionsSh = `#!/usr/bin/env bash
# @describe Prints.
# @option --some_text!
# @flag --be-loud
# @option --tags*
# @env LLM_OUTPUT=/dev/stdout
main() { printf '%s|%s|%s|%s|%s' "$argc_some_text" "${argc_be_loud:-}" "${argc_tags[*]:-}" "$LLM_TOOL_NAME" "${FROM_FILE:-}" >>"$LLM_OUTPUT"; }
eval "$(loki --argc-eval "$0" "$@")"
`

func TestBuild(t *testing.T) {
	needs(t, ".sh")
	needs(t, ".py")
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("runners of bash tools need jq")
	}
	h := newHome(t)
	if err := os.WriteFile(filepath.Join(h.dir, ".env"), []byte("FROM_FILE=\"f $((1 + 1))\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	files := []string{
		h.put(t, "get-it.sh", optionsSh),
		h.put(t, "Py-Tool.py", "import os\nfrom typing import Optional\ndef run(a: Optional[str], b=2):\n  'A.'\n  return [a, b, os.environ['LLM_TOOL_NAME']]\n"),
	}
	written, err := script.Build(files, h.o)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(h.o.Bin, "Py-Tool"), filepath.Join(h.o.Bin, "get-it"), files[0]}
	if !slices.Equal(written, want) {
		t.Errorf("wrote %v", written)
	}
	if written, err := script.Build(files, h.o); err != nil || len(written) > 0 {
		t.Errorf("the second time: wrote %v, %v", written, err)
	}
	for _, tt := range []struct {
		name, program string
		env, args     []string
		want          string
		fails         bool
	}{
		{name: "bash", program: "get-it", args: []string{`{"some_text":"a 'b' $x\n=\"c\"","be_loud":true,"tags":["x y","z"]}`}, want: "a 'b' $x\n=\"c\"|1|x y z|get-it|f 2"},
		{name: "bash_fails", program: "get-it", args: []string{`{}`}, want: "some_text", fails: true},
		{name: "bash_usage", program: "get-it", want: "usage: get-it JSON", fails: true},
		{name: "bash_no_json", program: "get-it", args: []string{"{"}, want: "not a JSON object", fails: true},
		{name: "script_itself", program: "../tools/get-it.sh", env: []string{"LLM_TOOL_NAME=n"}, args: []string{"--some_text", "x"}, want: "x|||n|"},
		{name: "python", program: "Py-Tool", args: []string{`{"b":"x"}`}, want: "[\n  null,\n  \"x\",\n  \"Py-Tool\"\n]\n"},
		{name: "python_usage", program: "Py-Tool", want: "usage: Py-Tool JSON", fails: true},
		{name: "python_no_json", program: "Py-Tool", args: []string{"{"}, want: "not valid JSON", fails: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := h.byHand(t, tt.env, tt.program, tt.args...)
			if (err != nil) != tt.fails || !tt.fails && got != tt.want || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	// The file that a call leaves its arguments and its result in.
	data, output := filepath.Join(h.dir, "data.json"), filepath.Join(h.dir, "output")
	if err := os.WriteFile(data, []byte(`{"a":"from the file"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := h.byHand(t, []string{"LLM_TOOL_DATA_FILE=" + data, "LLM_OUTPUT=" + output}, "Py-Tool"); err != nil || out != "" {
		t.Errorf("%s, %v", out, err)
	}
	if text, err := os.ReadFile(output); err != nil || !strings.Contains(string(text), "from the file") {
		t.Errorf("%s, %v", text, err)
	}
}

func TestBuildAgent(t *testing.T) {
	needs(t, ".sh")
	needs(t, ".py")
	for _, tt := range []struct{ file, src string }{
		{"tools.sh", "# @cmd A.\n# @option --x!\nshow-it() { echo \"$argc_x $LLM_AGENT_NAME $LLM_AGENT_FUNC\" >>\"$LLM_OUTPUT\"; }\n# @cmd B.\nother() { :; }\n"},
		{"tools.py", "import os\ndef show_It(x):\n  'A.'\n  return x + ' ' + os.environ['LLM_AGENT_NAME'] + ' ' + os.environ['LLM_AGENT_FUNC']\n"},
	} {
		t.Run(tt.file, func(t *testing.T) {
			h := newHome(t)
			h.o.Agent = &script.Agent{Name: "helper"}
			if _, err := script.Build([]string{h.put(t, tt.file, tt.src)}, h.o); err != nil {
				t.Fatal(err)
			}
			got, err := h.byHand(t, nil, "helper", "show_it", `{"x":"a"}`)
			if err != nil || !strings.HasPrefix(got, "a helper show") {
				t.Errorf("got %q, %v", got, err)
			}
			if got, err := h.byHand(t, nil, "helper", "nothing", `{}`); err == nil || !strings.Contains(got, "there is no function nothing") {
				t.Errorf("got %q, %v", got, err)
			}
			if got, err := h.byHand(t, nil, "helper"); err == nil || !strings.Contains(got, "usage: helper FUNCTION JSON") {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestBuildTypeScript(t *testing.T) {
	needs(t, ".ts")
	modules := npmtest.Install(t, "testdata/node")
	h := newHome(t)
	if err := os.Symlink(modules, filepath.Join(h.dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.dir, ".env"), []byte("FROM_FILE=\"f\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := h.put(t, "x.ts", "/** A. */ export function run(a: string | null, b = 2) { return { a, b, f: process.env.FROM_FILE, n: process.env.LLM_TOOL_NAME } }\n")
	if _, err := script.Build([]string{file}, h.o); err != nil {
		t.Fatal(err)
	}
	got, err := h.byHand(t, nil, "x", `{"b":3}`)
	if want := "{\n  \"a\": null,\n  \"b\": 3,\n  \"f\": \"f\",\n  \"n\": \"x\"\n}\n"; err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := h.byHand(t, nil, "x"); err == nil || got != "usage: x JSON\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestBuildCleans looks after what else is in the directory of runners.
func TestBuildCleans(t *testing.T) {
	h := newHome(t)
	a, b := h.put(t, "a.py", helPy), h.put(t, "b.ts", helTs)
	if _, err := script.Build([]string{a, b}, h.o); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(h.o.Bin, "mine")
	if err := os.WriteFile(own, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	bad := h.put(t, "c.sh", "main() { :; }\n")
	_, err := script.Build([]string{bad, a}, h.o)
	if err == nil || !strings.Contains(err.Error(), "c.sh") {
		t.Errorf("got %v", err)
	}
	if text, err := os.ReadFile(bad); err != nil || string(text) != "main() { :; }\n" {
		t.Errorf("a script with a mistake was changed: %s, %v", text, err)
	}
	entries, err := os.ReadDir(h.o.Bin)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if got := strings.Join(left, " "); got != "a mine" {
		t.Errorf("left: %s", got)
	}
}
