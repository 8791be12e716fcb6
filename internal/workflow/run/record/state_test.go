package record

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"loki/internal/workflow/run"
)

func TestChangedVisits(t *testing.T) {
	b, c := run.Visit{Node: "b"}, run.Visit{Node: "c"}
	for _, tt := range []struct {
		name          string
		before, after map[string]int
		visits        []run.Visit
		want          map[string]int
	}{
		{"first", nil, map[string]int{"b": 1}, nil, map[string]int{"b": 1}},
		{"all_are_compared", map[string]int{"a": 1, "b": 1}, map[string]int{"a": 2, "b": 1, "c": 1}, nil, map[string]int{"a": 2, "c": 1}},
		{"again", map[string]int{"a": 1, "b": 1}, map[string]int{"a": 1, "b": 2}, []run.Visit{b}, map[string]int{"b": 2}},
		{"new_node", map[string]int{"a": 1}, map[string]int{"a": 1, "b": 1, "c": 1}, []run.Visit{b, c}, map[string]int{"b": 1, "c": 1}},
		{"node_that_is_gone", map[string]int{"a": 1, "b": 1}, map[string]int{"b": 2}, []run.Visit{b}, map[string]int{"a": 0, "b": 2}},
		{"visited_node_that_is_gone", map[string]int{"a": 1, "b": 1}, map[string]int{"a": 1}, []run.Visit{b}, map[string]int{"b": 0}},
		{"visit_that_does_not_count", map[string]int{"a": 1}, map[string]int{"a": 1}, []run.Visit{b}, map[string]int{}},
		{"node_without_a_visit", map[string]int{"a": 1}, map[string]int{"a": 2, "b": 1, "c": 1}, []run.Visit{b}, map[string]int{"a": 2, "b": 1, "c": 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, changedVisits(tt.before, tt.after, tt.visits)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
