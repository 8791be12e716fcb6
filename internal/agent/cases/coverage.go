package cases

import (
	"slices"

	"loki/internal/workflow/graph"
)

// Coverage is what cases visited of a graph.
type Coverage struct {
	Agent        string   `json:"agent"`
	Nodes        int      `json:"nodes"`
	Visited      int      `json:"visited_nodes"`
	Edges        int      `json:"edges"`
	Taken        int      `json:"taken_edges"`
	MissingNodes []string `json:"missing_nodes,omitempty"`
	MissingEdges []string `json:"missing_edges,omitempty"` // "from -> to"
}

// Cover returns what the traces visited of the graph of an agent. Ways that a script chooses by
// itself are not declared and do not count.
func Cover(agent string, g *graph.Graph, traces []*Trace) Coverage {
	all := newVisits()
	for _, t := range traces {
		if v := t.Visits[agent]; v != nil {
			all.add(v)
		}
	}
	branches := make(map[string]bool) // whose ways on do not count
	for _, n := range g.Nodes {
		if n.Map == nil {
			continue
		}
		branches[n.Map.Branch] = true
		if all.Maps[n.ID] {
			all.Nodes[n.Map.Branch] = true
			all.Edges[[2]string{n.ID, n.Map.Branch}] = true
		}
	}
	c := Coverage{Agent: agent, Nodes: len(g.Nodes)}
	seen := make(map[[2]string]bool)
	for _, n := range g.Nodes {
		if all.Nodes[n.ID] {
			c.Visited++
		} else {
			c.MissingNodes = append(c.MissingNodes, n.ID)
		}
		if branches[n.ID] {
			continue
		}
		for _, e := range g.Edges(n) {
			way := [2]string{e.From, e.To}
			if e.To == "" || seen[way] {
				continue
			}
			seen[way] = true
			c.Edges++
			if all.Edges[way] {
				c.Taken++
			} else {
				c.MissingEdges = append(c.MissingEdges, e.From+" -> "+e.To)
			}
		}
	}
	slices.Sort(c.MissingNodes)
	slices.Sort(c.MissingEdges)
	return c
}
