package graph

import (
	"slices"

	"loki/internal/base/value"
)

// Early is a task that can begin before its super-step, and the state that it sees.
type Early struct {
	Task
	View State
}

// Ahead returns the tasks of later super-steps that can begin now, if the settings say [ScheduleDataflow]. finished has the results,
// without errors, of tasks of the super-steps after pr, by the number of the super-step, ascending by node. Tasks that were begun
// already are among the result.
//
// A run goes as it does without them, whatever the order in which tasks finish. A task is only returned if it is certain that it
// belongs to the super-step, as which visit of its node, and that nothing of what it reads or writes can be written by what is
// not finished of the super-steps before: those whose tasks are not over are followed over all edges that they may take.
func (p *Plan) Ahead(pr Progress, finished map[int][]Result) []Early {
	if p.traffic == nil || pr.Done {
		return nil
	}
	at := newLevel(p, pr)
	if at == nil {
		return nil
	}
	var early []Early
	open := access{plan: p, nodes: newBitset(len(p.nodes))} // what is not finished up to the super-step
	visits, view := slices.Clone(pr.visits), pr.State
	for step := pr.Step + 1; len(finished[step]) > 0; step++ {
		done := finished[step]
		next := &level{plan: p, possible: newBitset(len(p.nodes)), certain: newBitset(len(p.nodes))}
		if !at.follow(done, next, &open) {
			return early
		}
		var err error
		if view, err = p.merge(view, done, -1); err != nil {
			return early // which is reported when the super-step is over
		}
		for _, r := range done {
			visits[p.rank[r.Node]]++
		}
		for i := range p.nodes {
			if next.certain.has(i) && open.admits(i) && int(visits[i]) < p.graph.Settings.MaxLoopIterations {
				early = append(early, Early{Task{Node: p.nodes[i], Step: step + 1, Visit: int(visits[i]) + 1}, view})
			}
		}
		at = next
	}
	return early
}

// level is what is known of a super-step.
type level struct {
	plan     *Plan
	possible bitset // nodes that may be reached, or wait, when it begins
	certain  bitset // nodes that run in it
	held     bitset // nodes that do not run in it; nil for none
}

// newLevel returns the super-step after pr, nil if it has nodes that there are not.
func newLevel(p *Plan, pr Progress) *level {
	l := &level{p, newBitset(len(p.nodes)), newBitset(len(p.nodes)), newBitset(len(p.nodes))}
	for _, id := range slices.Concat(pr.Frontier, pr.Waiting) {
		i, ok := p.rank[id]
		if !ok {
			return nil
		}
		l.possible.set(i)
	}
	for _, id := range pr.Frontier {
		l.certain.set(p.rank[id])
	}
	for _, id := range pr.Waiting {
		l.held.set(p.rank[id])
	}
	return l
}

// follow adds to the next super-step what may be reached from this one, of which some tasks are done, and to open what is not
// finished. It reports false if nothing can be said of the next one.
func (l *level) follow(done []Result, next *level, open *access) bool {
	p := l.plan
	for i, n := range p.nodes {
		if !l.possible.has(i) {
			continue
		}
		k := slices.IndexFunc(done, func(r Result) bool { return r.Node == n.ID })
		waits := l.held != nil && l.held.has(i) || l.waits(i)
		switch {
		case n.Type == EndNode && !waits:
			return false // the run may be over
		case k >= 0:
			for _, id := range done[k].Targets {
				to, ok := p.rank[id]
				if !ok {
					return false
				}
				next.possible.set(to)
				if p.traffic[to].free {
					next.certain.set(to)
				}
			}
		case waits:
			next.possible.set(i)
		case p.traffic[i].writesAll:
			return false
		default:
			open.nodes.set(i)
			if n.Join != JoinEach || n.Defer { // it may wait
				next.possible.set(i)
			}
			for _, e := range p.graph.Edges(n) {
				if to, ok := p.rank[e.To]; ok {
					next.possible.set(to)
				}
			}
		}
	}
	return true
}

// waits reports whether a node with a join for all waits in the super-step, because a node that is certain to run can reach it.
func (l *level) waits(i int) bool {
	return l.plan.nodes[i].Join == JoinAll && !l.certain.has(i) && l.plan.reach[i].intersects(l.certain)
}

// access is what tasks that are not finished can do.
type access struct {
	plan  *Plan
	nodes bitset
}

// admits reports whether the node with a rank can begin beside them.
func (a *access) admits(i int) bool {
	own := &a.plan.traffic[i]
	if !own.early || a.nodes.has(i) {
		return false
	}
	for k := range a.plan.nodes {
		if !a.nodes.has(k) {
			continue
		}
		if slices.Contains(own.reads, LastErrorKey) { // each of them may fail
			return false
		}
		for _, key := range a.plan.traffic[k].writes {
			if slices.Contains(own.reads, key) || slices.Contains(own.writes, key) {
				return false
			}
		}
	}
	return true
}

// traffic is what a node has to do with the state.
type traffic struct {
	reads, writes []string
	writesAll     bool // it may write any key
	free          bool // it runs in the super-step after the one that leads to it, whatever else is active
	early         bool // it can begin before its super-step
}

// writesUnknown reports whether a node may write keys that the definition does not name.
func writesUnknown(n *Node) bool {
	switch n.Type {
	case AgentNode, ApprovalNode, InputNode, LLMNode, RAGNode, MapNode, ToolNode, WaitNode, GraphNode, EndNode:
	default:
		return true
	}
	s := outputSchema(n)
	if s == nil {
		return false
	}
	typ, _ := s.AsObject().Get("type")
	more, said := s.AsObject().Get("additionalProperties")
	none, is := more.AsBool()
	object := typ.Text() == "" || typ.Text() == "object" || typ.Kind() == value.ListKind
	return object && !(said && is && !none)
}

// findTraffic returns the traffic of the nodes, by rank.
func (p *Plan) findTraffic() []traffic {
	all := make([]traffic, len(p.nodes))
	for i, n := range p.nodes {
		t := &all[i]
		t.reads, t.writes, t.writesAll = reads(n), writes(n), writesUnknown(n)
		readsAll := n.Script != nil
		if n.Map != nil {
			t.writes = append(t.writes, n.Map.CollectInto)
			if branch := p.graph.Node(n.Map.Branch); branch != nil {
				t.reads, readsAll = append(t.reads, reads(branch)...), branch.Script != nil
			}
		}
		t.free = n.Join == JoinEach && !n.Defer && n.Type != EndNode
		for j, above := range p.reach {
			if p.nodes[j].Join > JoinEach && above.has(i) {
				t.free = false // it may be canceled
			}
		}
		t.early = t.free && !readsAll && !t.writesAll && !p.graph.IsQuestion(n) && !slices.Contains(t.reads, LoopKey) && n.Compensate == ""
		for _, c := range n.choices {
			if slices.ContainsFunc(c.Ways, func(w Way) bool { return w.Max > 0 }) {
				t.early = false // what it counts is not certain
			}
		}
	}
	return all
}
