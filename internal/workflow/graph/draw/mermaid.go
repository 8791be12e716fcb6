package draw

import (
	"fmt"
	"strings"
	"unicode"

	"loki/internal/base/text"
	"loki/internal/workflow/graph"
)

// labelWidth is the number of characters of an edge's label in a laid-out picture.
const labelWidth = 60

// Mermaid returns g as a Mermaid flowchart, which GitHub and many editors draw. Subgraphs are open down to a depth; 0 folds all.
func Mermaid(g *graph.Graph, depth int) string {
	p := newPicture(g, depth)
	var b mermaid
	if p.name != "" {
		// A JSON string is also a YAML string.
		fmt.Fprintf(&b, "---\ntitle: %s\n---\n", jsonString(printable(p.name)))
	}
	b.WriteString("flowchart TD\n")
	b.picture(p, "  ")
	if b.unreachable {
		b.WriteString("  classDef unreachable color:#888,stroke:#888,stroke-dasharray:4 4\n")
	}
	if b.missing {
		b.WriteString("  classDef missing color:#c00,stroke:#c00,stroke-dasharray:4 4\n")
	}
	return b.String()
}

// mermaid writes a flowchart.
type mermaid struct {
	strings.Builder
	unreachable, missing bool // there are such nodes
}

// picture writes the nodes and edges of p. All of it stands together, since what is first named between subgraph and end is inside.
func (b *mermaid) picture(p *picture, indent string) {
	start := "start"
	if p.outer != nil {
		start += "_" + mermaidID(p.outer)
	}
	fmt.Fprintf(b, "%s%s((\" \")) --> %s\n", indent, start, mermaidID(p.start))
	for _, n := range p.nodes {
		class := ""
		switch {
		case n.missing():
			class, b.missing = "missing", true
		case !n.reachable:
			class, b.unreachable = "unreachable", true
		}
		id := mermaidID(n)
		if n.inside != nil {
			fmt.Fprintf(b, "%ssubgraph %s[\"%s (%s)\"]\n", indent, id, mermaidText(printable(n.id)), mermaidText(n.kindName()))
			b.picture(n.inside, indent+"  ")
			b.WriteString(indent + "end\n")
			if class != "" {
				fmt.Fprintf(b, "%sclass %s %s\n", indent, id, class)
			}
			continue
		}
		if class != "" {
			class = ":::" + class
		}
		b.WriteString(indent + id + mermaidShape(n) + class + "\n")
	}
	for _, n := range p.nodes {
		id := mermaidID(n)
		for _, e := range n.out {
			fmt.Fprintf(b, "%s%s %s %s\n", indent, id, mermaidArrow(e), mermaidID(e.to))
		}
		if n.dynamic() {
			fmt.Fprintf(b, "%s%s -.- next_%s>\"%s\"]\n", indent, id, id, mermaidText(dynamicNote))
		}
	}
}

const dynamicNote = "chosen by the script (_next)"

// mermaidID returns a name for n that cannot be taken for a word of the language,
// as "end" or "default" could, and that is readable where the id allows it.
func mermaidID(n *node) string {
	name := strings.Map(func(r rune) rune {
		if r == '_' || r <= unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return -1
	}, n.id)
	if name == n.id {
		return "n_" + name
	}
	return fmt.Sprintf("x%d_%s", n.number, name)
}

func mermaidShape(n *node) string {
	brackets := looks[n.typ()].mermaid
	return fmt.Sprintf(`%s"%s<br/>(%s)"%s`, brackets[0], mermaidText(printable(n.id)), mermaidText(n.kindName()), brackets[1])
}

func mermaidArrow(e edge) string {
	line := "-->"
	switch e.kind {
	case parallel, branch:
		line = "==>"
	case fallback, compensate:
		line = "-.->"
	}
	if e.label == "" {
		return line
	}
	return fmt.Sprintf(`%s|"%s"|`, line, mermaidText(text.CutRunes(e.label, labelWidth)))
}

// mermaidText returns s for use between double quotes. Letters, digits and the
// punctuation of ordinary sentences stay; the rest becomes entities in Mermaid's
// notation, since quotes, comments, directives, Markdown and HTML all would be acted
// upon.
func mermaidText(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == ' ' || r > unicode.MaxASCII || unicode.IsLetter(r) || unicode.IsDigit(r),
			strings.ContainsRune("_,:?!/'()", r), r == '-' && i > 0:
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "#%d;", r)
		}
	}
	return b.String()
}
