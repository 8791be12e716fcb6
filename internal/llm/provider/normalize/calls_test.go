package normalize_test

import (
	"slices"
	"testing"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider/normalize"
)

func TestCalls(t *testing.T) {
	call := func(id, arguments string) chat.ToolCall {
		return chat.ToolCall{ID: id, Name: "f", Arguments: arguments}
	}
	for _, tt := range []struct {
		name       string
		made, want []chat.ToolCall
	}{
		{"none", nil, nil},
		{
			"whole_calls_kept",
			[]chat.ToolCall{{ID: "x", Name: "f", Arguments: ` {"a": tru`, Signature: "s"}},
			[]chat.ToolCall{{ID: "x", Name: "f", Arguments: ` {"a": tru`, Signature: "s"}},
		},
		{"without_name", []chat.ToolCall{{ID: "x", Arguments: "{}"}}, []chat.ToolCall{{ID: "x", Name: normalize.Unnamed, Arguments: "{}"}}},
		{"blanks_around_the_name", []chat.ToolCall{{ID: "x", Name: " f\n", Arguments: "{}"}}, []chat.ToolCall{call("x", "{}")}},
		{
			"without_arguments",
			[]chat.ToolCall{call("x", ""), call("y", " \n")},
			[]chat.ToolCall{call("x", "{}"), call("y", "{}")},
		},
		{
			"surplus_dropped",
			[]chat.ToolCall{call("a", ""), call("b", "{}"), call("c", "{}"), call("d", "{}"), call("e", `{"a":1}`), call("g", "{}")},
			[]chat.ToolCall{call("a", "{}"), call("b", "{}"), call("c", "{}"), call("e", `{"a":1}`), call("g", "{}")},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			made := slices.Clone(tt.made)
			if got := normalize.Calls(made, nil); !slices.Equal(got, tt.want) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if !slices.Equal(made, tt.made) {
				t.Errorf("the argument is now %+v, was %+v", made, tt.made)
			}
		})
	}
}

// TestCallIDs: an id is never given twice in a conversation, neither by us nor by a
// server that counts anew in each reply.
func TestCallIDs(t *testing.T) {
	for _, tt := range []struct {
		name              string
		past, given, want []string
	}{
		{"counts_from_one", nil, []string{"", ""}, []string{"call_1", "call_2"}},
		{"continues", []string{"call_1", "call_2"}, []string{"", ""}, []string{"call_3", "call_4"}},
		{"counts_calls_of_any_id", []string{"a", "b"}, []string{""}, []string{"call_3"}},
		{"skips_taken", []string{"call_2", "call_3"}, []string{""}, []string{"call_4"}},
		{"server_repeats_itself", []string{"call_0"}, []string{"call_0", "call_1"}, []string{"call_2", "call_1"}},
		{"others_kept", []string{"a"}, []string{"b"}, []string{"b"}},
		{"same_id_twice", nil, []string{"f", "f", "f"}, []string{"f", "call_1", "call_2"}},
		{"given_ones_avoided", nil, []string{"", "call_1", "", "call_3"}, []string{"call_2", "call_1", "call_4", "call_3"}},
		{"numbers_given_twice", nil, []string{"call_1", "call_1", "call_2"}, []string{"call_1", "call_3", "call_2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var made []chat.ToolCall
			for i, id := range tt.given {
				made = append(made, chat.ToolCall{ID: id, Name: string(rune('f' + i))})
			}
			var past []chat.Message
			for _, id := range tt.past {
				past = append(past,
					chat.Message{Role: chat.Assistant, ToolCalls: []chat.ToolCall{{ID: id, Name: "f"}}},
					chat.Message{Role: chat.ToolRole, ToolCallID: id})
			}
			var got []string
			for _, c := range normalize.Calls(made, past) {
				got = append(got, c.ID)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("ids %v, want %v", got, tt.want)
			}
		})
	}
}
