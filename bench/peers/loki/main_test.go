package main

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
)

// inMemory is a side whose durable cases are recorded in memory.
func inMemory() side {
	return side{durable: "memory", withStore: func(context.Context, string) (run.Store, error) { return memstore.New(nil), nil }}
}

// TestCases runs every case once: each checks its result.
func TestCases(t *testing.T) {
	for name := range makers() {
		if name == "burst_10000" { // more goroutines than the race detector can follow
			continue
		}
		for _, suffix := range []string{"", "/durable"} {
			t.Run(name+suffix, func(t *testing.T) {
				var out strings.Builder
				if err := inMemory().serve(t.Context(), strings.NewReader(name+suffix+" 1\n"), &out); err != nil {
					t.Fatal(err)
				}
				lines := strings.Split(strings.TrimSpace(out.String()), "\n")
				if len(lines) != 2 || lines[1] == "-" || lines[1] == "0" {
					t.Errorf("got %q, want a line about the engine and a number", lines)
				}
			})
		}
	}
}

func TestBurst(t *testing.T) {
	b, err := counting(100)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.run(t.Context(), runner{memstore.New(nil)}); err != nil {
		t.Error(err)
	}
}

// TestUnfinishedRecord is about a store that stops recording: the runs go on, and their
// time must not count.
func TestUnfinishedRecord(t *testing.T) {
	store := memstore.New(nil)
	if err := recorded(t.Context(), store); err == nil {
		t.Error("a store without runs is taken for a record")
	}
	p, err := chain(3)
	if err != nil {
		t.Fatal(err)
	}
	j, err := store.Create(t.Context(), run.Info{}, run.StartCheckpoint(p, graph.State{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := recorded(t.Context(), store); err == nil {
		t.Error("a run that did not end is taken for a record of it")
	}
}

func TestUnknownCase(t *testing.T) {
	var out strings.Builder
	if err := (side{}).serve(t.Context(), strings.NewReader("nonsense 1\nchain_3/durable 1\n"), &out); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(out.String(), "\n-\n-\n") {
		t.Errorf("got %q, want a line about the engine and two dashes", out.String())
	}
}

func TestBadRequest(t *testing.T) {
	if err := (side{}).serve(t.Context(), strings.NewReader("chain_3\n"), io.Discard); err == nil {
		t.Error("a request without a number of runs is served")
	}
}

// BenchmarkCases is for a look at one case with benchstat or a profile.
func BenchmarkCases(b *testing.B) {
	all := makers()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b.Run(name, func(b *testing.B) {
			c, err := all[name]()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := c.run(b.Context(), runner{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestReplay times the rows of a case without Loki.
func TestReplay(t *testing.T) {
	var out strings.Builder
	s := side{name: "SQLite alone", withStore: withSQLite, replay: &replay{recordings: make(map[string]recording)}}
	if err := s.serve(t.Context(), strings.NewReader("react_agent_10/durable 2\nreact_agent_10/durable 2\nreact_agent_10 2\n"), &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 4 || len(lines[1]) < 5 || len(lines[2]) < 5 || lines[3] != "-" {
		t.Errorf("got %q, want a line about the side, two times and a dash", lines)
	}
	r := s.replay.recordings["react_agent_10 2"]
	if len(s.replay.recordings) != 1 || r.transactions < 2*23 || len(r.rows) < 2*r.transactions {
		t.Errorf("%d recordings, of %d transactions with %d rows", len(s.replay.recordings), r.transactions, len(r.rows))
	}
}
