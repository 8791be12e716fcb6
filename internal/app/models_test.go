package app_test

import (
	"strings"
	"testing"

	"loki/internal/base/fault"
)

// TestModelsOfKnowledge: a model of another type is an error that lists those that would do.
func TestModelsOfKnowledge(t *testing.T) {
	a, _ := newApp(t, "")
	_, err := a.Models.Embedder(t.Context(), "builtin:echo")
	if fault.CodeOf(err) != fault.NotFound || !strings.Contains(fault.HintOf(err), "embedding models: builtin:hash") {
		t.Errorf("a chat model: %v, hint %q", err, fault.HintOf(err))
	}
	if _, err := a.Models.Reranker(t.Context(), "builtin:hash"); fault.CodeOf(err) != fault.NotFound || fault.HintOf(err) == "" {
		t.Errorf("no reranker: %v, hint %q", err, fault.HintOf(err))
	}
	if m, err := a.Models.Embedder(t.Context(), "builtin:hash"); err != nil || m.ChunkSize != 2000 || m.Cost != nil {
		t.Errorf("the program's own: %+v, %v", m, err)
	}
}
