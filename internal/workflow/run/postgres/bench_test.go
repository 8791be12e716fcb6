package postgres

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"loki/internal/base/fault/steps"
	"loki/internal/base/value"
	"loki/internal/llm/event"
	"loki/internal/service/postgres/postgrestest"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/sqlite"
)

// stores are those that the benchmarks compare.
var stores = []struct {
	name string
	open func(b *testing.B) run.Store
}{
	{"postgres", func(b *testing.B) run.Store { return open(b, postgrestest.Database(b), Options{}) }},
	{"sqlite", func(b *testing.B) run.Store {
		s, err := sqlite.Open(filepath.Join(b.TempDir(), "runs.db"), sqlite.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { s.Close() })
		return s
	}},
}

// median reports the median of the times that an operation took.
func median(b *testing.B, times []time.Duration) {
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Nanoseconds())/1000, "median-µs")
	b.ReportMetric(float64(times[len(times)*99/100].Nanoseconds())/1000, "p99-µs")
}

// BenchmarkRecord records the results of steps, each with an event.
func BenchmarkRecord(b *testing.B) {
	for _, s := range stores {
		for _, size := range []int{100, 36180} {
			b.Run(fmt.Sprintf("%s/%d", s.name, size), func(b *testing.B) {
				r := create(b, s.open(b), run.Info{Agent: "a"})
				st := steps.Step{Kind: steps.Tool, Name: "fs_cat"}
				body := []byte(`"` + strings.Repeat("x", size) + `"`)
				var times []time.Duration
				for n := 0; b.Loop(); n++ {
					copy(body[1:], fmt.Sprintf("%08d", n))
					r.Event(event.Event{Time: time.Now(), Body: event.ToolCall{ID: "1", Name: "fs_cat", Arguments: "{}"}})
					start := time.Now()
					if err := r.Task(1, "a").Record(b.Context(), fmt.Sprint(n), st, body); err != nil {
						b.Fatal(err)
					}
					times = append(times, time.Since(start))
				}
				median(b, times)
			})
		}
	}
}

// BenchmarkChain makes runs of 1,000 super-steps with one recorded step each, and reports the time of one super-step.
func BenchmarkChain(b *testing.B) {
	const links = 1000
	for _, s := range stores {
		b.Run(s.name, func(b *testing.B) {
			store := s.open(b)
			for b.Loop() {
				start := time.Now()
				j := create(b, store, run.Info{Agent: "a"})
				c := run.Checkpoint{Position: run.Position{Visits: make(map[string]int)}}
				for n := range links {
					if err := j.Task(n+1, "a").Record(b.Context(), "model/1", steps.Step{Kind: steps.Model, Name: "m"}, []byte(`"reply"`)); err != nil {
						b.Fatal(err)
					}
					c.Step++
					c.Visits["a"]++
					c.State = c.State.With(value.Member{Name: "n", Value: value.Of(n)})
					if err := j.Commit(b.Context(), c, []run.Visit{{Step: c.Step, Node: "a", Number: c.Step, Started: start}}); err != nil {
						b.Fatal(err)
					}
				}
				if err := j.Close(); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(time.Since(start).Microseconds())/links, "step-µs")
			}
		})
	}
}
