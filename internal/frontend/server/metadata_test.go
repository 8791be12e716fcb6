package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"loki/internal/frontend/api"
	"loki/internal/frontend/server/servertest"
)

// TestKnowledge: a knowledge base is described and searched.
func TestKnowledge(t *testing.T) {
	s := servertest.Program(t, servertest.Files{"config.yaml": "model: builtin:echo\nclients: []\n", "docs/boats.md": "# Boats\n\nRowing boats are for hire in April.\n"})
	s.Run("--rag", "harbor", "--rag-add", s.Dir+"/docs", "--rag-set", "embedding_model=builtin:hash")
	var d api.RAGDetail
	if s.Get("/v1/rags/harbor").JSON(t, &d); d.Name != "harbor" || d.Chunks != 1 || len(d.Files) != 1 || !strings.HasSuffix(d.Files[0].Path, "boats.md") || d.Model != "builtin:hash" || d.Bytes == 0 {
		t.Errorf("the base is %+v", d)
	}
	var found api.List[api.RAGPassage]
	if s.Post("/v1/rags/harbor/query", `{"query": "boats for hire"}`).JSON(t, &found); len(found.Data) != 1 || !strings.Contains(found.Data[0].Text, "Rowing boats") || !strings.Contains(found.Data[0].Source, "boats.md:") {
		t.Errorf("found %+v", found)
	}
	for _, name := range []string{"nothing", "..%2fharbor"} {
		if a, b := s.Get("/v1/rags/"+name), s.Post("/v1/rags/"+name+"/query", `{"query": "x"}`); a.Status/100 != 4 || b.Status/100 != 4 {
			t.Errorf("%s: %d %s, %d %s", name, a.Status, a.Body, b.Status, b.Body)
		}
	}
}

// TestHighlight: the tokens of code are the code, with their kinds where the language is known.
func TestHighlight(t *testing.T) {
	s := servertest.Start(t, servertest.Files{"config.yaml": "model: builtin:echo\nclients: []\n"})
	for _, tt := range []struct{ language, text, want string }{
		{"go", "func f() {} // x", "func:storage.type keyword.declaration"}, {"py", "x = 'ä' # y", "'ä':string.quoted.single"}, {"nonsense", "func f()", "func f():"}, {"go", "", ""},
	} {
		body, _ := json.Marshal(api.Code{Language: tt.language, Text: tt.text})
		var list api.List[api.Token]
		s.Post("/v1/highlight", string(body)).JSON(t, &list)
		all, named := "", ""
		for _, token := range list.Data {
			all += token.Text
			named += token.Text + ":" + token.Kind + "\n"
		}
		if all != tt.text || !strings.Contains(named, tt.want) {
			t.Errorf("%s: %q in the tokens %s, want %s", tt.language, all, named, tt.want)
		}
	}
}

func TestMetadata(t *testing.T) {
	s := servertest.Start(t, servertest.Files{
		"config.yaml":      "model: builtin:echo\nclients: []\n",
		"roles/short.md":   "---\nmodel: builtin:extract\n---\nBe brief.\n",
		"agents/x/a.txt":   "not an agent",
		"roles/another.md": "Be long.\n",
	})
	for _, path := range []string{"/healthz/live", "/healthz/ready"} {
		if a := s.Get(path); a.Status != http.StatusOK || a.Body != "{\"status\":\"ok\"}\n" {
			t.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
	}
	var info api.Info
	s.Get("/v1/info").JSON(t, &info)
	if info.Name != "loki" || info.Auth != "disabled" || info.DefaultModel != "builtin:echo" || info.Limits.MaxConcurrentRequests != 64 {
		t.Errorf("info: %+v", info)
	}
	var who api.Check
	s.Post("/v1/auth/check", "").JSON(t, &who)
	if who.Subject != "anonymous" || strings.Join(who.Scopes, "") != "*" {
		t.Errorf("check: %+v", who)
	}
	var models api.List[api.Model]
	s.Get("/v1/models?api-version=1").JSON(t, &models)
	kinds := make(map[string]string)
	for _, m := range models.Data {
		kinds[m.ID] = m.Kind
		if m.Object != "model" || m.Default != (m.ID == "builtin:echo") {
			t.Errorf("%+v", m)
		}
	}
	var one api.Model
	if s.Get("/v1/models/builtin%3Aecho").JSON(t, &one); one.ID != "builtin:echo" || one.Object != "model" || one.OwnedBy != "builtin" || !one.Default {
		t.Errorf("one model: %+v", one)
	}
	for _, path := range []string{"/v1/models/openrouter:meta/llama", "/v1/models/builtin%3Ascript%2F%2Fetc%2Fpasswd", "/v1/chat/nothing", "/v1/responses/x/input_items"} {
		var e api.OpenAIError
		a := s.Get(path)
		if a.JSON(t, &e); a.Status != 404 || e.Error.Type != "invalid_request_error" || e.Error.Message == "" || strings.HasPrefix(path, "/v1/models/") != (e.Error.Code == "model_not_found") {
			t.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
	}
	if a := s.Do("PUT", "/v1/embeddings", ""); a.Status != 405 || !strings.Contains(a.Body, `"type":"invalid_request_error"`) {
		t.Errorf("a wrong method: %d %s", a.Status, a.Body)
	}
	if a := s.Get("/v1/nothing"); a.Status != 404 || !strings.Contains(a.Body, `"request_id"`) {
		t.Errorf("an unknown endpoint of the server's own: %d %s", a.Status, a.Body)
	}
	for id, kind := range map[string]string{"builtin:echo": "chat", "builtin:hash": "embedding", "role:short": "role", "agent:coder": "agent"} {
		if kinds[id] != kind {
			t.Errorf("%s is a %q, not a %s", id, kinds[id], kind)
		}
	}
}

func TestPages(t *testing.T) {
	s := servertest.Start(t, servertest.Files{"roles/zz.md": "Z"})
	var all api.List[api.Role]
	s.Get("/v1/roles?limit=200").JSON(t, &all)
	if len(all.Data) < 3 || all.NextCursor != "" {
		t.Fatalf("all roles: %+v", all)
	}
	var names []string
	cursor := ""
	for range len(all.Data) {
		var page api.List[api.Role]
		s.Get("/v1/roles?limit=2&cursor="+cursor).JSON(t, &page)
		for _, r := range page.Data {
			names = append(names, r.Name)
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	if len(names) != len(all.Data) || names[len(names)-1] != "zz" {
		t.Errorf("pages: %v", names)
	}
}
