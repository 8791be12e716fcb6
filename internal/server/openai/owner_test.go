package openai_test

import (
	"fmt"
	"maps"
	"net/http"
	"testing"

	"loki/internal/auth"
	"loki/internal/server/servertest"
)

// TestOwners: nobody answers the question of another's run, or goes on from another's response.
func TestOwners(t *testing.T) {
	with := maps.Clone(files)
	with["agents/others/graph.yaml"] = "name: others\nversion: \"1.0\"\nstart: ask\nnodes:\n  ask:\n    type: input\n    question: Well?\n    assignees: [bob]\n    next: done\n  done:\n    type: end\n    output: Done.\n"
	keys := make(map[string]string)
	with["config.yaml"] += "api:\n  auth:\n    mode: static_keys\n    keys:\n"
	for _, subject := range []string{"ann", "bob"} {
		text, id, hash := auth.NewKey()
		keys[subject] = text
		with["config.yaml"] += fmt.Sprintf("      - {subject: %s, key_id: %q, key_hash: %q, scopes: [\"run:agents\"]}\n", subject, id, hash)
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
	if status, answer := ask("bob", "/chat/completions", said("agent:others", "yes", more)); status != http.StatusNotFound {
		t.Errorf("a run without a question for bob: %d %s", status, answer)
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
