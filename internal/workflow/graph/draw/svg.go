package draw

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/draw/layered"
)

// State is what became of a node in a run. The empty State is that of a node the run has not
// reached.
type State string

// The states.
const (
	Done    State = "done"
	Running State = "running"
	Failed  State = "failed"
	Waiting State = "waiting" // for a human
	Skipped State = "skipped" // the run has ended and did not reach the node
)

// states are those with a badge, and what it shows, in a circle around (0, 0).
var states = [...]struct {
	state State
	path  string
}{
	{Done, "M-4 .3-1.2 3 4-3"},
	{Running, "M-2-4 4 0-2 4Z"},
	{Failed, "M-3-3 3 3M3-3-3 3"},
	{Waiting, "M-2-3.5V3.5M2-3.5V3.5"},
	{Skipped, "M-3.5 0H3.5"},
}

// SVGOptions configures [SVG]. The zero value is for a page that has [Style].
type SVGOptions struct {
	Standalone bool             // with a style sheet, a background, and the name of the graph above it
	States     map[string]State // by id of the node; nil if the picture is not about a run
	Taken      map[string]bool  // edges of the graph that the run took, by id, see [graph.Edge.ID]
	Depth      int              // of open subgraphs, which are boxes in boxes; 0 folds all
}

// SVG returns g as a laid-out picture that looks the same in light and in dark. It has no
// ids, no scripts, no links and, unless it stands alone, no styles, so that it can
// be part of a page. There each node is
//
//	<g class="node llm done" data-node="ID">
//
// with its type, or "missing", and its state, if it has one, and each arrow
//
//	<g class="edge next" data-from="ID" data-to="ID" data-edges="ID">
//
// with the ids of the edges of the graph that it draws, a line feed between them, its kind (next, parallel, route, fallback, compensate or branch), data-label if it has a label,
// "back" if it closes a loop, and "taken" if the run went that way.
func SVG(g *graph.Graph, o SVGOptions) []byte {
	s := &svg{picture: newPicture(g, o.Depth), options: o}
	s.arrange()
	s.write(g.Description)
	return []byte(s.b.String())
}

// svg writes a picture.
type svg struct {
	*picture
	options SVGOptions
	b       strings.Builder
	cards   []card // by index of the node
	boxes   []layered.Box
	arrows  []layered.Arrow
	edges   []drawnEdge // by index of the arrow; the first has no origin
	w, h    float64
}

type drawnEdge struct {
	from *node // nil for the arrow to the start
	edge
	label string // as shown
}

// Sizes in pixels.
const (
	idSize    = 13.0
	smallSize = 10.5
	aboutSize = 12.0
	titleSize = 17.0
	lineStep  = 16.0
	maxText   = 200.0 // width of an id, which then continues on a second line
	maxLabel  = 150.0
	iconSize  = 16.0
	dotSize   = 14.0
	margin    = 24.0
)

// arrange lays out the picture: the boxes are the mark of the start and then the nodes.
func (s *svg) arrange() {
	s.boxes = append(s.boxes, layered.Box{W: dotSize, H: dotSize})
	s.edges = append(s.edges, drawnEdge{edge: edge{to: s.start}})
	s.arrows = append(s.arrows, layered.Arrow{From: 0, To: s.start.index + 1})
	for _, n := range s.nodes {
		c := newCard(n, s.options)
		s.cards = append(s.cards, c)
		s.boxes = append(s.boxes, c.box)
	}
	for _, n := range s.nodes {
		for _, e := range n.out {
			a := layered.Arrow{From: n.index + 1, To: e.to.index + 1, Aside: e.kind >= fallback}
			d := drawnEdge{from: n, edge: e, label: cutWidth(e.label, smallSize, maxLabel)}
			if d.label != "" {
				a.LabelW, a.LabelH = textWidth(d.label, smallSize)+14, 18
			}
			s.edges, s.arrows = append(s.edges, d), append(s.arrows, a)
		}
	}
	s.w, s.h = layered.Arrange(s.boxes, s.arrows)
}

func (s *svg) write(description string) {
	top, width := margin, s.w+2*margin
	name := printable(s.name)
	var about []string
	if s.options.Standalone {
		width = max(width, 320)
		if s.name != "" {
			top += 30
		}
		if description = strings.Join(strings.Fields(description), " "); description != "" {
			about = wrapWidth(printable(description), aboutSize, width-2*margin)
		}
		top += lineStep * float64(len(about))
	}
	height := top + s.h + margin
	title := "graph"
	if s.name != "" {
		title += " " + name
	}
	s.printf(`<svg xmlns="http://www.w3.org/2000/svg" class="graph" viewBox="0 0 %s %s" width="%s" height="%s" role="img" aria-label="%s">`+"\n",
		num(width), num(height), num(width), num(height), xmlText(title))
	if s.options.Standalone {
		s.printf("<style>\n%s</style>\n", standaloneStyle())
		s.printf(`<rect class="paper" width="%s" height="%s" rx="12"/>`+"\n", num(width), num(height))
		y := margin + 14
		if s.name != "" {
			s.printf(`<text class="title" x="%s" y="%s">%s</text>`+"\n", num(margin), num(y), xmlText(cutWidth(name, titleSize*boldFactor, width-2*margin)))
			y += 20
		}
		for _, line := range about {
			s.printf(`<text class="about" x="%s" y="%s">%s</text>`+"\n", num(margin), num(y), xmlText(line))
			y += lineStep
		}
	}
	s.writePicture((width-s.w)/2, top)
	s.b.WriteString("</svg>\n")
}

// writePicture writes what was laid out, with its upper left corner there.
func (s *svg) writePicture(x, y float64) {
	s.printf(`<g transform="translate(%s %s)">`+"\n", num(x), num(y))
	for i := range s.arrows {
		s.writeEdge(i)
	}
	dot := s.boxes[0]
	s.printf(`<circle class="start" cx="%s" cy="%s" r="%s"/>`+"\n", num(dot.X), num(dot.Y+dot.H/2), num(dotSize/2))
	for _, n := range s.nodes {
		s.writeNode(n)
	}
	s.b.WriteString("</g>\n")
}

func (s *svg) printf(format string, args ...any) { fmt.Fprintf(&s.b, format, args...) }

func (s *svg) writeEdge(i int) {
	e, a := s.edges[i], s.arrows[i]
	class := "edge " + kindNames[e.kind]
	if a.Back {
		class += " back"
	}
	if s.taken(e) {
		class += " taken"
	}
	s.printf(`<g class="%s"`, class)
	if e.from != nil {
		s.printf(` data-from="%s"`, xmlText(e.from.id))
	}
	s.printf(` data-to="%s"`, xmlText(e.to.id))
	if len(e.ids) > 0 {
		s.printf(` data-edges="%s"`, xmlText(strings.Join(e.ids, "\n")))
	}
	if e.edge.label != "" {
		s.printf(` data-label="%s"`, xmlText(e.edge.label))
	}
	tip := a.Path[len(a.Path)-1][3]
	s.printf(`><path class="line" d="%s"/><path class="head" d="M%s %sl-4.5-8.5q4.5 2 9 0z"/>`, pathData(a.Path), num(tip.X), num(tip.Y))
	if e.label != "" {
		x, y := a.LabelX, a.LabelY
		s.printf(`<rect class="tag" x="%s" y="%s" width="%s" height="%s" rx="9"/>`, num(x-a.LabelW/2), num(y-a.LabelH/2), num(a.LabelW), num(a.LabelH))
		if e.label != e.edge.label {
			s.printf("<title>%s</title>", xmlText(e.edge.label))
		}
		s.printf(`<text class="label" x="%s" y="%s">%s</text>`, num(x), num(y+3.6), xmlText(e.label))
	}
	s.b.WriteString("</g>\n")
}

// taken reports whether the run took an edge, or began with it.
func (s *svg) taken(e drawnEdge) bool {
	if e.from == nil {
		return s.options.States[e.to.id] != ""
	}
	return slices.ContainsFunc(e.ids, func(id string) bool { return s.options.Taken[id] })
}

var kindNames = [...]string{next: "next", parallel: "parallel", route: "route", fallback: "fallback", compensate: "compensate", branch: "branch"}

func (s *svg) writeNode(n *node) {
	c, box := s.cards[n.index], s.boxes[n.index+1]
	typ := string(n.typ())
	class, label := "node "+typ, printable(n.id)+", "+n.kindName()
	if !n.reachable {
		class += " unreachable"
		label += ", unreachable"
	}
	state := s.options.States[n.id]
	if state != "" {
		class += " " + string(state)
		label += ", " + string(state)
	}
	s.printf(`<g class="%s" data-node="%s" transform="translate(%s %s)" aria-label="%s">`, class, xmlText(n.id), num(box.X-box.W/2), num(box.Y), xmlText(label))
	title := printable(n.id) + " (" + n.terms() + ")"
	if !n.missing() && n.def.Description != "" {
		title += "\n" + printableLines(n.def.Description)
	}
	s.printf("<title>%s</title>", xmlText(title))
	s.b.WriteString(outline(typ, box.W, box.H))
	height := box.H + c.lower // of the part with the lines
	if c.inside != nil {
		height -= c.inside.h + frame
	}
	x := (box.W-c.content)/2 + iconSize + iconGap
	y := (height-lineStep*float64(len(c.lines)+len(c.small)))/2 + 12
	s.printf(`<path class="icon" transform="translate(%s %s)" d="%s"/>`, num((box.W-c.content)/2), num((height-iconSize)/2), icons[typ])
	for _, line := range c.lines {
		s.printf(`<text class="id" x="%s" y="%s">%s</text>`, num(x), num(y), xmlText(line))
		y += lineStep
	}
	for _, line := range c.small {
		s.printf(`<text class="type" x="%s" y="%s">%s</text>`, num(x), num(y-1), xmlText(line))
		y += lineStep - 2
	}
	s.writeBadge(state, box.W, c)
	s.b.WriteString("</g>\n")
	if c.inside != nil {
		c.inside.writePicture(box.X-c.inside.w/2, box.Y+height)
		s.b.WriteString(c.inside.b.String())
	}
}

// writeBadge shows the state. A page, whose states may change, gets the badges of all of them,
// and shows one.
func (s *svg) writeBadge(state State, w float64, c card) {
	if s.options.Standalone && state == "" {
		return
	}
	s.printf(`<g class="badge" transform="translate(%s %s)"><circle r="9"/>`, num(w-c.box.Inset/2), num(c.lower/2+1))
	for _, b := range states {
		if s.options.Standalone && b.state != state {
			continue
		}
		s.printf(`<path class="%s" d="%s"/>`, b.state, b.path)
	}
	s.b.WriteString("</g>")
}

// pathData returns the curves as the d of a path. It ends a little before the tip, which the head
// covers.
func pathData(curves []layered.Curve) string {
	var b strings.Builder
	for i, c := range curves {
		if i == len(curves)-1 {
			c[3].Y -= 6
			if c[2].Y > c[3].Y {
				c[2].Y = c[3].Y
			}
		}
		if i == 0 {
			fmt.Fprintf(&b, "M%s %s", num(c[0].X), num(c[0].Y))
		}
		switch {
		case c[1] == c[0] && c[0].X == c[3].X:
			fmt.Fprintf(&b, "V%s", num(c[3].Y))
		case c[1] == c[0] && c[0].Y == c[3].Y:
			fmt.Fprintf(&b, "H%s", num(c[3].X))
		default:
			fmt.Fprintf(&b, "C%s %s %s %s %s %s", num(c[1].X), num(c[1].Y), num(c[2].X), num(c[2].Y), num(c[3].X), num(c[3].Y))
		}
	}
	return b.String()
}

// num returns f with at most one decimal.
func num(f float64) string {
	f = math.Round(f*10) / 10
	if f == 0 {
		return "0" // not "-0"
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// xmlText returns s for the text of an element or the value of an attribute between double
// quotes. What XML cannot hold is replaced.
func xmlText(s string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, string(utf8.RuneError)) {
		switch {
		case r < ' ' && !strings.ContainsRune("\t\n\r", r), r == 0xFFFE, r == 0xFFFF:
			b.WriteRune(utf8.RuneError)
		case strings.ContainsRune("&<>\"'", r), !strconv.IsPrint(r): // a terminal that shows the file obeys none
			fmt.Fprintf(&b, "&#%d;", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// printableLines returns each line of s as printable does, without the white space around it.
func printableLines(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	for i, line := range lines {
		if line = strings.TrimSpace(line); line != "" {
			line = printable(line)
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}
