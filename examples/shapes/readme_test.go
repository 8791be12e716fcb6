package shapes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/workflow/graph"
)

// TestReadme compares the table of README.md with the comments at the top of the graphs.
func TestReadme(t *testing.T) {
	table := "| shape | shows |\n|---|---|\n"
	for _, s := range shapes(t) {
		table += fmt.Sprintf("| [%s](%s) | %s |\n", s.name, s.name, comment(t, s))
	}
	src, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(src), "-update -->\n")
	old, after, closed := strings.Cut(rest, "<!-- end -->")
	if !found || !closed {
		t.Fatal("README.md has no marks of the table")
	}
	if *update {
		if err := os.WriteFile("README.md", []byte(before+"-update -->\n"+table+"<!-- end -->"+after), 0o666); err != nil {
			t.Fatal(err)
		}
	} else if old != table {
		t.Errorf("the table of README.md is not that of the graphs, which -update writes:\n%s", table)
	}
}

// comment returns the comment at the top of a shape's graph.
func comment(t *testing.T, s shape) string {
	t.Helper()
	src, err := os.ReadFile(filepath.Join(s.name, graph.FileName))
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for line := range strings.Lines(string(src)) {
		text, found := strings.CutPrefix(line, "#")
		if !found {
			break
		}
		if strings.HasPrefix(text, " yaml-language-server:") {
			continue
		}
		words = append(words, strings.Fields(text)...)
	}
	if len(words) == 0 {
		t.Errorf("%s does not begin with a comment that says what it shows", s.name)
	}
	return strings.Join(words, " ")
}
