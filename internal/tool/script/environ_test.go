package script_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loki/internal/tool"
	"loki/internal/tool/script"
)

// seen returns the variables that a script finds, of those that a name begins with one of
// prefixes.
func (h home) seen(t *testing.T, name, src string, prefixes ...string) map[string]string {
	t.Helper()
	tools := h.load(t, name, src)
	r, err := h.call(t, tools[0], `{}`)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Stderr)
	}
	found := make(map[string]string)
	for entry := range strings.SplitSeq(r.Output, "\x00") {
		key, v, _ := strings.Cut(entry, "=")
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) }) {
			found[key] = v
		}
	}
	return found
}

const (
	printSh = "# @describe A.\nmain() { env -0 >>\"$LLM_OUTPUT\"; }\n"
	printPy = "import os\ndef run():\n  'A.'\n  return '\\0'.join(f'{k}={v}' for k, v in os.environ.items())\n"
)

func TestEnvironment(t *testing.T) {
	needs(t, ".sh")
	needs(t, ".py")
	h := newHome(t)
	h.o.Environ = []string{"PATH=" + os.Getenv("PATH"), "HOME=/home/x", "LLM_TOOL_DATA_FILE=/etc/passwd", "LOKI_RUN_ID=outer"}
	h.o.Variables = func() (map[string]string, error) { return map[string]string{"db-url": "postgres://x"}, nil }
	for _, tt := range []struct{ file, src string }{{"my-env.sh", printSh}, {"my-env.py", printPy}} {
		t.Run(tt.file, func(t *testing.T) {
			got := h.seen(t, tt.file, tt.src, "LLM_", "CLICOLOR", "FORCE", "LOKI_", "HOME")
			output := got["LLM_OUTPUT"]
			delete(got, "LLM_OUTPUT")
			if !strings.HasPrefix(output, filepath.Join(h.o.Temp, "loki-")) || !strings.Contains(output, "-eval-") {
				t.Errorf("LLM_OUTPUT is %s", output)
			}
			want := map[string]string{
				"LLM_ROOT_DIR": h.dir, "LLM_TOOL_NAME": "my-env", "LLM_TOOL_CACHE_DIR": h.dir + "/cache/my-env",
				"LLM_AGENT_VAR_DB_URL": "postgres://x", "CLICOLOR_FORCE": "1", "FORCE_COLOR": "1", "HOME": "/home/x",
			}
			if strings.HasSuffix(tt.file, ".sh") {
				want["LLM_PROMPT_UTILS_FILE"] = h.o.PromptUtils
			}
			for key := range want {
				if got[key] != want[key] {
					t.Errorf("%s is %q, want %q", key, got[key], want[key])
				}
			}
			if len(got) != len(want) {
				t.Errorf("got %v", got)
			}
		})
	}
	h.o.Environ = append(h.o.Environ, "NO_COLOR=1")
	if got := h.seen(t, "x.sh", printSh, "CLICOLOR", "FORCE"); len(got) > 0 {
		t.Errorf("colours without colour: %v", got)
	}
}

func TestPath(t *testing.T) {
	needs(t, ".sh")
	h := newHome(t)
	h.o.Environ = []string{"PATH=" + os.Getenv("PATH")}
	if got := h.seen(t, "x.sh", printSh, "PATH"); got["PATH"] != os.Getenv("PATH") {
		t.Errorf("without a directory of runners: %s", got["PATH"])
	}
	if err := os.Mkdir(h.o.Bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, want := h.seen(t, "x.sh", printSh, "PATH")["PATH"], h.o.Bin+":"+os.Getenv("PATH"); got != want {
		t.Errorf("with one: %s", got)
	}
}

func TestEnvFile(t *testing.T) {
	needs(t, ".sh")
	needs(t, ".py")
	h := newHome(t)
	h.o.Environ = []string{"PATH=" + os.Getenv("PATH"), "E_THERE=mine", "E_OTHER=o"}
	for name, text := range map[string]string{
		".env":       "# a comment\n\nE_THERE=theirs\nE_PLAIN = a b \nE_QUOTED=\"c = d\"\nE_SINGLE='$x'\nE_SHELL=\"${E_OTHER}-$(echo run)\"\nE_BROKEN=$(\nexport E_EXPORT=e\nE_BOTH=outer\n9=x\nLLM_TOOL_NAME=forged\n",
		"tools/.env": "E_BOTH=inner\n",
	} {
		if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	common := map[string]string{
		"E_THERE": "mine", "E_OTHER": "o", "E_PLAIN": "a b", "E_QUOTED": "c = d", "E_SINGLE": "$x", "E_EXPORT": "e", "E_BOTH": "inner",
	}
	for _, tt := range []struct{ file, src, shell string }{{"x.sh", printSh, "o-run"}, {"x.py", printPy, "${E_OTHER}-$(echo run)"}} {
		t.Run(tt.file, func(t *testing.T) {
			got := h.seen(t, tt.file, tt.src, "E_", "LLM_TOOL_NAME")
			for key, want := range common {
				if got[key] != want {
					t.Errorf("%s is %q, want %q", key, got[key], want)
				}
			}
			if got["E_SHELL"] != tt.shell || got["LLM_TOOL_NAME"] != "x" {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestRunIDs(t *testing.T) {
	needs(t, ".sh")
	h := newHome(t)
	tools := h.load(t, "x.sh", "# @describe A.\nmain() { echo \"$LOKI_RUN_ID $LOKI_IDEMPOTENCY_KEY\" >>\"$LLM_OUTPUT\"; }\n")
	r, err := tools[0].Call(t.Context(), tool.Call{Name: "x", Arguments: []byte(`{}`), RunID: "r1", IdempotencyKey: "r1/2"})
	if err != nil || r.Output != "r1 r1/2\n" {
		t.Errorf("got %q, %v", r.Output, err)
	}
}

func TestCustomRuntime(t *testing.T) {
	needs(t, ".py")
	h := newHome(t)
	fake := filepath.Join(h.dir, "fake")
	if err := os.WriteFile(fake, []byte("#!/bin/sh\nshift $(($# - 3))\necho \"ran $0\" >\"$LLM_OUTPUT\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	var asked []string
	h.o.Look = func(file string) (string, error) {
		asked = append(asked, file)
		if file == "python3.99" {
			return fake, nil
		}
		if file == "python3" { // which reads the script
			return exec.LookPath(file)
		}
		return "", os.ErrNotExist
	}
	for _, line := range []string{"#!/usr/bin/env python3.99", "#! /usr/bin/env -S python3.99 -u -x", "#!python3.99", "#!/nowhere/bin/python3.99"} {
		tools := h.load(t, "x.py", line+"\n"+helPy)
		h.want(t, tools[0], `{"name":"x"}`, "ran "+fake+"\n")
	}
	tools := h.load(t, "x.py", "#!/usr/bin/env python2\n"+helPy)
	if _, err := h.call(t, tools[0], `{"name":"x"}`); err == nil || !strings.Contains(err.Error(), "python2, which the first line of x.py asks for, is not installed") {
		t.Errorf("got %v", err)
	}
	if !slices.Contains(asked, "python3.99") {
		t.Errorf("looked for %v", asked)
	}
}

// TestVirtualEnvironment puts a Python into .venv of the working directory.
func TestVirtualEnvironment(t *testing.T) {
	needs(t, ".py")
	h := newHome(t)
	h.o.Dir = filepath.Join(h.dir, "project")
	bin := filepath.Join(h.o.Dir, ".venv", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "python"), []byte("#!/bin/sh\nprintf 'venv in %s' \"$PWD\" >\"$LLM_OUTPUT\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"", "#!/usr/bin/env python3\n"} {
		tools, err := script.Load(h.put(t, "x.py", line+helPy), h.o)
		if err != nil {
			t.Fatal(err)
		}
		h.want(t, tools[0], `{"name":"x"}`, "venv in "+h.o.Dir)
	}
}
