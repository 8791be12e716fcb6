//go:build unix

package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// ticker is an agent that asks, and then has a script every half second.
const ticker = `name: ticker
description: Ticks
start: ask
nodes:
  ask: {type: input, question: Go on?, next: t1}
  t1: {type: script, script: tick.sh, next: t2}
  t2: {type: script, script: tick.sh, next: t3}
  t3: {type: script, script: tick.sh, next: t4}
  t4: {type: script, script: tick.sh, next: t5}
  t5: {type: script, script: tick.sh, next: t6}
  t6: {type: script, script: tick.sh, next: t7}
  t7: {type: script, script: tick.sh, next: t8}
  t8: {type: script, script: tick.sh, next: done}
  done: {type: end, output: Done.}
`

// call sends JSON, empty for a GET, and reads the answer into v.
func call(b *testing.B, c *http.Client, url, body string, v any) {
	b.Helper()
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	r, err := http.NewRequestWithContext(b.Context(), method, url, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := c.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		b.Fatalf("%s: %s: %s %v", url, res.Status, text, err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		b.Fatalf("%s: %v: %s", url, err, text)
	}
}

// arrival is when a watcher got an event.
type arrival struct {
	id string // number of the event
	at time.Time
}

// watcher reads the events of a run.
type watcher struct {
	arrivals []arrival
	ready    chan struct{} // closed once the first event is there
	done     chan struct{} // closed when the stream has ended
	err      error
}

// watch opens a stream. texts gets the data of each event, by number.
func watch(ctx context.Context, c *http.Client, url string, texts *sync.Map) *watcher {
	w := &watcher{ready: make(chan struct{}), done: make(chan struct{})}
	go func() { // ends with the stream
		defer close(w.done)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			w.err = err
			return
		}
		r.Header.Set("Accept", "text/event-stream")
		res, err := c.Do(r)
		if err != nil {
			w.err = err
			return
		}
		defer res.Body.Close()
		lines := bufio.NewReader(res.Body)
		for id := ""; ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				if err != io.EOF {
					w.err = err
				}
				return
			}
			if after, ok := strings.CutPrefix(line, "id:"); ok {
				id = strings.TrimSpace(after)
			} else if data, ok := strings.CutPrefix(line, "data:"); ok && id != "" {
				if w.arrivals = append(w.arrivals, arrival{id, time.Now()}); len(w.arrivals) == 1 {
					close(w.ready)
				}
				texts.LoadOrStore(id, data)
				id = ""
			}
		}
	}()
	return w
}

// BenchmarkWatchers has 1,000 clients watch a run that waits for an answer, and measures what they
// take; then the run goes on, and the time is measured between each event and its arrival at each of
// them.
func BenchmarkWatchers(b *testing.B) {
	const watchers = 1000
	files := configuration("http://127.0.0.1:9")
	files["agents/ticker/graph.yaml"] = ticker
	files["agents/ticker/tick.sh"] = "#!/bin/sh\nsleep 0.5\necho '{}'\n"
	loki := startLoki(b, files)
	client := newClient(b, 1)
	client.Timeout = 0
	var used, resident, p50, p99, most float64
	for b.Loop() {
		var run struct{ ID, Status string }
		call(b, client, loki.url+"/v1/agents/ticker/runs", `{"prompt":"Tick.","wait":10}`, &run)
		url := loki.url + "/v1/runs/" + run.ID
		var texts sync.Map
		ctx, leave := context.WithCancel(b.Context())
		first := watch(ctx, client, url+"/events", &texts)
		<-first.ready
		usedBefore, residentBefore := loki.memory(b)
		all := []*watcher{first}
		for range watchers {
			w := watch(ctx, client, url+"/events", &texts)
			all = append(all, w)
			select {
			case <-w.ready:
			case <-w.done:
				b.Fatalf("a stream ended at once: %v", w.err)
			}
		}
		usedAfter, residentAfter := loki.memory(b)
		used, resident = (usedAfter-usedBefore)/watchers/1024, (residentAfter-residentBefore)/watchers/1024

		var questions struct{ Data []struct{ ID string } }
		call(b, client, url+"/questions", "", &questions)
		begin := time.Now()
		var answered any
		call(b, client, url+"/answers", fmt.Sprintf(`{%q:"yes"}`, questions.Data[0].ID), &answered)
		var took []time.Duration
		counts := map[int]int{}
		for _, w := range all {
			<-w.done
			if w.err != nil {
				b.Fatal(w.err)
			}
			counts[len(w.arrivals)]++
			for _, a := range w.arrivals {
				var event struct{ Time time.Time }
				text, _ := texts.Load(a.id)
				if err := json.Unmarshal([]byte(text.(string)), &event); err != nil {
					b.Fatal(err)
				}
				if event.Time.After(begin) {
					took = append(took, a.at.Sub(event.Time))
				}
			}
		}
		leave()
		if len(counts) != 1 || len(took) < watchers*16 {
			b.Fatalf("watchers got different numbers of events, %v, %d of them live", counts, len(took))
		}
		if q := quantile(took, 0.99); p99 == 0 || q < p99 {
			p50, p99, most = quantile(took, 0.5), q, quantile(took, 1)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(used, "KB/watcher")
	b.ReportMetric(resident, "RSS-KB/watcher")
	b.ReportMetric(p50, "p50-ms")
	b.ReportMetric(p99, "p99-ms")
	b.ReportMetric(most, "max-ms")
}
