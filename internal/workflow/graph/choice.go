package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/workflow/graph/expr"
)

// LoopKey is the key under which templates and conditions find how often nodes were visited, by the id of the node, unless
// the state has a key of that name.
const LoopKey = "_loop"

// Choice says where a run goes from a node if that depends on the state, or on how often it went there before: edges with
// conditions and bounds, or routes by a value.
type Choice struct {
	Ways []Way     // in the order of the file, at least one; of routes by a value, otherwise comes last
	On   *Template // lenient; the value that chooses a route, nil for edges
	All  bool      // every way that holds is taken, and not only the first one
}

// Way is one edge of a [Choice].
type Way struct {
	ID    string // its place below nodes, such as review.next[1]: a run counts under it how often it took the way
	Path  string // the place of the target, for [Graph.Pos]
	To    string
	When  *expr.Expr // nil for no condition
	Value *string    // what On has to come to; nil for no condition
	Max   int        // how often a run may take it; 0 for no bound
}

// Certain reports whether the way holds always.
func (w *Way) Certain() bool { return w.When == nil && w.Value == nil && w.Max == 0 }

// UsesClock reports whether a condition depends on the time.
func (c *Choice) UsesClock() bool {
	return slices.ContainsFunc(c.Ways, func(w Way) bool { return w.When != nil && w.When.UsesClock() })
}

// NoWayError says that no edge of a choice holds.
type NoWayError struct{ reasons []string }

func (e *NoWayError) Error() string { return "no edge holds: " + strings.Join(e.reasons, "; ") }

// Take returns the ways that a run takes, at least one, in the order of the file. loop has what the run counted so far and may be nil.
// The error is a [*NoWayError], or says which condition is neither true nor false.
func (c *Choice) Take(s Lookup, loop *Loop, env expr.Env) (taken []*Way, err error) {
	on := ""
	if c.On != nil {
		on = c.On.Lenient(s)
	}
	for i := range c.Ways {
		w := &c.Ways[i]
		if w.Value != nil && *w.Value != on || w.Max > 0 && loop.TakenCount(w.ID) >= w.Max {
			continue
		}
		if w.When != nil {
			holds, err := w.When.BoolWith(s, env)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w.ID, err)
			}
			if !holds {
				continue
			}
		}
		taken = append(taken, w)
		if !c.All {
			return taken, nil
		}
	}
	if len(taken) == 0 {
		return nil, c.noWay(on, loop)
	}
	return taken, nil
}

// noWay says why no way holds.
func (c *Choice) noWay(on string, loop *Loop) error {
	var reasons []string
	for _, w := range c.Ways {
		switch {
		case w.Max > 0 && loop.TakenCount(w.ID) >= w.Max:
			reasons = append(reasons, fmt.Sprintf("the edge to %q was taken %s, which is its max", w.To, text.Count(w.Max, "time")))
		case w.When != nil:
			reasons = append(reasons, w.When.Source+" is false")
		}
	}
	if c.On != nil {
		reasons = append(reasons, fmt.Sprintf("there is no route for %s, which is %q", c.On.Source, on))
	}
	return &NoWayError{reasons}
}

// label returns what a picture shows at way i: its condition and its bound.
func (c *Choice) label(i int) string {
	w := &c.Ways[i]
	var parts []string
	switch {
	case w.When != nil:
		parts = append(parts, w.When.Source)
	case w.Value != nil:
		parts = append(parts, cmp.Or(*w.Value, `""`))
	case !c.All && i > 0 && w.Max == 0:
		parts = append(parts, "otherwise")
	}
	if w.Max > 0 {
		parts = append(parts, fmt.Sprintf("max %d", w.Max))
	}
	return strings.Join(parts, ", ")
}

// text returns the choice in one way of writing it, whatever it was written like.
func (c *Choice) text() string {
	var b strings.Builder
	if c.On != nil {
		fmt.Fprintf(&b, "on %q: ", c.On.Source)
	}
	for i, w := range c.Ways {
		if i > 0 {
			b.WriteString(map[bool]string{false: ", else ", true: ", and "}[c.All])
		}
		b.WriteString(strconv.Quote(w.To))
		if w.When != nil {
			fmt.Fprintf(&b, " when %s", w.When)
		}
		if w.Value != nil {
			fmt.Fprintf(&b, " for %q", *w.Value)
		}
		if w.Max > 0 {
			fmt.Fprintf(&b, " max %d", w.Max)
		}
	}
	return b.String()
}

// targets returns where a choice can lead, each node once, in the order of the file.
func (c *Choice) targets() []string {
	var ids []string
	for _, w := range c.Ways {
		if !slices.Contains(ids, w.To) {
			ids = append(ids, w.To)
		}
	}
	return ids
}

// choices ranges over the choices of a node by the place below it, in the order of [Graph.Edges].
func (n *Node) choices(yield func(place string, c *Choice) bool) {
	for _, place := range n.exits() {
		if c := n.Choices[place]; c != nil && !yield(place, c) {
			return
		}
	}
}

// Bounds returns how often a run may take the ways that have a bound, by their ids.
func (g *Graph) Bounds() map[string]int {
	bounds := make(map[string]int)
	for _, n := range g.Nodes {
		for _, c := range n.choices {
			for _, w := range c.Ways {
				if w.Max > 0 {
					bounds[w.ID] = w.Max
				}
			}
		}
	}
	return bounds
}

// exits returns the places of a node that say where to go.
func (n *Node) exits() []string {
	places := []string{"next"}
	if n.Approval != nil {
		for _, r := range n.Approval.Routes {
			places = append(places, r.place())
		}
		places = append(places, "on_other")
	}
	return append(places, "fallback")
}

// Loop is what a run has counted when a task begins. A nil *Loop has counted nothing.
type Loop struct {
	plan          *Plan
	visits, taken []int32 // by rank, see Progress
	running       string  // the node of the task, whose visit counts
}

// Loop returns what a run has counted when a task of the node called id begins, nil in a graph that nothing of depends on it.
func (p *Plan) Loop(pr Progress, id string) *Loop {
	if !p.counting {
		return nil
	}
	return &Loop{plan: p, visits: pr.visits, taken: pr.taken, running: id}
}

// TakenCount returns how often the run took the way called id.
func (l *Loop) TakenCount(id string) int {
	if l == nil {
		return 0
	}
	if i, ok := l.plan.bounded[id]; ok && i < len(l.taken) {
		return int(l.taken[i])
	}
	return 0
}

// visitCounts returns the visits of all nodes, that of the running one included, as an object by their ids.
func (l *Loop) visitCounts() value.Value {
	members := make([]value.Member, len(l.visits))
	for i, n := range l.visits {
		id := l.plan.nodes[i].ID
		if id == l.running {
			n++
		}
		members[i] = value.Member{Name: id, Value: value.Of(int(n))}
	}
	return value.ObjectOf(members...).Value()
}
