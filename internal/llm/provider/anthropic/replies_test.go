package anthropic_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/anthropic"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/providertest/wiretest"
	"loki/internal/llm/provider/wire"
)

// fixed is a transport that gives every request the same response.
type fixed struct {
	contentType string
	body        func() io.Reader
}

func (f fixed) RoundTrip(r *http.Request) (*http.Response, error) {
	header := http.Header{"Content-Type": {f.contentType}}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(f.body()), Request: r}, nil
}

func ask(t testing.TB, f fixed, stream bool) providertest.Reply {
	t.Helper()
	h, err := wire.NewClient(wire.Options{Client: "claude", Transport: f})
	if err != nil {
		t.Fatal(err)
	}
	c, err := anthropic.New(client.Options{Name: "claude", APIBase: "http://server.test/v1", APIKey: wiretest.Key("key"), HTTP: h})
	if err != nil {
		t.Fatal(err)
	}
	req := question()
	req.Stream = stream
	return collect(t, c, req)
}

// TestReplies reads replies of many kinds. What comes out has to be the same whatever
// the content type says, whatever was asked for, and however the bytes are cut.
func TestReplies(t *testing.T) {
	files, err := filepath.Glob("testdata/replies/*.*")
	if err != nil || len(files) < 20 {
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
			stream := ext == ".sse"
			right := map[bool]string{true: "text/event-stream; charset=utf-8", false: "application/json"}[stream]
			whole := func() io.Reader { return bytes.NewReader(data) }
			slow := func() io.Reader { return iotest.OneByteReader(bytes.NewReader(data)) }
			marked := func() io.Reader { return io.MultiReader(strings.NewReader("\uFEFF\n"), bytes.NewReader(data)) }
			got := describe(t, ask(t, fixed{right, whole}, stream))
			providertest.Golden(t, strings.TrimSuffix(file, ext)+"_"+ext[1:]+".golden", got, *update)
			for name, other := range map[string]func() providertest.Reply{
				"byte_by_byte":         func() providertest.Reply { return ask(t, fixed{right, slow}, stream) },
				"no_content_type":      func() providertest.Reply { return ask(t, fixed{"", whole}, stream) },
				"wrong_content_type":   func() providertest.Reply { return ask(t, fixed{"text/plain", whole}, stream) },
				"byte_order_mark":      func() providertest.Reply { return ask(t, fixed{right, marked}, stream) },
				"asked_for_other_form": func() providertest.Reply { return ask(t, fixed{right, whole}, !stream) },
			} {
				if again := describe(t, other()); again != got {
					t.Errorf("%s: got\n%s\nwant\n%s", name, again, got)
				}
			}
		})
	}
}

// TestBothForms compares replies that exist streamed and in one piece.
func TestBothForms(t *testing.T) {
	for _, name := range []string{"text", "thinking_and_calls"} {
		streamed, err := os.ReadFile("testdata/replies/" + name + "_sse.golden")
		if err != nil {
			t.Fatal(err)
		}
		whole, err := os.ReadFile("testdata/replies/" + name + "_json.golden")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(streamed, whole) {
			t.Errorf("%s: streamed\n%s\nin one piece\n%s", name, streamed, whole)
		}
	}
}

// describe returns what tests compare of a reply.
func describe(t *testing.T, r providertest.Reply) string {
	t.Helper()
	d := struct {
		Text      string          `json:"text,omitempty"`
		Reasoning string          `json:"reasoning,omitempty"`
		Signature string          `json:"signature,omitempty"`
		ToolCalls []chat.ToolCall `json:"tool_calls,omitempty"`
		Stop      chat.StopReason `json:"stop,omitempty"`
		Usage     *chat.Usage     `json:"usage,omitempty"`
		Kind      string          `json:"error_kind,omitempty"`
		Error     string          `json:"error,omitempty"`
	}{Text: r.Text, Reasoning: r.Reasoning, Signature: r.Signature, ToolCalls: r.ToolCalls, Stop: r.Stop}
	if r.Err == nil {
		d.Usage = &r.Usage
	} else {
		e, ok := errors.AsType[*provider.Error](r.Err)
		if !ok {
			t.Fatalf("error %v is no *provider.Error", r.Err)
		}
		d.Kind, d.Error = string(e.Kind), e.Error()
	}
	return providertest.Indented(t, d)
}

// TestCallIDs continues a conversation whose ids the server uses again.
func TestCallIDs(t *testing.T) {
	s := newServer(t, wiretest.JSON(`{"content":[
		{"type":"tool_use","id":"a","name":"f","input":{}}, {"type":"tool_use","id":"","name":"g","input":{}},
		{"type":"tool_use","id":"call_4","name":"h","input":{}}, {"type":"tool_use","id":"call_4","name":"i","input":{}}]}`))
	r := collect(t, s.client(nil), question(calling(assistant(), call("a"), call("call_2")), result("a"), result("call_2")))
	var got []string
	for _, c := range r.ToolCalls {
		got = append(got, c.Name+":"+c.ID)
	}
	if want := "f:call_3 g:call_5 h:call_4 i:call_6"; strings.Join(got, " ") != want {
		t.Errorf("calls %v, want %s", got, want)
	}
}
