package rag

import (
	"fmt"
	"slices"
	"strings"

	"loki/internal/llm/chat"
	"loki/internal/llm/event"
)

// Found is what a search found. It survives a round trip through JSON, so that it can be the result
// of a recorded step.
type Found struct {
	Base  string     `json:"base"`
	Query string     `json:"query"`
	Hits  []Hit      `json:"hits"`  // best first
	Usage chat.Usage `json:"usage"` // of the models that were asked
}

// Hit is a passage that was found: a chunk, or several that follow each other.
type Hit struct {
	ID      ID      `json:"id"`   // of the chunk that was found; of several, of the best one
	Path    string  `json:"path"` // on one line, see [text.Name]
	Heading string  `json:"heading,omitempty"`
	Unread  string  `json:"unread,omitempty"` // parts of the document that were not read
	Text    string  `json:"text"`
	Start   int     `json:"start,omitempty"` // first line, from 1; 0 where lines mean nothing
	End     int     `json:"end,omitempty"`   // last line
	Score   float64 `json:"score"`           // of the fused lists, or of the reranker
	Vector  Rank    `json:"vector,omitzero"`
	Keyword Rank    `json:"keyword,omitzero"`
}

// Rank is the place of a chunk in one list of matches. The zero Rank means that it is not there.
type Rank struct {
	Rank  int     `json:"rank"`  // from 1
	Score float64 `json:"score"` // cosine, or BM25
}

// pages returns the first and the last page of the passage, from 1; 0 if its document has no pages. See [split.Piece].
func (h Hit) pages() (first, last int) {
	if h.Start > 0 {
		return 0, 0
	}
	if n, _ := fmt.Sscanf(h.Heading, "pages %d-%d", &first, &last); n == 2 {
		return first, last
	}
	if n, _ := fmt.Sscanf(h.Heading, "page %d", &first); n == 1 {
		return first, first
	}
	return 0, 0
}

// Source returns where the passage is: "path:12-40", "path:12", "path, page 3", "path, pages 3-4", or the path where
// neither lines nor pages mean anything.
func (h Hit) Source() string {
	first, last := h.pages()
	switch {
	case first > 0 && first == last:
		return fmt.Sprintf("%s, page %d", h.Path, first)
	case first > 0:
		return fmt.Sprintf("%s, pages %d-%d", h.Path, first, last)
	case h.Start == 0:
		return h.Path
	case h.Start == h.End:
		return fmt.Sprintf("%s:%d", h.Path, h.Start)
	}
	return fmt.Sprintf("%s:%d-%d", h.Path, h.Start, h.End)
}

// Context returns the passages for a model, each under a line that says where it is from.
func (f Found) Context() string { return f.passages(nil) }

// passages returns the passages under lines such as "[Source: path:12-40]". In front of each is the
// number, from 1, that places has for it: "[2] [Source: path:12-40]". Without places it has none.
func (f Found) passages(places []string) string {
	var b strings.Builder
	for i, h := range f.Hits {
		if i > 0 {
			b.WriteString("\n\n")
		}
		if n := slices.Index(places, h.Source()) + 1; n > 0 {
			fmt.Fprintf(&b, "[%d] ", n)
		}
		fmt.Fprintf(&b, "[Source: %s]\n%s", h.Source(), h.Text)
	}
	return b.String()
}

// places returns where the passages are, each place once, in the order of the passages. Models know
// a place by its number in this list, from 1.
func (f Found) places() []string { return f.each(Hit.Source) }

// Sources returns the documents of the passages, each once, in the order of the passages.
func (f Found) Sources() []string {
	return f.each(func(h Hit) string { return h.Path })
}

// each returns what name returns for the hits, each once. It is never nil.
func (f Found) each(name func(Hit) string) []string {
	list, seen := []string{}, make(map[string]bool)
	for _, h := range f.Hits {
		if s := name(h); !seen[s] {
			seen[s] = true
			list = append(list, s)
		}
	}
	return list
}

// Event returns the event for what was found.
func (f Found) Event() event.Retrieved {
	passages := make([]event.Passage, len(f.Hits))
	for i, h := range f.Hits {
		passages[i] = event.Passage{Path: h.Path, Start: h.Start, End: h.End, Score: h.Score}
		passages[i].Page, passages[i].LastPage = h.pages()
	}
	return event.Retrieved{Base: f.Base, Query: f.Query, Sources: passages}
}
