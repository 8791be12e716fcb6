package source_test

import (
	"testing"

	"loki/internal/knowledge/input"
	"loki/internal/knowledge/rag/source"
)

func TestTexts(t *testing.T) {
	texts := source.Texts{
		{Kind: input.File, Name: "a.go", Text: "package a"},
		{Kind: input.URL, Name: "https://b.test", Text: "# B"},
		{Kind: input.Command, Name: "a.go", Text: "again"},
	}
	var got []string
	for d, err := range texts.Documents(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		c, err := d.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b, err := c.Text(t.Context())
		if err != nil || !b.Lines {
			t.Error(b.Lines, err)
		}
		got = append(got, d.Path+" "+b.Ext+" "+b.Text)
	}
	if len(got) != 2 || got[0] != "a.go go package a" || got[1] != "https://b.test md # B" {
		t.Errorf("%q", got)
	}
}
