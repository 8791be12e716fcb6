package display

import (
	"strconv"
	"time"

	"loki/internal/run"
	"loki/internal/text"
)

// Interrupted is how a run is shown that was running when its process died.
const Interrupted run.Status = "interrupted"

// How other runs are shown whose status alone does not say how they are.
const (
	unrecorded run.Status = "unrecorded" // a part of it is not on record, so it cannot go on
	damaged    run.Status = "damaged"    // its record cannot be read
)

// RunStatus returns how a run is.
func RunStatus(i run.Info) run.Status {
	switch {
	case i.Damaged:
		return damaged
	case i.Gap != nil && i.Status.Resumable():
		return unrecorded
	case i.Status == run.Running && !i.Active:
		return Interrupted
	}
	return i.Status
}

// RunStatusText returns the status for people: that some nodes failed is a part of it.
func RunStatusText(i run.Info) string {
	status := string(RunStatus(i))
	if i.Status == run.Done && i.Failures > 0 {
		status += ", " + text.Count(i.Failures, "failure")
	}
	return status
}

// PromptLength is how much of a prompt a list shows, in characters.
const PromptLength = 32

// Runs returns a table of runs.
func Runs(infos []run.Info) string {
	rows := [][]string{{"ID", "KIND", "AGENT", "STATUS", "AGE", "STEPS", "TOKENS", "COST", "PROMPT"}}
	for _, i := range infos {
		steps, kind, agent := "-", string(i.Kind), i.Agent
		if i.Kind == run.GraphRun {
			steps, kind = strconv.Itoa(i.Steps), "graph"
		}
		if agent == string(i.Kind) { // a chat, whose agent is its role
			agent = "-"
		}
		rows = append(rows, []string{
			i.ID, kind, agent, RunStatusText(i), Age(time.Since(i.Started)), steps,
			strconv.Itoa(i.Usage.Total()), Cost(i.Usage), text.OneLine(i.Prompt, PromptLength),
		})
	}
	return Table(rows, 5, 6, 7)
}
