package rag_test

import (
	"testing"
)

func TestBuild(t *testing.T) {
	b := newBench(t, map[string]string{
		"a.md":       "alpha beta\n\ngamma delta epsilon zeta eta theta",
		"sub/b.md":   "iota",
		"image.png":  "\x89PNG\x00\x00",
		"sub/c.text": "kappa",
	})
	stats := b.build()
	equal(t, "content", b.content(), []string{
		"1-0 a.md:1-1 alpha beta", "1-1 a.md:3-3 gamma delta epsilon zeta eta theta", "2-0 sub/b.md:1-1 iota", "3-0 sub/c.text:1-1 kappa",
	})
	if stats.Files != 3 || stats.Chunks != 4 || stats.Dimensions != 64 {
		t.Errorf("%+v", stats)
	}
	f := b.finished()
	if f.Added != 3 || f.Kept != 0 || f.Passed != 1 || f.Failed != 0 || f.Usage.InputTokens != 40 || f.Usage.Cost != 0.04 || f.Error != "" {
		t.Errorf("%+v", f)
	}
}
