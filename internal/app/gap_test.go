package app

import (
	"errors"
	"strings"
	"testing"
	"time"

	"loki/internal/event"
	"loki/internal/fault"
	"loki/internal/run"
	"loki/internal/run/memstore"
)

func TestRefusedRuns(t *testing.T) {
	soon := time.Now().Add(25 * time.Second)
	for _, tt := range []struct {
		name  string
		err   error
		hint  []string
		never string
	}{
		{"living", &run.LeaseError{ID: "k3v9k3v9", Owner: "process 7 on h"}, []string{"wait until it ends there, or stop that process"}, "sign of life"},
		{"in_a_container", &run.LeaseError{ID: "k3v9k3v9", Owner: "process 1 on pod", Until: soon}, []string{"can be resumed from " + soon.Format(time.TimeOnly), "(in 2"}, ""},
		{"gap", &run.GapError{ID: "k3v9k3v9", Gap: run.Gap{Step: 3, Nodes: map[string]int{"b": 2, "a": 1}}}, []string{"after super-step 3, at least a, b (2 times)", "loki --resume k3v9k3v9 --force"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := resumeError(tt.err)
			if !errors.Is(err, tt.err) || fault.CodeOf(err) != fault.Failure {
				t.Errorf("the error is %v with code %s", err, fault.CodeOf(err))
			}
			hint := fault.HintOf(err)
			for _, part := range tt.hint {
				if !strings.Contains(hint, part) {
					t.Errorf("the hint %q lacks %q", hint, part)
				}
			}
			if tt.never != "" && strings.Contains(hint, tt.never) {
				t.Errorf("the hint %q has %q", hint, tt.never)
			}
		})
	}
}

func TestAcceptGap(t *testing.T) {
	store := memstore.New(nil)
	j, err := store.Create(t.Context(), run.Info{Agent: "a"}, run.Checkpoint{})
	if err == nil {
		err = errors.Join(j.Gap(t.Context(), run.Gap{Reason: "the disk is full", Nodes: map[string]int{"pay": 1}}), j.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	h, err := store.History(t.Context(), j.ID())
	if err != nil {
		t.Fatal(err)
	}
	var events event.Collector
	if err := acceptGap(t.Context(), store, h.Info, false, &events); err == nil || len(events.Events()) > 0 {
		t.Errorf("a gap is accepted without --force: %v", err)
	}
	if _, _, err := store.Open(t.Context(), j.ID()); err == nil {
		t.Error("a refused run can be opened")
	}
	if err := acceptGap(t.Context(), store, h.Info, true, &events); err != nil {
		t.Fatal(err)
	}
	warnings := event.Bodies[event.Warning](&events)
	if len(warnings) != 1 || !strings.Contains(warnings[0].Text, "and repeats everything the run did after super-step 0, at least pay") {
		t.Errorf("warnings are %v", warnings)
	}
	if _, _, err := store.Open(t.Context(), j.ID()); err != nil {
		t.Errorf("open with --force: %v", err)
	}
}
