package runtest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"loki/internal/base/fault/steps"
	"loki/internal/base/value"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// Drive runs, or resumes, four super-steps of three effects each in the only run of a store, for tests that end
// the process meanwhile. Each effect adds a line to the file at path log and a text to the state, which it
// returns.
func Drive(ctx context.Context, s run.Store, log string) (graph.State, error) {
	infos, err := s.Runs(ctx, run.Query{})
	if err != nil {
		return graph.State{}, err
	}
	var j run.Journal
	last := run.Checkpoint{}
	switch {
	case len(infos) == 0:
		j, err = s.Create(ctx, run.Info{Agent: "a", Served: true}, last)
	case infos[0].Status == run.Done:
		c, err := s.Checkpoint(ctx, infos[0].ID, -1)
		return c.State, err
	default:
		var found run.Recovery
		j, found, err = s.Open(ctx, infos[0].ID)
		last = found.Last
	}
	if err != nil {
		return graph.State{}, err
	}
	for step := last.Step + 1; step <= 4; step++ {
		var texts []value.Value
		for k := range 3 {
			effect := steps.Step{Kind: steps.Tool, Key: fmt.Sprint(k), Effect: true}
			text, err := steps.Do(ctx, steps.New(j.Task(step, "a")), effect, func(context.Context) (string, error) {
				return strings.Repeat(fmt.Sprintf("%d/%d has a long result\n", step, k), 200), AppendLine(log, fmt.Sprintf("%d/%d", step, k))
			})
			if err != nil {
				return graph.State{}, err
			}
			texts = append(texts, value.Of(text))
			j.Event(event.Event{Time: time.Now(), Body: event.ToolResult{Text: text}})
		}
		if err := j.Finished(ctx, run.TaskRecord{Step: step, Result: graph.Result{Node: "a"}}); err != nil {
			return graph.State{}, err
		}
		old, _ := last.State.Get("log")
		list, _ := old.AsList()
		last.Step = step
		last.State = last.State.With(value.Member{Name: "log", Value: list.Append(texts...).Value()})
		if err := j.Commit(ctx, last, []run.Visit{{Step: step, Node: "a", Number: step}}); err != nil {
			return graph.State{}, err
		}
	}
	if err := j.End(ctx, run.Ending{Status: run.Done}); err != nil {
		return graph.State{}, err
	}
	return last.State, j.Close()
}

// AppendLine adds a line to a file, which it makes if it is not there.
func AppendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(line + "\n")
	return err
}
