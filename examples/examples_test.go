// Package examples is tested here: the agents below this directory are complete, valid
// and told about as they are.
package examples

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/workflow/graph"
)

func TestExamples(t *testing.T) {
	files, err := filepath.Glob("*/" + graph.FileName)
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		dir := filepath.Dir(file)
		t.Run(dir, func(t *testing.T) {
			g, warnings, err := graph.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			exists := func(path string) bool { info, err := os.Stat(path); return err == nil && info.Mode().IsRegular() }
			for _, f := range append(warnings, graph.Validate(g, graph.ValidateEnv{Dir: dir, FileExists: exists})...) {
				t.Errorf("%s %s: %v", f.Severity, f.Rule, f)
			}
			if g.Name != dir {
				t.Errorf("the graph is called %q", g.Name)
			}
			readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
			if err != nil {
				t.Fatal(err)
			}
			if command := "go run ./cmd/loki -a ./examples/" + dir + " "; !strings.Contains(string(readme), command) {
				t.Errorf("the README does not say how to run it: %s", command)
			}
			for _, n := range g.Nodes {
				if !strings.Contains(string(readme), n.ID) {
					t.Errorf("the README does not mention node %s", n.ID)
				}
			}
		})
	}
}
