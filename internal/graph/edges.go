package graph

import "fmt"

// Edge is a declared way from one node to another. A script's _next is not declared.
type Edge struct {
	From, To string
	Field    string // next, routes, on_other, fallback or branch
	Label    string // the answer of a route, empty for other fields
	Path     string // place in the definition, for Graph.Pos
}

// Edges returns the declared edges of n: its next in order, whatever its type, then
// an approval's routes and on_other, a fallback, a map's branch. The targets may be
// unknown in a definition that was not validated.
func (g *Graph) Edges(n *Node) []Edge {
	base := "nodes." + n.ID
	edges := make([]Edge, 0, len(n.Next)+2)
	for i, to := range n.Next {
		path := base + ".next"
		if n.FanOut {
			path = fmt.Sprintf("%s[%d]", path, i)
		}
		edges = append(edges, Edge{From: n.ID, To: to, Field: "next", Path: path})
	}
	if n.Approval != nil {
		for _, r := range n.Approval.Routes {
			edges = append(edges, Edge{From: n.ID, To: r.Target, Field: "routes", Label: r.Answer, Path: base + ".routes." + r.Answer})
		}
		if n.Approval.OnOther != "" { // the branch of a map needs none
			edges = append(edges, Edge{From: n.ID, To: n.Approval.OnOther, Field: "on_other", Path: base + ".on_other"})
		}
	}
	if n.Fallback != "" {
		edges = append(edges, Edge{From: n.ID, To: n.Fallback, Field: "fallback", Path: base + ".fallback"})
	}
	if n.Map != nil {
		edges = append(edges, Edge{From: n.ID, To: n.Map.Branch, Field: "branch", Path: base + ".branch"})
	}
	return edges
}
