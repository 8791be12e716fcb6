package draw

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"loki/internal/base/text"
	"loki/internal/workflow/graph"
)

// DefaultWidth is the width of a [Text] for which none is given, in columns.
const DefaultWidth = 80

// minWidth is the least width of what is inside a subgraph. What stands further to the right is cut.
const minWidth = 20

// Text returns g as lines of at most width columns; 0 means [DefaultWidth].
//
//	▸ plan (llm)
//	  ├─ search (agent) -> merge
//	  └─ read (rag) -> merge
//	• merge (script)
//	↓ check (approval)
//	  ├─ yes: publish (llm) -> done
//	  └─ other -> done
//	• done (end)
//
// Every node has one line of its own; other mentions are "-> id". What can be reached
// only through one edge of a node stands below it, indented. Where branches meet
// again, the meeting node stands at the level of the node they parted from. ↓ marks
// the next of the line above it at the same level, • any other node. Branches that
// are too deep for the width continue further down, and so do unreachable nodes.
//
// Subgraphs are open down to a depth; 0 folds all. What is inside one is behind a dotted line:
//
//	▸ write (graph)
//	  ┊ ▸ write/draft (llm)
//	  ┊ • write/done (end)
//	  └─ fallback -> sorry
func Text(g *graph.Graph, width, depth int) string {
	if width <= 0 {
		width = DefaultWidth
	}
	return pictureText(newPicture(g, depth), width)
}

func pictureText(p *picture, width int) string {
	t := &texter{width: width, placed: map[*node]bool{}}
	t.region(p.start, "▸ ")
	var rest []*node
	for _, n := range p.nodes {
		if !n.reachable && !n.missing() && !t.placed[n] {
			rest = append(rest, n)
		}
	}
	if len(rest) > 0 {
		t.b.WriteString("\nunreachable:\n")
	}
	for _, n := range roots(rest) {
		if !t.placed[n] {
			t.region(n, "• ")
		}
	}
	return t.b.String()
}

// roots returns nodes with those first that no other node leads to.
func roots(nodes []*node) []*node {
	entered := map[*node]bool{}
	for _, n := range nodes {
		for _, e := range n.out {
			if e.to != n {
				entered[e.to] = true
			}
		}
	}
	var first, last []*node
	for _, n := range nodes {
		if entered[n] {
			last = append(last, n)
		} else {
			first = append(first, n)
		}
	}
	return append(first, last...)
}

// texter writes a [Text].
type texter struct {
	b        strings.Builder
	width    int
	placed   map[*node]bool // drawn, or to be drawn in the current region
	tree     *dominators    // of the current region
	children map[*node][]*node
	deferred []*node // heads of branches that continue further down
}

// region draws everything that root leads to and is not drawn yet.
func (t *texter) region(root *node, marker string) {
	t.tree = newDominators(root, func(n *node) bool { return !t.placed[n] && !n.missing() })
	t.children = t.tree.children()
	for _, n := range t.tree.order {
		t.placed[n] = true
	}
	t.column(root, marker, "  ", "")
	for len(t.deferred) > 0 {
		head := t.deferred[0]
		t.deferred = t.deferred[1:]
		t.b.WriteByte('\n')
		t.column(head, "• ", "  ", "")
	}
}

// column draws head and what stands at the same level. The first line begins with
// first, the lines of head's branches with hang, and the other lines with rest.
func (t *texter) column(head *node, first, hang, rest string) {
	nodes := t.level(nil, head)
	follows := false // the node is the next of the line above
	for i, n := range nodes {
		if i > 0 {
			first, hang = rest+"• ", rest+"  "
			if follows {
				first = rest + "↓ "
			}
		}
		line := printable(n.id) + " (" + n.terms() + ")"
		to := t.next(n)
		follows = to != nil && i+1 < len(nodes) && nodes[i+1] == to
		switch {
		case to != nil && !follows:
			line += " -> " + mention(to)
		case n.dynamic():
			line += " -> " + dynamicNote
		}
		t.line(first + line)
		if n.inside != nil {
			t.inside(n.inside, hang+"┊ ")
		}
		t.branches(n, hang)
	}
}

// inside draws an open subgraph. Its lines begin with indent.
func (t *texter) inside(p *picture, indent string) {
	width := max(t.width-ansi.StringWidth(indent), minWidth)
	for line := range strings.Lines(pictureText(p, width)) {
		t.line(strings.TrimRight(indent+strings.TrimSuffix(line, "\n"), " "))
	}
}

// level appends the nodes at the level of n, n first: what follows it without a
// choice, then the places where its branches meet.
func (t *texter) level(list []*node, n *node) []*node {
	list = append(list, n)
	if to := t.next(n); to != nil && t.owns(n, to) {
		list = t.level(list, to)
	}
	for _, c := range t.children[n] {
		if !t.owns(n, c) {
			list = t.level(list, c)
		}
	}
	return list
}

// next returns where n goes after its work, nil if there is no or no single such
// node.
func (t *texter) next(n *node) *node {
	for _, e := range n.out {
		if e.kind == next {
			return e.to
		}
	}
	return nil
}

// owns reports whether the only way to c is one edge of n.
func (t *texter) owns(n, c *node) bool { return t.tree.parent[c] == n && t.tree.in[c] == 1 }

// branches draws the edges of n but for its next.
func (t *texter) branches(n *node, indent string) {
	var edges []edge
	for _, e := range n.out {
		if e.kind != next {
			edges = append(edges, e)
		}
	}
	for i, e := range edges {
		connector, below := "├─ ", "│  "
		if i == len(edges)-1 {
			connector, below = "└─ ", "   "
		}
		label := text.CutRunes(e.label, max(t.width/3, 8))
		switch {
		case !t.owns(n, e.to):
			t.line(indent + connector + strings.TrimLeft(label+" -> ", " ") + mention(e.to))
		case ansi.StringWidth(indent) > t.width/2:
			t.line(indent + connector + strings.TrimLeft(label+" -> ", " ") + mention(e.to))
			t.deferred = append(t.deferred, e.to)
		default:
			if label != "" {
				label += ": "
			}
			t.column(e.to, indent+connector+label, indent+below, indent+below)
		}
	}
}

func mention(n *node) string {
	if n.missing() {
		return printable(n.id) + " (missing)"
	}
	return printable(n.id)
}

func (t *texter) line(s string) {
	t.b.WriteString(text.CutColumns(s, t.width))
	t.b.WriteByte('\n')
}
