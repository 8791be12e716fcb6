package argc_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"loki/internal/tool/script/argc"
)

// TestDocumentedTool runs the script that the page about bash tools begins with, and
// compares what it prints with what the page says.
func TestDocumentedTool(t *testing.T) {
	needBash(t)
	page, err := os.ReadFile("../../../../docs/bash-tools.md")
	if err != nil {
		t.Fatal(err)
	}
	script := regexp.MustCompile("(?s)```bash\n(#!.*?)```").FindSubmatch(page)
	console := regexp.MustCompile("(?s)```console\n(.*?)```").FindSubmatch(page)
	if script == nil || console == nil {
		t.Fatal("the page has no script, or does not run it")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "count_lines.sh")
	if err := os.WriteFile(file, script[1], 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("todo a\nTODO b\ndone\nTodo\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := argc.BuildFile(file, argc.Options{Name: "count_lines"}); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for l := range strings.Lines(string(console[1])) {
		if words, ok := strings.CutPrefix(l, "$ "); ok {
			printed := output(t, dir, nil, "bash", "-c", words)
			got.WriteString(l + strings.ReplaceAll(printed, "[status 1]\n", ""))
		}
	}
	if want := string(console[1]); got.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", got.String(), want)
	}
}
