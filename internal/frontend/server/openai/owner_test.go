package openai_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"loki/internal/frontend/server/servertest"
)

// TestOwners: nobody answers the question of another's run, or goes on from another's response.
func TestOwners(t *testing.T) {
	with := maps.Clone(files)
	with["agents/others/graph.yaml"] = "name: others\nversion: \"1.0\"\nstart: ask\nnodes:\n  ask:\n    type: input\n    question: Well?\n    assignees: [bob]\n    next: done\n  done:\n    type: end\n    output: Done.\n"
	keys := make(map[string]string)
	with["config.yaml"] += "api:\n  auth:\n    mode: static_keys\n    keys:\n"
	const answers = `"run:agents", "write:runs"`
	for i, who := range []struct{ subject, scopes string }{{"ann", answers}, {"bob", answers}, {"eve", `"run:agents"`}, {"root", `"*"`}} {
		key, entry := servertest.Key(who.subject, i+1, who.scopes)
		keys[who.subject] = key
		with["config.yaml"] += entry
	}
	url := servertest.Start(t, with).URL + "/v1"
	ask := func(subject, path, body string) (int, []byte) {
		status, _, answer := post(t, url+path, body, "Authorization", "Bearer "+keys[subject])
		return status, answer
	}
	if status, answer := ask("nobody", "/chat/completions", said("builtin:echo", "Hi", "")); status != http.StatusUnauthorized || get(t, answer, "error.code") != "unauthorized" {
		t.Errorf("without a key: %d %s", status, answer)
	}
	_, answer := ask("ann", "/chat/completions", said("agent:approve", "it", ""))
	more := `"loki":{"run_id":"` + get(t, answer, "loki.run_id") + `"}`
	if status, answer := ask("bob", "/chat/completions", said("agent:approve", "ship", more)); status != http.StatusNotFound || get(t, answer, "error.code") != "run_not_found" {
		t.Errorf("another's run: %d %s", status, answer)
	}
	for _, model := range []string{"agent:others", "agent:guide", "role:pirate", "builtin:echo"} { // a mistaken id approves nothing
		if status, answer := ask("ann", "/chat/completions", said(model, "ship", more)); status != http.StatusBadRequest || get(t, answer, "error.param") != "model" {
			t.Errorf("the run of another agent than %s: %d %s", model, status, answer)
		}
	}
	if status, answer := ask("ann", "/chat/completions", said("agent:approve", "ship", more)); status != http.StatusOK || get(t, answer, "choices.0.message.content") != "Shipped it." {
		t.Errorf("the own run: %d %s", status, answer)
	}
	_, answer = ask("ann", "/chat/completions", said("agent:others", "it", ""))
	more = `"loki":{"run_id":"` + get(t, answer, "loki.run_id") + `"}`
	if status, answer := ask("ann", "/chat/completions", said("agent:others", "yes", more)); status != http.StatusForbidden {
		t.Errorf("a question for another: %d %s", status, answer)
	}
	if status, answer := ask("bob", "/chat/completions", said("agent:others", "yes", more)); status != http.StatusOK || get(t, answer, "choices.0.message.content") != "Done." {
		t.Errorf("the question of a run that bob does not see: %d %s", status, answer)
	}
	if status, answer := ask("bob", "/chat/completions", said("agent:others", "yes", more)); status != http.StatusConflict || get(t, answer, "error.code") != "conflict" {
		t.Errorf("the question that bob has answered: %d %s", status, answer)
	}
	_, answer = ask("eve", "/chat/completions", said("agent:approve", "it", ""))
	more = `"loki":{"run_id":"` + get(t, answer, "loki.run_id") + `"}`
	if status, answer := ask("eve", "/chat/completions", said("agent:approve", "ship", more)); status != http.StatusForbidden || !strings.Contains(string(answer), "write:runs") {
		t.Errorf("without the scope of answers: %d %s", status, answer)
	}
	for _, byREST := range []bool{false, true} { // an administrator may answer what is for others
		_, answer = ask("ann", "/chat/completions", said("agent:others", "it", ""))
		id := get(t, answer, "loki.run_id")
		path, body := "/chat/completions", said("agent:others", "yes", `"loki":{"run_id":"`+id+`"}`)
		if byREST {
			path, body = "/runs/"+id+"/answers", `{"`+get(t, answer, "loki.question.id")+`":"yes"}`
		}
		if status, answer := ask("root", path, body); status != http.StatusOK {
			t.Errorf("%s of an administrator: %d %s", path, status, answer)
		}
	}
	_, answer = ask("ann", "/responses", input("builtin:echo", `"Hi"`, ""))
	more = `"previous_response_id":"` + get(t, answer, "id") + `"`
	if status, answer := ask("bob", "/responses", input("builtin:echo", `"And"`, more)); status != http.StatusNotFound || get(t, answer, "error.code") != "previous_response_not_found" {
		t.Errorf("another's response: %d %s", status, answer)
	}
	if status, answer := ask("ann", "/responses", input("builtin:echo", `"And"`, more)); status != http.StatusOK {
		t.Errorf("the own response: %d %s", status, answer)
	}
}
