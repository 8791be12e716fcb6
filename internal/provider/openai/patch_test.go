package openai_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"loki/internal/provider"
	"loki/internal/provider/openai"
	"loki/internal/provider/providertest/openaitest"
)

func rules(t *testing.T, text string) openai.PatchRules {
	t.Helper()
	var r openai.PatchRules
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPatchedBody(t *testing.T) {
	for _, tt := range []struct{ name, model, client, want string }{
		{"none", `{}`, `{}`, `{"model":"real","temperature":0.5,"top_p":0.9}`},
		{"model_only", `{"body":{"temperature":null,"seed":7}}`, `{}`, `{"model":"real","seed":7,"top_p":0.9}`},
		{"client_after_model", `{"body":{"temperature":1,"seed":7}}`, `{".*":{"body":{"temperature":2}}}`, `{"model":"real","seed":7,"temperature":2,"top_p":0.9}`},
		{"first_match_only", `{}`, `{"al.*":{"body":{"a":1}},"alias":{"body":{"b":1}}}`, `{"a":1,"model":"real","temperature":0.5,"top_p":0.9}`},
		{"order_of_the_text", `{}`, `{"z|alias":{"body":{"z":1}},"alias":{"body":{"a":1}}}`, `{"model":"real","temperature":0.5,"top_p":0.9,"z":1}`},
		{"whole_name", `{}`, `{"ali":{"body":{"a":1}},"lias":{"body":{"b":1}},"a|s":{"body":{"c":1}}}`, `{"model":"real","temperature":0.5,"top_p":0.9}`},
		{"alias_not_real_name", `{}`, `{"real":{"body":{"a":1}}}`, `{"model":"real","temperature":0.5,"top_p":0.9}`},
		{"invalid_pattern_skipped", `{}`, `{"(":{"body":{"a":1}},"alias":{"body":{"b":1}}}`, `{"b":1,"model":"real","temperature":0.5,"top_p":0.9}`},
		{"objects_merge", `{"body":{"x":{"a":1,"b":{"c":1}}}}`, `{".*":{"body":{"x":{"a":null,"b":{"d":2}}}}}`, `{"model":"real","temperature":0.5,"top_p":0.9,"x":{"b":{"c":1,"d":2}}}`},
		{"lists_replace", `{"body":{"stop":["a","b"]}}`, `{".*":{"body":{"stop":["c"]}}}`, `{"model":"real","stop":["c"],"temperature":0.5,"top_p":0.9}`},
		{"nulls_in_new_objects_go", `{"body":{"x":{"y":null,"z":1}}}`, `{}`, `{"model":"real","temperature":0.5,"top_p":0.9,"x":{"z":1}}`},
		{"large_numbers_kept", `{"body":{"seed":9007199254740993}}`, `{".*":{"body":{"a":1}}}`, `{"a":1,"model":"real","seed":9007199254740993,"temperature":0.5,"top_p":0.9}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			model := rules(t, `{"m":`+tt.model+`}`) // read like a rule, to keep its numbers
			c, server := newClient(t, openai.Options{
				Model: func(name string) openai.Model {
					if name != "alias" {
						t.Errorf("asked about the model %q", name)
					}
					return openai.Model{RealName: "real", Patch: model[0].Patch}
				},
				Patches: openai.Patches{ChatCompletions: rules(t, tt.client)},
			}, openaitest.Text("ok"))
			req := question()
			req.Model, req.Stream, req.Temperature, req.TopP = "alias", false, float(0.5), float(0.9)
			if r := collect(t, c, req); r.Err != nil {
				t.Fatal(r.Err)
			}
			var got map[string]json.RawMessage
			if err := json.Unmarshal(server.Requests()[0].Body, &got); err != nil {
				t.Fatal(err)
			}
			delete(got, "messages")
			if text, _ := json.Marshal(got); string(text) != tt.want {
				t.Errorf("body %s, want %s", text, tt.want)
			}
		})
	}
}

// TestPatchForRemovedMaxTokens: a model whose patch deletes max_tokens gets the
// limit under its newer name.
func TestPatchForRemovedMaxTokens(t *testing.T) {
	patch := openai.Patch{Body: map[string]any{"max_tokens": nil}}
	c, server := newClient(t, openai.Options{Model: func(string) openai.Model { return openai.Model{Patch: patch} }}, openaitest.Text("a"), openaitest.Text("b"))
	req := question()
	collect(t, c, req)
	req.MaxOutputTokens = 9
	collect(t, c, req)
	for i, want := range []any{nil, 9.0} {
		body := server.Requests()[i].JSON()
		if body["max_completion_tokens"] != want || body["max_tokens"] != nil {
			t.Errorf("request %d: %v", i, body)
		}
	}
}

func TestPatchedHeadersAndURL(t *testing.T) {
	other := openaitest.New(t)
	other.Always(openaitest.Text("other"))
	patches := openai.Patches{ChatCompletions: openai.PatchRules{{Pattern: "m", Patch: openai.Patch{
		URL:     other.URL() + "/special?x=1",
		Headers: map[string]any{"authorization": "Custom abc", "X-Version": "2", "user-agent": nil, "cache-control": nil, "X-Number": 5},
	}}}}
	c, server := newClient(t, openai.Options{APIKey: openai.StaticKey("sk-1234567890"), UserAgent: "loki/1", Patches: patches}, openaitest.Embeddings([]float32{1}))
	if r := collect(t, c, question()); r.Text != "other" {
		t.Fatalf("text %q, error %v", r.Text, r.Err)
	}
	got := other.Requests()[0]
	if got.Path != "/special?x=1" {
		t.Errorf("path = %s", got.Path)
	}
	for name, want := range map[string][]string{
		"Authorization": {"Custom abc"}, "X-Version": {"2"}, "User-Agent": nil, "Cache-Control": nil, "X-Number": nil,
	} {
		if v := got.Header.Values(name); strings.Join(v, "|") != strings.Join(want, "|") {
			t.Errorf("%s = %q, want %q", name, v, want)
		}
	}
	// Patches of one API leave the others alone.
	if _, _, err := c.Embed(t.Context(), provider.EmbedRequest{Model: "m", Texts: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	if h := server.Requests()[0].Header; h.Get("Authorization") != "Bearer sk-1234567890" || h.Get("X-Version") != "" {
		t.Errorf("embeddings: %v", h)
	}
}

func TestPatchedURLThatIsNone(t *testing.T) {
	for _, url := range []string{"not a url", "http://%zz/", "/path"} {
		c, _ := newClient(t, openai.Options{Model: func(string) openai.Model { return openai.Model{Patch: openai.Patch{URL: url}} }})
		r := collect(t, c, question())
		if r.Err == nil || provider.Retryable(r.Err) {
			t.Errorf("%q: error %v", url, r.Err)
		}
	}
}

func TestPatchRules(t *testing.T) {
	r := rules(t, `{"b.*":{"url":"u"},"a":{"headers":{"x":null}},"(":{}}`)
	if len(r) != 3 || r[0].Pattern != "b.*" || r[1].Pattern != "a" || r[0].Patch.URL != "u" {
		t.Errorf("rules = %+v", r)
	}
	if err := r.Check(); err == nil || !strings.Contains(err.Error(), `"("`) {
		t.Errorf("Check = %v", err)
	}
	if err := r[:2].Check(); err != nil {
		t.Errorf("Check = %v", err)
	}
	for _, text := range []string{`[]`, `"x"`, `{"a":5}`, `{"a":{"body":[]}}`} {
		var r openai.PatchRules
		if json.Unmarshal([]byte(text), &r) == nil {
			t.Errorf("%s is accepted", text)
		}
	}
	if r := rules(t, `null`); r != nil {
		t.Errorf("null: %+v", r)
	}
}

func TestLog(t *testing.T) {
	var out bytes.Buffer
	c, _ := newClient(t, openai.Options{
		APIKey:  openai.StaticKey("sk-1234567890"),
		Log:     slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Patches: openai.Patches{Rerank: openai.PatchRules{{Pattern: "["}}},
		Model: func(string) openai.Model {
			return openai.Model{Patch: openai.Patch{
				Headers: map[string]any{"X-Api-Token": "tok-abcdef"},
				Body:    map[string]any{"user": "key is sk-1234567890, token is tok-abcdef"},
			}}
		},
	}, openaitest.Text("ok"))
	collect(t, c, question())
	log := out.String()
	if !strings.Contains(log, "patch rule skipped") || !strings.Contains(log, "/chat/completions") || !strings.Contains(log, "Question?") {
		t.Errorf("log = %s", log)
	}
	if strings.Contains(log, "sk-1234567890") || strings.Contains(log, "tok-abcdef") || strings.Contains(log, "Bearer") {
		t.Errorf("the log holds a secret: %s", log)
	}
}
