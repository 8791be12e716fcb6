package logging

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"time"
)

// performance sums up how long the nodes of a run worked. The zero performance is
// ready.
type performance struct {
	order  []*nodeTime // by first execution
	byName map[string]*nodeTime
}

type nodeTime struct {
	node       string
	visits     int
	total, max time.Duration
}

// enter returns the times of a node, and adds them at its first execution.
func (p *performance) enter(node string) *nodeTime {
	if n := p.byName[node]; n != nil {
		return n
	}
	if p.byName == nil {
		p.byName = make(map[string]*nodeTime)
	}
	n := &nodeTime{node: node}
	p.byName[node] = n
	p.order = append(p.order, n)
	return n
}

// add counts a visit.
func (p *performance) add(node string, took time.Duration) {
	n := p.enter(node)
	n.visits++
	n.total += took
	n.max = max(n.max, took)
}

// lines returns one line for each node that ran, the longest total first and ties in
// the order of their first execution.
func (p *performance) lines() iter.Seq[string] {
	sorted := slices.Clone(p.order)
	slices.SortStableFunc(sorted, func(a, b *nodeTime) int { return cmp.Compare(b.total, a.total) })
	return func(yield func(string) bool) {
		for _, n := range sorted {
			if n.visits == 0 {
				continue
			}
			average := n.total / time.Duration(n.visits)
			if !yield(n.node + ": " + itoa(n.visits) + " visit(s), total " + ms(n.total) + ", avg " + ms(average) + ", max " + ms(n.max)) {
				return
			}
		}
	}
}

// ms writes d in whole milliseconds.
func ms(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) + "ms" }

func itoa(n int) string { return strconv.Itoa(n) }
