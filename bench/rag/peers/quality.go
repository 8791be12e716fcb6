package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"loki/bench/rag"
)

// quality prints how well the pages of the repository at root, and the sections in them, are found
// that answer questions about it.
func quality(ctx context.Context, root string) error {
	questions, err := rag.Questions(root)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "loki-rag-quality")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	docs := filepath.Join(dir, "pages")
	if err := copyPages(root, docs); err != nil {
		return err
	}
	sections := make([][]string, len(questions))
	for i, q := range questions {
		for _, name := range q.Sections {
			s, err := rag.Lines(root, name)
			if err != nil {
				return err
			}
			sections[i] = append(sections[i], s)
		}
	}
	fmt.Printf("%d questions about the pages of Loki. Recall at %d and mean reciprocal rank, of sections (and of pages).\n\n", len(questions), topPassages)
	fmt.Println("| chunks | | recall | MRR |")
	fmt.Println("|---|---|--:|--:|")
	for _, c := range []cut{{500}, {1000}, {2000}} {
		s := speed{dir: dir, corpus: &corpus{}, cut: c}
		indexes := make(map[string]string)
		for _, side := range sides {
			e, err := s.engine(side.name)
			if err != nil {
				return err
			}
			if side.build == "" {
				indexes[side.name] = filepath.Join(dir, side.name+strconv.Itoa(c.size))
				if _, err := e.build(ctx, docs, indexes[side.name]); err != nil {
					return fmt.Errorf("%s: %w", side.name, err)
				}
				side.build = side.name
			}
			ofSections, ofPages, err := answers(ctx, e, indexes[side.build], questions, sections)
			if err != nil {
				return fmt.Errorf("%s: %w", side.name, err)
			}
			fmt.Printf("| %d | %s | %.3f (%.3f) | %.3f (%.3f) |\n", c.size, side.title, ofSections.recall, ofPages.recall, ofSections.mrr, ofPages.mrr)
		}
	}
	return nil
}

// topPassages is how many passages a question gets.
const topPassages = 5

// score is how well questions are answered, as a mean.
type score struct{ recall, mrr float64 }

func answers(ctx context.Context, e engine, dir string, questions []rag.Question, sections [][]string) (ofSections, ofPages score, err error) {
	s, err := e.open(ctx, dir)
	if err != nil {
		return ofSections, ofPages, err
	}
	defer s.close()
	for i, q := range questions {
		v, err := embed(ctx, []string{q.Text}, true)
		if err != nil {
			return ofSections, ofPages, err
		}
		ids, err := s.search(ctx, q.Text, v[0], topPassages)
		if err != nil {
			return ofSections, ofPages, err
		}
		ofSections.add(ids, sections[i], len(questions))
		ofPages.add(ids, q.Sources, len(questions))
	}
	return ofSections, ofPages, nil
}

// add adds what was found for one of n questions.
func (s *score) add(ids, sources []string, n int) {
	first := -1
	for _, source := range sources {
		rank := slices.IndexFunc(ids, func(id string) bool { return overlap(lines(id), source) })
		if rank < 0 {
			continue
		}
		s.recall += 1 / float64(len(sources)*n)
		if first < 0 || rank < first {
			first = rank
		}
	}
	if first >= 0 {
		s.mrr += 1 / float64((first+1)*n)
	}
}

// overlap reports whether two places, PATH or PATH:FIRST-LAST, have lines in common.
func overlap(a, b string) bool {
	pathA, firstA, lastA := lineRange(a)
	pathB, firstB, lastB := lineRange(b)
	return pathA == pathB && firstA <= lastB && firstB <= lastA
}

func lineRange(place string) (path string, first, last int) {
	path, lines, ok := strings.Cut(place, ":")
	if !ok {
		return path, 0, 1 << 30
	}
	a, b, _ := strings.Cut(lines, "-")
	first, _ = strconv.Atoi(a)
	last, _ = strconv.Atoi(b)
	return path, first, last
}

func copyPages(root, to string) error {
	pages, err := rag.Pages(root)
	if err != nil {
		return err
	}
	for _, page := range pages {
		data, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(to, filepath.Dir(page)), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, page), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
