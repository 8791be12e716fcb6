//go:build unix

package server_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// mix is what a server is asked: mostly completions, some of them as streams, and runs of a graph.
func mix(url string) []target {
	list := make([]target, 10)
	for i := range list {
		list[i] = post("completions", url+"/v1/completions", `{"prompt":"How are you?"}`)
	}
	list[3] = post("stream", url+"/v1/chat/completions", `{"model":"builtin:echo","stream":true,`+question+`}`)
	list[6] = post("run", url+"/v1/agents/steps/runs", `{"prompt":"How are you?","wait":30}`)
	return list
}

const stepsAgent = `
version: "1.0"
name: steps
start: a
nodes:
  a: {type: llm, model: "builtin:echo", prompt: "{{initial_prompt}}", next: b}
  b: {type: end, output: "{{output}}"}
`

// median returns the one in the middle of a list of numbers.
func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

// BenchmarkSteady sends requests at 80 % of the rate that the server can take, for the time in LOKI_LOAD, such as 10m. It prints ten
// lines on standard error, and fails if a request does, or if the memory or the time of the slowest requests is larger in the second
// half. The time of a request is that since it was due, so that a server that falls behind is seen.
func BenchmarkSteady(b *testing.B) {
	length, err := time.ParseDuration(os.Getenv("LOKI_LOAD"))
	if err != nil {
		b.Skip("LOKI_LOAD has to be a time, such as 10m")
	}
	const users = 64
	files := configuration("http://127.0.0.1:1")
	files["agents/steps/graph.yaml"] = stepsAgent
	loki := startLoki(b, files)
	targets := mix(loki.url)
	client := newClient(b, users)
	ask := func(n int) error { return targets[n%len(targets)].once(b.Context(), client) }
	crowd(b, users, 500, ask) // connections, caches
	top := 0.0
	for range 3 {
		const requests = 3000
		top = max(top, requests/crowd(b, users, requests, ask).Seconds())
	}
	rate := 0.8 * top
	fmt.Fprintf(os.Stderr, "top load %.0f requests/s, %.0f for %v\n%8s %10s %9s %9s %9s %9s\n", top, rate, length, "time", "requests/s", "p50 ms", "p99 ms", "max ms", "RSS MB")

	var slowest, memory []float64 // p99 in ms and MB of each line
	begin := time.Now()
	var next atomic.Int64
	for part := range 10 {
		end := begin.Add(length * time.Duration(part+1) / 10)
		began := time.Now()
		var mu sync.Mutex
		var took []time.Duration
		var all sync.WaitGroup
		for range users {
			all.Go(func() {
				for !b.Failed() {
					n := next.Add(1) - 1
					due := begin.Add(time.Duration(float64(n) / rate * float64(time.Second)))
					time.Sleep(time.Until(due))
					if err := ask(int(n)); err != nil {
						b.Error(err)
					}
					mu.Lock()
					took = append(took, time.Since(due))
					mu.Unlock()
					if !due.Before(end) {
						return
					}
				}
			})
		}
		all.Wait()
		if b.Failed() {
			b.FailNow()
		}
		slowest, memory = append(slowest, quantile(took, 0.99)), append(memory, loki.resident()/(1<<20))
		fmt.Fprintf(os.Stderr, "%8s %10.0f %9.1f %9.1f %9.1f %9.0f\n", time.Since(begin).Round(time.Second), float64(len(took))/time.Since(began).Seconds(), quantile(took, 0.5), slowest[part], quantile(took, 1), memory[part])
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(top, "top/s")
	if first, last := median(memory[:5]), median(memory[5:]); last > math.Max(1.25*first, first+20) {
		b.Errorf("the memory grows from %.0f to %.0f MB", first, last)
	}
	if first, last := median(slowest[:5]), median(slowest[5:]); last > math.Max(3*first, first+50) {
		b.Errorf("the slowest hundredth takes %.0f ms at first and %.0f ms at last", first, last)
	}
}
