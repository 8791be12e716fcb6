package lookup_test

import (
	"os"
	"path/filepath"
	"testing"

	"loki/internal/tool/script/lookup"
)

// TestFileOf: a name means the script that it spells, or the first of .sh, .py and .ts.
func TestFileOf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"add.py", "add.sh", "my-tool.sh", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := lookup.New(lookup.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"add": "add.sh", "add.py": "add.py", "add.ts": "", "my-tool": "my-tool.sh", "my_tool": "my-tool.sh", "notes": "", "notes.txt": "", "sub": ""} {
		if got := l.FileOf(name); got != want {
			t.Errorf("FileOf(%q) is %q, want %q", name, got, want)
		}
	}
	if got, want := l.Path("add.sh"), filepath.Join(dir, "add.sh"); got != want {
		t.Errorf("Path is %q, want %q", got, want)
	}
	if none, err := lookup.New(lookup.Options{Dir: filepath.Join(dir, "none")}); err != nil || none.FileOf("add") != "" {
		t.Errorf("a directory that does not exist: %v", err)
	}
}
