package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/file/userfile"
	"loki/internal/base/text"
	"loki/internal/frontend/command/display"
	"loki/internal/frontend/render"
	"loki/internal/knowledge/rag"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
)

// settingsWidth is the length of settings up to which they are in the table.
const settingsWidth = 24

// asBuilt names the settings of a knowledge base itself in an evaluation.
const asBuilt = "as it is"

// evaluate measures how well the answers to the questions of --rag-eval are found, with the settings of
// the knowledge base and with those of each --rag-set.
func (c *command) evaluate(ctx context.Context) error {
	data, err := userfile.ReadFile(ctx, c.opts.knowledge.eval)
	if err != nil {
		return fault.Wrap(fault.NotFound, err, "reading the questions of --rag-eval")
	}
	questions, err := rag.ReadQuestions(c.opts.knowledge.eval, text.TrimMark(data))
	if err != nil {
		return err
	}
	events, screen := c.watch()
	defer screen.Close()
	ctx = event.NewContext(ctx, events)
	if err := c.app.Knowledge().PruneScratch(ctx, time.Now()); err != nil {
		if err := events.Emit(ctx, event.Warning{Text: "old indexes for comparison could not be deleted: " + err.Error()}); err != nil {
			return err
		}
	}
	base, release, err := c.openBase(ctx, events)
	if err != nil {
		return err
	}
	defer release()
	variants := []rag.Variant{{Name: asBuilt, Settings: base.Settings()}}
	for _, pairs := range c.opts.knowledge.set {
		change, err := c.baseChange(pairs)
		if err != nil {
			return err
		}
		set, err := base.Settings().Set(ctx, c.app.Models, change)
		if err != nil {
			return err
		}
		variants = append(variants, rag.Variant{Name: pairs, Settings: set})
	}
	var all rag.Evaluation
	budget := c.opts.budgetBound()
	for _, v := range variants {
		stop := screen.Spin("Asking " + text.Count(len(questions), "question") + ", " + v.Name)
		of, err := c.evaluateOne(ctx, base, v, questions, events, budget)
		stop()
		if err != nil {
			return err
		}
		all.Unknown = of.Unknown
		all.Base, all.Questions, all.Scores = base.Name(), of.Questions, append(all.Scores, of.Scores...)
		all.Usage = all.Usage.Add(of.Usage)
	}
	screen.Close()
	if len(all.Unknown) > 0 {
		if err := events.Emit(ctx, event.Warning{Text: unknownSources(all)}); err != nil {
			return err
		}
	}
	return c.print(all, c.evaluationText(all))
}

// unknownSources warns of sources that are no document of the knowledge base.
func unknownSources(e rag.Evaluation) string {
	const most = 5
	named := e.Unknown[:min(len(e.Unknown), most)]
	list := strings.Join(named, ", ")
	if more := len(e.Unknown) - len(named); more > 0 {
		list += " and " + strconv.Itoa(more) + " more"
	}
	return "knowledge base " + e.Base + " has no document for the sources " + list + ": they count as not found"
}

// evaluateOne measures one variant.
func (c *command) evaluateOne(ctx context.Context, base *rag.Base, v rag.Variant, questions []rag.Question, events event.Scope, budget engine.Budget) (rag.Evaluation, error) {
	of, release, err := c.variant(ctx, base, v.Settings, events, budget)
	if err != nil {
		return rag.Evaluation{}, err
	}
	defer release()
	return rag.Evaluate(ctx, of, questions, rag.EvalOptions{Variants: []rag.Variant{v}, Budget: budget, Retry: c.app.Knowledge().Builder(events, nil).Retry})
}

// evaluationText returns the scores as a table, a row for each way to search, in which the best value of
// a column has a star.
func (c *command) evaluationText(e rag.Evaluation) string {
	columns := []struct {
		name  string
		value func(rag.Score) float64
		less  bool // the smaller, the better
		text  func(float64) string
	}{
		{"RECALL", func(s rag.Score) float64 { return s.Recall }, false, part},
		{"MRR", func(s rag.Score) float64 { return s.MRR }, false, part},
		{"NDCG", func(s rag.Score) float64 { return s.NDCG }, false, part},
		{"P50", func(s rag.Score) float64 { return float64(s.P50) }, true, millis},
		{"P99", func(s rag.Score) float64 { return float64(s.P99) }, true, millis},
	}
	head := []string{"SETTINGS", "SEARCH", "K"}
	rows := make([][]string, len(e.Scores))
	var legend []string // settings that are too long for the table
	for i, s := range e.Scores {
		name := display.Line(s.Settings)
		long := len(name) > settingsWidth
		switch {
		case i > 0 && e.Scores[i-1].Settings == s.Settings:
			name = ""
		case long:
			legend = append(legend, name)
			name = "[" + strconv.Itoa(len(legend)) + "]"
		}
		rows[i] = []string{name, s.Mode, strconv.Itoa(s.K)}
	}
	for _, col := range columns {
		head = append(head, col.name+" ")
		cells, best := make([]string, len(e.Scores)), ""
		var top float64
		for i, s := range e.Scores {
			v := col.value(s)
			cells[i] = col.text(v)
			if i == 0 || (v < top) == col.less && v != top {
				top, best = v, cells[i]
			}
		}
		for i, cell := range cells {
			mark := " "
			if cell == best && len(cells) > 1 {
				mark = "*"
			}
			rows[i] = append(rows[i], cell+mark)
		}
	}
	var b bytes.Buffer
	b.WriteString(display.Table(append([][]string{head}, rows...), 2, 3, 4, 5, 6, 7))
	fmt.Fprintf(&b, "\n%s of %s; * is the best of a column\n", text.Count(e.Questions, "question"), display.Line(e.Base))
	if u := e.Usage; u.Cost > 0 || u.CostUnknown {
		fmt.Fprintf(&b, "searching took %d tokens, %s\n", u.InputTokens, render.Dollars(u))
	}
	for i, settings := range legend {
		fmt.Fprintf(&b, "[%d] %s\n", i+1, settings)
	}
	if c.opts.verbose > 0 {
		printMissed(&b, e.Scores)
	}
	return b.String()
}

// printMissed lists the questions that were missed, by the settings and the way to search.
func printMissed(b *bytes.Buffer, scores []rag.Score) {
	for _, s := range scores {
		if len(s.Missed) == 0 {
			continue
		}
		fmt.Fprintf(b, "\nNot found, %s, %s:\n", display.Line(s.Settings), s.Mode)
		for _, m := range s.Missed {
			fmt.Fprintf(b, "- %s\n  expected %s, first is %s\n", display.Line(m.Question), display.Line(strings.Join(m.Sources, ", ")), cmp.Or(display.Line(m.First), "nothing"))
		}
	}
}

// part writes a value from 0 to 1.
func part(x float64) string { return strconv.FormatFloat(x, 'f', 3, 64) }

// millis writes a duration in nanoseconds as milliseconds.
func millis(d float64) string {
	return strconv.FormatFloat(d/float64(time.Millisecond), 'f', 1, 64) + "ms"
}
