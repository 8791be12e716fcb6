//go:build unix

package cli

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/agent/workspace/trust"
	"loki/internal/base/process/sandbox"
)

// strange is a directory with an agent that came with it: its script leaves a file at the level write, which it gets
// only if it is trusted. The result runs the program with other arguments, without a terminal.
func strange(t *testing.T) (dir string, loki func(args ...string) string) {
	dir = t.TempDir()
	write(t, filepath.Join(dir, "evil", "graph.yaml"), "name: evil\nstart: work\nnodes:\n"+
		"  work: {type: script, script: work.sh, sandbox: write, next: done}\n  done: {type: end, output: \"made: {{made}}\"}\n")
	write(t, filepath.Join(dir, "evil", "work.sh"), "if touch made 2>/dev/null; then made=yes; else made=no; fi\necho \"{\\\"made\\\": \\\"$made\\\"}\"\n")
	return dir, func(args ...string) string {
		cmd := exec.Command("loki", args...)
		cmd.Dir, cmd.Env = dir, emptyHome(dir, "LOKI_TRUSTED_DIRS=")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("loki %q: %v: %s", args, err, out)
		}
		return string(out)
	}
}

// TestTrustAsks runs an agent that came with a directory at a terminal: the question shows what it wants, Enter alone
// answers nothing, and the answer holds for the next time unless the directory has changed.
func TestTrustAsks(t *testing.T) {
	if !sandbox.New(sandbox.Options{Workspace: t.TempDir()}).Support().Files {
		t.Skip("there is no sandbox, so that each start of the script is asked about")
	}
	t.Parallel()
	dir, loki := strange(t)
	run := func() *terminal {
		cmd := exec.Command("loki", "-a", "./evil", "x")
		cmd.Dir, cmd.Env = dir, emptyHome(dir, "TERM=dumb", "LOKI_TRUSTED_DIRS=")
		return newTerminal(t, cmd)
	}

	term := run()
	term.wait("The agent evil came with the directory", "It has 2 files with code or instructions.", "Beyond reading the workspace it wants to", "run work.sh at level write", trust.QuestionEnd, "Number: ")
	term.send("\r")
	term.send("run it restricted\r")
	term.wait("made: no")
	term.end()

	term = run() // a no is not kept
	term.wait(trust.QuestionEnd, "Number: ")
	term.send("trust it\r")
	term.wait("made: yes")
	term.end()

	term = run()
	term.wait("made: yes")
	term.end()

	// Another process trusts, while the user thinks: what holds is the record. What changes meanwhile is not what the user saw.
	write(t, filepath.Join(dir, "evil", "more.sh"), "")
	term = run()
	term.wait("You have trusted it before, and 1 file changed since", "new more.sh", trust.QuestionEnd, "Number: ")
	if out := loki("--trust", "./evil", "--yes"); !strings.Contains(out, "trusted: ") {
		t.Errorf("printed %s", out)
	}
	term.send("run it restricted\r")
	term.wait("made: yes")
	term.end()

	loki("--untrust", "./evil")
	term = run()
	term.wait(trust.QuestionEnd, "Number: ")
	write(t, filepath.Join(dir, "evil", "more.sh"), "# after the question\n")
	term.send("trust it\r")
	term.wait("made: no")
	term.end()
	if out := loki("--list-trusted"); !strings.Contains(out, "changed") {
		t.Errorf("printed %s", out)
	}
}
