// Package rag has questions about the pages of this project, each with the places that answer it:
// what retrieval is measured with.
package rag

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Question is what a user of Loki might ask about it.
type Question struct {
	Text string `json:"question"`

	// Sources are the pages that together answer the question, as paths in the repository.
	Sources []string `json:"sources"`

	// Sections are the places in Sources that do, as PATH#HEADING. A section ends at the next
	// heading of any level.
	Sections []string `json:"sections"`
}

// Questions reads the questions below root, the root of the repository.
func Questions(root string) ([]Question, error) {
	data, err := os.Open(filepath.Join(root, "bench", "rag", "testdata", "questions.jsonl"))
	if err != nil {
		return nil, err
	}
	defer data.Close()
	var questions []Question
	for d := json.NewDecoder(data); d.More(); {
		var q Question
		if err := d.Decode(&q); err != nil {
			return nil, fmt.Errorf("%s: question %d: %w", data.Name(), len(questions)+1, err)
		}
		questions = append(questions, q)
	}
	return questions, nil
}

// Pages returns the pages that the questions are about, as paths in the repository below root.
func Pages(root string) ([]string, error) {
	pages := []string{"README.md"}
	for _, pattern := range []string{"docs/*.md", "docs/design/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			page, err := filepath.Rel(root, file)
			if err != nil {
				return nil, err
			}
			pages = append(pages, filepath.ToSlash(page))
		}
	}
	return pages, nil
}

var (
	heading = regexp.MustCompile(`^#{1,6} +(.+?)\s*$`)
	fence   = regexp.MustCompile("^\\s*```")
)

// Lines returns a section of a page as PATH:FIRST-LAST, by the numbers of its lines from 1.
func Lines(root, section string) (string, error) {
	page, title, _ := strings.Cut(section, "#")
	file, err := os.Open(filepath.Join(root, filepath.FromSlash(page)))
	if err != nil {
		return "", err
	}
	defer file.Close()
	first, n, code := 0, 0, false
	for s := bufio.NewScanner(file); s.Scan(); {
		n++
		code = code != fence.MatchString(s.Text())
		switch m := heading.FindStringSubmatch(s.Text()); {
		case code || m == nil:
		case first > 0:
			return fmt.Sprintf("%s:%d-%d", page, first, n-1), nil
		case m[1] == title:
			first = n
		}
	}
	if first == 0 {
		return "", fmt.Errorf("%s has no heading %q", page, title)
	}
	return fmt.Sprintf("%s:%d-%d", page, first, n), nil
}
