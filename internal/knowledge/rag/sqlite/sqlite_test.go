package sqlite_test

import (
	"path/filepath"
	"testing"

	"loki/internal/knowledge/rag"
	"loki/internal/knowledge/rag/ragtest"
	"loki/internal/knowledge/rag/sqlite"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	ragtest.Test(t, ragtest.Options{New: func(t *testing.T) func() rag.Store {
		path := filepath.Join(t.TempDir(), "rags", "a b%20?.db")
		return func() rag.Store { return sqlite.New(path) }
	}})
}
