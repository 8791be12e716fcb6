package openai

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/wire"
)

type fixed struct {
	contentType string
	body        func() io.Reader
	limit       int64 // of the reply; 0 means the usual one
	api         string
}

func (f fixed) RoundTrip(r *http.Request) (*http.Response, error) {
	h := http.Header{"Content-Type": {f.contentType}}
	return &http.Response{StatusCode: http.StatusOK, Header: h, Body: io.NopCloser(f.body()), Request: r}, nil
}

func fixedClient(t testing.TB, f fixed) Compatible {
	t.Helper()
	h, err := wire.NewClient(wire.Options{Transport: f, MaxReply: f.limit})
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewCompatible(client.Options{Name: "test", APIBase: "http://server.test", API: f.api, HTTP: h})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// FuzzReply feeds arbitrary bytes as a reply: the sequence keeps its rules, errors
// are of the contract's type, and neither the cut of the bytes nor what was asked
// for makes a difference.
func FuzzReply(f *testing.F) {
	f.Add([]byte(`data: {"choices":[{"delta":{"tool_calls":[{"function":{"name":1,"arguments":[]}}]},"finish_reason":"x"}]}`+"\n\ndata: [DONE]\n\n"), true)
	f.Add([]byte(`{"choices":[{"message":{"content":[{"type":"thinking","thinking":"x"},"y",null,5]}}],"error":{}}`), false)
	fuzzReply(f, "", "testdata/replies")
}

// FuzzResponse does the same in the responses format.
func FuzzResponse(f *testing.F) {
	f.Add([]byte(`data: {"type":"response.output_item.done","output_index":-1,"item":{"type":"function_call","arguments":5,"name":"f"}}`+"\n\ndata: [DONE]\n\n"), true)
	f.Add([]byte(`{"status":5,"output":[{"type":"reasoning","encrypted_content":"e"},{"type":"function_call","name":"f"},{"type":"message","content":"x"}]}`), false)
	fuzzReply(f, "responses", "testdata/responses")
}

func fuzzReply(f *testing.F, api, dir string) {
	files, err := filepath.Glob(dir + "/*.*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		if filepath.Ext(file) == ".golden" {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, filepath.Ext(file) == ".sse")
	}
	f.Fuzz(func(t *testing.T, data []byte, events bool) {
		contentType := "application/json"
		if events {
			contentType = "text/event-stream"
		}
		body := func() io.Reader { return strings.NewReader(string(data)) }
		slow := func() io.Reader { return iotest.OneByteReader(body()) }
		req := provider.Request{Model: "m", Stream: events}
		first := providertest.Collect(t, fixedClient(t, fixed{contentType: contentType, body: body, api: api}).Chat(t.Context(), req))
		req.Stream = !events
		second := providertest.Collect(t, fixedClient(t, fixed{contentType: contentType, body: slow, api: api}).Chat(t.Context(), req))
		if first.Text != second.Text || first.Reasoning != second.Reasoning || first.Signature != second.Signature ||
			first.Stop != second.Stop || first.Usage != second.Usage || !slices.Equal(first.ToolCalls, second.ToolCalls) {
			t.Errorf("at once: %+v\ncut up:  %+v", first, second)
		}
		if e, ok := errors.AsType[*provider.Error](first.Err); first.Err != nil && (!ok || e.Kind == "" || e.Error() == "") {
			t.Errorf("error %#v", first.Err)
		}
		if first.Err != nil && len(first.ToolCalls) > 0 {
			t.Errorf("a failed reply has the tool calls %+v", first.ToolCalls)
		}
	})
}

// endless repeats a text forever.
type endless struct {
	text string
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.text[e.at]
		e.at = (e.at + 1) % len(e.text)
	}
	return len(p), nil
}

// TestRepliesAreBounded has servers that never stop.
func TestRepliesAreBounded(t *testing.T) {
	for name, text := range map[string]string{
		"events":       "data: {\"choices\":[{\"delta\":{\"content\":\"" + strings.Repeat("x", 10000) + "\"}}]}\n\n",
		"comments":     ": keep-alive\n\n",
		"endless_line": "data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
		"white_space":  "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n",
		"document":     `{"choices":[{"choices":[`,
	} {
		t.Run(name, func(t *testing.T) {
			c := fixedClient(t, fixed{body: func() io.Reader { return &endless{text: text} }, limit: limit(name)})
			r := providertest.Collect(t, c.Chat(t.Context(), provider.Request{Stream: true}))
			if e, ok := errors.AsType[*provider.Error](r.Err); !ok || e.Kind != provider.BadReply {
				t.Errorf("error = %v", r.Err)
			}
		})
	}
}

func limit(name string) int64 {
	if name == "endless_line" {
		return 0 // lines have a limit of their own
	}
	return 1 << 20
}

// TestCancelStopsAtOnce: what has already been received is not delivered after the
// cancellation.
func TestCancelStopsAtOnce(t *testing.T) {
	const text = `data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n"
	c := fixedClient(t, fixed{contentType: "text/event-stream", body: func() io.Reader { return strings.NewReader(strings.Repeat(text, 10) + "data: [DONE]\n\n") }})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	chunks := 0
	for _, err := range c.Chat(ctx, provider.Request{Stream: true}) {
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error = %v", err)
			}
			continue
		}
		if chunks++; chunks == 2 {
			cancel()
		}
	}
	if chunks != 2 {
		t.Errorf("%d chunks, want 2", chunks)
	}
}

// TestEstimate: usage that a server does not tell counts text, reasoning and calls.
func TestEstimate(t *testing.T) {
	const body = `{"choices":[{"message":{"content":"12345678","reasoning":"1234","tool_calls":[{"function":{"name":"abcd","arguments":"{\"a\":1}"}}]}}]}`
	c := fixedClient(t, fixed{body: func() io.Reader { return strings.NewReader(body) }})
	r := providertest.Collect(t, c.Chat(t.Context(), provider.Request{
		Messages: []chat.Message{
			chat.Text(chat.System, "1234"),
			{Role: chat.Assistant, ToolCalls: []chat.ToolCall{{ID: "x", Name: "abcd", Arguments: "{}  "}}},
		},
		Tools: []chat.Tool{{Name: "abcd", Description: "1234", Parameters: []byte("{}")}},
	}))
	// 5 a message, 1 for the system text, 2 for the call, 11 for the tool with its schema.
	want := chat.Usage{InputTokens: 24, OutputTokens: 6, Estimated: true}
	if r.Usage != want {
		t.Errorf("usage = %+v, want %+v", r.Usage, want)
	}
}

func BenchmarkStream(b *testing.B) {
	const event = `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}]}` + "\n\n"
	body := strings.Repeat(event, 1000) + "data: [DONE]\n\n"
	c := fixedClient(b, fixed{contentType: "text/event-stream", body: func() io.Reader { return strings.NewReader(body) }})
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range c.Chat(b.Context(), provider.Request{Stream: true}) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
