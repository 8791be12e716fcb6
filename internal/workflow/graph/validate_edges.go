package graph

import (
	"slices"
	"strings"
)

// reachable returns the nodes to which declared edges lead from the start, the start
// included.
func (g *Graph) reachable() map[string]bool {
	reached := map[string]bool{}
	todo := []string{g.Start}
	for len(todo) > 0 {
		n := g.Node(todo[len(todo)-1])
		todo = todo[:len(todo)-1]
		if n == nil || reached[n.ID] {
			continue
		}
		reached[n.ID] = true
		for _, e := range g.Edges(n) {
			todo = append(todo, e.To)
		}
	}
	return reached
}

// references reports edges of n to unknown nodes.
func (v *validator) references(n *Node) {
	for _, e := range v.g.Edges(n) {
		if v.g.Node(e.To) != nil {
			continue
		}
		field := string(n.Type) + " " + e.Field
		if e.Field == "next" {
			field = e.Field
		}
		path := strings.TrimPrefix(e.Path, "nodes."+n.ID+".")
		v.err(RuleUnknownTarget, n, path, didYouMean(e.To, nodeIDs(v.g)), "%s leads to %q, which is not a node", field, e.To)
	}
}

// cycles reports the first cycle without a bounded edge that a depth-first search from each node in turn meets.
func (v *validator) cycles() {
	const visiting, done = 1, 2
	marks := make(map[string]int, len(v.g.Nodes))
	var path []string
	// visit returns the edge that closes a cycle.
	var visit func(n *Node) *Edge
	visit = func(n *Node) *Edge {
		marks[n.ID] = visiting
		path = append(path, n.ID)
		for _, e := range v.g.Edges(n) {
			next := v.g.Node(e.To)
			switch {
			case e.Bounded() || e.Field == "compensate" || next == nil || marks[e.To] == done:
			case marks[e.To] == visiting:
				return &e
			default:
				if closing := visit(next); closing != nil {
					return closing
				}
			}
		}
		marks[n.ID] = done
		path = path[:len(path)-1]
		return nil
	}
	for _, n := range v.g.Nodes {
		if marks[n.ID] == done {
			continue
		}
		if e := visit(n); e != nil {
			cycle := append(path[slices.Index(path, e.To):], e.To)
			v.err(RuleCycle, nil, e.Path, maxHint(e), "the declared edges form a cycle: %s", strings.Join(cycle, " -> "))
			return
		}
	}
}

// reachability reports a node without a declared way from the start.
func (v *validator) reachability(n *Node) {
	if !v.reached[n.ID] {
		v.warn(RuleUnreachable, n, "", "", "no declared edge leads here from the start %q (a script's _next is not analysed)", v.g.Start)
	}
}

// termination reports graphs that do not seem to end.
func (v *validator) termination() {
	isEnd := func(n *Node) bool { return n.Type == EndNode }
	if !slices.ContainsFunc(v.g.Nodes, isEnd) {
		v.err(RuleNoEnd, nil, "nodes", "add a node of type end", "there is no end node, so a run could not end")
		return
	}
	if !slices.ContainsFunc(v.g.Nodes, func(n *Node) bool { return isEnd(n) && v.reached[n.ID] }) {
		v.warn(RuleUnreachableEnd, nil, "nodes", "", "no end node can be reached from the start %q over declared edges (a script's _next is not analysed)", v.g.Start)
	}
}

// successors reports nodes that finish and have nowhere to go. A map's branch needs
// no successor, a script may name one itself.
func (v *validator) successors(n *Node) {
	switch n.Type {
	case AgentNode, InputNode, LLMNode, RAGNode, MapNode, GraphNode, ToolNode, WaitNode:
		if !n.HasNext && !n.Defer && len(v.branchOf[n.ID]) == 0 && !v.isCompensation(n) {
			v.warn(RuleMissingNext, n, "", "add next:, if only to an end node", "a node of type %s needs next, without it the run fails here", n.Type)
		}
	}
}

// joins reports joins that have nothing to wait for, or wait for too much.
func (v *validator) joins() {
	var sources map[string][]*Node // nodes with an edge to a node
	for _, n := range v.g.Nodes {
		if n.Join == JoinEach {
			continue
		}
		if sources == nil {
			sources = v.sources()
		}
		switch lead := len(sources[n.ID]); {
		case n.Join == JoinAll && !repeats(n, sources):
			v.warn(RuleJoin, n, "join", "", "join: all has nothing to wait for, since fewer than two nodes lead here")
		case n.Join == JoinAny && lead < 2:
			v.warn(RuleJoin, n, "join", "", "join: any has nothing to choose from, since fewer than two nodes lead here")
		case int(n.Join) > lead:
			v.warn(RuleJoin, n, "join", "a node that runs several times counts each time; if there are too few arrivals, the node fails",
				"join: %d waits for more arrivals than there are nodes that lead here, which are %d", n.Join, lead)
		}
	}
}

// repeats reports whether several branches can come to a node: two nodes lead there, or to the one before it if that does not wait for all of them.
func repeats(n *Node, sources map[string][]*Node) bool {
	for range sources {
		from := sources[n.ID]
		if len(from) != 1 {
			return len(from) > 1
		}
		if n = from[0]; n.Join == JoinAll {
			return false
		}
	}
	return false
}

func (v *validator) sources() map[string][]*Node {
	sources := make(map[string][]*Node)
	for _, n := range v.g.Nodes {
		targets := map[string]bool{}
		for _, e := range v.g.Edges(n) {
			targets[e.To] = true
		}
		for to := range targets {
			sources[to] = append(sources[to], n)
		}
	}
	return sources
}
