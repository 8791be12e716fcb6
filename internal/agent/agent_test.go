package agent_test

import (
	"os"
	"path/filepath"
	"testing"

	"loki/internal/agent"
)

// An agent that is looked at again is read again if its definition is another one, also one of
// the same length.
func TestAgain(t *testing.T) {
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
	again, err := l.Again(of)
	if err != nil || again.Definition != of.Definition {
		t.Errorf("the same definition was read again, or %v", err)
	}
	write("name: helper\ndescription: two\n")
	if again, err = l.Again(of); err != nil || again.InForce.Description != "two" {
		t.Errorf("got %+v, %v, want the new description", again.InForce, err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err = l.Again(of); err == nil {
		t.Error("the agent is gone, and that is not an error")
	}
}
