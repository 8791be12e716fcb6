package catalog_test

import (
	"testing"

	"loki/internal/llm/catalog"
)

func TestOutputLimit(t *testing.T) {
	t.Parallel()
	known := []catalog.Provider{{Name: "claude", Models: func() []catalog.Model {
		return []catalog.Model{
			{Name: "claude-opus-5-5", MaxOutputTokens: 128000},
			{Name: "claude-haiku-4-5-20251001", MaxOutputTokens: 64000},
		}
	}}}
	c := catalog.New([]catalog.Client{
		{Name: "claude", Type: "claude", Models: []catalog.Model{
			{Name: "claude-opus-5-5"}, {Name: "mine", RealName: "claude-opus-5-5"}, {Name: "claude-haiku-4-5"}, {Name: "short", MaxOutputTokens: 100}, {Name: "other"},
		}},
		{Name: "local", Type: catalog.CompatibleType, Models: []catalog.Model{{Name: "claude-opus-5-5"}}},
	}, known)
	for id, want := range map[string]int{
		"claude:claude-opus-5-5":  128000,
		"claude:mine":             128000,
		"claude:claude-haiku-4-5": 64000,
		"claude:short":            100,
		"claude:other":            0,
		"local:claude-opus-5-5":   0,
	} {
		m, err := c.Resolve(id, catalog.Chat)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.OutputLimit(m); got != want {
			t.Errorf("%s: %d, want %d", id, got, want)
		}
	}
}
