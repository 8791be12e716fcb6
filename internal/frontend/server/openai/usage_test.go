package openai_test

import (
	"net/http"
	"strconv"
	"testing"

	"loki/internal/frontend/server/servertest"
)

// TestUsageOfARun: an answer of a run reports what it used itself.
func TestUsageOfARun(t *testing.T) {
	s := servertest.Start(t, files)
	for _, detach := range []string{"", `"detach":true,`} {
		total, id := 0, ""
		for _, text := range []string{"opera", "Tosca", "ship"} {
			more := `"loki":{` + detach + `"run_id":"` + id + `"}`
			status, _, body := post(t, s.URL+"/v1/chat/completions", said("agent:twice", text, more))
			if status != http.StatusOK {
				t.Fatalf("%s: %d %s", text, status, body)
			}
			id = get(t, body, "loki.run_id")
			used, err := strconv.Atoi(get(t, body, "usage.total_tokens"))
			if total += used; err != nil || (used > 0) == (text == "Tosca") { // which asks no model
				t.Errorf("%s used %d: %s", text, used, body)
			}
		}
		if run := s.Get("/v1/runs/" + id); get(t, []byte(run.Body), "tokens") != strconv.Itoa(total) {
			t.Errorf("the answers report %d tokens: %s", total, run.Body)
		}
	}
}

// TestResponsesOfARun: no id of a response is that of another one, although the run of both is the same.
func TestResponsesOfARun(t *testing.T) {
	url := newServer(t) + "/v1/responses"
	seen := make(map[string]bool)
	more := ""
	for _, text := range []string{`"opera"`, `"Tosca"`, `"ship"`} {
		status, _, body := post(t, url, input("agent:twice", text, more))
		id := get(t, body, "id")
		if status != http.StatusOK || id == "" || seen[id] {
			t.Errorf("%s: %d %s", text, status, body)
		}
		seen[id], more = true, `"previous_response_id":"`+id+`"`
	}
}
