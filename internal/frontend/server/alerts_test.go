package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"loki/internal/frontend/api"
	"loki/internal/frontend/server/servertest"
	"loki/internal/service/postgres/postgrestest"
)

// TestAlertsOfThreeServers has runs fail at three servers of a database, and kills the server that sends the first alert while it
// sends. Each alert comes with one id, at the end from another server.
func TestAlertsOfThreeServers(t *testing.T) {
	var mu sync.Mutex
	ids := make(map[string]int) // answered requests by the id of the alert
	first := make(chan string)  // the server that sends the first alert
	held := make(chan struct{})
	var once sync.Once
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		killed := false
		once.Do(func() { first <- r.URL.Query().Get("server"); <-held; killed = true })
		if killed {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		ids[r.Header.Get("Webhook-Id")]++
	}))
	defer receiver.Close()
	address := postgrestest.Database(t)
	c, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(t.Context(), `DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() || ' SET loki.dead_after = ''3s'''; END $$`); err != nil {
		t.Fatal(err)
	}
	_ = c.Close(t.Context())
	servers := make(map[string]*servertest.Server)
	for i := range 3 {
		name := fmt.Sprint(i)
		servers[name] = servertest.Program(t, servertest.Files{
			"agents/broken/graph.yaml":   "name: broken\nsettings: {on_failure: fail}\nstart: a\nnodes:\n  a: {type: script, script: scripts/a.sh, next: b}\n  b: {type: end}\n",
			"agents/broken/scripts/a.sh": "#!/bin/sh\nexit 1\n",
			"config.yaml":                fmt.Sprintf("store: %s\nalerts:\n  - {name: ops, on: [failed], every: 1h, to: [{webhook: \"%s/?server=%s\"}]}\n  - {name: other, on: [failed], where: agent == \"x\", to: [{webhook: %s}]}\n", address, receiver.URL, name, receiver.URL),
		})
	}
	alerts := func(s *servertest.Server) []api.Alert {
		var list api.List[api.Alert]
		expect(t, s.Get("/v1/alerts"), http.StatusOK).JSON(t, &list)
		return list.Data
	}
	// Runs fail until the first look was and an alert is sent.
	var sender string
	for begun := time.Now(); sender == ""; {
		if time.Since(begun) > 3*time.Minute {
			t.Fatal("no alert comes")
		}
		for _, s := range servers {
			expect(t, s.Post("/v1/agents/broken/runs", `{"prompt":"x","wait":20}`), http.StatusCreated)
		}
		select {
		case sender = <-first:
		case <-time.After(3 * time.Second):
		}
	}
	servers[sender].Kill()
	close(held)
	delete(servers, sender)
	var left *servertest.Server
	for _, left = range servers {
		break
	}
	for begun := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		mu.Lock()
		n := len(ids)
		mu.Unlock()
		if list := alerts(left); n > 0 && len(list) > 0 && len(list[0].Notices) > 0 && list[0].Notices[0].Status == http.StatusOK {
			break
		}
		if time.Since(begun) > 3*time.Minute {
			t.Fatalf("no other server sends the alert: %+v", alerts(left))
		}
	}
	list := alerts(left)
	mu.Lock()
	defer mu.Unlock()
	if len(list) != 1 || list[0].Rule != "ops" || list[0].Agent != "broken" || !strings.HasPrefix(list[0].Reason, "failed") || len(ids) != 1 {
		t.Errorf("%+v, received %v", list, ids)
	}
	for id, n := range ids {
		if n != 1 {
			t.Errorf("%s came %d times", id, n)
		}
	}
}
