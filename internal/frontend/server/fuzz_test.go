package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"loki/internal/frontend/server/servertest"
)

// fuzzFor is how long the endpoints are tried if the variable LOKI_API_FUZZ does not say.
const fuzzFor = 2 * time.Second

// TestHostileRequests sends every endpoint requests that are made of the OpenAPI document: valid ones, nearly
// valid ones and hostile ones. None may be answered with an internal error, and none may leave anything
// behind.
func TestHostileRequests(t *testing.T) {
	limit := fuzzFor
	if text := os.Getenv("LOKI_API_FUZZ"); text != "" {
		var err error
		if limit, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	descriptors := openFiles()
	t.Cleanup(func() { // after the server has ended
		if after := openFiles(); after > descriptors+2 {
			t.Errorf("%d descriptors before, %d after", descriptors, after)
		}
	})
	s := servertest.Start(t, servertest.Files{
		"config.yaml":              "model: builtin:echo\nclients: []\napi: {limits: {per_subject_concurrency: 64}}\n",
		"roles/r.md":               "Be brief.\n",
		"agents/plain/config.yaml": "name: plain\nversion: 1.0.0\ndescription: d\ninstructions: Help.\nmodel: builtin:echo\n",
		"agents/graph/graph.yaml":  "version: \"1.0\"\nname: graph\nstart: a\nnodes:\n  a: {type: llm, model: \"builtin:echo\", prompt: \"{{initial_prompt}}\", next: b}\n  b: {type: end, output: \"{{output}}\"}\n",
	})
	var d document
	s.Get("/openapi.json").JSON(t, &d)
	f := &fuzzer{t: t, s: s, d: &d}
	for path, methods := range d.Paths {
		if path == "/mcp" || path == "/answer/{token}" { // whose errors have other forms
			continue
		}
		for method := range methods {
			f.endpoints = append(f.endpoints, [2]string{strings.ToUpper(method), path})
		}
	}
	slices.SortFunc(f.endpoints, func(a, b [2]string) int { return strings.Compare(a[0]+a[1], b[0]+b[1]) })
	seed := rand.Uint64()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			f.work(ctx, rand.New(rand.NewPCG(seed, uint64(worker))))
		})
	}
	all.Wait()
	t.Logf("seed %d: %d requests to %d endpoints, by status: %v", seed, f.sent.Load(), len(f.endpoints), f.statuses())
	if a := s.Get("/healthz/ready"); a.Status != http.StatusOK {
		t.Errorf("not ready afterwards: %s", a.Body)
	}
}

func openFiles() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}

// document is what the fuzzer knows of the OpenAPI document.
type document struct {
	Paths      map[string]map[string]endpoint
	Components struct{ Schemas map[string]*jsonSchema }
}

type endpoint struct {
	Parameters []struct {
		Name, In string
		Required bool
		Schema   *jsonSchema
	}
	RequestBody struct {
		Content map[string]struct{ Schema *jsonSchema }
	}
}

type jsonSchema struct {
	Ref        string `json:"$ref"`
	Type       any
	Enum       []any
	Minimum    *float64
	Maximum    *float64
	MaxLength  *int
	Format     string
	Items      *jsonSchema
	Properties map[string]*jsonSchema
	Required   []string
	AnyOf      []*jsonSchema
	OneOf      []*jsonSchema
}

type fuzzer struct {
	t         *testing.T
	s         *servertest.Server
	d         *document
	endpoints [][2]string
	sent      atomic.Int64
	counts    [600]atomic.Int64
	failed    atomic.Int64
}

func (f *fuzzer) statuses() map[int]int64 {
	m := make(map[int]int64)
	for status := range f.counts {
		if n := f.counts[status].Load(); n > 0 {
			m[status] = n
		}
	}
	return m
}

// known are values that mean something to the server.
var known = []string{"plain", "graph", "r", "builtin:echo", "agent:graph", "agent:plain", "role:r", "temp", "none", "hello", "text/plain", "low"}

// nasty are values that mean trouble.
var nasty = []string{
	"", " ", "\x00", "..", "../../etc/passwd", "%2e%2e%2f", "a/b", "a\\b", "'; DROP TABLE runs; --", "<script>alert(1)</script>", "\u202e\u200b", "𝕏🙂é\u0301", "\xff\xfe",
	"{{7*7}}", "${HOME}", "$(id)", "file:///etc/passwd", "http://127.0.0.1:1/", "http://169.254.169.254/", "-1", "1e999", "NaN", "null", "true", "[]", "{}", "*", "\r\nX: y", "CON", ".", "~",
	"agent:", "role:", ":", "builtin:", "agent:../x", "9223372036854775808",
}

// word returns a text.
func word(r *rand.Rand, hostile int) string {
	switch {
	case r.IntN(100) < hostile:
		if r.IntN(20) == 0 {
			return strings.Repeat(nasty[r.IntN(len(nasty))]+"x", 1+r.IntN(20000))
		}
		return nasty[r.IntN(len(nasty))]
	case r.IntN(3) > 0:
		return known[r.IntN(len(known))]
	}
	return fmt.Sprint("w", r.IntN(1000))
}

// value returns a value for a schema. hostile is how probable it is, in percent, that a part is wrong.
func (f *fuzzer) value(r *rand.Rand, s *jsonSchema, hostile, depth int) any {
	if s == nil || depth > 6 {
		return word(r, hostile)
	}
	if s.Ref != "" {
		return f.value(r, f.d.Components.Schemas[s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]], hostile, depth+1)
	}
	if r.IntN(100) < hostile {
		return anything(r, 0)
	}
	if some := slices.Concat(s.AnyOf, s.OneOf); len(some) > 0 {
		return f.value(r, some[r.IntN(len(some))], hostile, depth+1)
	}
	if len(s.Enum) > 0 {
		return s.Enum[r.IntN(len(s.Enum))]
	}
	kind, _ := s.Type.(string)
	if kinds, ok := s.Type.([]any); ok {
		kind, _ = kinds[r.IntN(len(kinds))].(string)
	}
	switch kind {
	case "object":
		o := make(map[string]any)
		for name, p := range s.Properties {
			if slices.Contains(s.Required, name) || r.IntN(3) == 0 {
				o[name] = f.value(r, p, hostile, depth+1)
			}
		}
		if r.IntN(100) < hostile {
			o[word(r, 50)] = 1
		}
		for name := range o {
			if r.IntN(200) < hostile {
				delete(o, name)
				break
			}
		}
		return o
	case "array":
		list := make([]any, r.IntN(4))
		for i := range list {
			list[i] = f.value(r, s.Items, hostile, depth+1)
		}
		return list
	case "integer", "number":
		low, high := 0.0, 100.0
		if s.Minimum != nil {
			low = *s.Minimum
		}
		if s.Maximum != nil {
			high = *s.Maximum
		}
		n := low + r.Float64()*max(high-low, 0)
		if kind == "integer" {
			n = float64(int64(n))
		}
		return n
	case "boolean":
		return r.IntN(2) == 0
	case "null":
		return nil
	}
	if s.Format == "date-time" {
		return "2026-01-02T03:04:05Z"
	}
	return word(r, hostile)
}

// anything returns any JSON value.
func anything(r *rand.Rand, depth int) any {
	switch r.IntN(9) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return []float64{0, -1, 1e18, -1e300, 0.5, 1 << 53}[r.IntN(6)]
	case 3:
		return map[string]any{word(r, 50): 1}
	case 4:
		return []any{word(r, 50), 1, nil}
	case 5:
		if depth > 30 {
			return nil
		}
		return []any{anything(r, depth+5)}
	}
	return word(r, 90)
}

// work sends requests until ctx ends.
func (f *fuzzer) work(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil && f.failed.Load() < 10 {
		at := f.endpoints[r.IntN(len(f.endpoints))]
		f.send(ctx, r, at[0], at[1])
	}
}

// send sends one request and looks at the answer.
func (f *fuzzer) send(ctx context.Context, r *rand.Rand, method, path string) {
	e := f.d.Paths[path][strings.ToLower(method)]
	hostile := []int{0, 5, 40}[r.IntN(3)]
	target, query := path, url.Values{}
	header := make(http.Header)
	for _, p := range e.Parameters {
		if !p.Required && r.IntN(3) > 0 {
			continue
		}
		text := fmt.Sprint(f.value(r, p.Schema, hostile, 0))
		switch p.In {
		case "path":
			target = strings.ReplaceAll(target, "{"+p.Name+"}", url.PathEscape(text))
		case "query":
			query.Add(p.Name, text)
		case "header":
			header.Set(p.Name, strings.Map(printable, text))
		}
	}
	var body []byte
	if content, ok := e.RequestBody.Content["application/json"]; ok {
		body, _ = json.Marshal(f.value(r, content.Schema, hostile, 0))
		header.Set("Content-Type", "application/json")
	}
	if hostile > 0 {
		method, body = f.spoil(r, method, body, query, header)
	}
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, f.s.URL+target, strings.NewReader(string(body)))
	if err != nil {
		return // a path that no URL can have
	}
	request.Header = header
	res, err := http.DefaultClient.Do(request)
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "connection reset") {
			f.fail("%s %s: %v", method, target, err)
		}
		return
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	f.sent.Add(1)
	f.counts[res.StatusCode].Add(1)
	switch {
	case res.StatusCode == http.StatusInternalServerError:
		f.fail("%s %s\n%.2000s\nanswer: %s", method, target, body, answer)
	case res.StatusCode == http.StatusRequestHeaderFieldsTooLarge || res.StatusCode == http.StatusRequestEntityTooLarge: // the server does not read the rest, which may reset the connection
	case err != nil && ctx.Err() == nil:
		f.fail("%s %s\n%.2000s\nthe answer breaks off: %v\n%s", method, target, body, err, answer)
	case res.StatusCode >= http.StatusBadRequest && method != http.MethodHead && err == nil && res.Header.Get("X-Request-Id") != "" && !isError(res.StatusCode, answer):
		f.fail("%s %s\n%.2000s\nthe error has no body of an error: %d %q", method, target, body, res.StatusCode, answer)
	}
}

// isError reports whether an answer has the body of an error.
func isError(status int, answer []byte) bool {
	var e struct {
		Error struct{ Code, Message string }
	}
	return json.Unmarshal(answer, &e) == nil && e.Error.Code != "" && e.Error.Message != "" || status == http.StatusServiceUnavailable
}

func printable(r rune) rune {
	if r < ' ' || r > '~' {
		return '?'
	}
	return r
}

// spoil makes a request worse.
func (f *fuzzer) spoil(r *rand.Rand, method string, body []byte, query url.Values, header http.Header) (string, []byte) {
	switch r.IntN(12) {
	case 0:
		method = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"}[r.IntN(9)]
	case 1:
		if len(body) > 0 {
			body = body[:r.IntN(len(body))]
		}
	case 2:
		if len(body) > 0 {
			body = append([]byte{}, body...)
			body[r.IntN(len(body))] ^= byte(1 + r.IntN(255))
		}
	case 3:
		header.Set("Content-Type", []string{"", "text/plain", "application/xml", "multipart/form-data", "application/json; charset=\"", "x"}[r.IntN(6)])
	case 4:
		query.Add(word(r, 50), word(r, 90))
	case 5:
		header.Set("Idempotency-Key", strings.Map(printable, word(r, 30)))
	case 6:
		header.Set("Accept", []string{"text/event-stream", "*/*", "text/html", ""}[r.IntN(4)])
	case 7:
		header.Set("X-Request-Id", strings.Map(printable, word(r, 90)))
	case 8:
		header.Set("Last-Event-ID", strings.Map(printable, word(r, 90)))
	case 9:
		body = []byte(strings.Repeat("[", 1+r.IntN(20000)))
	case 10:
		header.Set("Authorization", strings.Map(printable, word(r, 90)))
	case 11:
		body = []byte(strings.Repeat("x", 1<<20+1))
	}
	return method, body
}

// fail reports an answer, as long as there are few.
func (f *fuzzer) fail(format string, args ...any) {
	if f.failed.Add(1) <= 10 {
		f.t.Errorf(format, args...)
	}
}
