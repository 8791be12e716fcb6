package cases

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/workflow/graph"
)

// Trace is what a case did, as its events say.
type Trace struct {
	Route     []string // nodes of the agent's graph, in the order in which they began
	State     map[string]value.Value
	Calls     []MadeCall // of tools, by the agent and the agents it called
	Questions []string   // ids of the questions that were asked
	Output    string
	Error     string // of the run
	Code      string // of the error
	Usage     chat.Usage
	Visits    map[string]*Visits // by the name of the agent
	Files     map[string]string  // of the working directory, by path: those of which something is expected

	Recorded []byte // the cassette that was written; nil if none was
	Exit     int
	Stderr   string
	Duration time.Duration
}

// MadeCall is a call that a model made.
type MadeCall struct {
	Name      string
	Arguments value.Value // a string if they are not JSON
}

// Visits are what was visited of a graph.
type Visits struct {
	Nodes map[string]bool
	Edges map[[2]string]bool // from, to; from a node to its compensation if that undid it
	Maps  map[string]bool    // maps that ran their branch
}

// newVisits returns no visits.
func newVisits() *Visits {
	return &Visits{Nodes: make(map[string]bool), Edges: make(map[[2]string]bool), Maps: make(map[string]bool)}
}

func (v *Visits) add(w *Visits) {
	maps.Copy(v.Nodes, w.Nodes)
	maps.Copy(v.Edges, w.Edges)
	maps.Copy(v.Maps, w.Maps)
}

// line is an event as the program prints it.
type line struct {
	Type      string      `json:"type"`
	Agent     string      `json:"agent"`
	Depth     int         `json:"depth"`
	Node      string      `json:"node"`
	Undoes    string      `json:"undoes"`
	Targets   []string    `json:"targets"`
	Total     int         `json:"total"`
	Values    value.Value `json:"values"`
	ID        string      `json:"id"`
	Name      string      `json:"name"`
	Arguments string      `json:"arguments"`
	Output    string      `json:"output"`
	Error     string      `json:"error"`
	Code      string      `json:"code"`
	Usage     chat.Usage  `json:"usage"`
}

// readTrace reads the events that a program printed. begin is the state before the first node.
func readTrace(events []byte, begin graph.State) (*Trace, error) {
	t := &Trace{State: maps.Collect(begin.All()), Visits: make(map[string]*Visits)}
	for raw := range bytes.Lines(events) {
		var l line
		if err := json.Unmarshal(raw, &l); err != nil {
			return nil, fmt.Errorf("reading the events of the run: %w", err)
		}
		t.add(&l)
	}
	return t, nil
}

func (t *Trace) visits(agent string) *Visits {
	if t.Visits[agent] == nil {
		t.Visits[agent] = newVisits()
	}
	return t.Visits[agent]
}

func (t *Trace) add(l *line) {
	switch l.Type {
	case "node_started":
		t.visits(l.Agent).Nodes[l.Node] = true
		if l.Undoes != "" {
			t.visits(l.Agent).Edges[[2]string{l.Undoes, l.Node}] = true
		}
		if l.Depth == 0 {
			t.Route = append(t.Route, l.Node)
		}
	case "node_finished":
		for _, to := range l.Targets {
			t.visits(l.Agent).Edges[[2]string{l.Node, to}] = true
		}
	case "map_progress":
		t.visits(l.Agent).Maps[l.Node] = true
	case "state_updated":
		if l.Depth == 0 {
			maps.Insert(t.State, l.Values.AsObject().All())
		}
	case "tool_call":
		args, err := value.ParseJSON([]byte(l.Arguments))
		if err != nil {
			args = value.Of(l.Arguments)
		}
		t.Calls = append(t.Calls, MadeCall{l.Name, args})
	case "question":
		if !slices.Contains(t.Questions, l.ID) {
			t.Questions = append(t.Questions, l.ID)
		}
	case "finished":
		if l.Depth == 0 {
			t.Output, t.Error, t.Code, t.Usage = l.Output, l.Error, l.Code, l.Usage
		}
	}
}

// asked reports whether a question was asked that an answer is for.
func (t *Trace) asked(question string) bool {
	return slices.ContainsFunc(t.Questions, func(id string) bool { return id == question || nodeOf(id) == question })
}

// nodeOf returns the node that asks the question with an id.
func nodeOf(id string) string {
	if i := strings.IndexAny(id, "@[/"); i > 0 {
		return id[:i]
	}
	if node, item, ok := strings.Cut(id, "#"); ok && node != "" && strings.Trim(item, "0123456789") == "" {
		return node // a map, whose item asks
	}
	return id
}
