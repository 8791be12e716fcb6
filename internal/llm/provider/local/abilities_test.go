package local

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestAbilitiesOf(t *testing.T) {
	for _, tt := range []struct {
		name       string
		kind       Kind
		path, body string // of the request
		answer     string
		want       Abilities
		known      bool
	}{
		{"ollama", Ollama, "POST /api/show", `{"model":"a/b:c"}`, `{"details":{},"capabilities":["completion","tools","thinking"]}`, Abilities{Tools: true}, true},
		{"ollama_without_tools", Ollama, "POST /api/show", `{"model":"a/b:c"}`, `{"capabilities":["completion","vision"]}`, Abilities{Vision: true}, true},
		{"old_ollama", Ollama, "POST /api/show", `{"model":"a/b:c"}`, `{"modelfile":"x"}`, Abilities{}, false},
		{"lmstudio", LMStudio, "GET /api/v0/models/a%2Fb:c", "", `{"id":"a/b:c","type":"vlm","capabilities":["tool_use"]}`, Abilities{Tools: true, Vision: true}, true},
		{"old_lmstudio", LMStudio, "GET /api/v0/models/a%2Fb:c", "", `{"id":"a/b:c","type":"llm"}`, Abilities{}, false},
		{"no_json", Ollama, "POST /api/show", `{"model":"a/b:c"}`, `<html>`, Abilities{}, false},
		{"llamacpp", LlamaCPP, "", "", "", Abilities{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := ""
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				asked = r.Method + " " + r.URL.EscapedPath()
				if string(body) != tt.body {
					t.Errorf("body %q, want %q", body, tt.body)
				}
				_, _ = io.WriteString(w, tt.answer)
			}))
			defer server.Close()
			got, known := AbilitiesOf(t.Context(), nil, Server{Kind: tt.kind, BaseURL: server.URL + "/v1"}, "a/b:c")
			if got != tt.want || known != tt.known {
				t.Errorf("got %+v, %v, want %+v, %v", got, known, tt.want, tt.known)
			}
			if asked != tt.path {
				t.Errorf("asked %q, want %q", asked, tt.path)
			}
		})
	}
}

func TestAbilitiesOfAServerThatFails(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	if _, known := AbilitiesOf(t.Context(), nil, Server{Kind: Ollama, BaseURL: server.URL + "/v1"}, "m"); known {
		t.Error("a server that is gone says what its model can do")
	}
}
