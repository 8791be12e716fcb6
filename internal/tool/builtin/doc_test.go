package builtin_test

import (
	"os"
	"strings"
	"testing"

	"loki/internal/tool"
	"loki/internal/tool/builtin"
	"loki/internal/workflow/graph"
)

// The user document lists every tool, and its graph can be run with them.
func TestDocument(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../../docs/tools.md")
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(builtin.Tools(builtin.Options{})...)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range set.Names() {
		if !strings.Contains(string(data), "\n| `"+name+"` |") {
			t.Errorf("docs/tools.md does not list %s", name)
		}
	}
	_, rest, _ := strings.Cut(string(data), "```yaml\n")
	source, _, closed := strings.Cut(rest, "```")
	if !closed {
		t.Fatal("docs/tools.md has no example")
	}
	g, findings, err := graph.Parse("docs/tools.md", []byte(source))
	if err != nil {
		t.Fatalf("%v\n%v", err, findings)
	}
	env := graph.ValidateEnv{Context: &graph.AgentContext{Functions: set.Names(), Model: func(string) error { return nil }}}
	if findings = append(findings, graph.Validate(g, env)...); len(findings) > 0 {
		t.Errorf("findings in the example: %v", findings)
	}
	for _, n := range g.Nodes {
		if n.LLM == nil {
			continue
		}
		if chosen, err := set.ForNode("housekeeping", n.LLM.Tools); err != nil || chosen.Len() == 0 {
			t.Errorf("node %s: %d tools, %v", n.ID, chosen.Len(), err)
		}
	}
}
