package agent

import (
	"os"
	"strings"
	"testing"
)

// TestPage: docs/agents.md has every key, and its examples are definitions.
func TestPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range settings {
		if !strings.Contains(string(page), "`"+s.key+"`") {
			t.Errorf("%s is not documented", s.key)
		}
	}
	blocks := strings.Split(string(page), "```yaml\n")[1:]
	if len(blocks) < 4 {
		t.Fatalf("only %d examples", len(blocks))
	}
	for _, block := range blocks {
		text, _, _ := strings.Cut(block, "```")
		if !strings.Contains(text, "name:") {
			text = "name: example\n" + text
		}
		if _, findings, err := Parse("docs/agents.md", []byte(text)); err != nil || len(findings) > 0 {
			t.Errorf("%v %v in\n%s", err, findings, text)
		}
	}
}
