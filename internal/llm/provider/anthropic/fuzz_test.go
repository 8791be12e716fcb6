package anthropic_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/anthropic"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/providertest/wiretest"
	"loki/internal/llm/provider/wire"
)

// FuzzReply sends arbitrary bytes through the client: a reply keeps the rules of
// replies, whatever came.
func FuzzReply(f *testing.F) {
	files, err := filepath.Glob("testdata/replies/*.*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && filepath.Ext(file) != ".golden" {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := ask(t, fixed{"text/event-stream", func() io.Reader { return bytes.NewReader(data) }}, true)
		if r.Err == nil {
			return
		}
		if _, ok := errors.AsType[*provider.Error](r.Err); !ok {
			t.Errorf("error %v (%T) is no *provider.Error", r.Err, r.Err)
		}
		if len(r.ToolCalls) > 0 {
			t.Errorf("a failed reply has the calls %+v", r.ToolCalls)
		}
	})
}

// keep is a transport that keeps the body of the request.
type keep struct{ body []byte }

func (k *keep) RoundTrip(r *http.Request) (*http.Response, error) {
	var err error
	if k.body, err = io.ReadAll(r.Body); err != nil {
		return nil, err
	}
	return fixed{"application/json", func() io.Reader { return bytes.NewReader([]byte(`{"content":[]}`)) }}.RoundTrip(r)
}

// FuzzRequest sends conversations of arbitrary pieces: the request is JSON, and holds
// no message that the API rejects for its form.
func FuzzRequest(f *testing.F) {
	f.Add("text", "data:image/png;base64,AAAA", "toolu_1", "f", `{"a":1}`, `{"type":"object"}`)
	f.Add(" ", "https://example.com", "functions.f:0", "a b", `{"a`, `{"properties":{}}`)
	f.Add("<think>a</think>", "data:,", "", "", "\xff", "[")
	f.Fuzz(func(t *testing.T, words, url, id, name, arguments, schema string) {
		k := &keep{}
		h, err := wire.NewClient(wire.Options{Client: "claude", Transport: k})
		if err != nil {
			t.Fatal(err)
		}
		c, err := anthropic.New(client.Options{Name: "claude", APIKey: wiretest.Key("key"), HTTP: h})
		if err != nil {
			t.Fatal(err)
		}
		req := provider.Request{Model: "m", Sampling: chat.Sampling{Effort: provider.LowEffort}, Messages: []chat.Message{
			chat.Text(chat.System, words), user(text(words), image(url)), user(text(words)),
			calling(assistant(reasoning(words, id), text(words)), chat.ToolCall{ID: id, Name: name, Arguments: arguments}),
			failed(result(id, text(words))), assistant(text(words)),
		}}
		if json.Valid([]byte(schema)) { // as every declaration is
			req.Tools = []chat.Tool{{Name: name, Parameters: json.RawMessage(schema)}}
		}
		r := providertest.Collect(t, c.Chat(t.Context(), req))
		if r.Err != nil {
			if e, ok := errors.AsType[*provider.Error](r.Err); !ok || e.Kind != provider.Invalid {
				t.Errorf("error = %v", r.Err)
			}
			return
		}
		var sent struct {
			Messages []struct {
				Role    string
				Content []struct {
					Type, Text string
					Input      map[string]any
				}
			}
			Tools []struct {
				Schema map[string]any `json:"input_schema"`
			}
		}
		if err := json.Unmarshal(k.body, &sent); err != nil {
			t.Fatalf("%v: %s", err, k.body)
		}
		for i, m := range sent.Messages {
			if len(m.Content) == 0 || i > 0 && m.Role == sent.Messages[i-1].Role {
				t.Errorf("message %d is empty or has the role of the one before: %s", i, k.body)
			}
			for _, b := range m.Content {
				if b.Type == "text" && b.Text == "" || b.Type == "tool_use" && b.Input == nil {
					t.Errorf("message %d holds an empty block: %s", i, k.body)
				}
			}
		}
		for _, tool := range sent.Tools {
			if tool.Schema["type"] == nil {
				t.Errorf("a schema has no type: %s", k.body)
			}
		}
	})
}
