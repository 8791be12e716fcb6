// Package sandbox_test measures what the sandbox adds to the start of a child.
package sandbox_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"loki/internal/base/process"
	"loki/internal/base/process/sandbox"
)

// BenchmarkCall runs /bin/true in turn without a sandbox and at each level, and reports the medians in milliseconds.
func BenchmarkCall(b *testing.B) {
	home, _ := os.UserHomeDir()
	wd, _ := os.Getwd()
	s := sandbox.New(sandbox.Options{Workspace: wd, Home: home, Getenv: os.Getenv})
	if !s.Support().Files {
		b.Skip(s.Support().Missing)
	}
	levels := []sandbox.Level{sandbox.Full, sandbox.Read, sandbox.Write, sandbox.Network}
	times := make(map[sandbox.Level][]time.Duration)
	run := func(l sandbox.Level) time.Duration {
		c := process.Command{Path: "/bin/true", Env: os.Environ()}
		if l != sandbox.Full {
			c.Confinement = s.Box(sandbox.Declaration{Level: l}, sandbox.Needs{})
		}
		began := time.Now()
		if _, err := process.Run(b.Context(), c); err != nil {
			b.Fatal(l, err)
		}
		return time.Since(began)
	}
	for _, l := range levels {
		run(l)
	}
	for b.Loop() {
		for _, l := range levels {
			times[l] = append(times[l], run(l))
		}
	}
	for _, l := range levels {
		slices.Sort(times[l])
		b.ReportMetric(times[l][len(times[l])/2].Seconds()*1000, "ms-"+string(l))
	}
	b.ReportMetric(0, "ns/op")
}
