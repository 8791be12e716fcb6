package layered

import (
	"cmp"
	"math"
	"slices"
)

// order chooses the order of the vertices in their layers: rows are sorted by the mean
// place of their neighbors above and below, in turn, and neighbors are swapped where that
// helps. The best order of all that were met stays, and then arrows are moved as a whole.
//
// Source: Gansner, Koutsofios, North and Vo, A Technique for Drawing Directed Graphs,
// 1993, with barycenters in place of medians.
func (l *layout) order() {
	var best []int // position by vertex
	fewest := -1
	keep := func() bool {
		c := l.crossings()
		if fewest >= 0 && c >= fewest {
			return false
		}
		best, fewest = l.positions(), c
		return true
	}
	for _, reversed := range []bool{false, true} {
		l.begin(reversed)
		keep()
		for i, stale := 0, 0; i < 24 && stale < 5 && fewest > 0; i++ {
			l.sweep(i%2 == 0, i%4 > 1)
			l.swap()
			if stale++; keep() {
				stale = 0
			}
		}
	}
	for _, layer := range l.layers {
		slices.SortFunc(layer, func(a, b *vertex) int { return cmp.Compare(best[a.index], best[b.index]) })
		number(layer)
	}
	for range 4 {
		for _, i := range l.part.arrows {
			l.resettle(i)
		}
		l.swap()
		c := l.crossings()
		if c == fewest {
			break
		}
		fewest = c
	}
	l.simplify()
}

func number(layer []*vertex) {
	for i, v := range layer {
		v.pos = i
	}
}

// resettle moves all passes of an arrow at once to where it crosses least, which moves of
// single vertices do not find. A loop goes near to its boxes if there is a choice.
func (l *layout) resettle(arrow int) {
	a := &l.arrows[arrow]
	from, to := l.ofBox[a.From], l.ofBox[a.To]
	chain := l.chains[arrow]
	var way []*vertex
	if a.Back {
		way = append(append(way, chain[0].up[0]), chain...)
		way = append(way, chain[len(chain)-1].down[0])
	} else {
		way = chain[1 : len(chain)-1]
	}
	if len(way) == 0 {
		return
	}
	own := func(v *vertex) bool { return v.kind != boxVertex && v.arrow == arrow }
	if !a.Back && l.crossingsOf(chain, own) == 0 {
		return
	}
	old := make([]int, len(way))
	for j, v := range way {
		old[j] = v.pos
		l.layers[v.layer] = slices.Delete(l.layers[v.layer], v.pos, v.pos+1)
		number(l.layers[v.layer])
	}
	// extra is what the ends cost, by the number of vertices to the left.
	extra := func(j, q int) float64 {
		v, cost, at := way[j], 0.0, float64(q)-0.5
		switch {
		case j == 0 && a.Back:
			cost += l.across(v.layer, at, float64(to.pos), own)
		case j == 0:
			cost += l.across(from.layer, float64(from.pos), at, own)
		}
		if j == len(way)-1 {
			if a.Back {
				cost += l.across(v.layer-1, float64(from.pos), at, own)
			} else {
				cost += l.across(v.layer, at, float64(to.pos), own)
			}
		}
		if a.Back {
			for _, box := range []*vertex{from, to} {
				if box.layer == v.layer {
					cost += 0.001 * math.Abs(float64(q-box.pos)-0.6)
				}
			}
		}
		return cost
	}

	// cost is the least for the way so far, by the number of vertices to the left of its end.
	cost := make([]float64, len(l.layers[way[0].layer])+1)
	came := make([][]int, len(way)) // by step and place: the place in the step before
	now := extra(0, old[0])         // the cost of the way as it is
	for j, v := range way {
		if j > 0 {
			crossed := l.crossingTable(v.layer, own)
			now += 1.05*float64(crossed[old[j-1]][old[j]]) + extra(j, old[j])
			before := cost
			cost = make([]float64, len(l.layers[v.layer])+1)
			came[j] = make([]int, len(cost))
			for q := range cost {
				cost[q] = math.Inf(1)
				for p := range before {
					// A line that crosses the lane bends, one that crosses a turn need not.
					if c := before[p] + 1.05*float64(crossed[p][q]); c < cost[q] {
						cost[q], came[j][q] = c, p
					}
				}
			}
		}
		for q := range cost {
			cost[q] += extra(j, q)
		}
	}
	place := 0
	for q := range cost {
		if cost[q] < cost[place] {
			place = q
		}
	}
	better := cost[place] < now-1e-9
	for j, v := range slices.Backward(way) {
		at := old[j]
		if better {
			at = place
		}
		l.layers[v.layer] = slices.Insert(l.layers[v.layer], at, v)
		number(l.layers[v.layer])
		if j > 0 {
			place = came[j][place]
		}
	}
}

// crossingTable returns how many connections between a layer and the one above cross a new one, by
// the numbers of vertices to the left of its upper and its lower end. Connections that end at a
// skipped vertex do not count.
func (l *layout) crossingTable(layer int, skip func(*vertex) bool) [][]int {
	n, m := len(l.layers[layer-1]), len(l.layers[layer])
	left := make([][]int, n+1) // connections with both ends to the left
	for p := range left {
		left[p] = make([]int, m+1)
	}
	for p, u := range l.layers[layer-1] {
		for _, d := range u.down {
			if !skip(d) {
				left[p+1][d.pos+1]++
			}
		}
		row := 0
		for q := range left[p] {
			row += left[p+1][q]
			left[p+1][q] = left[p][q] + row
		}
	}
	result := make([][]int, n+1)
	for p := range result {
		result[p] = make([]int, m+1)
		for q := range result[p] {
			result[p][q] = left[p][m] + left[n][q] - 2*left[p][q]
		}
	}
	return result
}

// crossingsOf returns how many connections cross those of a chain.
func (l *layout) crossingsOf(chain []*vertex, own func(*vertex) bool) float64 {
	count := 0.0
	for j, v := range chain[1:] {
		count += l.across(v.layer-1, float64(chain[j].pos), float64(v.pos), own)
	}
	return count
}

// across returns how many connections between a layer and the one below cross one from x to y.
func (l *layout) across(layer int, x, y float64, skip func(*vertex) bool) float64 {
	count := 0.0
	for _, u := range l.layers[layer] {
		for _, d := range u.down {
			if !skip(u) && !skip(d) && (float64(u.pos)-x)*(float64(d.pos)-y) < 0 {
				count++
			}
		}
	}
	return count
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
	var visit func(v *vertex)
	visit = func(v *vertex) {
		if seen[v.index] {
			return
		}
		seen[v.index] = true
		v.pos = len(l.layers[v.layer])
		l.layers[v.layer] = append(l.layers[v.layer], v)
		for i := range v.down {
			if reversed {
				i = len(v.down) - 1 - i
			}
			visit(v.down[i])
		}
	}
	for _, root := range l.vertices {
		if len(root.up) == 0 {
			visit(root)
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
func (l *layout) crossings() int {
	total := 0
	for _, layer := range l.layers {
		var ends []int
		for _, v := range layer {
			from := len(ends)
			for _, d := range v.down {
				for _, end := range ends[:from] {
					if end > d.pos {
						total++
					}
				}
				ends = append(ends, d.pos)
			}
		}
	}
	return total
}
