// Package limits measures what the limits of providers cost calls that do not have to wait.
package limits

import (
	"context"
	"iter"
	"sync"
	"testing"
	"time"

	"loki/internal/llm/engine/governor"
	"loki/internal/llm/provider"
)

// model answers after a time.
type model struct{ takes time.Duration }

func (m model) Chat(context.Context, provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		if m.takes > 0 {
			time.Sleep(m.takes)
		}
		if yield(provider.Chunk{Kind: provider.Text, Text: "fine"}, nil) {
			yield(provider.Chunk{Kind: provider.End}, nil)
		}
	}
}

// forms runs a benchmark without limits, with those of one process, and with those that processes share.
func forms(b *testing.B, m model, run func(b *testing.B, p provider.Chat)) {
	b.Helper()
	learned := governor.DefaultLimits()
	for name, o := range map[string]governor.Options{
		"none": {}, "alone": {Client: "c", Model: "m", Limits: learned},
		"shared": {Client: "c", Model: "m", Limits: learned, Account: func() string { return "account" }},
	} {
		b.Run(name, func(b *testing.B) {
			var g governor.Governor
			g.ShareIn(b.TempDir())
			defer g.Close()
			run(b, g.Chat(m, o))
		})
	}
}

// first asks once and returns when the first piece came. It reads the rest.
func first(b *testing.B, p provider.Chat) (at time.Time) {
	b.Helper()
	for _, err := range p.Chat(b.Context(), provider.Request{}) {
		if err != nil {
			b.Error(err)
		}
		if at.IsZero() {
			at = time.Now()
		}
	}
	return at
}

// BenchmarkChain is a call after the other.
func BenchmarkChain(b *testing.B) {
	forms(b, model{}, func(b *testing.B, p provider.Chat) {
		for b.Loop() {
			first(b, p)
		}
	})
}

// BenchmarkFirstToken is the time to the first piece of a reply.
func BenchmarkFirstToken(b *testing.B) {
	forms(b, model{}, func(b *testing.B, p provider.Chat) {
		var sum time.Duration
		for b.Loop() {
			begin := time.Now()
			sum += first(b, p).Sub(begin)
		}
		b.ReportMetric(float64(sum.Microseconds())/float64(b.N), "µs/first")
	})
}

// BenchmarkFanOut is 100 calls of 20 ms at once.
func BenchmarkFanOut(b *testing.B) {
	forms(b, model{takes: 20 * time.Millisecond}, func(b *testing.B, p provider.Chat) {
		for b.Loop() {
			var wg sync.WaitGroup
			for range 100 {
				wg.Go(func() { first(b, p) })
			}
			wg.Wait()
		}
	})
}
