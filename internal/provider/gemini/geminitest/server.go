// Package geminitest is a server on the loopback interface that speaks the format of
// the Gemini API and answers as it is told.
//
// A test scripts the server with one [Reply] per request and afterwards looks at the
// requests that came. With the environment variable LOKI_WIRE_OUT set to a directory
// the requests are written there as gemini-<n>.json.
package geminitest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"loki/internal/chat"
)

// Request is a request that the server got.
type Request struct {
	Path   string // with the query if there is one
	Header http.Header
	Body   []byte
}

// Reply answers a request. done is closed when the test ends.
type Reply func(w http.ResponseWriter, r *http.Request, done <-chan struct{})

// Server is the server. Its methods may be called from several goroutines.
type Server struct {
	http *httptest.Server
	done chan struct{}

	mu       sync.Mutex
	script   []Reply
	always   Reply
	requests []Request
	serving  int
	idle     chan struct{} // closed while serving is 0
}

// New starts a server that runs until the test is over. It answers its requests with
// script, one after the other, and those beyond with the last of it.
func New(t testing.TB, script ...Reply) *Server {
	t.Helper()
	s := &Server{done: make(chan struct{}), idle: make(chan struct{}), script: script}
	s.always = Status(http.StatusNotImplemented, `{"error":{"message":"no reply is scripted"}}`)
	if len(script) > 0 {
		s.always = script[len(script)-1]
	}
	close(s.idle)
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		close(s.done)
		s.http.Close()
		s.export(t)
	})
	return s
}

// URL returns the base URL, which ends in /v1beta.
func (s *Server) URL() string { return s.http.URL + "/v1beta" }

// Requests returns the requests so far, in the order of their arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// WaitIdle returns nil as soon as no request is being served, or ctx's error.
func (s *Server) WaitIdle(ctx context.Context) error {
	s.mu.Lock()
	idle := s.idle
	s.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.requests = append(s.requests, Request{Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body})
	reply := s.always
	if len(s.script) > 0 {
		reply, s.script = s.script[0], s.script[1:]
	}
	if s.serving == 0 {
		s.idle = make(chan struct{})
	}
	s.serving++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.serving--; s.serving == 0 {
			close(s.idle)
		}
	}()
	reply(w, r, s.done)
}

// export writes the requests to where LOKI_WIRE_OUT says.
func (s *Server) export(t testing.TB) {
	dir := os.Getenv("LOKI_WIRE_OUT")
	if dir == "" {
		return
	}
	for _, r := range s.Requests() {
		data, err := json.Marshal(map[string]any{"api": api(r.Path), "url": s.http.URL + r.Path, "body": json.RawMessage(r.Body)})
		if err != nil {
			continue // a body that is no JSON is meant to be none
		}
		if err := writeNext(dir, data); err != nil {
			t.Errorf("writing a request: %v", err)
		}
	}
}

func api(path string) string {
	_, method, _ := strings.Cut(path, ":")
	method, _, _ = strings.Cut(method, "?")
	return method
}

// writeNext writes data to the first free gemini-<n>.json.
func writeNext(dir string, data []byte) error {
	for n := 1; ; n++ {
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("gemini-%d.json", n)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if os.IsExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		_, err = f.Write(data)
		if closed := f.Close(); err == nil {
			err = closed
		}
		return err
	}
}

// Status answers with a status and a body.
func Status(status int, body string) Reply {
	return func(w http.ResponseWriter, _ *http.Request, _ <-chan struct{}) {
		w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // the reader may be gone
	}
}

// Body answers with status 200 and body as it is, whatever was asked for.
func Body(body string) Reply { return Status(http.StatusOK, body) }

// RateLimit asks to wait.
func RateLimit(wait time.Duration) Reply {
	return Status(http.StatusTooManyRequests, fmt.Sprintf(`{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED",
		"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"%ds"}]}}`, int(wait.Seconds())))
}

const usage = `"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":5,"totalTokenCount":12}`

// Document returns a reply document of parts, which are JSON; finish may be empty.
func Document(finish string, parts ...string) string {
	candidate := `{"content":{"role":"model","parts":[` + strings.Join(parts, ",") + `]}`
	if finish != "" {
		candidate += `,"finishReason":"` + finish + `"`
	}
	return `{"candidates":[` + candidate + `,"index":0}],` + usage + `,"modelVersion":"test"}`
}

// TextPart returns a part of text.
func TextPart(text string) string {
	quoted, _ := json.Marshal(text) // a string can always be written
	return `{"text":` + string(quoted) + `}`
}

// Stream answers with the documents of a stream, or, where the request is for a reply
// in one piece, with whole.
func Stream(whole string, documents ...string) Reply {
	return func(w http.ResponseWriter, r *http.Request, done <-chan struct{}) {
		if !strings.Contains(r.URL.Path, ":stream") {
			Body(whole)(w, r, done)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, d := range documents {
			_, _ = io.WriteString(w, "data: "+d+"\r\n\r\n") // the reader may be gone
			w.(http.Flusher).Flush()
		}
	}
}

// Text answers with pieces of text.
func Text(pieces ...string) Reply {
	documents := textDocuments(pieces)
	documents = append(documents, Document("STOP", TextPart("")))
	return Stream(Document("STOP", TextPart(strings.Join(pieces, ""))), documents...)
}

func textDocuments(pieces []string) []string {
	documents := make([]string, len(pieces))
	for i, p := range pieces {
		documents[i] = Document("", TextPart(p))
	}
	return documents
}

// ToolCalls answers with calls, without their ids.
func ToolCalls(calls ...chat.ToolCall) Reply {
	parts := make([]string, len(calls))
	for i, c := range calls {
		parts[i] = fmt.Sprintf(`{"functionCall":{"name":%q,"args":%s}}`, c.Name, c.Arguments)
	}
	return Stream(Document("STOP", parts...), Document("", parts...), Document("STOP", TextPart("")))
}

// CutOff answers with a call and says that the output limit was reached. Arguments are
// always whole JSON in this API.
func CutOff(call chat.ToolCall) Reply {
	part := fmt.Sprintf(`{"functionCall":{"name":%q,"args":%s}}`, call.Name, call.Arguments)
	return Stream(Document("MAX_TOKENS", part), Document("", part), Document("MAX_TOKENS", TextPart("")))
}

// Drop sends pieces of text and then closes the connection in the middle of a reply.
func Drop(pieces ...string) Reply {
	return func(w http.ResponseWriter, r *http.Request, done <-chan struct{}) {
		Stream("", textDocuments(pieces)...)(w, r, done)
		_, _ = io.WriteString(w, `data: {"candidates": [{"content"`) // the reader may be gone
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// Stall sends pieces of text and then nothing more until the client goes.
func Stall(pieces ...string) Reply {
	return func(w http.ResponseWriter, r *http.Request, done <-chan struct{}) {
		Stream("", textDocuments(pieces)...)(w, r, done)
		Hang()(w, r, done)
	}
}

// Hang never answers.
func Hang() Reply {
	return func(_ http.ResponseWriter, r *http.Request, done <-chan struct{}) {
		select {
		case <-r.Context().Done():
		case <-done:
		}
	}
}
