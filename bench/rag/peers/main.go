// The program peers compares the knowledge bases of Loki with bleve, which searches by words, and
// with chromem-go, which searches by vectors: on the same documents, cut into the same chunks, with
// the same vectors. Each build, and the searches of each engine, are a process of their own.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	var (
		dir     = flag.String("dir", filepath.Join(cache, "loki-bench-rag"), "where the corpus and the indexes are")
		files   = flag.Int("files", 20_000, "documents of the corpus")
		queries = flag.Int("queries", 200, "searches")
		size    = flag.Int("chunk", 2000, "characters of a chunk of the corpus")
		root    = flag.String("quality", "", "root of Loki's repository: report instead how well its own pages are found")
		only    = flag.String("only", "", "sides to measure, with commas between them; all without it")
		job     = flag.String("job", "", "what a child does: build, search or change")
		name    = flag.String("side", "", "which side a child is of")
	)
	flag.Parse()
	if *root != "" {
		return quality(ctx, *root)
	}
	c, err := useCorpus(*dir, *files, *queries)
	if err != nil {
		return err
	}
	s := speed{*dir, c, cut{size: *size}}
	if *job == "" {
		return s.report(ctx, *only)
	}
	result, err := s.child(ctx, *job, *name)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}
