// Package layered lays out boxes and the arrows between them, from top to bottom.
//
// A box is in a layer, below everything that leads to it. An arrow that would lead
// up closes a loop: it leaves its box at the bottom, goes up beside the boxes in a lane,
// and enters its target at the top like any other arrow. Between two layers is a gap. Arrows
// bend only in gaps and cross a layer vertically, at a place that is reserved for them
// like a box is. Labels are such places, too. So an arrow never touches a box that is
// not its own, and a label touches nothing.
//
// The steps are those of Sugiyama, Tagawa and Toda (Methods for Visual Understanding of
// Hierarchical System Structures, 1981): loops are opened, layers assigned, the order in
// the layers is chosen for few crossings, then coordinates. Equal input gives equal output.
package layered

import (
	"cmp"
	"slices"
)

// Box is a rectangle. All lengths of this package have the same
// unit, x grows to the right and y downwards.
type Box struct {
	W, H  float64 // size; Arrange makes W larger where many arrows meet
	Inset float64 // arrows keep that distance from the left and right end
	X, Y  float64 // set by Arrange: the middle of the top side
}

// Arrow leads from a box to another, or to the same one.
type Arrow struct {
	From, To       int     // indexes of boxes
	LabelW, LabelH float64 // size of the label; zero means none
	Aside          bool    // need not be straight where another arrow at the same box could be

	// Arrange sets the rest.
	Path           []Curve // from the bottom of From to the top of To, without gaps
	LabelX, LabelY float64 // middle of the label, on the path
	Back           bool    // closes a loop
}

// Point is a place.
type Point struct{ X, Y float64 }

// Curve is a cubic Bézier curve: start, two control points and end. A straight line has the
// control points on its ends.
type Curve [4]Point

// Distances.
const (
	boxSpace   = 32.0 // between boxes side by side
	passSpace  = 20.0 // between an arrow that passes and its neighbor
	labelSpace = 14.0 // between a label and its neighbor
	islands    = 48.0 // between parts that no arrow connects
	minWidth   = 760.0
)

// Arrange places the boxes and draws the arrows, and returns the size of the whole, whose
// upper left corner is (0, 0). The first box is where loops begin. Parts of the diagram
// that no arrow connects stand side by side.
func Arrange(boxes []Box, arrows []Arrow) (w, h float64) {
	widen(boxes, arrows)
	var shelf, x, height float64
	limit := minWidth
	for i, part := range parts(boxes, arrows) {
		l := newLayout(boxes, arrows, part)
		l.order()
		l.place()
		pw, ph := l.route()
		if i == 0 {
			limit = max(limit, pw)
		}
		if x > 0 && x+pw > limit {
			shelf, x, height = shelf+height+islands, 0, 0
		}
		l.move(x, shelf)
		x += pw
		w, height = max(w, x), max(height, ph)
		h = max(h, shelf+height)
		x += islands
	}
	return w, h
}

// portSpace is the usual distance between arrows that meet at a box.
const portSpace = 14.0

// widen makes boxes so wide that the arrows at them can be told apart.
func widen(boxes []Box, arrows []Arrow) {
	in, out := make([]int, len(boxes)), make([]int, len(boxes))
	for _, a := range arrows {
		out[a.From]++
		in[a.To]++
	}
	for i := range boxes {
		b := &boxes[i]
		b.W = max(b.W, 2*b.Inset+portSpace*float64(max(in[i], out[i])+1))
	}
}

// part is what arrows connect: indexes of boxes and of arrows, ascending.
type part struct{ boxes, arrows []int }

// parts returns the parts in the order of their first boxes.
func parts(boxes []Box, arrows []Arrow) []part {
	head := make([]int, len(boxes)) // union-find: a smaller box of the same part, or itself
	for i := range head {
		head[i] = i
	}
	find := func(i int) int {
		for head[i] != i {
			head[i] = head[head[i]]
			i = head[i]
		}
		return i
	}
	for _, a := range arrows {
		f, t := find(a.From), find(a.To)
		head[max(f, t)] = min(f, t)
	}
	var list []part
	index := map[int]int{}
	for i := range boxes {
		root := find(i)
		if root == i {
			index[i] = len(list)
			list = append(list, part{})
		}
		p := &list[index[root]]
		p.boxes = append(p.boxes, i)
	}
	for i, a := range arrows {
		p := &list[index[find(a.From)]]
		p.arrows = append(p.arrows, i)
	}
	return list
}

// vertex is a place in a layer.
type vertex struct {
	index    int // in layout.vertices
	kind     kind
	box      int // of a boxVertex
	arrow    int // of the others
	w, h     float64
	layer    int       // index into layout.layers
	pos      int       // index in the layer
	x        float64   // the middle
	up, down []*vertex // connected vertices in the layers above and below

	mainUp, mainDown []*vertex // the same without those of arrows that lead aside; set by simplify
}

// kind is what a vertex represents.
type kind int

const (
	boxVertex   kind = iota
	passVertex       // an arrow passes the layer
	labelVertex      // an arrow passes the layer, and its label stands there
	turnVertex       // a loop turns around; only there while the order is chosen
)

// passes reports whether an arrow goes through v.
func (v *vertex) passes() bool { return v.kind == passVertex || v.kind == labelVertex }

// space returns the least distance between the middles of neighbors.
func space(a, b *vertex) float64 {
	gap := passSpace
	switch {
	case a.kind == boxVertex && b.kind == boxVertex:
		gap = boxSpace
	case a.kind == labelVertex || b.kind == labelVertex:
		gap = labelSpace
	}
	return (a.w+b.w)/2 + gap
}

// layout is the work on one part.
type layout struct {
	boxes    []Box
	arrows   []Arrow
	part     part
	vertices []*vertex
	layers   [][]*vertex       // from top to bottom, each from left to right
	ofBox    map[int]*vertex   // by index of the box
	chains   map[int][]*vertex // by index of the arrow: from top to bottom; of a loop only its lane
}

// newLayout assigns the layers. Boxes are in layers with odd numbers; the layers between are for
// labels and for the turns of loops. Layers without vertices are left out.
func newLayout(boxes []Box, arrows []Arrow, p part) *layout {
	l := &layout{boxes: boxes, arrows: arrows, part: p, ofBox: map[int]*vertex{}, chains: map[int][]*vertex{}}
	ranks := l.ranks()
	last := 0
	for _, r := range ranks {
		last = max(last, r)
	}
	used := make([]bool, 2*last+3) // layers between that are needed
	for _, i := range p.arrows {
		a := &arrows[i]
		switch from, to := 2*ranks[a.From]+1, 2*ranks[a.To]+1; {
		case a.Back:
			used[to-1], used[from+1] = true, true
		case a.LabelW > 0:
			used[from+1] = true
		}
	}
	number := make([]int, len(used)) // index into l.layers, -1 for layers that are left out
	for i := range used {
		number[i] = -1
		if used[i] || i%2 == 1 {
			number[i] = len(l.layers)
			l.layers = append(l.layers, nil)
		}
	}
	for _, i := range p.boxes {
		l.ofBox[i] = l.add(&vertex{kind: boxVertex, box: i, w: boxes[i].W, h: boxes[i].H, layer: number[2*ranks[i]+1]})
	}
	for _, i := range p.arrows {
		l.chain(i, number)
	}
	return l
}

func (l *layout) add(v *vertex) *vertex {
	v.index = len(l.vertices)
	l.vertices = append(l.vertices, v)
	return v
}

func link(up, down *vertex) {
	up.down = append(up.down, down)
	down.up = append(down.up, up)
}

// chain makes the vertices of an arrow.
func (l *layout) chain(i int, number []int) {
	a := &l.arrows[i]
	from, to := l.ofBox[a.From], l.ofBox[a.To]
	pass := func(layer int, label bool) *vertex {
		v := &vertex{kind: passVertex, arrow: i, layer: layer}
		if label && a.LabelW > 0 {
			v.kind, v.w, v.h = labelVertex, a.LabelW, a.LabelH
		}
		return l.add(v)
	}
	var chain []*vertex
	if a.Back {
		// The lane, and the two places where it turns around.
		turn := l.add(&vertex{kind: turnVertex, arrow: i, layer: to.layer - 1})
		link(turn, to)
		above := turn
		for layer := to.layer; layer <= from.layer; layer++ {
			v := pass(layer, layer == from.layer)
			link(above, v)
			chain, above = append(chain, v), v
		}
		turn = l.add(&vertex{kind: turnVertex, arrow: i, layer: from.layer + 1})
		link(above, turn)
		link(from, turn)
	} else {
		chain = append(chain, from)
		above := from
		for layer := from.layer + 1; layer < to.layer; layer++ {
			v := pass(layer, layer == from.layer+1)
			link(above, v)
			chain, above = append(chain, v), v
		}
		link(above, to)
		chain = append(chain, to)
	}
	l.chains[i] = chain
}

// simplify forgets the turns, and the layers that have neither boxes nor labels. It is
// called once the order is known.
func (l *layout) simplify() {
	var layers [][]*vertex
	for _, layer := range l.layers {
		layer = slices.DeleteFunc(layer, func(v *vertex) bool { return v.kind == turnVertex })
		if slices.ContainsFunc(layer, func(v *vertex) bool { return v.kind != passVertex }) {
			layers = append(layers, layer)
		}
	}
	l.layers, l.vertices = layers, nil
	for i, layer := range layers {
		for pos, v := range layer {
			v.layer, v.pos, v.up, v.down = i, pos, nil, nil
			l.add(v)
		}
	}
	kept := func(v *vertex) bool { return v.index < len(l.vertices) && l.vertices[v.index] == v }
	for _, i := range l.part.arrows {
		chain := slices.DeleteFunc(l.chains[i], func(v *vertex) bool { return !kept(v) })
		for j := 1; j < len(chain); j++ {
			a, b := chain[j-1], chain[j]
			link(a, b)
			if !l.arrows[i].Aside {
				a.mainDown, b.mainUp = append(a.mainDown, b), append(b.mainUp, a)
			}
		}
		l.chains[i] = chain
	}
	for _, v := range l.vertices {
		for _, list := range [][]*vertex{v.up, v.down, v.mainUp, v.mainDown} {
			slices.SortStableFunc(list, byPos)
		}
	}
}

func byPos(a, b *vertex) int { return cmp.Compare(a.pos, b.pos) }

// move shifts what was laid out.
func (l *layout) move(dx, dy float64) {
	for _, i := range l.part.boxes {
		l.boxes[i].X += dx
		l.boxes[i].Y += dy
	}
	for _, i := range l.part.arrows {
		a := &l.arrows[i]
		a.LabelX += dx
		a.LabelY += dy
		for j := range a.Path {
			for k := range a.Path[j] {
				a.Path[j][k].X += dx
				a.Path[j][k].Y += dy
			}
		}
	}
}
