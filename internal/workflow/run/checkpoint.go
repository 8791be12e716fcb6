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
	return Checkpoint{
		Step: pr.Step, State: pr.State, Frontier: pr.Frontier, Waiting: pr.Waiting,
		Visits: visits, Taken: p.TakenCounts(pr), Arrived: p.ArrivedCounts(pr), Failures: pr.Failures, Unhandled: pr.Unhandled, Done: pr.Done, Output: pr.Output,
		Effects: pr.Effects, Undoing: pr.Undoing,
	}
}

// Progress returns how far the run had come, the inverse of [CheckpointOf].
func (c Checkpoint) Progress(p *graph.Plan) graph.Progress {
	pr := p.RestoreTaken(p.Restore(graph.Progress{
		Step: c.Step, State: c.State, Frontier: c.Frontier, Waiting: c.Waiting,
		Failures: c.Failures, Unhandled: c.Unhandled, Done: c.Done, Output: c.Output, Effects: c.Effects, Undoing: c.Undoing,
	}, c.Visits), c.Taken)
	return p.RestoreArrived(pr, c.Arrived)
}

// checkpointDoc is a checkpoint in JSON.
type checkpointDoc struct {
	Step      int            `json:"step"`
	State     value.Value    `json:"state"`
	Frontier  []string       `json:"frontier,omitempty"`
	Waiting   []string       `json:"waiting,omitempty"`
	Visits    map[string]int `json:"visits,omitempty"`
	Taken     map[string]int `json:"taken,omitempty"`
	Arrived   map[string]int `json:"arrived,omitempty"`
	Failures  int            `json:"failures,omitempty"`
	Unhandled int            `json:"unhandled,omitempty"`
	Done      bool           `json:"done,omitempty"`
	Output    string         `json:"output,omitempty"`
	Usage     chat.Usage     `json:"usage"`

	Effects []graph.Effect `json:"effects,omitempty"`
	Undoing *graph.Undoing `json:"undoing,omitempty"`
}

// MarshalJSON implements [json.Marshaler].
func (c Checkpoint) MarshalJSON() ([]byte, error) {
	return value.Marshal(checkpointDoc{
		Step: c.Step, State: c.State.Object().Value(), Frontier: c.Frontier, Waiting: c.Waiting, Visits: c.Visits, Taken: c.Taken, Arrived: c.Arrived,
		Failures: c.Failures, Unhandled: c.Unhandled, Done: c.Done, Output: c.Output, Usage: c.Usage, Effects: c.Effects, Undoing: c.Undoing,
	})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (c *Checkpoint) UnmarshalJSON(data []byte) error {
	var d checkpointDoc
	if err := json.Unmarshal(data, &d); err != nil {
		return err
	}
	*c = Checkpoint{
		Step: d.Step, State: graph.NewState(d.State.AsObject()), Frontier: d.Frontier, Waiting: d.Waiting, Visits: d.Visits, Taken: d.Taken, Arrived: d.Arrived,
		Failures: d.Failures, Unhandled: d.Unhandled, Done: d.Done, Output: d.Output, Usage: d.Usage, Effects: d.Effects, Undoing: d.Undoing,
	}
	return nil
}

// taskDoc is a finished task in JSON.
type taskDoc struct {
	Step     int            `json:"step,omitempty"`
	Node     string         `json:"node,omitempty"`
	Writes   value.Value    `json:"writes"`
	Targets  []string       `json:"targets,omitempty"`
	Taken    []string       `json:"taken,omitempty"`
	Ended    bool           `json:"ended,omitempty"`
	Output   string         `json:"output,omitempty"`
	Failure  *graph.Failure `json:"failure,omitempty"`
	Inner    graph.Failed   `json:"inner,omitzero"`
	Canceled bool           `json:"canceled,omitempty"`
	Visit    Visit          `json:"visit"`
	Took     time.Duration  `json:"took"`
}

// MarshalJSON implements [json.Marshaler].
func (t TaskRecord) MarshalJSON() ([]byte, error) {
	r := t.Result
	return value.Marshal(taskDoc{
		Step: t.Step, Node: r.Node, Writes: value.ObjectOf(r.Writes...).Value(), Targets: r.Targets, Taken: r.Taken, Ended: r.Ended, Output: r.Output, Failure: r.Failure, Inner: r.Inner, Canceled: r.Canceled,
		Visit: t.Visit, Took: t.Visit.Duration,
	})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (t *TaskRecord) UnmarshalJSON(data []byte) error {
	var d taskDoc
	if err := json.Unmarshal(data, &d); err != nil {
		return err
	}
	*t = TaskRecord{Step: d.Step, Visit: d.Visit, Result: graph.Result{
		Node: d.Node, Targets: d.Targets, Taken: d.Taken, Ended: d.Ended, Output: d.Output, Failure: d.Failure, Inner: d.Inner, Canceled: d.Canceled,
	}}
	t.Visit.Duration = d.Took
	for name, v := range d.Writes.AsObject().All() {
		t.Result.Writes = append(t.Result.Writes, value.Member{Name: name, Value: v})
	}
	return nil
}
