package run_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"loki/internal/base/value"
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
		if _, ok := execution.FieldByName(name); !ok && name != "Loop" && name != "Short" { // those of its Start, see TestLoopsInExecutions
			t.Errorf("run.Execution has no field %s", name)
		}
	}
}
