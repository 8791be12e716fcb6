package source

import (
	"context"
	"iter"

	"loki/internal/knowledge/input"
)

// Texts are documents that were loaded already. Each is a source of its own, called by its name.
type Texts []input.Document

// Absolute returns source.
func (t Texts) Absolute(source string) (string, error) { return source, nil }

// Covers returns false: each source has a text of its own.
func (t Texts) Covers(string, string) bool { return false }

// Documents yields the texts, whatever sources are, each name once.
func (t Texts) Documents(ctx context.Context, _ []string) iter.Seq2[Document, error] {
	return func(yield func(Document, error) bool) {
		seen := make(map[string]bool)
		for _, d := range t {
			if seen[d.Name] || ctx.Err() != nil {
				continue
			}
			seen[d.Name] = true
			ext := extOf(d.Name)
			if d.Kind == input.URL {
				ext = "md"
			}
			content := asText(hashOf([]byte(d.Text)), d.Text, textExt(ext), true)
			doc := Document{Path: d.Name, Source: d.Name}
			doc.read = func(context.Context) (*Content, error) { return content, nil }
			if !yield(doc, nil) {
				return
			}
		}
	}
}
