//go:build unix

package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"loki/internal/service/postgres/postgrestest"
)

// asker is an agent that asks a model three times.
const asker = `name: asker
start: a
nodes:
  a: {type: llm, prompt: "{{initial_prompt}}", next: b}
  b: {type: llm, prompt: "{{initial_prompt}}", next: c}
  c: {type: llm, prompt: "{{initial_prompt}}", next: end}
  end: {type: end, output: Done.}
`

// BenchmarkFleet has one server, and two on one database, work on runs of an agent that asks a model three times, with 16
// turns each. The figures are runs a second. The model takes 200 ms, or no time at all.
func BenchmarkFleet(b *testing.B) {
	for _, delay := range []time.Duration{200 * time.Millisecond, 0} {
		for _, servers := range []int{1, 2} {
			b.Run(fmt.Sprintf("model_%v/servers_%d", delay, servers), func(b *testing.B) {
				const runs = 400
				files := map[string]string{
					"config.yaml": fmt.Sprintf("model: builtin:script\nstore: %q\nclients: [{type: builtin, script: rules.yaml}]\n"+
						"api: {limits: {max_concurrent_requests: 1000, per_subject_concurrency: 1000, max_concurrent_runs: 16}}\n", postgrestest.Database(b)),
					"rules.yaml":              fmt.Sprintf("default: {reply: Well., delay: %v}\n", delay),
					"agents/asker/graph.yaml": asker,
				}
				work := b.TempDir()
				var urls []string
				for range servers {
					urls = append(urls, startLokiIn(b, work, files).url)
				}
				client := newClient(b, 64)
				for b.Loop() {
					took := crowd(b, 64, runs, func(n int) error {
						var r struct{ Status string }
						res, err := client.Post(urls[n%servers]+"/v1/agents/asker/runs", "application/json", strings.NewReader(`{"prompt": "Go", "wait": 100}`))
						if err != nil {
							return err
						}
						defer res.Body.Close()
						if err := json.NewDecoder(res.Body).Decode(&r); err != nil || r.Status != "done" {
							return fmt.Errorf("the run is %q: %s %v", r.Status, res.Status, err)
						}
						return nil
					})
					b.ReportMetric(runs/took.Seconds(), "runs/s")
				}
			})
		}
	}
}
