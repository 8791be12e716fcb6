package local

import (
	"context"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

const (
	ollamaList = `{"models":[
		{"name":"gemma3:latest","model":"gemma3:latest","modified_at":"2025-10-03T23:34:03-07:00","size":3338801804,"digest":"a2af6cc3eb7f","details":{"format":"gguf","family":"gemma","families":["gemma"],"parameter_size":"4.3B","quantization_level":"Q4_K_M"}},
		{"name":"all-minilm:latest","digest":"1b226e2802db","details":{"family":"bert"}},
		{"name":"snowflake:latest","digest":"1b226e2802db","details":{"family":"nomic-bert"}},
		{"name":"qwen3-embedding:0.6b","digest":"ac6da0dfba84","details":{"family":"qwen3"}},
		{"name":"llama3.2:latest","digest":"a80c4f17acd5","details":{"family":"llama"}}]}`
	llamaCPPList = `{"models":[{"name":"qwen","digest":""}],"object":"list","data":[{"id":"unsloth/Qwen3-8B-GGUF","object":"model","created":1735142223,"owned_by":"llamacpp","meta":{"vocab_type":2,"n_vocab":128256,"n_ctx_train":131072}}]}`
	lmStudioList = `{"object":"list","data":[
		{"id":"qwen2-vl-7b-instruct","object":"model","type":"vlm","publisher":"mlx-community","arch":"qwen2_vl","compatibility_type":"mlx","quantization":"4bit","state":"not-loaded","max_context_length":32768},
		{"id":"meta-llama-3.1-8b-instruct","object":"model","type":"llm","state":"loaded"},
		{"id":"text-embedding-nomic-embed-text-v1.5","object":"model","type":"embeddings","state":"not-loaded"}]}`
	lmStudioOld = `{"data":[{"id":"phi-4","object":"model","owned_by":"organization_owner"},{"id":"text-embedding-x","object":"model","owned_by":"organization_owner"}],"object":"list"}`
	openAIList  = `{"object":"list","data":[{"id":"gpt-4o","object":"model","owned_by":"system"}]}`
)

// serve answers the paths of pages and 404 elsewhere.
func serve(t *testing.T, pages map[string]string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(page))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestFind(t *testing.T) {
	for _, tt := range []struct {
		name  string
		kind  Kind
		pages map[string]string
		want  []string
		none  bool
	}{
		{"ollama", Ollama, map[string]string{"/api/tags": ollamaList}, []string{"gemma3:latest", "llama3.2:latest"}, false},
		{"ollama_without_models", Ollama, map[string]string{"/api/tags": `{"models":[]}`}, nil, false},
		{"imitation_of_ollama", Ollama, map[string]string{"/api/tags": llamaCPPList}, nil, true},
		{"llamacpp", LlamaCPP, map[string]string{"/v1/models": llamaCPPList}, []string{"unsloth/Qwen3-8B-GGUF"}, false},
		{"other_server_of_that_port", LlamaCPP, map[string]string{"/v1/models": openAIList}, nil, true},
		{"empty_list", LlamaCPP, map[string]string{"/v1/models": `{"data":[]}`}, nil, true},
		{"lmstudio", LMStudio, map[string]string{"/api/v0/models": lmStudioList, "/v1/models": lmStudioOld}, []string{"qwen2-vl-7b-instruct", "meta-llama-3.1-8b-instruct"}, false},
		{"old_lmstudio", LMStudio, map[string]string{"/v1/models": lmStudioOld}, []string{"phi-4"}, false},
		{"vllm", VLLM, map[string]string{"/v1/models": `{"object":"list","data":[{"id":"qwen","object":"model","owned_by":"vllm"}]}`}, []string{"qwen"}, false},
		{"not_vllm", VLLM, map[string]string{"/v1/models": openAIList}, nil, true},
		{"not_lmstudio", LMStudio, map[string]string{"/api/v0/models": openAIList, "/v1/models": openAIList}, nil, true},
		{"page", Ollama, map[string]string{"/api/tags": "<html>"}, nil, true},
		{"unknown_kind", "none", map[string]string{"/v1/models": openAIList}, nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url := serve(t, tt.pages)
			got := Find(t.Context(), nil, []Probe{{tt.kind, url}})
			want := []Server{{tt.kind, url + "/v1", tt.want}}
			if tt.none {
				want = nil
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// TestFindKeepsTheOrder whatever the servers take, and passes over those that are
// not there.
func TestFindKeepsTheOrder(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	probes := []Probe{
		{LMStudio, serve(t, map[string]string{"/v1/models": lmStudioOld})},
		{Ollama, gone.URL},
		{LlamaCPP, "http://%zz"},
		{Ollama, serve(t, map[string]string{"/api/tags": ollamaList})},
	}
	var kinds []Kind
	for _, s := range Find(t.Context(), nil, probes) {
		kinds = append(kinds, s.Kind)
	}
	if !slices.Equal(kinds, []Kind{LMStudio, Ollama}) {
		t.Errorf("found %v", kinds)
	}
}

// hang never answers.
type hang struct{}

func (hang) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestFindIsNotPatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if got := Find(t.Context(), &http.Client{Transport: hang{}}, DefaultProbes("")); got != nil {
			t.Errorf("found %v", got)
		}
		if took := time.Since(start); took != Patience {
			t.Errorf("took %v, want %v", took, Patience)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		Find(ctx, &http.Client{Transport: hang{}}, DefaultProbes(""))
		if took := time.Since(start); took != Patience {
			t.Errorf("a cancelled search took %v", took-Patience)
		}
	})
}

func TestDefaultProbes(t *testing.T) {
	for host, want := range map[string]string{
		"":                         "http://127.0.0.1:11434",
		"0.0.0.0":                  "http://127.0.0.1:11434",
		"[::]:1":                   "http://127.0.0.1:1",
		":8000":                    "http://127.0.0.1:8000",
		"box":                      "http://box:11434",
		" box:1234 ":               "http://box:1234",
		"http://box":               "http://box:80",
		"https://box":              "https://box:443",
		"https://box:11434/ollama": "https://box:11434",
		"::1":                      "http://[::1]:11434",
		`"10.0.0.7"`:               "http://10.0.0.7:11434",
	} {
		probes := DefaultProbes(host)
		if len(probes) != 4 || probes[0] != (Probe{Ollama, want}) {
			t.Errorf("%q: %+v, want %s", host, probes, want)
		}
	}
}

func FuzzModels(f *testing.F) {
	for _, seed := range []string{ollamaList, llamaCPPList, lmStudioList, lmStudioOld, `{"models":null}`, `{"data":[{}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		for _, k := range []Kind{Ollama, LlamaCPP, LMStudio} {
			for _, q := range questions(k) {
				if models, ok := q.models(doc); slices.Contains(models, "") || !ok && models != nil {
					t.Errorf("%s: models %q, %v", k, models, ok)
				}
			}
		}
	})
}
