package openai_test

import (
	"net/http"
	"testing"
)

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
