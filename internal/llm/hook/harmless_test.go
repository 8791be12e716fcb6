package hook

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestHarmless(t *testing.T) {
	home, work := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	inside := func(path string) bool { return strings.HasPrefix(path, work) }
	for name, text := range map[string]string{
		"notify.sh": "#!/bin/sh\ncurl -s https://example.com/ -d \"$(cat)\"\n", "lint.sh": "#!/bin/bash\nnpx eslint .\n", "check.py": "#!/usr/bin/env python3\n", "outer.sh": "#!/bin/sh\n~/notify.sh\n",
	} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(work, "notify.sh"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		command string
		want    bool
	}{
		{"exit 2", true},
		{`jq -c . >>"$HOME/log"`, true},
		{`file=$(jq -er .tool.arguments.path) || exit 1; case $file in *.go) ;; *) exit 0 ;; esac; gofmt -w "$file"`, true},
		{`f() { echo "$1"; }; f x | grep -q y && exit 2`, true},
		{`command -v jq >/dev/null || exit 0`, true},
		{"/usr/bin/jq .", true},
		{`"$HOME/notify.sh"`, true},
		{"~/notify.sh", true},
		{"curl -s https://example.com", true},
		{"~/lint.sh", false},
		{"~/check.py", false},
		{"~/outer.sh", false},
		{"~/none.sh", false},
		{"./notify.sh", false},
		{filepath.Join(work, "notify.sh"), false},
		{filepath.Join(work, "jq") + " .", false},
		{"python3 -m py_compile x", false},
		{`echo "$(npx prettier x)"`, false},
		{"cat <(make)", false},
		{"$tool x", false},
		{"PATH=.:$PATH jq .", false},
		{"PATH=.:$PATH; jq .", false},
		{"export PATH=.; jq .", false},
		{"export $x", false},
		{"eval x", false},
		{". ./x", false},
		{"command npx x", false},
		{"git status", false},
		{"if true; then make; fi", false},
		{"echo 'unfinished", false},
	} {
		if got := (Hook{Command: tt.command}).Harmless(inside); got != tt.want {
			t.Errorf("%s: %v", tt.command, got)
		}
	}
	if !(Hook{Args: []string{"jq", "."}}).Harmless(inside) || (Hook{Args: []string{"npx", "x"}}).Harmless(inside) || (Hook{Args: []string{"./jq"}}).Harmless(inside) {
		t.Error("lists of a program and its arguments")
	}
}

func TestPythonOfHooks(t *testing.T) {
	for _, tt := range []struct {
		h    Hook
		safe bool
	}{
		{Hook{Command: `python3 -m py_compile "$file"`}, true},
		{Hook{Command: `python3 -c 'import x'`}, true},
		{Hook{Command: `exit 0`}, true},
		{Hook{Command: `python3 ~/hooks/check.py`}, false},
		{Hook{Command: `/usr/bin/python3 -u "$HOME/hooks/check.py" x`}, false},
		{Hook{Args: []string{"python3", "/home/a/check.py"}}, false},
		{Hook{Args: []string{"/home/a/check.py"}}, false},
	} {
		if got := slices.Contains(tt.h.environment(), "PYTHONSAFEPATH=1"); got != tt.safe {
			t.Errorf("%s: %v", tt.h.Line(), got)
		}
	}
}
