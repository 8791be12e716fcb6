package rag_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/knowledge/rag"
	"loki/internal/knowledge/rag/memstore"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/llm/provider"
)

func TestBuild(t *testing.T) {
	b := newBench(t, map[string]string{
		"a.md":       "alpha beta\n\ngamma delta epsilon zeta eta theta",
		"sub/b.md":   "iota",
		"empty.txt":  "",
		"image.png":  "\x89PNG\x00\x00",
		"sub/c.text": "kappa",
	})
	stats := b.build()
	equal(t, "content", b.content(), []string{
		"1-0 a.md:1-1 alpha beta", "1-1 a.md:3-3 gamma delta epsilon zeta eta theta", "3-0 sub/b.md:1-1 iota", "4-0 sub/c.text:1-1 kappa",
	})
	if stats.Files != 4 || stats.Chunks != 4 || stats.Dimensions != 64 {
		t.Errorf("%+v", stats)
	}
	f := b.finished()
	if f.Added != 4 || f.Kept != 0 || f.Passed != 1 || f.Failed != 0 || f.Usage.InputTokens != 40 || f.Usage.Cost != 0.04 || f.Error != "" {
		t.Errorf("%+v", f)
	}
}

func TestSync(t *testing.T) {
	b := newBench(t, map[string]string{
		"changed.md": "old part\n\nsame part of the text, rather long",
		"gone.md":    "gone",
		"moved.md":   "moved as it is",
		"same.md":    "same",
	})
	b.build()
	b.model.requests = nil
	b.write("changed.md", "new part\n\nsame part of the text, rather long")
	if err := os.Rename(filepath.Join(b.dir, "moved.md"), filepath.Join(b.dir, "new.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(b.dir, "gone.md")); err != nil {
		t.Fatal(err)
	}
	b.build()
	equal(t, "content", b.content(), []string{
		"4-0 same.md:1-1 same", "5-0 changed.md:1-1 new part", "5-1 changed.md:3-3 same part of the text, rather long", "6-0 new.md:1-1 moved as it is",
	})
	equal(t, "embedded", b.model.texts(), []string{"new part"})
	if f := b.finished(); f.Added != 2 || f.Kept != 1 || f.Removed != 2 || f.Files != 3 || f.Chunks != 4 {
		t.Errorf("%+v", f)
	}

	b.model.requests = nil
	b.build()
	if f := b.finished(); f.Kept != 3 || f.Added != 0 || f.Removed != 0 || len(b.model.requests) != 0 || f.Usage != (chat.Usage{}) {
		t.Errorf("an unchanged base: %+v, %d requests", f, len(b.model.requests))
	}
	b.set.ChunkSize = 50
	b.build()
	if f := b.finished(); f.Kept != 0 || f.Added != 3 {
		t.Errorf("another chunk size: %+v", f)
	}
}

// numbered returns n files of one chunk each.
func numbered(n int) map[string]string {
	files := make(map[string]string)
	for i := range n {
		files[fmt.Sprintf("%03d.txt", i)] = fmt.Sprintf("document number%03d", i)
	}
	return files
}

func TestBatches(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limits rag.Embedder
		want   []int // sizes of requests
	}{
		{"unknown", rag.Embedder{}, []int{16, 16, 8}},
		{"of_the_model", rag.Embedder{MaxBatch: 25}, []int{25, 15}},
		{"tokens", rag.Embedder{MaxBatch: 100, MaxTokens: 75}, []int{15, 15, 10}}, // 5 each
		{"no_token_left", rag.Embedder{MaxTokens: 1, MaxBatch: 20}, slices.Repeat([]int{1}, 40)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, numbered(40))
			b.Models = models{b.model, tt.limits}
			b.build()
			var sizes []int
			for _, r := range b.model.requests {
				sizes = append(sizes, len(r.Texts))
			}
			slices.SortFunc(sizes, func(a, b int) int { return b - a })
			equal(t, "sizes", sizes, tt.want)
		})
	}
}

// The model answers in any order: the ids are those of the order of the documents, and no more
// than four requests are made at once.
func TestOrder(t *testing.T) {
	var want []string
	for seed := range 3 {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, numbered(100))
			b.batch(7)
			atOnce, most := make(chan struct{}, 100), 0
			b.model.answer = func(ctx context.Context, req provider.EmbedRequest) error {
				atOnce <- struct{}{}
				most = max(most, len(atOnce))
				defer func() { <-atOnce }()
				b.model.mu.Lock()
				n := len(b.model.requests)
				b.model.mu.Unlock()
				return retry.Sleep(ctx, time.Duration(1+n*(seed+2)%7)*time.Second)
			}
			b.build()
			if want == nil {
				want = b.content()
			}
			equal(t, "content", b.content(), want)
			if most != 4 {
				t.Errorf("%d requests at once", most)
			}
		})
	}
}

func TestPassingFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, map[string]string{"a.txt": "alpha"})
		failed := false
		b.model.answer = func(context.Context, provider.EmbedRequest) error {
			if failed {
				return nil
			}
			failed = true
			return &provider.Error{Kind: provider.RateLimited, Msg: "slow down", RetryAfter: 30 * time.Second}
		}
		begin := time.Now()
		b.build()
		if took := time.Since(begin); took != 30*time.Second {
			t.Errorf("took %v", took)
		}
		equal(t, "warnings", b.warnings(), []string{"model test:words: slow down; trying again in 30s"})
	})
}

// An error that is not about one document ends the build. What is done is there for the next one.
func TestFailureEndsTheBuild(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		code fault.Code
	}{
		{"authentication", &provider.Error{Kind: provider.Authentication, Msg: "wrong key"}, fault.Provider},
		{"network", &provider.Error{Kind: provider.Transient, Msg: "connection refused"}, fault.Provider},
		{"invalid", &provider.Error{Kind: provider.Invalid, Msg: "unknown model"}, fault.Provider},
		{"asks_for_an_hour", &provider.Error{Kind: provider.RateLimited, Msg: "quota", RetryAfter: time.Hour}, fault.Provider},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, numbered(50))
				b.model.answer = func(_ context.Context, req provider.EmbedRequest) error {
					if slices.Contains(req.Texts, "document number049") {
						return tt.err
					}
					return nil
				}
				_, err := b.Build(t.Context(), "base", b.store, b.set)
				if !errors.Is(err, tt.err) || fault.CodeOf(err) != tt.code || !strings.HasPrefix(err.Error(), "building the knowledge base base: model test:words: ") {
					t.Errorf("%v", err)
				}
				if hint := fault.HintOf(err); hint != "what is done is kept: run the same command again to continue" {
					t.Errorf("hint %q", hint)
				}
				if _, later := errors.AsType[*engine.LaterError](err); later != (tt.name == "asks_for_an_hour") {
					t.Errorf("%#v", err)
				}
				if f := b.finished(); f.Error != err.Error() || f.Added > 49 {
					t.Errorf("%+v", f)
				}
				if _, err := rag.Open(t.Context(), "base", b.store, b.Models); fault.CodeOf(err) != fault.NotFound {
					t.Errorf("a base that was not finished: %v", err)
				}
				done := b.finished().Added
				b.model.answer, b.model.requests = nil, nil
				b.build()
				started := eventtest.Bodies[event.IndexStarted](b.events)
				if f := b.finished(); !started[1].Resumed || f.Kept != done || f.Added != 50-done || len(b.model.texts()) != 50-done {
					t.Errorf("%+v after %d", f, done)
				}
			})
		})
	}
}

// A text that the model does not accept concerns its document only.
func TestRefusedText(t *testing.T) {
	b := newBench(t, numbered(20))
	b.write("007.txt", "document number007\n\nanother part of it, which is good")
	b.model.answer = func(_ context.Context, req provider.EmbedRequest) error {
		if slices.Contains(req.Texts, "document number007") {
			return &provider.Error{Kind: provider.ContextOverflow, Msg: "too long"}
		}
		return nil
	}
	stats := b.build()
	if f := b.finished(); stats.Files != 19 || f.Added != 19 || f.Failed != 1 {
		t.Errorf("%+v, %+v", stats, f)
	}
	equal(t, "warnings", b.warnings(), []string{
		`knowledge base base: DIR/007.txt (DIR): its part "document number007": model test:words: too long`,
	})
}

// What cannot be read stays as it was. What is gone goes.
func TestUnreadable(t *testing.T) {
	b := newBench(t, map[string]string{"dir/a.txt": "alpha", "b.txt": "beta", "c.txt": "gamma"})
	b.loader.Input.HTTP = &http.Client{Transport: site(func(*http.Request) (int, string) { return 200, "delta" })}
	b.set.Documents = []string{"dir", "b.txt", "c.txt", "https://site.test/page"}
	b.build()
	before := b.content()

	b.loader.Input.HTTP.Transport = site(func(*http.Request) (int, string) { return 500, "down" })
	b.write("c.txt", "\x00")
	b.build()
	equal(t, "content", b.content(), before)
	if f := b.finished(); f.Failed != 2 || f.Kept != 2 || f.Removed != 0 {
		t.Errorf("%+v", f)
	}
	for _, w := range b.warnings() { // says once what it is about
		if strings.Count(w, "c.txt")+strings.Count(w, "site.test/page") != 1 {
			t.Errorf("%q", w)
		}
	}
	if w := b.warnings(); len(w) != 2 || !strings.HasPrefix(w[0], "knowledge base base: DIR/c.txt is not text") || !strings.Contains(w[1], "https://site.test/page: ") {
		t.Errorf("%q", w)
	}

	if err := os.Remove(filepath.Join(b.dir, "b.txt")); err != nil {
		t.Fatal(err)
	}
	b.build()
	if f := b.finished(); f.Failed != 3 || f.Removed != 1 || f.Files != 3 {
		t.Errorf("%+v", f)
	}
}

// The documents that a source led to stay if it cannot be read to its end, whatever they are called.
// What was found in it before it failed is brought up to date all the same.
func TestUnreadSource(t *testing.T) {
	page := func(links ...string) string {
		body := "<p>text"
		for _, l := range links {
			body += "<a href=" + l + ">x</a>"
		}
		return body
	}
	pages := map[string]string{
		"/docs/": "-> /en/", "/en/": page("a.html", "hub/"), "/en/a.html": page(), "/en/hub/": page("x.html", "y.html"),
		"/en/hub/x.html": page(), "/en/hub/y.html": page(), "/other": page(),
	}
	down := make(map[string]int) // statuses by path
	serve := func(r *http.Request) *http.Response {
		w := httptest.NewRecorder()
		body, ok := pages[r.URL.Path]
		to, moved := strings.CutPrefix(body, "-> ")
		switch status := cmp.Or(down[r.URL.Path], down["all"]); {
		case status != 0:
			w.WriteHeader(status)
		case !ok:
			w.WriteHeader(http.StatusNotFound)
		case moved:
			http.Redirect(w, r, to, http.StatusFound)
		default:
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, body)
		}
		response := w.Result()
		response.Request = r
		return response
	}
	b := newBench(t, map[string]string{"loc/l.md": "local"})
	b.loader.Input.HTTP = &http.Client{Transport: transport(serve)}
	b.set.Documents = []string{"loc", "https://site.test/docs/**", "https://site.test/other"}
	want := func(what string, removed, failed int, paths ...string) {
		t.Helper()
		b.build()
		if f := b.finished(); f.Removed != removed || f.Failed != failed {
			t.Errorf("%s: %d removed, %d failed", what, f.Removed, f.Failed)
		}
		var got []string
		for _, f := range b.files() {
			got = append(got, strings.TrimPrefix(strings.TrimPrefix(f.Path, b.dir), "https://site.test"))
		}
		slices.Sort(got)
		equal(t, what, got, paths)
	}
	all := []string{"/en/", "/en/a.html", "/en/hub/", "/en/hub/x.html", "/en/hub/y.html", "/loc/l.md", "/other"}
	want("all", 0, 0, all...)
	down["all"] = 500
	want("down", 0, 2, all...)
	delete(down, "all")
	down["/en/hub/"] = 500
	want("a page is down", 0, 1, all...)
	delete(pages, "/en/a.html")
	want("another one is gone, which is not known for sure", 0, 1, all...)
	delete(down, "/en/hub/")
	all = slices.DeleteFunc(all, func(s string) bool { return s == "/en/a.html" })
	want("one is gone", 1, 0, all...)
	const note = "knowledge base base: https://site.test/docs/**: 1 page cannot be read, such as https://site.test/en/a.html (404 Not Found)"
	if w := b.warnings(); w[len(w)-1] != note {
		t.Errorf("warnings %q", w)
	}

	// A source that is removed takes its documents with it, unless they are those of another one as well.
	down["/docs/"] = 500
	b.set.Documents = []string{"loc", "https://site.test/en/hub/**", "https://site.test/docs/**"}
	want("another source", 1, 1, "/en/", "/en/hub/", "/en/hub/x.html", "/en/hub/y.html", "/loc/l.md")
	down["/en/hub/"] = 500
	b.set.Documents = []string{"loc", "https://site.test/en/hub/**"}
	want("without the site", 1, 1, "/en/hub/", "/en/hub/x.html", "/en/hub/y.html", "/loc/l.md")
	b.set.Documents = []string{"loc"}
	want("only files", 3, 0, "/loc/l.md")
}

// A password of a source is not that of its documents.
func TestSourceWithPassword(t *testing.T) {
	b := newBench(t, map[string]string{"a.txt": "alpha"})
	status := 200
	b.loader.Input.HTTP = &http.Client{Transport: site(func(*http.Request) (int, string) { return status, "delta" })}
	b.set.Documents = append(b.set.Documents, "https://me:secret@site.test/docs/**")
	for _, status = range []int{200, 500, 200} {
		b.build()
		if list := b.files(); len(list) != 2 || list[1].Source != "https://site.test/docs/**" {
			t.Errorf("%d: %+v", status, list)
		}
	}
	b.loader.Input.HTTP = &http.Client{Transport: site(func(*http.Request) (int, string) { return 200, " " })}
	b.build()
	if w := strings.Join(b.warnings(), "\n"); strings.Contains(w, "secret") || !strings.Contains(w, "there is no text at https://site.test/docs/**") {
		t.Error(w)
	}
}

// transport answers requests without a network.
type transport func(*http.Request) *http.Response

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// site answers requests without a network.
type site func(*http.Request) (status int, body string)

func (s site) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := s(r)
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Header: http.Header{"Content-Type": {"text/plain"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

func TestNothingToBuild(t *testing.T) {
	b := newBench(t, map[string]string{"a.txt": "alpha", "pic/image.png": "\x89PNG\x00"})
	b.build()
	before, empty := b.content(), b.TempDir()
	for _, tt := range []struct {
		name      string
		documents []string
		code      fault.Code
		want      string
	}{
		{"no_documents", nil, fault.Config, "building the knowledge base base: it lists no documents"},
		{"all_gone", []string{"x.txt", "y.txt"}, fault.NotFound, "building the knowledge base base: none of its documents could be read: "},
		{"empty_directory", []string{empty}, fault.NotFound, "building the knowledge base base: there are no documents at " + empty},
		{"pattern_without_a_match", []string{"*.md", "pic/**/*.md"}, fault.NotFound, "building the knowledge base base: there are no documents at " + b.dir + "/*.md, " + b.dir + "/pic/**/*.md"},
		{"no_text", []string{"pic"}, fault.NotFound, "building the knowledge base base: there is no text at " + b.dir + "/pic: 1 file was skipped"},
		{"empty_source", []string{" "}, fault.Failure, "building the knowledge base base: a source is empty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			set := b.set
			set.Documents = tt.documents
			_, err := b.Build(t.Context(), "base", b.store, set)
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) || fault.CodeOf(err) != tt.code {
				t.Errorf("%v, code %s", err, fault.CodeOf(err))
			}
			if tt.code == fault.NotFound && fault.HintOf(err) == "" {
				t.Errorf("%v has no hint", err)
			}
			equal(t, "content", b.content(), before)
		})
	}
}

// The last document of a base that is deleted is found no more. What cannot be read, or is below a directory that is gone, stays.
func TestLastDocument(t *testing.T) {
	for _, tt := range []struct {
		name, source string
		gone         func(dir string) error
		files        int
	}{
		{"directory", "d", func(dir string) error { return os.Remove(dir + "/d/a.txt") }, 0},
		{"pattern", "d/*.txt", func(dir string) error { return os.Rename(dir+"/d/a.txt", dir+"/d/a.rst") }, 0},
		{"file", "d/a.txt", func(dir string) error { return os.Remove(dir + "/d/a.txt") }, 0},
		{"only_a_picture_left", "d", func(dir string) error {
			return errors.Join(os.Remove(dir+"/d/a.txt"), os.WriteFile(dir+"/d/b.png", []byte("\x89PNG\x00"), 0o600))
		}, 0},
		{"no_directory", "d", func(dir string) error { return os.RemoveAll(dir + "/d") }, 1},
		{"file_without_directory", "d/a.txt", func(dir string) error { return os.RemoveAll(dir + "/d") }, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, map[string]string{"d/a.txt": "alpha"})
			b.set.Documents = []string{tt.source}
			b.build()
			if err := tt.gone(b.dir); err != nil {
				t.Fatal(err)
			}
			_, err := b.Build(t.Context(), "base", b.store, b.set)
			if stats := b.open().Stats(); stats.Files != tt.files || (err == nil) != (tt.files == 0) {
				t.Errorf("%d files, %v", stats.Files, err)
			}
		})
	}
}

func TestManyFailuresAreCounted(t *testing.T) {
	b := newBench(t, map[string]string{"a.txt": "alpha"})
	for i := range 30 {
		b.set.Documents = append(b.set.Documents, fmt.Sprintf("missing%d.txt", i))
	}
	b.build()
	if w := b.warnings(); len(w) != 21 || w[20] != "knowledge base base: 10 documents could not be read either" {
		t.Errorf("%q", w)
	}
}

func TestVectorsAreChecked(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, tt := range []struct {
		name    string
		vectors [][]float32
		want    string
	}{
		{"too_few", [][]float32{{1}}, "1 vectors for 2 texts"},
		{"lengths_differ", [][]float32{{1, 2}, {1}}, "vectors that are empty or differ in length"},
		{"empty", [][]float32{{}, {}}, "vectors that are empty or differ in length"},
		{"not_a_number", [][]float32{{1, 2}, {1, nan}}, "a vector with a number that is not finite"},
		{"infinite", [][]float32{{1, 2}, {1, inf}}, "a vector with a number that is not finite"},
		{"zero", [][]float32{{3, 4}, {0, 0}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, map[string]string{"a.txt": "alpha", "b.txt": "beta"})
			b.Models = oneModel{fixed(tt.vectors)}
			_, err := b.Build(t.Context(), "base", b.store, b.set)
			if tt.want != "" {
				if err == nil || !strings.HasSuffix(err.Error(), "model test:words: "+tt.want) || provider.KindOf(err) != provider.BadReply {
					t.Error(err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			chunks, err := b.open().Index().Chunks(t.Context(), []rag.ID{{File: 1}, {File: 2}}, true)
			if err != nil || !slices.Equal(chunks[0].Vector, []float32{0.6, 0.8}) || !slices.Equal(chunks[1].Vector, []float32{0, 0}) {
				t.Error(chunks, err)
			}
		})
	}
}

// fixed is a model that always answers the same.
type fixed [][]float32

func (f fixed) Embed(context.Context, provider.EmbedRequest) ([][]float32, chat.Usage, error) {
	return f, chat.Usage{}, nil
}

type oneModel struct{ model provider.Embedder }

func (m oneModel) Embedder(_ context.Context, id string) (rag.Embedder, error) {
	return rag.Embedder{ID: id, Embedder: m.model}, nil
}

func (m oneModel) Reranker(context.Context, string) (rag.Reranker, error) {
	return rag.Reranker{}, errors.New("there is no reranker")
}

// A model behind the same name that returns other vectors is noticed, before and during a build, and
// by searches.
func TestOtherDimensions(t *testing.T) {
	b := newBench(t, map[string]string{"a.txt": "alpha"})
	b.build()
	b.model.dimensions = 32
	b.write("b.txt", "beta")
	const want = "model test:words returned vectors of 32 numbers, and those in the knowledge base base have 64"
	if _, err := b.Build(t.Context(), "base", b.store, b.set); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Error(err)
	}
	if _, err := b.open().Search(t.Context(), rag.Query{Text: "alpha"}); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Error(err)
	}
}

// budget counts.
type budget struct {
	reserved, settled, open, calls int
	limit                          int
}

func (b *budget) Reserve(_ context.Context, _, most chat.Usage, bounded bool) (func(chat.Usage), error) {
	if !bounded || most.Cost != float64(most.InputTokens)/1000 || !most.Estimated {
		return nil, fmt.Errorf("an odd reservation of %+v", most)
	}
	if b.limit > 0 && b.reserved+most.InputTokens > b.limit {
		return nil, fault.New(fault.Limit, "the budget is used up").WithHint("raise --budget")
	}
	b.reserved += most.InputTokens
	b.calls++
	b.open++
	return func(used chat.Usage) { b.settled += used.InputTokens; b.open-- }, nil
}

func (b *budget) Spend(chat.Usage) {}

func TestBudget(t *testing.T) {
	b := newBench(t, map[string]string{"a.txt": "alpha beta"})
	var within budget
	b.Budget = &within
	b.build()
	if within != (budget{reserved: 3, settled: 10, calls: 1}) {
		t.Errorf("%+v", within)
	}
	b.write("b.txt", "gamma")
	b.Budget = &budget{limit: 1}
	_, err := b.Build(t.Context(), "base", b.store, b.set)
	if fault.CodeOf(err) != fault.Limit || fault.HintOf(err) != "raise --budget; what is done is kept: run the same command again to continue" {
		t.Errorf("%v, hint %q", err, fault.HintOf(err))
	}
}

func TestCanceledBuild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, numbered(100))
		b.batch(10)
		ctx, cancel := context.WithCancel(t.Context())
		b.model.answer = func(ctx context.Context, req provider.EmbedRequest) error {
			if slices.Contains(req.Texts, "document number045") {
				cancel()
				return retry.Sleep(ctx, time.Hour)
			}
			return nil
		}
		_, err := b.Build(ctx, "base", b.store, b.set)
		if fault.CodeOf(err) != fault.Canceled {
			t.Error(err)
		}
		first := b.finished()
		b.model.answer = nil
		stats := b.build()
		if f := b.finished(); first.Error == "" || stats.Files != 100 || f.Kept != first.Added || f.Added != 100-first.Added {
			t.Errorf("%+v, then %+v", first, f)
		}
	})
}

// slow is a store whose builds count flushes and vectors that are remembered.
type slow struct {
	*memstore.Store
	flushed    []time.Time
	remembered int
}

func (s *slow) Build(ctx context.Context, set rag.Settings) (rag.Build, error) {
	b, err := s.Store.Build(ctx, set)
	return slowBuild{b, s}, err
}

type slowBuild struct {
	rag.Build
	s *slow
}

func (b slowBuild) Remember(ctx context.Context, chunks []rag.Chunk) error {
	b.s.remembered += len(chunks)
	return b.Build.Remember(ctx, chunks)
}

func (b slowBuild) Flush(ctx context.Context) error {
	b.s.flushed = append(b.s.flushed, time.Now())
	return b.Build.Flush(ctx)
}

// A build whose vectors are quick and cost nothing is flushed every three seconds. What is slow or
// costs money is safe as soon as it is there.
func TestFlush(t *testing.T) {
	for _, tt := range []struct {
		name        string
		took        time.Duration
		price       float64 // of a token
		least, most int
	}{
		{"quick", 100 * time.Millisecond, 0, 4, 5},
		{"slow", 300 * time.Millisecond, 0, 150, 600},
		{"paid", 100 * time.Millisecond, 0.01, 150, 600},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, numbered(600))
				b.Models = models{b.model, rag.Embedder{MaxBatch: 1, Cost: func(u chat.Usage) chat.Usage { u.Cost = tt.price * float64(u.InputTokens); return u }}}
				b.model.answer = func(ctx context.Context, _ provider.EmbedRequest) error { return retry.Sleep(ctx, tt.took) }
				s := &slow{Store: b.store}
				if _, err := b.Build(t.Context(), "base", s, b.set); err != nil {
					t.Fatal(err)
				}
				if n := len(s.flushed); n < tt.least || n > tt.most {
					t.Errorf("%d flushes", n)
				}
			})
		})
	}
}

// A build of a minute reports at most five times a second how far it has come.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, numbered(600))
		b.batch(1)
		b.model.answer = func(ctx context.Context, _ provider.EmbedRequest) error {
			return retry.Sleep(ctx, 400*time.Millisecond)
		}
		begin := time.Now()
		b.build()
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("took %v", took)
		}
		list := eventtest.Bodies[event.IndexProgress](b.events)
		if n := len(list); n < 140 || n > 302 {
			t.Errorf("%d events of progress", n)
		}
		p := list[len(list)/2]
		if p.Total != 600 || p.Chunks < p.Done || p.Chunks > p.Done+4 || p.Usage.InputTokens == 0 || (p.Elapsed+p.Left-time.Minute).Abs() > time.Second {
			t.Errorf("halfway: %+v, elapsed %v, left %v", p, p.Elapsed, p.Left)
		}
		if last := list[len(list)-1]; last.Done != 600 || last.Left != 0 {
			t.Errorf("at the end: %+v", last)
		}
	})
}

// The documents that wait to be embedded do not pile up.
func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var read atomic.Int64
		b := newBench(t, nil)
		page := strings.Repeat(strings.Repeat("x", 1000)+"\n\n", 1<<10)
		b.loader.Input.HTTP = &http.Client{Transport: site(func(*http.Request) (int, string) { read.Add(int64(len(page))); return 200, page })}
		b.set.Documents = nil
		for i := range 100 {
			b.set.Documents = append(b.set.Documents, fmt.Sprintf("https://site.test/%d", i))
		}
		b.set.ChunkSize = 100_000
		b.batch(2)
		ctx, cancel := context.WithCancel(t.Context())
		b.model.answer = func(ctx context.Context, _ provider.EmbedRequest) error { return retry.Sleep(ctx, time.Hour) }
		done := make(chan error)
		go func() {
			_, err := b.Build(ctx, "base", b.store, b.set)
			done <- err
		}()
		synctest.Wait()
		if read.Load() > 30<<20 {
			t.Errorf("%d MiB were read ahead", read.Load()>>20)
		}
		cancel()
		if err := <-done; fault.CodeOf(err) != fault.Canceled {
			t.Error(err)
		}
	})
}

// Documents that are found twice are in the base once, under the name of the first source.
func TestOverlappingSources(t *testing.T) {
	b := newBench(t, map[string]string{"dir/a.txt": "alpha", "dir/b.txt": "beta"})
	b.set.Documents = []string{"dir/b.txt", "dir", "./dir/b.txt", b.dir}
	b.build()
	equal(t, "content", b.content(), []string{"1-0 dir/b.txt:1-1 beta", "2-0 dir/a.txt:1-1 alpha"})
	stats := b.open().Stats()
	equal(t, "sources", stats.Settings.Documents, []string{filepath.Join(b.dir, "dir/b.txt"), filepath.Join(b.dir, "dir"), b.dir})
}

func TestBuildChecksSettings(t *testing.T) {
	b := newBench(t, map[string]string{"a.txt": "alpha"})
	b.set.ChunkOverlap = 40
	if _, err := b.Build(t.Context(), "base", b.store, b.set); fault.CodeOf(err) != fault.Config {
		t.Error(err)
	}
	if len(b.events.Events()) > 0 {
		t.Error("a build that did not begin emitted events")
	}
}

// Requests that fail side by side in the same way are one warning.
func TestOneWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, numbered(80))
		failed := make(map[string]bool)
		b.model.answer = func(_ context.Context, req provider.EmbedRequest) error {
			b.model.mu.Lock()
			defer b.model.mu.Unlock()
			if failed[req.Texts[0]] {
				return nil
			}
			failed[req.Texts[0]] = true
			return &provider.Error{Kind: provider.Transient, Msg: "overloaded"}
		}
		b.build()
		equal(t, "warnings", b.warnings(), []string{"model test:words: overloaded; trying again in 1s"})
	})
}

// A model whose vectors are zeros turns off half of each search: a build says so once.
func TestZeros(t *testing.T) {
	b := newBench(t, numbered(80))
	b.model.zeros = true
	b.build()
	warning := "knowledge base base: all vectors of test:words are zeros, so what was embedded now is found by its words only"
	equal(t, "warnings", b.warnings(), []string{warning})
	b.build()
	b.model.zeros = false
	b.write("new.txt", "one more")
	b.build()
	equal(t, "warnings", b.warnings(), []string{warning})
}

// A model that fails now and then does not end a build. One that is out of reach does, as do ten
// failures of the same request.
func TestModelThatFailsNowAndThen(t *testing.T) {
	every := func(k int) func(int, provider.EmbedRequest) bool {
		return func(n int, _ provider.EmbedRequest) bool { return n%k == 0 }
	}
	poisoned := func(_ int, req provider.EmbedRequest) bool { return slices.Contains(req.Texts, "document number007") }
	for _, tt := range []struct {
		name     string
		files    int
		attempts int
		took     time.Duration // a request that works
		fails    func(n int, req provider.EmbedRequest) bool
		works    bool
		tries    int           // of the first batch, if the build fails
		within   time.Duration // if the build fails
	}{
		{name: "every_third", files: 200, attempts: 2, took: time.Second, fails: every(3), works: true},
		{name: "every_third_at_once", files: 200, attempts: 2, fails: every(3), works: true},
		{name: "every_third_of_one_batch", files: 5, attempts: 2, fails: every(3), works: true},
		{name: "every_second", files: 200, attempts: 2, took: time.Second, fails: every(2), works: true},
		{name: "every_second_at_once", files: 200, attempts: 2, fails: every(2), works: true},
		{name: "all", files: 200, attempts: 2, fails: every(1), tries: 2, within: time.Second},
		{name: "all_of_five_tries", files: 200, attempts: 5, fails: every(1), tries: 5, within: 15 * time.Second},
		{name: "all_of_one_try", files: 200, attempts: 1, fails: every(1)},
		{name: "all_of_one_batch", files: 5, attempts: 2, fails: every(1), tries: 2, within: time.Second},
		{name: "all_after_some", files: 200, attempts: 2, fails: func(n int, _ provider.EmbedRequest) bool { return n > 10 }, within: 3 * time.Second},
		{name: "one_batch", files: 1000, attempts: 2, took: 10 * time.Second, fails: poisoned, tries: 10, within: 5 * time.Minute},
		{name: "one_batch_of_few", files: 50, attempts: 2, took: time.Minute, fails: poisoned, tries: 6, within: 3 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, numbered(tt.files))
				b.Retry.Attempts = tt.attempts
				b.batch(10)
				b.set.ChunkSize = 1000
				n, tries := 0, 0
				b.model.answer = func(ctx context.Context, req provider.EmbedRequest) error {
					b.model.mu.Lock()
					n++
					if slices.Contains(req.Texts, "document number001") {
						tries++
					}
					fails := tt.fails(n, req)
					b.model.mu.Unlock()
					if fails {
						return &provider.Error{Kind: provider.Transient, Msg: "hiccups"}
					}
					return retry.Sleep(ctx, tt.took)
				}
				begin := time.Now()
				stats, err := b.Build(t.Context(), "base", b.store, b.set)
				if tt.works {
					if err != nil || stats.Files != tt.files {
						t.Errorf("%d files, %v", stats.Files, err)
					}
					return
				}
				if err == nil || !strings.HasSuffix(err.Error(), "model test:words: hiccups") || fault.HintOf(err) == "" {
					t.Errorf("%v, hint %q", err, fault.HintOf(err))
				}
				if took := time.Since(begin); took > tt.within {
					t.Errorf("took %v", took)
				}
				if tt.tries > 0 && tries != tt.tries {
					t.Errorf("%d tries", tries)
				}
			})
		})
	}
}

// A request that is refused for its text is an answer too: others that were stuck go on.
func TestRefusalFreesWhatIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, numbered(2))
		b.batch(1)
		n := 0
		b.model.answer = func(ctx context.Context, req provider.EmbedRequest) error {
			if slices.Contains(req.Texts, "document number001") {
				_ = retry.Sleep(ctx, time.Minute)
				return &provider.Error{Kind: provider.Refused, Msg: "no"}
			}
			if n++; n <= 2 {
				return &provider.Error{Kind: provider.Transient, Msg: "hiccups"}
			}
			return nil
		}
		if stats := b.build(); stats.Files != 1 || n != 3 {
			t.Errorf("%+v after %d tries", stats, n)
		}
	})
}

// What was embedded before a build failed is kept, also behind a document that lacks vectors.
func TestWhatIsEmbeddedIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, numbered(100))
		b.batch(10)
		b.model.answer = func(ctx context.Context, req provider.EmbedRequest) error {
			if slices.Contains(req.Texts, "document number001") {
				_ = retry.Sleep(ctx, time.Minute)
				return &provider.Error{Kind: provider.Authentication, Msg: "expired"}
			}
			return nil
		}
		if _, err := b.Build(t.Context(), "base", b.store, b.set); err == nil {
			t.Fatal("the build has not failed")
		}
		if f := b.finished(); f.Added != 90 {
			t.Errorf("%+v", f)
		}
	})
}

// limited is a budget of tokens, as they are estimated.
type limited struct {
	mu   sync.Mutex
	left int
}

func (l *limited) Reserve(_ context.Context, _, most chat.Usage, _ bool) (func(chat.Usage), error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left -= most.InputTokens; l.left < 0 {
		return nil, fault.New(fault.Limit, "the budget is used up")
	}
	return func(chat.Usage) {}, nil
}

func (l *limited) Spend(chat.Usage) {}

// Builds that a budget ends, however small their documents are or large, send no text twice.
func TestNoTextIsPaidForTwice(t *testing.T) {
	for _, kind := range []string{"a_large_document", "small_documents", "both"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				files := make(map[string]string)
				want := 0
				if kind != "small_documents" {
					for i := range 200 {
						files["000.txt"] += fmt.Sprintf("paragraph number%03d of a long document\n\n", i)
					}
					want += 200
				}
				if kind != "a_large_document" {
					for name, text := range numbered(100) {
						files["small"+name] = text
					}
					want += 100
				}
				b := newBench(t, files)
				b.batch(7)
				b.model.answer = func(ctx context.Context, req provider.EmbedRequest) error {
					return retry.Sleep(ctx, time.Duration(1+len(req.Texts[0])%5)*time.Second)
				}
				builds := 0
				for ; ; builds++ {
					b.Budget = &limited{left: 300}
					_, err := b.Build(t.Context(), "base", b.store, b.set)
					if err == nil {
						break
					}
					if fault.CodeOf(err) != fault.Limit || builds > 20 {
						t.Fatal(err)
					}
				}
				texts := b.model.texts()
				if n := len(texts); n != want || len(slices.Compact(texts)) != want || builds < 1 {
					t.Errorf("%d texts were sent in %d builds, %d of them different", n, 1+builds, len(slices.Compact(texts)))
				}
			})
		})
	}
}

// A build that is killed has kept the vectors that cost something or took long.
func TestRememberedBeforeTheEnd(t *testing.T) {
	for _, tt := range []struct {
		name string
		free bool
		took time.Duration
		want bool
	}{
		{"paid", false, 0, true},
		{"slow", true, time.Second, true},
		{"free", true, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, map[string]string{"a.txt": strings.Repeat("paragraph of a long document\n\n", 100)})
				b.batch(10)
				if tt.free {
					b.Models = models{b.model, rag.Embedder{Cost: func(u chat.Usage) chat.Usage { return u }}}
				}
				s := &slow{Store: b.store}
				b.model.answer = func(ctx context.Context, _ provider.EmbedRequest) error {
					return retry.Sleep(ctx, tt.took)
				}
				if _, err := b.Build(t.Context(), "base", s, b.set); err != nil {
					t.Fatal(err)
				}
				if (s.remembered > 0) != tt.want || len(s.flushed) == 0 && tt.want {
					t.Errorf("%d vectors remembered, %d flushes", s.remembered, len(s.flushed))
				}
			})
		})
	}
}

// A source without documents, beside others that have some, is a warning.
func TestEmptySources(t *testing.T) {
	b := newBench(t, map[string]string{"a.txt": "alpha", "pic/one.png": "\x89PNG\x00", "pic/two.png": "\x89PNG\x00"})
	b.set.Documents = []string{"a.txt", "pic", "pic/*.md", "*.txt", "missing"} // *.txt has what is there already
	b.build()
	equal(t, "warnings", b.warnings()[1:], []string{
		"knowledge base base: there is no text at DIR/pic: 2 files were skipped",
		"knowledge base base: there are no documents at DIR/pic/*.md",
	})
	equal(t, "content", b.content(), []string{"1-0 a.txt:1-1 alpha"})
	b.build()
	if w := b.warnings(); len(w) != 6 {
		t.Errorf("%q", w)
	}
}

// The progress of a single document continues with its chunks, and skipped files are named.
func TestProgressOfOneDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, map[string]string{"a.txt": strings.Repeat("alpha beta\n\n", 100), "0.bin": "x\x00y"})
		b.set.ChunkSize = 20
		b.batch(1)
		b.model.answer = func(ctx context.Context, _ provider.EmbedRequest) error {
			return retry.Sleep(ctx, 400*time.Millisecond)
		}
		b.build()
		list := eventtest.Bodies[event.IndexProgress](b.events)
		last, known := 0, 0
		for _, p := range list {
			if p.Chunks < last {
				t.Errorf("%d chunks after %d", p.Chunks, last)
			}
			if last = p.Chunks; p.Left > 0 {
				known++
			}
		}
		if len(list) < 10 || last != 100 || known < 5 {
			t.Errorf("%d events, %d chunks, %d with the time left", len(list), last, known)
		}
		done := eventtest.Bodies[event.IndexFinished](b.events)[0]
		if len(done.PassedOver) != 1 || filepath.Base(done.PassedOver[0]) != "0.bin" {
			t.Errorf("skipped: %q", done.PassedOver)
		}
	})
}
