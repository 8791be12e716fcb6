package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/frontend/api"
	"loki/internal/frontend/api/summary"
	"loki/internal/frontend/command/export"
	"loki/internal/frontend/server/rest"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/draw"
	"loki/internal/workflow/run"
)

// questions returns the questions of a run that wait.
func (e *endpoints) questions(ctx context.Context, in *one) (*api.List[api.Question], error) {
	info, theirs, err := e.findAsked(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	list, err := e.openQuestions(ctx, info, theirs)
	return api.NewList(list, ""), err
}

// openQuestions returns the questions of a run that wait. With theirs set it returns the ones for the caller to
// answer.
func (e *endpoints) openQuestions(ctx context.Context, info run.Info, theirs bool) ([]api.Question, error) {
	if info.Status == run.Canceled {
		return []api.Question{}, nil // until it is resumed
	}
	pending, err := e.store.Pending(ctx, info.ID)
	if theirs {
		its := isFor(rest.Subject(ctx))
		pending = slices.DeleteFunc(pending, func(p run.Pending) bool { return !its(p) })
	}
	return summary.Questions(info, pending), err
}

// allQuestionsRequest asks for the questions of all runs.
type allQuestionsRequest struct {
	rest.Page
}

// allQuestions returns the questions that wait and that the caller may see or is to answer, those of the
// newest run first. The questions of a run are on one page.
func (e *endpoints) allQuestions(ctx context.Context, in *allQuestionsRequest) (*api.List[api.Question], error) {
	place, err := runOf(in.Cursor)
	if err != nil {
		return nil, err
	}
	view := e.Access.View(rest.Subject(ctx))
	q := run.Query{Unfinished: true, Before: place, Limit: readAtOnce}
	var page []api.Question
	for {
		infos, err := e.store.Runs(ctx, q)
		if fault.CodeOf(err) == fault.NotFound && q.Before == place {
			return nil, runGone()
		}
		if err != nil {
			return nil, err
		}
		for _, info := range infos {
			if info.Damaged || info.Status != run.Suspended && info.Status != run.Running {
				continue
			}
			list, err := e.openQuestions(ctx, info, !view.Includes(info.Owner))
			if err != nil && fault.CodeOf(err) != fault.NotFound { // forgotten meanwhile
				return nil, err
			}
			if len(page) > 0 && len(page)+len(list) > in.Limit {
				return api.NewList(page, rest.NewCursor(page[len(page)-1].Run)), nil
			}
			page = append(page, list...)
		}
		if len(infos) < readAtOnce {
			return api.NewList(page, ""), nil
		}
		q.Before = infos[len(infos)-1].ID
	}
}

// stateRequest asks for the state of a run.
type stateRequest struct {
	one
	Step *int `query:"step" minimum:"0" doc:"super-step, 0 for the start; absent for the last one"`
}

func (e *endpoints) state(ctx context.Context, in *stateRequest, info run.Info) (*api.RunState, error) {
	step := -1
	if in.Step != nil {
		step = *in.Step
	}
	cp, err := e.checkpoint(ctx, info, step)
	if err != nil {
		return nil, err
	}
	secrets, err := run.SecretsOf(ctx, e.store, info)
	if err != nil {
		return nil, err
	}
	return new(summary.State(info, cp, secrets)), nil
}

// checkpoint returns a graph's run after a super-step, -1 for the last one.
func (e *endpoints) checkpoint(ctx context.Context, info run.Info, step int) (run.Checkpoint, error) {
	if info.Kind != run.GraphRun {
		return run.Checkpoint{}, rest.Conflict("run %s is not the run of a graph, so it does not have a state", info.ID)
	}
	cp, err := e.store.Checkpoint(ctx, info.ID, step)
	if code := fault.CodeOf(err); code == fault.NotFound || code == fault.Usage {
		return cp, &rest.Error{Status: http.StatusNotFound, Code: "step_not_found", Message: fmt.Sprintf("run %s has no super-step %d", info.ID, step), Err: err}
	}
	return cp, err
}

// diffRequest asks how two states differ.
type diffRequest struct {
	one
	A string `query:"a" required:"true" maxLength:"64" doc:"super-step of the run, or ID@STEP of any run" example:"2"`
	B string `query:"b" required:"true" maxLength:"64" doc:"likewise" example:"5"`
}

func (e *endpoints) diff(ctx context.Context, in *diffRequest, info run.Info) (*api.List[api.Change], error) {
	var states [2]graph.State
	for i, which := range []struct{ name, text string }{{"a", in.A}, {"b", in.B}} {
		of, number := info, which.text
		if id, rest, ok := strings.Cut(number, "@"); ok {
			number = rest
			var err error
			if of, err = e.find(ctx, id); err != nil {
				return nil, err
			}
		}
		step, err := strconv.Atoi(number)
		if err != nil || step < 0 {
			return nil, rest.Invalid(which.name, "%s: %q is not a super-step, such as 2 or k3v9abcd@2", which.name, which.text)
		}
		cp, err := e.checkpoint(ctx, of, step)
		if err != nil {
			return nil, err
		}
		secrets, err := run.SecretsOf(ctx, e.store, of)
		if err != nil {
			return nil, err
		}
		states[i] = secrets.State(cp.State)
	}
	return api.NewList(summary.Changes(states[0], states[1]), ""), nil
}

// export returns what was said in a run as a document.
func (e *endpoints) export(ctx context.Context, in *struct {
	one
	rest.Export
}, info run.Info,
) (*rest.Reply, error) {
	talk, err := export.Run(ctx, e.store, info.ID)
	if err != nil {
		return nil, err
	}
	return in.Reply(talk, nil) // every answer is without secrets
}

// graphFormat is the form of a drawing.
type graphFormat struct {
	Format string `query:"format" enum:"svg,mermaid,dot,text,json" default:"json" doc:"of the drawing"`
}

// graphRequest asks for the graph of a run.
type graphRequest struct {
	one
	graphFormat
}

func (e *endpoints) graph(ctx context.Context, in *graphRequest, info run.Info) (*rest.Reply, error) {
	if info.Kind != run.GraphRun {
		return nil, rest.Conflict("run %s is not the run of a graph, so there is no graph to show", info.ID)
	}
	h, err := e.store.History(ctx, info.ID)
	if err != nil {
		return nil, err
	}
	g, err := h.Info.RecordedGraph()
	if err != nil {
		return nil, err
	}
	return drawing(g, in.Format, courseOf(g, h)), nil
}

// drawing returns a graph in a form, with the course of a run; the zero course is for none.
func drawing(g *graph.Graph, format string, c course) *rest.Reply {
	plain := "text/plain; charset=utf-8"
	switch format {
	case "svg":
		return rest.Bytes(0, "image/svg+xml", draw.SVG(g, draw.SVGOptions{States: c.states, Taken: c.taken}))
	case "mermaid":
		return rest.Bytes(0, plain, []byte(draw.Mermaid(g, 0)))
	case "dot":
		return rest.Bytes(0, plain, []byte(draw.DOT(g, 0)))
	case "text":
		return rest.Bytes(0, plain, []byte(draw.Text(g, textWidth, 0)))
	}
	out := api.Graph{Name: g.Name, Description: g.Description, Start: g.Start, Nodes: []api.GraphNode{}, Edges: []api.GraphEdge{}}
	for _, n := range g.Nodes {
		node := api.GraphNode{ID: n.ID, Type: string(n.Type), State: string(c.states[n.ID])}
		if n.LLM != nil {
			node.Prompt = n.LLM.Prompt.Source
			if n.LLM.Instructions != nil {
				node.Instructions = n.LLM.Instructions.Source
			}
		}
		if n.Map != nil {
			node.Over, node.As, node.Branch = n.Map.Over.Source, n.Map.As, n.Map.Branch
		}
		out.Nodes = append(out.Nodes, node)
		for _, edge := range g.Edges(n) {
			if edge.To != "" {
				out.Edges = append(out.Edges, api.GraphEdge{From: n.ID, To: edge.To, Kind: edge.Field, Label: edge.Label, ID: edge.ID(), Taken: c.taken[edge.ID()]})
			}
		}
	}
	return rest.JSON(0, out)
}

// textWidth is how wide a drawing of characters may be.
const textWidth = 100

// course is what a run did in its graph.
type course struct {
	states map[string]draw.State // of nodes that it reached, by id
	taken  map[string]bool       // edges that it took, by id
}

// courseOf returns the course of a run of g.
func courseOf(g *graph.Graph, h run.History) course {
	c := course{make(map[string]draw.State), make(map[string]bool)}
	for _, raw := range h.Events {
		ev, err := event.Parse(raw)
		if err != nil || ev.Depth > 0 || ev.Within != "" {
			continue
		}
		if n := g.Node(ev.Node); n != nil && n.Map != nil && ev.Item != nil { // its branch is at work
			c.taken[n.ID+".branch"] = true
			if c.states[n.Map.Branch] != draw.Failed { // by another item
				c.states[n.Map.Branch] = draw.Running
			}
		}
		c.add(g, ev)
	}
	for _, p := range h.Pending {
		if _, ok := c.states[p.Node]; ok {
			c.states[p.Node] = draw.Waiting
		}
	}
	return c
}

// add takes note of an event.
func (c course) add(g *graph.Graph, ev event.Event) {
	n := g.Node(ev.Node)
	switch b := ev.Body.(type) {
	case event.NodeStarted:
		c.states[ev.Node] = draw.Running
		if b.Undoes != "" {
			c.taken[b.Undoes+".compensate"] = true
		}
	case event.MapProgress:
		if n != nil && n.Map != nil && b.Total > 0 {
			c.taken[n.ID+".branch"] = true
			if c.states[n.Map.Branch] = draw.Running; b.Failed > 0 {
				c.states[n.Map.Branch] = draw.Failed
			}
		}
	case event.NodeFinished:
		if ev.Item != nil {
			return
		}
		switch {
		case b.Waiting:
			c.states[ev.Node] = draw.Waiting
		case b.Canceled:
			delete(c.states, ev.Node)
		case b.Error != "":
			c.states[ev.Node] = draw.Failed
		default:
			c.states[ev.Node] = draw.Done
		}
		if n == nil {
			return
		}
		if n.Map != nil && c.states[n.Map.Branch] == draw.Running {
			if c.states[n.Map.Branch] = c.states[ev.Node]; b.Tolerated > 0 { // items failed; the record does not have how far the map had come
				c.states[n.Map.Branch] = draw.Failed
			}
		}
		for _, id := range b.Edges {
			c.taken[id] = true
		}
		for _, e := range g.Edges(n) {
			if len(b.Edges) == 0 && e.Field == "next" && e.Way == nil && slices.Contains(b.Targets, e.To) {
				c.taken[e.ID()] = true
			}
		}
	case event.Finished:
		for id, s := range c.states { // what was at work when the run stopped
			if s == draw.Running {
				delete(c.states, id)
			}
		}
	}
}

// stepsRequest asks for the steps of a run.
type stepsRequest struct {
	one
	rest.Page
	Step *int   `query:"step" minimum:"0" doc:"of this super-step only"`
	Node string `query:"node" maxLength:"256" doc:"of this node only"`
}

// steps returns the steps in the order in which they were recorded.
func (e *endpoints) steps(ctx context.Context, in *stepsRequest, info run.Info) (*api.List[api.Step], error) {
	place, err := rest.Cursor(in.Cursor)
	if err != nil {
		return nil, err
	}
	after := 0
	if place != "" {
		if after, err = strconv.Atoi(place); err != nil {
			return nil, rest.InvalidCursor()
		}
	}
	h, err := e.store.History(ctx, info.ID)
	if err != nil {
		return nil, err
	}
	var page []api.Step
	for _, s := range h.Steps {
		if s.Number <= after || in.Step != nil && s.Step != *in.Step || in.Node != "" && s.Node != in.Node {
			continue
		}
		if len(page) == in.Limit {
			return api.NewList(page, rest.NewCursor(strconv.Itoa(page[len(page)-1].Number))), nil
		}
		page = append(page, describeStep(s))
	}
	return api.NewList(page, ""), nil
}

func describeStep(s run.StepRecord) api.Step {
	return api.Step{
		Number: s.Number, Step: s.Step, Node: s.Node, Key: s.Key, Kind: string(s.Kind), Name: s.Name, Done: s.Done, At: s.At.UTC(), Size: s.Size,
	}
}

// stepRequest asks for one step.
type stepRequest struct {
	one
	Number int `path:"number" minimum:"1" doc:"of the step"`
}

func (e *endpoints) step(ctx context.Context, in *stepRequest, info run.Info) (*api.Step, error) {
	h, err := e.store.History(ctx, info.ID)
	if err != nil {
		return nil, err
	}
	for _, s := range h.Steps {
		if s.Number != in.Number {
			continue
		}
		found := describeStep(s)
		if s.Done {
			result, err := e.store.Step(ctx, info.ID, s.Number)
			if err != nil {
				return nil, err
			}
			secrets, err := run.SecretsOf(ctx, e.store, h.Info)
			if err != nil {
				return nil, err
			}
			if result, err = secrets.JSON(result); err != nil {
				return nil, err
			}
			found.Result = json.RawMessage(result)
		}
		return &found, nil
	}
	return nil, &rest.Error{Status: http.StatusNotFound, Code: "step_not_found", Message: fmt.Sprintf("run %s has no step %d on record", info.ID, in.Number)}
}
