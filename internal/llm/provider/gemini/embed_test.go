package gemini_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"loki/internal/llm/provider"
	"loki/internal/llm/provider/providertest/geminitest"
	"loki/internal/llm/provider/providertest/wiretest"
)

func texts(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = strings.Repeat("x", i+1)
	}
	return list
}

func TestEmbed(t *testing.T) {
	for _, tt := range []struct {
		name     string
		o        options
		model    string
		n        int
		query    bool
		script   []string
		path     string
		body     string // of the first request
		tokens   int
		estimate bool
	}{
		{
			name: "documents", model: "gemini-embedding-001", n: 2, script: []string{`{"embeddings":[{"values":[0.5,1]},{"values":[2,3]}]}`},
			path: "/v1beta/models/gemini-embedding-001:batchEmbedContents", tokens: 2, estimate: true,
			body: `{"requests":[{"content":{"parts":[{"text":"x"}],"role":"user"},"model":"models/gemini-embedding-001","taskType":"RETRIEVAL_DOCUMENT"},` +
				`{"content":{"parts":[{"text":"xx"}],"role":"user"},"model":"models/gemini-embedding-001","taskType":"RETRIEVAL_DOCUMENT"}]}`,
		},
		{
			name: "query", model: "gemini-embedding-001", n: 1, query: true, script: []string{`{"embeddings":[{"values":[0.5,1]}]}`},
			path: "/v1beta/models/gemini-embedding-001:batchEmbedContents", tokens: 1, estimate: true,
			body: `{"requests":[{"content":{"parts":[{"text":"x"}],"role":"user"},"model":"models/gemini-embedding-001","taskType":"RETRIEVAL_QUERY"}]}`,
		},
		{
			name: "vertex_predict", o: onVertex, model: "text-embedding-005", n: 2,
			script: []string{`{"predictions":[{"embeddings":{"values":[0.5,1],"statistics":{"truncated":false,"token_count":7}}},{"embeddings":{"values":[2,3],"statistics":{"token_count":2}}}],"metadata":{"billableCharacterCount":3}}`},
			path:   "/v1beta/projects/p/locations/l/publishers/google/models/text-embedding-005:predict", tokens: 9,
			body: `{"instances":[{"content":"x","task_type":"RETRIEVAL_DOCUMENT"},{"content":"xx","task_type":"RETRIEVAL_DOCUMENT"}]}`,
		},
		{
			name: "vertex_one_at_a_time", o: onVertex, model: "gemini-embedding-001", n: 2, query: true,
			script: []string{`{"predictions":[{"embeddings":{"values":[0.5,1],"statistics":{"token_count":1}}}]}`, `{"predictions":[{"embeddings":{"values":[2,3],"statistics":{"token_count":1}}}]}`},
			path:   "/v1beta/projects/p/locations/l/publishers/google/models/gemini-embedding-001:predict", tokens: 2,
			body: `{"instances":[{"content":"x","task_type":"RETRIEVAL_QUERY"}]}`,
		},
		{
			name: "vertex_embed_content", o: onVertex, model: "gemini-embedding-2", n: 1,
			script: []string{`{"embedding":{"values":[0.5,1]},"usageMetadata":{"promptTokenCount":4}}`},
			path:   "/v1beta/projects/p/locations/l/publishers/google/models/gemini-embedding-2:embedContent", tokens: 4,
			body: `{"content":{"parts":[{"text":"x"}],"role":"user"},"embedContentConfig":{"taskType":"RETRIEVAL_DOCUMENT"}}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var script []wiretest.Reply
			for _, s := range tt.script {
				script = append(script, wiretest.JSON(s))
			}
			server := geminitest.New(t, script...)
			got, usage, err := newClient(t, server, tt.o).Embed(t.Context(), provider.EmbedRequest{Model: tt.model, Texts: texts(tt.n), Query: tt.query})
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprint([][]float32{{0.5, 1}, {2, 3}}[:tt.n]); fmt.Sprint(got) != want {
				t.Errorf("vectors = %v, want %s", got, want)
			}
			if usage.InputTokens != tt.tokens || usage.Estimated != tt.estimate {
				t.Errorf("usage = %+v", usage)
			}
			requests := server.Requests()
			if len(requests) != len(tt.script) || requests[0].Path != tt.path {
				t.Errorf("%d requests, the first to %s", len(requests), requests[0].Path)
			}
			if body := strings.TrimSpace(string(requests[0].Body)); body != tt.body {
				t.Errorf("body = %s\nwant   %s", body, tt.body)
			}
		})
	}
}

var onVertex = options{place: "projects/p/locations/l"}

func TestEmbedBatches(t *testing.T) {
	server := geminitest.New(t, wiretest.JSON(embeddings(100)), wiretest.JSON(embeddings(50)))
	got, _, err := newClient(t, server, options{}).Embed(t.Context(), provider.EmbedRequest{Model: "m", Texts: texts(150)})
	if err != nil || len(got) != 150 || len(server.Requests()) != 2 {
		t.Errorf("%d vectors from %d requests, error %v", len(got), len(server.Requests()), err)
	}
	none, _, err := newClient(t, server, options{}).Embed(t.Context(), provider.EmbedRequest{Model: "m"})
	if err != nil || len(none) != 0 {
		t.Errorf("of no text: %v, %v", none, err)
	}
}

func embeddings(n int) string {
	list := make([]map[string]any, n)
	for i := range list {
		list[i] = map[string]any{"values": []float32{1, 2}}
	}
	doc, _ := json.Marshal(map[string]any{"embeddings": list}) // numbers only
	return string(doc)
}

func TestEmbedFails(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		kind       provider.ErrorKind
	}{
		{"too_few", `{"embeddings":[{"values":[1]}]}`, provider.BadReply},
		{"empty", `{"embeddings":[{"values":[1]},{"values":[]}]}`, provider.BadReply},
		{"of_different_length", `{"embeddings":[{"values":[1]},{"values":[1,2]}]}`, provider.BadReply},
		{"no_list", `{"embeddings":{"values":[1]}}`, provider.BadReply},
		{"no_numbers", `{"embeddings":[{"values":["a"]},{"values":[1]}]}`, provider.BadReply},
		{"page", `<html>`, provider.BadReply},
		{"error", `{"error":{"code":403,"message":"no","status":"PERMISSION_DENIED"}}`, provider.Authentication},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := geminitest.New(t, wiretest.JSON(tt.body))
			_, _, err := newClient(t, server, options{}).Embed(t.Context(), provider.EmbedRequest{Model: "m", Texts: texts(2)})
			if e, ok := errors.AsType[*provider.Error](err); !ok || e.Kind != tt.kind {
				t.Errorf("error = %v, want one of kind %s", err, tt.kind)
			}
		})
	}
}
