package graph

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"loki/internal/base/value"
)

// Plan is a [Graph] made ready for scheduling. It is immutable and may be shared.
//
// A run is a sequence of [Progress] values. From each, [Plan.Next] gives the tasks of
// the next super-step, and [Plan.Apply] folds their results into the Progress that
// follows. Both are pure: the same arguments give the same result, whatever the order
// in which the tasks were finished.
//
// Nodes with a [Join], deferred nodes and end nodes beside them can be delayed, in Progress.Waiting, when they are reached.
type Plan struct {
	graph *Graph
	nodes []*Node        // ascending by id
	rank  map[string]int // index into nodes by id
	// reach[j] has a bit for every node from which the node j with a join can be reached.
	reach map[int]bitset
	// races says that there are nodes for which others race, counts that some of them count arrivals, defers that nodes are deferred.
	races, counts, defers bool
	compensates           bool      // a node has a compensation
	traffic               []traffic // by rank; nil unless tasks may begin before their super-step
	// bounded are the ways with a bound, by their ids. counting says that tasks are given what the run has counted.
	bounded  map[string]int
	counting bool

	inner map[string]*Plan // of the subgraphs, by the ids of their nodes
}

// NewPlan prepares g.
func NewPlan(g *Graph) *Plan {
	p := &Plan{graph: g, nodes: byID(g), rank: make(map[string]int, len(g.Nodes)), inner: make(map[string]*Plan), bounded: make(map[string]int)}
	for i, n := range p.nodes {
		p.rank[n.ID] = i
	}
	p.reach = p.joinAncestors()
	p.counting = bytes.Contains(g.Text, []byte(LoopKey))
	for _, n := range p.nodes {
		p.races, p.counts, p.defers = p.races || n.Join > JoinEach, p.counts || n.Join > JoinAny, p.defers || n.Defer
		p.compensates = p.compensates || n.Compensate != ""
		if n.Sub != nil {
			p.inner[n.ID] = NewPlan(n.Sub.Graph)
		}
		for _, c := range n.choices {
			p.counting = true
			for _, w := range c.Ways {
				if w.Max > 0 {
					p.bounded[w.ID] = len(p.bounded)
				}
			}
		}
	}
	if g.Settings.Scheduling == ScheduleDataflow {
		p.traffic = p.findTraffic()
	}
	return p
}

// Graph returns the definition the plan was made of.
func (p *Plan) Graph() *Graph { return p.graph }

// Inner returns the plan of the subgraph of the node called id, nil if it has none.
func (p *Plan) Inner(id string) *Plan { return p.inner[id] }

// Failed counts failures that a run tolerates.
type Failed struct {
	Failures  int `json:"failures,omitempty"`
	Unhandled int `json:"unhandled,omitempty"` // of these
}

// Plus returns the sum of f and o.
func (f Failed) Plus(o Failed) Failed {
	return Failed{f.Failures + o.Failures, f.Unhandled + o.Unhandled}
}

// CountFailed returns how many failures a node's own, which is nil for none, and those in it are.
func (f *Failure) CountFailed(inner Failed) Failed {
	if f != nil {
		inner.Failures++
		if f.Unhandled {
			inner.Unhandled++
		}
	}
	return inner
}

// Progress is how far a run has come. It is immutable. The zero Progress is not
// usable; see [Plan.Begin].
type Progress struct {
	Step      int      // super-steps done
	State     State    // after them
	Frontier  []string // nodes of the next super-step, ascending
	Waiting   []string // nodes that were reached and are delayed, ascending
	Failures  int      // tolerated failures so far
	Unhandled int      // those of Failures of which the definition does not say what happens, see [Failure]
	Done      bool     // an end node was reached
	Output    string   // its text

	Effects []Effect // finished visits of nodes with a compensation, in their order
	Undoing *Undoing // the run has failed and undoes its effects; nil for one that has not failed

	visits  []int32 // finished visits by rank, canceled ones included
	taken   []int32 // of the bounded ways; nil if none was taken
	arrived []int32 // results that led to nodes whose join counts them since they last ran, by rank; nil if no join does
}

// Visits returns how often the node was run so far.
func (p *Plan) Visits(pr Progress, id string) int {
	if i, ok := p.rank[id]; ok && i < len(pr.visits) {
		return int(pr.visits[i])
	}
	return 0
}

// VisitCounts returns the visits of all nodes that were run.
func (p *Plan) VisitCounts(pr Progress) map[string]int { return countsByID(pr.visits, p.rank) }

// countsByID returns the counts above 0 of a list by the ids of what has a rank in it.
func countsByID(list []int32, ranks map[string]int) map[string]int {
	counts := make(map[string]int)
	for id, i := range ranks {
		if i < len(list) && list[i] > 0 {
			counts[id] = int(list[i])
		}
	}
	return counts
}

// countsByRank is the inverse of countsByID, nil without counts. Ids without a rank are left out.
func countsByRank(counts, ranks map[string]int) []int32 {
	if len(counts) == 0 {
		return nil
	}
	list := make([]int32, len(ranks))
	for id, n := range counts {
		if i, ok := ranks[id]; ok {
			list[i] = int32(n)
		}
	}
	return list
}

// Begin returns the Progress before the first super-step.
func (p *Plan) Begin(state State) Progress {
	pr := Progress{State: state, Frontier: []string{p.graph.Start}, visits: make([]int32, len(p.nodes))}
	if i, ok := p.rank[p.graph.Start]; ok && p.nodes[i].Join > JoinAny { // the beginning counts for all
		pr.arrived = make([]int32, len(p.nodes))
		pr.arrived[i] = int32(p.nodes[i].Join)
	}
	return pr
}

// Restore returns pr, read back from a store, with the visits it had.
func (p *Plan) Restore(pr Progress, visits map[string]int) Progress {
	if pr.visits = countsByRank(visits, p.rank); pr.visits == nil {
		pr.visits = make([]int32, len(p.nodes))
	}
	return pr
}

// ArrivedCounts returns how many results led to nodes whose join counts them since they last ran, by their ids.
func (p *Plan) ArrivedCounts(pr Progress) map[string]int { return countsByID(pr.arrived, p.rank) }

// RestoreArrived returns pr, read back from a store, with the results that led to nodes whose join counts them.
func (p *Plan) RestoreArrived(pr Progress, counts map[string]int) Progress {
	pr.arrived = countsByRank(counts, p.rank)
	return pr
}

// TakenCounts returns how often ways with a bound were taken, by their ids.
func (p *Plan) TakenCounts(pr Progress) map[string]int { return countsByID(pr.taken, p.bounded) }

// RestoreTaken returns pr, read back from a store, with the ways that were taken. Ways that the plan does not have are left out.
func (p *Plan) RestoreTaken(pr Progress, counts map[string]int) Progress {
	pr.taken = countsByRank(counts, p.bounded)
	return pr
}

// Task is one node to run in a super-step.
type Task struct {
	Node  *Node
	Step  int   // number of the super-step, from 1
	Visit int   // which visit of the node this is, from 1
	Loop  *Loop // what the run has counted; nil in a graph that nothing of depends on it
	Short error // why the node fails without being run: an [*ArrivalsError]; nil if it does not

	Undoes *Effect // what the task undoes, of which it is the compensation; nil for any other
}

// Result is the result of a [Task]. Its JSON, which records have, lacks the node and what it writes.
type Result struct {
	Node    string         `json:"-"`
	Writes  []value.Member `json:"-"`                 // as [Draft.Writes] gives them
	Targets []string       `json:"targets,omitempty"` // nodes to go to
	Taken   []string       `json:"taken,omitempty"`   // ids of the edges that lead there, see [Edge.ID]; nil for all of next, and where a script says
	Ended   bool           `json:"ended,omitempty"`   // the node was an end node
	Output  string         `json:"output,omitempty"`  // of an end node
	Failure *Failure       `json:"failure,omitempty"` // the node failed, and the run continues
	Inner   Failed         `json:"inner,omitzero"`    // what failed inside the node, of its subgraph or its items, and was tolerated there
	// Canceled says that others were faster, see [Plan.Losers]. There is nothing else but the node.
	Canceled bool  `json:"canceled,omitempty"`
	Err      error `json:"-"` // the node failed, and so does the run; the rest is ignored
}

// Failure is a node's failure that the run tolerates.
type Failure struct {
	Node    string `json:"node"`
	Type    Type   `json:"type"`
	Message string `json:"message"`
	// Unhandled says that the definition does not say what happens then: the node has no fallback, and settings.on_failure is not
	// written.
	Unhandled bool `json:"unhandled,omitempty"`
}

// Value returns f as the state has it under [LastErrorKey].
func (f *Failure) Value() value.Value {
	return value.ObjectOf(
		value.Member{Name: "node", Value: value.Of(f.Node)},
		value.Member{Name: "type", Value: value.Of(string(f.Type))},
		value.Member{Name: "message", Value: value.Of(f.Message)},
	).Value()
}

// NodeError is a run's failure at a node.
type NodeError struct {
	Node string
	Err  error
}

func (e *NodeError) Error() string {
	if misfit, ok := e.Err.(*StateError); ok {
		return fmt.Sprintf("node %q %v", e.Node, misfit)
	}
	return fmt.Sprintf("at node %q: %v", e.Node, e.Err)
}

// Unwrap returns the cause.
func (e *NodeError) Unwrap() error { return e.Err }

// LimitError says that a node was to run more often than settings allow.
type LimitError struct {
	Node   string
	Visits int
	Max    int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("node %q visited %d times (max_loop_iterations=%d): the graph may loop forever", e.Node, e.Visits, e.Max)
}

// ErrNoEnd says that nothing is left to run although no end node was reached.
var ErrNoEnd = errors.New("no node is left to run and no end node was reached")

// Next returns the tasks of the next super-step, ascending by node id.
func (p *Plan) Next(pr Progress) ([]Task, error) {
	if pr.Undoing != nil {
		return p.nextUndo(pr)
	}
	if len(pr.Frontier) == 0 {
		return nil, ErrNoEnd
	}
	tasks := make([]Task, len(pr.Frontier))
	for i, id := range pr.Frontier {
		r, ok := p.rank[id]
		if !ok {
			return nil, fmt.Errorf("graph %q has no node %q, which a script's _next or a definition that was not validated led to", p.graph.Name, id)
		}
		visit := int(pr.visits[r]) + 1
		if limit := p.graph.Settings.MaxLoopIterations; visit > limit {
			return nil, &LimitError{Node: id, Visits: visit, Max: limit}
		}
		tasks[i] = Task{Node: p.nodes[r], Step: pr.Step + 1, Visit: visit, Loop: p.Loop(pr, id)}
		if p.counts {
			tasks[i].Short = p.Short(pr, id)
		}
	}
	return tasks, nil
}

// OnFailure returns where the run goes when n fails: to its fallback, or, if the
// settings allow, to its next. Tolerated is false if the run has to fail.
func (p *Plan) OnFailure(n *Node) (targets []string, tolerated bool) {
	switch {
	case n.Fallback != "":
		return []string{n.Fallback}, true
	case n.Type != LLMNode && n.Type != ScriptNode:
		return nil, false
	case len(n.Next) > 0 && p.graph.Settings.OnFailure != FailStop:
		return n.Next, true
	}
	return nil, false
}

// Handles reports whether the definition says what happens when n fails.
func (p *Plan) Handles(n *Node) bool { return p.graph.handles(n) }

func (g *Graph) handles(n *Node) bool {
	return n.Fallback != "" || g.Settings.FailureWritten || g.Settings.FailureInherited
}

// Apply folds the results of the tasks that [Plan.Next] gave for pr, one for each
// and in any order. If several failed, the error is that of the smallest node id,
// and nothing is merged; see [Plan.Undo].
func (p *Plan) Apply(pr Progress, results []Result) (Progress, error) {
	if pr.Undoing != nil {
		return p.applyUndo(pr, results[0]), nil
	}
	results = slices.SortedFunc(slices.Values(results), byNode)
	end := -1
	for i := range results {
		if err := results[i].Err; err != nil {
			return pr, &NodeError{Node: results[i].Node, Err: err}
		}
		if !results[i].Ended {
			continue
		}
		if end >= 0 {
			return pr, p.severalEnds(results)
		}
		end = i
	}
	state, err := p.merge(pr.State, results, end)
	if err != nil {
		return pr, err
	}
	next := Progress{
		Step:     pr.Step + 1,
		State:    state,
		Failures: pr.Failures, Unhandled: pr.Unhandled,
		visits:  slices.Clone(pr.visits),
		taken:   pr.taken,
		arrived: p.arrivals(pr, results),
	}
	var reached []string
	for i := range results {
		next.visits[p.rank[results[i].Node]]++
		failed := results[i].Failure.CountFailed(results[i].Inner)
		next.Failures, next.Unhandled = next.Failures+failed.Failures, next.Unhandled+failed.Unhandled
		reached = append(reached, results[i].Targets...)
	}
	next.taken = p.countTaken(next.taken, results)
	if end >= 0 {
		next.Done, next.Output = true, results[end].Output
		return next, nil
	}
	next.Effects = p.pushEffects(pr, results)
	reached = append(reached, pr.Waiting...)
	slices.Sort(reached)
	next.Frontier, next.Waiting = p.holdBack(slices.Compact(reached), pr.Waiting, next.arrived)
	return next, nil
}

// countTaken returns taken with the bounded ways of the results added.
func (p *Plan) countTaken(taken []int32, results []Result) []int32 {
	if len(p.bounded) == 0 {
		return taken
	}
	counted := make([]int32, len(p.bounded))
	copy(counted, taken)
	for _, r := range results {
		for _, id := range r.Taken {
			if i, ok := p.bounded[id]; ok {
				counted[i]++
			}
		}
	}
	return counted
}

func byNode(a, b Result) int { return strings.Compare(a.Node, b.Node) }

func (p *Plan) severalEnds(results []Result) error {
	var ids []string
	for _, r := range results {
		if r.Ended {
			ids = append(ids, strconv.Quote(r.Node))
		}
	}
	return fmt.Errorf("end nodes %s were reached in the same super-step: join the branches before one end node", strings.Join(ids, ", "))
}

// merge folds the writes of all results but the end node's, and then those.
func (p *Plan) merge(state State, results []Result, end int) (State, error) {
	siblings, last := results, []Result(nil)
	if end >= 0 {
		siblings, last = slices.Delete(slices.Clone(results), end, end+1), results[end:end+1]
	}
	state, err := p.reduceAll(state, siblings)
	if err == nil {
		state, err = p.reduceAll(state, last)
	}
	return p.recordFailures(state, results), err
}

// reduceAll merges the writes of branches that ran side by side, of which results is
// sorted by node. Keys are merged ascending.
func (p *Plan) reduceAll(state State, results []Result) (State, error) {
	byKey := make(map[string][]value.Value)
	for _, r := range results {
		for _, w := range r.Writes {
			byKey[w.Name] = append(byKey[w.Name], w.Value)
		}
	}
	var merged []value.Member
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		v, err := p.reduce(state, key, byKey[key])
		if err == nil {
			err = p.guard(state, key, v, results)
		}
		if err != nil {
			return state, err
		}
		merged = append(merged, value.Member{Name: key, Value: v})
	}
	return state.With(merged...), nil
}

// reduce combines the incoming values of key, in order, with its current one.
func (p *Plan) reduce(state State, key string, incoming []value.Value) (value.Value, error) {
	reducer, ok := p.graph.Reducers[key]
	if !ok {
		if len(incoming) > 1 {
			return value.Value{}, fmt.Errorf("%d parallel branches wrote state key %q, for which no reducer is declared: add it to reducers", len(incoming), key)
		}
		return incoming[0], nil
	}
	v, present := state.Get(key)
	for _, in := range incoming {
		var err error
		if v, err = reducer.Reduce(v, present, in); err != nil {
			return value.Value{}, fmt.Errorf("merging state key %q: %w", key, err)
		}
		present = true
	}
	return v, nil
}

// recordFailures leaves the last tolerated failure in the state. The scheduler does
// it, not the branches, so that two failing side by side do not collide.
func (p *Plan) recordFailures(state State, results []Result) State {
	for _, r := range slices.Backward(results) {
		if r.Failure != nil {
			return state.With(value.Member{Name: LastErrorKey, Value: r.Failure.Value()})
		}
	}
	return state
}
