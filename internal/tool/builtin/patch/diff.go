package patch

import (
	"fmt"
	"slices"
	"strings"
)

// maxEdits bounds the search for the shortest difference; beyond it a whole region counts
// as changed. Time and memory of the search grow with its square.
const maxEdits = 1000

// context is how many unchanged lines surround a change.
const context = 3

// Stat counts the lines of a difference.
type Stat struct{ Added, Removed int }

// Diff returns the unified diff that turns before into after, empty if they are equal, and
// how many lines it adds and removes. It has no lines with the names of files.
//
// Source of the algorithm: Myers, "An O(ND) Difference Algorithm and Its Variations",
// Algorithmica 1986.
func Diff(before, after string) (string, Stat) {
	if before == after {
		return "", Stat{}
	}
	a, b := slices.Collect(strings.Lines(before)), slices.Collect(strings.Lines(after))
	return render(a, b, edits(a, b))
}

// edit is a region: a[a0:a1] becomes b[b0:b1].
type edit struct{ a0, a1, b0, b1 int }

// edits returns the regions that differ, in order and not touching each other.
func edits(a, b []string) []edit {
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	endA, endB := len(a), len(b)
	for endA > start && endB > start && a[endA-1] == b[endB-1] {
		endA--
		endB--
	}
	if start == endA && start == endB {
		return nil
	}
	pairs, ok := common(a[start:endA], b[start:endB])
	if !ok {
		return []edit{{start, endA, start, endB}}
	}
	var list []edit
	i, j := start, start
	for _, p := range append(pairs, [2]int{endA - start, endB - start}) {
		x, y := p[0]+start, p[1]+start
		if x > i || y > j {
			list = append(list, edit{i, x, j, y})
		}
		i, j = x+1, y+1
	}
	return list
}

// common returns the places of the lines of a longest common subsequence, in order. ok is
// false if there are more than maxEdits edits between a and b.
func common(a, b []string) (pairs [][2]int, ok bool) {
	limit := min(len(a)+len(b), maxEdits)
	// v[k] is how far the furthest path on diagonal k = x-y has come in a, see figure 2
	// of the paper; trace keeps it for each number of edits.
	v := make([]int, 2*limit+3)
	origin := limit + 1
	var trace [][]int
	for d := 0; d <= limit; d++ {
		for k := -d; k <= d; k += 2 {
			x := 0
			switch {
			case d == 0:
			case k == -d || k != d && v[origin+k-1] < v[origin+k+1]:
				x = v[origin+k+1]
			default:
				x = v[origin+k-1] + 1
			}
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			v[origin+k] = x
			if x >= len(a) && x-k >= len(b) {
				return backtrack(len(a), len(b), trace), true
			}
		}
		trace = append(trace, slices.Clone(v[origin-d:origin+d+1]))
	}
	return nil, false
}

// backtrack follows the paths of common back to the start. trace[d][d+k] is v[k] after d
// edits.
func backtrack(x, y int, trace [][]int) [][2]int {
	var pairs [][2]int
	for d := len(trace); d > 0; d-- {
		last := trace[d-1]
		at := func(k int) int {
			if k < -(d-1) || k > d-1 {
				return -1
			}
			return last[d-1+k]
		}
		k := x - y
		from := k - 1
		if k == -d || k != d && at(k-1) < at(k+1) {
			from = k + 1
		}
		px := at(from)
		py := px - from
		// The edit comes first, then the lines in common.
		sx := px
		if from == k-1 {
			sx++
		}
		for x > sx {
			x--
			y--
			pairs = append(pairs, [2]int{x, y})
		}
		x, y = px, py
	}
	for x > 0 {
		x--
		y--
		pairs = append(pairs, [2]int{x, y})
	}
	slices.Reverse(pairs)
	return pairs
}

// render writes the hunks.
func render(a, b []string, list []edit) (string, Stat) {
	var out strings.Builder
	var stat Stat
	for i := 0; i < len(list); {
		// Changes with little between them are one hunk.
		end := i + 1
		for end < len(list) && list[end].a0-list[end-1].a1 <= 2*context {
			end++
		}
		group := list[i:end]
		first, last := group[0], group[len(group)-1]
		a0, a1 := max(first.a0-context, 0), min(last.a1+context, len(a))
		b0, b1 := first.b0-(first.a0-a0), last.b1+(a1-last.a1)
		fmt.Fprintf(&out, "@@ -%s +%s @@\n", span(a0, a1), span(b0, b1))
		at := a0
		for _, e := range group {
			lines(&out, ' ', a[at:e.a0])
			lines(&out, '-', a[e.a0:e.a1])
			lines(&out, '+', b[e.b0:e.b1])
			stat.Removed += e.a1 - e.a0
			stat.Added += e.b1 - e.b0
			at = e.a1
		}
		lines(&out, ' ', a[at:a1])
		i = end
	}
	return out.String(), stat
}

// span is the range of a header.
func span(from, to int) string {
	switch to - from {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

func lines(out *strings.Builder, op byte, list []string) {
	for _, l := range list {
		out.WriteByte(op)
		out.WriteString(l)
		if !strings.HasSuffix(l, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
