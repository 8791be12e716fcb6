package event_test

import (
	"testing"

	"loki/internal/event"
)

func TestFrames(t *testing.T) {
	if f := event.Enclosing(t.Context()); f != nil {
		t.Errorf("a frame without Within: %+v", f)
	}
	outer := event.Within(t.Context(), event.Source{Agent: "research", Node: "each"})
	a := event.Within(outer, event.Source{Agent: "critic", Depth: 1, Node: "read"})
	b := event.Within(outer, event.Source{Agent: "critic", Depth: 1, Node: "read"})
	if f := event.Enclosing(a); f.Agent != "critic" || f.Outer != event.Enclosing(outer) || f.Outer.Node != "each" || f.Outer.Outer != nil {
		t.Errorf("frame %+v within %+v", f, f.Outer)
	}
	if event.Enclosing(a) == event.Enclosing(b) {
		t.Error("two calls of Within gave the same frame")
	}
}
