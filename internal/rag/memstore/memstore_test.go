package memstore_test

import (
	"testing"

	"loki/internal/rag"
	"loki/internal/rag/memstore"
	"loki/internal/rag/ragtest"
)

func TestStore(t *testing.T) {
	ragtest.Test(t, ragtest.Options{New: func(*testing.T) func() rag.Store {
		s := new(memstore.Store)
		return func() rag.Store { return s }
	}})
}
