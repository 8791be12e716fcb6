package graph

import (
	"strings"
	"testing"

	"loki/internal/base/value"
)

func diffText(d *Draft) string { return value.ObjectOf(d.Writes()...).Value().String() }

func TestDraftWrites(t *testing.T) {
	base := state(t, `{"a": 1, "b": [1], "c": "x"}`)
	for _, tt := range []struct {
		name   string
		change func(*Draft)
		want   string
	}{
		{"unchanged", func(*Draft) {}, `{}`},
		{"same_value", func(d *Draft) { d.Set("a", value.Of(1)) }, `{"a":1}`},
		{"old_run", func(d *Draft) { d.Set("a", value.Of(1)); d.Set("c", value.Of("y")); d.DropUnchanged() }, `{"c":"y"}`},
		{"int_to_float", func(d *Draft) { d.Set("a", value.Of(1.0)) }, `{"a":1.0}`},
		{"new_null", func(d *Draft) { d.Set("z", value.Value{}) }, `{"z":null}`},
		{"changed_back", func(d *Draft) { d.Set("a", value.Of(2)); d.Set("a", value.Of(1)) }, `{"a":1}`},
		{"sorted", func(d *Draft) { d.Set("z", value.Of(1)); d.Set("c", value.Of("y")) }, `{"c":"y","z":1}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := NewDraft(base)
			tt.change(d)
			if got := diffText(d); got != tt.want {
				t.Errorf("diff is %s, want %s", got, tt.want)
			}
			if got := string(base.AppendJSON(nil)); got != `{"a":1,"b":[1],"c":"x"}` {
				t.Errorf("the shared state changed: %s", got)
			}
		})
	}
}

// TestDraftMerge: what of the output of a script is a write.
func TestDraftMerge(t *testing.T) {
	reducers := map[string]Reducer{"sum": ReduceSum, "list": ReduceExtend, "most": ReduceMax}
	for _, tt := range []struct{ name, output, want string }{
		{"changed", `{"a": 2}`, `{"a":2}`},
		{"equal", `{"a": 1, "most": 3}`, `{}`},
		{"equal_of_a_reducer_that_adds", `{"sum": 2, "list": [1]}`, `{"list":[1],"sum":2}`},
		{"echo", `{"a": 1, "sum": 2, "list": [1], "most": 3}`, `{}`},
		{"echo_with_changes", `{"a": 1, "sum": 5, "list": [1], "most": 4, "new": null}`, `{"most":4,"new":null,"sum":5}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := NewDraft(state(t, `{"a": 1, "sum": 2, "list": [1], "most": 3}`))
			output, err := value.ParseJSON([]byte(tt.output))
			if err != nil {
				t.Fatal(err)
			}
			d.Merge(output.AsObject(), reducers)
			if got := diffText(d); got != tt.want {
				t.Errorf("writes %s, want %s", got, tt.want)
			}
		})
	}
}

func TestStateWithAndChanges(t *testing.T) {
	a := state(t, `{"b": 1, "d": 2}`)
	b := a.With(value.Member{Name: "c", Value: value.Of(3)}, value.Member{Name: "b", Value: value.Of(9)}, value.Member{Name: "a", Value: value.Of(0)})
	if got := string(b.AppendJSON(nil)); got != `{"a":0,"b":9,"c":3,"d":2}` {
		t.Errorf("With gives %s", got)
	}
	if got := string(a.AppendJSON(nil)); got != `{"b":1,"d":2}` {
		t.Errorf("With changed its receiver: %s", got)
	}
	if got := value.ObjectOf(a.Changes(b)...).Value().String(); got != `{"a":0,"b":9,"c":3}` {
		t.Errorf("Changes gives %s", got)
	}
	if got := value.ObjectOf(a.Changes(a.With(value.Member{Name: "e", Value: value.Of(4)}))...).Value().String(); got != `{"e":4}` {
		t.Errorf("Changes of a key behind all others gives %s", got)
	}
	if len(b.Changes(b)) != 0 {
		t.Error("a state differs from itself")
	}
}

func TestApplyUpdates(t *testing.T) {
	updates := func(pairs ...string) (u []Update) {
		for i := 0; i < len(pairs); i += 2 {
			u = append(u, Update{Key: pairs[i], Template: ParseTemplate(pairs[i+1])})
		}
		return u
	}
	for _, tt := range []struct {
		name, state string
		updates     []Update
		want        string
	}{
		{"scoped_variable", `{}`, updates("x", "{{output}}!"), `{"x":"R!"}`},
		{"scoped_is_gone_afterwards", `{"output":"old"}`, updates("x", "{{output}}"), `{"output":"old","x":"R"}`},
		{"later_sees_earlier", `{}`, updates("x", "1{{output}}", "y", "{{x}}{{x}}"), `{"x":"1R","y":"1R1R"}`},
		{"typed", `{"l":[1]}`, updates("x", "{{l}}"), `{"l":[1],"x":[1]}`},
		{"missing_is_empty", `{}`, updates("x", "<{{none}}>"), `{"x":"<>"}`},
		{"entry_for_the_scoped_key", `{"output":"old"}`, updates("output", "new {{output}}", "x", "{{output}}"), `{"output":"old","x":"new R"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := NewDraft(state(t, tt.state))
			d.ApplyUpdates(tt.updates, "output", value.Of("R"), "")
			if got := string(d.State().AppendJSON(nil)); got != tt.want {
				t.Errorf("state is %s, want %s", got, tt.want)
			}
		})
	}
	d := NewDraft(State{})
	if v, ok := d.ApplyUpdates(updates("output", "<{{output}}>"), "output", value.Of("R"), "output"); !ok || v.Text() != "<R>" {
		t.Errorf("the wanted entry rendered to %s, %v", v, ok)
	}
}

func TestReducers(t *testing.T) {
	const absent = ""
	for _, tt := range []struct {
		name, reducer, current, incoming, want, wantErr string
	}{
		{"append_absent", "append", absent, `"x"`, `["x"]`, ""},
		{"append_nests_arrays", "append", `[1]`, `[2]`, `[1,[2]]`, ""},
		{"append_to_string", "append", `""`, `1`, "", `reducer "append" needs an array as current value, got string`},
		{"append_to_null", "append", `null`, `1`, "", "current value, got null"},
		{"extend_absent", "extend", absent, `[1]`, `[1]`, ""},
		{"extend", "extend", `[1]`, `[2,[3]]`, `[1,2,[3]]`, ""},
		{"extend_with_object", "extend", `[1]`, `{}`, "", `"extend" needs an array as incoming value, got object`},
		{"extend_looks_at_current_first", "extend", `1`, `2`, "", "current value, got number"},
		{"concat_absent", "concat", absent, `"a"`, `"a"`, ""},
		{"concat", "concat", `"a"`, `"b"`, `"a\nb"`, ""},
		{"concat_empty_current", "concat", `""`, `"b"`, `"b"`, ""},
		{"concat_empty_incoming", "concat", `"a"`, `""`, `"a\n"`, ""},
		{"concat_number", "concat", `"a"`, `2`, "", "incoming value, got number"},
		{"sum_absent", "sum", absent, `2.0`, `2`, ""},
		{"sum_to_whole", "sum", `1.5`, `2.5`, `4`, ""},
		{"sum_fraction", "sum", `1`, `0.5`, `1.5`, ""},
		{"sum_overflow", "sum", `1e308`, `1e308`, `null`, ""},
		{"sum_large", "sum", `9223372036854775807`, `9223372036854775807`, `1.8446744073709552e19`, ""},
		{"sum_to_the_smallest_integer", "sum", `-4611686018427387904`, `-4611686018427387904`, `-9223372036854775808`, ""},
		{"sum_beyond_the_largest_integer", "sum", `4611686018427387904`, `4611686018427387904`, `9.223372036854776e18`, ""},
		{"sum_bool", "sum", `1`, `true`, "", `"sum" needs a number as incoming value, got bool`},
		{"sum_numeric_string", "sum", `1`, `"2"`, "", "got string"},
		{"max", "max", `1`, `2.0`, `2`, ""},
		{"min", "min", `-0.5`, `2`, `-0.5`, ""},
		{"negative_zero", "min", `0`, `-0.0`, `0`, ""},
		{"merge_absent", "merge", absent, `{"a":1}`, `{"a":1}`, ""},
		{"merge", "merge", `{"a":{"x":1},"b":2}`, `{"c":3,"a":{"y":2}}`, `{"a":{"y":2},"b":2,"c":3}`, ""},
		{"merge_array", "merge", `{}`, `[]`, "", `"merge" needs an object as incoming value, got array`},
		{"overwrite", "overwrite", `[1]`, `null`, `null`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var current value.Value
			if tt.current != absent {
				current, _ = value.ParseJSON([]byte(tt.current))
			}
			incoming, err := value.ParseJSON([]byte(tt.incoming))
			if err != nil {
				t.Fatal(err)
			}
			got, err := Reducer(tt.reducer).Reduce(current, tt.current != absent, incoming)
			switch {
			case tt.wantErr != "":
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("error is %v, want %q", err, tt.wantErr)
				}
			case err != nil || got.String() != tt.want:
				t.Errorf("got %s, %v, want %s", got, err, tt.want)
			}
		})
	}
}
