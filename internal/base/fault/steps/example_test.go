package steps_test

import (
	"context"
	"fmt"

	"loki/internal/base/fault/steps"
)

// memory is a Recorder that keeps results in a map.
type memory map[string]steps.Record

func (m memory) Lookup(_ context.Context, key string, _ steps.Step) (steps.Record, error) {
	return m[key], nil
}

func (m memory) Begin(_ context.Context, key string, _ steps.Step) error {
	m[key] = steps.Record{Begun: true}
	return nil
}

func (m memory) Forget(_ context.Context, key string) error {
	delete(m, key)
	return nil
}

func (m memory) Record(_ context.Context, key string, _ steps.Step, result []byte) error {
	m[key] = steps.Record{Result: result, Done: true}
	return nil
}

// A step that is on record is not made again: a run that was interrupted goes through the same
// code and pays for nothing twice.
func ExampleDo() {
	record := memory{}
	for range 2 {
		reply, err := steps.Do(context.Background(), steps.New(record), steps.Step{Kind: steps.Model, Key: "model/1", Name: "gpt"},
			func(context.Context) (string, error) {
				fmt.Println("the model is asked")
				return "hello", nil
			})
		fmt.Println(reply, err)
	}
	// Output:
	// the model is asked
	// hello <nil>
	// hello <nil>
}
