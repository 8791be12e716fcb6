package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"loki/internal/knowledge/rag"
)

// speed compares builds and searches.
type speed struct {
	dir    string // of corpus and indexes
	corpus *corpus
	cut    cut
}

// side is an engine, or a way to search with it.
type side struct {
	name  string
	build string // the side whose index it searches; empty for its own
	title string
	words bool // it searches by words: also compared by what it finds
}

var sides = []side{
	{name: "loki", title: "Loki, words and vectors"},
	{name: "loki-words", build: "loki", title: "Loki, words", words: true},
	{name: "loki-vectors", build: "loki", title: "Loki, vectors"},
	{name: "bleve", title: "bleve, words", words: true},
	{name: "chromem", title: "chromem-go, vectors"},
}

func (s speed) engine(name string) (engine, error) {
	switch name {
	case "bleve":
		return bleveEngine{s.cut}, nil
	case "chromem":
		return chromemEngine{s.cut}, nil
	case "loki":
		return lokiEngine{s.cut, rag.Both}, nil
	case "loki-words":
		return lokiEngine{s.cut, rag.Keyword}, nil
	case "loki-vectors":
		return lokiEngine{s.cut, rag.Vector}, nil
	}
	return nil, fmt.Errorf("no engine is called %q", name)
}

// index is the directory of what a side has built.
func (s speed) index(name string) string {
	return filepath.Join(s.dir, fmt.Sprintf("%s-%d-%d", name, s.corpus.Files, s.cut.size))
}

// child does what a process of its own is for.
func (s speed) child(ctx context.Context, job, name string) (any, error) {
	e, err := s.engine(name)
	if err != nil {
		return nil, err
	}
	switch job {
	case "build":
		return measureBuild(ctx, e, s.corpus.dir, s.index(name))
	case "search":
		for _, side := range sides {
			if side.name == name && side.build != "" {
				name = side.build
			}
		}
		return measureSearches(ctx, e, s.index(name), s.corpus.Queries)
	case "change":
		return measureChange(ctx, e, s.corpus, s.index(name))
	}
	return nil, fmt.Errorf("no job is called %q", job)
}

// report measures all sides whose names are in only, or all, and prints tables.
func (s speed) report(ctx context.Context, only string) error {
	var flags []string
	flag.VisitAll(func(f *flag.Flag) {
		if f.Name != "job" && f.Name != "side" && f.Name != "only" {
			flags = append(flags, "-"+f.Name+"="+f.Value.String())
		}
	})
	fmt.Printf("%d documents, %.1f MB; %d searches; chunks of %d characters; %s/%s, %d CPUs%s, load before %s\n\n",
		s.corpus.Files, float64(s.corpus.Bytes)/1e6, len(s.corpus.Queries), s.cut.size, runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), cpu(), load())
	fmt.Println("| | chunks | build | CPU time | on disk | peak memory | open | p50 | p99 | peak memory |")
	fmt.Println("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	results := make(map[string]searched)
	for _, side := range sides {
		if only != "" && !strings.Contains(","+only+",", ","+side.name+",") {
			continue
		}
		build := " | | | | "
		if side.build == "" {
			if err := os.RemoveAll(s.index(side.name)); err != nil {
				return err
			}
			var b built
			if err := in(ctx, &b, append(flags, "-job=build", "-side="+side.name)...); err != nil {
				return err
			}
			build = fmt.Sprintf("%d | %.1f s | %.1f s | %d MB | %d MB", b.Chunks, b.Seconds, b.CPU, b.Disk/1e6, b.Peak/1e6)
		}
		var r searched
		if err := in(ctx, &r, append(flags, "-job=search", "-side="+side.name)...); err != nil {
			return err
		}
		results[side.name] = r
		fmt.Printf("| %s | %s | %.0f ms | %.2f ms | %.2f ms | %d MB |\n", side.title, build, r.Open*1e3, r.P50*1e3, r.P99*1e3, r.Peak/1e6)
	}
	fmt.Print("\n| found, rank | package | function | name |\n|---|--:|--:|--:|\n")
	for _, side := range sides {
		r, ok := results[side.name]
		if !ok {
			continue
		}
		fmt.Printf("| %s |", side.title)
		for _, kind := range kinds {
			recall, mrr := found(s.corpus.Queries, kind, r.Chunks)
			fmt.Printf(" %.2f, %.2f |", recall, mrr)
		}
		fmt.Println()
	}
	fmt.Println()
	for _, pair := range [][2]string{{"loki-words", "bleve"}, {"loki-vectors", "chromem"}} {
		a, okA := results[pair[0]]
		b, okB := results[pair[1]]
		if okA && okB {
			fmt.Printf("%s and %s have %.0f %% of the first %d results in common.\n", pair[0], pair[1], 100*same(a.Chunks, b.Chunks), top)
		}
	}
	if _, ok := results["loki"]; !ok {
		return nil
	}
	var c changed
	if err := in(ctx, &c, append(flags, "-job=change", "-side=loki")...); err != nil {
		return err
	}
	fmt.Printf("\nWhen nothing has changed, building takes %.2f s (CPU time %.2f s); when 1 %% of the documents have, %.2f s (%.2f s).\n", c.Nothing, c.NothingCPU, c.Some, c.SomeCPU)
	return nil
}

func load() string {
	data, _ := os.ReadFile("/proc/loadavg") // Linux only
	one, _, _ := strings.Cut(string(data), " ")
	return one
}

func cpu() string {
	data, _ := os.ReadFile("/proc/cpuinfo") // Linux only
	_, after, _ := strings.Cut(string(data), "model name")
	name, _, _ := strings.Cut(strings.TrimLeft(after, "\t: "), "\n")
	if name == "" {
		return ""
	}
	return " (" + name + ")"
}
