package server_test

import (
	"net/http"
	"strings"
	"testing"

	"loki/internal/frontend/api"
	"loki/internal/frontend/server/servertest"
	"loki/internal/service/postgres/postgrestest"
)

// remembering is a server that remembers, with an agent whose model is asked to remember something, and one that repeats what it is sent.
func remembering(extra, keys string) servertest.Files {
	return servertest.Files{
		"config.yaml": "model: builtin:script\nclients: [{type: builtin, script: rules.yaml}]\n" + extra + "api:\n  memory: propose\n  auth:\n    keys:\n" + keys,
		"rules.yaml": `rules:
  - match: {text: remember, turn: 1}
    tool_calls: [{name: memory__save, arguments: {title: Boats, text: "Boats are {{text}} from now on.", scope: user}}]
default: {reply: 'done {{tool_result}}'}
`,
		"agents/keeper/config.yaml": "name: keeper\nversion: \"1.0\"\ninstructions: Work.\n",
		"agents/echoes/config.yaml": "name: echoes\nversion: \"1.0\"\ninstructions: Work.\nmodel: builtin:echo\n",
	}
}

// TestMemory: each subject has facts of their own, which models of their conversations get, and decides about what models propose. It is the same in
// files and in a database that servers share.
func TestMemory(t *testing.T) {
	for name, store := range map[string]func() string{"files": func() string { return "" }, "postgres": func() string { return "store: " + postgrestest.Database(t) + "\n" }} {
		t.Run(name, func(t *testing.T) { testMemory(t, store()) })
	}
}

func testMemory(t *testing.T, store string) {
	alice, aliceKey := servertest.Key("alice", 1, "read, write")
	bob, bobKey := servertest.Key("bob", 2, "read, write")
	reader, readerKey := servertest.Key("reader", 3, "'read:memory'")
	s := servertest.Start(t, remembering(store, aliceKey+bobKey+readerKey))
	as := func(key string) []string { return []string{"Authorization", "Bearer " + key} }
	var f api.Fact
	expect(t, s.Post("/v1/memory", `{"text": "Boats are painted green.", "tags": ["color"]}`, as(alice)...), http.StatusCreated).JSON(t, &f)
	path := "/v1/memory/" + f.ID

	// Nobody else sees it, and nothing says that it is there.
	for _, a := range []servertest.Answer{
		s.Get(path, as(bob)...), s.Do(http.MethodPatch, path, `{"text": "x"}`, as(bob)...), s.Do(http.MethodDelete, path, "", as(bob)...),
		s.Post(path+"/accept", "", as(bob)...), s.Get("/v1/memory/00a1b2", as(alice)...),
	} {
		if a.Status != http.StatusNotFound || a.Code() != "fact_not_found" {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}
	list := func(query string, key string) (facts []api.Fact) {
		t.Helper()
		var l api.List[api.Fact]
		expect(t, s.Get("/v1/memory"+query, as(key)...), http.StatusOK).JSON(t, &l)
		return l.Data
	}
	if got := list("", bob); len(got) > 0 {
		t.Errorf("bob has %+v", got)
	}
	expect(t, s.Post("/v1/memory", `{"text": "x"}`, as(reader)...), http.StatusForbidden)
	expect(t, s.Get("/v1/memory", as(reader)...), http.StatusOK)
	expect(t, s.Get("/v1/memory", "Authorization", "Bearer none"), http.StatusUnauthorized)

	// What is wrong is refused.
	expect(t, s.Post("/v1/memory", `{"text": "Boats are painted green."}`, as(alice)...), http.StatusConflict)
	expect(t, s.Post("/v1/memory", `{"text": "the key is AKIAABCDEFGHIJKLMNOP"}`, as(alice)...), http.StatusBadRequest)
	expect(t, s.Post("/v1/memory", `{"text": "x", "expires": "soon"}`, as(alice)...), http.StatusBadRequest)
	expect(t, s.Post("/v1/memory", `{"text": "x", "agent": "nobody"}`, as(alice)...), http.StatusNotFound)

	// It is changed as it was read, and comes with the questions of its owner only.
	var changed api.Fact
	expect(t, s.Do(http.MethodPatch, path, `{"text": "Boats are painted blue.", "version": "`+f.Version+`"}`, as(alice)...), http.StatusOK).JSON(t, &changed)
	expect(t, s.Do(http.MethodPatch, path, `{"pinned": true, "version": "`+f.Version+`"}`, as(alice)...), http.StatusConflict)
	if changed.Text != "Boats are painted blue." || changed.Title != changed.Text || changed.Version == f.Version || len(changed.Tags) != 1 {
		t.Errorf("changed to %+v", changed)
	}
	asked := func(agent, prompt, key string) string {
		t.Helper()
		return expect(t, s.Post("/v1/completions", `{"agent": "`+agent+`", "prompt": "`+prompt+`"}`, as(key)...), http.StatusOK).Body
	}
	if got := asked("echoes", "what about boats?", alice); !strings.Contains(got, "painted blue") {
		t.Errorf("the model of alice was sent %s", got)
	}
	if got := asked("echoes", "what about boats?", bob); strings.Contains(got, "painted") {
		t.Errorf("the model of bob was sent %s", got)
	}

	// What a model proposes counts once its owner has accepted it.
	if got := asked("keeper", "remember red", bob); !strings.Contains(got, "proposed") {
		t.Errorf("the tool said %s", got)
	}
	if got := asked("echoes", "what about boats?", bob); strings.Contains(got, "from now on") {
		t.Errorf("a proposal was sent: %s", got)
	}
	proposed := list("?proposed=true", bob)
	if len(proposed) != 1 || !proposed[0].Proposed || proposed[0].By != "model" || len(list("?proposed=true", alice)) > 0 {
		t.Fatalf("proposed are %+v", proposed)
	}
	expect(t, s.Post("/v1/memory/"+proposed[0].ID+"/accept", "", as(bob)...), http.StatusOK)
	expect(t, s.Post("/v1/memory/"+proposed[0].ID+"/accept", "", as(bob)...), http.StatusConflict)
	if got := asked("echoes", "what about boats?", bob); !strings.Contains(got, "from now on") {
		t.Errorf("what was accepted was not sent: %s", got)
	}

	// It is found by words, and forgotten.
	if got := list("?q=boats", alice); len(got) != 1 || got[0].ID != f.ID {
		t.Errorf("found %+v", got)
	}
	expect(t, s.Do(http.MethodDelete, path, "", as(alice)...), http.StatusNoContent)
	expect(t, s.Get(path, as(alice)...), http.StatusNotFound)
}

// TestMemoryIsOff: a server remembers nothing unless its configuration says so.
func TestMemoryIsOff(t *testing.T) {
	files := remembering("memory: write\n", "")
	files["config.yaml"] = strings.Split(files["config.yaml"], "api:")[0]
	s := servertest.Start(t, files)
	expect(t, s.Post("/v1/memory", `{"text": "Boats are green."}`), http.StatusConflict)
	expect(t, s.Get("/v1/memory"), http.StatusConflict)
	if got := expect(t, s.Post("/v1/completions", `{"agent": "keeper", "prompt": "remember red"}`), http.StatusOK).Body; strings.Contains(got, "saved") {
		t.Errorf("the tool said %s", got)
	}
}
