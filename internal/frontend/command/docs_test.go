package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPage: docs/repl.md has every command.
func TestPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "repl.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, commands, _ := strings.Cut(string(page), "\n## Commands\n")
	if len(table()) < 40 {
		t.Fatalf("the table has %d commands", len(table()))
	}
	for _, row := range table() {
		if !strings.Contains(commands, "`"+strings.ReplaceAll(row.Usage(), "|", `\|`)+"`") {
			t.Errorf("%s is not on the page", row.Usage())
		}
	}
}
