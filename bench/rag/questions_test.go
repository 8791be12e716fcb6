package rag

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// TestQuestions looks for the pages and headings that answer the questions.
func TestQuestions(t *testing.T) {
	questions, err := Questions(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(questions) != 100 {
		t.Errorf("%d questions, not 100", len(questions))
	}
	pages, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(map[string]bool)
	for _, q := range questions {
		if q.Text == "" || asked[q.Text] {
			t.Errorf("%q is empty, or there twice", q.Text)
		}
		asked[q.Text] = true
		var sources []string
		for _, section := range q.Sections {
			if _, err := Lines(root, section); err != nil {
				t.Errorf("%q: %v", q.Text, err)
			}
			page, _, _ := strings.Cut(section, "#")
			if !slices.Contains(sources, page) {
				sources = append(sources, page)
			}
			if !slices.Contains(pages, page) {
				t.Errorf("%q: %s is not a page of the documentation", q.Text, page)
			}
		}
		if !slices.Equal(sources, q.Sources) {
			t.Errorf("%q: the pages of its sections are %q, not %q", q.Text, sources, q.Sources)
		}
	}
}

func TestLines(t *testing.T) {
	dir := t.TempDir()
	page := "# Page\n\n## Shell\n\n```sh\n# not a heading\n```\n\n## End\n\nlast\n"
	if err := os.WriteFile(filepath.Join(dir, "page.md"), []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	for title, want := range map[string]string{"Page": "page.md:1-2", "Shell": "page.md:3-8", "End": "page.md:9-11"} {
		if got, err := Lines(dir, "page.md#"+title); err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", title, got, err, want)
		}
	}
	if got, err := Lines(dir, "page.md#not a heading"); err == nil {
		t.Errorf("a comment in code is %s", got)
	}
}
