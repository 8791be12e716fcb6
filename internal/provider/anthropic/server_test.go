package anthropic_test

import (
	"bytes"
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
	"sync/atomic"
	"testing"

	"loki/internal/chat"
	"loki/internal/provider"
	"loki/internal/provider/anthropic"
	"loki/internal/provider/client"
	"loki/internal/provider/providertest"
	"loki/internal/provider/wire"
)

// reply answers one request. done is closed when the test ends.
type reply func(w http.ResponseWriter, r *http.Request, done <-chan struct{})

// request is a request that the server got.
type request struct {
	URL    string // path and query
	Header http.Header
	Body   []byte
}

// json returns the body as decoded JSON.
func (r request) json(t testing.TB) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(r.Body, &m); err != nil {
		t.Fatalf("request body %s: %v", r.Body, err)
	}
	return m
}

// indented returns the body as it came, laid out for people.
func (r request) indented(t testing.TB) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, r.Body, "", "  "); err != nil {
		t.Fatal(err)
	}
	return b.String() + "\n"
}

func contains(r request, word string) bool { return bytes.Contains(r.Body, []byte(word)) }

// server speaks the API on the loopback interface and answers as it is told: one reply
// per request, and the last one to all that follow.
type server struct {
	t    testing.TB
	http *httptest.Server
	done chan struct{}

	mu       sync.Mutex
	script   []reply
	requests []request
	serving  int
	idle     chan struct{} // closed while serving is 0
}

func newServer(t testing.TB, script ...reply) *server {
	t.Helper()
	s := &server{t: t, done: make(chan struct{}), idle: make(chan struct{}), script: script}
	close(s.idle)
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		close(s.done)
		s.http.Close()
	})
	return s
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.requests = append(s.requests, request{URL: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body})
	reply := s.script[0]
	if len(s.script) > 1 {
		s.script = s.script[1:]
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
	if err := record("http://"+r.Host+r.URL.RequestURI(), body); err != nil {
		s.t.Errorf("recording a request: %v", err)
	}
	reply(w, r, s.done)
}

// recorded counts the requests that all tests have written down.
var recorded atomic.Int64

// record writes a request to the directory that LOKI_WIRE_OUT names, if it names one.
func record(url string, body []byte) error {
	dir := os.Getenv("LOKI_WIRE_OUT")
	if dir == "" || !json.Valid(body) {
		return nil
	}
	text, err := json.Marshal(map[string]any{"api": "messages", "url": url, "body": json.RawMessage(body)})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, fmt.Sprintf("anthropic-%d.json", recorded.Add(1))), text, 0o600)
}

// got returns the requests so far.
func (s *server) got() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]request(nil), s.requests...)
}

// last returns the last request.
func (s *server) last() request {
	s.t.Helper()
	all := s.got()
	if len(all) == 0 {
		s.t.Fatal("the server got no request")
	}
	return all[len(all)-1]
}

// waitIdle returns nil as soon as no request is being served, or ctx's error.
func (s *server) waitIdle(ctx context.Context) error {
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

// client returns a client of the server with a key, unless change says otherwise.
func (s *server) client(change func(*client.Options)) *anthropic.Client {
	s.t.Helper()
	return s.newClient(anthropic.New, change)
}

// vertex returns a client of the server as a place on Vertex AI.
func (s *server) vertex() *anthropic.Client {
	s.t.Helper()
	return s.newClient(anthropic.NewVertex, onVertex)
}

func (s *server) newClient(make func(client.Options) (*anthropic.Client, error), change func(*client.Options)) *anthropic.Client {
	s.t.Helper()
	o := client.Options{Name: "claude", APIBase: s.http.URL + "/v1/", APIKey: wire.StaticKey("sk-ant-secret")}
	if change != nil {
		change(&o)
	}
	c, err := make(o)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// send writes pieces, each at once.
func send(w http.ResponseWriter, pieces ...string) {
	for _, p := range pieces {
		_, _ = io.WriteString(w, p) // the client may be gone, which is what some tests are about
		_ = http.NewResponseController(w).Flush()
	}
}

// body answers with a content type and a body.
func body(contentType string, pieces ...string) reply {
	return func(w http.ResponseWriter, _ *http.Request, _ <-chan struct{}) {
		w.Header().Set("Content-Type", contentType)
		send(w, pieces...)
	}
}

// status answers with a status and the body of an error, and header fields, given as
// names and values in turn.
func status(code int, typ, msg string, fields ...string) reply {
	text, _ := json.Marshal(map[string]any{"type": "error", "error": map[string]any{"type": typ, "message": msg}})
	return func(w http.ResponseWriter, _ *http.Request, _ <-chan struct{}) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(fields); i += 2 {
			w.Header().Set(fields[i], fields[i+1])
		}
		w.WriteHeader(code)
		send(w, string(text))
	}
}

// silence waits for the client to go away.
func silence(_ http.ResponseWriter, r *http.Request, done <-chan struct{}) {
	select {
	case <-r.Context().Done():
	case <-done:
	}
}

// event is one event of a stream; v is its data.
func event(v map[string]any) string {
	data, _ := json.Marshal(v)
	return fmt.Sprintf("event: %s\ndata: %s\n\n", v["type"], data)
}

type object = map[string]any

const usageStart, usageEnd = 11, 7

func begin() string {
	return event(object{"type": "message_start", "message": object{
		"id": "msg_1", "type": "message", "role": "assistant", "content": []any{}, "stop_reason": nil,
		"usage": object{"input_tokens": usageStart, "output_tokens": 1},
	}})
}

func finish(stop string) string {
	return event(object{"type": "message_delta", "delta": object{"stop_reason": stop}, "usage": object{"output_tokens": usageEnd}}) +
		event(object{"type": "message_stop"})
}

func textStart(index int, pieces ...string) []string {
	list := []string{event(object{"type": "content_block_start", "index": index, "content_block": object{"type": "text", "text": ""}})}
	for _, p := range pieces {
		list = append(list, event(object{"type": "content_block_delta", "index": index, "delta": object{"type": "text_delta", "text": p}}))
	}
	return list
}

func stop(index int) string { return event(object{"type": "content_block_stop", "index": index}) }

// answer answers with text and calls, in the form that was asked for.
func answer(pieces []string, calls ...chat.ToolCall) reply {
	return func(w http.ResponseWriter, r *http.Request, done <-chan struct{}) {
		reason := "end_turn"
		if len(calls) > 0 {
			reason = "tool_use"
		}
		if r.Header.Get("Accept") != "text/event-stream" {
			content := []any{object{"type": "text", "text": strings.Join(pieces, "")}}
			for _, c := range calls {
				content = append(content, object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": json.RawMessage(c.Arguments)})
			}
			text, _ := json.Marshal(object{
				"id": "msg_1", "type": "message", "role": "assistant", "content": content, "stop_reason": reason,
				"usage": object{"input_tokens": usageStart, "output_tokens": usageEnd},
			})
			body("application/json", string(text))(w, r, done)
			return
		}
		list := []string{begin(), event(object{"type": "ping"})}
		list = append(list, textStart(0, pieces...)...)
		list = append(list, stop(0))
		for i, c := range calls {
			half := len(c.Arguments) / 2
			list = append(list, event(object{"type": "content_block_start", "index": i + 1, "content_block": object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": object{}}}))
			for _, p := range []string{"", c.Arguments[:half], c.Arguments[half:]} {
				list = append(list, event(object{"type": "content_block_delta", "index": i + 1, "delta": object{"type": "input_json_delta", "partial_json": p}}))
			}
			list = append(list, stop(i+1))
		}
		body("text/event-stream; charset=utf-8", append(list, finish(reason))...)(w, r, done)
	}
}

// cutOffReply answers with a call whose arguments the output limit has cut off.
func cutOffReply(arguments string) reply {
	return func(w http.ResponseWriter, r *http.Request, done <-chan struct{}) {
		if r.Header.Get("Accept") != "text/event-stream" {
			text, _ := json.Marshal(object{
				"id": "msg_1", "type": "message", "role": "assistant", "stop_reason": "max_tokens",
				"content": []any{object{"type": "tool_use", "id": "toolu_a", "name": "del", "input": arguments}},
				"usage":   object{"input_tokens": usageStart, "output_tokens": usageEnd},
			})
			body("application/json", string(text))(w, r, done)
			return
		}
		body("text/event-stream",
			begin(),
			event(object{"type": "content_block_start", "index": 0, "content_block": object{"type": "tool_use", "id": "toolu_a", "name": "del", "input": object{}}}),
			event(object{"type": "content_block_delta", "index": 0, "delta": object{"type": "input_json_delta", "partial_json": arguments}}),
			stop(0), finish("max_tokens"))(w, r, done)
	}
}

// question returns a streamed request.
func question(more ...chat.Message) provider.Request {
	return provider.Request{
		Model: "claude-sonnet-4-5", Stream: true,
		Messages: append([]chat.Message{chat.Text(chat.User, "Question?")}, more...),
	}
}

func collect(t testing.TB, c provider.Chat, req provider.Request) providertest.Reply {
	t.Helper()
	return providertest.Collect(t, c.Chat(t.Context(), req))
}

// indented returns v as JSON for people.
func indented(t testing.TB, v any) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
