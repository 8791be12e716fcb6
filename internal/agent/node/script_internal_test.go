package node

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"loki/internal/base/value"
	"loki/internal/workflow/graph"
)

// TestStateFile: a state that is too large for the environment is in a file that is readable by its owner only.
func TestStateFile(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Setenv("TMP", tmp)
	large := graph.State{}.With(value.Member{Name: "text", Value: value.Of(strings.Repeat("x", inlineState))})
	env, file, err := stateEnv(nil, large)
	if err != nil {
		t.Fatal(err)
	}
	if len(env) != 1 || env[0] != "GRAPH_STATE_FILE="+file {
		t.Errorf("the environment is %q", env)
	}
	if runtime.GOOS != "windows" {
		for path, want := range map[string]os.FileMode{file: 0o600, filepath.Dir(file): 0o700} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s has mode %v, %v, want %v", path, info.Mode().Perm(), err, want)
			}
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != string(large.AppendJSON(nil)) {
		t.Errorf("the file has %d bytes, %v", len(text), err)
	}
}
