package layered

import (
	"cmp"
	"math"
	"slices"
)

// Distances along y.
const (
	gapBoxes  = 40.0 // between a layer of boxes and the next
	gapLabels = 24.0 // above a layer of labels
	tip       = 12.0 // an arrow arrives vertically for that length
	turn      = 14.0 // between a box and the first loop that turns around at it
	turnStep  = 9.0  // between loops that turn around at the same layer
	corner    = 9.0  // radius of the corners of loops
)

// band is the room of a layer.
type band struct {
	top, bottom float64 // of the layer's contents
	enter       float64 // where arrows from above have arrived at their x
	leave       float64 // where arrows begin to bend
}

// router draws the arrows of a layout.
type router struct {
	*layout
	out, in map[int]float64 // by arrow: x where it leaves and enters its box
	bands   []band
	depth   map[depthKey]int // of loops, from 0
}

type depthKey struct {
	arrow int
	below bool
}

// route sets the coordinates of boxes and labels and draws the arrows. It returns the size of
// the whole.
func (l *layout) route() (w, h float64) {
	r := &router{layout: l, out: map[int]float64{}, in: map[int]float64{}, depth: map[depthKey]int{}}
	r.ports()
	r.stack()
	left, right, bottom := math.Inf(1), math.Inf(-1), 0.0
	for _, v := range l.vertices {
		left, right = min(left, v.x-v.w/2), max(right, v.x+v.w/2)
		b := r.bands[v.layer]
		switch v.kind {
		case boxVertex:
			box := &l.boxes[v.box]
			box.X, box.Y = v.x, (b.top+b.bottom-box.H)/2
		case labelVertex:
			l.arrows[v.arrow].LabelX, l.arrows[v.arrow].LabelY = v.x, (b.top+b.bottom)/2
		}
	}
	for _, i := range l.part.arrows {
		p := &l.arrows[i]
		if p.Back {
			p.Path = r.loop(i)
		} else {
			p.Path = r.forward(i)
		}
		for _, c := range p.Path {
			for _, q := range c {
				left, right, bottom = min(left, q.X), max(right, q.X), max(bottom, q.Y)
			}
		}
	}
	l.move(-left, 0)
	return right - left, max(bottom, r.bands[len(r.bands)-1].bottom)
}

// end is where an arrow meets a box.
type end struct {
	arrow int
	side  int     // -1 and 1 for loops to the left and to the right, which stay outside
	order float64 // among ends of the same side
	want  float64 // x
}

// ports sets where arrows leave and enter their boxes: straight above or below what comes
// next if the box reaches that far, in an order that crosses nothing.
func (r *router) ports() {
	leaving, entering := map[int][]int{}, map[int][]int{}
	for _, i := range r.part.arrows {
		a := &r.arrows[i]
		leaving[a.From] = append(leaving[a.From], i)
		entering[a.To] = append(entering[a.To], i)
		r.out[i], r.in[i] = r.ofBox[a.From].x, r.ofBox[a.To].x
	}
	for range 3 {
		for _, b := range r.part.boxes {
			r.spread(b, leaving[b], r.out, func(i int, chain []*vertex) (*vertex, float64) { return chain[1], r.in[i] })
		}
		for _, b := range r.part.boxes {
			r.spread(b, entering[b], r.in, func(i int, chain []*vertex) (*vertex, float64) { return chain[len(chain)-2], r.out[i] })
		}
	}
}

// spread sets the ends at one side of a box. The neighbor of a chain is the vertex the arrow comes
// from or goes to, and where the arrow meets it if it is a box.
func (r *router) spread(box int, arrows []int, at map[int]float64, neighbor func(int, []*vertex) (*vertex, float64)) {
	if len(arrows) == 0 {
		return
	}
	v := r.ofBox[box]
	half := v.w/2 - r.boxes[box].Inset - portSpace/2
	ends := make([]end, len(arrows))
	for j, i := range arrows {
		e := end{arrow: i}
		if r.arrows[i].Back {
			// Loops are nested: the outer end goes to the nearest lane.
			lane := r.lane(i, v)
			e.side, e.order = cmp.Compare(lane.x, v.x), -lane.x
			e.want = v.x + float64(e.side)*half*0.7
		} else {
			n, meets := neighbor(i, r.chains[i])
			to := n.x
			if n.kind == boxVertex {
				to = meets
			}
			e.order, e.want = n.x, to
			if far := to - v.x; math.Abs(far) > half {
				e.want = v.x + math.Copysign(half*0.6, far)
			}
		}
		ends[j] = e
	}
	slices.SortStableFunc(ends, func(a, b end) int {
		return cmp.Or(cmp.Compare(a.side, b.side), cmp.Compare(a.order, b.order))
	})
	wants := make([]float64, len(ends))
	for j, e := range ends {
		wants[j] = e.want
	}
	step := portSpace
	if len(ends) > 1 {
		step = min(step, 2*half/float64(len(ends)-1))
	}
	for j, x := range apart(wants, step, v.x-half, v.x+half) {
		at[ends[j].arrow] = x
	}
}

// lane returns the part of the lane of arrow i that is beside v.
func (r *router) lane(i int, v *vertex) *vertex {
	lane := r.chains[i]
	if lane[0].layer == v.layer {
		return lane[0]
	}
	return lane[len(lane)-1]
}

// apart returns the values that are nearest to wants, in the sum of squares, ascending by step at
// least and between low and high.
//
// Source: pool adjacent violators, as for isotonic regression.
func apart(wants []float64, step, low, high float64) []float64 {
	type pool struct {
		sum float64
		n   int
	}
	var pools []pool
	for i, w := range wants {
		p := pool{w - float64(i)*step, 1}
		for len(pools) > 0 {
			last := pools[len(pools)-1]
			if last.sum*float64(p.n) <= p.sum*float64(last.n) {
				break
			}
			p = pool{last.sum + p.sum, last.n + p.n}
			pools = pools[:len(pools)-1]
		}
		pools = append(pools, p)
	}
	xs := make([]float64, 0, len(wants))
	for _, p := range pools {
		for range p.n {
			i := len(xs)
			x := min(max(p.sum/float64(p.n), low), high-step*float64(len(wants)-1))
			xs = append(xs, x+float64(i)*step)
		}
	}
	return xs
}

// stack sets the bands.
func (r *router) stack() {
	above, below := r.depths()
	y := 0.0
	r.bands = make([]band, len(r.layers))
	for i, layer := range r.layers {
		height, labels := 0.0, true
		for _, v := range layer {
			height = max(height, v.h)
			labels = labels && v.kind != boxVertex
		}
		room := 0.0 // for arrows to bend, above the layer
		if i > 0 {
			room = gapBoxes
			if labels {
				room = gapLabels
			}
			room += min(max(r.reach(i)-100, 0)*0.09, 70)
		}
		b := &r.bands[i]
		b.enter = y + room
		b.top = b.enter
		if above[i] > 0 {
			b.top += turn + turnStep*float64(above[i]-1)
		}
		b.bottom = b.top + height
		b.leave = b.bottom
		if below[i] > 0 {
			b.leave += turn + turnStep*float64(below[i]-1)
		}
		if !labels {
			b.top += tip
			b.bottom += tip
			b.leave += tip
		}
		y = b.leave
	}
}

// reach returns the longest way to the side of arrows that enter a layer.
func (r *router) reach(layer int) float64 {
	far := 0.0
	for _, v := range r.layers[layer] {
		for _, u := range v.up {
			far = max(far, math.Abs(u.x-v.x))
		}
	}
	return far
}

// depths nests the loops that turn around at the same side of a layer, and returns how many
// are nested there.
func (r *router) depths() (above, below []int) {
	type span struct {
		key       depthKey
		from, to  float64
		layer     int
		collected *[]int
	}
	above, below = make([]int, len(r.layers)), make([]int, len(r.layers))
	var spans []span
	for _, i := range r.part.arrows {
		if a := &r.arrows[i]; a.Back {
			from, to := r.ofBox[a.From], r.ofBox[a.To]
			lane := r.chains[i]
			spans = append(spans,
				span{depthKey{i, true}, min(r.out[i], lane[len(lane)-1].x), max(r.out[i], lane[len(lane)-1].x), from.layer, &below},
				span{depthKey{i, false}, min(r.in[i], lane[0].x), max(r.in[i], lane[0].x), to.layer, &above})
		}
	}
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(a.to-a.from, b.to-b.from) })
	for i, s := range spans {
		level := 0
		for _, o := range spans[:i] {
			if o.layer == s.layer && o.key.below == s.key.below && o.from < s.to+passSpace && s.from < o.to+passSpace {
				level = max(level, r.depth[o.key]+1)
			}
		}
		r.depth[s.key] = level
		(*s.collected)[s.layer] = max((*s.collected)[s.layer], level+1)
	}
	return above, below
}

// pen draws a path.
type pen struct {
	at   Point
	path []Curve
}

func (p *pen) line(to Point) {
	if to == p.at {
		return
	}
	if n := len(p.path); n > 0 {
		last := &p.path[n-1]
		if last[0].X == to.X && last[3].X == to.X && last[1] == last[0] { // continues straight
			last[2], last[3] = to, to
			p.at = to
			return
		}
	}
	p.path = append(p.path, Curve{p.at, p.at, to, to})
	p.at = to
}

// bend goes to a point with vertical ends.
func (p *pen) bend(to Point) {
	if math.Abs(to.X-p.at.X) < 0.5 {
		p.line(Point{p.at.X, to.Y})
		return
	}
	middle := (p.at.Y + to.Y) / 2
	p.path = append(p.path, Curve{p.at, {p.at.X, middle}, {to.X, middle}, to})
	p.at = to
}

// round goes around the corner at c.
func (p *pen) round(c, to Point) {
	const k = 0.5523 // of a quarter of a circle
	p.path = append(p.path, Curve{p.at, {p.at.X + (c.X-p.at.X)*k, p.at.Y + (c.Y-p.at.Y)*k}, {to.X + (c.X-to.X)*k, to.Y + (c.Y-to.Y)*k}, to})
	p.at = to
}

// turn goes down or up to y, to the side to x, and back as far as it came.
func (p *pen) turn(x, y float64) {
	start := p.at
	side := math.Copysign(1, x-start.X)
	down := math.Copysign(1, y-start.Y)
	radius := min(corner, math.Abs(x-start.X)/2, math.Abs(y-start.Y))
	p.line(Point{start.X, y - down*radius})
	p.round(Point{start.X, y}, Point{start.X + side*radius, y})
	p.line(Point{x - side*radius, y})
	p.round(Point{x, y}, Point{x, y - down*radius})
	p.line(Point{x, start.Y})
}

func (r *router) forward(i int) []Curve {
	a, chain := &r.arrows[i], r.chains[i]
	from, to := &r.boxes[a.From], &r.boxes[a.To]
	p := &pen{at: Point{r.out[i], from.Y + from.H}}
	for j, v := range chain[1:] {
		p.line(Point{p.at.X, r.bands[chain[j].layer].leave})
		x := v.x
		if v.kind == boxVertex {
			x = r.in[i]
		}
		p.bend(Point{x, r.bands[v.layer].enter})
	}
	p.line(Point{p.at.X, to.Y})
	return p.path
}

func (r *router) loop(i int) []Curve {
	a, lane := &r.arrows[i], r.chains[i]
	from, to := &r.boxes[a.From], &r.boxes[a.To]
	p := &pen{at: Point{r.out[i], from.Y + from.H}}
	last := lane[len(lane)-1]
	bottom := r.bands[last.layer].bottom
	p.line(Point{p.at.X, bottom})
	p.turn(last.x, bottom+turn+turnStep*float64(r.depth[depthKey{i, true}]))
	for j := len(lane) - 2; j >= 0; j-- {
		p.line(Point{p.at.X, r.bands[lane[j+1].layer].enter})
		p.bend(Point{lane[j].x, r.bands[lane[j].layer].leave})
	}
	top := r.bands[lane[0].layer].top
	p.line(Point{p.at.X, top})
	p.turn(r.in[i], top-tip-turn-turnStep*float64(r.depth[depthKey{i, false}]))
	p.line(Point{p.at.X, to.Y})
	return p.path
}
