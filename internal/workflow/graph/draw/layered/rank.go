package layered

import "slices"

// ranks marks the arrows that close loops, and returns the row of each box, by index of the
// box: below all boxes that lead to it, and otherwise so that arrows are short.
func (l *layout) ranks() map[int]int {
	in, out := map[int][]int{}, map[int][]int{} // arrows by box
	for _, i := range l.part.arrows {
		a := &l.arrows[i]
		out[a.From] = append(out[a.From], i)
		in[a.To] = append(in[a.To], i)
	}
	sorted := l.openLoops(out)
	rank := make(map[int]int, len(sorted))
	for _, b := range sorted {
		for _, i := range in[b] {
			if a := &l.arrows[i]; !a.Back {
				rank[b] = max(rank[b], rank[a.From]+1)
			}
		}
	}
	// A box that more arrows leave than enter moves down to where they end.
	for range 4 {
		moved := false
		for _, b := range slices.Backward(sorted) {
			enter, leave, room := 0, 0, -1
			for _, i := range in[b] {
				if a := &l.arrows[i]; a.Back {
					leave++
				} else {
					enter++
				}
			}
			for _, i := range out[b] {
				a := &l.arrows[i]
				if a.Back {
					enter++
					continue
				}
				leave++
				if r := rank[a.To] - rank[b] - 1; room < 0 || r < room {
					room = r
				}
			}
			if leave > enter && room > 0 {
				rank[b] += room
				moved = true
			}
		}
		if !moved {
			break
		}
	}
	least := rank[sorted[0]]
	for _, b := range sorted {
		least = min(least, rank[b])
	}
	for _, b := range sorted {
		rank[b] -= least
	}
	return rank
}

// openLoops marks the arrows that lead back to a box on the way to them, and returns the
// boxes so that all other arrows lead from an earlier to a later one. The search begins at
// the first box, and then at the boxes that no arrow leads to.
func (l *layout) openLoops(out map[int][]int) []int {
	const (
		open = 1 + iota // on the way to the current box
		done
	)
	state := map[int]int{}
	var sorted []int
	var search func(box int)
	search = func(box int) {
		if state[box] != 0 {
			return
		}
		state[box] = open
		for _, i := range out[box] {
			a := &l.arrows[i]
			a.Back = state[a.To] == open
			search(a.To)
		}
		state[box] = done
		sorted = append(sorted, box)
	}
	entered := map[int]bool{}
	for _, i := range l.part.arrows {
		if a := &l.arrows[i]; a.From != a.To {
			entered[a.To] = true
		}
	}
	search(l.part.boxes[0])
	for _, b := range l.part.boxes {
		if !entered[b] {
			search(b)
		}
	}
	for _, b := range l.part.boxes {
		search(b)
	}
	slices.Reverse(sorted)
	return sorted
}
