package graph

import (
	"fmt"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/value"
)

// CompensatesKey is the state key under which a compensation finds the visit that it undoes, see [Effect.Value]. It is there only
// while the compensation runs.
const CompensatesKey = "_compensates"

// Effect is a finished visit of a node that has a compensation.
type Effect struct {
	Node   string      `json:"node"`
	Step   int         `json:"step"`   // number of its super-step
	Visit  int         `json:"visit"`  // of the node's visits, from 1
	Writes value.Value `json:"writes"` // what the visit wrote to the state: an object
}

// Value returns e as its compensation sees it under [CompensatesKey].
func (e Effect) Value() value.Value {
	return value.ObjectOf(
		value.Member{Name: "node", Value: value.Of(e.Node)},
		value.Member{Name: "visit", Value: value.Of(e.Visit)},
		value.Member{Name: "step", Value: value.Of(e.Step)},
		value.Member{Name: "writes", Value: e.Writes},
	).Value()
}

// Undoing says that a run has failed or was canceled, why, and how far its effects are undone. It is immutable.
type Undoing struct {
	Failure Failure    `json:"failure"` // what the state has under [LastErrorKey]
	Error   string     `json:"error"`   // the error of the run
	Code    fault.Code `json:"code"`    // of that error
	Hint    string     `json:"hint,omitempty"`
	Total   int        `json:"total"`          // effects that there were
	Before  int        `json:"before"`         // the last super-step before the first of them
	Lost    []Lost     `json:"lost,omitempty"` // effects that could not be undone, in the order in which that was found
}

// Lost is an effect that could not be undone.
type Lost struct {
	Node    string `json:"node"` // the one whose effect it is
	Visit   int    `json:"visit"`
	By      string `json:"by"` // its compensation
	Message string `json:"message"`
}

// String returns what could not be undone, for people.
func (l Lost) String() string {
	return fmt.Sprintf("node %q, visit %d: compensation %q: %s", l.Node, l.Visit, l.By, l.Message)
}

// pushEffects returns effects with those of the results, which are sorted by node and belong to the super-step after pr.
func (p *Plan) pushEffects(pr Progress, results []Result) []Effect {
	effects := pr.Effects
	if !p.compensates {
		return effects
	}
	for _, r := range results {
		i, ok := p.rank[r.Node]
		if !ok || p.nodes[i].Compensate == "" || r.Err != nil || r.Failure != nil || r.Canceled {
			continue
		}
		effects = append(slices.Clip(effects), Effect{Node: r.Node, Step: pr.Step + 1, Visit: int(pr.visits[i]) + 1, Writes: value.ObjectOf(r.Writes...).Value()})
	}
	return effects
}

// Undo returns the Progress in which a run undoes its effects, because it failed in the super-step after pr, or was canceled. results are
// those of the tasks of that super-step, as far as there are any: what has finished counts as an effect, although nothing is merged. ok is
// false if nothing must be undone.
//
// From then on [Plan.Next] gives one task at a time, in the reverse order of the effects, and [Plan.Apply] takes its result. The run is
// over once no effect is left: see [Progress.Undone].
func (p *Plan) Undo(pr Progress, results []Result, why Undoing) (next Progress, ok bool) {
	results = slices.SortedFunc(slices.Values(results), byNode)
	effects := p.pushEffects(pr, results)
	if len(effects) == 0 || pr.Undoing != nil {
		return pr, false
	}
	next = Progress{
		Step: pr.Step + 1, Failures: pr.Failures, Unhandled: pr.Unhandled, visits: slices.Clone(pr.visits), taken: pr.taken, Effects: effects,
		State: pr.State.With(value.Member{Name: LastErrorKey, Value: why.Failure.Value()}),
	}
	for _, r := range results {
		next.visits[p.rank[r.Node]]++
	}
	why.Total, why.Before = len(effects), effects[0].Step-1
	next.Undoing = &why
	return p.withCompensation(next), true
}

// withCompensation returns pr with the compensation that is next as its frontier.
func (p *Plan) withCompensation(pr Progress) Progress {
	pr.Frontier = nil
	if n := len(pr.Effects); n > 0 {
		by := pr.Effects[n-1].Node
		if i, ok := p.rank[by]; ok && p.nodes[i].Compensate != "" {
			by = p.nodes[i].Compensate
		}
		pr.Frontier = []string{by}
	}
	return pr
}

// Compensates reports whether a node of the graph has a compensation.
func (p *Plan) Compensates() bool { return p.compensates }

// Undone reports whether the run has failed and all that it undoes is undone.
func (pr Progress) Undone() bool { return pr.Undoing != nil && len(pr.Effects) == 0 }

// nextUndo is Next for a run that undoes its effects.
func (p *Plan) nextUndo(pr Progress) ([]Task, error) {
	if len(pr.Effects) == 0 {
		return nil, ErrNoEnd
	}
	effect := pr.Effects[len(pr.Effects)-1]
	r, ok := p.rank[pr.Frontier[0]]
	if n := p.graph.Node(effect.Node); !ok || n == nil || n.Compensate != pr.Frontier[0] {
		return nil, fmt.Errorf("node %q has no compensation any more, so visit %d of it cannot be undone", effect.Node, effect.Visit)
	}
	task := Task{Node: p.nodes[r], Step: pr.Step + 1, Visit: int(pr.visits[r]) + 1, Undoes: &effect}
	task.Loop = p.Loop(pr, task.Node.ID)
	return []Task{task}, nil
}

// applyUndo is Apply for a run that undoes its effects. A compensation that failed is noted, and the next one follows.
func (p *Plan) applyUndo(pr Progress, r Result) Progress {
	last := len(pr.Effects) - 1
	next := Progress{
		Step: pr.Step + 1, State: pr.State, Failures: pr.Failures, Unhandled: pr.Unhandled, visits: slices.Clone(pr.visits), taken: pr.taken,
		Effects: pr.Effects[:last:last], Undoing: pr.Undoing,
	}
	next.visits[p.rank[r.Node]]++
	err := r.Err
	if err == nil && r.Failure == nil {
		next.State, err = p.reduceAll(pr.State, []Result{r})
	}
	message := ""
	switch {
	case err != nil:
		next.State, message = pr.State, err.Error()
	case r.Failure != nil:
		message = r.Failure.Message
	}
	if message != "" {
		why, effect := *pr.Undoing, pr.Effects[last]
		why.Lost = append(slices.Clip(why.Lost), Lost{Node: effect.Node, Visit: effect.Visit, By: r.Node, Message: message})
		next.Undoing = &why
		next.Failures++
	}
	return p.withCompensation(next)
}

// compensationTypes are the types of nodes that can undo something. The others wait for someone, or change nothing.
var compensationTypes = []Type{AgentNode, ScriptNode, LLMNode, MapNode, ToolNode, GraphNode}

// compensations reports a node that cannot be the compensation of n, and a compensation that never happens.
func (v *validator) compensations(n *Node) {
	if n.Compensate == "" {
		return
	}
	if maps := v.branchOf[n.ID]; len(maps) > 0 {
		v.err(RuleCompensate, n, "compensate", "put it at the map: its writes have what the items delivered", "the branch of map %q cannot have a compensation: what it does is the effect of the map", maps[0].ID)
	}
	target := v.g.Node(n.Compensate)
	switch {
	case target == nil: // see references
	case target == n:
		v.err(RuleCompensate, n, "compensate", "name a node that undoes what this one does", "a node cannot undo itself")
	case !slices.Contains(compensationTypes, target.Type):
		v.err(RuleCompensate, n, "compensate", "the types that can: "+strings.Join(names(compensationTypes), ", "), "node %q is of type %s, which cannot undo anything", target.ID, target.Type)
	default:
		v.compensation(target)
	}
}

// compensation reports what a node says that undoes others: it runs alone, and leads nowhere.
func (v *validator) compensation(n *Node) {
	for _, field := range []struct {
		name string
		set  bool
	}{{"next", n.HasNext}, {"fallback", n.Fallback != ""}, {"compensate", n.Compensate != ""}} {
		if field.set {
			v.err(RuleCompensate, n, field.name, "leave it out", "a compensation leads nowhere, so it must not have %s: the next compensation follows it, also if it fails", field.name)
		}
	}
	for _, from := range v.g.Nodes {
		for _, e := range v.g.Edges(from) {
			if e.To == n.ID && e.Field != "compensate" {
				v.err(RuleCompensate, nil, e.Path, "write a node of its own for the compensation", "%q is a compensation, to which no other edge may lead", n.ID)
			}
		}
	}
	if v.g.Start == n.ID {
		v.err(RuleCompensate, nil, "start", "write a node of its own for the compensation", "%q is a compensation, with which a run cannot begin", n.ID)
	}
}

// isCompensation reports whether n undoes the effects of another node.
func (v *validator) isCompensation(n *Node) bool {
	return slices.ContainsFunc(v.g.Nodes, func(of *Node) bool { return of.Compensate == n.ID })
}
