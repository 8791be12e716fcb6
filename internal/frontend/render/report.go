package render

import (
	"context"
	"io"
	"slices"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/frontend/api"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
)

// Report gathers events and writes them as one JSON object when it is closed, as
// docs/events.md describes it. Of child agents it keeps warnings, questions and what each used:
// that is part of the totals if the caller that ran them counted it.
type Report struct {
	out     io.Writer
	summary summary
	nodes   map[string]*nodeSummary // those of summary.Nodes, by id
	total   time.Duration
	tree    Tree
}

// summary is the object. Its field names are stable.
type summary struct {
	Output    string            `json:"output"`
	Error     string            `json:"error,omitempty"`
	Code      string            `json:"code,omitempty"`
	Hint      string            `json:"hint,omitempty"`
	Graph     string            `json:"graph,omitempty"`
	Agent     string            `json:"agent,omitempty"`
	Run       string            `json:"run,omitempty"`
	Model     string            `json:"model,omitempty"`
	Stop      chat.StopReason   `json:"stop,omitempty"`
	Steps     int               `json:"steps"`
	Failures  int               `json:"failures"`
	Unhandled int               `json:"unhandled_failures,omitempty"`
	Usage     chat.Usage        `json:"usage"`
	Seconds   float64           `json:"seconds"`
	Nodes     []*nodeSummary    `json:"nodes"`
	Agents    []api.RunAgent    `json:"agents,omitempty"`
	Warnings  []warningSummary  `json:"warnings"`
	Requests  []requestSummary  `json:"requests,omitempty"`
	Questions []questionSummary `json:"questions,omitempty"`
	Sources   []sourceSummary   `json:"sources,omitempty"`

	KnowledgeBases []event.IndexFinished `json:"knowledge_bases,omitempty"`
}

// nodeSummary sums up the visits of one node.
type nodeSummary struct {
	Node    string      `json:"node"`
	Type    string      `json:"type"`
	Visits  int         `json:"visits"`
	Seconds float64     `json:"seconds"`
	Usage   *chat.Usage `json:"usage,omitempty"`
	Error   string      `json:"error,omitempty"`

	Stop chat.StopReason `json:"stop,omitempty"` // of the last reply of a model

	total time.Duration
}

type warningSummary struct {
	Text  string `json:"text"`
	Agent string `json:"agent,omitempty"`
	Node  string `json:"node,omitempty"`
}

// requestSummary is what a dry run would send.
type requestSummary struct {
	Node string `json:"node,omitempty"`
	event.Request
}

// questionSummary is a question without an answer.
type questionSummary struct {
	Agent string `json:"agent,omitempty"`
	Node  string `json:"node,omitempty"`
	event.Question
}

// sourceSummary is a passage that was retrieved.
type sourceSummary struct {
	Agent string `json:"agent,omitempty"`
	Node  string `json:"node,omitempty"`
	Base  string `json:"base"`
	event.Passage
}

// NewReport returns a Report that will write to out.
func NewReport(out io.Writer) *Report {
	return &Report{
		out:     out,
		summary: summary{Nodes: []*nodeSummary{}, Warnings: []warningSummary{}},
		nodes:   make(map[string]*nodeSummary),
	}
}

// Emit takes note of ev. It never fails.
func (r *Report) Emit(_ context.Context, ev event.Event) error {
	r.tree.Add(ev)
	agent := "" // of a child
	if ev.AgentID != "" {
		agent = ev.Agent
	}
	switch body := ev.Body.(type) {
	case event.Warning:
		r.summary.Warnings = append(r.summary.Warnings, warningSummary{Text: body.Text, Agent: agent, Node: ev.Node})
	case event.Question:
		r.summary.Questions = append(r.summary.Questions, questionSummary{Agent: agent, Node: ev.Node, Question: body})
	case event.Answer:
		r.dropQuestion(body.ID)
	case event.Retrieved:
		for _, p := range body.Sources {
			r.summary.Sources = append(r.summary.Sources, sourceSummary{Agent: agent, Node: ev.Node, Base: body.Base, Passage: p})
		}
	case event.IndexFinished:
		r.summary.KnowledgeBases = append(r.summary.KnowledgeBases, body)
	}
	if ev.AgentID != "" {
		return nil
	}
	switch body := ev.Body.(type) {
	case event.Started:
		r.start(ev.Source, body)
	case event.NodeStarted:
		if ev.Item == nil {
			n := r.node(ev.Node)
			n.Type = body.NodeType
			n.Visits++
		}
	case event.NodeFinished:
		if ev.Item == nil {
			n := r.node(ev.Node)
			n.total += body.Duration
			n.Error = body.Error
		}
	case event.Reply:
		r.reply(ev, body)
	case event.Request:
		r.summary.Requests = append(r.summary.Requests, requestSummary{Node: ev.Node, Request: body})
	case event.Finished:
		r.finish(body)
	}
	return nil
}

// node returns the summary of the node called id, which is listed by first appearance.
func (r *Report) node(id string) *nodeSummary {
	n := r.nodes[id]
	if n == nil {
		n = &nodeSummary{Node: id}
		r.nodes[id] = n
		r.summary.Nodes = append(r.summary.Nodes, n)
	}
	return n
}

func (r *Report) start(src event.Source, b event.Started) {
	s := &r.summary
	s.Graph, s.Agent, s.Run, s.Model = b.Graph, src.Agent, src.Run, b.Model
	s.Error, s.Code, s.Stop = "", "", ""
}

func (r *Report) reply(ev event.Event, b event.Reply) {
	if ev.Node == "" {
		r.summary.Stop = b.Stop
		return
	}
	n := r.node(ev.Node)
	if n.Usage == nil {
		n.Usage = new(chat.Usage)
	}
	*n.Usage = n.Usage.Add(b.Usage)
	n.Stop = b.Stop
}

func (r *Report) dropQuestion(id string) {
	r.summary.Questions = slices.DeleteFunc(r.summary.Questions, func(q questionSummary) bool { return q.ID == id })
}

// finish adds the result of a run or answer. Where several follow one another, the last
// one's output and error count.
func (r *Report) finish(b event.Finished) {
	s := &r.summary
	s.Output, s.Error, s.Code = b.Output, b.Error, b.Code
	s.Steps += b.Steps
	s.Failures += b.Failures
	s.Unhandled += b.Unhandled
	s.Usage = s.Usage.Add(b.Usage)
	r.total += b.Duration
}

// Close writes the object, indented and followed by a line feed. An err that ended the
// work is part of it, with its code and hint.
func (r *Report) Close(err error) error {
	s := &r.summary
	if err != nil {
		s.Error, s.Code, s.Hint = err.Error(), string(fault.CodeOf(err)), fault.HintOf(err)
	}
	s.Seconds, s.Agents = seconds(r.total), r.tree.Summary()
	for _, n := range s.Nodes {
		n.Seconds = seconds(n.total)
	}
	doc, err := value.MarshalLines(s)
	if err == nil {
		_, err = r.out.Write(doc)
	}
	return err
}

// seconds rounds to microseconds, as events do.
func seconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e6 }
