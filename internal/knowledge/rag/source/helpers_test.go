package source_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"loki/internal/base/process/environ"
	"loki/internal/knowledge/input"
	"loki/internal/knowledge/rag/source"
)

// makeTree makes a directory of files.
func makeTree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func loaderAt(dir string) *source.Loader {
	return &source.Loader{Input: &input.Loader{Dir: dir, Programs: environ.Child{Environ: os.Environ()}, Loaders: map[string]string{}}}
}

// list returns what the sources lead to: the paths of documents, with base replaced by nothing, and errors.
func list(t testing.TB, l *source.Loader, base string, sources ...string) []string {
	t.Helper()
	var found []string
	for d, err := range l.Documents(t.Context(), sources) {
		if err != nil {
			var of *source.Error
			if !errors.As(err, &of) {
				t.Fatalf("%v is not an error of a source", err)
			}
			found = append(found, "error: "+strings.ReplaceAll(err.Error(), base, ""))
			continue
		}
		found = append(found, strings.TrimPrefix(strings.ReplaceAll(filepath.ToSlash(d.Path), filepath.ToSlash(base), ""), "/"))
	}
	return found
}

// texts returns the documents of sources as "path (extension, lines): text".
func texts(t testing.TB, l *source.Loader, base string, sources ...string) []string {
	t.Helper()
	var all []string
	for d, err := range l.Documents(t.Context(), sources) {
		name := strings.TrimPrefix(strings.ReplaceAll(d.Path, base, ""), "/")
		var text, ext string
		var lines bool
		if err == nil {
			var c *source.Content
			if c, err = d.Read(t.Context()); err == nil {
				var b source.Body
				b, err = c.Text(t.Context())
				text, ext, lines = b.Text, b.Ext, b.Lines
			}
		}
		if err != nil {
			if errors.Is(err, source.ErrPassedOver) {
				all = append(all, name+" is skipped")
				continue
			}
			all = append(all, strings.TrimSpace(name+" error: "+strings.ReplaceAll(err.Error(), base, "")))
			continue
		}
		if lines {
			ext += " with lines"
		}
		all = append(all, fmt.Sprintf("%s (%s): %s", name, ext, strings.TrimSpace(text)))
	}
	return all
}

func sameList(t testing.TB, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s\n\nwant\n\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// noLinks ends a test that needs symbolic links, given the error of making one. Windows may forbid them: there the test is skipped.
func noLinks(t *testing.T, err error) {
	t.Helper()
	if runtime.GOOS != "windows" {
		t.Fatal(err)
	}
	t.Skipf("symbolic links are not allowed here: %v", err)
}
