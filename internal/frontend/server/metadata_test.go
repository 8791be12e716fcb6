package server_test

import (
	"net/http"
	"strings"
	"testing"

	"loki/internal/frontend/api"
	"loki/internal/frontend/server/servertest"
)

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
