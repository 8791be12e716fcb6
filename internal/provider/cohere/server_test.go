package cohere

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"loki/internal/provider/client"
	"loki/internal/provider/wire"
)

const testKey = "co-secret-key-123"

// script is how a server answers one request.
type script func(w http.ResponseWriter, r *http.Request)

// received is a request as the server saw it.
type received struct {
	path   string
	header http.Header
	body   string
}

// server is a scripted Cohere on the loopback interface.
type server struct {
	*httptest.Server
	t    *testing.T
	busy atomic.Int32
	mu   sync.Mutex
	next script
	got  []received
}

func newServer(t *testing.T, s script) *server {
	t.Helper()
	srv := &server{t: t, next: s}
	srv.Server = httptest.NewServer(http.HandlerFunc(srv.serve))
	t.Cleanup(srv.Close)
	return srv
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	s.busy.Add(1)
	defer s.busy.Add(-1)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Errorf("reading the request: %v", err)
	}
	if got := r.Header.Get("Authorization"); got != "Bearer "+testKey {
		s.t.Errorf("authorization %q", got)
	}
	s.mu.Lock()
	s.got = append(s.got, received{path: r.URL.Path, header: r.Header.Clone(), body: string(body)})
	s.mu.Unlock()
	s.record(r, body)
	s.next(w, r)
}

// record writes the request to the directory that $LOKI_WIRE_OUT names.
func (s *server) record(r *http.Request, body []byte) {
	dir := os.Getenv("LOKI_WIRE_OUT")
	if dir == "" {
		return
	}
	api := map[string]string{"/v2/chat": "chat_completions", "/v2/embed": "embeddings", "/v2/rerank": "rerank"}[r.URL.Path]
	text, err := json.Marshal(map[string]any{"api": api, "url": "http://" + r.Host + r.URL.Path, "body": json.RawMessage(body)})
	if err == nil {
		err = writeNext(dir, "cohere", text)
	}
	if err != nil {
		s.t.Errorf("recording a request: %v", err)
	}
}

// writeNext writes text to the first file of dir called name-1.json, name-2.json and
// so on that does not exist: other tests write there too.
func writeNext(dir, name string, text []byte) error {
	for n := 1; ; n++ {
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("%s-%d.json", name, n)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if os.IsExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		_, err = f.Write(text)
		return errors.Join(err, f.Close())
	}
}

// last returns the last request.
func (s *server) last() received {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.got) == 0 {
		s.t.Fatal("the server got no request")
	}
	return s.got[len(s.got)-1]
}

// waitIdle returns when the server serves no request.
func (s *server) waitIdle(ctx context.Context) error {
	for s.busy.Load() > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		runtime.Gosched()
	}
	return nil
}

func (s *server) client(model func(string) wire.Model, patches wire.Patches) *Client {
	s.t.Helper()
	h, err := wire.NewClient(wire.Options{Client: "cohere", Patches: patches, Transport: s.Client().Transport})
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := New(client.Options{Name: "cohere", APIBase: s.URL + "/v2/", APIKey: wire.StaticKey(testKey), HTTP: h, Model: model})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// streamed answers with an event stream.
func streamed(text string) script {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, text)
	}
}

// document answers with a status and a document.
func document(status int, body string, header ...string) script {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// either answers a request for a stream with one script and others with the other.
func either(stream, whole script) script {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Header.Get("Accept"), "text/event-stream") {
			stream(w, r)
			return
		}
		whole(w, r)
	}
}

// begun sends the beginning of a stream and then calls rest.
func begun(text string, rest script) script {
	return func(w http.ResponseWriter, r *http.Request) {
		streamed(text)(w, r)
		w.(http.Flusher).Flush()
		rest(w, r)
	}
}

func drop(http.ResponseWriter, *http.Request)     { panic(http.ErrAbortHandler) }
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

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
