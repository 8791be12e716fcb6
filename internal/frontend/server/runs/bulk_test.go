package runs_test

import (
	"net/http"
	"testing"
	"time"

	"loki/internal/frontend/api"
	"loki/internal/frontend/server/servertest"
)

// bulk has many runs worked on, and returns the job when it is over.
func bulk(t *testing.T, s *servertest.Server, body string, headers ...string) (j api.BulkJob) {
	t.Helper()
	want(t, s.Post("/v1/runs/bulk", body, headers...), http.StatusAccepted).JSON(t, &j)
	for deadline := time.Now().Add(time.Minute); j.Status == "running"; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the job does not end: %+v", j)
		}
		want(t, s.Get("/v1/bulk/"+j.ID, headers...), http.StatusOK).JSON(t, &j)
	}
	return j
}

// TestBulk: a condition chooses runs to resume, to cancel and to delete, among those of the caller.
func TestBulk(t *testing.T) {
	lines, as := people("alice", "bob")
	s := start(t, "api:\n  limits: {max_runs_per_subject: 3}\n"+lines)
	for _, name := range []string{"alice", "bob"} {
		for range 2 {
			rest(t, s, begin(t, s, "asker", `{"prompt": "x"}`, as[name]...).ID, as[name]...)
		}
	}
	alice, bob := as["alice"], as["bob"]
	for body, message := range map[string]string{
		`{"action": "cancel", "where": "cost"}`:                              "must be a boolean",
		`{"action": "cancel", "where": "price > 2"}`:                         "runs have no price",
		`{"action": "cancel", "where": ""}`:                                  "where",
		`{"action": "stop", "where": "true"}`:                                "action",
		`{"action": "cancel", "where": "age >= 0", "limit": 10001}`:          "limit",
		`{"action": "cancel", "where": "status == \"finished\""}`:            "finished",
		`{"action": "cancel", "where": "age >= 0", "dry_run": "perhaps so"}`: "dry_run",
	} {
		refused(t, s.Post("/v1/runs/bulk", body, alice...), http.StatusBadRequest, "invalid_request", message)
	}
	if j := bulk(t, s, `{"action": "cancel", "where": "status == \"suspended\"", "dry_run": true}`, alice...); j.Matched != 2 || j.Done != 0 || j.ID != "" {
		t.Errorf("%+v", j)
	}
	// What still waits is suspended again.
	if j := bulk(t, s, `{"action": "resume", "where": "status == \"suspended\""}`, alice...); j.Matched != 2 || j.Done != 2 || j.Failed != 0 {
		t.Errorf("%+v", j)
	}
	j := bulk(t, s, `{"action": "cancel", "where": "agent == \"asker\" && status == \"suspended\"", "limit": 1}`, alice...)
	if j.Matched != 1 || j.Done != 1 || j.Failed != 0 || j.Status != "done" {
		t.Errorf("%+v", j)
	}
	refused(t, s.Get("/v1/bulk/"+j.ID, bob...), http.StatusNotFound, "job_not_found")
	refused(t, s.Get("/v1/bulk/nothing", alice...), http.StatusNotFound, "job_not_found")
	if j := bulk(t, s, `{"action": "delete", "where": "age >= 0"}`, alice...); j.Matched != 1 || j.Done != 1 || j.Failed != 0 {
		t.Errorf("%+v", j)
	}
	for name, count := range map[string]int{"alice": 1, "bob": 2} {
		var list api.List[api.Run]
		want(t, s.Get("/v1/runs", as[name]...), http.StatusOK).JSON(t, &list)
		if len(list.Data) != count {
			t.Errorf("%s has %d runs", name, len(list.Data))
		}
		for _, r := range list.Data {
			if r.Status != "suspended" {
				t.Errorf("%+v", r)
			}
		}
	}
}
