package server_test

import (
	"net/http"
	"strings"
	"testing"

	"loki/internal/frontend/api"
	"loki/internal/frontend/server/servertest"
)

// TestVariables: whatever endpoint gets them, the variables of a client neither consent to what tools ask nor refer
// to secrets.
func TestVariables(t *testing.T) {
	key, entry := servertest.Key("alice", 1, `"run:agents", "write:sessions"`)
	const declared = "variables:\n  - {name: auto_confirm, description: consent, default: \"0\"}\n  - {name: who, description: who, default: me}\n"
	s := servertest.Start(t, servertest.Files{
		"config.yaml":               "model: builtin:echo\nclients: []\napi:\n  auth:\n    keys:\n" + entry,
		"agents/helper/config.yaml": "name: helper\ninstructions: Help.\n" + declared,
		"agents/steps/graph.yaml":   "version: \"1.0\"\nname: steps\nstart: done\n" + declared + "nodes:\n  done: {type: end, output: done}\n",
	})
	s.Key = key
	var session api.Session
	if a := s.Post("/v1/sessions", "{}"); a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	} else {
		a.JSON(t, &session)
	}
	for _, tt := range []struct{ path, body string }{
		{"/v1/agents/AGENT/runs", `{"prompt":"go","variables":{VARIABLE}}`},
		{"/v1/completions", `{"prompt":"go","agent":"AGENT","variables":{VARIABLE}}`},
		{"/v1/completions", `{"prompt":"go","agent":"AGENT","stream":true,"variables":{VARIABLE}}`},
		{"/v1/sessions", `{"agent":"AGENT","variables":{VARIABLE}}`},
		{"/v1/sessions/" + session.ID + "/agent", `{"name":"AGENT","variables":{VARIABLE}}`},
		{"/v1/chat/completions", `{"model":"agent:AGENT","messages":[{"role":"user","content":"go"}],"loki":{"variables":{VARIABLE}}}`},
		{"/v1/chat/completions", `{"model":"agent:AGENT","stream":true,"messages":[{"role":"user","content":"go"}],"loki":{"variables":{VARIABLE}}}`},
		{"/v1/responses", `{"model":"agent:AGENT","input":"go","loki":{"variables":{VARIABLE}}}`},
	} {
		for _, agent := range []string{"helper", "steps"} {
			for _, of := range []struct {
				variable string
				status   int
				message  string
			}{
				{`"auto_confirm":"1"`, http.StatusForbidden, "a client cannot consent"},
				{`"auto_confirm":"yes"`, http.StatusForbidden, "a client cannot consent"},
				{`"who":"x {{ MYSEC }}"`, http.StatusBadRequest, "refers to a secret of the vault"},
			} {
				body := strings.NewReplacer("AGENT", agent, "VARIABLE", of.variable).Replace(tt.body)
				a := s.Post(strings.ReplaceAll(tt.path, "AGENT", agent), body)
				status := of.status
				if status == http.StatusBadRequest && strings.HasSuffix(tt.path, "/agent") {
					status = http.StatusConflict // as whatever the session does not take
				}
				if a.Status != status || !strings.Contains(a.Body, of.message) {
					t.Errorf("%s %s: %d %s", tt.path, body, a.Status, a.Body)
				}
			}
		}
	}
	if a := s.Post("/v1/agents/helper/runs", `{"prompt":"go","variables":{"auto_confirm":"0"}}`); a.Status != http.StatusCreated {
		t.Errorf("without consent: %d %s", a.Status, a.Body)
	}
}
