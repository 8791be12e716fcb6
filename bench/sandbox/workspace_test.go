package sandbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"loki/internal/base/process"
	"loki/internal/base/process/sandbox"
)

// BenchmarkWorkspace runs /bin/true in turn without a sandbox and at levels read and write, in workspaces of so many files, and
// reports the medians in milliseconds. Ten files are in a directory.
func BenchmarkWorkspace(b *testing.B) {
	for _, files := range []int{1_000, 50_000} {
		b.Run(fmt.Sprint(files), func(b *testing.B) {
			dir := b.TempDir()
			for i := range files {
				path := filepath.Join(dir, fmt.Sprint("p", i/1000), fmt.Sprint("d", i/10%100), fmt.Sprint("f", i))
				if i%10 == 0 {
					if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
						b.Fatal(err)
					}
				}
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					b.Fatal(err)
				}
			}
			s := sandbox.New(sandbox.Options{Workspace: dir, Home: b.TempDir(), State: b.TempDir(), Getenv: os.Getenv})
			if !s.Support().Files {
				b.Skip(s.Support().Missing)
			}
			levels := []sandbox.Level{sandbox.Full, sandbox.Read, sandbox.Write}
			times := make(map[sandbox.Level][]time.Duration)
			run := func(l sandbox.Level) time.Duration {
				c := process.Command{Path: "/bin/true", Dir: dir, Env: os.Environ()}
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
		})
	}
}
