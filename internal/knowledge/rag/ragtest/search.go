package ragtest

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"loki/internal/base/text/rank"
	"loki/internal/knowledge/rag"
)

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
