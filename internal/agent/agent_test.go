package agent_test

import (
	"os"
	"path/filepath"
	"testing"

	"loki/internal/agent"
)

// An agent is another one if its definition is, also if that has the same length.
func TestUnchanged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("name: helper\ndescription: one\n")
	var l agent.Library
	of, _, err := l.Load(agent.Ref{Name: "helper", Dir: dir, Arg: dir})
	if err != nil {
		t.Fatal(err)
	}
	if !l.Unchanged(of) {
		t.Error("the agent has changed, though its definition has not")
	}
	write("name: helper\ndescription: two\n")
	if l.Unchanged(of) {
		t.Error("the agent has not changed, though its definition has")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if l.Unchanged(of) {
		t.Error("the agent has not changed, though it is gone")
	}
}
