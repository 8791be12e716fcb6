package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"loki/internal/frontend/server/servertest"
	"loki/internal/service/postgres/postgrestest"
)

// fleetAgents are the agents of TestFleet. Each of their scripts leaves a line with the key of the effect when it begins,
// and another one when it ends, and counts in the state.
var fleetAgents = servertest.Files{
	"agents/chain/scripts/step.sh": fleetScript,
	"agents/chain/graph.yaml": `
name: chain
start: a
sandbox: write
settings: {timeout: 600}
nodes:
  a: {type: script, script: scripts/step.sh, state_updates: {}, next: b}
  b: {type: script, script: scripts/step.sh, state_updates: {}, next: c}
  c: {type: script, script: scripts/step.sh, state_updates: {}, next: end}
  end: {type: end, output: "{{initial_prompt}} {{count}}"}
`,
	"agents/approve/scripts/step.sh": fleetScript,
	"agents/approve/graph.yaml": `
name: approve
start: a
sandbox: write
settings: {timeout: 600}
nodes:
  a: {type: script, script: scripts/step.sh, state_updates: {}, next: ask}
  ask: {type: approval, question: "Publish?", options: [yes, no], routes: {yes: b, no: end}, on_other: end, state_updates: {answer: "{{choice}}"}}
  b: {type: script, script: scripts/step.sh, state_updates: {}, next: end}
  end: {type: end, output: "{{initial_prompt}} {{count}} {{answer}}"}
`,
	"agents/spread/scripts/step.sh": fleetScript,
	"agents/spread/scripts/list.sh": "#!/bin/sh\nprintf '{\"items\": [1, 2, 3], \"count\": 0}\\n'\n",
	"agents/spread/graph.yaml": `
name: spread
start: list
sandbox: write
settings: {timeout: 600}
nodes:
  list: {type: script, script: scripts/list.sh, next: each}
  each: {type: map, over: "{{items}}", as: item, branch: one, max_concurrency: 2, output_key: count, collect_into: all, next: end}
  one: {type: script, script: scripts/step.sh}
  end: {type: end, output: "{{initial_prompt}} {{all[0]}}{{all[1]}}{{all[2]}}"}
`,
}

const fleetScript = `#!/bin/sh
n=$(printf '%s' "$GRAPH_STATE" | sed -n 's/.*"count": *\([0-9]*\).*/\1/p')
printf '%s begin\n' "$LOKI_IDEMPOTENCY_KEY" >> effects.log
sleep 0.05
printf '%s end\n' "$LOKI_IDEMPOTENCY_KEY" >> effects.log
printf '{"count": %d}\n' "$(( ${n:-0} + 1 ))"
`

// fleet are servers on one database.
type fleet struct {
	t       *testing.T
	servers []*servertest.Server
	urls    []string
	dir     string // in which they work
	again   atomic.Int64
	kills   int
}

// newFleet starts n servers that work in one directory and have a database in common.
func newFleet(t *testing.T, n, turns int, address string) *fleet {
	f := &fleet{t: t, dir: t.TempDir()}
	files := servertest.Files{"config.yaml": fmt.Sprintf("store: %q\napi: {limits: {max_concurrent_runs: %d, max_concurrent_requests: 256, per_subject_concurrency: 256}}\n", address, turns)}
	for name, text := range fleetAgents {
		files[name] = text
	}
	for range n {
		s := servertest.ProgramIn(t, f.dir, files)
		f.servers, f.urls = append(f.servers, s), append(f.urls, s.URL)
	}
	return f
}

// errAgain says that a request is to be made again.
var errAgain = errors.New("try again")

// try makes a request once at any server. The error is errAgain if the server is down, or cannot answer now.
func (f *fleet) try(ctx context.Context, method, path, body, key string) (status int, answer string, err error) {
	r, err := http.NewRequestWithContext(ctx, method, f.urls[rand.N(len(f.urls))]+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", errAgain
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 500 || res.StatusCode == http.StatusConflict && res.Header.Get("Retry-After") != "" {
		return res.StatusCode, string(text), errAgain
	}
	return res.StatusCode, string(text), nil
}

// do makes a request, again and again until a server has answered.
func (f *fleet) do(ctx context.Context, method, path, body, key string) (status int, answer string) {
	var last string
	for ctx.Err() == nil {
		status, answer, err := f.try(ctx, method, path, body, key)
		if err == nil {
			return status, answer
		}
		last = answer
		f.again.Add(1)
		time.Sleep(50 * time.Millisecond)
	}
	f.t.Errorf("%s %s: no answer: %s", method, path, last)
	return 0, ""
}

// fleetRun is a run as the API has it.
type fleetRun struct {
	ID, Status, Output, Error string
	Queued                    bool
}

// get returns a run.
func (f *fleet) get(ctx context.Context, id string) (r fleetRun) {
	status, answer := f.do(ctx, http.MethodGet, "/v1/runs/"+id, "", "")
	if err := json.Unmarshal([]byte(answer), &r); err != nil || status != http.StatusOK {
		f.t.Errorf("run %s: %d %s", id, status, answer)
	}
	return r
}

// begin begins a run and returns its id. If the server that did so was killed before it had answered, the run is looked for.
func (f *fleet) begin(ctx context.Context, agent, prompt string) (id string) {
	for n := 1; ctx.Err() == nil; n++ {
		status, answer := f.do(ctx, http.MethodPost, "/v1/agents/"+agent+"/runs", fmt.Sprintf(`{"prompt": %q}`, prompt), fmt.Sprintf("%s, try %d", prompt, n))
		var r fleetRun
		if err := json.Unmarshal([]byte(answer), &r); err == nil && status == http.StatusCreated {
			return r.ID
		}
		if status != http.StatusConflict {
			f.t.Errorf("%s: %d %s", prompt, status, answer)
			return ""
		}
		if id := f.find(ctx, prompt); id != "" {
			return id
		}
	}
	return ""
}

// find returns the id of the run with a prompt, "" if there is none.
func (f *fleet) find(ctx context.Context, prompt string) (id string) {
	for cursor := ""; ; {
		_, answer := f.do(ctx, http.MethodGet, "/v1/runs?limit=200&cursor="+cursor, "", "")
		var list struct {
			Data []struct{ ID, Prompt string }
			Next string `json:"next_cursor"`
		}
		if err := json.Unmarshal([]byte(answer), &list); err != nil {
			f.t.Errorf("the list of runs: %s", answer)
			return ""
		}
		for _, r := range list.Data {
			if r.Prompt == prompt {
				return r.ID
			}
		}
		if cursor = list.Next; cursor == "" {
			return ""
		}
	}
}

// live begins a run and sees it to its end. It returns its id.
func (f *fleet) live(ctx context.Context, i int) (id string) {
	agent := []string{"chain", "approve", "spread"}[i%3]
	prompt := fmt.Sprintf("run %d", i)
	id = f.begin(ctx, agent, prompt)
	var r fleetRun
	for ctx.Err() == nil {
		if r = f.get(ctx, id); r.Status == "suspended" {
			status, answer := f.do(ctx, http.MethodPost, "/v1/runs/"+id+"/answers", `{"ask": "yes"}`, "")
			if status != http.StatusOK && status != http.StatusAccepted && status != http.StatusConflict { // answered before the server was killed
				f.t.Errorf("the answer to run %d: %d %s", i, status, answer)
			}
		} else if r.Status != "running" {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	want := prompt + map[string]string{"chain": " 3", "approve": " 2 yes", "spread": " 111"}[agent]
	if r.Status != "done" || r.Output != want {
		f.t.Errorf("run %d (%s) is %s with %q, want %q: %s", i, id, r.Status, r.Output, want, r.Error)
	}
	return id
}

// events returns the numbers and types of the events of a run that is over.
func (f *fleet) events(ctx context.Context, id string) (types []string) {
	status, answer := f.do(ctx, http.MethodGet, "/v1/runs/"+id+"/events", "", "")
	if status != http.StatusOK {
		f.t.Errorf("events of run %s: %d %s", id, status, answer)
	}
	number := ""
	for line := range strings.Lines(answer) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch {
		case name == "id":
			number = value
		case name == "event" && number != "":
			types = append(types, value)
			if number != fmt.Sprint(len(types)) {
				f.t.Errorf("event %d of run %s has number %s", len(types), id, number)
			}
			number = ""
		}
	}
	return types
}

// disturb kills a random server every so often and starts it again, and restarts the database, until ctx ends.
func (f *fleet) disturb(ctx context.Context, every time.Duration, kills, restarts int, database *postgrestest.Server) {
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for n := 1; n <= kills; n++ {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
		s := f.servers[rand.N(len(f.servers))]
		s.Kill()
		f.kills++
		if restarts > 0 && n%2 == 0 {
			database.Restart(f.t)
			restarts--
		}
		s.Begin()
	}
}

// dieSoon has the servers of a database take those for dead that were killed, after a short time.
func dieSoon(t *testing.T, address string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), address)
	if err == nil {
		_, err = c.Exec(t.Context(), "ALTER DATABASE "+c.Config().Database+" SET loki.dead_after = '3s'")
		err = errors.Join(err, c.Close(t.Context()))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestFleet has three servers on one database work on runs, while one of them is killed every so often and the
// database restarts. All runs end as if undisturbed. With LOKI_TEST=full it is 500 runs.
func TestFleet(t *testing.T) {
	runs, every, kills, restarts, limit := 40, 2*time.Second, 2, 1, 5*time.Minute
	if os.Getenv("LOKI_TEST") == "full" {
		runs, every, kills, restarts, limit = 500, 5*time.Second, 1000, 2, 15*time.Minute
	}
	database := postgrestest.Start(t)
	address := database.Database(t)
	dieSoon(t, address)
	f := newFleet(t, 3, 8, address)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	began := time.Now()
	disturbed, calm := context.WithCancel(ctx)
	var disturbing, living sync.WaitGroup
	disturbing.Go(func() { f.disturb(disturbed, every, kills, restarts, database) })
	ids := make([]string, runs)
	width := make(chan bool, 64)
	for i := range runs {
		living.Go(func() {
			width <- true
			defer func() { <-width }()
			ids[i] = f.live(ctx, i)
		})
	}
	living.Wait()
	calm()
	disturbing.Wait()
	took := time.Since(began)
	if t.Failed() {
		return
	}
	for i, id := range ids {
		f.checkEvents(i, f.events(ctx, id))
	}
	f.checkEffects(ids)
	t.Logf("%d runs in %v, %d kills, %d requests made again", runs, took.Round(time.Second), f.kills, f.again.Load())
}

// checkEvents checks that the events of a run are those of one run from its beginning to its end, and each answer is
// heard once.
func (f *fleet) checkEvents(i int, types []string) {
	count := func(name string) (n int) {
		for _, t := range types {
			if t == name {
				n++
			}
		}
		return n
	}
	answers := 0
	if i%3 == 1 {
		answers = 1
	}
	if len(types) == 0 || types[0] != "started" || types[len(types)-1] != "finished" || count("answer") != answers {
		f.t.Errorf("run %d has the events %q", i, types)
	}
}

// checkEffects checks that each effect of each run was made, and again only if it did not end before: its server was
// killed meanwhile.
func (f *fleet) checkEffects(ids []string) {
	text, err := os.ReadFile(filepath.Join(f.dir, "effects.log"))
	if err != nil {
		f.t.Fatal(err)
	}
	begun, ended := make(map[string]int), make(map[string]int) // ended counts since the last time it began
	for line := range strings.Lines(string(text)) {
		key, what, _ := strings.Cut(strings.TrimSpace(line), " ")
		if what == "begin" {
			begun[key]++
			ended[key] = 0
		} else if ended[key]++; ended[key] > 1 {
			f.t.Errorf("effect %s was made twice at the same time", key)
		}
	}
	of := make(map[string]int) // effects by run
	again := 0
	for key, n := range begun {
		id, _, _ := strings.Cut(key, "/")
		of[id]++
		again += n - 1
		if ended[key] == 0 {
			f.t.Errorf("effect %s began %d times and did not end", key, n)
		}
	}
	for i, id := range ids {
		if want := []int{3, 2, 3}[i%3]; of[id] != want {
			f.t.Errorf("run %d (%s) has %d effects, want %d", i, id, of[id], want)
		}
		delete(of, id)
	}
	if len(of) > 0 {
		f.t.Errorf("effects of runs that nobody knows: %v", slices.Sorted(maps.Keys(of)))
	}
	if most := f.kills * 8 * 2; again > most {
		f.t.Errorf("%d effects were made again, more than were at work in %d servers that were killed", again, f.kills)
	}
	f.t.Logf("%d effects, %d made again", len(begun), again)
}
