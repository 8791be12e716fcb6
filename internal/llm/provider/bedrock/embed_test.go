package bedrock

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/providertest/wiretest"
	"loki/internal/llm/provider/wire"
)

// titan answers with one vector, as these models do.
func titan(c *wiretest.Call) {
	wiretest.Status(200, `{"embedding":[1,0.5],"inputTextTokenCount":3}`)(c)
}

func TestEmbedTitan(t *testing.T) {
	srv := newServer(t, titan)
	texts := []string{"a", "b", "c", "d", "e", "f", "g"}
	vectors, usage, err := srv.client(nil).Embed(t.Context(), provider.EmbedRequest{Model: "amazon.titan-embed-text-v2:0", Texts: texts})
	if err != nil || len(vectors) != len(texts) || usage != (chat.Usage{InputTokens: 21}) {
		t.Fatalf("%v, %+v, %v", vectors, usage, err)
	}
	asked := make(map[string]bool)
	for _, r := range srv.Requests() {
		asked[r.Text()] = true
		if r.Path != "/model/amazon.titan-embed-text-v2%3A0/invoke" {
			t.Errorf("path %s", r.Path)
		}
	}
	for _, text := range texts {
		if !asked[`{"inputText":"`+text+`"}`] {
			t.Errorf("nobody asked for %s in %v", text, asked)
		}
	}
}

// cohereVectors answers with as many vectors as the field X-Texts says, two if it does not.
func cohereVectors(byType bool) wiretest.Reply {
	return func(c *wiretest.Call) {
		n := 0
		if _, err := fmt.Sscanf(c.R.Header.Get("X-Texts"), "%d", &n); err != nil {
			n = 2
		}
		vectors := strings.TrimSuffix(strings.Repeat("[0.25,-1],", n), ",")
		body := `{"embeddings":[` + vectors + `],"response_type":"embeddings_floats"}`
		if byType {
			body = `{"embeddings":{"float":[` + vectors + `]},"response_type":"embeddings_by_type"}`
		}
		wiretest.Status(200, body, "X-Amzn-Bedrock-Input-Token-Count", "8")(c)
	}
}

func TestEmbedCohere(t *testing.T) {
	for _, byType := range []bool{false, true} {
		srv := newServer(t, cohereVectors(byType))
		for query, want := range map[bool]string{
			false: `{"texts":["a","<b>"],"input_type":"search_document","truncate":"END"}`,
			true:  `{"texts":["a","<b>"],"input_type":"search_query","truncate":"END"}`,
		} {
			c := srv.client(func(o *Options) {
				o.Model = func(string) wire.Model { return wire.Model{RealName: "cohere.embed-v4:0"} }
				o.Patches = wire.Patches{wire.Embeddings: {{Pattern: "alias", Patch: wire.Patch{Body: providertest.Object(map[string]any{"truncate": "END"})}}}}
			})
			vectors, usage, err := c.Embed(t.Context(), provider.EmbedRequest{Model: "alias", Texts: []string{"a", "<b>"}, Query: query})
			if diff := cmp.Diff([][]float32{{0.25, -1}, {0.25, -1}}, vectors); diff != "" || err != nil || usage != (chat.Usage{InputTokens: 8}) {
				t.Errorf("%v, %+v, %s", err, usage, diff)
			}
			wantJSON(t, srv.Last().Text(), want)
		}
	}
}

// Cohere models take at most 96 texts at once.
func TestEmbedBatches(t *testing.T) {
	var sizes []int
	srv := newServer(t)
	srv.Always(func(c *wiretest.Call) {
		var body struct{ Texts []string }
		if err := json.Unmarshal([]byte(srv.Last().Text()), &body); err != nil {
			t.Error(err)
		}
		sizes = append(sizes, len(body.Texts))
		c.R.Header.Set("X-Texts", fmt.Sprint(len(body.Texts)))
		cohereVectors(false)(c)
	})
	vectors, usage, err := srv.client(nil).Embed(t.Context(), provider.EmbedRequest{Model: "cohere.embed-english-v3", Texts: make([]string, 200)})
	if diff := cmp.Diff([]int{96, 96, 8}, sizes); err != nil || len(vectors) != 200 || diff != "" || usage.InputTokens != 24 {
		t.Errorf("%d vectors, usage %+v, error %v, batches %s", len(vectors), usage, err, diff)
	}
}

func TestEmbedFailures(t *testing.T) {
	for _, tt := range []struct {
		name, model string
		reply       wiretest.Reply
		kind        provider.ErrorKind
	}{
		{"unknown_model", "amazon.nova-pro-v1:0", nil, provider.Invalid},
		{"count", "cohere.embed-english-v3", wiretest.Status(200, `{"embeddings":[[1]]}`), provider.BadReply},
		{"lengths", "cohere.embed-english-v3", wiretest.Status(200, `{"embeddings":[[1],[1,2]]}`), provider.BadReply},
		{"empty", "cohere.embed-english-v3", wiretest.Status(200, `{"embeddings":[[],[]]}`), provider.BadReply},
		{"no_vectors", "amazon.titan-embed-text-v1", wiretest.Status(200, `{}`), provider.BadReply},
		{"not_json", "amazon.titan-embed-text-v1", wiretest.Status(200, `<html>`), provider.BadReply},
		{"throttled", "amazon.titan-embed-text-v1", wiretest.Status(429, `{"message":"Slow down."}`), provider.RateLimited},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := newServer(t, tt.reply)
			vectors, _, err := srv.client(nil).Embed(t.Context(), provider.EmbedRequest{Model: tt.model, Texts: []string{"a", "b"}})
			if e, ok := errors.AsType[*provider.Error](err); !ok || e.Kind != tt.kind || vectors != nil {
				t.Errorf("%v, %v, want %s", vectors, err, tt.kind)
			}
		})
	}
	srv := newServer(t, wiretest.JSON("{}"))
	if v, _, err := srv.client(nil).Embed(t.Context(), provider.EmbedRequest{Model: "x"}); v != nil || err != nil || len(srv.Requests()) != 0 {
		t.Errorf("no texts: %v, %v after %d requests", v, err, len(srv.Requests()))
	}
}

func FuzzVectors(f *testing.F) {
	f.Add([]byte(`{"embedding":[1,2],"inputTextTokenCount":2}`))
	f.Add([]byte(`{"embeddings":[[1],[2]]}`))
	f.Add([]byte(`{"embeddings":{"float":[[1]],"int8":[[1]]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if vectors, _, err := readVectors(data); err == nil && len(vectors) == 0 {
			t.Errorf("%s: neither vectors nor an error", data)
		}
	})
}
