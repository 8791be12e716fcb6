package openai_test

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/openai"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/wire"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// answer is a transport that gives every request the same response.
type answer struct {
	header http.Header
	body   func() io.Reader
}

func (a answer) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: a.header, Body: io.NopCloser(a.body()), Request: r}, nil
}

func ask(t testing.TB, api string, transport http.RoundTripper, req provider.Request) providertest.Reply {
	t.Helper()
	c, err := openai.NewCompatible(client.Options{
		Name: "test", APIBase: "http://server.test/v1", API: api, HTTP: wired(t, wire.Options{Transport: transport}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return providertest.Collect(t, c.Chat(t.Context(), req))
}

// TestReplies reads the replies of many servers. What comes out has to be the same
// whatever the content type says, whatever was asked for, and however the bytes
// are cut.
func TestReplies(t *testing.T)         { testReplies(t, "chat_completions", "testdata/replies") }
func TestResponseReplies(t *testing.T) { testReplies(t, "responses", "testdata/responses") }

func testReplies(t *testing.T, api, dir string) {
	files, err := filepath.Glob(dir + "/*.*")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		ext := filepath.Ext(file)
		if ext == ".golden" {
			continue
		}
		t.Run(strings.ReplaceAll(filepath.Base(file), ".", "_"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			right := map[string]string{".sse": "text/event-stream; charset=utf-8", ".json": "application/json"}[ext]
			req := provider.Request{Model: "m", Stream: ext == ".sse", Messages: []chat.Message{chat.Text(chat.User, "Question?")}}
			whole := func() io.Reader { return bytes.NewReader(data) }
			got := describe(t, ask(t, api, answer{http.Header{"Content-Type": {right}}, whole}, req))
			providertest.Golden(t, strings.TrimSuffix(file, ext)+"_"+ext[1:]+".golden", got, *update)

			slow := func() io.Reader { return iotest.OneByteReader(bytes.NewReader(data)) }
			marked := func() io.Reader { return io.MultiReader(strings.NewReader("\uFEFF"), bytes.NewReader(data)) }
			for name, other := range map[string]answer{
				"byte_by_byte":       {http.Header{"Content-Type": {right}}, slow},
				"no_content_type":    {nil, slow},
				"wrong_content_type": {http.Header{"Content-Type": {"text/plain"}}, whole},
				"byte_order_mark":    {nil, marked},
			} {
				if again := describe(t, ask(t, api, other, req)); again != got {
					t.Errorf("%s: got\n%s\nwant\n%s", name, again, got)
				}
			}
			req.Stream = !req.Stream
			if again := describe(t, ask(t, api, answer{nil, whole}, req)); again != got {
				t.Errorf("asked for the other form: got\n%s\nwant\n%s", again, got)
			}
		})
	}
}

// describe returns what tests compare of a reply.
func describe(t *testing.T, r providertest.Reply) string {
	t.Helper()
	d := struct {
		Text       string          `json:"text,omitempty"`
		Reasoning  string          `json:"reasoning,omitempty"`
		ToolCalls  []chat.ToolCall `json:"tool_calls,omitempty"`
		Stop       chat.StopReason `json:"stop,omitempty"`
		Usage      *chat.Usage     `json:"usage,omitempty"`
		Kind       string          `json:"error_kind,omitempty"`
		Error      string          `json:"error,omitempty"`
		RetryAfter string          `json:"retry_after,omitempty"`
	}{Text: r.Text, Reasoning: r.Reasoning, ToolCalls: r.ToolCalls, Stop: r.Stop}
	if r.Err == nil {
		d.Usage = &r.Usage
	} else {
		e, ok := errors.AsType[*provider.Error](r.Err)
		if !ok {
			t.Fatalf("error %v is no *provider.Error", r.Err)
		}
		d.Kind, d.Error = string(e.Kind), e.Error()
		if e.RetryAfter != 0 {
			d.RetryAfter = e.RetryAfter.String()
		}
	}
	return providertest.Indented(t, d)
}
