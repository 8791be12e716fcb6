package thirdparty_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"loki/internal/llm/provider/providertest"
)

// recording is a reply of a server.
type recording struct {
	status      int
	contentType string
	body        []byte
}

// readRecording reads a reply: a body ending in .sse or .json, the events of a Bedrock
// stream in .stream, one event a line, or the nth response of a transcript in .txt#n.
func readRecording(t *testing.T, name string) recording {
	t.Helper()
	file, number, _ := strings.Cut(name, "#")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := recording{status: http.StatusOK, body: data}
	switch {
	case strings.HasSuffix(file, ".sse"):
		r.contentType = "text/event-stream"
	case strings.HasSuffix(file, ".json"):
		r.contentType = "application/json"
	case strings.HasSuffix(file, ".stream"):
		r.contentType, r.body = "application/vnd.amazon.eventstream", eventStream(t, string(data))
	case strings.HasSuffix(file, ".txt"):
		script, err := providertest.ParseTranscript(data)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > len(script.Exchanges) {
			t.Fatalf("%s: there is no such exchange", name)
		}
		x := script.Exchanges[n-1].Response
		r = recording{status: x.Status, contentType: x.Header.Get("Content-Type"), body: x.Body}
	default:
		t.Fatalf("%s: unknown kind of file", name)
	}
	return r
}

// eventStream encodes lines of a type and a payload.
func eventStream(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	encoder := eventstream.NewEncoder()
	for line := range strings.Lines(text) {
		typ, payload, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || strings.HasPrefix(typ, "#") {
			continue
		}
		m := eventstream.Message{Payload: []byte(payload)}
		for name, value := range map[string]string{":event-type": typ, ":content-type": "application/json", ":message-type": "event"} {
			m.Headers.Set(name, eventstream.StringValue(value))
		}
		if err := encoder.Encode(&out, m); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

func (r recording) send(w http.ResponseWriter) {
	w.Header().Set("Content-Type", r.contentType)
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body) // the reader may be gone
}

// unavailable is a reply that ends a conversation.
var unavailable = recording{
	status: http.StatusServiceUnavailable, contentType: "application/json",
	body: []byte(`{"error":{"message":"nothing more is recorded"}}`),
}

// player is a server that answers with recordings, the last of them again and again,
// and keeps the requests.
type player struct {
	url string

	mu       sync.Mutex
	replies  []recording
	requests []received
}

// received is a request.
type received struct {
	target string // path and query
	header http.Header
	body   []byte
}

func newPlayer(t *testing.T, replies ...recording) *player {
	t.Helper()
	p := &player{replies: replies}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

func (p *player) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.requests = append(p.requests, received{r.URL.RequestURI(), r.Header.Clone(), body})
	reply := p.replies[0]
	if len(p.replies) > 1 {
		p.replies = p.replies[1:]
	}
	p.mu.Unlock()
	reply.send(w)
}

// got returns the requests so far, of which there is at least one.
func (p *player) got(t *testing.T) []received {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.requests) == 0 {
		t.Fatal("no request came")
	}
	return slices.Clone(p.requests)
}

// last returns the body of the last request.
func (p *player) last(t *testing.T) []byte {
	t.Helper()
	all := p.got(t)
	return all[len(all)-1].body
}
