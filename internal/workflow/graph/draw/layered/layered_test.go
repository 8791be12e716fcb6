package layered_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"loki/internal/workflow/graph/draw/layered"
)

// random returns a diagram with loops, arrows to the same box, labels and parts.
func random(r *rand.Rand, n int) ([]layered.Box, []layered.Arrow) {
	boxes := make([]layered.Box, n)
	for i := range boxes {
		boxes[i] = layered.Box{W: 40 + 160*r.Float64(), H: 20 + 50*r.Float64(), Inset: 20 * r.Float64()}
	}
	var arrows []layered.Arrow
	for i := range boxes {
		for range r.IntN(4) {
			a := layered.Arrow{From: i, To: min(n-1, i+1+r.IntN(6)), Aside: r.IntN(3) == 0}
			if r.IntN(6) == 0 {
				a.To = max(0, i-r.IntN(7))
			}
			if r.IntN(3) == 0 {
				a.LabelW, a.LabelH = 20+100*r.Float64(), 18
			}
			arrows = append(arrows, a)
		}
	}
	return boxes, arrows
}

// points returns the path as a line of short pieces.
func points(path []layered.Curve) []layered.Point {
	list := []layered.Point{path[0][0]}
	for _, c := range path {
		pieces := 24
		if c[1] == c[0] {
			pieces = 1
		}
		for i := 1; i <= pieces; i++ {
			t := float64(i) / float64(pieces)
			u := 1 - t
			at := func(a, b, c, d float64) float64 { return u*u*u*a + 3*u*u*t*b + 3*u*t*t*c + t*t*t*d }
			list = append(list, layered.Point{
				X: at(c[0].X, c[1].X, c[2].X, c[3].X),
				Y: at(c[0].Y, c[1].Y, c[2].Y, c[3].Y),
			})
		}
	}
	return list
}

// rect is a rectangle by its ends.
type rect struct{ left, top, right, bottom float64 }

func (r rect) shrink(d float64) rect { return rect{r.left + d, r.top + d, r.right - d, r.bottom - d} }

func (r rect) overlaps(o rect) bool {
	return r.left < o.right && o.left < r.right && r.top < o.bottom && o.top < r.bottom
}

// crosses reports whether the line from a to b has a point in r.
//
// Source: Liang and Barsky, A New Concept and Method for Line Clipping, 1984.
func (r rect) crosses(a, b layered.Point) bool {
	from, to := 0.0, 1.0
	for _, side := range [][2]float64{{a.X - b.X, a.X - r.left}, {b.X - a.X, r.right - a.X}, {a.Y - b.Y, a.Y - r.top}, {b.Y - a.Y, r.bottom - a.Y}} {
		p, q := side[0], side[1]
		switch t := q / p; {
		case p == 0 && q < 0:
			return false
		case p < 0:
			from = max(from, t)
		case p > 0:
			to = min(to, t)
		}
	}
	return from < to
}

func of(b layered.Box) rect { return rect{b.X - b.W/2, b.Y, b.X + b.W/2, b.Y + b.H} }

// check reports what is wrong with a laid-out diagram.
func check(t *testing.T, boxes []layered.Box, arrows []layered.Arrow, w, h float64) {
	t.Helper()
	whole := rect{0, 0, w, h}.shrink(-0.01)
	within := func(what string, r rect) {
		if r.left < whole.left || r.top < whole.top || r.right > whole.right || r.bottom > whole.bottom {
			t.Errorf("%s is at %.1f, which is not in %.1f", what, r, whole)
		}
	}
	for i, b := range boxes {
		within(fmt.Sprintf("box %d", i), of(b))
		for j := range i {
			if of(b).shrink(-10).overlaps(of(boxes[j])) {
				t.Errorf("boxes %d and %d overlap or nearly do: %.1f and %.1f", j, i, of(boxes[j]), of(b))
			}
		}
	}
	lines := make([][]layered.Point, len(arrows))
	for i, a := range arrows {
		lines[i] = points(a.Path)
		for j, c := range a.Path[1:] {
			if c[0] != a.Path[j][3] {
				t.Errorf("arrow %d has a gap between %v and %v", i, a.Path[j][3], c[0])
			}
		}
		from, to := of(boxes[a.From]), of(boxes[a.To])
		start, tip := lines[i][0], lines[i][len(lines[i])-1]
		if math.Abs(start.Y-from.bottom) > 1e-6 || start.X < from.left+boxes[a.From].Inset || start.X > from.right-boxes[a.From].Inset {
			t.Errorf("arrow %d begins at %.1f, which is not at the bottom of %.1f", i, start, from)
		}
		if math.Abs(tip.Y-to.top) > 1e-6 || tip.X < to.left+boxes[a.To].Inset || tip.X > to.right-boxes[a.To].Inset {
			t.Errorf("arrow %d ends at %.1f, which is not at the top of %.1f", i, tip, to)
		}
		if last := a.Path[len(a.Path)-1]; last[0].X != last[3].X || last[3].Y-last[0].Y < 10 {
			t.Errorf("arrow %d does not arrive vertically from above: %.1f", i, last)
		}
		for j, p := range lines[i][1:] {
			within(fmt.Sprintf("arrow %d", i), rect{p.X, p.Y, p.X, p.Y})
			for k, b := range boxes {
				r := of(b).shrink(0.01)
				if k != a.From && k != a.To {
					r = of(b).shrink(-5)
				}
				if r.crosses(lines[i][j], p) {
					t.Errorf("arrow %d from %d to %d goes through box %d: %.1f-%.1f in %.1f", i, a.From, a.To, k, lines[i][j], p, of(b))
				}
			}
		}
	}
	for i, a := range arrows {
		if a.LabelW == 0 {
			continue
		}
		label := rect{a.LabelX - a.LabelW/2, a.LabelY - a.LabelH/2, a.LabelX + a.LabelW/2, a.LabelY + a.LabelH/2}
		within(fmt.Sprintf("label %d", i), label)
		on := false
		for j, line := range lines {
			for k, p := range line[1:] {
				switch crosses := label.shrink(-2).crosses(line[k], p); {
				case crosses && j == i:
					on = true
				case crosses:
					t.Errorf("arrow %d goes through the label of arrow %d", j, i)
				}
			}
		}
		if !on {
			t.Errorf("the label of arrow %d is not on it", i)
		}
		for j, b := range boxes {
			if label.shrink(-5).overlaps(of(b)) {
				t.Errorf("the label of arrow %d overlaps box %d", i, j)
			}
		}
		for j, b := range arrows[:i] {
			if b.LabelW > 0 && label.shrink(-5).overlaps(rect{b.LabelX - b.LabelW/2, b.LabelY - b.LabelH/2, b.LabelX + b.LabelW/2, b.LabelY + b.LabelH/2}) {
				t.Errorf("the labels of arrows %d and %d overlap", j, i)
			}
		}
	}
}

func TestNothingCollides(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			boxes, arrows := random(r, 1+r.IntN(40))
			w, h := layered.Arrange(boxes, arrows)
			check(t, boxes, arrows, w, h)
		})
	}
}

func TestEndsDiffer(t *testing.T) {
	boxes := make([]layered.Box, 30)
	var arrows []layered.Arrow
	for i := range boxes {
		boxes[i] = layered.Box{W: 60, H: 30, Inset: 5}
		if i > 0 && i < 29 {
			arrows = append(arrows, layered.Arrow{From: 0, To: i}, layered.Arrow{From: i, To: 29})
		}
	}
	w, h := layered.Arrange(boxes, arrows)
	check(t, boxes, arrows, w, h)
	for i, a := range arrows {
		for j, b := range arrows[:i] {
			if a.From == b.From && math.Abs(a.Path[0][0].X-b.Path[0][0].X) < 8 {
				t.Errorf("arrows %d and %d leave at the same place", j, i)
			}
			if a.To == b.To && math.Abs(a.Path[len(a.Path)-1][3].X-b.Path[len(b.Path)-1][3].X) < 8 {
				t.Errorf("arrows %d and %d arrive at the same place", j, i)
			}
		}
	}
}

// TestLoops shows where loops go: down, up beside the boxes, and in from above.
func TestLoops(t *testing.T) {
	for _, tt := range []struct {
		name   string
		arrows []layered.Arrow
		back   []bool
	}{
		{name: "itself", arrows: []layered.Arrow{{From: 0, To: 0}}, back: []bool{true}},
		{name: "two", arrows: []layered.Arrow{{From: 0, To: 1}, {From: 1, To: 0}}, back: []bool{false, true}},
		{name: "nested", arrows: []layered.Arrow{{From: 0, To: 1}, {From: 1, To: 2}, {From: 2, To: 1}, {From: 2, To: 0}, {From: 2, To: 3}}, back: []bool{false, false, true, true, false}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			boxes := make([]layered.Box, 4)
			for i := range boxes {
				boxes[i] = layered.Box{W: 80, H: 40}
			}
			w, h := layered.Arrange(boxes, tt.arrows)
			check(t, boxes, tt.arrows, w, h)
			for i, a := range tt.arrows {
				if a.Back != tt.back[i] {
					t.Errorf("arrow %d from %d to %d: back is %v", i, a.From, a.To, a.Back)
				}
			}
		})
	}
}

func TestNoArrowsAndNoBoxes(t *testing.T) {
	if w, h := layered.Arrange(nil, nil); w != 0 || h != 0 {
		t.Errorf("nothing is %v by %v", w, h)
	}
	boxes := []layered.Box{{W: 50, H: 20}, {W: 500, H: 20}, {W: 500, H: 20}}
	w, h := layered.Arrange(boxes, nil)
	check(t, boxes, nil, w, h)
	if boxes[1].Y != boxes[0].Y || boxes[2].Y <= boxes[1].Y+20 {
		t.Errorf("islands stand at %v", boxes)
	}
}

func TestSameInputSameOutput(t *testing.T) {
	arrange := func() ([]layered.Box, []layered.Arrow) {
		boxes, arrows := random(rand.New(rand.NewPCG(7, 7)), 80)
		layered.Arrange(boxes, arrows)
		return boxes, arrows
	}
	boxes, arrows := arrange()
	for range 5 {
		if b, a := arrange(); !reflect.DeepEqual(a, arrows) || !reflect.DeepEqual(b, boxes) {
			t.Fatal("the same diagram was laid out in two ways")
		}
	}
}

// TestStraight checks that what always happens stands below each other, whatever leads aside.
func TestStraight(t *testing.T) {
	boxes := make([]layered.Box, 7)
	for i := range boxes {
		boxes[i] = layered.Box{W: 80, H: 40}
	}
	var arrows []layered.Arrow
	for i := range 5 {
		arrows = append(arrows, layered.Arrow{From: i, To: i + 1}, layered.Arrow{From: i, To: 6, Aside: true, LabelW: 50, LabelH: 18})
	}
	w, h := layered.Arrange(boxes, arrows)
	check(t, boxes, arrows, w, h)
	for i := range 5 {
		if math.Abs(boxes[i].X-boxes[0].X) > 0.5 {
			t.Errorf("box %d stands at %.1f and the first one at %.1f", i, boxes[i].X, boxes[0].X)
		}
	}
}

func BenchmarkArrange(b *testing.B) {
	for _, n := range []int{30, 200} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			boxes, arrows := random(rand.New(rand.NewPCG(1, 2)), n)
			b.ReportMetric(float64(len(arrows)), "arrows")
			for b.Loop() {
				layered.Arrange(boxes, arrows)
			}
		})
	}
}
