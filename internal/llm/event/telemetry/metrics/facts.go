package metrics

import (
	"cmp"
	"strings"
	"sync"
	"time"

	"loki/internal/llm/chat"
	"loki/internal/llm/event"
)

// Facts makes facts of events: what ended, and how long that took. A fact is a [Call], [Tool], [Node], [Agent], [Wait] or
// [Late]. It may be used from several goroutines. The zero Facts has seen no event.
type Facts struct {
	mu   sync.Mutex
	runs map[string]*atWork
}

// Call is a call of a model that ended.
type Call struct {
	Model  string // id, client:model
	Took   time.Duration
	First  time.Duration   // until the first piece of the answer came
	Pieces []time.Duration // between a piece and the one before
	Whole  bool            // the answer came in one piece
	Usage  chat.Usage
	Error  string // [Unknown] or the code of the run's error; empty if it was answered
	Timed  bool   // it is known when it began

	begun, last time.Time
}

// Tool is a call of a tool that ended.
type Tool struct {
	Name   string
	Took   time.Duration
	Failed bool
	Timed  bool // it is known when it began
}

// Node is a node of a graph that ended.
type Node struct {
	Agent, Type string
	Took        time.Duration
	Failed      bool
}

// Agent is a run, an answer or a child agent that ended or was suspended.
type Agent struct {
	Name         string // empty for models and roles
	Took         time.Duration
	Status, Code string // code of the error; empty if there is none, or it waits
	Child        bool
	Calls, Tools int // of its own
}

// Wait says that a call of a model waited for its provider, or was refused by it.
type Wait struct {
	Model   string // id
	Took    time.Duration
	Refused int
}

// Late says how late a schedule started a run.
type Late struct {
	Schedule string
	By       time.Duration
}

// Unknown is the error of calls of which no more is known.
const Unknown = "_OTHER"

// atWork is what is at work in a run.
type atWork struct {
	calls  map[event.Place]*Call
	tools  map[toolKey]time.Time // when they began
	agents map[string]*Agent     // by AgentID
}

type toolKey struct {
	event.Place
	id string
}

// Of returns the facts of an event.
func (f *Facts) Of(ev event.Event) []any {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.runs[ev.Run]
	if r == nil {
		r = &atWork{calls: make(map[event.Place]*Call), tools: make(map[toolKey]time.Time), agents: make(map[string]*Agent)}
		if f.runs == nil {
			f.runs = make(map[string]*atWork)
		}
		f.runs[ev.Run] = r
	}
	facts := r.facts(ev)
	if _, ok := ev.Body.(event.Finished); ok && ev.Depth == 0 || len(r.calls)+len(r.tools)+len(r.agents) == 0 {
		delete(f.runs, ev.Run)
	}
	return facts
}

func (r *atWork) facts(ev event.Event) []any {
	at := ev.Place()
	call := r.calls[at]
	switch b := ev.Body.(type) {
	case event.Started:
		r.agents[ev.AgentID] = &Agent{Name: cmp.Or(ev.Agent, b.Graph), Child: ev.Depth > 0}
		if name, ok := strings.CutPrefix(b.Origin, "schedule/"); ok && !b.Resumed {
			return []any{Late{Schedule: name, By: time.Duration(b.Late * float64(time.Second))}}
		}
	case event.ModelCall:
		r.agent(ev).Calls++
		r.calls[at] = &Call{Model: b.Model, Timed: true, begun: ev.Time}
		if call != nil { // which is tried again
			return []any{call.end(ev.Time, Unknown)}
		}
	case event.Retry:
		if call != nil {
			delete(r.calls, at)
			return []any{call.end(ev.Time, Unknown)}
		}
	case event.Delta, event.Reasoning:
		if call != nil {
			call.piece(ev.Time)
		}
	case event.Reply:
		delete(r.calls, at)
		if call == nil { // of a program of others
			return []any{Call{Model: b.Model, Usage: b.Usage, Whole: true}}
		}
		call.Model, call.Usage = b.Model, b.Usage
		return []any{call.end(ev.Time, "")}
	case event.ToolCall:
		r.agent(ev).Tools++
		r.tools[toolKey{at, b.ID}] = ev.Time
	case event.ToolResult:
		tool := Tool{Name: b.Name, Failed: b.Failed}
		if begun, ok := r.tools[toolKey{at, b.ID}]; ok {
			tool.Took, tool.Timed = ev.Time.Sub(begun), true
			delete(r.tools, toolKey{at, b.ID})
		}
		return []any{tool}
	case event.NodeFinished:
		if !b.Waiting {
			return []any{Node{Agent: ev.Agent, Type: b.NodeType, Took: b.Duration, Failed: b.Error != ""}}
		}
	case event.Limited:
		if b.Reason == "spending" { // which is over when the call begins
			return nil
		}
		took := time.Duration(b.Waited) * time.Millisecond
		if call != nil {
			call.begun = call.begun.Add(took) // it is not the provider that took so long
		}
		if took > 0 || b.Refused > 0 {
			return []any{Wait{Model: b.Client + ":" + b.Model, Took: took, Refused: b.Refused}}
		}
	case event.Finished:
		return r.finish(ev, b)
	}
	return nil
}

// agent returns the agent that an event is of.
func (r *atWork) agent(ev event.Event) *Agent {
	a := r.agents[ev.AgentID]
	if a == nil {
		a = &Agent{Name: ev.Agent, Child: ev.Depth > 0}
		r.agents[ev.AgentID] = a
	}
	return a
}

// finish returns an agent that ended, and the calls of it, or of the whole run, that got no answer.
func (r *atWork) finish(ev event.Event, b event.Finished) (facts []any) {
	for at, c := range r.calls {
		if ev.Depth == 0 || at.AgentID == ev.AgentID {
			facts = append(facts, c.end(ev.Time, cmp.Or(b.Code, Unknown)))
			delete(r.calls, at)
		}
	}
	for at := range r.tools {
		if at.AgentID == ev.AgentID {
			delete(r.tools, at)
		}
	}
	a := r.agent(ev)
	delete(r.agents, ev.AgentID)
	a.Took, a.Status = b.Duration, b.Status()
	if a.Status == event.Failed || b.Code == "canceled" {
		a.Code = cmp.Or(b.Code, Unknown)
	}
	return append(facts, *a)
}

// piece notes that a piece of the answer came.
func (c *Call) piece(now time.Time) {
	if c.last.IsZero() {
		c.First = now.Sub(c.begun)
	} else {
		c.Pieces = append(c.Pieces, now.Sub(c.last))
	}
	c.last = now
}

// end returns the call, which ended.
func (c *Call) end(now time.Time, code string) Call {
	c.Took, c.Error, c.Whole = now.Sub(c.begun), code, len(c.Pieces) == 0
	if c.last.IsZero() {
		c.First = c.Took
	}
	return *c
}
