package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"loki/internal/agent/cases"
)

// TestShippedCases runs the test cases of all agents that are part of the program, and of the examples.
func TestShippedCases(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the agents' scripts need a POSIX shell")
	}
	for _, pattern := range []string{"../../../assets/agents/*", "../../../examples/*"} {
		dirs, err := filepath.Glob(pattern)
		if err != nil || len(dirs) == 0 {
			t.Fatalf("no agents at %s: %v", pattern, err)
		}
		for _, dir := range dirs {
			if found, _ := filepath.Glob(filepath.Join(dir, "tests", "*"+cases.Suffix)); len(found) == 0 && cases.IsAgent(dir) {
				t.Errorf("%s has no cases in tests/", dir)
			}
		}
	}
	program, err := exec.LookPath("loki")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), program, "--test", "assets/agents", "examples")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "HOME="+home, "LOKI_CONFIG_DIR="+home, "LOKI_STATE_DIR="+home, "LOKI_TRUSTED_DIRS="+root, "GORACE=atexit_sleep_ms=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
