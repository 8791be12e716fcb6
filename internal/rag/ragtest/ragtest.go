// Package ragtest is the conformance suite of stores of knowledge bases: what every [rag.Store], its
// indexes and its builds have to do, beyond what their methods' signatures say.
package ragtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"loki/internal/fault"
	"loki/internal/rag"
	"loki/internal/rank"
)

// Options are what the suite needs of an implementation.
type Options struct {
	// New returns a function for handles of one store, which is empty and is removed at the end of the
	// test. The handles stand for those of different processes. Required.
	New func(t *testing.T) (handle func() rag.Store)

	// Forgets says that an interrupted build is lost.
	Forgets bool
}

// Test runs the suite.
func Test(t *testing.T, o Options) {
	for _, tt := range []struct {
		name string
		test func(s *suite)
	}{
		{"nothing", (*suite).nothing},
		{"build", (*suite).build},
		{"no_chunks", (*suite).noChunks},
		{"no_files", (*suite).noFiles},
		{"sync", (*suite).sync},
		{"sources", (*suite).sources},
		{"known_vectors", (*suite).knownVectors},
		{"other_settings", (*suite).otherSettings},
		{"configure", (*suite).configure},
		{"resume", (*suite).resume},
		{"remember", (*suite).remember},
		{"resume_with_other_settings", (*suite).resumeWithOtherSettings},
		{"one_build_at_a_time", (*suite).oneBuild},
		{"readers_are_not_disturbed", (*suite).readers},
		{"nearest", (*suite).nearest},
		{"nearest_int8", (*suite).nearestInt8},
		{"match", (*suite).match},
		{"match_scripts", (*suite).matchScripts},
		{"wrong_vectors", (*suite).wrongVectors},
		{"odd_text", (*suite).oddText},
		{"random", (*suite).random},
		{"concurrent_searches", (*suite).concurrent},
		{"canceled", (*suite).canceled},
		{"delete", (*suite).delete},
	} {
		t.Run(tt.name, func(t *testing.T) {
			handle := o.New(t)
			tt.test(&suite{T: t, Options: o, handle: handle, store: handle()})
		})
	}
}

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

func (s *suite) nothing() {
	if _, err := s.store.Open(s.Context()); !errors.Is(err, fs.ErrNotExist) {
		s.Errorf("Open: %v", err)
	}
	if err := s.store.Configure(s.Context(), settings()); !errors.Is(err, fs.ErrNotExist) {
		s.Errorf("Configure: %v", err)
	}
	s.ok(s.store.Delete(s.Context()))
}

func (s *suite) build() {
	b := s.begin(settings())
	if b.Resumed() {
		s.Error("the first build is resumed")
	}
	if _, ok, err := b.File(s.Context(), "/docs/a"); ok || err != nil {
		s.Errorf("File: %v, %v", ok, err)
	}
	a, c := doc{"/docs/a", []string{"Intro|red", "green", ""}}, doc{"/docs/c", []string{"blue"}}
	s.put(b, a, c)
	f, ok, err := b.File(s.Context(), "/docs/a")
	s.ok(err)
	if !ok || f.Path != "/docs/a" || f.Hash != hash(a) || f.Chunks != 3 {
		s.Errorf("File: %+v, %v", f, ok)
	}
	if _, err := s.handle().Open(s.Context()); !errors.Is(err, fs.ErrNotExist) {
		s.Errorf("before Commit there is an index: %v", err)
	}
	stats := s.commit(b, all)

	s.store = s.handle()
	x := s.open()
	got, err := x.Stats(s.Context())
	s.ok(err)
	s.same("stats", got, stats)
	if got.Built.IsZero() || got.Bytes < 0 {
		s.Errorf("stats %+v", got)
	}
	s.same("stats", got, rag.Stats{Settings: settings(), Dimensions: 6, Files: 2, Chunks: 4, Bytes: got.Bytes, Built: got.Built})

	files := s.files(x)
	if len(files) != 2 {
		s.Fatalf("files %v", files)
	}
	s.same("files", files, []rag.File{{ID: files[0].ID, Path: "/docs/a", Hash: hash(a), Source: "/docs", Chunks: 3}, {ID: files[1].ID, Path: "/docs/c", Hash: hash(c), Source: "/docs", Chunks: 1}})
	idA, idC := files[0].ID, files[1].ID
	ids := []rag.ID{{File: idC, Seq: 0}, {File: idA, Seq: 3}, {File: idA, Seq: -1}, {File: idC + 7, Seq: 0}, {File: idA, Seq: 2}, {File: idA, Seq: 0}}
	for _, vectors := range []bool{false, true} {
		want := []rag.Chunk{
			{ID: ids[0], Path: "/docs/c", Text: "blue", Start: 1, End: 10, Vector: embed("blue")},
			{ID: ids[4], Path: "/docs/a", Start: 21, End: 30, Vector: embed("")},
			{ID: ids[5], Path: "/docs/a", Heading: "Intro", Text: "red", Start: 1, End: 10, Vector: embed("red")},
		}
		for i := range want {
			if !vectors {
				want[i].Vector = nil
			}
		}
		chunks, err := x.Chunks(s.Context(), ids, vectors)
		s.ok(err)
		s.same("chunks", chunks, want)
	}
}

func (s *suite) noChunks() {
	s.fill(settings(), doc{"/docs/a", nil}, doc{"/docs/b", []string{"red"}}, doc{"/docs/c", nil})
	x := s.open()
	if files := s.files(x); len(files) != 3 || files[0].Chunks != 0 || files[0].ID == files[1].ID {
		s.Errorf("files %v", files)
	}
	s.matched(x, "red", 3, "/docs/b:red")
	s.near(x, "red", 3, "/docs/b:red")
}

func (s *suite) noFiles() {
	stats := s.fill(settings())
	if stats.Files != 0 || stats.Chunks != 0 || stats.Dimensions != 0 {
		s.Errorf("stats %+v", stats)
	}
	x := s.open()
	s.matched(x, "red", 3)
	s.near(x, "red", 3)
	s.same("files", s.files(x), []rag.File(nil))
	s.fill(settings(), doc{"/docs/a", []string{"red"}})
	s.near(s.open(), "red", 3, "/docs/a:red")
}

// sync changes, removes and adds files.
func (s *suite) sync() {
	a, b, c := doc{"/docs/a", []string{"red one", "red two"}}, doc{"/docs/b", []string{"green"}}, doc{"/docs/c", []string{"blue"}}
	s.fill(settings(), a, b, c)
	before := s.files(s.open())
	changed, d := doc{"/docs/a", []string{"red three"}}, doc{"/docs/d", []string{"red four"}}

	build := s.begin(settings())
	if build.Resumed() {
		s.Error("it is resumed")
	}
	if f, ok, err := build.File(s.Context(), "/docs/b"); err != nil || !ok || f != before[1] {
		s.Errorf("File: %v, %v, %v", f, ok, err)
	}
	s.put(build, changed, d)
	asked := make(map[string]int)
	s.commit(build, those(func(path string) bool { asked[path]++; return path != "/docs/b" }))
	s.same("calls of keep", asked, map[string]int{"/docs/a": 1, "/docs/b": 1, "/docs/c": 1, "/docs/d": 1})

	x := s.open()
	after := s.files(x)
	if len(after) != 3 || after[0] != before[2] || after[1].Path != "/docs/a" || after[1].ID <= before[2].ID || after[2].Path != "/docs/d" {
		s.Errorf("files %v, before %v", after, before)
	}
	s.matched(x, "red", 9, "/docs/a:red three", "/docs/d:red four")
	s.matched(x, "green", 9)
	s.near(x, "red", 9, "/docs/a:red three", "/docs/d:red four")
	chunks, err := x.Chunks(s.Context(), []rag.ID{{File: before[0].ID}, {File: before[1].ID}}, false)
	s.ok(err)
	s.same("removed chunks", chunks, []rag.Chunk(nil))

	// The highest id is not used again, either.
	s.fill(settings(), c)
	s.fill(settings(), c, doc{"/docs/e", []string{"red five"}})
	if files := s.files(s.open()); len(files) != 2 || files[1].ID <= after[2].ID {
		s.Errorf("files %v, before %v", files, after)
	}
	// Twice in one build: the later counts.
	build = s.begin(settings())
	s.put(build, doc{"/docs/f", []string{"red six"}}, doc{"/docs/f", []string{"red seven"}})
	s.commit(build, all)
	s.matched(s.open(), "red", 9, "/docs/e:red five", "/docs/f:red seven")
	// Nothing is changed.
	want := s.dump(s.open())
	s.commit(s.begin(settings()), all)
	s.same("dump", s.dump(s.open()), want)
}

// sources changes what led to files, which is all that changes in one of the builds.
func (s *suite) sources() {
	s.fill(settings(), doc{"/docs/a", []string{"red"}}, doc{"/docs/b", []string{"green"}})
	before := s.files(s.open())
	b := s.begin(settings())
	s.commit(b, func(f rag.File) (string, bool) {
		if f.Source != "/docs" || f.Hash == "" {
			s.Errorf("kept: %+v", f)
		}
		return map[string]string{"/docs/a": "/docs", "/docs/b": "\x00 /docs/*"}[f.Path], true
	})
	after := s.files(s.open())
	before[1].Source = "\x00 /docs/*"
	s.same("files", after, before)
	b = s.begin(settings())
	if f, ok, err := b.File(s.Context(), "/docs/b"); err != nil || !ok || f != after[1] {
		s.Errorf("File: %+v, %v, %v", f, ok, err)
	}
	s.commit(b, all)
	s.same("files", s.files(s.open()), after)
	s.matched(s.open(), "green", 9, "/docs/b:green")
}

func (s *suite) knownVectors() {
	s.fill(settings(), doc{"/docs/a", slices.Repeat([]string{"Colors|red", "red", "green round"}, 20)}, doc{"/docs/b", []string{"blue"}})
	b := s.begin(settings())
	ask := func(want ...bool) {
		s.Helper()
		chunks := doc{"", []string{"blue", "red", "Colors|red", "Other|red", "red ", "green round", "yellow"}}.chunks()
		vectors, err := b.Vectors(s.Context(), chunks)
		s.ok(err)
		if len(vectors) != len(chunks) {
			s.Fatalf("%d vectors for %d chunks", len(vectors), len(chunks))
		}
		for i, v := range vectors {
			if (v != nil) != want[i] {
				s.Errorf("%q: got %v", chunks[i].Text, v)
			} else if v != nil {
				s.same("vector of "+chunks[i].Text, v, chunks[i].Vector)
			}
		}
	}
	ask(true, true, true, false, false, true, false)
	s.put(b, doc{"/docs/c", []string{"yellow"}})
	ask(true, true, true, false, false, true, true)
	s.commit(b, all)
	b = s.begin(settings())
	none, err := b.Vectors(s.Context(), nil)
	s.ok(errors.Join(err, b.Close()))
	s.same("vectors of nothing", none, [][]float32(nil))
}

func (s *suite) otherSettings() {
	s.fill(settings(), doc{"/docs/a", []string{"red"}})
	before := s.files(s.open())
	for _, change := range []func(*rag.Settings){
		func(set *rag.Settings) { set.EmbeddingModel = "test:b" },
		func(set *rag.Settings) { set.ChunkSize++ },
		func(set *rag.Settings) { set.ChunkOverlap++ },
		func(set *rag.Settings) { set.Chunker = rag.Markdown },
	} {
		set := settings()
		change(&set)
		b := s.begin(set)
		if _, ok, err := b.File(s.Context(), "/docs/a"); ok || err != nil || b.Resumed() {
			s.Errorf("%+v: File: %v, %v, resumed %v", set, ok, err, b.Resumed())
		}
		s.ok(b.Close())
	}
	s.matched(s.open(), "red", 1, "/docs/a:red")
	set := settings()
	set.EmbeddingModel = "test:b"
	b := s.begin(set)
	chunks := []rag.Chunk{{Text: "red", Vector: []float32{0, 1}}}
	s.ok(b.Put(s.Context(), rag.File{Path: "/docs/a", Hash: "h"}, chunks))
	if stats := s.commit(b, all); stats.Dimensions != 2 || stats.Settings.EmbeddingModel != "test:b" {
		s.Errorf("stats %+v", stats)
	}
	if files := s.files(s.open()); len(files) != 1 || files[0].ID <= before[0].ID {
		s.Errorf("files %v, before %v", files, before)
	}
}

func (s *suite) configure() {
	s.fill(settings(), doc{"/docs/a", []string{"red", "green"}})
	old := s.open()
	set := settings()
	set.TopK, set.RerankerModel, set.Threshold, set.Neighbors, set.Diversity, set.Quantization, set.BatchSize = 9, "test:r", 0.25, 2, 0.5, rag.Int8, 7
	s.ok(s.store.Configure(s.Context(), set))
	stats, err := s.open().Stats(s.Context())
	s.ok(err)
	s.same("settings", stats.Settings, set)
	s.near(s.open(), "red", 2, "/docs/a:red")
	stats, err = old.Stats(s.Context())
	s.ok(err)
	s.same("settings of an index that was open", stats.Settings, settings())
	s.matched(old, "red", 2, "/docs/a:red")
}

func (s *suite) resume() {
	if s.Forgets {
		s.Skip("interrupted builds are lost")
	}
	s.fill(settings(), doc{"/docs/a", []string{"red"}}, doc{"/docs/b", []string{"red large"}})
	b := s.begin(settings())
	s.put(b, doc{"/docs/b", []string{"green"}}, doc{"/docs/c", []string{"green round", "blue"}})
	s.ok(b.Flush(s.Context()))
	s.put(b, doc{"/docs/d", []string{"green square"}})
	s.ok(b.Close())
	s.ok(b.Close())
	s.matched(s.open(), "green", 9)

	s.store = s.handle()
	set := settings()
	set.TopK = 9
	b = s.begin(set)
	if !b.Resumed() {
		s.Error("it is not resumed")
	}
	if f, ok, err := b.File(s.Context(), "/docs/c"); err != nil || !ok || f.Chunks != 2 {
		s.Errorf("File: %v, %v, %v", f, ok, err)
	}
	s.put(b, doc{"/docs/e", []string{"green large"}})
	if stats := s.commit(b, all); stats.Settings.TopK != 9 || stats.Files != 5 || stats.Chunks != 6 {
		s.Errorf("stats %+v", stats)
	}
	x := s.open()
	s.matched(x, "green", 9, "/docs/b:green", "/docs/c:green round", "/docs/d:green square", "/docs/e:green large")
	s.near(x, "green", 9, "/docs/b:green", "/docs/c:green round", "/docs/d:green square", "/docs/e:green large")
	if b := s.begin(settings()); b.Resumed() {
		s.Error("a complete build is resumed")
	} else {
		s.ok(b.Close())
	}
}

// remember stops builds before any of their files is complete, at first without an index in use.
func (s *suite) remember() {
	part := doc{"/docs/a", []string{"red", "Colors|red", "green"}}.chunks()
	known := func(b rag.Build, want ...bool) {
		s.Helper()
		chunks := append(slices.Clone(part), doc{"", []string{"blue", "Other|red"}}.chunks()...)
		vectors, err := b.Vectors(s.Context(), chunks)
		s.ok(err)
		for i, v := range vectors {
			if (v != nil) != want[i] {
				s.Errorf("%s|%s: got %v", chunks[i].Heading, chunks[i].Text, v)
			} else if v != nil {
				s.same("vector of "+chunks[i].Text, v, chunks[i].Vector)
			}
		}
	}
	for _, inUse := range []bool{false, true} {
		b := s.begin(settings())
		s.ok(b.Remember(s.Context(), part[:1]))
		s.ok(b.Remember(s.Context(), part[:2]))
		known(b, true, true, false, inUse, false)
		if err := b.Remember(s.Context(), []rag.Chunk{{Text: "x", Vector: []float32{1}}}); err == nil {
			s.Error("vectors of different lengths are accepted")
		}
		s.ok(b.Flush(s.Context()))
		s.ok(b.Remember(s.Context(), part[1:]))
		s.ok(b.Close())
		if s.Forgets {
			continue
		}
		s.store = s.handle()
		b = s.begin(settings())
		if !b.Resumed() {
			s.Error("it is not resumed")
		}
		known(b, true, true, true, inUse, false)
		s.put(b, doc{"/docs/b", []string{"blue"}})
		known(b, true, true, true, true, false)
		if stats := s.commit(b, all); stats.Files != 1 || stats.Chunks != 1 {
			s.Errorf("in use before: %v, stats %+v", inUse, stats)
		}
		s.near(s.open(), "red", 9)
		s.near(s.open(), "blue", 9, "/docs/b:blue")
		b = s.begin(settings())
		known(b, false, false, false, true, false)
		s.ok(b.Close())
	}
	b := s.begin(settings())
	s.ok(b.Remember(s.Context(), part))
	s.ok(b.Close())
	set := settings()
	set.ChunkSize++
	b = s.begin(set)
	known(b, false, false, false, false, false)
	s.ok(b.Close())
	b = s.begin(settings())
	s.ok(b.Remember(s.Context(), part))
	s.ok(b.Close())
	s.ok(s.store.Delete(s.Context()))
	b = s.begin(settings())
	known(b, false, false, false, false, false)
	s.ok(b.Close())
}

func (s *suite) resumeWithOtherSettings() {
	b := s.begin(settings())
	s.put(b, doc{"/docs/a", []string{"green"}})
	s.ok(b.Close())
	set := settings()
	set.ChunkSize = 50
	b = s.begin(set)
	if _, ok, err := b.File(s.Context(), "/docs/a"); ok || err != nil || b.Resumed() {
		s.Errorf("File: %v, %v, resumed %v", ok, err, b.Resumed())
	}
	s.put(b, doc{"/docs/b", []string{"red"}})
	s.commit(b, all)
	s.matched(s.open(), "red green", 9, "/docs/b:red")
}

func (s *suite) oneBuild() {
	b := s.begin(settings())
	other := s.handle()
	if _, err := other.Build(s.Context(), settings()); fault.CodeOf(err) != fault.Usage {
		s.Errorf("a second build: %v", err)
	}
	s.put(b, doc{"/docs/a", []string{"red"}})
	s.commit(b, all)
	b, err := other.Build(s.Context(), settings())
	s.ok(err)
	s.ok(b.Close())
}

func (s *suite) readers() {
	s.fill(settings(), doc{"/docs/a", []string{"red"}}, doc{"/docs/b", []string{"green"}})
	old, unused := s.open(), s.open()
	want := s.dump(old)
	s.fill(settings(), doc{"/docs/b", []string{"green red"}}, doc{"/docs/c", slices.Repeat([]string{"red round"}, 300)})
	s.same("old index", s.dump(old), want)
	s.same("old index, searched first after the build", s.dump(unused), want)
	s.near(s.open(), "green", 1, "/docs/b:green red")
}

func (s *suite) nearest() {
	s.fill(settings(),
		doc{"/docs/a", []string{"red", "red green", "", "green", "red"}},
		doc{"/docs/b", []string{"red green blue", "red"}},
	)
	x := s.open()
	s.near(x, "red", 9, "/docs/a:red", "/docs/a:red", "/docs/b:red", "/docs/a:red green", "/docs/b:red green blue")
	s.near(x, "red", 2, "/docs/a:red", "/docs/a:red")
	s.near(x, "square", 9)
	s.near(x, "red", 0)
	matches, err := x.Nearest(s.Context(), embed("red green"), 2)
	s.ok(err)
	for i, m := range matches {
		if want := []float64{1, math.Sqrt(2.0 / 3)}[i]; math.Abs(m.Score-want) > 1e-5 {
			s.Errorf("score %v, want %v", m.Score, want)
		}
	}
	if _, err := x.Nearest(s.Context(), []float32{1, 0}, 2); err == nil {
		s.Error("a vector of another length is accepted")
	}
	opposite := embed("red")
	opposite[0] = -1
	matches, err = x.Nearest(s.Context(), opposite, 9)
	s.ok(err)
	s.same("opposite", matches, []rag.Match(nil))
}

// nearestInt8 compares the results of a quantized index with those of one that is not.
func (s *suite) nearestInt8() {
	r := rand.New(rand.NewPCG(3, 4))
	b := s.begin(settings())
	for i := range 20 {
		chunks := make([]rag.Chunk, 25)
		for j := range chunks {
			chunks[j] = rag.Chunk{Text: fmt.Sprint(i, j), Vector: unit(r, 32)}
		}
		s.ok(b.Put(s.Context(), rag.File{Path: fmt.Sprint("/docs/", i), Hash: "h"}, chunks))
	}
	s.commit(b, all)
	exact := s.open()
	set := settings()
	set.Quantization = rag.Int8
	base, err := rag.Open(s.Context(), "test", s.handle(), nil)
	s.ok(err)
	tried, err := base.Quantized(s.Context(), rag.Int8)
	s.ok(err)
	s.same("settings to try", tried.Settings(), set)
	s.ok(s.store.Configure(s.Context(), set))
	quantized := s.open()
	for range 20 {
		query := unit(r, 32)
		want, err := exact.Nearest(s.Context(), query, 10)
		s.ok(err)
		got, err := quantized.Nearest(s.Context(), query, 10)
		s.ok(err)
		s.same("nearest", got, want)
		got, err = tried.Index().Nearest(s.Context(), query, 10)
		s.ok(err)
		s.same("nearest without Configure", got, want)
	}
	s.ok(tried.Close())
	_, err = base.Index().Nearest(s.Context(), unit(r, 32), 10)
	s.ok(err)
	s.ok(base.Close())
}

func unit(r *rand.Rand, dims int) []float32 {
	v := make([]float32, dims)
	length := 0.0
	for i := range v {
		v[i] = float32(r.NormFloat64())
		length += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(length))
	}
	return v
}

func (s *suite) match() {
	docs := []doc{
		{"/docs/a", []string{"Searching|the cat searches", "a dog", "cat cat cat and a dog"}},
		{"/docs/b", []string{"getHTTPServer starts a server", "cat", "nothing", "cat"}},
	}
	s.fill(settings(), docs...)
	x := s.open()
	s.matched(x, "cat", 9, "/docs/a:cat cat cat and a dog", "/docs/b:cat", "/docs/b:cat", "/docs/a:the cat searches")
	s.matched(x, "cat", 2, "/docs/a:cat cat cat and a dog", "/docs/b:cat")
	s.matched(x, "search", 9, "/docs/a:the cat searches")
	s.matched(x, "http", 9, "/docs/b:getHTTPServer starts a server")
	s.matched(x, "gethttpserver", 9, "/docs/b:getHTTPServer starts a server")
	s.matched(x, "the of a", 9)
	s.matched(x, "zebra", 9)
	s.matched(x, "", 9)
	s.matched(x, "cat", 0)
	for _, q := range []string{"cat", "dog cat", "cat dog dog zebra", "Searching servers", `"cat" OR NOT (dog* NEAR`} {
		matches, err := x.Match(s.Context(), q, 100)
		s.ok(err)
		s.same("scores of "+q, matches, bm25(s.files(x), docs, q))
	}
}

// bm25 ranks all chunks of docs by the definition. The files are those of docs, in any order.
func bm25(files []rag.File, docs []doc, query string) (matches []rag.Match) {
	type chunk struct {
		id    rag.ID
		times map[string]float64
		size  float64
	}
	var chunks []chunk
	with := make(map[string]float64)
	total := 0.0
	for _, d := range docs {
		i := slices.IndexFunc(files, func(f rag.File) bool { return f.Path == d.path })
		for seq, c := range d.chunks() {
			tokens := append(rank.Tokens(c.Heading), rank.Tokens(c.Text)...)
			one := chunk{rag.ID{File: files[i].ID, Seq: seq}, make(map[string]float64), float64(len(tokens))}
			for _, t := range tokens {
				one.times[t]++
			}
			for t := range maps.Keys(one.times) {
				with[t]++
			}
			total += one.size
			chunks = append(chunks, one)
		}
	}
	n := float64(len(chunks))
	for _, c := range chunks {
		score := 0.0
		for _, t := range rank.Tokens(query) {
			idf := math.Log(1 + (n-with[t]+0.5)/(with[t]+0.5))
			score += idf * c.times[t] * 2.5 / (c.times[t] + 1.5*(0.25+0.75*c.size/(total/n)))
		}
		if score > 0 {
			matches = append(matches, rag.Match{ID: c.id, Score: score})
		}
	}
	slices.SortFunc(matches, func(a, b rag.Match) int {
		if math.Abs(a.Score-b.Score) > 1e-9 {
			return cmp.Compare(b.Score, a.Score)
		}
		return compare(a.ID, b.ID)
	})
	return matches
}

func (s *suite) matchScripts() {
	s.fill(settings(), doc{"/docs/a", []string{"東京都に行く", "京都に行く", "поиск по тексту", "데이터베이스를 만든다", "Ångström naïve"}})
	x := s.open()
	s.matched(x, "東京", 9, "/docs/a:東京都に行く")
	s.matched(x, "京都", 9, "/docs/a:京都に行く", "/docs/a:東京都に行く")
	s.matched(x, "поиск", 9, "/docs/a:поиск по тексту")
	s.matched(x, "데이터", 9, "/docs/a:데이터베이스를 만든다")
	s.matched(x, "angstrom", 9, "/docs/a:Ångström naïve")
}

func (s *suite) wrongVectors() {
	b := s.begin(settings())
	s.put(b, doc{"/docs/a", []string{"red"}})
	if err := b.Put(s.Context(), rag.File{Path: "/docs/b", Hash: "h"}, []rag.Chunk{{Text: "x", Vector: []float32{1}}}); err == nil {
		s.Error("vectors of different lengths are accepted")
	}
	s.commit(b, all)
	s.near(s.open(), "red", 9, "/docs/a:red")
}

func (s *suite) oddText() {
	text := "a\x00b \U0001f600 \u2028 \\'\" " + strings.Repeat("red ", 50_000)
	path := "/docs/ä '%_*\U0001f600"
	s.fill(settings(), doc{path, []string{"# 'x'|" + text, " "}}, doc{"https://x.example/?a=1&b=2", []string{"blue"}})
	x := s.open()
	chunks, err := x.Chunks(s.Context(), []rag.ID{{File: s.files(x)[0].ID}}, false)
	s.ok(err)
	if len(chunks) != 1 || chunks[0].Text != text || chunks[0].Path != path || chunks[0].Heading != "# 'x'" {
		s.Error("the chunk is not what was put")
	}
	s.near(x, "blue", 1, "https://x.example/?a=1&b=2:blue")
}

// random compares stores after random changes, one of them built at once and one bit by bit.
func (s *suite) random() {
	r := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("red green blue round square large small file server search searching 東京 cat dog")
	docs := make(map[string]doc)
	for round := range 12 {
		b := s.begin(settings())
		for range 1 + r.IntN(9) {
			d := doc{path: fmt.Sprintf("/docs/%d", r.IntN(15))}
			for range r.IntN(1 + r.IntN(40)) {
				text := ""
				for range r.IntN(12) {
					text += words[r.IntN(len(words))] + " "
				}
				d.texts = append(d.texts, text)
			}
			docs[d.path] = d
			s.put(b, d)
			if r.IntN(6) == 0 && !s.Forgets {
				s.ok(b.Close())
				b = s.begin(settings())
			}
		}
		for path := range docs {
			if r.IntN(5) == 0 {
				delete(docs, path)
			}
		}
		s.commit(b, those(func(path string) bool { _, ok := docs[path]; return ok }))
		x := s.open()
		files := s.files(x)
		if len(files) != len(docs) {
			s.Fatalf("round %d: %d files, want %d", round, len(files), len(docs))
		}
		list := slices.Collect(maps.Values(docs))
		for _, q := range []string{"red", "searching files 東京", "cat dog large small small"} {
			got, err := x.Match(s.Context(), q, 10_000)
			s.ok(err)
			s.texts(x, got, nil)
			// Equal scores may differ in the last digit in the suite's own arithmetic.
			byID := func(a, b rag.Match) int { return compare(a.ID, b.ID) }
			want := bm25(files, list, q)
			slices.SortFunc(got, byID)
			slices.SortFunc(want, byID)
			s.same(fmt.Sprintf("round %d: %s", round, q), got, want)
		}
		got := s.dump(x)
		whole := &suite{T: s.T, Options: s.Options, handle: s.New(s.T)}
		whole.store = whole.handle()
		whole.fill(settings(), list...)
		s.same(fmt.Sprintf("round %d: dump", round), got, whole.dump(whole.open()))
	}
}

func (s *suite) concurrent() {
	s.fill(settings(), doc{"/docs/a", slices.Repeat([]string{"red cat", "green dog", "blue round"}, 50)}, doc{"/docs/b", []string{"red cat large"}})
	x := s.open()
	type result struct {
		match, near []rag.Match
		chunks      []rag.Chunk
	}
	results := make([]result, 8)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			var errs [3]error
			results[i].match, errs[0] = x.Match(s.Context(), "cat large", 20)
			results[i].near, errs[1] = x.Nearest(s.Context(), embed("red large"), 20)
			if errs[0] == nil {
				results[i].chunks, errs[2] = x.Chunks(s.Context(), []rag.ID{results[i].match[0].ID}, true)
			}
			if err := errors.Join(errs[:]...); err != nil {
				s.Error(err)
			}
		})
	}
	wg.Wait()
	for _, got := range results[1:] {
		s.same("results", fmt.Sprint(got), fmt.Sprint(results[0]))
	}
}

func (s *suite) canceled() {
	s.fill(settings(), doc{"/docs/a", []string{"red"}})
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	x := s.open()
	if _, err := x.Match(ctx, "red", 1); !errors.Is(err, context.Canceled) {
		s.Errorf("Match: %v", err)
	}
	if _, err := x.Nearest(ctx, embed("red"), 1); !errors.Is(err, context.Canceled) {
		s.Errorf("Nearest: %v", err)
	}
	s.matched(x, "red", 1, "/docs/a:red")
	s.near(x, "red", 1, "/docs/a:red")
	b := s.begin(settings())
	s.put(b, doc{"/docs/b", []string{"green"}})
	if _, err := b.Commit(ctx, all); !errors.Is(err, context.Canceled) {
		s.Errorf("Commit: %v", err)
	}
	s.ok(b.Close())
	s.matched(s.open(), "green", 1)
	s.commit(s.begin(settings()), all)
	s.matched(s.open(), "red", 1, "/docs/a:red")
}

func (s *suite) delete() {
	s.fill(settings(), doc{"/docs/a", []string{"red"}})
	b := s.begin(settings())
	s.put(b, doc{"/docs/b", []string{"green"}})
	s.ok(b.Close())
	s.ok(s.store.Delete(s.Context()))
	if _, err := s.handle().Open(s.Context()); !errors.Is(err, fs.ErrNotExist) {
		s.Errorf("Open: %v", err)
	}
	b = s.begin(settings())
	if _, ok, err := b.File(s.Context(), "/docs/a"); ok || err != nil || b.Resumed() {
		s.Errorf("File: %v, %v, resumed %v", ok, err, b.Resumed())
	}
	s.ok(b.Close())
	s.ok(s.store.Delete(s.Context()))
}
