package catalog

import (
	"slices"
	"strings"
)

// The limits that [Guess] gives to an embedding model, whose name does not show them:
// values that nearly every server accepts.
const (
	guessedChunkSize = 1000
	guessedBatchSize = 100
)

// Guess returns a model's properties as far as its name shows them, for a server that lists
// its models by name only. Names that contain "rank" are rerankers, those made like the
// well-known embedding models are embedding models, and all others are for chat, with
// vision if the name says so. Case does not count.
func Guess(name string) Model {
	m := Model{Name: name, Type: Chat}
	switch lower := strings.ToLower(name); {
	case strings.Contains(lower, "rank"):
		m.Type = Reranker
	case namesEmbedding(lower):
		m.Type, m.DefaultChunkSize, m.MaxBatchSize = Embedding, guessedChunkSize, guessedBatchSize
	case strings.Contains(lower, "vision"):
		m.SupportsVision = true
	}
	return m
}

// namesEmbedding reports whether name, in lower case, is one that makers give to
// embedding models.
func namesEmbedding(name string) bool {
	in := func(part string) bool { return strings.Contains(name, part) }
	if slices.ContainsFunc([]string{"embed", "multilingual", "minilm"}, in) {
		return true
	}
	for _, family := range []string{"bge-", "e5-", "uae-", "gte-", "text-"} {
		if strings.HasPrefix(name, family) || in("/"+family) {
			return true
		}
	}
	return false
}
