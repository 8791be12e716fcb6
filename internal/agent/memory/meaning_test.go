package memory_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"loki/internal/agent/memory"
	"loki/internal/knowledge/rag"
	"loki/internal/knowledge/rag/sqlite"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
)

// concepts is an embedding model that knows some words by what they mean. It counts the texts of facts and of questions.
type concepts struct {
	mu               sync.Mutex
	facts, questions int // guarded by mu while it is asked
	fails            bool
}

func (c *concepts) Embedder(_ context.Context, id string) (rag.Embedder, error) {
	return rag.Embedder{ID: id, Name: "concepts", Embedder: c}, nil
}

func (c *concepts) Reranker(context.Context, string) (rag.Reranker, error) {
	return rag.Reranker{}, errors.New("there is none")
}

func (c *concepts) Embed(_ context.Context, req provider.EmbedRequest) ([][]float32, chat.Usage, error) {
	if c.fails {
		return nil, chat.Usage{}, &provider.Error{Kind: provider.BadReply, Msg: "out of order"}
	}
	var vectors [][]float32
	for _, text := range req.Texts {
		v := make([]float32, 3)
		for i, words := range []string{"boat vessel ship", "port socket", "color blue paint"} {
			for word := range strings.FieldsSeq(words) {
				if strings.Contains(text, word) {
					v[i]++
				}
			}
		}
		vectors = append(vectors, v)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if req.Query {
		c.questions += len(req.Texts)
	} else {
		c.facts += len(req.Texts)
	}
	return vectors, chat.Usage{}, nil
}

// meaningful returns a store in dir whose facts are found with a model, "" for none, and the warnings of the store.
func meaningful(dir, model string, c *concepts) (s *memory.Store, warned *[]string) {
	s, warned = memory.NewStore(filepath.Join(dir, "memory")), new([]string)
	s.Warn = func(_ context.Context, text string) { *warned = append(*warned, text) }
	s.Meaning = meaning(dir, model, c)
	return s, warned
}

func meaning(dir, model string, c *concepts) *memory.Meaning {
	return &memory.Meaning{Models: c, Base: sqlite.New(filepath.Join(dir, "cache", "user.db")), Settings: func() (string, float64) { return model, 0.3 }}
}

func TestRecallByMeaning(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), new(concepts)
	s, _ := meaningful(dir, "test:concepts", c)
	p := memory.Place{Workspace: "here"}
	save(t, s, p, memory.Fact{Text: "Answer in French.", Pinned: true})
	save(t, s, p, memory.Fact{Text: "All boats are in the yard."})
	save(t, s, p, memory.Fact{Text: "The socket is 8080.", Scope: memory.Workspace})
	save(t, s, memory.Place{Workspace: "elsewhere"}, memory.Fact{Text: "A ship is sold.", Scope: memory.Workspace})
	for question, want := range map[string]string{
		"where is my vessel?":            "Answer in French. All boats are in the yard.",
		"which port, and where are they": "Answer in French. The socket is 8080.",
		"a yard for the vessel":          "Answer in French. All boats are in the yard.",
		"what about trains?":             "Answer in French.",
	} {
		var got []string
		for _, f := range s.Recall(t.Context(), p, question, 1000).Facts {
			got = append(got, f.Text)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q", question, got)
		}
	}
	if found := s.Search(t.Context(), p, memory.Workspace, "vessel port", 5); len(found) != 1 || found[0].Text != "The socket is 8080." {
		t.Errorf("in one scope: %+v", found)
	}
	without, _ := meaningful(dir, "", &concepts{fails: true})
	if r := without.Recall(t.Context(), p, "where is my vessel?", 1000); len(r.Facts) != 1 {
		t.Errorf("without a model: %+v", r.Facts)
	}
}

// TestOnlyNewFactsAreEmbedded: also by a process that starts later.
func TestOnlyNewFactsAreEmbedded(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), new(concepts)
	s, _ := meaningful(dir, "test:concepts", c)
	p := memory.Place{}
	for i := range 20 {
		save(t, s, p, memory.Fact{Text: fmt.Sprintf("boat %s", words("m", i))})
	}
	asked := 0
	for _, step := range []struct {
		name  string
		do    func(*memory.Store)
		facts int
	}{
		{"first", func(*memory.Store) {}, 20},
		{"unchanged", func(*memory.Store) {}, 0},
		{"one_more", func(s *memory.Store) { save(t, s, p, memory.Fact{Text: "The ship is new."}) }, 1},
		{"pinned", func(s *memory.Store) {
			f := s.Search(t.Context(), p, "", "ship", 1)[0]
			asked++
			if _, err := s.Change(t.Context(), p, f.ID, "", func(f *memory.Fact) { f.Pinned = true }); err != nil {
				t.Error(err)
			}
		}, 0},
		{"forgotten", func(s *memory.Store) {
			if _, err := s.Forget(t.Context(), p, s.List(t.Context(), p, false)[0].ID); err != nil {
				t.Error(err)
			}
		}, 0},
	} {
		s, warned := meaningful(dir, "test:concepts", c)
		step.do(s)
		c.facts = 0
		asked++
		if r := s.Recall(t.Context(), p, "vessel", 8000); len(r.Facts) < 5 || c.facts != step.facts || c.questions != asked || len(*warned) > 0 {
			t.Errorf("%s: %d recalled, %d embedded, %d of %d questions, %q", step.name, len(r.Facts), c.facts, c.questions, asked, *warned)
		}
	}
}

// TestFailingModel: facts are found by words then, with one warning, and by meaning once the model works.
func TestFailingModel(t *testing.T) {
	t.Parallel()
	c := &concepts{fails: true}
	s, warned := meaningful(t.TempDir(), "test:concepts", c)
	day := clock("2026-05-01")()
	s.Now = func() time.Time { return day }
	save(t, s, memory.Place{}, memory.Fact{Text: "All boats are in the yard."})
	for range 3 {
		if r := s.Recall(t.Context(), memory.Place{}, "boats", 1000); len(r.Facts) != 1 {
			t.Errorf("by words: %+v", r.Facts)
		}
		day = day.Add(2 * time.Minute)
	}
	if len(*warned) != 1 || !strings.Contains((*warned)[0], "by words only") || !strings.Contains((*warned)[0], "out of order") {
		t.Errorf("warnings %q", *warned)
	}
	c.fails = false
	if r := s.Recall(t.Context(), memory.Place{}, "vessel", 1000); len(r.Facts) != 1 {
		t.Errorf("by meaning: %+v", r.Facts)
	}
}

// TestRecallOfMany: a question costs ten times as much of ten times as many facts, and what was read for the one before is not read again.
func TestRecallOfMany(t *testing.T) {
	costs := func(n int) (first, again float64) {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, "user"), 0o700); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			f := memory.Fact{ID: fmt.Sprintf("%06x", i), Title: "x", Text: words("r", i) + "deploy", By: memory.ByUser}
			if err := os.WriteFile(filepath.Join(dir, "user", f.ID+".md"), f.Encode(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := memory.NewStore(dir)
		recall := func() {
			if r := s.Recall(t.Context(), memory.Place{}, "deploy", 1000); len(r.Facts) == 0 {
				t.Error("nothing is recalled")
			}
		}
		first = testing.AllocsPerRun(1, func() { s = memory.NewStore(dir); recall() })
		return first, testing.AllocsPerRun(3, recall)
	}
	few, fewAgain := costs(memory.MaxFacts / 10)
	many, manyAgain := costs(memory.MaxFacts)
	if many > 12*few || manyAgain > 12*fewAgain || manyAgain > many/3 {
		t.Errorf("allocations of 50 facts: %v, then %v; of 500: %v, then %v", few, fewAgain, many, manyAgain)
	}
	t.Logf("allocations of 50 facts: %v, then %v; of 500: %v, then %v", few, fewAgain, many, manyAgain)
}
