package memstore_test

import (
	"testing"

	"loki/internal/run"
	"loki/internal/run/memstore"
	"loki/internal/run/runtest"
)

func TestStore(t *testing.T) {
	runtest.Run(t, func(*testing.T) run.Store { return memstore.New(nil) }, nil)
}
