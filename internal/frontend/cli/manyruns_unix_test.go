//go:build unix

package cli

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"loki/internal/base/text/sample"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/sqlite"
)

// TestResumeMany: one command resumes 10,000 runs that failed, each once. By default there are fewer of them.
func TestResumeMany(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	agent := filepath.Join(dir, "agent")
	write(t, filepath.Join(agent, "graph.yaml"), "name: agent\nsettings: {on_failure: fail}\nstart: ask\nnodes:\n  ask: {type: llm, prompt: \"{{initial_prompt}}\", state_updates: {answer: \"{{output}}\"}, next: end}\n  end: {type: end, output: \"{{answer}}\"}\n")
	rules := filepath.Join(dir, "rules.yaml")
	write(t, rules, "rules:\n  - error: {kind: invalid, message: not today}\n")
	write(t, filepath.Join(dir, "home", "config", "config.yaml"), "model: builtin:script\nclients: [{type: builtin, script: "+rules+"}]\n")
	loki := func(ctx context.Context, args ...string) (string, string, error) {
		var out, errs bytes.Buffer
		cmd := exec.CommandContext(ctx, "loki", args...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &errs
		cmd.Env = append(os.Environ(), "HOME="+filepath.Join(dir, "home"), "LOKI_CONFIG_DIR="+filepath.Join(dir, "home", "config"), "LOKI_STATE_DIR="+filepath.Join(dir, "state"), "LOKI_TRUSTED_DIRS="+dir)
		err := cmd.Run()
		return out.String(), errs.String(), err
	}
	if _, errs, err := loki(t.Context(), "-q", "-a", "./agent", "hello"); err == nil || !strings.Contains(errs, "not today") {
		t.Fatal(errs, err)
	}
	n := 10_000 / sample.Step(40)
	store, err := sqlite.Open(filepath.Join(dir, "state", "runs.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := store.Runs(t.Context(), run.Query{})
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	info, err := store.Info(t.Context(), list[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	start, err := store.Checkpoint(t.Context(), info.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range n - 1 {
		j, err := store.Create(t.Context(), info, start)
		if err == nil {
			err = j.End(t.Context(), run.Ending{Status: run.Failed, Error: info.Error, Code: info.Code})
		}
		if err == nil {
			err = j.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, rules, "rules:\n  - reply: hello to you\n")
	begin := time.Now()
	out, errs, err := loki(t.Context(), "--resume", "--all", "failed", "-y", "--jobs", "8")
	t.Logf("%d runs in %v", n, time.Since(begin))
	if err != nil || strings.Count(out, " done\n") != n {
		t.Errorf("%d of %d are done: %v, %.2000s %.2000s", strings.Count(out, " done\n"), n, err, out, errs)
	}
	if out, errs, err = loki(t.Context(), "--resume", "--all", "-y"); err != nil || out != "" {
		t.Errorf("%q %q %v", out, errs, err)
	}
}
