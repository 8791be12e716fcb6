package render_test

import (
	"bytes"
	"testing"

	"loki/internal/frontend/render"
	"loki/internal/llm/event"
)

// TestToolOutput shows what a child's tool prints: colors, and nothing else that a terminal obeys.
func TestToolOutput(t *testing.T) {
	var out bytes.Buffer
	n := render.NewNarrator(render.NewScreen(render.ScreenOptions{Out: &out}), render.NarratorOptions{})
	child := event.Source{}.Child("writer", "agent_writer_1")
	if err := n.Emit(t.Context(), event.Event{Source: child, Body: event.ToolOutput{Name: "pr", Text: "\x1b[2Ja\rb \x1b[31mred"}}); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "writer: ␛[2Ja\nwriter: b \x1b[31mred\x1b[0m\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
