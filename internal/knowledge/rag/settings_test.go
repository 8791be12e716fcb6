package rag_test

import (
	"context"
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"loki/internal/base/fault"
	"loki/internal/knowledge/rag"
)

func TestDefaults(t *testing.T) {
	if got := rag.Defaults(rag.Embedder{ID: "a:b"}); !reflect.DeepEqual(got, rag.Settings{EmbeddingModel: "a:b", ChunkSize: 2000, ChunkOverlap: 100, TopK: 5}) {
		t.Errorf("%+v", got)
	}
	if got := rag.Defaults(rag.Embedder{ChunkSize: 500}); got.ChunkSize != 500 || got.ChunkOverlap != 25 {
		t.Errorf("%+v", got)
	}
}

func TestValidate(t *testing.T) {
	valid := rag.Settings{EmbeddingModel: "a:b", ChunkSize: 100, ChunkOverlap: 5, TopK: 5}
	if err := valid.Validate(); err != nil {
		t.Error(err)
	}
	for _, tt := range []struct {
		want   string
		change func(*rag.Settings)
	}{
		{"embedding_model is missing", func(s *rag.Settings) { s.EmbeddingModel = "" }},
		{"chunk_size must be at least 1 character, not 0", func(s *rag.Settings) { s.ChunkSize = 0 }},
		{"chunk_overlap must not be negative, it is -1", func(s *rag.Settings) { s.ChunkOverlap = -1 }},
		{"chunk_overlap (100) must be less than chunk_size (100)", func(s *rag.Settings) { s.ChunkOverlap = 100 }},
		{"top_k must be at least 1, not 0", func(s *rag.Settings) { s.TopK = 0 }},
		{"threshold must be from 0 to 1, not 1.5", func(s *rag.Settings) { s.Threshold = 1.5 }},
		{"threshold must be from 0 to 1, not NaN", func(s *rag.Settings) { s.Threshold = math.NaN() }},
	} {
		s := valid
		tt.change(&s)
		if err := s.Validate(); err == nil || err.Error() != tt.want || fault.CodeOf(err) != fault.Config {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}

// known are models: "short" is short for one, "nope" is none, and another one stands in for "away:model".
type known struct{}

func (known) Embedder(_ context.Context, id string) (rag.Embedder, error) {
	switch id {
	case "nope":
		return rag.Embedder{}, fault.New(fault.NotFound, "there is no embedding model %q", id)
	case "":
		id = "own:model"
	case "short":
		id = "short:model"
	case "wide:model":
		return rag.Embedder{ID: id, ChunkSize: 800}, nil
	case "away:model":
		return rag.Embedder{ID: "own:model", StandsIn: true}, nil
	}
	return rag.Embedder{ID: id}, nil
}

func (known) Reranker(_ context.Context, id string) (rag.Reranker, error) {
	switch id {
	case "nope":
		return rag.Reranker{}, fault.New(fault.NotFound, "there is no reranker %q", id)
	case "short":
		id = "short:judge"
	}
	return rag.Reranker{ID: id}, nil
}

// changed returns s with a change, or the first error.
func changed(t *testing.T, s rag.Settings, models rag.Models, pairs string) (rag.Settings, error) {
	t.Helper()
	c, err := rag.ParseChange(pairs)
	if err != nil {
		return rag.Settings{}, err
	}
	return s.Set(t.Context(), models, c)
}

// TestChangeOfNew has what is said of a knowledge base before the rest of its settings is known.
func TestChangeOfNew(t *testing.T) {
	c, err := rag.ParseChange("threshold=0,top_k=,chunk_size=300,embedding_model=null")
	if err != nil {
		t.Fatal(err)
	}
	said, rest := c.New()
	if want := (rag.Settings{ChunkSize: 300, ChunkOverlap: -1}); !reflect.DeepEqual(said, want) {
		t.Errorf("said %+v", said)
	}
	completed := rag.Settings{EmbeddingModel: "a:b", ChunkSize: 300, ChunkOverlap: 15, TopK: 9, Threshold: 0.5}
	want := completed
	want.Threshold = 0
	if got, err := completed.Set(t.Context(), known{}, rest); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := completed.Set(t.Context(), known{}, rag.Change{}); err != nil || !reflect.DeepEqual(got, completed) {
		t.Errorf("no change: %+v, %v", got, err)
	}
}

func TestSet(t *testing.T) {
	base := rag.Settings{EmbeddingModel: "a:b", ChunkSize: 1000, ChunkOverlap: 50, TopK: 7, Threshold: 0.5, RerankerModel: "r:r"}
	with := func(change func(*rag.Settings)) rag.Settings {
		s := base
		change(&s)
		return s
	}
	for _, tt := range []struct {
		pairs string
		want  rag.Settings
	}{
		{"top_k=8", with(func(s *rag.Settings) { s.TopK = 8 })},
		{" top_k = 8 , threshold=0.25", with(func(s *rag.Settings) { s.TopK, s.Threshold = 8, 0.25 })},
		{"embedding_model=c:d/e=f", with(func(s *rag.Settings) { s.EmbeddingModel = "c:d/e=f" })},
		{"reranker_model=null,top_k=,threshold=null", with(func(s *rag.Settings) { s.RerankerModel, s.TopK, s.Threshold = "", 5, 0 })},
		{"chunk_size=200", with(func(s *rag.Settings) { s.ChunkSize, s.ChunkOverlap = 200, 10 })},
		{"chunk_overlap=20,chunk_size=200", with(func(s *rag.Settings) { s.ChunkSize, s.ChunkOverlap = 200, 20 })},
		{"chunk_size=", with(func(s *rag.Settings) { s.ChunkSize, s.ChunkOverlap = 2000, 100 })},
		{"chunk_size=,embedding_model=wide:model", with(func(s *rag.Settings) { s.EmbeddingModel, s.ChunkSize, s.ChunkOverlap = "wide:model", 800, 40 })},
		{"chunk_size=,chunk_size=100", with(func(s *rag.Settings) { s.ChunkSize, s.ChunkOverlap = 100, 5 })},
		{"chunk_overlap=null", base},
		{"chunk_overlap=,chunk_size=200", with(func(s *rag.Settings) { s.ChunkSize, s.ChunkOverlap = 200, 10 })},
		{"chunk_overlap=,chunk_overlap=7", with(func(s *rag.Settings) { s.ChunkOverlap = 7 })},
		{"embedding_model=", with(func(s *rag.Settings) { s.EmbeddingModel = "own:model" })},
		{"embedding_model=short,reranker_model=short", with(func(s *rag.Settings) { s.EmbeddingModel, s.RerankerModel = "short:model", "short:judge" })},
		{"embedding_model=away:model", with(func(s *rag.Settings) { s.EmbeddingModel = "away:model" })},
		{"chunk_overlap=0", with(func(s *rag.Settings) { s.ChunkOverlap = 0 })},
		{"chunker=markdown,quantization=int8,batch_size=x,neighbors=1,diversity=.3,top_k=8", with(func(s *rag.Settings) { s.TopK = 8 })}, // of older versions
	} {
		if got, err := changed(t, base, known{}, tt.pairs); err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, %v", tt.pairs, got, err)
		}
	}
	own := with(func(s *rag.Settings) { s.ChunkOverlap = 60 })
	if got, err := changed(t, own, known{}, "chunk_size=500"); err != nil || got.ChunkOverlap != 60 {
		t.Errorf("an overlap of the user: %+v, %v", got, err)
	}
	for _, tt := range []struct {
		pairs, want, hint string
		code              fault.Code
	}{
		{"topk=8", `there is no setting "topk" of a knowledge base`, "did you mean top_k?", fault.Usage},
		{"documents=x", `there is no setting "documents" of a knowledge base`, "the settings are embedding_model, chunk_size, chunk_overlap, top_k, reranker_model, threshold", fault.Usage},
		{"top_k", `"top_k" is not a setting`, "write KEY=VALUE, such as top_k=8", fault.Usage},
		{"", `"" is not a setting`, "write KEY=VALUE, such as top_k=8", fault.Usage},
		{"top_k=many", `top_k: "many" is not a whole number`, "", fault.Usage},
		{"threshold=Inf", `threshold: "Inf" is not a number`, "", fault.Usage},
		{"top_k=5,chunk_size=99", "chunk_size must be at least 100 characters, not 99", "", fault.Usage},
		{"chunk_size=-1", "chunk_size must be at least 100 characters, not -1", "", fault.Usage},
		{"reranker_model=nope", `there is no reranker "nope"`, "", fault.NotFound},
		{"embedding_model=nope", `there is no embedding model "nope"`, "", fault.NotFound},
		{"top_k=0", "top_k must be at least 1, not 0", "", fault.Config},
		{"chunk_overlap=1000", "chunk_overlap (1000) must be less than chunk_size (1000)", "5 % of the size is usual: chunk_overlap=50", fault.Config},
	} {
		if _, err := changed(t, base, known{}, tt.pairs); err == nil || err.Error() != tt.want || fault.HintOf(err) != tt.hint || fault.CodeOf(err) != tt.code {
			t.Errorf("%s: %v, hint %q, code %s", tt.pairs, err, fault.HintOf(err), fault.CodeOf(err))
		}
	}
}

func TestSameChunks(t *testing.T) {
	base := rag.Settings{EmbeddingModel: "a:b", ChunkSize: 100, ChunkOverlap: 5, TopK: 5}
	for pairs, want := range map[string]bool{
		"top_k=9,reranker_model=x,threshold=.1": true,
		"embedding_model=c:d":                   false, "chunk_size=110,chunk_overlap=5": false, "chunk_overlap=6": false,
	} {
		if other, err := changed(t, base, known{}, pairs); err != nil || base.SameChunks(other) != want {
			t.Errorf("%s: %v, %v", pairs, !want, err)
		}
	}
}

func TestSettingsInJSON(t *testing.T) {
	s := rag.Settings{EmbeddingModel: "a:b", ChunkSize: 100, ChunkOverlap: 5, TopK: 5, Documents: []string{"/docs"}}
	data, err := json.Marshal(s)
	const want = `{"embedding_model":"a:b","chunk_size":100,"chunk_overlap":5,"top_k":5,"documents":["/docs"]}`
	const old = `{"embedding_model":"a:b","chunk_size":100,"chunk_overlap":5,"chunker":"markdown","quantization":"int8","batch_size":3,"top_k":5,"neighbors":1,"diversity":0.5,"documents":["/docs"]}`
	if err != nil || string(data) != want {
		t.Errorf("%s, %v", data, err)
	}
	for _, text := range []string{want, old} {
		var back rag.Settings
		if err := json.Unmarshal([]byte(text), &back); err != nil || !reflect.DeepEqual(back, s) {
			t.Errorf("%s: %+v, %v", text, back, err)
		}
	}
}
