package render

import (
	"slices"
	"strings"
	"time"

	"loki/internal/llm/event"
)

// openWait is a question that has no answer, or a wait of a node that is not over.
type openWait struct {
	node string // of the outermost graph, or of a subgraph of it, that waits or whose agents ask
	id   string
	text string // what for
}

// within reports whether w is a wait of the node called name, of its subgraph, or of an item of it.
func (w openWait) within(name string) bool {
	rest, ok := strings.CutPrefix(w.node, name)
	return ok && (rest == "" || rest[0] == '/' || rest[0] == '#')
}

// noteWaits keeps n.waits.
func (n *Narrator) noteWaits(ev event.Event) {
	drop := func(over func(openWait) bool) { n.waits = slices.DeleteFunc(n.waits, over) }
	add := func(id, text string) {
		drop(func(w openWait) bool { return w.id == id })
		n.waits = append(n.waits, openWait{n.outermost(ev.Source), id, text})
	}
	switch b := ev.Body.(type) {
	case event.Started:
		if ev.AgentID == "" {
			n.waits = nil
		}
	case event.Question:
		add(b.ID, "for an answer")
	case event.Waiting:
		add(b.ID, waitsFor(b))
	case event.Answer:
		drop(func(w openWait) bool { return w.id == b.ID })
	case event.Signal:
		drop(func(w openWait) bool { return w.id == b.ID })
	case event.NodeFinished:
		if !b.Waiting && ev.AgentID == "" && ev.Item == nil {
			drop(func(w openWait) bool { return w.within(ev.Node) })
		}
	}
}

// outermost returns the node of the graph that the user started which src belongs to.
func (n *Narrator) outermost(src event.Source) string {
	if src.AgentID == "" {
		return src.Node
	}
	m := n.tree.byID[src.AgentID]
	for m != nil && m.Parent != nil && m.Parent.ID != "" {
		m = m.Parent
	}
	if m == nil {
		return ""
	}
	return m.Node
}

// waitsOf returns what the node of ev waits for, to be shown after its name.
func (n *Narrator) waitsOf(ev event.Event) string {
	var parts []string
	for _, w := range n.waits {
		if w.within(n.outermost(ev.Source)) && !slices.Contains(parts, w.text) {
			parts = append(parts, w.text)
		}
	}
	if len(parts) == 0 { // for its provider, say: the error says more
		return "waits"
	}
	return "waits " + oneLine(strings.Join(parts, "; "), shortLimit)
}

// waitsFor says what a node waits for that asks no question.
func waitsFor(b event.Waiting) string {
	var parts []string
	if b.Signal != "" {
		parts = append(parts, "for signal "+oneLine(b.Signal, shortLimit))
	}
	if !b.Until.IsZero() {
		parts = append(parts, "until "+b.Until.Local().Format(time.DateTime))
	}
	return strings.Join(parts, ", ")
}
