package openai

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider/normalize"
	"loki/internal/llm/provider/toolcall"
)

// TestCallAssembler puts calls together from the pieces of many dialects. Each
// line is the tool_calls member of one chunk.
func TestCallAssembler(t *testing.T) {
	for _, tt := range []struct {
		name   string
		chunks []string
		want   []chat.ToolCall
	}{
		{"id_with_the_first_piece", []string{
			`[{"index":0,"id":"x","function":{"name":"f","arguments":""}}]`,
			`[{"index":0,"function":{"arguments":"{\"a\""}}]`,
			`[{"index":0,"function":{"arguments":":1}"}}]`,
		}, []chat.ToolCall{{ID: "x", Name: "f", Arguments: `{"a":1}`}}},
		{"id_with_every_piece", []string{
			`[{"id":"x","function":{"name":"f","arguments":"{"}}]`,
			`[{"id":"y","function":{"name":"g","arguments":"{"}}]`,
			`[{"id":"x","function":{"arguments":"}"}}]`,
			`[{"id":"y","function":{"arguments":"}"}}]`,
		}, []chat.ToolCall{{ID: "x", Name: "f", Arguments: "{}"}, {ID: "y", Name: "g", Arguments: "{}"}}},
		{"new_id_with_every_piece", []string{
			`[{"index":0,"id":"x1","function":{"name":"f","arguments":"{"}}]`,
			`[{"index":0,"id":"x2","function":{"arguments":"}"}}]`,
		}, []chat.ToolCall{{ID: "x1", Name: "f", Arguments: "{}"}}},
		{"id_comes_late", []string{
			`[{"index":0,"function":{"name":"f","arguments":"{"}}]`,
			`[{"index":0,"id":"x","function":{"arguments":"}"}}]`,
		}, []chat.ToolCall{{ID: "x", Name: "f", Arguments: "{}"}}},
		{"interleaved_indexes", []string{
			`[{"index":0,"function":{"name":"f","arguments":"{\"a\":"}},{"index":1,"function":{"name":"g","arguments":"{\"b\":"}}]`,
			`[{"index":1,"function":{"arguments":"2}"}},{"index":0,"function":{"arguments":"1}"}}]`,
		}, []chat.ToolCall{{ID: "call_1", Name: "f", Arguments: `{"a":1}`}, {ID: "call_2", Name: "g", Arguments: `{"b":2}`}}},
		{"same_index_other_ids", []string{
			`[{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}]`,
			`[{"index":0,"id":"y","function":{"name":"f","arguments":"{"}}]`,
			`[{"index":0,"function":{"arguments":"}"}}]`,
		}, []chat.ToolCall{{ID: "x", Name: "f", Arguments: "{}"}, {ID: "y", Name: "f", Arguments: "{}"}}},
		{"same_id_other_indexes", []string{
			`[{"index":0,"id":"f","function":{"name":"f","arguments":"{}"}}]`,
			`[{"index":1,"id":"f","function":{"name":"f","arguments":"{\"a\":1}"}}]`,
		}, []chat.ToolCall{{ID: "f", Name: "f", Arguments: "{}"}, {ID: "call_1", Name: "f", Arguments: `{"a":1}`}}},
		{"same_id_twice", []string{
			`[{"id":"f","function":{"name":"f","arguments":"{\"a\":1}"}}]`,
			`[{"id":"f","function":{"name":"f","arguments":"{\"a\":2}"}}]`,
		}, []chat.ToolCall{{ID: "f", Name: "f", Arguments: `{"a":1}`}, {ID: "call_1", Name: "f", Arguments: `{"a":2}`}}},
		{"same_id_and_index_twice", []string{
			`[{"index":0,"id":"f","function":{"name":"f","arguments":"{\"a\":1}"}}]`,
			`[{"index":0,"id":"f","function":{"name":"g","arguments":"{"}}]`,
			`[{"index":0,"id":"f","function":{"arguments":"}"}}]`,
		}, []chat.ToolCall{{ID: "f", Name: "f", Arguments: `{"a":1}`}, {ID: "call_1", Name: "g", Arguments: "{}"}}},
		{"object_instead_of_a_list", []string{
			`{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\""}}`,
			`{"index":0,"function":{"arguments":":1}"}}`,
			`null`, `"none"`,
		}, []chat.ToolCall{{ID: "x", Name: "f", Arguments: `{"a":1}`}}},
		{"neither_id_nor_index", []string{
			`[{"function":{"name":"f","arguments":"{\"a\""}}]`,
			`[{"function":{"arguments":":1}"}}]`,
		}, []chat.ToolCall{{ID: "call_1", Name: "f", Arguments: `{"a":1}`}}},
		{"whole_calls_without_id_and_index", []string{
			`[{"function":{"name":"f","arguments":"{}"}},{"function":{"name":"g","arguments":{"a":1}}}]`,
			`[{"function":{"name":"g","arguments":"{\"a\":2}"}}]`,
		}, []chat.ToolCall{{ID: "call_1", Name: "f", Arguments: "{}"}, {ID: "call_2", Name: "g", Arguments: `{"a":1}`}, {ID: "call_3", Name: "g", Arguments: `{"a":2}`}}},
		{"repeated_name", []string{
			`[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":"}}]`,
			`[{"index":0,"function":{"name":"f","arguments":"1}"}}]`,
			`[{"index":0,"function":{"name":"f","arguments":""}}]`,
		}, []chat.ToolCall{{ID: "x", Name: "f", Arguments: `{"a":1}`}}},
		{"growing_name", []string{
			`[{"index":0,"function":{"name":"get"}}]`,
			`[{"index":0,"function":{"name":"get_time"}}]`,
		}, []chat.ToolCall{{ID: "call_1", Name: "get_time", Arguments: "{}"}}},
		{"name_in_pieces", []string{
			`[{"index":0,"function":{"name":"get_"}}]`,
			`[{"index":0,"function":{"name":"time","arguments":" "}}]`,
		}, []chat.ToolCall{{ID: "call_1", Name: "get_time", Arguments: "{}"}}},
		{"placeholder_arguments", []string{
			`[{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}]`,
			`[{"index":0,"function":{"arguments":"{\"a\":"}}]`,
			`[{"index":0,"function":{"arguments":"1}"}}]`,
		}, []chat.ToolCall{{ID: "x", Name: "f", Arguments: `{"a":1}`}}},
		{"numbers_for_strings", []string{`[{"index":"0","id":7,"function":{"name":"f","arguments":null}}]`}, []chat.ToolCall{{ID: "7", Name: "f", Arguments: "{}"}}},
		{"nothing", []string{`[null]`, `[{"function":null}]`, `[{"index":0,"function":{"name":"","arguments":""}}]`}, nil},
		{"broken_without_function", []string{`[{"index":0,"id":"x"}]`}, []chat.ToolCall{{ID: "x", Name: normalize.Unnamed, Arguments: "{}"}}},
		{"broken_without_name", []string{`[{"index":0,"id":"x","function":{"arguments":"{}"}}]`}, []chat.ToolCall{{ID: "x", Name: normalize.Unnamed, Arguments: "{}"}}},
		{"broken_beside_another", []string{
			`[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":1}"}}]`,
			`[{"index":1,"id":"y","function":{"arguments":"{\"b\":1}"}}]`,
		}, []chat.ToolCall{{ID: "x", Name: "f", Arguments: `{"a":1}`}, {ID: "y", Name: normalize.Unnamed, Arguments: `{"b":1}`}}},
		{"trailing_garbage", []string{
			`[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":1}"}}]`,
			`[{"index":0,"function":{"arguments":"{\"b\":1}"}}]`, `[{"index":0,"function":{"arguments":"}"}}]`,
		}, []chat.ToolCall{{ID: "x", Name: "f", Arguments: `{"a":1}{"b":1}}`}}},
		{"rising_index", []string{
			`[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"pa"}}]`,
			`[{"index":1,"function":{"arguments":"th\":1"}}]`,
			`[{"index":2,"function":{"arguments":"}"}}]`,
			`[{"index":3,"id":"y","function":{"name":"g","arguments":""}}]`,
			`[{"index":4,"function":{"arguments":"{\"b\""}}]`,
			`[{"index":5,"function":{"arguments":":2}"}}]`,
		}, []chat.ToolCall{{ID: "x", Name: "f", Arguments: `{"path":1}`}, {ID: "y", Name: "g", Arguments: `{"b":2}`}}},
		{"rising_index_with_id_and_name", []string{
			`[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"pa"}}]`,
			`[{"index":1,"id":"x","function":{"name":"f","arguments":"th\":1}"}}]`,
		}, []chat.ToolCall{{ID: "x", Name: "f", Arguments: `{"path":1}`}}},
		{"broken_two_could_continue", []string{
			`[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":"}},{"index":1,"id":"y","function":{"name":"g","arguments":"{\"b\":"}}]`,
			`[{"index":7,"function":{"arguments":"1}"}}]`,
		}, []chat.ToolCall{{ID: "x", Name: "f", Arguments: `{"a":`}, {ID: "y", Name: "g", Arguments: `{"b":1}`}}},
		{"arguments_before_the_name", []string{
			`[{"index":0,"function":{"arguments":"{\"a\":"}}]`,
			`[{"index":0,"id":"x","function":{"name":"f","arguments":"1}"}}]`,
		}, []chat.ToolCall{{ID: "x", Name: "f", Arguments: `{"a":1}`}}},
		{"repeated_whole", []string{
			`[{"index":0,"id":"x","function":{"name":"f","arguments":""}}]`,
			`[{"index":0,"function":{"arguments":"{\"a\":1}"}}]`,
			`[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":1}"}}]`,
		}, []chat.ToolCall{{ID: "x", Name: "f", Arguments: `{"a":1}`}}},
		{"repeated_at_the_next_index", []string{
			`[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":1}"}}]`,
			`[{"index":1,"id":"x","function":{"name":"f","arguments":"{ \"a\": 1 }"}}]`,
		}, []chat.ToolCall{{ID: "x", Name: "f", Arguments: `{"a":1}`}}},
		{"repeated_and_encoded", []string{
			`[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":1}"}}]`,
			`[{"index":0,"id":"x","function":{"name":"f","arguments":"\"{\\\"a\\\":1}\""}}]`,
		}, []chat.ToolCall{{ID: "x", Name: "f", Arguments: `{"a":1}`}}},
		{"repeated_in_pieces", []string{
			`[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":1}"}},{"index":1,"id":"y","function":{"name":"g","arguments":"{}"}}]`,
			`[{"index":0,"id":"x","function":{"name":"f","arguments":""}}]`,
			`[{"index":0,"function":{"arguments":"{\"a\""}}]`,
			`[{"index":0,"function":{"arguments":":1}"}}]`,
			`[{"index":1,"id":"y","function":{"name":"g","arguments":"{}"}}]`,
		}, []chat.ToolCall{{ID: "x", Name: "f", Arguments: `{"a":1}`}, {ID: "y", Name: "g", Arguments: "{}"}}},
		{"repeated_in_one_piece", []string{
			`[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":1}{\"a\":1}"}}]`,
		}, []chat.ToolCall{{ID: "x", Name: "f", Arguments: `{"a":1}`}}},
		{"repeated_without_id", []string{
			`[{"index":0,"function":{"name":"f","arguments":"{\"a\":1}"}},{"index":1,"function":{"name":"f","arguments":"{\"a\":1}"}}]`,
			`[{"index":0,"function":{"name":"f","arguments":"{\"a\":1}"}},{"index":1,"function":{"name":"f","arguments":"{\"a\":1}"}}]`,
		}, []chat.ToolCall{{ID: "call_1", Name: "f", Arguments: `{"a":1}`}, {ID: "call_2", Name: "f", Arguments: `{"a":1}`}}},
		{"equal_calls_with_different_ids", []string{
			`[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":1}"}}]`,
			`[{"index":0,"id":"y","function":{"name":"f","arguments":"{\"a\":1}"}}]`,
		}, []chat.ToolCall{{ID: "x", Name: "f", Arguments: `{"a":1}`}, {ID: "y", Name: "f", Arguments: `{"a":1}`}}},
		{"same_id_in_pieces_with_different_arguments", []string{
			`[{"index":0,"id":"x","function":{"name":"f","arguments":""}}]`, `[{"index":0,"function":{"arguments":"{\"a\":1}"}}]`,
			`[{"index":0,"id":"x","function":{"name":"f","arguments":""}}]`, `[{"index":0,"function":{"arguments":"{\"a\":2}"}}]`,
		}, []chat.ToolCall{{ID: "x", Name: "f", Arguments: `{"a":1}`}, {ID: "call_1", Name: "f", Arguments: `{"a":2}`}}},
		{"no_arguments_without_ids", []string{
			`[{"function":{"name":"f","arguments":""}}]`, `[{"function":{"name":"g","arguments":""}}]`,
		}, []chat.ToolCall{{ID: "call_1", Name: "f", Arguments: "{}"}, {ID: "call_2", Name: "g", Arguments: "{}"}}},
		{"white_space_between", []string{
			`[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":\"b"}}]`,
			`[{"index":0,"function":{"arguments":" "}}]`, `[{"index":0,"function":{"arguments":"c\"}\n"}}]`,
		}, []chat.ToolCall{{ID: "x", Name: "f", Arguments: `{"a":"b c"}`}}},
		{"arguments_of_another_type", []string{`[{"index":0,"id":"x","function":{"name":"f","arguments":5}}]`}, []chat.ToolCall{{ID: "x", Name: "f", Arguments: "5"}}},
		{"all_arguments_so_far_in_each_piece", []string{
			`[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\""}}]`,
			`[{"index":0,"function":{"arguments":"{\"a\":{\"b\":"}}]`,
			`[{"index":0,"function":{"arguments":"{\"a\":{\"b\":1}}"}}]`,
		}, []chat.ToolCall{{ID: "x", Name: "f", Arguments: `{"a":{"b":1}}`}}},
		{"equal_pieces_are_not_dropped", []string{
			`[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":\""}}]`,
			`[{"index":0,"function":{"arguments":"x"}}]`, `[{"index":0,"function":{"arguments":"x"}}]`, `[{"index":0,"function":{"arguments":"\"}"}}]`,
		}, []chat.ToolCall{{ID: "x", Name: "f", Arguments: `{"a":"xx"}`}}},
		{"two_entries_of_one_call_in_a_chunk", []string{
			`[{"index":0,"id":"x","function":{"name":"f","arguments":""}},{"index":0,"function":{"arguments":"{\"a\":"}}]`,
			`[{"index":0,"function":{"arguments":"1}"}}]`,
		}, []chat.ToolCall{{ID: "x", Name: "f", Arguments: `{"a":1}`}}},
		{"one_index_for_all_in_pieces", []string{
			`[{"index":0,"id":"x","function":{"name":"f","arguments":""}}]`, `[{"index":0,"function":{"arguments":"{\"a\":1}"}}]`,
			`[{"index":0,"id":"y","function":{"name":"f","arguments":""}}]`, `[{"index":0,"function":{"arguments":"{\"a\""}}]`,
			`[{"index":0,"function":{"arguments":":1}"}}]`,
		}, []chat.ToolCall{{ID: "x", Name: "f", Arguments: `{"a":1}`}, {ID: "y", Name: "f", Arguments: `{"a":1}`}}},
		{"several_objects_without_a_name", []string{
			`[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"q\":1}"}}]`, `[{"index":0,"function":{"arguments":"{\"q\":2}"}}]`,
		}, []chat.ToolCall{{ID: "x", Name: "f", Arguments: `{"q":1}{"q":2}`}}},
		{"malformed_arguments_kept", []string{`[{"id":"x","function":{"name":"f","arguments":"{\"a\": tru"}}]`}, []chat.ToolCall{{ID: "x", Name: "f", Arguments: `{"a": tru`}}},
		{"generated_ids_avoid_given_ones", []string{
			`[{"index":0,"function":{"name":"f"}},{"index":1,"id":"call_1","function":{"name":"g"}}]`,
		}, []chat.ToolCall{{ID: "call_2", Name: "f", Arguments: "{}"}, {ID: "call_1", Name: "g", Arguments: "{}"}}},
		{"surplus_dropped", []string{
			`[{"id":"a","function":{"name":"f"}},{"id":"b","function":{"name":"f"}},{"id":"c","function":{"name":"f"}},{"id":"d","function":{"name":"f"}}]`,
			`[{"id":"e","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"g","function":{"name":"f"}}]`,
		}, []chat.ToolCall{
			{ID: "a", Name: "f", Arguments: "{}"},
			{ID: "b", Name: "f", Arguments: "{}"},
			{ID: "c", Name: "f", Arguments: "{}"},
			{ID: "e", Name: "f", Arguments: `{"a":1}`},
			{ID: "g", Name: "f", Arguments: "{}"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var a toolcall.Assembler
			for _, chunk := range tt.chunks {
				a.NextEvent()
				var pieces wireCalls
				if err := json.Unmarshal([]byte(chunk), &pieces); err != nil {
					t.Fatal(err)
				}
				for _, p := range pieces {
					a.Add(p.piece())
				}
			}
			made, broken := a.Calls()
			if got := normalize.Calls(made, nil); !slices.Equal(got, tt.want) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if want := strings.HasPrefix(tt.name, "broken_"); broken != want {
				t.Errorf("broken = %v, want %v", broken, want)
			}
		})
	}
}
