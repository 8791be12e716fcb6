package openai_test

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"loki/internal/frontend/server/servertest"
)

func TestRerank(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.HasSuffix(r.URL.Path, "/rerank") || !strings.Contains(string(body), `"documents":["a boat","a tree"]`) {
			http.Error(w, string(body), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"results":[{"index":1,"relevance_score":0.9},{"index":0,"relevance_score":0.2}],"usage":{"total_tokens":12}}`)
	}))
	defer upstream.Close()
	with := maps.Clone(files)
	with["config.yaml"] += "  - type: openai-compatible\n    name: near\n    api_base: " + upstream.URL + "/v1\n    api_key: k\n    models:\n      - {name: order, type: reranker}\n"
	url := servertest.Start(t, with).URL + "/v1/rerank"
	for _, model := range []string{"near:order", "order"} {
		_, _, body := post(t, url, `{"model":"`+model+`","query":"oak","documents":["a boat",{"text":"a tree"}],"top_n":2}`)
		if get(t, body, "results.0.index") != "1" || get(t, body, "results.0.relevance_score") != "0.9" || get(t, body, "results.0.document.text") != "a tree" || get(t, body, "usage.total_tokens") != "12" {
			t.Errorf("%s: %s", model, body)
		}
	}
	for _, tt := range []struct{ body, param string }{
		{`{"model":"near:order","documents":["a"]}`, "query"},
		{`{"model":"near:order","query":"q","documents":[]}`, "documents"},
		{`{"model":"near:order","query":"q","documents":["a"],"top_n":0}`, "top_n"},
		{`{"model":"near:order","query":"q","documents":["a"],"rank_fields":["x"]}`, "rank_fields"},
		{`{"model":"builtin:echo","query":"q","documents":["a"]}`, "model"},
	} {
		if _, _, body := post(t, url, tt.body); get(t, body, "error.param") != tt.param {
			t.Errorf("%s: %s", tt.body, body)
		}
	}
}

func TestEmbeddings(t *testing.T) {
	url := newServer(t) + "/v1/embeddings"
	_, _, body := post(t, url, `{"model":"hash","input":"a boat","input_type":"query"}`)
	if get(t, body, "data.0.object") != "embedding" || !strings.HasPrefix(get(t, body, "data.0.embedding"), "[") || get(t, body, "usage.prompt_tokens") == "0" {
		t.Errorf("%.300s", body)
	}
	_, _, body = post(t, url, `{"model":"builtin:hash","input":["a boat","a tree"],"encoding_format":"base64","dimensions":1024,"user":"u"}`)
	if v := get(t, body, "data.1.embedding"); len(v) != (4*1024+2)/3*4 || get(t, body, "data.1.index") != "1" {
		t.Errorf("%d characters: %.300s", len(v), body)
	}
	for _, tt := range []struct{ body, param string }{
		{`{"model":"builtin:hash"}`, "input"},
		{`{"model":"builtin:hash","input":[[1,2]]}`, "input[0]"},
		{`{"model":"builtin:hash","input":[""]}`, "input"},
		{`{"model":"builtin:hash","input":"a","dimensions":256}`, "dimensions"},
		{`{"model":"builtin:hash","input":"a","encoding_format":"int8"}`, "encoding_format"},
		{`{"model":"builtin:echo","input":"a"}`, "model"},
		{`{"model":"nothing","input":"a"}`, "model"},
	} {
		if _, _, body := post(t, url, tt.body); get(t, body, "error.param") != tt.param {
			t.Errorf("%s: %s", tt.body, body)
		}
	}
}
