package graph

import (
	"slices"
	"strings"
	"time"

	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/catalog"
	"loki/internal/llm/chat"
)

// ReadVariables reads the list under the key variables of a definition of an agent, of either
// kind. What is wrong is reported to the document.
func ReadVariables(m *yamldoc.Map) []Variable {
	var variables []Variable
	for _, n := range m.List("variables") {
		m := n.Map()
		if m == nil {
			continue
		}
		var v Variable
		m.Require("name", "description")
		m.Text("name", &v.Name)
		m.Text("description", &v.Description)
		v.Default = optional("default", m.Text)
		m.Done()
		variables = append(variables, v)
	}
	return variables
}

// ReadEnvironment reads the list under the key environment: names of variables that children
// get although they look like secrets.
func ReadEnvironment(m *yamldoc.Map) (names []string) {
	m.Texts("environment", &names)
	for _, n := range m.List("environment") {
		if name, ok := n.Text(); ok && (name == "" || strings.ContainsAny(name, "=\x00*")) {
			n.Errorf("%q cannot be the name of an environment variable", name).Hint = "list names, such as GITHUB_TOKEN; the values are those of your environment"
		}
	}
	return names
}

// ReadSampling reads the keys temperature, top_p and reasoning_effort.
func ReadSampling(m *yamldoc.Map) chat.Sampling {
	s := chat.Sampling{Temperature: optional("temperature", m.Float), TopP: optional("top_p", m.Float)}
	var effort string
	if !m.Text("reasoning_effort", &effort) || slices.Contains(catalog.Levels(), effort) {
		s.Effort = chat.Effort(effort)
		return s
	}
	problem := m.Get("reasoning_effort").Errorf("want one of %s, found %q", strings.Join(catalog.Levels(), ", "), effort)
	if near := yamldoc.Nearest(effort, catalog.Levels()); near != "" {
		problem.Hint = "did you mean " + near + "?"
	}
	return s
}

// ReadBudget reads the bounds under the key budget.
func ReadBudget(m *yamldoc.Map) (budget Budget) {
	b := section(m, "budget", "{usd: 0.50, tokens: 100000, seconds: 600}")
	positive(b, "usd", &budget.USD, b.Float)
	positive(b, "tokens", &budget.Tokens, b.Uint)
	positive(b, "duration", &budget.Duration, b.Span)
	positive(b, "seconds", &budget.Duration, b.Seconds)
	b.Done()
	return budget
}

// positive reads a number greater than zero.
func positive[T int | float64 | time.Duration](m *yamldoc.Map, key string, dst *T, read func(string, *T) bool) {
	var v T
	switch {
	case !read(key, &v):
	case v > 0:
		*dst = v
	default:
		n := m.Get(key)
		n.Errorf("must be greater than 0, found %s", n.Describe()).Hint = "for no bound, leave it out"
	}
}

// section reads a mapping of options, nil if it is absent, null or no mapping, which
// is reported with the example.
func section(m *yamldoc.Map, key, example string) *yamldoc.Map {
	n := m.Get(key)
	switch {
	case n == nil || n.Kind() == yamldoc.Null:
		return nil
	case n.Kind() != yamldoc.Mapping:
		n.Errorf("expected a mapping, found %s", n.Describe()).Hint = "write " + key + ": " + example
		return nil
	}
	return n.Map()
}

// Places says where things are in a definition, by path: "settings.timeout",
// "nodes.a.next[1]".
type Places map[string]Pos

// maxPlaces bounds the paths whose place is kept; aliases can make a small text have
// very many.
const maxPlaces = 1 << 18

// PlacesOf returns where n and everything below it stands: a scalar where it begins, a
// list or mapping where its key is.
func PlacesOf(n *yamldoc.Node) Places {
	p := make(Places)
	p.add(n)
	return p
}

func (p Places) add(n *yamldoc.Node) {
	key := Pos(n.KeyPos())
	if len(p) >= maxPlaces {
		return
	}
	switch n.Kind() {
	case yamldoc.Mapping:
		p[n.Path()] = key
		for e := range n.Map().All() {
			p.add(e.Node)
		}
	case yamldoc.List:
		p[n.Path()] = key
		items, _ := n.List()
		for _, item := range items {
			p.add(item)
		}
	case yamldoc.Null:
		p[n.Path()] = key
	default:
		p[n.Path()] = Pos(n.Pos())
	}
}

// At returns where path stands. If it is not there, the place of the nearest enclosing
// path is returned; the zero Pos is unknown.
func (p Places) At(path string) Pos {
	for {
		if pos, ok := p[path]; ok || path == "" {
			return pos
		}
		path = parentPath(path)
	}
}

func parentPath(path string) string {
	for i := len(path) - 1; i > 0; i-- {
		if path[i] == '.' || path[i] == '[' {
			return path[:i]
		}
	}
	return ""
}
