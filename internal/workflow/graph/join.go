package graph

import (
	"fmt"
	"slices"
	"strconv"

	"loki/internal/base/text"
	"loki/internal/base/value/yamldoc"
)

// Join says when a node with several predecessors runs. A number from 1 is how many results have to lead to it: then the node
// runs, and what else is active and can still reach it is canceled.
type Join int

// The joins that have names.
const (
	JoinAll  Join = -1 // once no other active node can still reach it over declared edges
	JoinEach Join = 0  // whenever a branch reaches it
	JoinAny  Join = 1  // once the first branch reaches it; the others are canceled
)

// String returns the join as a definition has it, empty for [JoinEach], which has no word.
func (j Join) String() string {
	switch {
	case j == JoinAll:
		return "all"
	case j == JoinEach:
		return ""
	case j == JoinAny:
		return "any"
	}
	return strconv.Itoa(int(j))
}

// join reads when a node runs that several lead to.
func (p *parser) join(n *Node, m *yamldoc.Map) {
	at := m.Get("join")
	switch {
	case at == nil || at.Kind() == yamldoc.Null:
	case at.Kind() == yamldoc.Int:
		if arrivals, ok := at.Int(1, 1_000_000); ok {
			n.Join = Join(arrivals)
		}
	default:
		var word joinWord
		if yamldoc.Choice(m, "join", &word, "any", "all") {
			n.Join = map[joinWord]Join{"any": JoinAny, "all": JoinAll}[word]
		}
	}
}

type joinWord string

// ArrivalsError says that too few results led to a node for its join, and that nothing that is left can lead there.
type ArrivalsError struct{ Join, Arrived int }

func (e *ArrivalsError) Error() string {
	return fmt.Sprintf("join: %d: there %s only %s, and nothing that is left to run leads here", e.Join, map[bool]string{true: "was", false: "were"}[e.Arrived == 1], text.Count(e.Arrived, "arrival"))
}

// fires reports whether a node with a rank that is reached ends the race for it: as many results led to it as its join says.
func (p *Plan) fires(i int, arrived []int32) bool {
	join := p.nodes[i].Join
	return join == JoinAny || join > JoinAny && i < len(arrived) && int(arrived[i]) >= int(join)
}

// arrivals returns how many results led to each node whose join counts them since it last ran, by rank, with results of the
// super-step after pr. It is nil in a graph without such nodes.
func (p *Plan) arrivals(pr Progress, results []Result) []int32 {
	if !p.counts {
		return nil
	}
	arrived := make([]int32, len(p.nodes))
	copy(arrived, pr.arrived)
	for _, id := range pr.Frontier { // what led to them is used up
		if i, ok := p.rank[id]; ok {
			arrived[i] = 0
		}
	}
	for _, r := range results {
		for n, id := range r.Targets {
			if i, ok := p.rank[id]; ok && p.nodes[i].Join > JoinAny && !slices.Contains(r.Targets[:n], id) {
				arrived[i]++
			}
		}
	}
	return arrived
}

// Short returns the [*ArrivalsError] of a node of the frontier that runs although too few results led to it, nil for any other.
func (p *Plan) Short(pr Progress, id string) error {
	i, ok := p.rank[id]
	if !ok || p.nodes[i].Join <= JoinAny || p.fires(i, pr.arrived) {
		return nil
	}
	e := &ArrivalsError{Join: int(p.nodes[i].Join)}
	if i < len(pr.arrived) {
		e.Arrived = int(pr.arrived[i])
	}
	return e
}

// Races reports whether tasks of a super-step can be canceled because others were faster, see [Plan.Losers].
func (p *Plan) Races() bool { return p.races }

// Losers returns which of the tasks that [Plan.Next] gave for pr have lost a race once those of the results are finished: nodes
// that can reach one with a join to which as many results lead as it waits for. They are to be canceled, and their results are
// Result{Node: id, Canceled: true}. The ids are ascending.
func (p *Plan) Losers(pr Progress, finished []Result) []string {
	if !p.races {
		return nil
	}
	arrived := p.arrivals(pr, finished)
	lost := newBitset(len(p.nodes))
	for _, r := range finished {
		for _, id := range r.Targets {
			if i, ok := p.rank[id]; ok && p.fires(i, arrived) {
				lost.add(p.reach[i])
			}
		}
	}
	var losers []string
	for _, id := range pr.Frontier {
		if i, ok := p.rank[id]; ok && lost.has(i) && !slices.ContainsFunc(finished, func(r Result) bool { return r.Node == id }) {
			losers = append(losers, id)
		}
	}
	return losers
}

// race returns which of the nodes that were reached, sorted, stay active: not the ones that can reach a node whose race has ended.
// Of two that can reach each other the one with the smaller id stays.
func (p *Plan) race(reached []string, arrived []int32) []string {
	if !p.races {
		return reached
	}
	stay := reached
	for _, id := range reached {
		i, ok := p.rank[id]
		if !ok || !p.fires(i, arrived) || !slices.Contains(stay, id) {
			continue
		}
		stay = slices.DeleteFunc(slices.Clone(stay), func(other string) bool {
			k, ok := p.rank[other]
			return ok && k != i && p.reach[i].has(k)
		})
	}
	return stay
}

// holdBack splits the nodes that were reached, sorted, into the ones that run now and the ones that wait; before are the ones
// that waited already. These wait, in the order in which they are released if nothing else can run:
//
//   - nodes with a join that another active node can reach; of nodes that wait for each other, in a loop, one is released;
//   - deferred nodes, all at once;
//   - end nodes that were reached beside deferred nodes, or are deferred themselves.
func (p *Plan) holdBack(reached, before []string, arrived []int32) (frontier, waiting []string) {
	if len(p.reach) == 0 && !p.defers || len(reached) < 2 {
		return reached, nil
	}
	reached = p.race(reached, arrived)
	active := newBitset(len(p.nodes))
	for _, id := range reached {
		if i, ok := p.rank[id]; ok {
			active.set(i)
		}
	}
	endsWait := p.defers && (slices.ContainsFunc(reached, p.isDeferred) || slices.ContainsFunc(before, p.isEnd))
	var joins, deferred, ends []string
	for _, id := range reached {
		i, known := p.rank[id]
		above, joined := p.reach[i]
		switch {
		case known && joined && !p.fires(i, arrived) && above.intersects(active):
			joins = append(joins, id)
		case endsWait && p.isEnd(id):
			ends = append(ends, id)
		case p.isDeferred(id):
			deferred = append(deferred, id)
		default:
			frontier = append(frontier, id)
		}
	}
	if len(frontier) == 0 {
		if k := p.firstJoin(joins, deferred); k >= 0 {
			frontier, joins = []string{joins[k]}, slices.Delete(joins, k, k+1)
		} else if len(deferred) > 0 {
			frontier, deferred = deferred, nil
		} else {
			frontier, ends = ends, nil
		}
	}
	waiting = slices.Concat(joins, deferred, ends)
	slices.Sort(waiting)
	return frontier, waiting
}

// firstJoin returns which of several joins, that all wait, runs first: one that waits only for the others, and rather one that can
// work than one that fails. It is -1 if each waits for a deferred node.
func (p *Plan) firstJoin(joins, deferred []string) int {
	first := -1
	for k, id := range joins {
		i := p.rank[id]
		if slices.ContainsFunc(deferred, func(d string) bool { return p.reach[i].has(p.rank[d]) }) {
			continue
		}
		if p.nodes[i].Join == JoinAll {
			return k
		}
		if first < 0 {
			first = k
		}
	}
	return first
}

func (p *Plan) isDeferred(id string) bool {
	i, ok := p.rank[id]
	return ok && p.nodes[i].Defer
}

func (p *Plan) isEnd(id string) bool {
	i, ok := p.rank[id]
	return ok && p.nodes[i].Type == EndNode
}

// joinAncestors finds, for each node with a join, the nodes that can reach it.
func (p *Plan) joinAncestors() map[int]bitset {
	var sources [][]int // by rank: the nodes with an edge to it
	ancestors := make(map[int]bitset)
	for j, n := range p.nodes {
		if n.Join == JoinEach {
			continue
		}
		if sources == nil {
			sources = p.sources()
		}
		seen := newBitset(len(p.nodes))
		for todo := slices.Clone(sources[j]); len(todo) > 0; {
			i := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if i != j && !seen.has(i) {
				seen.set(i)
				todo = append(todo, sources[i]...)
			}
		}
		ancestors[j] = seen
	}
	return ancestors
}

func (p *Plan) sources() [][]int {
	sources := make([][]int, len(p.nodes))
	for i, n := range p.nodes {
		for _, e := range p.graph.Edges(n) {
			if to, ok := p.rank[e.To]; ok {
				sources[to] = append(sources[to], i)
			}
		}
	}
	return sources
}

// bitset is a set of small integers.
type bitset []uint64

func newBitset(n int) bitset    { return make(bitset, (n+63)/64) }
func (b bitset) set(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }
func (b bitset) add(c bitset) {
	for i := range c {
		b[i] |= c[i]
	}
}

func (b bitset) intersects(c bitset) bool {
	for i := range b {
		if b[i]&c[i] != 0 {
			return true
		}
	}
	return false
}
