package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"loki/internal/agent/validate"
	"loki/internal/agent/validate/draft"
	"loki/internal/agent/validate/draft/planner"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/frontend/command/display"
	"loki/internal/frontend/render"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/tool/builtin/patch"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/draw"
)

// planReport is the result of --plan in machine output.
type planReport struct {
	Plan     draft.Draft    `json:"plan"`
	Agent    string         `json:"agent,omitempty"` // that is changed
	Valid    bool           `json:"valid"`
	Findings graph.Findings `json:"findings"`
	Rounds   int            `json:"rounds"` // how often it was corrected
	Nodes    []plannedNode  `json:"nodes"`

	// Of a graph that can be read.
	Abilities []validate.Ability `json:"abilities,omitempty"`
	Price     *draft.Price       `json:"price,omitempty"`

	Diff     string          `json:"diff,omitempty"` // of the files of the agent that is changed
	Usage    chat.Usage      `json:"usage"`          // of the planning
	Run      string          `json:"run,omitempty"`  // id of the planning
	Saved    string          `json:"saved,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"` // the report of its run
	Warnings []string        `json:"warnings"`
	Error    string          `json:"error,omitempty"`
	Code     string          `json:"code,omitempty"`
	Hint     string          `json:"hint,omitempty"`
}

// plannedNode is a node of a plan.
type plannedNode struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	Does string `json:"does"`
}

// planOutput is the output of --plan. What the planner writes is no answer, so only the report is printed, and that in machine
// output.
type planOutput struct {
	planReport
	out     io.Writer
	machine bool
	hide    func(string) string
}

// Emit implements [event.Emitter].
func (o *planOutput) Emit(_ context.Context, ev event.Event) error {
	if w, ok := ev.Body.(event.Warning); ok {
		o.Warnings = append(o.Warnings, w.Text)
	}
	return nil
}

// Close prints the report, with the error of the work.
func (o *planOutput) Close(err error) error {
	if !o.machine {
		return nil
	}
	if o.Findings == nil {
		o.Findings = graph.Findings{}
	}
	if err != nil {
		o.Error, o.Code, o.Hint = err.Error(), string(fault.CodeOf(err)), fault.HintOf(err)
	}
	doc, marshalErr := value.MarshalLines(o.planReport)
	if marshalErr != nil {
		return marshalErr
	}
	_, writeErr := o.out.Write(escape([]byte(o.hide(string(doc)))))
	return writeErr
}

// show shows a plan: on standard output if that is the result, otherwise on standard error, with the question about it.
func (p *planning) show(plan planner.Plan) error {
	if p.opts.output != outputText {
		return nil
	}
	out := p.Err
	if !p.opts.yes && !p.InTerminal && !p.ErrTerminal && plan.Valid() {
		out = p.Out
	}
	p.face.display.Settle()
	var b strings.Builder
	p.writePlan(&b, plan)
	_, err := io.WriteString(out, p.hide(b.String()))
	return err
}

// writePlan writes a plan for people. All of it is escaped: a model wrote it.
func (p *planning) writePlan(b *strings.Builder, plan planner.Plan) {
	section := func(title string) {
		if p.color() {
			title = "\x1b[1m" + title + "\x1b[0m"
		}
		fmt.Fprintf(b, "\n%s\n\n", title)
	}
	g := plan.Agent.Graph
	if !plan.Valid() {
		section("The plan of the model cannot be used")
		render.Findings(b, graph.FileName, plan.Findings, p.color())
		if plan.Draft.Graph == "" {
			section("What it wrote")
			b.WriteString(text.Visible(text.Cut(strings.TrimSpace(p.outcome.Output), maxReply)) + "\n\n")
			return
		}
		section(graph.FileName)
		b.WriteString(text.Cut(numberLines(plan.Draft.Graph), maxReply) + "\n")
		return
	}
	if p.result.Diff != "" {
		section("Changes of agent " + text.Visible(p.changed.Name))
		diff := text.Visible(p.result.Diff)
		if p.color() {
			diff = text.PaintDiffs(diff)
		}
		b.WriteString(diff)
		if lines := graph.Diff(p.changed.Graph, g); len(lines) > 0 {
			section("What they change for its runs")
			for _, line := range lines {
				b.WriteString("  " + text.Visible(line) + "\n")
			}
		}
	}
	section("Plan: " + text.Visible(g.Name))
	b.WriteString(draw.Text(g, helpWidth(p.Err), draw.DefaultDepth))
	section("What each node does")
	var rows [][]string
	for _, n := range p.result.Nodes {
		rows = append(rows, []string{" ", n.ID, n.Type, text.OneLine(n.Does, maxDoes)})
	}
	b.WriteString(display.Table(rows))
	section("What it may do")
	switch rows := p.abilities(plan.Abilities); {
	case len(rows) > 0:
		b.WriteString(display.Table(rows))
	case plan.Price.Calls.Most > 0:
		b.WriteString("  ask models, and nothing else\n")
	default:
		b.WriteString("  nothing outside of the run\n")
	}
	for _, f := range p.result.Plan.Files {
		section("Script " + text.Visible(f.Path))
		b.WriteString(numberLines(f.Text))
	}
	if p.opts.verbose > 0 {
		section(graph.FileName)
		b.WriteString(numberLines(plan.Draft.Graph))
	}
	section("What a run is likely to cost")
	writePrice(b, plan.Price)
	if len(plan.Findings) > 0 {
		section("What is doubtful")
		render.Findings(b, graph.FileName, plan.Findings, p.color())
	}
	b.WriteByte('\n')
}

// maxReply is how many bytes are shown of what a model has written and cannot be used.
const maxReply = 16 << 10

// maxDoes is how many characters of what a node does are shown.
const maxDoes = 120

// numberLines returns a text with the numbers of its lines, escaped.
func numberLines(s string) string {
	var b strings.Builder
	for i, line := range strings.Split(strings.TrimSuffix(text.Visible(s), "\n"), "\n") {
		fmt.Fprintf(&b, "%4d  %s\n", i+1, line)
	}
	return b.String()
}

func writePrice(b *strings.Builder, p draft.Price) {
	if p.Calls.Most == 0 {
		b.WriteString("  nothing: it asks no model\n")
		return
	}
	fmt.Fprintf(b, "  %s of models, %s tokens in, %s out\n", countRange(p.Calls, "call"), between(p.Input), between(p.Output))
	switch {
	case p.USD.Most == 0 && len(p.Unknown) == 0:
		b.WriteString("  these models cost nothing\n")
	case p.USD.Most > 0:
		fmt.Fprintf(b, "  %s to %s\n", dollars(p.USD.Least), dollars(p.USD.Most))
	}
	if len(p.Unknown) > 0 {
		fmt.Fprintf(b, "  and the calls of models whose prices are not known: %s\n", text.Visible(strings.Join(p.Unknown, ", ")))
	}
	for _, line := range p.Assumed {
		fmt.Fprintf(b, "  assumed: %s\n", text.Visible(line))
	}
}

func between(r draft.Range[int]) string {
	if r.Least == r.Most {
		return render.Thousands(r.Least)
	}
	return render.Thousands(r.Least) + " to " + render.Thousands(r.Most)
}

func countRange(r draft.Range[int], noun string) string {
	if r.Least == r.Most {
		return text.Count(r.Most, noun)
	}
	return fmt.Sprintf("%d to %s", r.Least, text.Count(r.Most, noun))
}

// dollars returns an amount that is estimated.
func dollars(usd float64) string {
	switch {
	case usd == 0:
		return "$0"
	case usd < 0.0001:
		return "<$0.0001"
	case usd < 0.1:
		return fmt.Sprintf("$%.4f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}

// filesDiff returns what a plan changes in the files of an agent, as a unified diff for each.
func filesDiff(before, after draft.Draft) string {
	var b strings.Builder
	write := func(name, old, now string) {
		if old != now {
			diff, _ := patch.Diff(old, now)
			fmt.Fprintf(&b, "--- %s\n+++ %s\n%s", name, name, diff)
		}
	}
	write(graph.FileName, before.Graph, after.Graph)
	for _, f := range after.Files {
		old, _ := before.File(f.Path)
		write(f.Path, old, f.Text)
	}
	return b.String()
}
