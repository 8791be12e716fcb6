package normalize_test

import (
	"encoding/json"
	"testing"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/normalize"
)

func TestEstimatedUsage(t *testing.T) {
	text := func(s string) []chat.Part { return []chat.Part{{Type: chat.TextPart, Text: s}} }
	for _, tt := range []struct {
		name string
		req  provider.Request
		want int
	}{
		{"nothing", provider.Request{}, 0},
		{"messages", provider.Request{Messages: []chat.Message{
			{Role: chat.System, Parts: text("12345678")},
			{Role: chat.User, Parts: text("1")},
		}}, 5 + 2 + 5 + 1},
		{"image_not_counted", provider.Request{Messages: []chat.Message{
			{Role: chat.User, Parts: []chat.Part{{Type: chat.ImagePart, URL: "data:image/png;base64,AAAAAAAA"}}},
		}}, 5},
		{"calls", provider.Request{Messages: []chat.Message{
			{Role: chat.Assistant, ToolCalls: []chat.ToolCall{{ID: "not counted", Name: "f", Arguments: `{"a":1}`}, {Name: "f", Arguments: "{}"}}},
		}}, 5 + 2 + 1},
		{"tools", provider.Request{Tools: []chat.Tool{{Name: "f", Description: "does", Parameters: json.RawMessage("{}")}}}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := chat.Usage{InputTokens: tt.want, OutputTokens: 7, Estimated: true}
			if got := normalize.EstimatedUsage(tt.req, 7); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestInputUsage(t *testing.T) {
	for _, tt := range []struct {
		name string
		told int
		want chat.Usage
	}{
		{"told", 3, chat.Usage{InputTokens: 3}},
		{"not_told", 0, chat.Usage{InputTokens: 2 + 1, Estimated: true}},
		{"nonsense", -1, chat.Usage{InputTokens: 2 + 1, Estimated: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := normalize.InputUsage(tt.told, "12345678", "1"); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}
