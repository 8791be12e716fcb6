package run

import (
	"encoding/json"
	"time"

	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/workflow/graph"
)

// StartCheckpoint is the checkpoint before the first super-step of a run.
func StartCheckpoint(p *graph.Plan, state graph.State) Checkpoint {
	return checkpoint(p, p.Begin(state), make(map[string]int))
}

// CheckpointOf returns the checkpoint of a run that has come to pr and used usage.
func CheckpointOf(p *graph.Plan, pr graph.Progress, usage chat.Usage) Checkpoint {
	c := checkpoint(p, pr, p.VisitCounts(pr))
	c.Usage = usage
	return c
}

// checkpoint is pr as it is stored, with the visits of all nodes that were run.
func checkpoint(p *graph.Plan, pr graph.Progress, visits map[string]int) Checkpoint {
	return Checkpoint{Step: pr.Step, State: pr.State, Effects: pr.Effects, Undoing: pr.Undoing, Position: Position{
		Frontier: pr.Frontier, Waiting: pr.Waiting, Visits: visits, Taken: p.TakenCounts(pr), Arrived: p.ArrivedCounts(pr),
		Failures: pr.Failures, Unhandled: pr.Unhandled, Done: pr.Done, Output: pr.Output,
	}}
}

// Progress returns how far the run had come, the inverse of [CheckpointOf].
func (c Checkpoint) Progress(p *graph.Plan) graph.Progress {
	pr := p.RestoreTaken(p.Restore(graph.Progress{
		Step: c.Step, State: c.State, Frontier: c.Frontier, Waiting: c.Waiting,
		Failures: c.Failures, Unhandled: c.Unhandled, Done: c.Done, Output: c.Output, Effects: c.Effects, Undoing: c.Undoing,
	}, c.Visits), c.Taken)
	return p.RestoreArrived(pr, c.Arrived)
}

// taskDoc is a finished task in JSON.
type taskDoc struct {
	Step   int         `json:"step,omitempty"`
	Node   string      `json:"node,omitempty"`
	Writes value.Value `json:"writes"`
	graph.Result
	Visit Visit         `json:"visit"`
	Took  time.Duration `json:"took"`
}

// MarshalJSON implements [json.Marshaler].
func (t TaskRecord) MarshalJSON() ([]byte, error) {
	return value.Marshal(taskDoc{t.Step, t.Result.Node, value.ObjectOf(t.Result.Writes...).Value(), t.Result, t.Visit, t.Visit.Duration})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (t *TaskRecord) UnmarshalJSON(data []byte) error {
	var d taskDoc
	if err := json.Unmarshal(data, &d); err != nil {
		return err
	}
	*t = TaskRecord{Step: d.Step, Visit: d.Visit, Result: d.Result}
	t.Visit.Duration, t.Result.Node = d.Took, d.Node
	for name, v := range d.Writes.AsObject().All() {
		t.Result.Writes = append(t.Result.Writes, value.Member{Name: name, Value: v})
	}
	return nil
}
