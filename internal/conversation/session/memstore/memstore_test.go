package memstore_test

import (
	"testing"

	"loki/internal/conversation/session"
	"loki/internal/conversation/session/memstore"
	"loki/internal/conversation/session/sessiontest"
)

func TestStore(t *testing.T) {
	sessiontest.Run(t,
		func(_ *testing.T, o session.Options) session.Store { return memstore.New(o) },
		func(_ *testing.T, s session.Store) session.Store { return s.(*memstore.Store).Again() })
}
