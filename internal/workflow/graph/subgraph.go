package graph

import (
	"cmp"
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"loki/internal/base/value"
)

// Subgraph is a graph that a node runs in a run of its own, inside the run of the graph that the node belongs to. It sees nothing
// of the state around it but what With gives it.
type Subgraph struct {
	File    string    // its definition, relative to the agent's directory; empty if it is in the node
	With    Arguments // what its state begins with, over the initial state of Graph
	Outputs []Output  // what of its last state goes into the state around it
	Graph   *Graph    // never nil in a parsed graph
}

// Output is a value that leaves a subgraph.
type Output struct {
	Key  string   // of the state around it
	Path Template // one placeholder, of a value in the last state of the subgraph
}

// inside says where a subgraph belongs. The zero inside is that of a graph that is none.
type inside struct {
	within   string // name of the node that runs it, see InnerName
	base     string // what paths begin with in the document that it is in: "nodes.research."
	included bool   // the document is another one than that of the outermost graph
	given    []string

	innerModel string // of its nodes that name none: its own, or that of a subgraph around it
}

// IsInner reports whether g is a subgraph.
func (g *Graph) IsInner() bool { return g.within != "" }

// file returns the path of the document of g if that is not the one of the outermost graph.
func (g *Graph) file() string {
	if g.included {
		return g.File
	}
	return ""
}

// Member is a node of a graph or of one of its subgraphs.
type Member struct {
	*Node
	Graph *Graph // that the node belongs to
	Name  string // its id; of a node of a subgraph that of the nodes around it, too: research/search
}

// Model returns the model that an llm node names, or else the subgraphs that it is in; "" for that of the agent.
func (m Member) Model() string { return cmp.Or(m.LLM.Model, m.Graph.innerModel) }

// All ranges over the nodes of g and of its subgraphs in declaration order. What a node runs follows it.
func (g *Graph) All() iter.Seq[Member] {
	return func(yield func(Member) bool) { g.all(yield) }
}

func (g *Graph) all(yield func(Member) bool) bool {
	for _, n := range g.Nodes {
		if !yield(Member{n, g, InnerName(g.within, n.ID)}) || n.Sub != nil && !n.Sub.Graph.all(yield) {
			return false
		}
	}
	return true
}

// Find returns the first node of g and its subgraphs for which f holds; ok is false if there is none.
func (g *Graph) Find(f func(n *Node) bool) (m Member, ok bool) {
	for m := range g.All() {
		if f(m.Node) {
			return m, true
		}
	}
	return Member{}, false
}

// At returns f as a finding about the place that its path means below the node.
func (m Member) At(f Finding) Finding { return m.Graph.at(f, m.Node) }

// at returns f as a finding about the place that its path means below n, or in g if n is nil.
func (g *Graph) at(f Finding, n *Node) Finding {
	f.Node, f.File = g.within, g.file()
	if n != nil {
		f.Node = InnerName(g.within, n.ID)
		f.Path = strings.TrimSuffix("nodes."+n.ID+"."+f.Path, ".")
	}
	f.Pos = g.Pos(f.Path)
	f.Path = g.base + f.Path
	return f
}

// InnerName returns the name of the node called id of the subgraph that the node with a name runs. Without the name of a node it is the id.
func InnerName(outer, id string) string {
	if outer == "" {
		return id
	}
	return outer + "/" + EscapeID(id)
}

// EscapeID escapes in the id of a node what has a meaning in the names of nodes of subgraphs, of questions and of effects.
func EscapeID(id string) string { return plainID.Replace(id) }

var plainID = strings.NewReplacer("%", "%25", "/", "%2F", "@", "%40", "[", "%5B", "]", "%5D")

// Initial returns the state that the subgraph begins with when the state around it is s. Placeholders that are missing are a
// [*MissingError], and what does not fit the schema of its state is a [*StateError].
func (s *Subgraph) Initial(outer Lookup) (State, error) {
	given, err := s.With.render(outer)
	if err != nil {
		return State{}, err
	}
	var writes []value.Member
	for name, v := range given.AsObject().All() {
		writes = append(writes, value.Member{Name: name, Value: v})
	}
	state := NewState(s.Graph.InitialState).With(writes...)
	return state, s.Graph.Schema.CheckAll(state)
}

// Results returns what leaves the subgraph when its last state is s. Values that are missing are a [*MissingError].
func (s *Subgraph) Results(last State) ([]value.Member, error) {
	missing := new(MissingError)
	results := make([]value.Member, 0, len(s.Outputs))
	for _, o := range s.Outputs {
		v, err := o.Path.Raw(last)
		if err != nil {
			missing.Paths = append(missing.Paths, o.path())
			continue
		}
		results = append(results, value.Member{Name: o.Key, Value: v})
	}
	if missing.Paths != nil {
		return nil, missing
	}
	return results, nil
}

// path returns the path as the definition has it.
func (o Output) path() string {
	return strings.TrimSuffix(strings.TrimPrefix(o.Path.Source, "{{"), "}}")
}

// key returns the key of the subgraph that the output is a part of.
func (o Output) key() string { return o.Path.Roots()[0] }

// asksInside reports whether a node of the subgraph of n, if there is one, is a question.
func (n *Node) asksInside() bool {
	if n.Sub == nil {
		return false
	}
	_, ok := n.Sub.Graph.Find(func(n *Node) bool { return n.Approval != nil || n.Input != nil })
	return ok
}

// bundle is the form of a definition with those of its subgraphs that are files. It cannot be taken for a definition.
type bundle struct {
	Definition string            `json:"definition"`
	Files      map[string]string `json:"files"`
}

// Bundle returns the text of the definition of g together with those of its subgraphs. If there are no such files it is
// the text alone. [ReadBundle] reads it.
func (g *Graph) Bundle() []byte {
	if len(g.Files) == 0 {
		return g.Text
	}
	b := bundle{Definition: string(g.Text), Files: make(map[string]string, len(g.Files))}
	for name, text := range g.Files {
		b.Files[name] = string(text)
	}
	data, err := json.Marshal(b)
	if err != nil {
		panic(err) // of texts alone
	}
	return data
}

// ReadBundle is [Read] for what [Graph.Bundle] returned.
func ReadBundle(file string, data []byte) (*Graph, Findings, error) {
	var b bundle
	if json.Unmarshal(data, &b) != nil || b.Files == nil {
		return Read(file, data, nil)
	}
	return Read(file, []byte(b.Definition), func(path string) ([]byte, error) {
		text, ok := b.Files[path]
		if !ok {
			return nil, errNotRecorded
		}
		return []byte(text), nil
	})
}

// sub adds what a node says of its subgraph, without what is in that.
func (l *aspects) sub(s *Subgraph) {
	if s.With.Source.Len() > 0 {
		v := s.With.Source.Value()
		l.value("with", &v)
	}
	for _, o := range s.Outputs {
		l.text("outputs."+o.Key, o.path())
	}
}

// subWrites returns the keys that the subgraph of n writes into the state around it by its outputs.
func subWrites(n *Node) []string {
	if n.Sub == nil {
		return nil
	}
	keys := make([]string, 0, len(n.Sub.Outputs))
	for _, o := range n.Sub.Outputs {
		keys = append(keys, o.Key)
	}
	return keys
}

// subgraphs checks the subgraph of a node, and what leaves it.
func (v *validator) subgraphs(n *Node) {
	if n.Sub == nil {
		return
	}
	for _, f := range Validate(n.Sub.Graph, v.env) {
		v.report(f)
	}
	inner := validator{g: n.Sub.Graph}
	known, closed := inner.knownKeys()
	for _, o := range n.Sub.Outputs {
		if _, written := slices.BinarySearch(known, o.key()); closed && !written {
			v.err(RuleOutputs, n, "outputs."+o.Key, inner.undefinedHint(o.key()), "%s is read of the subgraph, but nothing in it writes %q, so the node always fails", o.path(), o.key())
		}
	}
}
