package rag

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"loki/internal/text"
)

// passages returns the hits for candidates, best first. With neighbors, chunks that follow each other
// are one hit.
func (s *search) passages(ctx context.Context, list []candidate) ([]Hit, error) {
	groups := make([][]Chunk, len(list)) // the chunks of a passage, by its best candidate
	for i, c := range list {
		groups[i] = []Chunk{c.chunk}
	}
	if s.set.Neighbors > 0 {
		chunks, err := s.neighborhood(ctx, list)
		if err != nil {
			return nil, err
		}
		groups = group(list, chunks)
	}
	hits := []Hit{}
	for i, c := range list {
		if len(groups[i]) == 0 {
			continue
		}
		h := Hit{ID: c.id, Path: text.Name(c.chunk.Path), Heading: c.chunk.Heading, Score: c.score, Vector: c.vector, Keyword: c.keyword}
		h.Text, h.Start, h.End = join(groups[i])
		hits = append(hits, h)
	}
	return hits, nil
}

// neighborhood returns the chunks of candidates and those beside them, ascending by id.
func (s *search) neighborhood(ctx context.Context, list []candidate) ([]Chunk, error) {
	want := make(map[ID]bool)
	var ids []ID
	for _, c := range list {
		for seq := max(c.id.Seq-s.set.Neighbors, 0); seq <= c.id.Seq+s.set.Neighbors; seq++ {
			if id := (ID{c.id.File, seq}); !want[id] {
				want[id] = true
				ids = append(ids, id)
			}
		}
	}
	slices.SortFunc(ids, func(a, b ID) int { return cmp.Or(cmp.Compare(a.File, b.File), a.Seq-b.Seq) })
	return s.index.Chunks(ctx, ids, false)
}

// group returns chunks, which ascend by id, in groups of those that follow each other. A group is at
// the place of the first candidate in it.
func group(list []candidate, chunks []Chunk) [][]Chunk {
	rank := make(map[ID]int)
	for i, c := range list {
		rank[c.id] = i
	}
	groups := make([][]Chunk, len(list))
	for len(chunks) > 0 {
		n, best := 0, len(list)
		for n < len(chunks) && (n == 0 || chunks[n].ID == ID{chunks[n-1].ID.File, chunks[n-1].ID.Seq + 1}) {
			if i, ok := rank[chunks[n].ID]; ok {
				best = min(best, i)
			}
			n++
		}
		if best < len(list) {
			groups[best] = chunks[:n]
		}
		chunks = chunks[n:]
	}
	return groups
}

// join returns the text and the lines of chunks that follow each other. What the end of one and the
// beginning of the next have in common is there once.
func join(chunks []Chunk) (text string, start, end int) {
	var b strings.Builder
	for i, c := range chunks {
		if i == 0 {
			start, end = c.Start, c.End
			b.WriteString(c.Text)
			continue
		}
		last := chunks[i-1]
		n := 0
		if c.Start <= last.End {
			n = common(last.Text, c.Text)
		}
		switch {
		case n > 0:
		case c.Start == 0 || c.Start == last.End+1:
			b.WriteByte('\n')
		case c.Start > last.End:
			b.WriteString("\n\n")
		default:
			b.WriteByte(' ')
		}
		b.WriteString(c.Text[n:])
		end = max(end, c.End)
	}
	return b.String(), start, end
}

// common returns the length in bytes of the longest end of a that is the beginning of b. It counts
// if it consists of whole words, or is too long to be a coincidence.
func common(a, b string) int {
	const long = 16 // bytes
	for n := min(len(a), len(b)); n > 0; n-- {
		if b[:n] != a[len(a)-n:] || n < len(b) && !utf8.RuneStart(b[n]) {
			continue
		}
		before, _ := utf8.DecodeLastRuneInString(a[:len(a)-n])
		after, _ := utf8.DecodeRuneInString(b[n:])
		if n >= long || (n == len(a) || unicode.IsSpace(before)) && (n == len(b) || unicode.IsSpace(after)) {
			return n
		}
	}
	return 0
}
