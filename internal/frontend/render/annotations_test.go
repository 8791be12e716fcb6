package render_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/frontend/render"
	"loki/internal/workflow/graph"
)

var annotated = graph.Findings{
	{
		Severity: graph.SeverityError, Rule: graph.RuleMissingRoute, Node: "ask", Path: "nodes.ask.routes", Pos: graph.Pos{Line: 12, Column: 5},
		Message: "50%, or: \"ä\"\r\nnothing\x1b[2J", Hint: "add it",
	},
	{Severity: graph.SeverityWarning, Rule: graph.RuleItems, Path: "nodes.a", Pos: graph.Pos{Line: 3}, Message: "m"},
	{Severity: graph.SeverityError, Rule: graph.RuleMissingRoute, Message: "without a place"},
}

func TestGitHub(t *testing.T) {
	var b strings.Builder
	if err := render.GitHub(&b, "a:b, 5%/graph.yaml", annotated); err != nil {
		t.Fatal(err)
	}
	want := "::error file=a%3Ab%2C 5%25/graph.yaml,line=12,col=5,title=missing-route::ask: 50%25, or: \"ä\"%0Anothing; add it\n" +
		"::warning file=a%3Ab%2C 5%25/graph.yaml,line=3,col=1,title=items::m\n" +
		"::error file=a%3Ab%2C 5%25/graph.yaml,title=missing-route::without a place\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestSARIF(t *testing.T) {
	var b strings.Builder
	for _, path := range []string{"a:b, 5%/graph.yaml", "/home/a b/graph.yaml"} {
		if err := render.SARIF(&b, path, annotated, "1.2.3"); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join("testdata", "findings.sarif")
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestPlace(t *testing.T) {
	dir := t.TempDir()
	for file, want := range map[string]string{
		filepath.Join(dir, "a", "graph.yaml"):       "a/graph.yaml",
		filepath.Join(dir, "..", "b", "graph.yaml"): filepath.ToSlash(filepath.Join(filepath.Dir(dir), "b", "graph.yaml")),
	} {
		if got := render.Place(dir, file); got != want {
			t.Errorf("%s is %s, want %s", file, got, want)
		}
	}
}
