package ragtest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"loki/internal/knowledge/rag"
)

// suite is one test of the suite.
type suite struct {
	*testing.T
	Options
	handle func() rag.Store
	store  rag.Store
}

func (s *suite) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *suite) same(what string, got, want any) {
	s.Helper()
	if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateApprox(0, 1e-5)); diff != "" {
		s.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func settings() rag.Settings {
	return rag.Settings{EmbeddingModel: "test:a", ChunkSize: 100, ChunkOverlap: 5, TopK: 5, Documents: []string{"/docs"}}
}

// doc is a document with a chunk for each text.
type doc struct {
	path  string
	texts []string
}

// chunks are those of the document. A text "heading|text" has a heading.
func (d doc) chunks() (list []rag.Chunk) {
	for i, t := range d.texts {
		heading, text, ok := strings.Cut(t, "|")
		if !ok {
			heading, text = "", t
		}
		list = append(list, rag.Chunk{Heading: heading, Text: text, Start: 10*i + 1, End: 10*i + 10, Vector: embed(heading + "|" + text)})
	}
	return list
}

// embed returns the vector of a text: one number for each of a few words that it may have.
func embed(text string) []float32 {
	v := make([]float32, 6)
	for i, w := range []string{"red", "green", "blue", "round", "square", "large"} {
		v[i] = float32(strings.Count(text, w))
	}
	length := 0.0
	for _, x := range v {
		length += float64(x) * float64(x)
	}
	if length == 0 {
		return v
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(length))
	}
	return v
}

func (s *suite) begin(set rag.Settings) rag.Build {
	s.Helper()
	b, err := s.store.Build(s.Context(), set)
	s.ok(err)
	return b
}

func (s *suite) put(b rag.Build, docs ...doc) {
	s.Helper()
	for _, d := range docs {
		s.ok(b.Put(s.Context(), rag.File{Path: d.path, Hash: hash(d), Source: "/docs"}, d.chunks()))
	}
}

func hash(d doc) string { return fmt.Sprintf("hash of %q", d.texts) }

func all(f rag.File) (source string, stays bool) { return f.Source, true }

// those keeps the files whose paths are as that of a condition.
func those(stays func(path string) bool) func(rag.File) (string, bool) {
	return func(f rag.File) (string, bool) { return f.Source, stays(f.Path) }
}

func (s *suite) commit(b rag.Build, keep func(rag.File) (string, bool)) rag.Stats {
	s.Helper()
	stats, err := b.Commit(s.Context(), keep)
	s.ok(errors.Join(err, b.Close()))
	return stats
}

// fill builds a knowledge base with docs and no others.
func (s *suite) fill(set rag.Settings, docs ...doc) rag.Stats {
	s.Helper()
	b := s.begin(set)
	paths := make(map[string]bool)
	for _, d := range docs {
		paths[d.path] = true
		if f, ok, err := b.File(s.Context(), d.path); err != nil {
			s.Fatal(err)
		} else if !ok || f.Hash != hash(d) {
			s.put(b, d)
		}
	}
	return s.commit(b, those(func(path string) bool { return paths[path] }))
}

// known checks of which chunks the build has the vectors.
func (s *suite) known(b rag.Build, chunks []rag.Chunk, want ...bool) {
	s.Helper()
	vectors, err := b.Vectors(s.Context(), chunks)
	s.ok(err)
	if len(vectors) != len(chunks) {
		s.Fatalf("%d vectors for %d chunks", len(vectors), len(chunks))
	}
	for i, c := range chunks {
		if v := vectors[i]; (v != nil) != want[i] {
			s.Errorf("%s|%s: got %v", c.Heading, c.Text, v)
		} else if v != nil {
			s.same("vector of "+c.Text, v, c.Vector)
		}
	}
}

func (s *suite) open() rag.Index {
	s.Helper()
	x, err := s.store.Open(s.Context())
	s.ok(err)
	s.Cleanup(func() { s.ok(x.Close()) })
	return x
}

func (s *suite) files(x rag.Index) (list []rag.File) {
	s.Helper()
	for f, err := range x.Files(s.Context()) {
		s.ok(err)
		if n := len(list); n > 0 && f.ID <= list[n-1].ID {
			s.Errorf("file %d comes behind file %d", f.ID, list[n-1].ID)
		}
		list = append(list, f)
	}
	return list
}

// texts returns the chunks of matches as "path:text".
func (s *suite) texts(x rag.Index, matches []rag.Match, err error) (list []string) {
	s.Helper()
	s.ok(err)
	var ids []rag.ID
	for i, m := range matches {
		ids = append(ids, m.ID)
		if m.Score <= 0 || math.IsNaN(m.Score) {
			s.Errorf("%v has the score %v", m.ID, m.Score)
		}
		if i > 0 && (m.Score > matches[i-1].Score || m.Score == matches[i-1].Score && compare(m.ID, matches[i-1].ID) <= 0) {
			s.Errorf("%v is behind %v", m, matches[i-1])
		}
	}
	chunks, err := x.Chunks(s.Context(), ids, false)
	s.ok(err)
	if len(chunks) != len(ids) {
		s.Fatalf("%d of %d chunks are there", len(chunks), len(ids))
	}
	for i, c := range chunks {
		if c.ID != ids[i] {
			s.Errorf("chunk %v is in the place of %v", c.ID, ids[i])
		}
		list = append(list, c.Path+":"+c.Text)
	}
	return list
}

func compare(a, b rag.ID) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Seq, b.Seq)) }

func (s *suite) matched(x rag.Index, query string, k int, want ...string) {
	s.Helper()
	matches, err := x.Match(s.Context(), query, k)
	s.same("match "+query, s.texts(x, matches, err), want)
}

func (s *suite) near(x rag.Index, query string, k int, want ...string) {
	s.Helper()
	matches, err := x.Nearest(s.Context(), embed(query), k)
	s.same("nearest to "+query, s.texts(x, matches, err), want)
}

// dump returns all that is in the index, by path, and what some searches find.
func (s *suite) dump(x rag.Index) (list []string) {
	s.Helper()
	for _, f := range s.files(x) {
		var ids []rag.ID
		for i := range f.Chunks {
			ids = append(ids, rag.ID{File: f.ID, Seq: i})
		}
		chunks, err := x.Chunks(s.Context(), ids, true)
		s.ok(err)
		text := fmt.Sprintf("%s %s %d", f.Path, f.Hash, len(chunks))
		for _, c := range chunks {
			text += fmt.Sprintf("\n%d %q %q %d-%d %.4f", c.ID.Seq, c.Heading, c.Text, c.Start, c.End, c.Vector)
		}
		list = append(list, text)
	}
	slices.Sort(list)
	for _, q := range []string{"red square", "large blue large", "round"} {
		for _, search := range []func() ([]rag.Match, error){
			func() ([]rag.Match, error) { return x.Match(s.Context(), q, 1000) },
			func() ([]rag.Match, error) { return x.Nearest(s.Context(), embed(q), 1000) },
		} {
			matches, err := search()
			var found []string
			for i, t := range s.texts(x, matches, err) {
				found = append(found, fmt.Sprintf("%.4f %s", matches[i].Score, t))
			}
			slices.Sort(found) // ids may be others
			list = append(list, q+":\n"+strings.Join(found, "\n"))
		}
	}
	return list
}
