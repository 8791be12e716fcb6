package graph

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// group is the set of nodes that one fan-out can start together. The edges of a choice of which one is taken exclude each other.
type group struct {
	source  *Node
	place   string  // of the fan-out, below the source
	members []*Node // ascending by id, each once; unknown targets are left out
}

// writers returns the ids of the members that write each key.
func (gr group) writers() map[string][]string {
	writers := map[string][]string{}
	for _, n := range gr.members {
		for _, key := range writes(n) {
			writers[key] = append(writers[key], n.ID)
		}
	}
	return writers
}

// groups returns the fan-outs in declaration order.
func (v *validator) groups() []group {
	var groups []group
	add := func(n *Node, place string, ids []string) {
		for _, deferred := range []bool{false, true} { // which never run together
			gr := group{source: n, place: place}
			for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
				if member := v.g.Node(id); member != nil && member.Defer == deferred {
					gr.members = append(gr.members, member)
				}
			}
			if !deferred || len(gr.members) > 1 {
				groups = append(groups, gr)
			}
		}
	}
	for _, n := range v.g.Nodes {
		if n.FanOut {
			add(n, "next", n.Next)
		}
		for place, c := range n.choices {
			if c.All && len(c.Ways) > 1 {
				add(n, place, c.targets())
			}
		}
	}
	return groups
}

// parallelWrites reports keys that several members write and no reducer combines,
// and scripts that do not declare what they write.
func (v *validator) parallelWrites(gr group) {
	for _, n := range gr.members {
		if n.Type == ScriptNode && !n.HasUpdates {
			v.err(RuleParallelScript, n, "", "declare what it writes in state_updates; state_updates: {} says that it writes nothing of its siblings'",
				"%q starts the script in parallel with others, so it needs state_updates that show what it writes", gr.source.ID)
		}
	}
	writers := gr.writers()
	for _, key := range slices.Sorted(maps.Keys(writers)) {
		if ids := writers[key]; len(ids) > 1 && v.g.Reducers[key] == "" && !v.race(ids) {
			v.err(RuleParallelWrite, nil, "nodes."+gr.source.ID+"."+gr.place, fmt.Sprintf("declare how to combine them, for example reducers: {%s: append}", key),
				"parallel nodes [%s] all write %q, and no reducer is declared for it", strings.Join(ids, ", "), key)
		}
	}
}

// race reports whether nodes that start together lead to the same node with join: any and to nothing else, so that only the
// first of them to finish writes anything.
func (v *validator) race(ids []string) bool {
	var to string
	for _, id := range ids {
		next := v.g.Node(id).Next
		if len(next) == 0 {
			return false
		}
		for _, target := range next {
			if n := v.g.Node(target); n == nil || n.Join != JoinAny || to != "" && to != target {
				return false
			}
			to = target
		}
	}
	return true
}

// parallelReads reports members that read what a sibling writes: they run on the
// same snapshot of the state, so they would see the value from before.
func (v *validator) parallelReads(gr group) {
	writers := gr.writers()
	for _, reader := range gr.members {
		from := map[string][]string{} // keys by writer
		for _, key := range reads(reader) {
			for _, writer := range writers[key] {
				if writer != reader.ID {
					from[writer] = append(from[writer], key)
				}
			}
		}
		for _, writer := range slices.Sorted(maps.Keys(from)) {
			v.err(RuleParallelRead, reader, "", fmt.Sprintf("run %s after %s", reader.ID, writer),
				"%q reads %s, which %q writes in parallel with it", reader.ID, strings.Join(from[writer], ", "), writer)
		}
	}
}

// scopedKeys are the keys that hold the result of a node of a type while its state_updates are rendered.
var scopedKeys = map[Type]string{
	AgentNode: "output", LLMNode: "output", RAGNode: "output", GraphNode: "output", ToolNode: "output",
	ApprovalNode: "choice", InputNode: "input", WaitNode: "signal",
}

// writes returns the state keys that a node is known to write, ascending. An update
// of the scoped key does not count: it disappears with the scope.
func writes(n *Node) []string {
	keys := append(schemaProperties(n), subWrites(n)...)
	for _, u := range n.Updates {
		if u.Key != scopedKeys[n.Type] {
			keys = append(keys, u.Key)
		}
	}
	return sortedUnique(keys)
}

// leavesKey reports whether a node is known to write a key, or collects the results of a map in it.
func (n *Node) leavesKey(key string) bool {
	return slices.Contains(writes(n), key) || n.Map != nil && n.Map.CollectInto == key
}

// reads returns the state keys that a node's templates and conditions read, ascending. In
// state_updates the scoped key is not state, nor are the item and the results in the conditions of a map.
func reads(n *Node) []string {
	var keys []string
	for _, use := range templatesOf(n) {
		for _, root := range use.template.Roots() {
			if use.scoped == "" || root != use.scoped {
				keys = append(keys, root)
			}
		}
	}
	for _, c := range n.choices {
		for _, w := range c.Ways {
			if w.When != nil {
				keys = append(keys, w.When.Roots()...)
			}
		}
	}
	if n.Map != nil {
		for _, c := range n.Map.conditions {
			own := func(root string) bool { return root == n.Map.As || root == ResultsKey }
			keys = append(keys, slices.DeleteFunc(c.expr.Roots(), own)...)
		}
	}
	return sortedUnique(keys)
}

// use is a template in a node.
type use struct {
	path     string // below the node
	template Template
	strict   bool   // what is missing is an error
	scoped   string // key that is there besides the state
}

// templatesOf returns the templates of a node, those of state_updates last.
func templatesOf(n *Node) []use {
	var uses []use
	add := func(path string, t *Template, strict bool) {
		if t != nil {
			uses = append(uses, use{path: path, template: *t, strict: strict})
		}
	}
	switch {
	case n.Agent != nil:
		add("prompt", &n.Agent.Prompt, true)
	case n.Approval != nil:
		add("question", &n.Approval.Question, true)
		add("default", n.Approval.Default, false)
	case n.Input != nil:
		add("question", &n.Input.Question, true)
		add("default", n.Input.Default, false)
	case n.LLM != nil:
		add("instructions", n.LLM.Instructions, true)
		add("prompt", &n.LLM.Prompt, true)
	case n.RAG != nil:
		add("query", &n.RAG.Query, true)
	case n.Map != nil:
		add("over", &n.Map.Over, true)
	case n.Sub != nil:
		n.Sub.With.templates(func(path string, t *Template) { add("with"+path, t, true) })
	case n.Tool != nil:
		n.Tool.Arguments.templates(func(path string, t *Template) { add("arguments"+path, t, true) })
	case n.Wait != nil:
		n.Wait.templates(add)
	case n.End != nil:
		add("output", &n.End.Output, false)
	}
	add("expires", n.Expires, true)
	if n.Cache != nil {
		add("cache.key", n.Cache.Key, true)
	}
	for place, c := range n.choices {
		add(place+".on", c.On, false)
	}
	for _, u := range n.Updates {
		uses = append(uses, use{path: "state_updates." + u.Key, template: u.Template, scoped: scopedKeys[n.Type]})
	}
	return uses
}
