package display

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"loki/internal/base/text"
	"loki/internal/frontend/api"
	"loki/internal/llm/chat"
	"loki/internal/workflow/run"
)

// RunStatus returns the status of a run for people: that some nodes failed is a part of it.
func RunStatus(r api.Run) string {
	status := r.Status
	switch {
	case r.Queued:
		status = "queued"
	case r.Breakpoint != "":
		status += " at a breakpoint " + Line(r.Breakpoint)
	case r.Undone != nil:
		status += undone(*r.Undone)
	case status == string(run.Done) && r.Failures > 0:
		status += ", " + text.Count(r.Failures, "failure")
	}
	return status
}

// undone says how far what a run did is undone.
func undone(u api.Undone) string {
	text := fmt.Sprintf(", undone %d", u.Nodes)
	if u.Lost > 0 {
		text += fmt.Sprintf(" of %d", u.Nodes+u.Lost+u.Left)
	}
	if u.Left > 0 {
		text += fmt.Sprintf(", %d left to undo", u.Left)
	}
	return text
}

// Wait returns what a run waits for.
func Wait(w api.Wait) string {
	var parts []string
	if w.Signal != "" {
		parts = append(parts, "for signal "+Line(w.Signal))
	}
	if w.Until != nil {
		parts = append(parts, "until "+w.Until.Local().Format(time.DateTime))
	}
	return strings.Join(parts, ", ")
}

// statusOf is [RunStatus] for a list, with what the run waits for.
func statusOf(r api.Run) string {
	status := RunStatus(r)
	for n, w := range r.Waits {
		if n == 1 {
			return status + ", and " + strconv.Itoa(len(r.Waits)-1) + " more"
		}
		status += " " + Wait(w)
	}
	return status
}

// RunCost returns what a run cost, as [Cost] does.
func RunCost(r api.Run) string {
	return Cost(chat.Usage{Cost: r.Cost, CostUnknown: r.CostUnknown, Estimated: r.Estimated})
}

// PromptLength is how much of a prompt a list shows, in characters.
const PromptLength = 32

// Runs returns a table of runs, whose lines are cut to width columns if it is not 0.
func Runs(list []api.Run, width int) string {
	rows := [][]string{{"ID", "KIND", "AGENT", "STATUS", "AGE", "STEPS", "TOKENS", "COST", "PROMPT"}}
	for _, r := range list {
		steps, agent := "-", r.Agent
		if r.Kind == "graph" {
			steps = strconv.Itoa(r.Steps)
		}
		if agent == r.Kind { // a chat, whose agent is its role
			agent = "-"
		}
		if o := r.Origin; o != nil {
			r.Prompt = o.Kind + " " + o.Name + ": " + r.Prompt
		}
		rows = append(rows, []string{
			r.ID, r.Kind, agent, statusOf(r), Age(time.Since(r.Started)), steps, strconv.Itoa(r.Tokens), RunCost(r), text.OneLine(r.Prompt, PromptLength),
		})
	}
	lines := strings.SplitAfter(Table(rows, 5, 6, 7), "\n")
	for i, line := range lines {
		if row, ended := strings.CutSuffix(line, "\n"); ended && width > 0 {
			lines[i] = text.CutColumns(row, width) + "\n"
		}
	}
	return strings.Join(lines, "")
}
