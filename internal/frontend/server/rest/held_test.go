package rest_test

import (
	"net/http"
	"strings"
	"testing"

	"loki/internal/frontend/server/rest"
	"loki/internal/workflow/run"
)

// TestHeld: a run that another process holds is a conflict, and the client does not learn which process that is.
func TestHeld(t *testing.T) {
	e := rest.FromError(t.Context(), &run.LeaseError{ID: "k3v9k3v9", Owner: "process 7 on example"})
	if text := e.Message + e.Hint; e.Status != http.StatusConflict || strings.Contains(text, "process 7") || strings.Contains(text, "example") || !strings.Contains(e.Hint, "GET /v1/runs/k3v9k3v9") {
		t.Errorf("the answer is %d, %q, %q", e.Status, e.Message, e.Hint)
	}
}
