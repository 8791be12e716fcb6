package input

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAbsolute(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := &Loader{Dir: dir, Loaders: map[string]string{"pdf": "pdftotext $1 -"}}
	for source, want := range map[string]string{
		"notes.md":         filepath.Join(dir, "notes.md"),
		"src/**/*.go":      filepath.Join(dir, "src/**/*.go"),
		"/etc/hosts":       "/etc/hosts",
		"https://x.test/a": "https://x.test/a",
		"`git diff`":       "`git diff`",
		"pdf:a.pdf":        "pdf:a.pdf",
		"%%":               "%%",
	} {
		if got := l.Absolute(source); got != want {
			t.Errorf("%s: %s", source, got)
		}
	}
}

func TestUnreadableFilesOfADirectoryArePassedOver(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"a.txt": 0o600, "b.txt": 0} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "locked"), 0); err != nil {
		t.Fatal(err)
	}
	got, err := (&Loader{Dir: dir}).Load(t.Context(), []string{"."})
	if err != nil || len(got.Documents) != 1 || got.Documents[0].Name != "a.txt" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := (&Loader{Dir: dir}).Load(t.Context(), []string{"b.txt"}); err == nil {
		t.Error("a file that is named must be readable")
	}
}
