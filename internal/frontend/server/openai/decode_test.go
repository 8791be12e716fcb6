package openai

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"loki/internal/frontend/server/rest"
	"loki/internal/llm/chat"
)

// FuzzRequests: whatever a client sends is read, or refused with status 400.
func FuzzRequests(f *testing.F) {
	for _, seed := range []string{
		`{"model":"a","messages":[{"role":"user","content":"b"}],"stop":["c"],"seed":1,"n":1,"stream":true,"stream_options":{"include_usage":true}}`,
		`{"model":"a","messages":[{"role":"system","content":[{"type":"text","text":"s"}]},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}]},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"r"}],"tools":[{"type":"function","function":{"name":"f","parameters":{}}}],"tool_choice":{"type":"function","function":{"name":"f"}},"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}}}`,
		`{"model":"a","input":"b","previous_response_id":"resp_x","text":{"format":{"type":"json_object"}},"reasoning":{"effort":"low"}}`,
		`{"model":"a","input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"r"},{"role":"user","content":[{"type":"input_text","text":"t"}]}],"tools":[{"type":"function","name":"f"}],"tool_choice":"required"}`,
		`{"model":"a","input":["b","c"],"encoding_format":"base64"}`,
		`{"model":"a","query":"q","documents":["a",{"text":"b"}],"top_n":1}`,
		`{"model":"a","messages":[null]}`, `{"model":"a","input":[[]]}`, `[]`, `{`, `null`, `{"model":"a","messages":{"a":1}}`,
	} {
		f.Add([]byte(seed))
	}
	a := rest.New(rest.Options{})
	op := func(path string) rest.Operation {
		return rest.Operation{Method: http.MethodPost, Path: path, Summary: "Test", OpenAIErrors: true}
	}
	var read *request // by the endpoint that was called last
	goesOn := false
	rest.Register(a, op("/chat"), func(_ context.Context, in *completionInput) (_ *rest.None, err error) {
		read, err = in.Body.request()
		return new(rest.None), err
	})
	rest.Register(a, op("/responses"), func(_ context.Context, in *responseInput) (_ *rest.None, err error) {
		goesOn = in.Body.PreviousResponseID != nil
		read, err = in.Body.request()
		return new(rest.None), err
	})
	rest.Register(a, op("/embeddings"), func(_ context.Context, in *embeddingsInput) (*rest.None, error) {
		return new(rest.None), in.Body.check()
	})
	rest.Register(a, op("/rerank"), func(context.Context, *rerankInput) (*rest.None, error) { return new(rest.None), nil })
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range []string{"/chat", "/responses", "/embeddings", "/rerank"} {
			read, goesOn = nil, false
			r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			a.ServeHTTP(w, rest.Begin(w, r))
			switch {
			case w.Code == http.StatusBadRequest && strings.Contains(w.Body.String(), `"message":"`):
			case w.Code != http.StatusNoContent:
				t.Fatalf("%s: %d %s", path, w.Code, w.Body)
			case read != nil:
				sound(t, read, goesOn)
			}
		}
	})
}

// sound checks what every request that is read has to be.
func sound(t *testing.T, r *request, goesOn bool) {
	t.Helper()
	if r.Model == "" || r.User.Role != "" && r.User.Role != chat.User || r.User.Role == "" && len(r.History) == 0 {
		t.Fatalf("%+v", r)
	}
	open := make(map[string]bool)
	for i, m := range r.History {
		if m.Role == chat.System && i > 0 {
			t.Fatalf("a system message is not the first: %+v", r.History)
		}
		if m.Role == chat.ToolRole && !open[m.ToolCallID] && !goesOn {
			t.Fatalf("a result without a call: %+v", r.History)
		}
		delete(open, m.ToolCallID)
		for _, c := range m.ToolCalls {
			if c.ID == "" || c.Name == "" || c.Arguments == "" {
				t.Fatalf("an incomplete call: %+v", c)
			}
			open[c.ID] = true
		}
	}
	if len(open) > 0 {
		t.Fatalf("calls without a result: %v in %+v", open, r.History)
	}
}
