package graph

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
	"loki/internal/workflow/graph/expr"
)

// choices reports choices of n that may have no way on, ways that are never taken, and bounds that do not bound.
func (v *validator) choices(n *Node) {
	limit := v.g.Settings.MaxLoopIterations
	for place, c := range n.choices {
		certain := slices.IndexFunc(c.Ways, func(w Way) bool { return w.Certain() })
		switch values := v.valuesOf(n, c); {
		case values != nil:
			v.checkRoutes(n, place, c, values, certain >= 0)
		case certain < 0:
			hint := "add an edge without when and max as the last one, such as {to: " + c.Ways[0].To + "}"
			if c.On != nil {
				hint = "add otherwise: with the node to go to then"
			}
			v.warn(RuleOtherwise, n, place, hint, "if no edge of %s holds, the node fails: no edge is unconditional", place)
		}
		if certain >= 0 && c.On == nil && !c.All {
			for _, w := range c.Ways[certain+1:] {
				v.warn(RuleUnreachableEdge, n, strings.TrimPrefix(w.ID, n.ID+"."), "put the edge without when and max last",
					"the edge to %q is never taken, since the one to %q before it always holds", w.To, c.Ways[certain].To)
			}
		}
		for _, w := range c.Ways {
			if w.Max > limit && limit > 0 {
				v.warn(RuleLoopBound, n, strings.TrimPrefix(w.ID, n.ID+".")+".max", "raise settings.max_loop_iterations, or lower max",
					"max is %d, but no node runs more often than %s (settings.max_loop_iterations)", w.Max, text.Count(limit, "time"))
			}
		}
	}
}

// valuesOf returns all values that choose a route of c, nil if they are not known or it has no routes.
func (v *validator) valuesOf(n *Node, c *Choice) []value.Value {
	if c.On == nil {
		return nil
	}
	hole, ok := c.On.single()
	if !ok || len(hole.path) == 0 {
		return nil
	}
	t, _ := v.keyType(n, hole.path[0].name)
	for _, s := range hole.path[1:] {
		if s.isIndex {
			return nil
		}
		t = t.Members[s.name]
	}
	return t.Enum
}

// checkRoutes compares the values that a choice can meet with its routes.
func (v *validator) checkRoutes(n *Node, place string, c *Choice, values []value.Value, otherwise bool) {
	var routes, known []string
	for _, w := range c.Ways {
		if w.Value != nil {
			routes = append(routes, *w.Value)
		}
	}
	for _, x := range values {
		known = append(known, x.Text())
		if !otherwise && !slices.Contains(routes, x.Text()) {
			v.err(RuleMissingRoute, n, place+".routes", "add a route for it, or otherwise:", "%s can be %q, which has no route", c.On.Source, x.Text())
		}
	}
	for _, route := range routes {
		if !slices.Contains(known, route) {
			v.warn(RuleUnusedRoute, n, place+".routes."+route, didYouMean(route, known), "%s is never %q", c.On.Source, route)
		}
	}
}

// conditions reports what conditions of n cannot mean.
func (v *validator) conditions(n *Node) {
	for _, c := range n.choices {
		for _, w := range c.Ways {
			if w.When != nil {
				v.condition(n, strings.TrimPrefix(w.ID, n.ID+".")+".when", w.When, v.typesAfter(n))
			}
		}
	}
}

func (v *validator) condition(n *Node, path string, e *expr.Expr, types expr.Types) {
	for _, p := range e.Check(types, expr.Bool) {
		f := v.g.at(Finding{Severity: SeverityWarning, Rule: RuleCondition, Path: path, Message: p.Msg, Hint: p.Hint}, n)
		if p.Undefined != "" {
			f.Rule, f.Severity, f.Hint = RuleUndefinedRead, v.undefinedSeverity(), v.undefinedHint(p.Undefined)
		}
		if p.Fails {
			f.Severity = SeverityError
		}
		if f.Pos != (Pos{}) {
			f.Pos = Pos(yamldoc.Place(v.g.Text, yamldoc.Pos(f.Pos), e.Source, p.Offset))
		}
		v.report(f)
	}
}

// keyType returns what is known of a key of the state after the work of n; defined is false if nothing can write it.
func (v *validator) keyType(n *Node, key string) (t expr.Type, defined bool) {
	if key == LoopKey {
		return v.loopType(), true
	}
	known, closed := v.knownKeys()
	if _, written := slices.BinarySearch(known, key); closed && !written {
		return t, false
	}
	t = v.stateType(key)
	if s, ok := properties(n).Get(key); ok && !n.updates(key) && v.g.Reducers[key] == "" {
		return expr.TypeOf(s).And(t), true
	}
	return t, true
}

// loopType is the type of [LoopKey].
func (v *validator) loopType() expr.Type {
	t := expr.Type{Kinds: expr.Object, Members: make(map[string]expr.Type), Closed: true}
	for _, n := range v.g.Nodes {
		t.Members[n.ID] = expr.Type{Kinds: expr.Number}
	}
	return t
}

// maxHint returns the hint for an edge that closes a cycle: where its max belongs.
func maxHint(e *Edge) string {
	if e.Field == "branch" {
		return "a map runs its branch for itself: its nodes must not lead back to the map"
	}
	place := strings.TrimPrefix(e.Path, "nodes.")
	if e.Way != nil {
		place = e.Way.ID
	}
	to := e.To
	if strings.ContainsAny(to, ":{}[],#&*!|>'\"%@` ") || to == "" {
		to = strconv.Quote(to)
	}
	return fmt.Sprintf("say how often a run may go round: give the edge %s a max, such as {to: %s, max: 3}, and an edge to take after that", place, to)
}
