// Package openaitest has the replies of a server that speaks the OpenAI wire formats, for
// package wiretest: on /responses in the responses format, elsewhere with chat completions.
package openaitest

import (
	"testing"

	"loki/internal/llm/provider/providertest/wiretest"
)

// Server is a server of wiretest that lists models, too.
type Server struct{ *wiretest.Server }

// New starts a server at a URL that ends in /v1, see [wiretest.New].
func New(t testing.TB, script ...wiretest.Reply) *Server {
	t.Helper()
	s := &Server{wiretest.New(t, wiretest.Options{Base: "/v1"}, script...)}
	s.Models()
	return s
}

// Models sets what GET /models lists. Asking for the list takes nothing from the
// script.
func (s *Server) Models(names ...string) { s.Route("GET /models", modelList(names)) }
