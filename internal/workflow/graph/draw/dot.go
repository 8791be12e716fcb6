package draw

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/workflow/graph"
)

// DOT returns g in the language of Graphviz. Subgraphs are open down to a depth; 0 folds all.
func DOT(g *graph.Graph, depth int) string {
	p := newPicture(g, depth)
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n", dotString(printable(p.name)))
	b.WriteString("  node [fontname=\"Helvetica\", fontsize=11];\n")
	b.WriteString("  edge [fontname=\"Helvetica\", fontsize=10];\n")
	if slices.ContainsFunc(p.nodes, func(n *node) bool { return n.inside != nil }) {
		b.WriteString("  compound=true;\n") // edges may end at a box
	}
	dotPicture(&b, p, "  ")
	b.WriteString("}\n")
	return b.String()
}

// dotPicture writes the nodes and edges of p.
func dotPicture(b *strings.Builder, p *picture, indent string) {
	printf := func(format string, args ...any) { fmt.Fprintf(b, indent+format+";\n", args...) }
	b.WriteString(indent + "{\n")
	printf(`  node [shape=circle, style=filled, fillcolor=black, label="", width=0.15]`)
	printf("  %s", dotStart(p))
	b.WriteString(indent + "}\n")
	dotArrow(printf, dotStart(p), nil, p.start, nil)
	for _, n := range p.nodes {
		if n.inside == nil {
			printf("%s [label=%s, %s]", dotID(n), dotLabel(printable(n.id)+"\n("+n.kindName()+")"), dotShape(n))
			continue
		}
		b.WriteString(indent + "subgraph " + dotName("cluster", n) + " {\n")
		printf("  label=%s", dotLabel(printable(n.id)+" ("+n.kindName()+")"))
		printf("  fontname=\"Helvetica\"")
		printf("  fontsize=11")
		if style := "rounded"; n.reachable {
			printf("  style=%s", style)
		} else {
			printf("  style=\"%s,dashed\"", style)
		}
		dotPicture(b, n.inside, indent+"  ")
		b.WriteString(indent + "}\n")
	}
	for _, n := range p.nodes {
		for _, e := range n.out {
			dotArrow(printf, dotLast(n), n, e.to, dotEdge(e))
		}
		if n.dynamic() {
			note := dotName("next", n)
			printf("%s [label=%s, shape=note]", note, dotString(dynamicNote))
			printf("%s -> %s [style=dotted, arrowhead=none]", dotID(n), note)
		}
	}
}

// dotArrow writes an edge to a node, from the mark of the node from, nil for the mark of the start. It begins and ends at the
// boxes of open subgraphs, but for one from such a box to itself, which Graphviz draws in the box only.
func dotArrow(printf func(format string, args ...any), tail string, from, to *node, attrs []string) {
	if from != nil && from != to && from.inside != nil {
		attrs = append(attrs, "ltail="+dotName("cluster", from))
	}
	if from != to && to.inside != nil {
		attrs = append(attrs, "lhead="+dotName("cluster", to))
	}
	list := ""
	if len(attrs) > 0 {
		list = " [" + strings.Join(attrs, ", ") + "]"
	}
	printf("%s -> %s%s", tail, dotID(to), list)
}

// dotName returns a name for what belongs to n. It keeps the ids of nodes apart from the names the picture itself uses, and from
// those of nodes in subgraphs.
func dotName(what string, n *node) string {
	if strings.Contains(n.id, "/") {
		what += " " + strconv.Itoa(n.number)
	}
	return dotString(what + ":" + n.id)
}

// dotID names n, or the mark of the start of its open subgraph: clusters are no ends of edges.
func dotID(n *node) string {
	if n.inside != nil {
		return dotStart(n.inside)
	}
	return dotName("node", n)
}

// dotLast is dotID for edges that leave n. What comes behind an open subgraph stands below one of its ends.
func dotLast(n *node) string {
	if n.inside != nil {
		for _, end := range n.inside.nodes {
			if !end.missing() && end.def.Type == graph.EndNode {
				return dotID(end)
			}
		}
	}
	return dotID(n)
}

func dotStart(p *picture) string {
	if p.outer == nil {
		return "start"
	}
	return dotName("start", p.outer)
}

func dotShape(n *node) string {
	if n.missing() {
		return `shape=box, style=dashed, color="#cc0000", fontcolor="#cc0000"`
	}
	shape, style := looks[n.typ()].dot, looks[n.typ()].dotStyle
	attrs := "shape=" + shape
	if !n.reachable {
		style = strings.TrimPrefix(style+",dashed", ",")
		attrs += `, color="#888888", fontcolor="#888888"`
	}
	if style != "" {
		attrs += `, style="` + style + `"`
	}
	return attrs
}

func dotEdge(e edge) []string {
	var attrs []string
	switch e.kind {
	case parallel, branch:
		attrs = append(attrs, "penwidth=2")
	case fallback:
		attrs = append(attrs, "style=dashed")
	case compensate:
		attrs = append(attrs, "style=dotted")
	}
	if e.label != "" {
		attrs = append(attrs, "label="+dotLabel(text.CutRunes(e.label, labelWidth)))
	}
	return attrs
}

// dotLabel returns s as a label, in which HTML entities are replaced.
func dotLabel(s string) string { return dotString(strings.ReplaceAll(s, "&", "&amp;")) }

// dotString returns s as a quoted string. A backslash begins an escape. What a terminal would
// not show, or obey, is written as its number.
func dotString(s string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		if r == 0 || r == '\n' || unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
	}
	s = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\x00", "\uFFFD").Replace(b.String())
	return `"` + s + `"`
}

func jsonString(s string) string { return value.Of(s).String() }
