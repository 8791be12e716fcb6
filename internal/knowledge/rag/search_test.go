package rag_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"loki/internal/base/fault"
	"loki/internal/knowledge/rag"
	"loki/internal/knowledge/rag/memstore"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/llm/provider"
)

// lists is a store whose matches are given. Chunks are those that were put.
type lists struct {
	*memstore.Store
	near  [][]rag.Match // for the first vector, the second, ...
	words []rag.Match
	k     []int // that were asked for
	calls int
}

func (l *lists) Open(ctx context.Context) (rag.Index, error) {
	x, err := l.Store.Open(ctx)
	return listIndex{x, l}, err
}

type listIndex struct {
	rag.Index
	l *lists
}

func (x listIndex) Nearest(_ context.Context, _ []float32, k int) ([]rag.Match, error) {
	x.l.k = append(x.l.k, k)
	x.l.calls++
	return x.l.near[(x.l.calls-1)%len(x.l.near)], nil
}

func (x listIndex) Match(_ context.Context, _ string, k int) ([]rag.Match, error) {
	x.l.k = append(x.l.k, k)
	return x.l.words, nil
}

// put makes an index with chunks at path: file 1.
func (b *bench) put(chunks ...rag.Chunk) {
	b.Helper()
	build, err := b.store.Build(b.Context(), b.set)
	if err != nil {
		b.Fatal(err)
	}
	for i := range chunks {
		if chunks[i].Vector == nil {
			chunks[i].Vector = make([]float32, 64)
		}
	}
	if err := build.Put(b.Context(), rag.File{Path: filepath.Join(b.dir, "a.md"), Hash: "hash"}, chunks); err != nil {
		b.Fatal(err)
	}
	if _, err := build.Commit(b.Context(), func(rag.File) (string, bool) { return "", true }); err != nil {
		b.Fatal(err)
	}
}

// search searches and wants that to work.
func (b *bench) search(base *rag.Base, q rag.Query) rag.Found {
	b.Helper()
	found, err := base.Search(b.Context(), q)
	if err != nil {
		b.Fatal(err)
	}
	return found
}

// matches returns matches with the given chunks of file 1, best first.
func matches(seqs ...int) []rag.Match {
	var list []rag.Match
	for i, seq := range seqs {
		list = append(list, rag.Match{ID: rag.ID{File: 1, Seq: seq}, Score: 0.9 - float64(i)/10})
	}
	return list
}

// given returns a base of ten chunks with lists.
func given(t *testing.T, near [][]rag.Match, words []rag.Match, change func(*rag.Settings)) (*bench, *lists, *rag.Base) {
	b := newBench(t, nil)
	if change != nil {
		change(&b.set)
	}
	var chunks []rag.Chunk
	for i := range 10 {
		chunks = append(chunks, rag.Chunk{Text: fmt.Sprintf("text%d", i), Start: 1 + 2*i, End: 2 + 2*i})
	}
	b.put(chunks...)
	l := &lists{Store: b.store, near: near, words: words}
	base, err := rag.Open(t.Context(), "base", l, b.Models)
	if err != nil {
		t.Fatal(err)
	}
	return b, l, base
}

func seqs(f rag.Found) []int {
	var list []int
	for _, h := range f.Hits {
		list = append(list, h.ID.Seq)
	}
	return list
}

func TestFusion(t *testing.T) {
	b, l, base := given(t, [][]rag.Match{matches(1, 3, 2)}, []rag.Match{{rag.ID{File: 1, Seq: 4}, 0.9}, {rag.ID{File: 1, Seq: 3}, 0.88}, {rag.ID{File: 1, Seq: 5}, 0.8}}, nil)
	f := b.search(base, rag.Query{Text: "alpha"})
	// 3: 0.9*0.1/0.2 + 0.08/0.1 = 1.25; 4: 1; 1: 0.9; 2 and 5: 0
	equal(t, "order", seqs(f), []int{3, 4, 1})
	best := f.Hits[0]
	if math.Abs(best.Score-1.25) > 1e-12 || best.Vector != (rag.Rank{Rank: 2, Score: 0.8}) || best.Keyword != (rag.Rank{Rank: 2, Score: 0.88}) {
		t.Errorf("%+v", best)
	}
	if f.Hits[2].Keyword != (rag.Rank{}) || f.Hits[2].Start != 3 || f.Hits[2].End != 4 || f.Hits[2].Text != "text1" {
		t.Errorf("%+v", f.Hits[2])
	}
	equal(t, "k", l.k, []int{20, 20})
	if f.Usage.InputTokens != 10 || f.Base != "base" || f.Query != "alpha" {
		t.Errorf("%+v", f)
	}
	if r := b.model.requests[0]; !r.Query || r.Model != "words" {
		t.Errorf("%+v", r)
	}
}

// Words that follow each other in the question count where they do so in a chunk.
func TestPhrases(t *testing.T) {
	b := newBench(t, nil)
	b.put(rag.Chunk{Text: "Ada Costa, Bruno Kern"}, rag.Chunk{Text: "Carla Kern, Ada Roth"}, rag.Chunk{Text: "Dario Falk, Ada Kern"})
	base, err := rag.Open(t.Context(), "base", &lists{Store: b.store, words: matches(0, 1, 2)}, b.Models)
	if err != nil {
		t.Fatal(err)
	}
	for question, want := range map[string][]int{"the salary of Ada Kern": {2, 0, 1}, "Carla Kern, Ada Roth": {1, 0, 2}, "Kern": {0, 1, 2}, "Kern Ada": {1, 0, 2}} {
		equal(t, question, seqs(b.search(base, rag.Query{Text: question, Mode: rag.Keyword})), want)
	}
}

// A chunk that is near to two parts of a question adds up.
func TestPartsOfAQuestion(t *testing.T) {
	b, l, base := given(t, [][]rag.Match{matches(1, 2, 7), matches(2, 6)}, nil, nil)
	f := b.search(base, rag.Query{Text: strings.Repeat("alpha ", 6) + "\n\n" + strings.Repeat("beta ", 7)})
	// 2: 0.9*(0.5 + 1); 1: 0.9; 6: 0.45; 7: 0
	equal(t, "order", seqs(f), []int{2, 1, 6})
	if l.calls != 2 || len(b.model.requests) != 1 || f.Hits[0].Vector.Rank != 2 {
		t.Errorf("%d calls, %d requests, %+v", l.calls, len(b.model.requests), f.Hits[0])
	}
}

// The first list that has a chunk decides among equal ones.
func TestEqualScores(t *testing.T) {
	b, _, base := given(t, [][]rag.Match{nil}, append(matches(7), matches(2)...), func(s *rag.Settings) { s.TopK = 10 })
	equal(t, "order", seqs(b.search(base, rag.Query{Text: "alpha"})), []int{7, 2})
}

func TestModes(t *testing.T) {
	b, _, base := given(t, [][]rag.Match{matches(1)}, matches(2), nil)
	equal(t, "vector", seqs(b.search(base, rag.Query{Text: "alpha", Mode: rag.Vector})), []int{1})
	n := len(b.model.requests)
	equal(t, "keyword", seqs(b.search(base, rag.Query{Text: "alpha", Mode: rag.Keyword})), []int{2})
	if len(b.model.requests) != n {
		t.Error("the embedding model was asked for a search by words")
	}
}

func TestThreshold(t *testing.T) {
	b, _, base := given(t, [][]rag.Match{matches(1, 2, 3)}, matches(4), func(s *rag.Settings) { s.Threshold = 0.8 })
	equal(t, "order", seqs(b.search(base, rag.Query{Text: "alpha"})), []int{4, 1, 2})
}

func TestNothingToSearchFor(t *testing.T) {
	b, l, base := given(t, [][]rag.Match{matches(1)}, matches(2), nil)
	for _, text := range []string{"", " \n"} {
		f := b.search(base, rag.Query{Text: text})
		if f.Hits == nil || len(f.Hits) > 0 || l.calls > 0 {
			t.Errorf("%q: %+v", text, f)
		}
	}
}

func TestReranker(t *testing.T) {
	b, l, base := given(t, [][]rag.Match{matches(1, 2)}, matches(3, 1, 99), func(s *rag.Settings) { s.RerankerModel = "test:judge" })
	b.model.order = []provider.Ranked{{Index: 2, Score: 8}, {Index: 7, Score: 7}, {Index: 2, Score: 6}, {Index: -1}, {Index: 1, Score: -2}, {Index: 0, Score: -3}}
	f := b.search(base, rag.Query{Text: "alpha"})
	equal(t, "order", seqs(f), []int{3, 2, 1})
	if f.Hits[0].Score != 8 || f.Hits[0].Keyword.Rank != 1 || f.Usage.InputTokens != 1010 {
		t.Errorf("%+v", f)
	}
	r := b.model.reranks
	if len(r) != 1 || r[0].TopN != 3 || r[0].Model != "judge" || r[0].Query != "alpha" {
		t.Errorf("%+v", r)
	}
	equal(t, "documents", r[0].Documents, []string{"text1", "text2", "text3"})
	equal(t, "k", l.k, []int{20, 20})
}

func TestRerankerFails(t *testing.T) {
	b, l, _ := given(t, [][]rag.Match{matches(1)}, nil, func(s *rag.Settings) { s.RerankerModel = "test:judge" })
	base, err := rag.Open(t.Context(), "base", l, oneModel{b.model})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := base.Search(t.Context(), rag.Query{Text: "alpha"}); err == nil || err.Error() != "there is no reranker" {
		t.Error(err)
	}
}

// An error of a model ends the search: an answer from half of what is known looks like one from all.
func TestModelFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _, base := given(t, [][]rag.Match{matches(1)}, matches(2), nil)
		down := &provider.Error{Kind: provider.Transient, Msg: "connection refused"}
		b.model.answer = func(context.Context, provider.EmbedRequest) error { return down }
		ctx := event.NewContext(t.Context(), b.Events)
		_, err := base.Search(ctx, rag.Query{Text: "alpha", Retry: b.Retry})
		if !errors.Is(err, down) || err.Error() != "model test:words: connection refused" || fault.CodeOf(err) != fault.Provider {
			t.Error(err)
		}
		if hint := fault.HintOf(err); !strings.HasPrefix(hint, "each question needs the embedding model") {
			t.Errorf("hint %q", hint)
		}
		if n := len(eventtest.Bodies[event.Warning](b.events)); n != 1 || len(b.model.requests) != 2 {
			t.Errorf("%d warnings, %d requests", n, len(b.model.requests))
		}
	})
}

func TestSearchBudget(t *testing.T) {
	b, _, base := given(t, [][]rag.Match{matches(1)}, nil, nil)
	var within budget
	b.search(base, rag.Query{Text: "alpha beta", Budget: &within})
	if within.calls != 1 || within.settled != 10 || within.open != 0 {
		t.Errorf("%+v", within)
	}
	_, err := base.Search(t.Context(), rag.Query{Text: "alpha beta", Budget: &budget{limit: 1}})
	if fault.CodeOf(err) != fault.Limit {
		t.Error(err)
	}
}

// Settings of one search do not change those of builds.
func TestSettingsOfASearch(t *testing.T) {
	b, _, base := given(t, [][]rag.Match{matches(1, 2, 3)}, nil, nil)
	set := rag.Settings{EmbeddingModel: "other:model", ChunkSize: 1, TopK: 1}
	equal(t, "order", seqs(b.search(base, rag.Query{Text: "alpha", Settings: &set})), []int{1})
	if r := b.model.requests; len(r) != 1 || r[0].Model != "words" || len(r[0].Texts) != 1 {
		t.Errorf("%+v", r)
	}
	set.TopK = 0
	if _, err := base.Search(t.Context(), rag.Query{Text: "alpha", Settings: &set}); fault.CodeOf(err) != fault.Config {
		t.Error(err)
	}
}

func TestFoundIsRecorded(t *testing.T) {
	f := rag.Found{
		Base: "base", Query: "q", Usage: chat.Usage{InputTokens: 3},
		Hits: []rag.Hit{{ID: rag.ID{File: 2, Seq: 3}, Path: "/a", Heading: "H", Text: "t", Start: 1, End: 2, Score: 0.1, Vector: rag.Rank{Rank: 1, Score: 0.5}}},
	}
	data, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var back rag.Found
	if err := json.Unmarshal(data, &back); err != nil || fmt.Sprint(back) != fmt.Sprint(f) {
		t.Errorf("%s: %+v, %v", data, back, err)
	}
}

func TestFound(t *testing.T) {
	f := rag.Found{Base: "base", Query: "q", Hits: []rag.Hit{
		{Path: "/docs/a.md", Text: "first", Start: 3, End: 5, Score: 0.5},
		{Path: "https://b.test", Text: "second"},
		{Path: "/docs/a.md", Text: "third", Start: 9, End: 9},
		{Path: "https://b.test", Text: "fourth"},
	}}
	const want = "[Source: /docs/a.md:3-5]\nfirst\n\n[Source: https://b.test]\nsecond\n\n[Source: /docs/a.md:9]\nthird\n\n[Source: https://b.test]\nfourth"
	if got := f.Context(); got != want {
		t.Errorf("%q", got)
	}
	equal(t, "sources", f.Sources(), []string{"/docs/a.md", "https://b.test"})
	e := f.Event()
	if e.Base != "base" || e.Query != "q" || len(e.Sources) != 4 || e.Sources[0] != (event.Passage{Path: "/docs/a.md", Start: 3, End: 5, Score: 0.5}) {
		t.Errorf("%+v", e)
	}
	if none := (rag.Found{}); none.Context() != "" || none.Sources() == nil || none.Event().Sources == nil {
		t.Error("nothing found is not an empty list")
	}
}

func TestTemplate(t *testing.T) {
	f := rag.Found{Hits: []rag.Hit{
		{Path: "/a.md", Text: "says __INPUT__ and __SOURCES__", Start: 1, End: 2}, {Path: "https://b.test", Text: "two"}, {Path: "https://b.test", Text: "three"},
	}}
	own, err := rag.ParseTemplate("<__CONTEXT__>\n__SOURCES__\n<__INPUT__ __INPUT__>")
	if err != nil {
		t.Fatal(err)
	}
	const want = "<[1] [Source: /a.md:1-2]\nsays __INPUT__ and __SOURCES__\n\n[2] [Source: https://b.test]\ntwo\n\n[2] [Source: https://b.test]\nthree>\n" +
		"1. /a.md:1-2\n2. https://b.test\n<what is __CONTEXT__? what is __CONTEXT__?>"
	if got := own.Fill("what is __CONTEXT__?", f); got != want {
		t.Errorf("%s", got)
	}
	if got := own.Fill("q", rag.Found{}); got != "q" {
		t.Errorf("nothing found: %q", got)
	}
	builtin, err := rag.ParseTemplate("")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"<context>\n[1] [Source: /a.md:1-2]\n", "three\n</context>", "<sources>\n1. /a.md:1-2\n2. https://b.test\n</sources>", "</rules>", "<user_query>\nq\n</user_query>"} {
		if got := builtin.Fill("q", f); !strings.Contains(got, part) {
			t.Errorf("the built-in template has no %q:\n%s", part, got)
		}
	}
	for _, text := range []string{"__INPUT__", "__CONTEXT__ __SOURCES__", "text"} {
		if _, err := rag.ParseTemplate(text); fault.CodeOf(err) != fault.Config || !strings.HasPrefix(err.Error(), "rag_template does not contain __") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
