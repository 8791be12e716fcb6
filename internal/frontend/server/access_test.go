package server_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"loki/internal/conversation/session"
	"loki/internal/frontend/api"
	"loki/internal/frontend/server/servertest"
	"loki/internal/service/auth"
	"loki/internal/workflow/run"
)

// TestSubjects has two subjects and an admin use one server: none of the two gets to know that what the
// other one has made is there.
func TestSubjects(t *testing.T) {
	alice, aliceKey := servertest.Key("alice", 1, "read, write")
	bob, bobKey := servertest.Key("bob", 2, "read, write")
	root, rootKey := servertest.Key("root", 3, `"*"`)
	reader, readerKey := servertest.Key("reader", 4, `"read:models"`)
	s := servertest.Start(t, servertest.Files{
		"config.yaml":               "model: builtin:echo\nclients: []\napi:\n  auth:\n    keys:\n" + aliceKey + bobKey + rootKey + readerKey,
		"agents/asker/graph.yaml":   "version: \"1.0\"\nname: asker\ndescription: asks\nstart: who\nsettings: {durability: process}\nnodes:\n  who: {type: input, question: \"who?\", state_updates: {who: \"{{input}}\"}, next: done}\n  done: {type: end, output: \"{{who}}\"}\n",
		"agents/helper/config.yaml": "name: helper\ninstructions: Help.\n",
	})
	as := func(key string) []string { return []string{"Authorization", "Bearer " + key} }

	// Without a key, or with one that is unknown, nothing is answered but what needs none.
	for _, header := range [][]string{nil, as("x"), {"Authorization", "Basic " + alice}, as(alice[:len(alice)-1] + "f"), {"X-Api-Key", alice}} {
		for _, path := range []string{"/v1/info", "/v1/sessions", "/v1/runs", "/v1/models", "/v1/agents/asker"} {
			if a := s.Get(path, header...); a.Status != http.StatusUnauthorized || a.Code() != "unauthorized" {
				t.Errorf("%s with %q: %d %s", path, header, a.Status, a.Body)
			}
		}
	}
	if a := s.Get("/v1/sessions", as(reader)...); a.Status != http.StatusForbidden || !strings.Contains(a.Body, "read:sessions") {
		t.Errorf("without the scope: %d %s", a.Status, a.Body)
	}

	var own api.Session
	s.Post("/v1/sessions", `{"alias":"plans"}`, as(alice)...).JSON(t, &own)
	if a := s.Post("/v1/sessions/"+own.ID+"/completions", `{"prompt":"the secret plan"}`, as(alice)...); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	var began api.Run
	a := s.Post("/v1/agents/asker/runs", `{"prompt":"the secret run","wait":5}`, as(alice)...)
	a.JSON(t, &began)
	if a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}

	// To bob, alice's session and run are as good as none.
	none := map[string]string{own.ID: "550e8400-e29b-41d4-a716-446655440000", began.ID: "zzzzzzzz"}
	for _, r := range []struct{ method, path, body string }{
		{"GET", "/v1/sessions/" + own.ID, ""},
		{"DELETE", "/v1/sessions/" + own.ID, ""},
		{"POST", "/v1/sessions/" + own.ID + "/completions", `{"prompt":"hi"}`},
		{"POST", "/v1/sessions/" + own.ID + "/compress", ""},
		{"POST", "/v1/sessions/" + own.ID + "/empty", ""},
		{"POST", "/v1/sessions/" + own.ID + "/role", `{"name":"code"}`},
		{"DELETE", "/v1/sessions/" + own.ID + "/role", ""},
		{"POST", "/v1/sessions/" + own.ID + "/agent", `{"name":"helper"}`},
		{"DELETE", "/v1/sessions/" + own.ID + "/agent", ""},
		{"POST", "/v1/sessions/" + own.ID + "/rag", `{"name":"x"}`},
		{"DELETE", "/v1/sessions/" + own.ID + "/rag", ""},
		{"GET", "/v1/runs/" + began.ID, ""},
		{"GET", "/v1/runs/" + began.ID + "/state", ""},
		{"GET", "/v1/runs/" + began.ID + "/diff?a=0&b=0", ""},
		{"GET", "/v1/runs/" + began.ID + "/graph", ""},
		{"GET", "/v1/runs/" + began.ID + "/steps", ""},
		{"GET", "/v1/runs/" + began.ID + "/steps/1", ""},
		{"GET", "/v1/runs/" + began.ID + "/questions", ""},
		{"GET", "/v1/runs/" + began.ID + "/events", ""},
		{"POST", "/v1/runs/" + began.ID + "/answers", `{"who":"x"}`},
		{"POST", "/v1/runs/" + began.ID + "/signals/paid", `{"value":1}`},
		{"POST", "/v1/runs/" + began.ID + "/resume", "{}"},
		{"POST", "/v1/runs/" + began.ID + "/cancel", ""},
		{"POST", "/v1/runs/" + began.ID + "/fork", `{"step":0}`},
		{"DELETE", "/v1/runs/" + began.ID, ""},
	} {
		got := s.Do(r.method, r.path, r.body, as(bob)...)
		id := own.ID
		if strings.Contains(r.path, began.ID) {
			id = began.ID
		}
		unknown := s.Do(r.method, strings.Replace(r.path, id, none[id], 1), r.body, as(bob)...)
		if got.Status != http.StatusNotFound || got.Status != unknown.Status || got.Code() != unknown.Code() ||
			withoutRequest(strings.ReplaceAll(got.Body, id, "ID")) != withoutRequest(strings.ReplaceAll(unknown.Body, none[id], "ID")) {
			t.Errorf("%s %s: %d %s, and for one that is not there %d %s", r.method, r.path, got.Status, got.Body, unknown.Status, unknown.Body)
		}
	}
	paths := []string{"/v1/sessions", "/v1/sessions?alias=plans", "/v1/runs", "/v1/runs?agent=asker", "/v1/questions"}
	for _, c := range "0123456789abcdefghjkmnpqrstvwxyz" { // beginnings of ids as cursors
		paths = append(paths, "/v1/runs?cursor="+base64.RawURLEncoding.EncodeToString([]byte{byte(c)}), "/v1/runs/"+string(c))
	}
	runs, err := s.App.OpenRuns()
	if err != nil {
		t.Fatal(err)
	}
	defer runs.Close()
	for range 33 { // so that two ids begin with the same letter
		j, err := runs.Create(t.Context(), run.Info{Agent: "asker", Owner: &auth.Owner{Subject: "alice"}}, run.Checkpoint{})
		if err == nil {
			err = j.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	all, err := runs.Runs(t.Context(), run.Query{})
	if err != nil || len(all) < 33 {
		t.Fatalf("%d runs, %v", len(all), err)
	}
	for _, path := range paths {
		a := s.Get(path, as(bob)...)
		for _, info := range all {
			if strings.Contains(a.Body, info.ID) {
				t.Errorf("%s shows run %s: %d %s", path, info.ID, a.Status, a.Body)
			}
		}
		if strings.Contains(a.Body, own.ID) || strings.Contains(a.Body, "secret") || strings.Contains(a.Body, "alice") {
			t.Errorf("%s: %s", path, a.Body)
		}
	}
	// What others have does not make the beginning of an id of his ambiguous.
	var his api.Run
	s.Post("/v1/agents/asker/runs", `{"prompt":"his"}`, as(bob)...).JSON(t, &his)
	for _, id := range []string{his.ID, his.ID[:1]} {
		if a := s.Get("/v1/runs/"+id, as(bob)...); a.Status != http.StatusOK || !strings.Contains(a.Body, his.ID) {
			t.Errorf("his run as %s: %d %s", id, a.Status, a.Body)
		}
	}
	if a := s.Post("/v1/sessions", `{"alias":"plans"}`, as(bob)...); a.Status != http.StatusConflict || strings.Contains(a.Body, "alice") || strings.Contains(a.Body, own.ID) {
		t.Errorf("a name that is taken: %d %s", a.Status, a.Body)
	}

	// The admin sees both, and whose they are, and they stay hers.
	if a := s.Get("/v1/sessions/"+own.ID, as(root)...); a.Status != http.StatusOK || !strings.Contains(a.Body, `"subject":"alice"`) {
		t.Errorf("the admin: %d %s", a.Status, a.Body)
	}
	if a := s.Post("/v1/sessions/"+own.ID+"/completions", `{"prompt":"hi"}`, as(root)...); a.Status != http.StatusOK {
		t.Errorf("the admin: %d %s", a.Status, a.Body)
	}
	for _, path := range []string{"/v1/sessions/" + own.ID, "/v1/runs/" + began.ID} {
		if a := s.Get(path, as(alice)...); a.Status != http.StatusOK {
			t.Errorf("%s, hers: %d %s", path, a.Status, a.Body)
		}
	}
}

// TestUnowned has subjects of a server meet what was made on the command line.
func TestUnowned(t *testing.T) {
	for _, adopt := range []bool{false, true} {
		t.Run(fmt.Sprint("adopt_", adopt), func(t *testing.T) {
			alice, aliceKey := servertest.Key("alice", 1, "read, write")
			bob, bobKey := servertest.Key("bob", 2, "read, write")
			s := servertest.Start(t, servertest.Files{
				"config.yaml": fmt.Sprintf("model: builtin:echo\nclients: []\napi:\n  adopt_unowned: %t\n  auth:\n    keys:\n%s%s", adopt, aliceKey, bobKey),
			})
			as := func(key string) []string { return []string{"Authorization", "Bearer " + key} }
			talks := s.App.Conversations()
			store, err := talks.Sessions()
			if err != nil {
				t.Fatal(err)
			}
			made, err := store.Create(context.Background(), "", "shell", session.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			status := func(key string, want int) {
				t.Helper()
				if a := s.Get("/v1/sessions/"+string(made.ID()), as(key)...); a.Status != want {
					t.Errorf("%d %s, want %d", a.Status, a.Body, want)
				}
			}
			if !adopt {
				status(alice, http.StatusNotFound)
				return
			}
			status(alice, http.StatusOK)
			status(bob, http.StatusOK)
			if a := s.Post("/v1/sessions/"+string(made.ID())+"/completions", `{"prompt":"hi"}`, as(alice)...); a.Status != http.StatusOK {
				t.Errorf("%d %s", a.Status, a.Body)
			}
			status(alice, http.StatusOK)
			status(bob, http.StatusNotFound)
		})
	}
}

// withoutRequest returns the body of an error without the id of its request.
func withoutRequest(body string) string {
	head, tail, ok := strings.Cut(body, `"request_id":"`)
	if !ok {
		return body
	}
	_, tail, _ = strings.Cut(tail, `"`)
	return head + tail
}
