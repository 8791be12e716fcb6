package ragtest

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"loki/internal/base/text/sample"
	"loki/internal/knowledge/rag"
)

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
	chunks := doc{"", []string{"blue", "red", "Colors|red", "Other|red", "red ", "green round", "yellow"}}.chunks()
	s.known(b, chunks, true, true, true, false, false, true, false)
	s.put(b, doc{"/docs/c", []string{"yellow"}})
	s.known(b, chunks, true, true, true, false, false, true, true)
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
	set.TopK, set.RerankerModel, set.Threshold = 9, "test:r", 0.25
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
	for round := range 12 / sample.Step(3) {
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
