package graph

import (
	"slices"
	"strings"

	"loki/internal/workflow/graph/expr"
)

// maps reports what a map says about its items and what has no effect, or can never be.
func (v *validator) maps(n *Node) {
	if n.Map == nil {
		return
	}
	v.over(n)
	v.itemErrors(n)
	v.itemConditions(n)
	v.successes(n)
}

// itemErrors reports on_error and min_success without an effect.
func (v *validator) itemErrors(n *Node) {
	tolerant := n.Map.OnError == ItemsSkip || n.Map.OnError == ItemsCollect
	if n.Map.MinSuccess != nil && !tolerant {
		v.warn(RuleItems, n, "min_success", "add on_error: skip or on_error: collect", "min_success has no effect, since one failed item fails the map")
	}
	if branch := v.g.Node(n.Map.Branch); tolerant && branch != nil && branch.Type == LLMNode && branch.Fallback != "" {
		v.warn(RuleItems, n, "on_error", "remove fallback from the branch", "on_error has no effect, since a failure of branch %q delivers its text as the result", branch.ID)
	}
}

// itemConditions reports conditions that do not depend on what they are about.
func (v *validator) itemConditions(n *Node) {
	if e := n.Map.ItemIf; e != nil && !slices.Contains(e.Roots(), n.Map.As) {
		v.warn(RuleItems, n, "item_if", "the item is "+n.Map.As, "item_if does not look at the item, so it holds for all of them or for none")
	}
	for path, c := range n.Map.conditions {
		v.condition(n, path, c.expr, v.typesWith(n, c.key, map[string]expr.Type{n.Map.As: v.itemType(n), ResultsKey: {Kinds: expr.List}}[c.key]))
	}
	if e := n.Map.Enough; e != nil && !slices.Contains(e.Roots(), ResultsKey) {
		v.warn(RuleItems, n, "enough", "the results so far are the list "+ResultsKey+", as in len("+ResultsKey+") >= 3", "enough does not look at the results")
	}
}

// successes reports a min_success that a list which nothing changes cannot reach.
func (v *validator) successes(n *Node) {
	share := n.Map.MinSuccess
	if share == nil || share.Count == 0 {
		return
	}
	parts := n.Map.Over.parts
	if len(parts) != 1 || !parts[0].hole || strings.ContainsAny(parts[0].text, ".[") {
		return
	}
	key := parts[0].text
	over, ok := v.g.InitialState.Get(key)
	_, closed := v.knownKeys()
	if !ok || !closed || slices.ContainsFunc(v.g.Nodes, func(w *Node) bool { return w.leavesKey(key) }) {
		return
	}
	count := over.AsObject().Len()
	if list, ok := over.AsList(); ok {
		count = list.Len()
	}
	if n.Map.Batch > 0 {
		count = (count + n.Map.Batch - 1) / n.Map.Batch
	}
	if share.Count > count {
		v.err(RuleItems, n, "min_success", "lower it, or write a percentage", "min_success is %d, but there are only %d items, so the map always fails", share.Count, count)
	}
}
