package memstore_test

import (
	"testing"

	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
	"loki/internal/workflow/run/runtest"
)

func TestStore(t *testing.T) {
	runtest.Run(t, runtest.Options{
		New: func(*testing.T) run.Store { return memstore.New(nil) },
		TakeOver: func(t *testing.T, s run.Store, id string) run.Journal {
			if err := s.(*memstore.Store).Orphan(id); err != nil {
				t.Fatal(err)
			}
			j, _, err := s.Open(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return j
		},
	})
}
