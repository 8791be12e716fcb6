package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestEngines has each engine find the document that is about bees.
func TestEngines(t *testing.T) {
	docs := t.TempDir()
	for name, text := range map[string]string{
		"bees.md":   "# Bees\n\nBees make honey and wax.\n",
		"trains.md": "# Trains\n\nThe train to Graz leaves at noon.\n",
		"rivers.md": "# Rivers\n\nThe river is deep and cold.\n",
	} {
		if err := os.WriteFile(filepath.Join(docs, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := speed{dir: t.TempDir(), corpus: &corpus{}, cut: cut{size: 500}}
	for _, side := range sides {
		t.Run(side.name, func(t *testing.T) {
			e, err := s.engine(side.name)
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(t.TempDir(), "index")
			b, err := measureBuild(t.Context(), e, docs, dir)
			if err != nil || b.Chunks != 3 || b.Disk == 0 {
				t.Fatalf("built %+v, %v", b, err)
			}
			x, err := e.open(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			if ids := search(t.Context(), t, x, "what do bees make"); len(ids) == 0 || document(ids[0]) != "bees.md" || lines(ids[0]) != "bees.md:1-3" {
				t.Errorf("found %q", ids)
			}
			if err := x.close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func search(ctx context.Context, t *testing.T, s searcher, text string) []string {
	t.Helper()
	vectors, err := embed(ctx, []string{text}, true)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := s.search(ctx, text, vectors[0], 1)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestScore(t *testing.T) {
	ids := []string{"a.md:1-3#0", "b.md:10-20#4", "c.md:1-1#0"}
	for _, tt := range []struct {
		sources     []string
		recall, mrr float64
	}{
		{[]string{"a.md"}, 1, 1},
		{[]string{"b.md:20-30"}, 1, .5},
		{[]string{"b.md:21-30"}, 0, 0},
		{[]string{"c.md", "d.md"}, .5, 1. / 3},
	} {
		var s score
		if s.add(ids, tt.sources, 1); s.recall != tt.recall || s.mrr != tt.mrr {
			t.Errorf("%q: %+v", tt.sources, s)
		}
	}
	if got := same([][]string{{"a:1-2#0", "b:1-2#0"}}, [][]string{{"b:1-2#9", "c:1-2#0"}}); got != .5 {
		t.Errorf("%v in common", got)
	}
	queries := []query{{"x", "name", "a.md"}, {"y", "name", "z.md"}, {"z", "package", "a.md"}}
	if recall, mrr := found(queries, "name", [][]string{ids, ids, slices.Clone(ids)}); recall != .5 || mrr != .5 {
		t.Errorf("recall %v, rank %v", recall, mrr)
	}
}
