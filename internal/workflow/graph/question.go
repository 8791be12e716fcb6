package graph

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// IsQuestion reports whether the work of n is a question to a human, has one in a subgraph, or is one for each item of a map.
func (g *Graph) IsQuestion(n *Node) bool {
	if n.Map != nil {
		branch := g.Node(n.Map.Branch)
		return branch != nil && branch.asks()
	}
	return n.asks()
}

// asks reports whether n is a question to a human, or has one in its subgraph.
func (n *Node) asks() bool { return n.Approval != nil || n.Input != nil || n.asksInside() }

// Asks reports whether the graph has nodes that ask a human, or whose models may.
func (g *Graph) Asks() bool {
	_, ok := g.Find(func(n *Node) bool {
		return n.asks() || n.LLM != nil && slices.ContainsFunc(n.LLM.Tools, func(name string) bool { return strings.HasPrefix(name, "user__") })
	})
	return ok
}

// Assignees returns the subjects and groups of a server who may answer the question of n; nil for all who may see the run.
func (n *Node) Assignees() []string {
	switch {
	case n.Approval != nil:
		return n.Approval.Assignees
	case n.Input != nil:
		return n.Input.Assignees
	}
	return nil
}

// Default returns the answer that is taken when the time for one is over, nil for none.
func (n *Node) Default() *Template {
	switch {
	case n.Approval != nil:
		return n.Approval.Default
	case n.Input != nil:
		return n.Input.Default
	}
	return nil
}

// maxExpiry is the longest time for an answer, about 31 years.
const maxExpiry = 1e9 * time.Second

// ParseExpiry reads when a question expires: a time of RFC 3339, or else the time for an answer since the question was
// asked first, in seconds or with units as in "36h". Exactly one of the results is set.
func ParseExpiry(text string) (at time.Time, after time.Duration, err error) {
	text = strings.TrimSpace(text)
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, 0, nil
	}
	after, err = time.ParseDuration(text)
	if seconds, numErr := strconv.ParseFloat(text, 64); numErr == nil && math.Abs(seconds) <= maxExpiry.Seconds() {
		after, err = time.Duration(seconds*float64(time.Second)), nil
	}
	if err != nil || after <= 0 || after > maxExpiry {
		return time.Time{}, 0, fmt.Errorf("%q is neither a time such as 2026-12-24T18:00:00Z nor a span above 0 such as 3600, 90m or 36h", text)
	}
	return time.Time{}, after, nil
}
