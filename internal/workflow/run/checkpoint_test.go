package run_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// filled sets each exported field of a struct, and of the structs in it, to a value other than its zero value.
func filled(t *testing.T, v reflect.Value) {
	t.Helper()
	switch x := v.Addr().Interface().(type) {
	case *graph.State:
		*x = graph.NewState(value.ObjectOf(value.Member{Name: "b", Value: value.Of(1.0)}, value.Member{Name: "a", Value: value.Of(1)}))
		return
	case *value.Value:
		*x = value.Of("value")
		return
	case *error: // is not on record
		return
	case **graph.Node: // is that of the graph
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		if v.Type().PkgPath() == "time" {
			v.Set(v.MethodByName("AddDate").Call([]reflect.Value{reflect.ValueOf(2000), reflect.ValueOf(1), reflect.ValueOf(1)})[0])
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				filled(t, v.Field(i))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		filled(t, v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		filled(t, key)
		filled(t, elem)
		v.SetMapIndex(key, elem)
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(0.5)
	default:
		t.Fatalf("cannot fill a %s", v.Type())
	}
}

// TestRecordsInJSON has every field of checkpoints and of finished tasks come back from JSON.
func TestRecordsInJSON(t *testing.T) {
	for _, x := range []any{new(run.Checkpoint), new(run.TaskRecord)} {
		filled(t, reflect.ValueOf(x).Elem())
		data, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		back := reflect.New(reflect.TypeOf(x).Elem()).Interface()
		if err := json.Unmarshal(data, back); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(x, back) {
			t.Errorf("%s\n got %+v\nwant %+v", data, back, x)
		}
	}
}

// TestCheckpointHasAllProgress has every field of a progress come back from its checkpoint.
func TestCheckpointHasAllProgress(t *testing.T) {
	plan := graph.NewPlan(&graph.Graph{Start: "text", Nodes: []*graph.Node{{ID: "text"}}})
	var pr graph.Progress
	filled(t, reflect.ValueOf(&pr).Elem())
	pr = plan.Restore(pr, map[string]int{"text": 3})
	if back := run.CheckpointOf(plan, pr, usage(1)).Progress(plan); !reflect.DeepEqual(pr, back) {
		t.Errorf("got %+v\nwant %+v", back, pr)
	}
}

// TestExecutionHasAllOfTask has an Execution carry what the scheduler says of a task.
func TestExecutionHasAllOfTask(t *testing.T) {
	task, execution := reflect.TypeFor[graph.Task](), reflect.TypeFor[run.Execution]()
	for i := range task.NumField() {
		name := task.Field(i).Name
		if _, ok := execution.FieldByName(name); !ok && !slices.Contains([]string{"Loop", "Short", "Undoes"}, name) { // those of its Start, see TestLoopsInExecutions
			t.Errorf("run.Execution has no field %s", name)
		}
	}
}

// TestFormOnRecord checks the JSON of checkpoints and tasks, which records outside of this program's stores have.
func TestFormOnRecord(t *testing.T) {
	t.Parallel()
	c := run.Checkpoint{Step: 2, State: graph.NewState(value.ObjectOf(value.Member{Name: "b", Value: value.Of("<x>")}, value.Member{Name: "a", Value: value.Of(1)}))}
	c.Frontier, c.Waiting, c.Failures, c.Unhandled, c.Done, c.Output = []string{"n"}, []string{"w"}, 2, 1, true, "out"
	c.Visits, c.Taken, c.Arrived, c.Usage = map[string]int{"n": 1}, map[string]int{"n.next[0]": 1}, map[string]int{"j": 1}, chat.Usage{InputTokens: 3}
	c.Effects, c.Undoing = []graph.Effect{{Node: "n", Step: 1, Visit: 1}}, &graph.Undoing{}
	done := run.TaskRecord{Step: 1, Result: graph.Result{
		Node: "n", Writes: []value.Member{{Name: "b", Value: value.Of(1)}}, Targets: []string{"m"}, Taken: []string{"n.next[0]"}, Ended: true, Output: "o",
		Failure: &graph.Failure{Node: "n"}, Inner: graph.Failed{Failures: 1}, Canceled: true,
	}, Visit: run.Visit{Node: "n", Duration: 5}}
	for _, tt := range []struct {
		name, want string
		of         any
	}{
		{"checkpoint", `{"step":2,"state":{"a":1,"b":"\u003cx\u003e"},"frontier":["n"],"waiting":["w"],"visits":{"n":1},"taken":{"n.next[0]":1},"arrived":{"j":1},"failures":2,"unhandled":1,"done":true,"output":"out","usage":{"input_tokens":3,"output_tokens":0},"effects":[{"node":"n","step":1,"visit":1,"writes":null}],"undoing":{"failure":{"node":"","type":"","message":""},"error":"","code":"","total":0,"before":0}}`, c},
		{"empty_checkpoint", `{"step":0,"state":{},"usage":{"input_tokens":0,"output_tokens":0}}`, run.Checkpoint{}},
		{"task", `{"step":1,"node":"n","writes":{"b":1},"targets":["m"],"taken":["n.next[0]"],"ended":true,"output":"o","failure":{"node":"n","type":"","message":""},"inner":{"failures":1},"canceled":true,"visit":{"step":0,"node":"n","type":"","visit":0,"started":"0001-01-01T00:00:00Z","usage":{"input_tokens":0,"output_tokens":0}},"took":5}`, done},
		{"empty_task", `{"writes":{},"visit":{"step":0,"node":"","type":"","visit":0,"started":"0001-01-01T00:00:00Z","usage":{"input_tokens":0,"output_tokens":0}},"took":0}`, run.TaskRecord{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := json.Marshal(tt.of)
			if err != nil || string(got) != tt.want {
				t.Errorf("got\n%s\nwant\n%s, %v", got, tt.want, err)
			}
		})
	}
}
