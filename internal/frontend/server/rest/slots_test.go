package rest

import (
	"testing"

	"loki/internal/service/auth"
)

// TestWatchersOfSubject: one subject does not use up the places of all who watch.
func TestWatchersOfSubject(t *testing.T) {
	var w watchers
	limits := &Limits{Requests: 2, PerSubject: 1}
	ann, bob := auth.Identity{Subject: "ann"}, auth.Identity{Subject: "bob"}
	var last func()
	for n := range watchersPerSlot {
		var err error
		if _, _, last, err = w.add(t.Context(), ann, limits); err != nil {
			t.Fatalf("%d: %v", n, err)
		}
	}
	if _, _, _, err := w.add(t.Context(), ann, limits); err == nil {
		t.Error("one too many is let in")
	}
	if _, _, _, err := w.add(t.Context(), bob, limits); err != nil {
		t.Errorf("another subject: %v", err)
	}
	last()
	if _, _, _, err := w.add(t.Context(), ann, limits); err != nil {
		t.Errorf("after one has left: %v", err)
	}
}
