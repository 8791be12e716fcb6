package cohere

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/providertest/wiretest"
	"loki/internal/llm/provider/wire"
)

const testKey = "co-secret-key-123"

// server is a scripted Cohere, which wants [testKey].
type server struct {
	*wiretest.Server
	t *testing.T
}

func newServer(t *testing.T, script ...wiretest.Reply) *server {
	t.Helper()
	s := &server{wiretest.New(t, wiretest.Options{Provider: "cohere"}, script...), t}
	s.Check = func(r *http.Request, _ []byte) error {
		if got := r.Header.Get("Authorization"); got != "Bearer "+testKey {
			return errors.New("authorization " + got)
		}
		return nil
	}
	return s
}

func (s *server) client(model func(string) wire.Model, patches wire.Patches) *Client {
	s.t.Helper()
	h, err := wire.NewClient(wire.Options{Client: "cohere", Patches: patches, Transport: s.Client().Transport})
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := New(client.Options{Name: "cohere", APIBase: s.URL() + "/v2/", APIKey: wiretest.Key(testKey), HTTP: h, Model: model})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// fixture returns a file of testdata.
func fixture(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// before returns the events of a stream up to the first of the type.
func before(stream, typ string) string {
	begin, _, _ := strings.Cut(stream, "event: "+typ)
	return begin
}
