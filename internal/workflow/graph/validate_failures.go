package graph

import (
	"maps"
	"slices"
	"strings"
)

// failureTexts reports questions, outputs and arguments of tools in which the text of a failure may stand that the definition says
// nothing about.
func (v *validator) failureTexts(n *Node) {
	for _, key := range v.g.failureKeys(n) {
		f := &failureText{v: v, from: InnerName(v.g.within, n.ID), seen: map[place]bool{}}
		f.after(v.g, n, key)
	}
}

// failureKeys returns the keys of the state that have the text of a failure after n.
func (g *Graph) failureKeys(n *Node) (keys []string) {
	switch {
	case n.Map != nil:
		if of := g.Node(n.Map.Branch); of != nil && g.continues(of) {
			keys = append(keys, n.Map.CollectInto)
		}
	case n.Sub != nil:
		for _, o := range n.Sub.Outputs {
			for _, inner := range n.Sub.Graph.Nodes {
				if slices.ContainsFunc(o.Path.Roots(), func(root string) bool { return slices.Contains(n.Sub.Graph.failureKeys(inner), root) }) {
					keys = append(keys, o.Key)
				}
			}
		}
	case g.continues(n):
		for _, u := range n.Updates {
			if u.Template.shows(scopedKeys[n.Type]) && u.Key != scopedKeys[n.Type] {
				keys = append(keys, u.Key)
			}
		}
	}
	return sortedUnique(keys)
}

// continues reports whether the run takes the text of a failure of n for its result, and the definition does not say so.
func (g *Graph) continues(n *Node) bool {
	return n.Type == LLMNode && len(n.Next) > 0 && !g.handles(n)
}

// shows reports whether t has a placeholder of a whole key.
func (t Template) shows(key string) bool {
	return slices.ContainsFunc(t.parts, func(p part) bool { return p.hole && len(p.path) == 1 && p.path[0].name == key })
}

// failureText follows the text of a failure of a node through a graph.
type failureText struct {
	v    *validator
	from string // name of the node
	seen map[place]bool
}

type place struct {
	node *Node
	key  string
}

// after follows the text, which a key has when n is done, to the nodes that n leads to. Ways on which the author looks at
// _last_error are not followed.
func (f *failureText) after(g *Graph, n *Node, key string) {
	for _, e := range g.Edges(n) {
		if e.Field == "compensate" || e.Field == "branch" || n.asksForFailure() {
			continue
		}
		if to := g.Node(e.To); to != nil {
			f.at(g, to, key)
		}
	}
}

// asksForFailure reports whether a condition of n reads _last_error.
func (n *Node) asksForFailure() bool {
	for _, c := range n.choices {
		if c.On != nil && slices.Contains(c.On.Roots(), LastErrorKey) || slices.ContainsFunc(c.Ways, func(w Way) bool { return w.When != nil && slices.Contains(w.When.Roots(), LastErrorKey) }) {
			return true
		}
	}
	return false
}

// at reports what n does with the text that a key has, and follows it further.
func (f *failureText) at(g *Graph, n *Node, key string) {
	if f.seen[place{n, key}] {
		return
	}
	f.seen[place{n, key}] = true
	f.sinks(g, n, key)
	switch {
	case n.Map != nil:
		if branch := g.Node(n.Map.Branch); branch != nil {
			f.sinks(g, branch, key)
			if slices.Contains(n.Map.Over.Roots(), key) {
				f.sinks(g, branch, n.Map.As)
			}
		}
	case n.Sub != nil:
		n.Sub.With.templates(func(path string, t *Template) {
			given, _, _ := strings.Cut(strings.TrimPrefix(path, "."), ".")
			if inner := n.Sub.Graph; t.shows(key) && inner.Node(inner.Start) != nil {
				f.at(inner, inner.Node(inner.Start), given)
			}
		})
	}
	for _, u := range n.Updates {
		if u.Key != key && u.Key != scopedKeys[n.Type] && u.Template.shows(key) {
			f.after(g, n, u.Key)
		}
	}
	if _, reduced := g.Reducers[key]; !n.leavesKey(key) || reduced {
		f.after(g, n, key)
	}
}

// sinks reports what of n reaches a user or a tool and shows a key.
func (f *failureText) sinks(g *Graph, n *Node, key string) {
	var what string
	switch n.Type {
	case ApprovalNode, InputNode:
		what = "the question"
	case EndNode:
		what = "the output of the graph"
	case ToolNode:
		what = "the call of tool " + n.Tool.Tool
	default:
		return
	}
	for _, use := range templatesOf(n) {
		if field, _, _ := strings.Cut(use.path, "."); field == "state_updates" || !slices.Contains(use.template.Roots(), key) {
			continue
		}
		f.v.report(g.at(Finding{
			Severity: SeverityWarning, Rule: RuleFailureText, Path: use.path,
			Message: "{{" + key + "}} in " + what + " can be the text of an error: node \"" + f.from + "\" has no fallback, and the run continues when it fails",
			Hint:    "write settings: {on_failure: fail}, or give node \"" + f.from + "\" a fallback",
		}, n))
	}
}

// firstReads reports strict placeholders of keys with a reducer that a node reads before any has written them.
func (v *validator) firstReads() {
	for _, key := range slices.Sorted(maps.Keys(v.g.Reducers)) {
		_, there := v.g.InitialState.Get(key)
		if there || slices.Contains(v.g.declaredKeys(), key) || v.g.Node(v.g.Start) == nil || !slices.Contains(v.g.Keys(), key) && v.isClosed() {
			continue
		}
		unwritten := map[*Node]bool{}
		v.before(v.g.Node(v.g.Start), key, unwritten)
		for _, n := range v.g.Nodes {
			for _, use := range templatesOf(n) {
				if !unwritten[n] || !use.strict || !slices.Contains(use.template.Roots(), key) || slices.ContainsFunc(v.branchOf[n.ID], func(m *Node) bool { return m.Map.As == key }) {
					continue
				}
				v.warn(RuleUndefinedRead, n, use.path, "give it a first value: initial_state: {"+key+": "+v.g.Reducers[key].empty()+"}",
					"{{%s}} is read before a node has written %q, which is not in initial_state, so the node fails", key, key)
			}
		}
	}
}

func (v *validator) isClosed() bool {
	_, closed := v.knownKeys()
	return closed
}

// before notes the nodes that run before any has written a key, as far as that is certain of the declared edges.
func (v *validator) before(n *Node, key string, unwritten map[*Node]bool) {
	if n == nil || unwritten[n] {
		return
	}
	unwritten[n] = true
	writes := n.leavesKey(key) || writesUnknown(n)
	for _, e := range v.g.Edges(n) {
		if e.Field == "branch" || !writes && e.Field != "compensate" {
			v.before(v.g.Node(e.To), key, unwritten)
		}
	}
}

// empty returns what a key with the reducer can begin with, as YAML.
func (r Reducer) empty() string {
	switch r {
	case ReduceAppend, ReduceExtend:
		return "[]"
	case ReduceMerge:
		return "{}"
	case ReduceConcat:
		return `""`
	}
	return "0"
}
