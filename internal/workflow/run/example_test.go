package run_test

import (
	"context"
	"errors"
	"fmt"

	"loki/internal/base/fault/steps"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
)

// errand is work of two steps. The second one fails as long as the shop is closed.
type errand struct{ closed bool }

func (*errand) Started() event.Started { return event.Started{} }

func (e *errand) Do(ctx context.Context, f *run.Frame) (run.Outcome, error) {
	record := f.Steps()
	money, err := steps.Do(ctx, record, steps.Step{Kind: steps.Tool, Key: "fetch"}, func(context.Context) (int, error) {
		fmt.Println("fetches money")
		return 20, nil
	})
	if err != nil {
		return run.Outcome{}, err
	}
	bread, err := steps.Do(ctx, record, steps.Step{Kind: steps.Tool, Key: "buy"}, func(context.Context) (string, error) {
		if e.closed {
			return "", errors.New("the shop is closed")
		}
		return fmt.Sprintf("bread for %d", money), nil
	})
	return run.Outcome{Output: bread}, err
}

// A run that failed goes on later: what it has done is not done again.
func Example() {
	store := lasting{Store: memstore.New(nil)} // a file, in a program
	work := &errand{closed: true}
	job := run.Job{
		Info: run.Info{Kind: run.ChatRun, Agent: "errand"}, Durability: graph.DurabilityProcess,
		Make: func(context.Context, run.Point) (run.Work, func() error, error) { return work, nil, nil },
	}
	runs := &run.Service{
		Open:   func(graph.Durability) (run.Store, error) { return store, nil },
		Recall: func(context.Context, run.Info, run.Checkpoint, run.Continuation) (run.Job, error) { return job, nil },
	}
	out, err := runs.Start(context.Background(), job)
	fmt.Println("error:", err)

	work.closed = false
	out, err = runs.Resume(context.Background(), run.Resumption{Continuation: run.Continuation{ID: out.Run}})
	fmt.Println(out.Output, err)
	// Output:
	// fetches money
	// error: the shop is closed
	// bread for 20 <nil>
}
