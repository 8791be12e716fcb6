//go:build unix

package cli

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hangs is a workflow of the form of a digest: a map whose scripts never end, each with
// a child of its own that holds the output open.
var hangs = map[string]string{
	"graph.yaml": `
name: hangs
initial_state: {items: [0, 1, 2]}
start: each
nodes:
  each: {type: map, over: "{{items}}", as: item, branch: hang, output_key: x, collect_into: xs, next: done}
  hang: {type: script, script: hang.sh, timeout: 600}
  done: {type: end, output: never}
`,
	"hang.sh": `
n=$(printf '%s' "$GRAPH_STATE" | sed 's/.*"item":\([0-9]*\).*/\1/')
sh -c 'echo $$ > child'$n'.tmp; mv child'$n'.tmp child'$n'.pid; exec sleep 600' &
echo $$ > script$n.tmp; mv script$n.tmp script$n.pid
trap '' INT # a script may ignore the signal
wait
`,
}

// TestInterrupt sends the signal of Ctrl-C: the program ends with status 130, and
// nothing it started is left.
func TestInterrupt(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) { testInterrupt(t, sig) })
	}
}

func testInterrupt(t *testing.T, sig os.Signal) {
	dir := t.TempDir()
	agent := filepath.Join(dir, "agent")
	for name, text := range hangs {
		write(t, filepath.Join(agent, name), text)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "loki", "-a", agent, "x")
	cmd.Dir = dir
	cmd.Env = emptyHome(dir)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []string
	for _, name := range []string{"script0", "script1", "script2", "child0", "child1", "child2"} {
		pids = append(pids, waitFor(ctx, t, filepath.Join(dir, name+".pid"), &stderr))
	}
	begin := time.Now()
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the status is looked at next
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("it took %s to end", took)
	}
	if got := cmd.ProcessState.ExitCode(); got != 130 {
		t.Errorf("exit status %d", got)
	}
	for _, pid := range pids {
		if err := waitGone(pid, time.Now().Add(time.Second)); err != nil {
			t.Error(err)
		}
	}
	if stdout.Len() > 0 {
		t.Errorf("printed %q", stdout.String())
	}
	if t.Failed() {
		t.Log(stderr.String())
	}
}

// waitFor returns the content of a file that a process is about to write.
func waitFor(ctx context.Context, t *testing.T, path string, stderr *bytes.Buffer) string {
	t.Helper()
	for {
		data, err := os.ReadFile(path)
		if err == nil {
			return strings.TrimSpace(string(data))
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s did not appear: %s", path, stderr)
		case <-time.After(5 * time.Millisecond): // nothing tells when a file appears
		}
	}
}
