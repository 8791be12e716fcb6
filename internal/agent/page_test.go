package agent

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPageOfSettings: docs/settings.md marks the settings that agents have, too, with an A.
func TestPageOfSettings(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| [^|]+ \\| ([A-Z ]+) \\|").FindAllStringSubmatch(string(page), -1) {
		has := false
		for _, s := range settings {
			has = has || s.key == row[1]
		}
		if marked := slices.Contains(strings.Fields(row[2]), "A"); has != marked {
			t.Errorf("%s: an agent has it: %v, the page says %v", row[1], has, marked)
		}
	}
}

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
