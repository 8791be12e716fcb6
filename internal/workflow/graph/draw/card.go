package draw

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/draw/layered"
)

// card is what an SVG shows of a node: an icon on the left, lines on the right.
type card struct {
	lines   []string // the id
	small   []string // the type, and notes
	content float64  // width of icon and lines
	lower   float64  // how much lower than the middle of the box the content stands, twice
	inside  *svg     // an open subgraph, below the lines
	box     layered.Box
}

const (
	iconGap = 9.0
	frame   = 18.0 // between the border of an open subgraph and what is inside
)

func newCard(n *node, o SVGOptions) card {
	c := card{lines: idLines(printable(n.id)), small: []string{n.kindName()}}
	if n.dynamic() {
		c.small = append(c.small, "next: chosen by the script")
	}
	for _, line := range c.lines {
		c.content = max(c.content, textWidth(line, idSize)*boldFactor)
	}
	for _, line := range c.small {
		c.content = max(c.content, textWidth(line, smallSize))
	}
	c.content += iconSize + iconGap
	l := looks[n.typ()]
	c.lower = l.lower
	c.box = layered.Box{
		W:     max(c.content+2*l.padding, 96),
		H:     lineStep*float64(len(c.lines)+len(c.small)) + 14 + c.lower,
		Inset: l.inset,
	}
	if n.inside != nil {
		c.inside = &svg{picture: n.inside, options: o}
		c.inside.arrange()
		c.box.W = max(c.box.W, c.inside.w+2*frame)
		c.box.H += c.inside.h + frame
	}
	return c
}

// idLines cuts an id that is too wide into two lines, after a sign where there is one.
func idLines(id string) []string {
	limit := maxText / boldFactor
	if textWidth(id, idSize) <= limit {
		return []string{id}
	}
	first := prefixWidth(id, idSize, limit)
	if i := strings.LastIndexAny(id[:first], "_-./: "); i > first/3 {
		first = i + 1
	}
	return []string{strings.TrimRight(id[:first], " "), cutWidth(id[first:], idSize, limit)}
}

// boldFactor is how much wider ids are than other text.
const boldFactor = 1.08

// advance holds the widths of the characters from ' ' to '~' in hundredths of the size of the
// font. They are those of DejaVu Sans, which is wider than other common fonts, so that
// texts fit whichever font a viewer has.
var advance = [...]uint8{
	32, 41, 46, 84, 64, 96, 78, 28, 40, 40, 50, 84, 32, 37, 32, 34,
	64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 34, 34, 84, 84, 84, 54,
	100, 69, 69, 70, 77, 64, 58, 78, 76, 30, 30, 66, 56, 87, 75, 79,
	61, 79, 70, 64, 62, 74, 69, 99, 69, 62, 69, 40, 34, 40, 84, 50,
	50, 62, 64, 55, 64, 62, 36, 64, 64, 28, 28, 58, 28, 98, 64, 62,
	64, 64, 42, 53, 40, 64, 60, 82, 60, 60, 53, 64, 34, 64, 84,
}

func runeWidth(r rune) float64 {
	if i := int(r) - ' '; i >= 0 && i < len(advance) {
		return float64(advance[i]) / 100
	}
	switch ansi.StringWidth(string(r)) {
	case 0:
		return 0
	case 1:
		return 0.72
	default:
		return 1.1
	}
}

// textWidth returns the width of s in a font of that size, or a little more.
func textWidth(s string, size float64) float64 {
	w := 0.0
	for _, r := range s {
		w += runeWidth(r)
	}
	return w * size
}

// prefixWidth returns the number of bytes of s that fit into width, at least those of one
// character.
func prefixWidth(s string, size, width float64) int {
	w := 0.0
	for i, r := range s {
		if w += runeWidth(r) * size; w > width && i > 0 {
			return i
		}
	}
	return len(s)
}

// cutWidth returns s, or as much of it as fits into width with an ellipsis.
func cutWidth(s string, size, width float64) string {
	if textWidth(s, size) <= width {
		return s
	}
	return strings.TrimRight(s[:prefixWidth(s, size, width-size)], " ") + "…"
}

// wrapWidth returns the words of s in lines of that width, at most three.
func wrapWidth(s string, size, width float64) []string {
	var lines []string
	for s != "" {
		if len(lines) == 2 {
			return append(lines, cutWidth(s, size, width))
		}
		n := prefixWidth(s, size, width)
		if i := strings.LastIndexByte(s[:n], ' '); n < len(s) && s[n] != ' ' && i > 0 {
			n = i
		}
		lines = append(lines, strings.TrimRight(s[:n], " "))
		s = strings.TrimLeft(s[n:], " ")
	}
	return lines
}

// icons are drawn in squares of 16 pixels, with lines.
var icons = map[string]string{
	"agent":    "M3 6.5H13V13.5H3ZM8 6.5V3.5M8 3.5A1 1 0 1 0 8 1.5 1 1 0 1 0 8 3.5M6 9.2V10.8M10 9.2V10.8M1 9.5V11M15 9.5V11",
	"script":   "M2 3.5 6.5 8 2 12.5M8 13H14",
	"approval": "M1.5 2.5H14.5V11H8L4.5 14V11H1.5ZM5 6.8 7.2 9 11 4.8",
	"input":    "M1.5 4.5H14.5V11.5H1.5ZM4.5 6.5V9.5",
	"llm":      "M8 1.5 9.7 6.3 14.5 8 9.7 9.7 8 14.5 6.3 9.7 1.5 8 6.3 6.3Z",
	"rag":      "M6.8 2A4.8 4.8 0 1 0 6.8 11.6 4.8 4.8 0 1 0 6.8 2M10.3 10.3 14.5 14.5",
	"map":      "M8 1.5 14.5 4.8 8 8 1.5 4.8ZM1.5 8 8 11.2 14.5 8M1.5 11.2 8 14.5 14.5 11.2",
	"tool":     "M10.2 1.8A3.8 3.8 0 0 0 6.2 6.9L1.8 11.3 4.7 14.2 9.1 9.8A3.8 3.8 0 0 0 14.2 5.8L11.8 8.2 7.8 4.2Z",
	"wait":     "M4 1.5H12M4 14.5H12M5 1.5V4.5L8 8 11 4.5V1.5M5 14.5V11.5L8 8 11 11.5V14.5",
	"graph":    "M1.5 2H14.5V14H1.5ZM5 4.5V6.5H9V4.5ZM7 9.5V11.5H11.5V9.5ZM7 6.5 9 9.5",
	"end":      "M3.5 14.5V2H12.5L10.5 5 12.5 8H3.5",
	"missing":  "M8 2.5V9.5M8 12.5V13.5",
}

// outline returns the shape of a node: rounded for a model, double for an agent, angular for a
// script, pointed for an approval, slanted for an input, a drum for a knowledge base, a
// stack for a map, with cut corners for a tool, waisted for a wait, framed for
// a graph, and a double pill for an end.
func outline(typ string, w, h float64) string {
	rect := func(class string, d, radius float64) string {
		return fmt.Sprintf(`<rect class="%s" x="%s" y="%s" width="%s" height="%s" rx="%s"/>`, class, num(d), num(d), num(w-2*d), num(h-2*d), num(radius))
	}
	path := func(class, d string, args ...any) string {
		for i, a := range args {
			args[i] = num(a.(float64))
		}
		return fmt.Sprintf(`<path class="`+class+`" d="`+d+`"/>`, args...)
	}
	switch graph.Type(typ) {
	case graph.LLMNode:
		return rect("shape", 0, 12)
	case graph.AgentNode:
		return rect("shape", 0, 12) + rect("inner", 3.5, 9)
	case graph.ApprovalNode:
		return path("shape", "M16 0H%sL%s %sL%s %sH16L0 %sZ", w-16, w, h/2, w-16, h, h/2)
	case graph.InputNode:
		return path("shape", "M14 0H%sL%s %sH0Z", w, w-14, h)
	case graph.RAGNode:
		return path("shape", "M0 6A%s 6 0 0 1 %s 6V%sA%s 6 0 0 1 0 %sZ", w/2, w, h-6, w/2, h-6) +
			path("inner", "M0 6A%s 6 0 0 0 %s 6", w/2, w)
	case graph.MapNode:
		card := func(class string, d float64) string {
			return fmt.Sprintf(`<rect class="%s" x="%s" y="%s" width="%s" height="%s" rx="6"/>`, class, num(d), num(8-d), num(w-8), num(h-8))
		}
		return card("shape behind", 8) + card("shape behind", 4) + card("shape", 0)
	case graph.ToolNode:
		return path("shape", "M9 0H%sL%s 9V%sL%s %sH9L0 %sV9Z", w-9, w, h-9, w-9, h, h-9)
	case graph.WaitNode:
		return path("shape", "M0 0H%sL%s %sL%s %sH0L10 %sZ", w, w-10, h/2, w, h, h/2)
	case graph.GraphNode:
		return rect("shape", 0, 6) + rect("inner", 4, 3)
	case graph.EndNode:
		return rect("shape", 0, h/2) + rect("inner", 3.5, h/2-3.5)
	default:
		return rect("shape", 0, 3)
	}
}
