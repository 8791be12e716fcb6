package layered

import (
	"math"
	"slices"
)

// place sets x of all vertices, the left end of the leftmost at 0. It aligns each vertex with
// the median of its neighbors, four times, from above and from below and to the left and to
// the right, and takes the mean of the two middle results. Arrows that pass several layers are
// vertical there, unless two of them cross.
//
// Source: Brandes and Köpf, Fast and Simple Horizontal Coordinate Assignment, 2001; blocks are
// moved together as a whole instead of by classes.
func (l *layout) place() {
	conflicts := l.conflicts()
	var all [4][]float64
	narrow, narrowest := 0, math.Inf(1)
	for i := range all {
		all[i] = l.align(i < 2, i%2 == 1, conflicts)
		if left, right := l.extent(all[i]); right-left < narrowest {
			narrow, narrowest = i, right-left
		}
	}
	left, right := l.extent(all[narrow])
	for i := range all {
		from, to := l.extent(all[i])
		shift := left - from
		if i%2 == 1 {
			shift = right - to
		}
		for j := range all[i] {
			all[i][j] += shift
		}
	}
	for j, v := range l.vertices {
		xs := []float64{all[0][j], all[1][j], all[2][j], all[3][j]}
		slices.Sort(xs)
		v.x = (xs[1] + xs[2]) / 2
	}
	l.drawNear()
	xs := make([]float64, len(l.vertices))
	for i, v := range l.vertices {
		xs[i] = v.x
	}
	left, _ = l.extent(xs)
	for _, v := range l.vertices {
		v.x -= left
	}
}

// extent returns the left and right end of what stands at xs.
func (l *layout) extent(xs []float64) (left, right float64) {
	left, right = math.Inf(1), math.Inf(-1)
	for i, v := range l.vertices {
		left, right = min(left, xs[i]-v.w/2), max(right, xs[i]+v.w/2)
	}
	return left, right
}

// segment is a connection of two vertices, by their indexes.
type segment struct{ up, down int }

// conflicts returns the connections that cross one between two passes of the same arrow,
// which must be vertical.
func (l *layout) conflicts() map[segment]bool {
	marked := map[segment]bool{}
	for i := 1; i < len(l.layers); i++ {
		layer := l.layers[i]
		first, scanned := 0, 0
		for j, v := range layer {
			var inner *vertex
			if v.passes() && len(v.up) > 0 && v.up[0].passes() {
				inner = v.up[0]
			}
			if inner == nil && j < len(layer)-1 {
				continue
			}
			last := len(l.layers[i-1])
			if inner != nil {
				last = inner.pos
			}
			for ; scanned <= j; scanned++ {
				w := layer[scanned]
				for _, u := range w.up {
					if (u.pos < first || u.pos > last) && (!u.passes() || !w.passes()) {
						marked[segment{u.index, w.index}] = true
					}
				}
			}
			first = last
		}
	}
	return marked
}

// align returns x by vertex for one of the four directions.
func (l *layout) align(down, right bool, conflicts map[segment]bool) []float64 {
	root, next := make([]int, len(l.vertices)), make([]int, len(l.vertices))
	for i := range root {
		root[i], next[i] = i, i
	}
	count := len(l.layers)
	for i := range count {
		layer := l.layers[i]
		if !down {
			layer = l.layers[count-1-i]
		}
		taken := -1 // the last place in the other layer that is aligned, counted from the side that comes first
		for j := range layer {
			v := layer[j]
			if right {
				v = layer[len(layer)-1-j]
			}
			neighbors, main := v.up, v.mainUp
			if !down {
				neighbors, main = v.down, v.mainDown
			}
			if len(main) > 0 {
				neighbors = main
			}
			n := len(neighbors)
			if n == 0 {
				continue
			}
			// The one or two in the middle, in the order of this direction.
			middle := []int{(n - 1) / 2, n / 2}
			if right {
				middle[0], middle[1] = middle[1], middle[0]
			}
			for _, m := range middle {
				w := neighbors[m]
				theirs := w.mainDown
				if !down {
					theirs = w.mainUp
				}
				if len(main) == 0 && len(theirs) > 0 {
					continue // w aligns with such a vertex
				}
				pos := w.pos
				if right {
					pos = len(l.layers[w.layer]) - 1 - w.pos
				}
				pair := segment{w.index, v.index}
				if !down {
					pair = segment{v.index, w.index}
				}
				if next[v.index] == v.index && taken < pos && !conflicts[pair] {
					next[w.index] = v.index
					root[v.index] = root[w.index]
					next[v.index] = root[v.index]
					taken = pos
				}
			}
		}
	}
	return l.compact(root, right)
}

// compact returns x by vertex: all vertices of a block, which have the same root, at the same
// x, as far to the left as their neighbors allow, or to the right. Blocks then close up with
// their neighbors on the other side.
func (l *layout) compact(root []int, right bool) []float64 {
	type bound struct {
		block int
		space float64
	}
	before, after := make([][]bound, len(root)), make([][]bound, len(root)) // by block
	for _, layer := range l.layers {
		for j := 1; j < len(layer); j++ {
			a, b := layer[j-1], layer[j]
			from, to := root[a.index], root[b.index]
			if right {
				from, to = to, from
			}
			s := space(a, b)
			after[from] = append(after[from], bound{to, s})
			before[to] = append(before[to], bound{from, s})
		}
	}
	var sorted, ready []int
	open := make([]int, len(root))
	for i := range root {
		open[i] = len(before[i])
		if root[i] == i && open[i] == 0 {
			ready = append(ready, i)
		}
	}
	for len(ready) > 0 {
		b := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		sorted = append(sorted, b)
		for _, a := range after[b] {
			if open[a.block]--; open[a.block] == 0 {
				ready = append(ready, a.block)
			}
		}
	}
	at := make([]float64, len(root))
	for _, b := range sorted {
		for _, p := range before[b] {
			at[b] = max(at[b], at[p.block]+p.space)
		}
	}
	for _, b := range slices.Backward(sorted) {
		limit := math.Inf(1)
		for _, a := range after[b] {
			limit = min(limit, at[a.block]-a.space)
		}
		if !math.IsInf(limit, 1) {
			at[b] = max(at[b], limit)
		}
	}
	xs := make([]float64, len(root))
	for i := range xs {
		xs[i] = at[root[i]]
		if right {
			xs[i] = -xs[i]
		}
	}
	return xs
}

// drawNear moves the lanes of loops, which are connected to nothing in their layers, as near
// to the boxes of their arrows as their neighbors allow.
func (l *layout) drawNear() {
	for _, i := range l.part.arrows {
		a := &l.arrows[i]
		if !a.Back {
			continue
		}
		lane := l.chains[i]
		low, high := math.Inf(-1), math.Inf(1)
		for _, v := range lane {
			layer := l.layers[v.layer]
			if v.pos > 0 {
				low = max(low, layer[v.pos-1].x+space(layer[v.pos-1], v))
			}
			if v.pos+1 < len(layer) {
				high = min(high, layer[v.pos+1].x-space(v, layer[v.pos+1]))
			}
		}
		if low > high {
			continue // not straight
		}
		x := min(max((l.ofBox[a.From].x+l.ofBox[a.To].x)/2, low), high)
		for _, v := range lane {
			v.x = x
		}
	}
}
