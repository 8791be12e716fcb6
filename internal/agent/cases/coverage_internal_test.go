package cases

import (
	"strings"
	"testing"

	"loki/internal/workflow/graph"
)

// TestCoverCompensations makes sure that a case in which a node is undone covers the edge to its compensation.
func TestCoverCompensations(t *testing.T) {
	g, _, err := graph.Parse("graph.yaml", []byte("name: g\nstart: a\nnodes:\n  a: {type: script, script: a.sh, compensate: u, next: z}\n  u: {type: script, script: u.sh}\n  z: {type: end}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, started, missing string }{
		{"undone", `{"type":"node_started","agent":"g","node":"u","undoes":"a"}`, ""},
		{"finished", `{"type":"node_started","agent":"g","node":"z"}`, "a -> u"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			trace, err := readTrace([]byte(`{"type":"node_started","agent":"g","node":"a"}`+"\n"+`{"type":"node_finished","agent":"g","node":"a","targets":["z"]}`+"\n"+tt.started+"\n"), graph.State{})
			if err != nil {
				t.Fatal(err)
			}
			got := Cover("g", g, []*Trace{trace})
			if missing := strings.Join(got.MissingEdges, ","); missing != tt.missing || got.Edges != 2 {
				t.Errorf("coverage %+v, want %q to be missing", got, tt.missing)
			}
		})
	}
}
