package graph_test

import (
	"strings"
	"testing"

	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/draw"
)

func TestMapTerms(t *testing.T) {
	for _, tt := range []struct{ fields, want string }{
		{"", ""},
		{", on_error: skip, min_success: 80%, batch: 5, concurrency: 3", "batch: 5, concurrency: 3, on_error: skip, min_success: 80%"},
		{`, item_if: "item.size > 2", enough: "len(results) >= 2"`, "item_if: item.size > 2, enough: len(results) >= 2"},
	} {
		g, _, err := graph.Parse("graph.yaml", []byte(`
name: terms
start: each
initial_state: {items: []}
nodes:
  each: {type: map, over: "{{items}}", as: item, branch: one, collect_into: all, next: done`+tt.fields+`}
  one: {type: llm, prompt: "{{item}}"}
  done: {type: end}
`))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(g.Node("each").Map.Terms(), ", "); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
		shown := "each (map)"
		if tt.want != "" {
			shown = "each (map, " + tt.want + ")"
		}
		if text := draw.Text(g, 200, 0); !strings.Contains(text, shown) {
			t.Errorf("the drawing does not have %q:\n%s", shown, text)
		}
	}
}
