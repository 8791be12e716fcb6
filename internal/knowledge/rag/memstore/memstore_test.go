package memstore_test

import (
	"testing"

	"loki/internal/knowledge/rag"
	"loki/internal/knowledge/rag/memstore"
	"loki/internal/knowledge/rag/ragtest"
)

func TestStore(t *testing.T) {
	ragtest.Test(t, ragtest.Options{New: func(*testing.T) func() rag.Store {
		s := new(memstore.Store)
		return func() rag.Store { return s }
	}})
}
