package main

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"loki/internal/knowledge/rag/split"
)

// engine is a program that searches documents.
type engine interface {
	// build indexes the documents below docs in the new directory dir, and returns the number of
	// chunks.
	build(ctx context.Context, docs, dir string) (int, error)
	// open returns what was built in dir, ready for searches.
	open(ctx context.Context, dir string) (searcher, error)
}

// searcher finds chunks. It is used by one goroutine.
type searcher interface {
	// search returns the ids of the k best chunks, best first. vector is that of text, or nil if
	// the engine does not use it.
	search(ctx context.Context, text string, vector []float32, k int) ([]string, error)
	close() error
}

// chunk is what all engines index: the same parts of the same documents.
type chunk struct {
	id      string // PATH:FIRST-LAST
	heading string
	text    string
}

// cut describes how documents are cut into chunks.
type cut struct {
	size int // characters; the overlap is a twentieth
}

// chunks cuts the document at path below docs.
func (c cut) chunks(docs, path string) ([]chunk, error) {
	data, err := os.ReadFile(filepath.Join(docs, filepath.FromSlash(path)))
	if err != nil {
		return nil, err
	}
	ext := strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), ".")
	pieces := split.New(c.size, c.size/20, ext).Split(string(data))
	all := make([]chunk, len(pieces))
	for i, p := range pieces {
		all[i] = chunk{place(path, p.Line, p.LastLine), p.Heading, p.Text}
	}
	return all, nil
}

func place(path string, first, last int) string {
	return path + ":" + strconv.Itoa(first) + "-" + strconv.Itoa(last)
}

// eachDocument calls do with the chunks of each document below docs, from as many goroutines as
// there are processors. The number of each tells them apart.
func (c cut) eachDocument(ctx context.Context, docs string, do func(worker int, chunks []chunk) error) (int, error) {
	paths, err := documents(docs)
	if err != nil {
		return 0, err
	}
	workers := runtime.GOMAXPROCS(0)
	counts := make([]int, workers)
	group, ctx := errgroup.WithContext(ctx)
	for w := range workers {
		group.Go(func() error {
			for i := w; i < len(paths) && ctx.Err() == nil; i += workers {
				chunks, err := c.chunks(docs, paths[i])
				if err != nil {
					return err
				}
				counts[w] += len(chunks)
				if err := do(w, chunks); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	err = group.Wait()
	n := 0
	for _, c := range counts {
		n += c
	}
	return n, err
}

// documents returns the paths of all files below dir, from there.
func documents(dir string) (paths []string, err error) {
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		paths = append(paths, filepath.ToSlash(rel))
		return err
	})
	return paths, err
}
