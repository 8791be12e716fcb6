package ragtest

import (
	"context"
	"errors"
	"slices"

	"loki/internal/knowledge/rag"
)

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
	chunks := append(slices.Clone(part), doc{"", []string{"blue", "Other|red"}}.chunks()...)
	for _, inUse := range []bool{false, true} {
		b := s.begin(settings())
		s.ok(b.Remember(s.Context(), part[:1]))
		s.ok(b.Remember(s.Context(), part[:2]))
		s.known(b, chunks, true, true, false, inUse, false)
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
		s.known(b, chunks, true, true, true, inUse, false)
		s.put(b, doc{"/docs/b", []string{"blue"}})
		s.known(b, chunks, true, true, true, true, false)
		if stats := s.commit(b, all); stats.Files != 1 || stats.Chunks != 1 {
			s.Errorf("in use before: %v, stats %+v", inUse, stats)
		}
		s.near(s.open(), "red", 9)
		s.near(s.open(), "blue", 9, "/docs/b:blue")
		b = s.begin(settings())
		s.known(b, chunks, false, false, false, true, false)
		s.ok(b.Close())
	}
	b := s.begin(settings())
	s.ok(b.Remember(s.Context(), part))
	s.ok(b.Close())
	set := settings()
	set.ChunkSize++
	b = s.begin(set)
	s.known(b, chunks, false, false, false, false, false)
	s.ok(b.Close())
	b = s.begin(settings())
	s.ok(b.Remember(s.Context(), part))
	s.ok(b.Close())
	s.ok(s.store.Delete(s.Context()))
	b = s.begin(settings())
	s.known(b, chunks, false, false, false, false, false)
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
