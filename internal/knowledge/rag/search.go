package rag

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/base/text/rank"
	"loki/internal/knowledge/rag/split"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/provider"
)

// Search finds at most top_k passages that belong to a question, best first. Without text, and
// without chunks, nothing is found. Warnings go to the scope of ctx.
//
// The text is cut like a document, and the chunks are found whose vectors are near to one of a part
// of it. Other chunks are found by the words of the text. The two lists are fused, or given to the
// reranker. An error of a model ends the search: an answer from
// half of what is known would look like one from all of it. Found then has the usage of what was asked
// before.
func (b *Base) Search(ctx context.Context, q Query) (Found, error) {
	s := search{
		Base: b, set: b.stats.Settings, text: strings.TrimSpace(q.Text), mode: q.Mode,
		requests: requests{budget: q.Budget, retry: q.Retry, events: event.FromContext(ctx)},
	}
	if q.Settings != nil {
		s.set = *q.Settings
	}
	found := Found{Base: b.name, Query: q.Text, Hits: []Hit{}}
	err := s.set.Validate()
	if err == nil && s.text != "" && b.stats.Chunks > 0 {
		found.Hits, err = s.run(ctx)
	}
	found.Usage = s.used
	return found, err
}

// search is one call of Search.
type search struct {
	*Base
	requests
	set  Settings
	text string
	mode Mode
	used chat.Usage
}

// candidate is a chunk that may be returned.
type candidate struct {
	id              ID
	score           float64
	vector, keyword Rank
	chunk           Chunk // once it was read
}

func (s *search) run(ctx context.Context) ([]Hit, error) {
	var near, words []Match
	var err error
	if s.mode != Keyword {
		if near, err = s.nearest(ctx); err != nil {
			return nil, err
		}
	}
	if s.mode != Vector {
		if words, err = s.index.Match(ctx, s.text, s.depth()); err != nil {
			return nil, err
		}
		if words, err = s.phrases(ctx, words); err != nil {
			return nil, err
		}
	}
	weight := 0.9                                     // vectors that do not differ do not come before words that do
	if s.stats.Settings.EmbeddingModel == HashModel { // these vectors are made of words, too
		weight = 0.5
	}
	list, err := s.read(ctx, fuse(near, weight, words))
	if err != nil {
		return nil, err
	}
	if s.denied != nil {
		list = slices.DeleteFunc(list, func(c candidate) bool { return s.denied(c.chunk.Path) })
	}
	if s.set.RerankerModel != "" && len(list) > 0 {
		if list, err = s.rerank(ctx, near, words, list); err != nil {
			return nil, err
		}
	}
	list = list[:min(len(list), s.set.TopK)]
	return passages(list), nil
}

// depth returns how long the lists of matches are: longer than the result, so that a chunk that is behind its end in both may be
// in it.
func (s *search) depth() int { return max(4*s.set.TopK, 20) }

// passages returns the hits for candidates.
func passages(list []candidate) []Hit {
	hits := make([]Hit, len(list))
	for i, c := range list {
		hits[i] = Hit{
			ID: c.id, Path: text.Name(c.chunk.Path), Heading: c.chunk.Heading, Unread: c.chunk.Unread, Text: c.chunk.Text, Start: c.chunk.Start, End: c.chunk.End,
			Score: c.score, Vector: c.vector, Keyword: c.keyword,
		}
	}
	return hits
}

// nearest returns the chunks that are near to the parts of the text, part by part.
func (s *search) nearest(ctx context.Context) ([]Match, error) {
	vectors, err := s.vectors(ctx)
	if err != nil {
		return nil, err
	}
	var list []Match
	for _, v := range vectors {
		if !slices.ContainsFunc(v, func(x float32) bool { return x != 0 }) {
			continue
		}
		matches, err := s.index.Nearest(ctx, v, s.depth())
		if err != nil {
			return nil, err
		}
		for _, m := range matches {
			if m.Score >= s.set.Threshold {
				list = append(list, m)
			}
		}
	}
	return list, nil
}

// vectors returns those of the parts of the text.
func (s *search) vectors(ctx context.Context) ([][]float32, error) {
	set := s.stats.Settings // the index was built with these
	m, err := s.models.Embedder(ctx, set.EmbeddingModel)
	if err != nil {
		return nil, err
	}
	if m.StandsIn {
		text := fmt.Sprintf("the knowledge base %s has vectors of %s, in whose place %s stands, so it is searched by words only", s.name, set.EmbeddingModel, m.ID)
		return nil, s.events.Emit(ctx, event.Warning{Text: text, Once: true})
	}
	pieces := split.New(set.ChunkSize, set.ChunkOverlap, "txt").Split(s.text)
	var vectors [][]float32
	for len(pieces) > 0 {
		n, _ := m.batch(func(i int) int { return chat.EstimateTokens(pieces[i].Text) }, len(pieces), m.batchSize())
		texts := make([]string, n)
		for i := range texts {
			texts[i] = pieces[i].Text
		}
		part, used, err := s.embed(ctx, m, texts, true)
		s.used = s.used.Add(used)
		if err != nil {
			return nil, addHint(err, "each question needs the embedding model that the knowledge base was built with; is it in reach?")
		}
		vectors, pieces = append(vectors, part...), pieces[n:]
	}
	for _, v := range vectors {
		if len(v) != s.stats.Dimensions {
			return nil, otherVectors(s.name, m.ID, len(v), s.stats.Dimensions)
		}
	}
	return vectors, nil
}

// otherVectors returns the error for vectors of a model that do not fit those of a knowledge base.
func otherVectors(base, model string, dimensions, want int) error {
	return fault.New(fault.Provider, "model %s returned vectors of %d numbers, and those in the knowledge base %s have %d", model, dimensions, base, want).
		WithHint("the model has changed: name the one that the knowledge base was built with, or delete it and build it again")
}

// addHint returns err with a hint for the user, behind the one that it has.
func addHint(err error, hint string) error {
	if own := fault.HintOf(err); own != "" {
		hint = own + "; " + hint
	}
	return &fault.Error{Code: fault.CodeOf(err), Hint: hint, Err: err}
}

// phrases adds to the score of each match what the pairs of words have in it that follow each other in the question: each pair is
// a token of its own, as in the sequential dependence model (Metzler and Croft, SIGIR 2005), with the idf that it has among the
// matches. So the row with both parts of a name comes before those with one of them.
func (s *search) phrases(ctx context.Context, words []Match) ([]Match, error) {
	type pair struct{ first, second string }
	asked := rank.Tokens(s.text)
	with := make(map[pair][]int) // the matches that have each pair of the question
	for i := range len(asked) - 1 {
		with[pair{asked[i], asked[i+1]}] = nil
	}
	var list []candidate
	for _, m := range words {
		list = append(list, candidate{id: m.ID, score: m.Score})
	}
	list, err := s.read(ctx, list)
	if err != nil {
		return nil, err
	}
	for i, c := range list {
		tokens := rank.Tokens(c.chunk.full())
		for j := range len(tokens) - 1 {
			p := pair{tokens[j], tokens[j+1]}
			if has, ok := with[p]; ok && (len(has) == 0 || has[len(has)-1] != i) {
				with[p] = append(has, i)
			}
		}
	}
	words = nil
	for i := range len(asked) - 1 {
		p := pair{asked[i], asked[i+1]}
		for _, at := range with[p] {
			list[at].score += rank.IDF(float64(len(list)), float64(len(with[p])))
		}
		delete(with, p) // counts once
	}
	for _, c := range list {
		words = append(words, Match{c.id, c.score})
	}
	slices.SortStableFunc(words, func(a, b Match) int { return cmp.Compare(b.Score, a.Score) })
	return words, nil
}

// fuse merges two lists of matches: a chunk gets (score - least) / (best - least) of each list that it is in, where best and least are
// the highest and the lowest score of the list, times weight if it is a list by vectors. Scores tell more than ranks: whether the first is
// much better than the second. A chunk that is in a list twice, for two parts of a question, adds twice. The result is
// best first; of equal ones, the one that was seen first.
func fuse(near []Match, weight float64, words []Match) []candidate {
	var list []candidate
	at := make(map[ID]int)
	add := func(matches []Match, weight float64, rank func(*candidate) *Rank) {
		best, least := math.Inf(-1), math.Inf(1)
		for _, m := range matches {
			best, least = max(best, m.Score), min(least, m.Score)
		}
		for i, m := range matches {
			n, ok := at[m.ID]
			if !ok {
				n = len(list)
				at[m.ID], list = n, append(list, candidate{id: m.ID})
			}
			share := 1.0
			if best > least {
				share = (m.Score - least) / (best - least)
			}
			c := &list[n]
			c.score += weight * share
			if r := rank(c); r.Rank == 0 {
				*r = Rank{i + 1, m.Score}
			}
		}
	}
	add(near, weight, func(c *candidate) *Rank { return &c.vector })
	add(words, 1, func(c *candidate) *Rank { return &c.keyword })
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
	return list
}

// rerank returns the candidates in the order of the reranker, which gets those found by vectors and
// then those found by words.
func (s *search) rerank(ctx context.Context, near, words []Match, list []candidate) ([]candidate, error) {
	first := make(map[ID]int)
	for _, m := range slices.Concat(near, words) {
		if _, ok := first[m.ID]; !ok {
			first[m.ID] = len(first)
		}
	}
	slices.SortFunc(list, func(a, b candidate) int { return first[a.id] - first[b.id] })
	m, err := s.models.Reranker(ctx, s.set.RerankerModel)
	if err != nil {
		return nil, err
	}
	req := provider.RerankRequest{Model: m.Name, Query: s.text, TopN: s.set.TopK}
	for _, c := range list {
		req.Documents = append(req.Documents, c.chunk.full())
	}
	var ranked []provider.Ranked
	used, err := s.do(ctx, m.ID, len(list)*chat.EstimateTokens(s.text)+tokens(req.Documents), m.Cost, func(ctx context.Context) (used chat.Usage, err error) {
		ranked, used, err = m.Rerank(ctx, req)
		return used, err
	})
	s.used = s.used.Add(used)
	if err != nil {
		return nil, addHint(err, "to search without a reranker, set reranker_model= of the knowledge base")
	}
	var best []candidate
	seen := make([]bool, len(list))
	for _, r := range ranked {
		if r.Index >= 0 && r.Index < len(list) && !seen[r.Index] {
			seen[r.Index] = true
			c := list[r.Index]
			c.score = r.Score
			best = append(best, c)
		}
	}
	return best, nil
}

// read reads the chunks of candidates, and returns the ones that exist.
func (s *search) read(ctx context.Context, list []candidate) ([]candidate, error) {
	var ids []ID
	for _, c := range list {
		ids = append(ids, c.id)
	}
	chunks, err := s.index.Chunks(ctx, ids, false)
	if err != nil {
		return nil, err
	}
	byID := make(map[ID]Chunk, len(chunks))
	for _, c := range chunks {
		byID[c.ID] = c
	}
	for i := range list {
		list[i].chunk = byID[list[i].id]
	}
	return slices.DeleteFunc(list, func(c candidate) bool { return c.chunk.ID == (ID{}) }), nil
}
