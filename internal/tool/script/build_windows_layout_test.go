package script

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBuildForWindows(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x.py")
	if err := os.WriteFile(file, []byte("#!/usr/bin/env -S uv run\ndef run():\n 'A.'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := buildFor("windows", []string{file}, Options{Bin: filepath.Join(dir, "bin")}); err != nil {
		t.Fatal(err)
	}
	cmd, err := os.ReadFile(filepath.Join(dir, "bin", "x.cmd"))
	if want := "uv run \"%~dp0run-x.py\" %*\r\n"; err != nil || !strings.HasSuffix(string(cmd), want) {
		t.Errorf("got %s, %v", cmd, err)
	}
	// Both are recognised as made here, and go when the script has gone.
	if _, err := buildFor("windows", nil, Options{Bin: filepath.Join(dir, "bin")}); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "bin")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
