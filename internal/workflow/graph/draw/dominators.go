package draw

import "slices"

// dominators is the dominator tree of the nodes that can be reached from a root: the
// parent of a node is the last node that every way to it passes.
type dominators struct {
	order  []*node         // reverse postorder: before its successors, but for cycles
	rank   map[*node]int   // index into order
	parent map[*node]*node // the root has none
	in     map[*node]int   // number of edges from nodes of the tree
}

// newDominators follows edges to nodes for which within is true.
//
// Source: Cooper, Harvey and Kennedy, A Simple, Fast Dominance Algorithm, 2001.
func newDominators(root *node, within func(*node) bool) *dominators {
	d := &dominators{rank: map[*node]int{}, parent: map[*node]*node{}, in: map[*node]int{}}
	before := map[*node][]*node{}
	d.postorder(root, within, before)
	slices.Reverse(d.order)
	for i, n := range d.order {
		d.rank[n] = i
	}
	d.parent[root] = root
	for changed := true; changed; {
		changed = false
		for _, n := range d.order[1:] {
			var last *node
			for _, p := range before[n] {
				switch {
				case d.parent[p] == nil:
				case last == nil:
					last = p
				default:
					last = d.common(last, p)
				}
			}
			if d.parent[n] != last {
				d.parent[n], changed = last, true
			}
		}
	}
	delete(d.parent, root)
	return d
}

// postorder appends n and what it leads to to d.order, successors first, and notes
// the predecessors of each.
func (d *dominators) postorder(n *node, within func(*node) bool, before map[*node][]*node) {
	d.rank[n] = -1                             // it is seen
	for _, e := range slices.Backward(n.out) { // the order is reversed, and keeps the declared one then
		if !within(e.to) {
			continue
		}
		d.in[e.to]++
		before[e.to] = append(before[e.to], n)
		if _, seen := d.rank[e.to]; !seen {
			d.postorder(e.to, within, before)
		}
	}
	d.order = append(d.order, n)
}

// common returns the nearest node that dominates both a and b.
func (d *dominators) common(a, b *node) *node {
	for a != b {
		for d.rank[a] > d.rank[b] {
			a = d.parent[a]
		}
		for d.rank[b] > d.rank[a] {
			b = d.parent[b]
		}
	}
	return a
}

// children returns the nodes whose parent is n, in order.
func (d *dominators) children() map[*node][]*node {
	children := make(map[*node][]*node, len(d.order))
	for _, n := range d.order {
		if p := d.parent[n]; p != nil {
			children[p] = append(children[p], n)
		}
	}
	return children
}
