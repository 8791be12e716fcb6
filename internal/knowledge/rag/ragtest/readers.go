package ragtest

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"loki/internal/base/fault"
	"loki/internal/knowledge/rag"
)

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
