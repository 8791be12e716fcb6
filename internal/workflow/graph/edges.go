package graph

import (
	"fmt"
	"strings"
)

// Edge is a declared way from one node to another. A script's _next is not declared. A run does not go over one with the field
// compensate, see [Plan.Undo].
type Edge struct {
	From, To string
	Field    string // next, routes, on_other, fallback, compensate or branch
	Label    string // the answer of a route; of a way of a choice also its condition and bound; else empty
	Path     string // place in the definition, for Graph.Pos

	Way *Way // nil for an edge that is no part of a choice
	All bool // it is a way that may be taken together with the others of its choice
}

// ID returns the place of the edge below nodes, by which events name it: review.next[1], review.routes.yes, review.fallback.
func (e Edge) ID() string {
	if e.Way != nil {
		return e.Way.ID
	}
	return strings.TrimPrefix(e.Path, "nodes.")
}

// Bounded reports whether a run can take the edge only so often.
func (e Edge) Bounded() bool { return e.Way != nil && e.Way.Max > 0 }

// Edges returns the declared edges of n: its next in order, whatever its type, then
// an approval's routes and on_other, a fallback, a compensation, a map's branch. The targets may be
// unknown in a definition that was not validated.
func (g *Graph) Edges(n *Node) []Edge {
	base := "nodes." + n.ID
	edges := make([]Edge, 0, len(n.Next)+2)
	// add adds the edges of a choice, or the one to the node.
	add := func(place, field, to, label string) {
		c := n.Choices[place]
		if c == nil {
			edges = append(edges, Edge{From: n.ID, To: to, Field: field, Label: label, Path: base + "." + place})
			return
		}
		for i := range c.Ways {
			w := &c.Ways[i]
			e := Edge{From: n.ID, To: w.To, Field: field, Label: c.label(i), Path: w.Path, Way: w, All: c.All}
			if label != "" && e.Label != "" {
				e.Label = label + ": " + e.Label
			} else {
				e.Label += label
			}
			edges = append(edges, e)
		}
	}
	switch {
	case n.Choices["next"] != nil:
		add("next", "next", "", "")
	default:
		for i, to := range n.Next {
			path := base + ".next"
			if n.FanOut {
				path = fmt.Sprintf("%s[%d]", path, i)
			}
			edges = append(edges, Edge{From: n.ID, To: to, Field: "next", Path: path})
		}
	}
	if n.Approval != nil {
		for _, r := range n.Approval.Routes {
			add(r.place(), "routes", r.Target, r.Answer)
		}
		if n.Approval.OnOther != "" { // the branch of a map needs none
			add("on_other", "on_other", n.Approval.OnOther, "")
		}
	}
	if n.Fallback != "" {
		add("fallback", "fallback", n.Fallback, "")
	}
	if n.Compensate != "" {
		add("compensate", "compensate", n.Compensate, "")
	}
	if n.Map != nil {
		add("branch", "branch", n.Map.Branch, "")
	}
	return edges
}
