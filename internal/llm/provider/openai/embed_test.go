package openai_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/openai"
	"loki/internal/llm/provider/providertest/openaitest"
	"loki/internal/llm/provider/providertest/wiretest"
	"loki/internal/llm/provider/wire"
)

// packed returns the base64 form of v.
func packed(v ...float32) string {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(b)
}

func TestEmbed(t *testing.T) {
	document := func(body string) wiretest.Reply { return wiretest.Body("application/json", body) }
	for _, tt := range []struct {
		name    string
		re      wiretest.Reply
		want    [][]float32
		usage   chat.Usage
		wantErr string
	}{
		{"in_order", openaitest.Embeddings([]float32{1, 0.5}, []float32{-1, 2}), [][]float32{{1, 0.5}, {-1, 2}}, chat.Usage{InputTokens: openaitest.PromptTokens}, ""},
		{"by_index", document(`{"data":[{"index":1,"embedding":[2]},{"index":0,"embedding":[1]}]}`), [][]float32{{1}, {2}}, chat.Usage{InputTokens: 2, Estimated: true}, ""},
		{"without_index", document(`{"data":[{"embedding":[1]},{"embedding":[2]}],"usage":{"total_tokens":9}}`), [][]float32{{1}, {2}}, chat.Usage{InputTokens: 9}, ""},
		{"base64", document(`{"data":[{"embedding":"` + packed(1, 2) + `"},{"embedding":"` + packed(3, -4) + `"}]}`), [][]float32{{1, 2}, {3, -4}}, chat.Usage{InputTokens: 2, Estimated: true}, ""},
		{"too_few", openaitest.Embeddings([]float32{1}), nil, chat.Usage{}, "1 embeddings for 2 texts"},
		{"too_many", openaitest.Embeddings([]float32{1}, []float32{1}, []float32{1}), nil, chat.Usage{}, "3 embeddings for 2 texts"},
		{"other_length", openaitest.Embeddings([]float32{1}, []float32{1, 2}), nil, chat.Usage{}, "differ in length"},
		{"empty_vectors", openaitest.Embeddings([]float32{}, []float32{}), nil, chat.Usage{}, "empty"},
		{"same_index", document(`{"data":[{"index":1,"embedding":[2]},{"index":1,"embedding":[1]}]}`), nil, chat.Usage{}, "index 1"},
		{"index_out_of_range", document(`{"data":[{"index":0,"embedding":[2]},{"index":7,"embedding":[1]}]}`), nil, chat.Usage{}, "index 7"},
		{"no_numbers", document(`{"data":[{"embedding":"!"},{"embedding":"!"}]}`), nil, chat.Usage{}, "holds no embeddings"},
		{"no_data", document(`{"data":[]}`), nil, chat.Usage{}, "holds no embeddings"},
		{"no_json", document(`<html>hm`), nil, chat.Usage{}, "holds no embeddings: hm"},
		{"error_in_200", document(`{"error":{"message":"overloaded"}}`), nil, chat.Usage{}, "overloaded"},
		{"status", wiretest.Status(400, `{"error":{"message":"too long"}}`), nil, chat.Usage{}, "too long (HTTP 400)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, server := newClient(t, client.Options{Model: func(string) wire.Model { return wire.Model{RealName: "real"} }}, tt.re)
			got, usage, err := c.Embed(t.Context(), provider.EmbedRequest{Model: "m", Texts: []string{"abcd", "efgh"}})
			checkError(t, err, tt.wantErr)
			if !reflect.DeepEqual(got, tt.want) || usage != tt.usage {
				t.Errorf("got %v, %+v; want %v, %+v", got, usage, tt.want, tt.usage)
			}
			if body := string(server.Requests()[0].Body); body != `{"model":"real","input":["abcd","efgh"]}` {
				t.Errorf("request %s", body)
			}
		})
	}
}

// checkError checks that err is a [*provider.Error] with the text want, or nil if
// want is empty.
func checkError(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("error = %v", err)
		}
		return
	}
	if _, ok := errors.AsType[*provider.Error](err); !ok || !strings.Contains(err.Error(), want) {
		t.Errorf("error = %v, want one with %q", err, want)
	}
}

func TestEmbedTellsQueriesFromDocuments(t *testing.T) {
	for _, tt := range []struct {
		client, model string
		query         bool
		want          string
	}{
		{"voyageai", "voyage-3", true, `"input_type":"query"`},
		{"voyageai-2", "voyage-3", false, `"input_type":"document"`},
		{"jina", "jina-embeddings-v3", true, `"task":"retrieval.query"`},
		{"jina", "jina-embeddings-v4", false, `"task":"retrieval.passage"`},
		{"jina", "jina-clip-v2", true, `{"model":"jina-clip-v2","input":["a"]}`},
		{"other", "m", true, `{"model":"m","input":["a"]}`},
	} {
		c, server := newClient(t, client.Options{Name: tt.client}, openaitest.Embeddings([]float32{1}))
		if _, _, err := c.Embed(t.Context(), provider.EmbedRequest{Model: tt.model, Texts: []string{"a"}, Query: tt.query}); err != nil {
			t.Error(err)
		}
		if body := string(server.Requests()[0].Body); !strings.Contains(body, tt.want) {
			t.Errorf("%s %s: %s, want %s", tt.client, tt.model, body, tt.want)
		}
	}
}

func TestEmbedDimensions(t *testing.T) {
	c, server := newClient(t, client.Options{}, openaitest.Embeddings([]float32{1}))
	if _, _, err := c.Embed(t.Context(), provider.EmbedRequest{Model: "m", Texts: []string{"a"}, Dimensions: 1}); err != nil {
		t.Error(err)
	}
	if body := string(server.Requests()[0].Body); body != `{"model":"m","input":["a"],"dimensions":1}` {
		t.Error(body)
	}
}

func TestRerank(t *testing.T) {
	document := func(body string) wiretest.Reply { return wiretest.Body("application/json", body) }
	all := []provider.Ranked{{Index: 2, Score: 0.9}, {Index: 0, Score: 0.5}, {Index: 1, Score: 0.1}}
	told := chat.Usage{InputTokens: openaitest.PromptTokens}
	estimated := chat.Usage{InputTokens: 6, Estimated: true}
	for _, tt := range []struct {
		name    string
		topN    int
		re      wiretest.Reply
		want    []provider.Ranked
		usage   chat.Usage
		wantErr string
	}{
		{"results", 0, openaitest.Ranking(openaitest.Rank{Index: 2, Score: 0.9}, openaitest.Rank{Index: 0, Score: 0.5}, openaitest.Rank{Index: 1, Score: 0.1}), all, told, ""},
		{"not_sorted", 0, openaitest.Ranking(openaitest.Rank{Index: 0, Score: 0.5}, openaitest.Rank{Index: 1, Score: 0.1}, openaitest.Rank{Index: 2, Score: 0.9}), all, told, ""},
		{"data", 0, document(`{"data":[{"index":1,"relevance_score":0.5}],"usage":{"total_tokens":7}}`), []provider.Ranked{{Index: 1, Score: 0.5}}, chat.Usage{InputTokens: 7}, ""},
		{"bare_list", 0, document(`[{"index":1,"score":0.5},{"index":0,"score":0.2}]`), []provider.Ranked{{Index: 1, Score: 0.5}, {Index: 0, Score: 0.2}}, estimated, ""},
		{"without_scores", 0, document(`{"results":[{"index":2},{"index":0}]}`), []provider.Ranked{{Index: 2, Score: 2}, {Index: 0, Score: 1}}, estimated, ""},
		{"more_than_asked_for", 1, document(`{"results":[{"index":2,"score":1},{"index":0,"score":0.5}]}`), []provider.Ranked{{Index: 2, Score: 1}}, estimated, ""},
		{"index_out_of_range", 0, document(`{"results":[{"index":3,"score":1}]}`), nil, chat.Usage{}, "refers to no document"},
		{"negative_index", 0, document(`{"results":[{"index":-1,"score":1}]}`), nil, chat.Usage{}, "refers to no document"},
		{"index_twice", 0, document(`{"results":[{"index":1,"score":1},{"index":1,"score":1}]}`), nil, chat.Usage{}, "result 2"},
		{"no_results", 0, document(`{"results":[]}`), nil, chat.Usage{}, "holds no ranking"},
		{"no_json", 0, document(`[{`), nil, chat.Usage{}, "holds no ranking"},
		{"error_list_in_200", 0, document(`[{"error":{"message":"bad","status":"INVALID_ARGUMENT"}}]`), nil, chat.Usage{}, "bad (status: INVALID_ARGUMENT)"},
		{"status", 0, wiretest.Status(404, `{"detail":"Not Found"}`), nil, chat.Usage{}, "Not Found (HTTP 404)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, _ := newClient(t, client.Options{}, tt.re)
			got, usage, err := c.Rerank(t.Context(), provider.RerankRequest{Model: "m", Query: "abcd", Documents: []string{"a", "b", "c"}, TopN: tt.topN})
			checkError(t, err, tt.wantErr)
			if !reflect.DeepEqual(got, tt.want) || usage != tt.usage {
				t.Errorf("got %v, %+v; want %v, %+v", got, usage, tt.want, tt.usage)
			}
		})
	}
}

func TestRerankRequests(t *testing.T) {
	for _, tt := range []struct {
		client string
		topN   int
		want   string
	}{
		{"jina", 2, `{"model":"m","query":"q","documents":["a"],"top_n":2}`},
		{"jina", 0, `{"model":"m","query":"q","documents":["a"]}`},
		{"voyageai", 2, `{"model":"m","query":"q","documents":["a"],"top_k":2}`},
	} {
		c, server := newClient(t, client.Options{Name: tt.client}, openaitest.Ranking(openaitest.Rank{}))
		if _, _, err := c.Rerank(t.Context(), provider.RerankRequest{Model: "m", Query: "q", Documents: []string{"a"}, TopN: tt.topN}); err != nil {
			t.Error(err)
		}
		if body := string(server.Requests()[0].Body); body != tt.want {
			t.Errorf("%s: %s, want %s", tt.client, body, tt.want)
		}
	}
}

func TestNothingToDoAsksNobody(t *testing.T) {
	c, server := newClient(t, client.Options{})
	vectors, _, err := c.Embed(t.Context(), provider.EmbedRequest{Model: "m"})
	ranked, _, err2 := c.Rerank(t.Context(), provider.RerankRequest{Model: "m", Query: "q"})
	if vectors != nil || ranked != nil || err != nil || err2 != nil || len(server.Requests()) != 0 {
		t.Errorf("%v, %v, %v, %v, %d requests", vectors, ranked, err, err2, len(server.Requests()))
	}
}

// FuzzEmbedAndRerank feeds arbitrary replies to the two calls.
func FuzzEmbedAndRerank(f *testing.F) {
	f.Add([]byte(`{"data":[{"index":0,"embedding":[1,2]}],"usage":{"total_tokens":3}}`))
	f.Add([]byte(`{"data":[{"embedding":"AACAPw=="}]}`))
	f.Add([]byte(`{"results":[{"index":0,"relevance_score":0.3}]}`))
	f.Add([]byte(`[{"index":0,"score":1e400}]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := openai.NewCompatible(client.Options{
			Name: "x", APIBase: "http://x.test",
			HTTP: wired(t, wire.Options{Transport: answer{nil, func() io.Reader { return bytes.NewReader(body) }}}),
		})
		if err != nil {
			t.Fatal(err)
		}
		vectors, _, err := c.Embed(t.Context(), provider.EmbedRequest{Texts: []string{"a"}})
		if err == nil && (len(vectors) != 1 || len(vectors[0]) == 0) {
			t.Errorf("vectors %v", vectors)
		}
		ranked, _, err := c.Rerank(t.Context(), provider.RerankRequest{Query: "q", Documents: []string{"a"}})
		if err == nil && (len(ranked) != 1 || ranked[0].Index != 0) {
			t.Errorf("ranking %v", ranked)
		}
	})
}
