package rag

import (
	"context"
	"errors"
	"time"

	"loki/internal/engine"
	"loki/internal/retry"
)

// Question is a question of an evaluation, with the sources that hold its answer: "path", or
// "path:12-40" for lines of it. A path may be the end of a longer one, from a separator on.
type Question struct {
	Question string   `json:"question"`
	Sources  []string `json:"sources"`
}

// ReadQuestions reads questions, one JSON object a line; blank lines and unknown members do not
// count. file is the name for messages. The error has code Usage and names the line.
func ReadQuestions(file string, data []byte) ([]Question, error) {
	return nil, errors.New("not implemented")
}

// EvalOptions say what [Evaluate] compares.
type EvalOptions struct {
	Variants []Variant        // of settings; none means those of the base
	Modes    []Mode           // none means all
	K        int              // passages that count; 0 means top_k of each variant
	Budget   engine.Budget    // nil bounds nothing
	Retry    retry.Policy     // of requests to models
	Now      func() time.Time // nil means time.Now
}

// Variant is a way to search.
type Variant struct {
	Name     string // as the user wrote it, such as "top_k=8"
	Settings Settings
}

// Evaluation is how well the answers to questions are found.
type Evaluation struct {
	Base      string  `json:"base"`
	Questions int     `json:"questions"`
	Scores    []Score `json:"scores"` // by variant, then mode
}

// Score is how well one way to search finds the answers, as means over all questions.
type Score struct {
	Settings string  `json:"settings"` // name of the variant
	Mode     string  `json:"mode"`     // "keyword", "vector" or "both"
	K        int     `json:"k"`
	Recall   float64 `json:"recall"` // part of the sources that are among the first K passages
	MRR      float64 `json:"mrr"`    // reciprocal of the rank of the first passage that is right
	NDCG     float64 `json:"ndcg"`   // normalized discounted cumulative gain of the first K passages

	P50 time.Duration `json:"-"` // median time of a search
	P99 time.Duration `json:"-"`
}

// Evaluate asks the questions and scores what is found.
func Evaluate(ctx context.Context, b *Base, questions []Question, o EvalOptions) (Evaluation, error) {
	return Evaluation{}, errors.New("not implemented")
}
