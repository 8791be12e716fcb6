// Package summary describes runs on record as the API and machine output have them: a run in a list, a run
// with its path, the questions that wait, what changed between two states.
package summary

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/frontend/api"
	"loki/internal/frontend/render"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// interrupted is the state of a run that was running when its process died.
const interrupted = "interrupted"

// Status returns how a run is.
func Status(i run.Info) string { return i.State() }

// Of describes a run.
func Of(i run.Info) api.Run {
	r := api.Run{
		ID: i.ID, Kind: cmp.Or(string(i.Kind), "graph"), Agent: i.Agent, AgentDir: i.AgentDir, Dir: i.Dir, Status: i.State(), Active: i.Active, Queued: i.Queued,
		Started: i.Started.UTC(), Updated: i.Updated.UTC(), Events: i.Events, Steps: i.Steps, Failures: i.Failures, Prompt: i.Prompt, Parent: i.Parent,
		Breakpoint: i.Breakpoint, Error: i.Error, Code: string(i.Code), Output: i.Output, Tokens: i.Usage.Total(), Cost: i.Usage.Cost, CostUnknown: i.Usage.CostUnknown, Estimated: i.Usage.Estimated, Usage: i.Usage,
	}
	if u := i.Undone; u != nil {
		r.Undone = &api.Undone{Nodes: u.Nodes, Lost: u.Lost, Left: u.Left}
	}
	if o := i.Origin; o != nil {
		r.Origin = &api.RunOrigin{Kind: o.Kind, Name: o.Name, Due: timeOf(o.Due), LateSeconds: o.LateSeconds, Outside: o.Outside}
	}
	r.Priority, r.Key = i.Precedence(), i.Key()
	if i.Owner != nil {
		r.Owner = i.Owner.Subject
	}
	if t := i.Terms; t != nil && t.Budget != (graph.Budget{}) {
		r.Budget = &api.RunBudget{USD: t.Budget.USD, Tokens: t.Budget.Tokens, Seconds: t.Budget.Duration.Seconds()}
	}
	if g := i.Gap; g != nil {
		r.Gap = &api.RunGap{Reason: g.Reason, Since: timeOf(g.Since), Step: g.Step, Nodes: g.Nodes, Status: string(g.Status), Error: g.Error}
	}
	return r
}

// timeOf returns t in UTC, nil for the zero time.
func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

// List describes several runs. It is never nil.
func List(infos []run.Info) []api.Run {
	list := make([]api.Run, len(infos))
	for n, i := range infos {
		list[n] = Of(i)
	}
	return list
}

// Detail describes a run in a store with its path. Signals are shown without secrets, see [run.SecretsOf]; the rest is on record without them.
func Detail(ctx context.Context, store run.Store, h run.History) (api.RunDetail, error) {
	tree, path := new(render.Tree), newPath()
	calls := calls{open: make(map[[2]string]int)}
	for _, raw := range h.Events {
		if ev, err := event.Parse(raw); err == nil { // what cannot be read is left out
			tree.Add(ev)
			path.add(ev)
			calls.add(ev)
		}
	}
	d := api.RunDetail{Run: Of(h.Info), Agents: agents(h, tree), Calls: calls.list, Pending: Questions(h.Info, h.Pending)}
	d.Waiting = len(d.Pending)
	d.Waits = waits(h.Waiting)
	var secrets *run.Secrets
	if len(h.Signals) > 0 {
		var err error
		if secrets, err = run.SecretsOf(ctx, store, h.Info); err != nil {
			return d, err
		}
	}
	for _, s := range h.Signals {
		shown, err := secrets.Signal(s)
		if err != nil {
			return d, err
		}
		d.Signals = append(d.Signals, Signal(h.Info.ID, shown))
	}
	d.Visits = path.complete(h.Visits, h.Info.Steps)
	d.Nodes = totals(d.Visits)
	return d, nil
}

// mostText is how much of the arguments and the result of a call is shown, in bytes. The events have all of it.
const mostText = 1024

// calls gathers the calls of tools from the events of a run.
type calls struct {
	list []api.RunCall
	open map[[2]string]int // places in list, by the id of the agent and of the call
}

// add takes note of an event. A call that an interruption left without a result is made again. One that has its result comes again when
// the run resumes, and counts once.
func (c *calls) add(ev event.Event) {
	switch b := ev.Body.(type) {
	case event.ToolCall:
		key, call := [2]string{ev.AgentID, b.ID}, api.RunCall{Node: ev.Node, AgentID: ev.AgentID, Name: b.Name, Arguments: text.Cut(b.Arguments, mostText), Started: ev.Time.UTC()}
		if i, ok := c.open[key]; ok && c.list[i].Node == call.Node && c.list[i].Name == call.Name && c.list[i].Arguments == call.Arguments {
			if c.list[i].Result == nil {
				c.list[i].Started = call.Started
			}
			return
		}
		c.open[key] = len(c.list)
		c.list = append(c.list, call)
	case event.ToolResult:
		if i, ok := c.open[[2]string{ev.AgentID, b.ID}]; ok && c.list[i].Result == nil {
			call := &c.list[i]
			call.Seconds, call.Result, call.Failed = ev.Time.Sub(call.Started).Seconds(), new(text.Cut(b.Text, mostText)), b.Failed
		}
	}
}

// totals sums up the visits of each node, in the order of the first ones.
func totals(visits []api.Visit) []api.NodeTotal {
	totals := []api.NodeTotal{}
	var spent []chat.Usage
	for _, v := range visits {
		i := slices.IndexFunc(totals, func(t api.NodeTotal) bool { return t.Node == v.Node })
		if i < 0 {
			i = len(totals)
			totals, spent = append(totals, api.NodeTotal{Node: v.Node, Type: v.Type}), append(spent, chat.Usage{})
		}
		t := &totals[i]
		spent[i] = spent[i].Add(v.Usage)
		t.Tokens, t.Cost, t.CostUnknown, t.Estimated = spent[i].Total(), spent[i].Cost, spent[i].CostUnknown, spent[i].Estimated
		t.Visits++
		t.Seconds += v.Seconds
		t.Retries += v.Retries
		if t.Failures += v.Tolerated; v.Failed {
			t.Failures++
		}
	}
	return totals
}

// State describes the state of a graph's run after a super-step, without the secrets, see [run.SecretsOf].
func State(i run.Info, c run.Checkpoint, secrets *run.Secrets) api.RunState {
	s := api.RunState{
		Run: i.ID, Step: c.Step, State: secrets.State(c.State).Object().Value().AppendJSON(nil), Next: append([]string{}, c.Frontier...), Visits: c.Visits,
	}
	if len(c.Taken) == 0 {
		return s
	}
	var bounds map[string]int
	if g, err := i.RecordedGraph(); err == nil {
		bounds = g.Bounds()
	}
	for _, edge := range slices.Sorted(maps.Keys(c.Taken)) {
		s.Loops = append(s.Loops, api.LoopCount{Edge: edge, Taken: c.Taken[edge], Max: bounds[edge]})
	}
	return s
}

// Questions describes the questions of a run that wait, in order. It is never nil.
func Questions(i run.Info, pending []run.Pending) []api.Question {
	list := []api.Question{}
	for _, p := range pending {
		list = append(list, api.Question{
			Run: i.ID, Agent: i.Agent, ID: p.ID, Step: p.Step, Node: p.Node, Item: p.Item, Kind: p.Kind, Text: p.Text, Options: p.Options, Open: p.Open, Multi: p.Multi,
			Default: p.Default, Rule: p.Rule, Asked: p.Asked.UTC(), Deadline: timeOf(p.Deadline), Assignees: p.Assignees,
		})
	}
	return list
}

// Waits describes what a suspended run waits for besides answers. It is nil for any other run, and for one that was deleted meanwhile.
func Waits(ctx context.Context, store run.Store, i run.Info) ([]api.Wait, error) {
	if i.Status != run.Suspended || i.Damaged {
		return nil, nil
	}
	pending, err := store.Waits(ctx, i.ID)
	if err != nil && fault.CodeOf(err) != fault.NotFound {
		return nil, err
	}
	return waits(pending), nil
}

func waits(pending []run.Pending) (list []api.Wait) {
	for _, p := range pending {
		list = append(list, api.Wait{ID: p.ID, Step: p.Step, Node: p.Node, Signal: p.Signal, Since: p.Asked.UTC(), Until: timeOf(p.Deadline)})
	}
	return list
}

// Signal describes a signal of a run.
func Signal(id string, s run.Signal) api.Signal {
	return api.Signal{Run: id, Number: s.Number, Name: s.Name, Value: s.Value, At: s.At.UTC(), Taken: s.Taken != ""}
}

// agents describes the agents of a run, each one before its children, from the tree that its events make. It is
// nil for a run that had no children.
func agents(h run.History, tree *render.Tree) []api.RunAgent {
	list := tree.Summary()
	for i, a := range list {
		switch {
		case a.AgentID == "":
			list[i].Status, list[i].Error, list[i].Total = Status(h.Info), h.Info.Error, h.Info.Usage
		case a.Status == string(run.Running) && !h.Info.Active && !h.Info.Queued:
			list[i].Status = interrupted
		}
	}
	return list
}

// Changes returns how two states differ, ascending by key. It is never nil.
func Changes(before, after graph.State) []api.Change {
	changes := []api.Change{}
	for _, m := range before.Changes(after) {
		c := api.Change{Key: m.Name, After: json.RawMessage(m.Value.AppendJSON(nil))}
		if old, ok := before.Get(m.Name); ok {
			c.Before = old.AppendJSON(nil)
		}
		changes = append(changes, c)
	}
	for key, v := range before.All() {
		if _, ok := after.Get(key); !ok {
			changes = append(changes, api.Change{Key: key, Before: v.AppendJSON(nil)})
		}
	}
	slices.SortFunc(changes, func(a, b api.Change) int { return cmp.Compare(a.Key, b.Key) })
	return changes
}
