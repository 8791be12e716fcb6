package draft

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"loki/internal/base/text"
	"loki/internal/llm/chat"
	"loki/internal/workflow/graph"
)

// What an estimate takes for granted where the graph does not say it.
const (
	ItemsAtMost       = 10    // elements of the list of a map
	ChildCallsAtMost  = 10    // calls of a model by an agent that a node starts
	childInputAtMost  = 10000 // tokens of each of them
	placeholderAtMost = 2000  // tokens of what replaces a placeholder
	replyAtLeast      = 50    // tokens of a reply
	replyAtMost       = 1000
	toolResultAtMost  = 1000 // tokens that a call of a tool adds to the input of each further one
)

// Range is a number that is not known exactly.
type Range[T int | float64] struct {
	Least T `json:"least"`
	Most  T `json:"most"`
}

func (r Range[T]) add(other Range[T]) Range[T] {
	return Range[T]{r.Least + other.Least, r.Most + other.Most}
}

// times returns the range for something that is done as often as n says.
func (r Range[T]) times(n Range[int]) Range[T] {
	return Range[T]{r.Least * T(n.Least), r.Most * T(n.Most)}
}

// Price is what a run of a graph is likely to cost, if nothing fails and no script chooses another way.
type Price struct {
	Calls  Range[int]     `json:"calls"` // of models
	Input  Range[int]     `json:"input_tokens"`
	Output Range[int]     `json:"output_tokens"`
	USD    Range[float64] `json:"usd"` // of the models whose prices are known

	Unknown []string `json:"unknown_prices,omitempty"` // ids of the other models, ascending
	Assumed []string `json:"assumed,omitempty"`        // what the graph does not say
}

// Model is what an estimate has to know of a model.
type Model struct {
	ID            string
	Input, Output *float64 // US dollars for a million tokens; nil is unknown
	OutputLimit   int      // tokens; 0 is unknown
}

// Facts are what an estimate has to know of the world.
type Facts struct {
	Model func(id string) Model            // of a node that names it; "" for one that names none
	Tools func(n *graph.Node) (tokens int) // of the declarations of the tools that a node lists
}

// Estimate returns what a run of g is likely to cost. It runs nothing.
func Estimate(g *graph.Graph, facts Facts) Price {
	e := estimator{g: g, facts: facts}
	certain := certainNodes(g)
	for _, n := range g.Nodes {
		visits := Range[int]{0, e.visits(n)}
		if certain[n.ID] {
			visits.Least = 1
		}
		if over := e.mapOver(n); over != nil {
			visits = Range[int]{0, ItemsAtMost}
			e.assume("%s has at most %d elements for %s", over.Map.Over.Source, ItemsAtMost, over.ID)
		}
		if of := compensatedBy(g, n); len(of) > 0 {
			visits = Range[int]{}
			for _, done := range of {
				visits.Most += e.visits(done)
			}
			if n.LLM != nil || n.Agent != nil || n.Sub != nil || n.Map != nil {
				e.assume("%s runs only if the run fails", n.ID)
			}
		}
		switch {
		case n.LLM != nil:
			e.llm(n, visits)
		case n.Agent != nil:
			e.assume("agent %s makes 1 to %d calls", n.Agent.Agent, ChildCallsAtMost)
			calls := Range[int]{1, ChildCallsAtMost}
			prompt := literal(n.Agent.Prompt)
			e.add("", visits, calls, Range[int]{prompt, ChildCallsAtMost * childInputAtMost})
		case n.Sub != nil:
			e.subgraph(n, visits)
		case n.RAG != nil:
			e.assume("the search of %s costs nothing worth mentioning", n.ID)
		}
	}
	if limit := g.Settings.Budget.USD; limit > 0 {
		e.price.USD.Least, e.price.USD.Most = math.Min(e.price.USD.Least, limit), math.Min(e.price.USD.Most, limit)
	}
	slices.Sort(e.price.Unknown)
	return e.price
}

// subgraph adds what the nodes of a subgraph cost.
func (e *estimator) subgraph(n *graph.Node, visits Range[int]) {
	facts := e.facts
	model := facts.Model
	facts.Model = func(id string) Model { return model(cmp.Or(id, n.Sub.Graph.Model)) }
	inner := Estimate(n.Sub.Graph, facts)
	p := &e.price
	p.Calls, p.Input, p.Output = p.Calls.add(inner.Calls.times(visits)), p.Input.add(inner.Input.times(visits)), p.Output.add(inner.Output.times(visits))
	p.USD = p.USD.add(inner.USD.times(Range[int]{visits.Least, visits.Most}))
	for _, id := range inner.Unknown {
		if !slices.Contains(p.Unknown, id) {
			p.Unknown = append(p.Unknown, id)
		}
	}
	for _, line := range inner.Assumed {
		e.assume("%s", line)
	}
}

type estimator struct {
	g     *graph.Graph
	facts Facts
	price Price
}

func (e *estimator) assume(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); !slices.Contains(e.price.Assumed, line) {
		e.price.Assumed = append(e.price.Assumed, line)
	}
}

// visits returns how often a run visits a node at most: once, plus once for each time that it may take a bounded edge of a
// loop through the node.
func (e *estimator) visits(n *graph.Node) int {
	visits := 1
	for _, from := range e.g.Nodes {
		for _, edge := range e.g.Edges(from) {
			if edge.Bounded() && leads(e.g, edge.To, n.ID) && leads(e.g, n.ID, from.ID) {
				visits += edge.Way.Max
			}
		}
	}
	return min(visits, max(e.g.Settings.MaxLoopIterations, 1))
}

// compensatedBy returns the nodes whose effects n undoes: it runs once for each of their visits.
func compensatedBy(g *graph.Graph, n *graph.Node) []*graph.Node {
	var of []*graph.Node
	for _, done := range g.Nodes {
		if done.Compensate == n.ID {
			of = append(of, done)
		}
	}
	return of
}

// leads reports whether there is a way from one node to another, which may be the same.
func leads(g *graph.Graph, from, to string) bool {
	seen, todo := make(map[string]bool), []string{from}
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if id == to {
			return true
		}
		n := g.Node(id)
		if n == nil || seen[id] {
			continue
		}
		seen[id] = true
		for _, edge := range g.Edges(n) {
			todo = append(todo, edge.To)
		}
	}
	return false
}

// mapOver returns the map whose branch n is, nil if it is none.
func (e *estimator) mapOver(n *graph.Node) *graph.Node {
	i := slices.IndexFunc(e.g.Nodes, func(m *graph.Node) bool { return m.Map != nil && m.Map.Branch == n.ID })
	if i < 0 {
		return nil
	}
	return e.g.Nodes[i]
}

// llm adds what a node costs that asks a model.
func (e *estimator) llm(n *graph.Node, visits Range[int]) {
	calls := Range[int]{1, 1}
	if len(n.LLM.Tools) > 0 {
		calls.Most = max(1, n.LLM.MaxIterations)
	}
	turns := calls.Most
	if n.LLM.OutputSchema != nil {
		calls.Most += 2 // the data is extracted, and once corrected
	}
	first := Range[int]{literal(n.LLM.Prompt), longest(n.LLM.Prompt)}
	if t := n.LLM.Instructions; t != nil {
		first = first.add(Range[int]{literal(*t), longest(*t)})
	}
	if len(n.LLM.Tools) > 0 && e.facts.Tools != nil {
		tokens := e.facts.Tools(n)
		first = first.add(Range[int]{tokens, tokens})
	}
	input := Range[int]{first.Least, first.Most*calls.Most + toolResultAtMost*turns*(turns-1)/2}
	e.add(n.LLM.Model, visits, calls, input)
}

// add adds visits of a node, each of which makes calls with this input in all.
func (e *estimator) add(model string, visits, calls, input Range[int]) {
	m := e.facts.Model(model)
	reply := Range[int]{replyAtLeast, replyAtMost}
	if m.OutputLimit > 0 {
		reply = Range[int]{min(reply.Least, m.OutputLimit), min(reply.Most, m.OutputLimit)}
	}
	input, output := input.times(visits), reply.times(calls).times(visits)
	p := &e.price
	p.Calls, p.Input, p.Output = p.Calls.add(calls.times(visits)), p.Input.add(input), p.Output.add(output)
	if m.Input == nil || m.Output == nil {
		if !slices.Contains(p.Unknown, m.ID) {
			p.Unknown = append(p.Unknown, m.ID)
		}
		return
	}
	const million = 1e6
	cost := func(in, out int) float64 { return (float64(in)**m.Input + float64(out)**m.Output) / million }
	p.USD = p.USD.add(Range[float64]{cost(input.Least, output.Least), cost(input.Most, output.Most)})
}

var placeholder = text.Regexp(`\{\{[a-zA-Z0-9_.\[\]]+\}\}`)

// literal returns the tokens of a template without the values of its placeholders.
func literal(t graph.Template) int {
	return chat.EstimateTokens(placeholder().ReplaceAllString(t.Source, ""))
}

// longest returns the tokens of a template whose placeholders are long.
func longest(t graph.Template) int {
	return literal(t) + placeholderAtMost*len(placeholder().FindAllString(t.Source, -1))
}

// certainNodes returns the nodes that each way from the start to an end passes if nothing fails, by their ids.
func certainNodes(g *graph.Graph) map[string]bool {
	certain := make(map[string]bool)
	for _, n := range g.Nodes {
		if !reachesEnd(g, n.ID) {
			certain[n.ID] = true
		}
	}
	for grown := true; grown; { // all targets of a list run
		grown = false
		for _, n := range g.Nodes {
			if !certain[n.ID] || !n.FanOut || n.Approval != nil || n.Input != nil {
				continue
			}
			for _, to := range n.Next {
				if !certain[to] {
					certain[to], grown = true, true
				}
			}
		}
	}
	return certain
}

// reachesEnd reports whether there is a way from the start to an end that does not pass a node.
func reachesEnd(g *graph.Graph, without string) bool {
	seen := map[string]bool{without: true}
	todo := []string{g.Start}
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		n := g.Node(id)
		if seen[id] || n == nil {
			continue
		}
		if seen[id] = true; n.End != nil {
			return true
		}
		for _, edge := range g.Edges(n) {
			if edge.Field != "fallback" && edge.Field != "branch" {
				todo = append(todo, edge.To)
			}
		}
	}
	return false
}
