package run_test

import (
	"fmt"
	"strings"
	"testing"

	"loki/internal/workflow/run"
)

func TestStatus(t *testing.T) {
	for _, tt := range []struct {
		status          run.Status
		resumable, over bool
	}{
		{run.Running, true, false},
		{run.Suspended, true, false},
		{run.Canceled, true, true},
		{run.Failed, true, true},
		{run.Done, false, true},
	} {
		if tt.status.Resumable() != tt.resumable || tt.status.Over() != tt.over {
			t.Errorf("%s: resumable %v, over %v", tt.status, tt.status.Resumable(), tt.status.Over())
		}
	}
}

func TestHead(t *testing.T) {
	p := func(n int) string { return strings.Repeat("p", n) }
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", ""},
		{"fits", p(1023), p(1023)},
		{"cut", p(1024), p(1023) + "…"},
		{"two_bytes", p(1022) + "éé", p(1022) + "…"},
		{"three_bytes", p(1021) + "€€", p(1021) + "…"},
		{"four_bytes", p(1020) + "\U0001F600\U0001F600", p(1020) + "…"},
		{"whole_character_before", p(1021) + "éé", p(1021) + "é…"},
		{"no_character_at_all", strings.Repeat("\x80", 2000), strings.Repeat("\x80", 1020) + "…"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := run.Head(tt.text); got != tt.want {
				t.Errorf("got %d bytes that end with %q, want %d that end with %q", len(got), got[max(0, len(got)-8):], len(tt.want), tt.want[max(0, len(tt.want)-8):])
			}
		})
	}
}

func TestGapTexts(t *testing.T) {
	nodes := func(n int) map[string]int {
		m := make(map[string]int)
		for i := range n {
			m[fmt.Sprintf("n%02d", i)] = 1
		}
		return m
	}
	for _, tt := range []struct {
		name           string
		gap            run.Gap
		err, repeating string
	}{
		{"unknown", run.Gap{}, "run 7q is not on record from super-step 1 on", "everything the run did after super-step 0"},
		{"reason", run.Gap{Step: 2, Reason: "the disk is full"}, "run 7q is not on record from super-step 3 on, because the disk is full", "everything the run did after super-step 2"},
		{"nodes", run.Gap{Nodes: map[string]int{"b": 1, "a": 2}}, "run 7q is not on record from super-step 1 on", "everything the run did after super-step 0, at least a (2 times), b"},
		{"ten_nodes", run.Gap{Nodes: nodes(10)}, "run 7q is not on record from super-step 1 on", "everything the run did after super-step 0, at least n00, n01, n02, n03, n04, n05, n06, n07, n08, n09"},
		{"many_nodes", run.Gap{Nodes: nodes(12)}, "run 7q is not on record from super-step 1 on", "everything the run did after super-step 0, at least n00, n01, n02, n03, n04, n05, n06, n07, n08, n09, 2 more nodes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := (&run.GapError{ID: "7q", Gap: tt.gap}).Error(); got != tt.err {
				t.Errorf("error %q, want %q", got, tt.err)
			}
			if got := tt.gap.Repeats(); got != tt.repeating {
				t.Errorf("repeats %q, want %q", got, tt.repeating)
			}
		})
	}
}
