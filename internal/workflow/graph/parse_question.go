package graph

import (
	"slices"
	"strings"

	"loki/internal/base/value/yamldoc"
)

// branchIDs returns the ids that the maps among nodes have as their branch. It reports nothing.
func branchIDs(nodes *yamldoc.Node) map[string]bool {
	ids := make(map[string]bool)
	if nodes == nil || nodes.Kind() != yamldoc.Mapping {
		return ids
	}
	for e := range nodes.Map().All() {
		if e.Node.Kind() != yamldoc.Mapping {
			continue
		}
		m := e.Node.Map()
		kind := m.Get("type")
		if kind == nil || kind.Literal() != string(MapNode) {
			continue
		}
		if branch := m.Get("branch"); branch != nil {
			ids[branch.Literal()] = true
		}
	}
	return ids
}

// requiredOf returns the fields that n cannot do without. An approval that a map runs needs no routes: the map continues.
func (p *parser) requiredOf(n *Node) []string {
	required := requiredFields[n.Type]
	if n.Type == ApprovalNode && p.branches[n.ID] {
		return slices.DeleteFunc(slices.Clone(required), func(key string) bool { return key == "routes" || key == "on_other" })
	}
	return required
}

// assignees reads who may answer a question: one in assignee, or several in assignees.
func assignees(m *yamldoc.Map) []string {
	var one string
	var several []string
	alone := m.Str("assignee", &one)
	m.Strs("assignees", &several)
	switch {
	case alone && m.Has("assignees"):
		m.Get("assignee").Errorf("assignee stands beside assignees").Hint = "keep assignees: it takes any number of names"
	case alone:
		return []string{one}
	}
	return several
}

// expires reads until when a question can be answered.
func (p *parser) expires(n *Node, m *yamldoc.Map) {
	var text string
	if !m.Text("expires", &text) {
		return
	}
	t := ParseTemplate(text)
	if n.Expires = &t; len(t.Roots()) == 0 && !strings.Contains(text, "{{") {
		if _, _, err := ParseExpiry(text); err != nil {
			m.Get("expires").Errorf("%v", err).Hint = `write when it ends: "2026-12-24T18:00:00Z", the span since it is asked: 36h, or a template that gives one of them`
		}
	}
}
