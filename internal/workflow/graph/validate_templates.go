package graph

import (
	"fmt"
	"slices"
	"strings"

	"loki/internal/base/process/environ"
)

// scopedUpdates reports updates of the key that is gone after the updates. For the
// branch of a map that delivers this key, that is how it delivers it.
func (v *validator) scopedUpdates(n *Node) {
	scoped := scopedKeys[n.Type]
	for _, u := range n.Updates {
		if scoped == "" || u.Key != scoped || v.delivers(n, scoped) {
			continue
		}
		v.warn(RuleScopedUpdate, n, "state_updates."+u.Key, "store it under another key",
			"%q is there only while the state_updates are made, so this one is dropped", scoped)
	}
}

func (v *validator) delivers(n *Node, key string) bool {
	return slices.ContainsFunc(v.branchOf[n.ID], func(m *Node) bool { return m.Map.OutputKey == key })
}

// placeholders reports text that was probably meant as a placeholder, and
// placeholders that can never be resolved.
func (v *validator) placeholders(n *Node) {
	for _, use := range templatesOf(n) {
		for _, p := range use.template.parts {
			switch {
			case p.hole && len(p.path) == 0:
				v.warn(RulePlaceholder, n, use.path, "a path is a key, then .member or [number] as often as needed", "{{%s}} can never be found in the state", p.text)
			case !p.hole:
				if text, path := almostPlaceholder(p.text); text != "" {
					v.warn(RulePlaceholder, n, use.path, fmt.Sprintf("a placeholder is written {{%s}}, of letters, digits, _ . [ ] and without spaces", path), "%s is ordinary text", text)
				}
			}
		}
	}
}

// almostPlaceholder returns the first {{ path }} in literal text that is no
// placeholder only because of spaces or hyphens, and the placeholder it could be.
func almostPlaceholder(text string) (found, path string) {
	for {
		_, after, ok := strings.Cut(text, "{{")
		if !ok {
			return "", ""
		}
		inner, _, ok := strings.Cut(after, "}}")
		if !ok {
			return "", ""
		}
		path := strings.ReplaceAll(strings.Trim(inner, " \t"), "-", "_")
		if path != "" && strings.Trim(path, "_") != "" && !strings.ContainsFunc(path, func(r rune) bool { return r > 127 || !isPathByte(byte(r)) }) {
			return "{{" + inner + "}}", path
		}
		text = after
	}
}

// undefinedReads reports placeholders for keys that nothing writes. It is silent if
// something in the graph may write keys that are not declared: a script, or a model
// whose answer has an open schema.
func (v *validator) undefinedReads(n *Node) {
	known, closed := v.knownKeys()
	isItem := func(key string) bool {
		return slices.ContainsFunc(v.branchOf[n.ID], func(m *Node) bool { return m.Map.As == key })
	}
	for _, use := range templatesOf(n) {
		v.loopReads(n, use)
		for _, root := range use.template.Roots() {
			_, written := slices.BinarySearch(known, root)
			if !closed || written || root == "" || root == use.scoped || isItem(root) || root == CompensatesKey && v.isCompensation(n) {
				continue
			}
			v.add(v.undefinedSeverity(), RuleUndefinedRead, n, use.path, v.undefinedHint(root),
				fmt.Sprintf("{{%s}} is read, but nothing writes %q, so %s", root, root, use.effect()))
		}
	}
}

// loopReads reports visits that are read of what is not a node.
func (v *validator) loopReads(n *Node, use use) {
	if _, own := v.g.InitialState.Get(LoopKey); own {
		return
	}
	for _, p := range use.template.parts {
		if len(p.path) > 1 && p.path[0].name == LoopKey && v.g.Node(p.path[1].name) == nil {
			v.warn(RuleUndefinedRead, n, use.path, didYouMean(p.path[1].name, nodeIDs(v.g)), "{{%s}} is read, but there is no node %q", p.text, p.path[1].name)
		}
	}
}

// effect says what comes of a placeholder that is never found.
func (u use) effect() string {
	if u.strict {
		return "the node always fails"
	}
	return "it is always empty"
}

// knownKeys returns the keys that are declared or written somewhere, ascending; closed is false if there
// may be others.
func (v *validator) knownKeys() (known []string, closed bool) {
	if v.known == nil {
		v.known, v.closed = v.g.knownKeys()
	}
	return v.known, v.closed
}

func (g *Graph) knownKeys() (known []string, closed bool) {
	if s := g.Schema; s != nil && s.Strict {
		return sortedUnique(g.declaredKeys()), true
	}
	for _, n := range g.Nodes {
		if n.Type == ScriptNode || outputSchema(n) != nil && len(schemaProperties(n)) == 0 {
			return nil, false
		}
	}
	return g.Keys(), true
}

// Keys returns the keys of the state that the definition says are written, ascending. Scripts and models may write others.
func (g *Graph) Keys() []string {
	known := g.declaredKeys()
	for key := range g.InitialState.All() {
		known = append(known, key)
	}
	for _, n := range g.Nodes {
		known = append(known, writes(n)...)
		if n.Map != nil {
			known = append(known, n.Map.CollectInto)
		}
	}
	return sortedUnique(known)
}

// declaredKeys returns the keys of the state that are there without a node that writes them.
func (g *Graph) declaredKeys() []string {
	known := append(slices.Clone(g.given), LastErrorKey, LoopKey)
	if !g.IsInner() {
		known = append(known, PromptKey)
	}
	if g.Schema != nil {
		known = append(known, g.Schema.names()...)
	}
	return known
}

// sortedUnique returns the keys ascending, each once.
func sortedUnique(keys []string) []string {
	slices.Sort(keys)
	return slices.Compact(keys)
}

func (v *validator) undefinedHint(key string) string {
	known, _ := v.knownKeys()
	if hint := didYouMean(key, known); hint != "" {
		return hint
	}
	if v.g.IsInner() && key == PromptKey {
		return "a subgraph sees only what with: gives it: {" + PromptKey + ": \"{{" + PromptKey + "}}\"}"
	}
	switch key {
	case "output", "choice", "input":
		return fmt.Sprintf("%s is there only in the state_updates of the node it comes from; store it under a key of your own", key)
	}
	if slices.ContainsFunc(v.g.Variables, func(variable Variable) bool { return variable.Name == key }) {
		return "agent variables reach scripts, as " + environ.AgentVariable(key) + ", but not the state"
	}
	return ""
}

// KeyHint reports whether a node may write a key of the state, as far as that can be known, and else what may be meant.
func (g *Graph) KeyHint(key string) (hint string, known bool) {
	keys, closed := g.knownKeys()
	if !closed || slices.Contains(keys, key) {
		return "", true
	}
	if near := didYouMean(key, keys); near != "" {
		hint = "; " + near
	}
	return hint, false
}
