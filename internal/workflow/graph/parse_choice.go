package graph

import (
	"errors"

	"loki/internal/base/value/yamldoc"
	"loki/internal/workflow/graph/expr"
)

// pick says which of the edges of a node that hold are taken.
type pick string

const (
	pickFirst pick = "first"
	pickAll   pick = "all"
)

// exit reads where a run goes from n: a node id, or a choice. place is that of the value below the node. It returns the nodes it leads to.
func (p *parser) exit(n *Node, place string, at *yamldoc.Node) (targets []string) {
	c := &Choice{}
	switch kind := at.Kind(); {
	case kind == yamldoc.Mapping:
		switch m := at.Map(); {
		case m.Has("on") || m.Has("routes"):
			p.routes(n, m, c)
		case m.Has("to") || m.Has("when") || m.Has("max"):
			p.way(n, at, c)
		default:
			at.Errorf("expected a node id, a list of node ids, or edges, found a mapping").Hint = edgeHint
		}
	case kind == yamldoc.List && place != "next" && !hasEdges(at):
		c.All = true
		items, _ := at.List()
		for _, item := range items {
			p.target(n, item, c)
		}
	case kind == yamldoc.List:
		c.All = p.pick == pickAll
		items, _ := at.List()
		for _, item := range items {
			p.way(n, item, c)
		}
	default:
		id, ok := at.Str()
		if !ok {
			return nil
		}
		return []string{id}
	}
	if len(c.Ways) == 0 {
		return nil
	}
	if n.Choices == nil {
		n.Choices = make(map[string]*Choice)
	}
	n.Choices[place] = c
	return c.targets()
}

// hasEdges reports whether a list is one of edges, rather than of node ids.
func hasEdges(list *yamldoc.Node) bool {
	items, _ := list.List()
	for _, item := range items {
		if item.Kind() == yamldoc.Mapping {
			return true
		}
	}
	return false
}

const edgeHint = `write an edge as {when: "score >= 8", to: publish}; when and max may be left out`

// way reads an edge: a mapping of when, to and max.
func (p *parser) way(n *Node, at *yamldoc.Node, c *Choice) *Way {
	if at.Kind() != yamldoc.Mapping {
		at.Errorf("expected an edge, found %s", at.Describe()).Hint = edgeHint
		return nil
	}
	m := at.Map()
	w := Way{ID: p.wayID(n, at)}
	for _, problem := range m.Require("to") {
		problem.Hint = edgeHint
	}
	if m.Str("to", &w.To) {
		w.Path = p.pathOf(m.Get("to"))
	}
	if when := ""; m.Str("when", &when) {
		w.When = condition(m.Get("when"), when)
	}
	if bound := 0; m.Uint("max", &bound) {
		if w.Max = bound; bound == 0 {
			m.Get("max").Errorf("must be at least 1, found the number 0").Hint = "max counts how often a run may take the edge"
		}
	}
	p.warnUnread(m, nil)
	c.Ways = append(c.Ways, w)
	return &c.Ways[len(c.Ways)-1]
}

// wayID returns the place of a way below nodes.
func (p *parser) wayID(n *Node, at *yamldoc.Node) string {
	return n.ID + p.pathOf(at)[len("nodes."+n.ID):]
}

// pathOf returns the path of a value below the graph that is read.
func (p *parser) pathOf(at *yamldoc.Node) string { return at.Path()[len(p.g.base):] }

// target reads the id of a node as a way without a condition.
func (p *parser) target(n *Node, at *yamldoc.Node, c *Choice) *Way {
	id, ok := at.Str()
	if !ok {
		return nil
	}
	c.Ways = append(c.Ways, Way{ID: p.wayID(n, at), Path: p.pathOf(at), To: id})
	return &c.Ways[len(c.Ways)-1]
}

// condition reads an expression.
func condition(at *yamldoc.Node, source string) *expr.Expr {
	e, err := expr.Parse(source)
	if syntax, ok := errors.AsType[*expr.SyntaxError](err); ok {
		at.ErrorAt(syntax.Offset, "not an expression: %s", syntax.Msg).Hint = syntax.Hint
		return nil
	}
	return e
}

// routes reads a choice by a value. A route leads to a node, or is an edge without a condition.
func (p *parser) routes(n *Node, m *yamldoc.Map, c *Choice) {
	for _, problem := range m.Require("on", "routes") {
		problem.Hint = `write {on: "{{category}}", routes: {bug: fix, idea: plan}, otherwise: triage}`
	}
	c.On = optional("on", templates(m))
	for e := range m.Map("routes").All() {
		if w := p.route(n, e.Node, c); w != nil {
			w.Value = &e.Key
		}
	}
	if at := m.Get("otherwise"); at != nil && at.Kind() != yamldoc.Null {
		p.route(n, at, c)
	}
	p.warnUnread(m, nil)
}

func (p *parser) route(n *Node, at *yamldoc.Node, c *Choice) *Way {
	if at.Kind() != yamldoc.Mapping {
		return p.target(n, at, c)
	}
	w := p.way(n, at, c)
	if w != nil && w.When != nil {
		at.Map().Get("when").Errorf("a route has no condition: it is taken for its value").Hint = "remove when, or write next as a list of edges"
	}
	return w
}
