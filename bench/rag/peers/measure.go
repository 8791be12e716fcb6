package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// top is how many results of a search count.
const top = 10

// built is what is known of a build.
type built struct {
	Chunks  int     `json:"chunks"`
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu"`  // seconds of all processors
	Disk    int64   `json:"disk"` // bytes
	Peak    int64   `json:"peak"` // bytes of memory; 0 if unknown
}

// searched is what is known of searches in a new process.
type searched struct {
	Open   float64    `json:"open"` // seconds until the first result
	P50    float64    `json:"p50"`  // seconds, when all was searched for once before
	P99    float64    `json:"p99"`
	Peak   int64      `json:"peak"`
	Chunks [][]string `json:"chunks"` // of each query
}

// in runs a measurement in a process of its own, and has its result in to.
func in(ctx context.Context, to any, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	return json.Unmarshal(out, to)
}

func measureBuild(ctx context.Context, e engine, docs, dir string) (built, error) {
	start := time.Now()
	n, err := e.build(ctx, docs, dir)
	b := built{Chunks: n, Seconds: time.Since(start).Seconds(), CPU: work(), Peak: peak()}
	if err != nil {
		return b, err
	}
	b.Disk, err = size(dir)
	return b, err
}

func measureSearches(ctx context.Context, e engine, dir string, queries []query) (r searched, err error) {
	texts := make([]string, len(queries))
	for i, q := range queries {
		texts[i] = q.Text
	}
	vectors, err := embed(ctx, texts, true)
	if err != nil {
		return r, err
	}
	start := time.Now()
	s, err := e.open(ctx, dir)
	if err != nil {
		return r, err
	}
	defer s.close()
	var times []float64
	for pass := range 2 {
		for i, q := range queries {
			begin := time.Now()
			ids, err := s.search(ctx, q.Text, vectors[i], top)
			if err != nil {
				return r, fmt.Errorf("%q: %w", q.Text, err)
			}
			if pass == 0 {
				if i == 0 {
					r.Open = time.Since(start).Seconds()
				}
				r.Chunks = append(r.Chunks, ids)
				continue
			}
			times = append(times, time.Since(begin).Seconds())
		}
	}
	slices.Sort(times)
	r.P50, r.P99, r.Peak = times[len(times)/2], times[len(times)*99/100], peak()
	return r, nil
}

// size returns the bytes of the files below dir.
func size(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}

// peak returns the most memory that this process has had, in bytes, as Linux counts it.
func peak() (n int64) {
	status, _ := os.ReadFile("/proc/self/status")
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscanf(after, "%d kB", &n); err != nil {
		return 0
	}
	return n * 1024
}

// work returns the processor time of this process in seconds, as Linux counts it.
func work() float64 {
	stat, _ := os.ReadFile("/proc/self/stat")
	_, after, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(after)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return float64(user+system) / 100
}

// document returns the path in the id of a chunk.
func document(id string) string {
	path, _, _ := strings.Cut(id, "#")
	return path[:strings.LastIndex(path, ":")]
}

// same returns the part of the top results that two engines have in common, over all queries.
func same(a, b [][]string) float64 {
	common, all := 0, 0
	for i := range a {
		for _, id := range a[i] {
			if slices.ContainsFunc(b[i], func(other string) bool { return lines(other) == lines(id) }) {
				common++
			}
		}
		all += max(len(a[i]), len(b[i]))
	}
	return float64(common) / float64(max(all, 1))
}

func lines(id string) string {
	l, _, _ := strings.Cut(id, "#")
	return l
}

// found returns the part of the queries of a kind whose document is among the results, and the
// mean reciprocal rank of the first chunk of it.
func found(queries []query, kind string, chunks [][]string) (recall, mrr float64) {
	n := 0.0
	for i, q := range queries {
		if q.Kind != kind {
			continue
		}
		n++
		if rank := slices.IndexFunc(chunks[i], func(id string) bool { return document(id) == q.Path }); rank >= 0 {
			recall++
			mrr += 1 / float64(rank+1)
		}
	}
	return recall / n, mrr / n
}
