// Package draw makes pictures of graphs: [SVG], [Mermaid] and [DOT] for tools that lay
// them out, [Text] for a terminal.
//
// A picture shows what can happen when the graph runs: every node with its id and
// type, and an edge for everything it may route to. Fan-outs, fallbacks and the
// branch of a map look different from an ordinary next; the answers of an approval
// stand on its edges. A next that its node ignores is left out. Nodes that no edge
// leads to from the start are part of the picture and marked, as are targets that do
// not exist. A script without a next is noted as choosing its successor when it runs, unless
// it runs for the items of a map, as a compensation or deferred: then it need not have one.
//
// A subgraph is one folded node, or, up to a depth, open: a box with nodes of its own, which have
// names such as research/search. No edge leads into or out of the box; what leads to the
// node of the subgraph begins with its start.
//
// The functions take any definition, valid or not, and are deterministic.
package draw

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"loki/internal/base/text"
	"loki/internal/workflow/graph"
)

// DefaultDepth is how many levels of subgraphs are open where a user does not say it.
const DefaultDepth = 1

// kind is how an edge comes to be taken.
type kind int

const (
	next       kind = iota // after the node's work
	parallel               // the same, together with its siblings
	route                  // on one of these answers
	fallback               // if the node fails
	compensate             // if the run fails later
	branch                 // for each element of a map's list
)

// edge leads from the node it belongs to.
type edge struct {
	to    *node
	kind  kind
	label string   // printable; empty for next, and for parallel without a condition
	ids   []string // of the edges of the graph that it draws, see [graph.Edge.ID]
}

// node is a node of the graph, or a target that does not exist.
type node struct {
	index     int         // in picture.nodes
	number    int         // no two nodes of the picture and of what is inside its nodes have the same
	id        string      // of a node of a subgraph its name: research/search
	def       *graph.Node // nil if missing
	out       []edge      // in declared order; two of the same kind to the same node are ways of a choice, with others between them
	reachable bool        // from the start
	apart     bool        // it is the branch of a map, or a compensation
	entered   bool        // it comes after another node
	inside    *picture    // of an open subgraph
}

func (n *node) missing() bool { return n.def == nil }

// typ returns the type of the node.
func (n *node) typ() graph.Type {
	if n.missing() {
		return missingType
	}
	return n.def.Type
}

// dynamic reports whether only the script knows where n leads.
func (n *node) dynamic() bool {
	return n.def != nil && n.def.Type == graph.ScriptNode && len(n.def.Next) == 0 && !n.def.Defer && (n.entered || !n.apart)
}

// kindName is what stands with the id: the type and whether the node joins.
func (n *node) kindName() string {
	name := string(n.typ())
	if n.missing() {
		return name
	}
	if n.def.Sub != nil && n.inside == nil {
		name += ", " + text.Count(len(n.def.Sub.Graph.Nodes), "node")
	}
	if n.def.Join != graph.JoinEach {
		name += ", join: " + n.def.Join.String()
	}
	if n.def.Defer {
		name += ", defer"
	}
	return name
}

// terms is kindName with what a map says about its items.
func (n *node) terms() string {
	terms := n.kindName()
	if !n.missing() && n.def.Map != nil {
		for _, term := range n.def.Map.Terms() {
			terms += ", " + printable(term)
		}
	}
	return terms
}

// picture is a graph ready for drawing.
type picture struct {
	name  string
	nodes []*node // declared ones in order, then missing ones
	start *node
	outer *node // whose subgraph it is; nil if it is none
}

// newPicture returns a picture of g with depth levels of open subgraphs.
func newPicture(g *graph.Graph, depth int) *picture { return (&numbering{}).picture(g, nil, depth) }

// numbering counts the nodes of a picture and of the pictures inside it.
type numbering struct{ nodes int }

func (c *numbering) picture(g *graph.Graph, outer *node, depth int) *picture {
	p := &picture{name: g.Name, outer: outer}
	within := ""
	if outer != nil {
		within = outer.id
	}
	byID := make(map[string]*node, len(g.Nodes))
	find := func(id string) *node {
		n, ok := byID[id]
		if !ok {
			n = &node{index: len(p.nodes), number: c.nodes, id: graph.InnerName(within, id)}
			c.nodes++
			byID[id] = n
			p.nodes = append(p.nodes, n)
		}
		return n
	}
	for _, def := range g.Nodes {
		find(def.ID).def = def
	}
	p.start = find(g.Start)
	for _, n := range slices.Clone(p.nodes) {
		if !n.missing() {
			n.out = edgesOf(g, n.def, find)
		}
	}
	if outer == nil || outer.reachable {
		markReachable(p.start)
	}
	for _, n := range p.nodes {
		if depth > 0 && !n.missing() && n.def.Sub != nil {
			n.inside = c.picture(n.def.Sub.Graph, n, depth-1)
		}
	}
	return p
}

// edgesOf returns the edges of def. Those of the same kind to the same node are one edge, but not the ways of a choice whose order
// matters and that have another one between them: "n == 1 or otherwise" would not say that otherwise comes last.
func edgesOf(g *graph.Graph, def *graph.Node, find func(string) *node) []edge {
	var out []edge
	for i, e := range g.Edges(def) {
		if e.To == "" || e.Field == "next" && ignoresNext(def, i) {
			continue
		}
		drawn := edge{to: find(e.To), label: printable(e.Label), ids: []string{e.ID()}}
		switch e.Field {
		case "next":
			switch {
			case e.Label != "" && !e.All:
				drawn.kind = route
			case e.All || def.FanOut && def.Type != graph.InputNode:
				drawn.kind = parallel
			}
		case "routes":
			drawn.kind, drawn.label = route, printable(cmp.Or(e.Label, "(empty answer)"))
		case "on_other":
			drawn.kind, drawn.label = route, edgeLabel("other", e.Label)
		case "fallback":
			drawn.kind, drawn.label = fallback, edgeLabel("fallback", e.Label)
		case "compensate":
			drawn.kind, drawn.label = compensate, "compensate"
		default:
			drawn.kind, drawn.label = branch, "map"
		}
		if drawn.kind >= compensate {
			drawn.to.apart = true
		} else {
			drawn.to.entered = true
		}
		if e.Label == "" && drawn.kind <= parallel {
			drawn.label = ""
		}
		same := func(o edge) bool { return o.to == drawn.to && o.kind == drawn.kind }
		from := 0
		if e.Way != nil && e.Way.Value == nil && !e.All {
			from = max(len(out)-1, 0)
		}
		if j := slices.IndexFunc(out[from:], same) + from; j >= from {
			out[j].ids = append(out[j].ids, e.ID())
			switch {
			case e.Way != nil && drawn.label != "":
				out[j].label += " or " + drawn.label
			case drawn.kind == route:
				out[j].label += ", " + drawn.label
			}
			continue
		}
		out = append(out, drawn)
	}
	return out
}

// edgeLabel returns the label of an edge that is called name and has a condition.
func edgeLabel(name, condition string) string {
	if condition == "" {
		return name
	}
	return name + ": " + printable(condition)
}

// ignoresNext reports whether def never goes to its i-th next.
func ignoresNext(def *graph.Node, i int) bool {
	switch def.Type {
	case graph.ApprovalNode, graph.EndNode:
		return true
	case graph.InputNode:
		return i > 0
	default:
		return false
	}
}

func markReachable(n *node) {
	if n.reachable {
		return
	}
	n.reachable = true
	for _, e := range n.out {
		markReachable(e.to)
	}
}

// printable returns s as it can stand on one line: quoted like a Go string if it
// holds control characters or begins or ends with white space.
func printable(s string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	if s == "" || strings.TrimSpace(s) != s || strings.ContainsFunc(s, odd) {
		return strconv.Quote(s)
	}
	return s
}
