package draw

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"loki/internal/graph"
	"loki/internal/text"
	"loki/internal/value"
)

// DOT returns g in the language of Graphviz.
func DOT(g *graph.Graph) string {
	p := newPicture(g)
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n", dotString(printable(p.name)))
	b.WriteString("  node [fontname=\"Helvetica\", fontsize=11];\n")
	b.WriteString("  edge [fontname=\"Helvetica\", fontsize=10];\n")
	b.WriteString("  {\n    node [shape=circle, style=filled, fillcolor=black, label=\"\", width=0.15];\n    start;\n  }\n")
	fmt.Fprintf(&b, "  start -> %s;\n", dotID(p.start))
	for _, n := range p.nodes {
		fmt.Fprintf(&b, "  %s [label=%s, %s];\n", dotID(n), dotLabel(printable(n.id)+"\n("+n.kindName()+")"), dotShape(n))
	}
	for _, n := range p.nodes {
		for _, e := range n.out {
			fmt.Fprintf(&b, "  %s -> %s%s;\n", dotID(n), dotID(e.to), dotEdge(e))
		}
		if n.dynamic() {
			note := dotString("next:" + n.id)
			fmt.Fprintf(&b, "  %s [label=%s, shape=note];\n", note, dotString(dynamicNote))
			fmt.Fprintf(&b, "  %s -> %s [style=dotted, arrowhead=none];\n", dotID(n), note)
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// dotID keeps the ids of nodes apart from the names the picture itself uses.
func dotID(n *node) string { return dotString("node:" + n.id) }

func dotShape(n *node) string {
	if n.missing() {
		return `shape=box, style=dashed, color="#cc0000", fontcolor="#cc0000"`
	}
	shape, style := "box", ""
	switch n.def.Type {
	case graph.LLMNode:
		style = "rounded"
	case graph.AgentNode:
		shape = "box3d"
	case graph.ApprovalNode:
		shape = "diamond"
	case graph.InputNode:
		shape = "parallelogram"
	case graph.RAGNode:
		shape = "cylinder"
	case graph.MapNode:
		shape = "hexagon"
	case graph.ToolNode:
		shape = "component"
	case graph.WaitNode:
		shape = "octagon"
	case graph.EndNode:
		shape = "oval, peripheries=2"
	}
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

func dotEdge(e edge) string {
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
	if len(attrs) == 0 {
		return ""
	}
	return " [" + strings.Join(attrs, ", ") + "]"
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
