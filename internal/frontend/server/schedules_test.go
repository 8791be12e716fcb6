package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"loki/internal/frontend/api"
	"loki/internal/frontend/server/servertest"
)

// TestSchedules makes a schedule at a server, which starts its runs, and does the rest with it.
func TestSchedules(t *testing.T) {
	key, entry := servertest.Key("alice", 1, "read, write")
	plain, other := servertest.Key("bob", 2, `"read:schedules", "write:schedules"`)
	s := servertest.Start(t, servertest.Files{
		"config.yaml":                 matrixConfig + entry + other,
		"agents/helper/config.yaml":   "name: helper\nmodel: builtin:echo\ninstructions: Help.\n",
		"agents/helper/unrelated.txt": "x",
	})
	as := []string{"Authorization", "Bearer " + key}
	post := func(path, body string, status int) servertest.Answer {
		t.Helper()
		a := s.Post(path, body, as...)
		if a.Status != status {
			t.Fatalf("POST %s %s: %d %s, want %d", path, body, a.Status, a.Body, status)
		}
		return a
	}
	get := func(path string, into any) {
		t.Helper()
		a := s.Get(path, as...)
		if a.Status != http.StatusOK {
			t.Fatalf("GET %s: %d %s", path, a.Status, a.Body)
		}
		a.JSON(t, into)
	}
	var made api.ScheduleDetail
	a := post("/v1/schedules", `{"name":"tick","agent":"helper","every":"1s","overlap":"allow","prompt":"It is {{schedule.name}}"}`, http.StatusCreated)
	if a.JSON(t, &made); made.State != "on" || made.Definition.Every != "1s" || made.Next == nil || a.Header.Get("Location") != "/v1/schedules/tick" {
		t.Errorf("%+v", made)
	}
	for body, want := range map[string]struct {
		status int
		says   string
	}{
		`{"name":"tick","agent":"helper","every":"1h"}`:               {http.StatusConflict, "already"},
		`{"name":"x","agent":"helper","cron":"0 0 7 * * *"}`:          {http.StatusBadRequest, "cron: 6 fields"},
		`{"name":"x","agent":"helper","every":"1h","missed":"never"}`: {http.StatusBadRequest, "missed"},
		`{"name":"x","agent":"helper","at":"2020-01-01T00:00:00Z"}`:   {http.StatusBadRequest, "at: it is never due"},
		`{"name":"a/b","agent":"helper","every":"1h"}`:                {http.StatusBadRequest, "not a name"},
		`{"name":"x","agent":"nobody","every":"1h"}`:                  {http.StatusNotFound, "nobody"},
	} {
		if a := s.Post("/v1/schedules", body, as...); a.Status != want.status || !strings.Contains(a.Body, want.says) {
			t.Errorf("%s: %d %s", body, a.Status, a.Body)
		}
	}
	if a := s.Post("/v1/schedules", `{"name":"y","agent":"helper","every":"1h","yes":true}`, "Authorization", "Bearer "+plain); a.Status != http.StatusForbidden || !strings.Contains(a.Body, "write:runs") {
		t.Errorf("consent without the scope: %d %s", a.Status, a.Body)
	}
	if a := s.Get("/v1/schedules/tick", "Authorization", "Bearer "+plain); a.Status != http.StatusNotFound {
		t.Errorf("as another subject: %d %s", a.Status, a.Body)
	}

	var firings api.List[api.ScheduleTime]
	for end := time.Now().Add(time.Minute); len(firings.Data) < 2; {
		if get("/v1/schedules/tick/firings", &firings); time.Now().After(end) {
			t.Fatal("it starts no runs")
		}
	}
	for _, f := range firings.Data {
		if f.Outcome != "fired" || f.RunID == "" {
			t.Errorf("%+v", f)
		}
	}
	var run api.Run
	get("/v1/runs/"+firings.Data[1].RunID, &run)
	if run.Origin == nil || run.Origin.Kind != "schedule" || run.Origin.Name != "tick" || !run.Origin.Due.Equal(firings.Data[1].Due) || run.Owner != "alice" || run.Prompt != "It is tick" {
		t.Errorf("%+v %+v", run, run.Origin)
	}

	if post("/v1/schedules/tick/pause", "", http.StatusOK).JSON(t, &made); made.State != "paused" {
		t.Errorf("%+v", made)
	}
	var plan api.SchedulePlan
	get("/v1/schedule-plan?from=2026-12-01T00:00:00Z&to=2026-12-01T00:00:10Z", &plan)
	if len(plan.Schedules) != 1 || len(plan.Plan) != 10 || plan.Plan[0].Skipped != "paused" {
		t.Errorf("%+v", plan)
	}
	if a := s.Get("/v1/schedule-plan?from=soon", as...); a.Status != http.StatusBadRequest {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	var now api.ScheduleTime
	if post("/v1/schedules/tick/run", "", http.StatusCreated).JSON(t, &now); now.RunID == "" {
		t.Errorf("%+v", now)
	}
	if post("/v1/schedules/tick/continue", "", http.StatusOK).JSON(t, &made); made.State != "on" {
		t.Errorf("%+v", made)
	}
	var list api.List[api.Schedule]
	if get("/v1/schedules", &list); len(list.Data) != 1 || list.Data[0].Last == nil {
		t.Errorf("%+v", list)
	}
	if a := s.Do(http.MethodDelete, "/v1/schedules/tick", "", as...); a.Status != http.StatusNoContent {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if a := s.Get("/v1/schedules/tick", as...); a.Status != http.StatusNotFound {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}
