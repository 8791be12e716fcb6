package layered

import (
	"cmp"
	"slices"
)

// order chooses the order of the vertices in their layers: rows are sorted by the mean
// place of their neighbors above and below, in turn, and neighbors are swapped where that
// helps. The best order of all that were met stays.
//
// Source: Gansner, Koutsofios, North and Vo, A Technique for Drawing Directed Graphs,
// 1993, with barycenters in place of medians.
func (l *layout) order() {
	var best []int // position by vertex
	fewest := -1
	for _, reversed := range []bool{false, true} {
		l.begin(reversed)
		stale := 0
		for i := range 24 {
			if c := l.crossings(); fewest < 0 || c < fewest {
				best, fewest, stale = l.positions(), c, 0
			} else if stale++; stale > 5 {
				break
			}
			if fewest == 0 {
				break
			}
			l.sweep(i%2 == 0, i%4 > 1)
			l.swap()
		}
		if fewest == 0 {
			break
		}
	}
	for _, layer := range l.layers {
		slices.SortFunc(layer, func(a, b *vertex) int { return cmp.Compare(best[a.index], best[b.index]) })
	}
	l.simplify()
}

func (l *layout) positions() []int {
	positions := make([]int, len(l.vertices))
	for _, v := range l.vertices {
		positions[v.index] = v.pos
	}
	return positions
}

// begin fills the layers in the order in which a search meets the vertices. Lanes of loops,
// which nothing leads to, come last.
func (l *layout) begin(reversed bool) {
	for i := range l.layers {
		l.layers[i] = l.layers[i][:0]
	}
	seen := make([]bool, len(l.vertices))
	var stack []*vertex
	for _, root := range l.vertices {
		if len(root.up) > 0 {
			continue
		}
		stack = append(stack, root)
		for len(stack) > 0 {
			v := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if seen[v.index] {
				continue
			}
			seen[v.index] = true
			v.pos = len(l.layers[v.layer])
			l.layers[v.layer] = append(l.layers[v.layer], v)
			if reversed {
				stack = append(stack, v.down...)
				continue
			}
			for _, d := range slices.Backward(v.down) {
				stack = append(stack, d)
			}
		}
	}
}

// sweep sorts the layers by their neighbors in the layer before, downwards or upwards.
func (l *layout) sweep(down, right bool) {
	mean := make([]float64, len(l.vertices))
	for i := range l.layers {
		layer := l.layers[i]
		if !down {
			layer = l.layers[len(l.layers)-1-i]
		}
		var movable []*vertex
		for _, v := range layer {
			neighbors := v.up
			if !down {
				neighbors = v.down
			}
			if len(neighbors) == 0 {
				continue
			}
			sum := 0
			for _, n := range neighbors {
				sum += n.pos
			}
			mean[v.index] = float64(sum) / float64(len(neighbors))
			movable = append(movable, v)
		}
		slots := make([]int, len(movable)) // the others keep their places
		for j, v := range movable {
			slots[j] = v.pos
		}
		slices.SortFunc(movable, func(a, b *vertex) int {
			tie := cmp.Compare(a.pos, b.pos)
			if right {
				tie = -tie
			}
			return cmp.Or(cmp.Compare(mean[a.index], mean[b.index]), tie)
		})
		for j, v := range movable {
			v.pos = slots[j]
			layer[v.pos] = v
		}
	}
}

// swap exchanges neighbors as long as that saves crossings.
func (l *layout) swap() {
	for range 8 {
		improved := false
		for _, layer := range l.layers {
			for i := 1; i < len(layer); i++ {
				a, b := layer[i-1], layer[i]
				now := pairCrossings(a.up, b.up) + pairCrossings(a.down, b.down)
				if now == 0 || now <= pairCrossings(b.up, a.up)+pairCrossings(b.down, a.down) {
					continue
				}
				layer[i-1], layer[i] = b, a
				a.pos, b.pos = i, i-1
				improved = true
			}
		}
		if !improved {
			return
		}
	}
}

// pairCrossings counts the crossings between arrows to the neighbors of two vertices, the
// first of which stands on the left.
func pairCrossings(left, right []*vertex) int {
	n := 0
	for _, a := range left {
		for _, b := range right {
			if a.pos > b.pos {
				n++
			}
		}
	}
	return n
}

// crossings counts the crossings between all layers.
//
// Source: Barth, Mutzel and Jünger, Simple and Efficient Bilayer Cross Counting, 2004.
func (l *layout) crossings() int {
	total := 0
	var ends, tree []int
	for i := 1; i < len(l.layers); i++ {
		ends = ends[:0]
		for _, v := range l.layers[i-1] {
			from := len(ends)
			for _, d := range v.down {
				ends = append(ends, d.pos)
			}
			slices.Sort(ends[from:])
		}
		size := len(l.layers[i])
		tree = slices.Grow(tree[:0], size+1)[:size+1] // counts of ends, as a Fenwick tree
		clear(tree)
		for n, end := range ends {
			total += n // those before that end further to the right: all but those up to end
			for j := end + 1; j > 0; j &= j - 1 {
				total -= tree[j]
			}
			for j := end + 1; j <= size; j += j & -j {
				tree[j]++
			}
		}
	}
	return total
}
