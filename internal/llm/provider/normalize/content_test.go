package normalize_test

import (
	"reflect"
	"slices"
	"testing"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider/normalize"
)

func textOf(s string) string  { return "text " + s }
func imageOf(s string) string { return "image " + s }

func TestContent(t *testing.T) {
	text := func(s string) chat.Part { return chat.Part{Type: chat.TextPart, Text: s} }
	image := chat.Part{Type: chat.ImagePart, URL: "u"}
	for _, tt := range []struct {
		name  string
		parts []chat.Part
		want  any
	}{
		{"nothing", nil, ""},
		{"text", []chat.Part{text("a"), text("b")}, chat.Message{Parts: []chat.Part{text("a"), text("b")}}.Text()},
		{"image", []chat.Part{image}, []string{"image u"}},
		{"both_in_order", []chat.Part{text("a"), image, text(""), text("b")}, []string{"text a", "image u", "text b"}},
		{"reasoning_left_out", []chat.Part{{Type: chat.ReasoningPart, Text: "r"}, image}, []string{"image u"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := normalize.Content(chat.Message{Role: chat.User, Parts: tt.parts}, textOf, imageOf)
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %#v, want %#v", got, tt.want)
			}
		})
	}
}

func TestToolImages(t *testing.T) {
	m := chat.Message{Role: chat.ToolRole, ToolName: "draw", Parts: []chat.Part{{Type: chat.TextPart, Text: "done"}}}
	if got := normalize.ToolImages(m, textOf, imageOf); got != nil {
		t.Errorf("without images: %q", got)
	}
	m.Parts = append(m.Parts, chat.Part{Type: chat.ImagePart, URL: "u"}, chat.Part{Type: chat.ImagePart, URL: "v"})
	want := []string{"text Images returned by the tool draw:", "image u", "image v"}
	if got := normalize.ToolImages(m, textOf, imageOf); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
