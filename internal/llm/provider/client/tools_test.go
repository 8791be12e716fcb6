package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/normalize"
)

// TestRefusedTools: a refusal that names a tool leaves that one out, once and for all.
func TestRefusedTools(t *testing.T) {
	tool := func(name string) chat.Tool {
		return chat.Tool{Name: name, Description: strings.Repeat("é", 40), Parameters: json.RawMessage(`{"type":"object","properties":{}}`)}
	}
	for _, tt := range []struct {
		name, words string
		want        string // the tools that are asked with in the end, and how long their descriptions are
		note        string
	}{
		{"claude", "tools.1.custom.input_schema: JSON schema is invalid", "a 40, c_d 40", "tool b is left out: the provider refuses it: tools.1.custom"},
		{"openai", `Invalid schema for function 'c_d': bad`, "a 40, b 40", "tool c_d is left out"},
		{"openai_place", `Invalid 'tools[2].function.name': string does not match pattern.`, "a 40, b 40", "tool c_d is left out"},
		{"openai_number", `Invalid 'tools': array too long. Expected an array with maximum length 2, but got an array with length 3 instead.`, "a 40, b 40", "tool c_d is left out: the provider takes 2 tools at most"},
		{"openai_description", `Invalid 'tools[0].function.description': string too long. Expected a string with maximum length 20, but got a string with length 40 instead.`, "a 20, b 20, c_d 20", ""},
		{"gemini", "* GenerateContentRequest.tools[0].function_declarations[1].parameters.properties: should be non-empty", "a 40, c_d 40", "tool b is left out"},
		{"bedrock", "The json schema definition at toolConfig.tools.0.toolSpec.inputSchema is invalid.", "b 40, c_d 40", "tool a is left out"},
		{"bedrock_member", "Value at 'toolConfig.tools.1.member.toolSpec.name' failed to satisfy constraint", "b 40, c_d 40", "tool a is left out"},
		{"another_word", "cannot read a picture, a b and c_d_e: 'c_d_e'", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var tools client.Tools
			req := provider.Request{Model: "m", Tools: []chat.Tool{tool("a"), tool("b"), tool("c_d")}}
			asked, last := 0, ""
			ask := func(_ context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
				asked++
				last = ""
				for _, tool := range req.Tools {
					last += fmt.Sprintf(", %s %d", tool.Name, len([]rune(tool.Description)))
				}
				last = strings.TrimPrefix(last, ", ")
				return func(yield func(provider.Chunk, error) bool) {
					if last != tt.want {
						yield(provider.Chunk{}, &provider.Error{Kind: provider.Invalid, Status: 400, Msg: tt.words})
						return
					}
					yield(provider.Chunk{Kind: provider.End}, nil)
				}
			}
			var notes []string
			var failed error
			for chunk, err := range tools.Chat(t.Context(), req, normalize.OpenAITools(), ask) {
				failed = err
				if chunk.Kind == provider.Note {
					notes = append(notes, chunk.Text)
				}
			}
			if tt.want == "" {
				if failed == nil || asked != 1 {
					t.Errorf("asked %d times, error %v", asked, failed)
				}
				return
			}
			if failed != nil || asked != 2 || last != tt.want || len(notes) > 0 != (tt.note != "") || !strings.Contains(strings.Join(notes, "\n"), tt.note) {
				t.Errorf("asked %d times, at last with %q, error %v, notes %q", asked, last, failed, notes)
			}
			for range tools.Chat(t.Context(), req, normalize.OpenAITools(), ask) {
			}
			if asked != 3 || last != tt.want {
				t.Errorf("the next request asked %d times, at last with %q", asked-2, last)
			}
		})
	}
}

// TestNamesOfMembers: the model has other names for members and tools than the tools themselves.
func TestNamesOfMembers(t *testing.T) {
	var tools client.Tools
	req := provider.Request{
		Tools: []chat.Tool{{Name: "2do", Parameters: json.RawMessage(`{"type":"object","properties":{"filter[a]":{"type":"string"},"n":{"type":"integer"}}}`)}},
		Messages: []chat.Message{
			{Role: chat.Assistant, ToolCalls: []chat.ToolCall{{ID: "1", Name: "2do", Arguments: `{"filter[a]": "x"}`}}},
			{Role: chat.ToolRole, ToolCallID: "1", ToolName: "2do"},
		},
		Constraints: chat.Constraints{Choice: chat.ToolChoice{Name: "2do"}},
	}
	before := slices.Clone(req.Messages)
	for chunk, err := range tools.Chat(t.Context(), req, normalize.GeminiTools(), func(_ context.Context, sent provider.Request) iter.Seq2[provider.Chunk, error] {
		call := sent.Messages[0].ToolCalls[0]
		if got := fmt.Sprint(sent.Tools[0].Name, call.Name, call.Arguments, sent.Messages[1].ToolName, sent.Choice.Name); got != `_2do_2do{"filter_a":"x"}_2do_2do` {
			t.Errorf("sent %s", got)
		}
		return func(yield func(provider.Chunk, error) bool) {
			yield(provider.Chunk{Kind: provider.ToolCall, ToolCall: chat.ToolCall{Name: "_2do", Arguments: `{"filter_a":[{"filter_a":1}],"n":9007199254740993}`}}, nil)
		}
	}) {
		if got := chunk.ToolCall.Name + chunk.ToolCall.Arguments; err != nil || got != `2do{"filter[a]":[{"filter[a]":1}],"n":9007199254740993}` {
			t.Errorf("got %s, %v", got, err)
		}
	}
	if fmt.Sprint(req.Messages) != fmt.Sprint(before) {
		t.Error("the request was changed")
	}
}
