package atomicfile_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"loki/internal/base/file/atomicfile"
)

func TestGlob(t *testing.T) {
	for _, name := range []string{"plain", "x[y", "a[b]c", "st*ar", "qu?estion"} {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o700); err != nil {
			t.Skip(err)
		}
		for _, file := range []string{"a.json", "b.txt", "sub/c.json"} {
			if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(file)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := atomicfile.Glob(dir, "*.json"), []string{filepath.Join(dir, "a.json")}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if got, want := atomicfile.Glob(dir, "*/*.json"), []string{filepath.Join(dir, "sub", "c.json")}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := atomicfile.Glob(filepath.Join(t.TempDir(), "gone"), "*"); len(got) != 0 {
		t.Errorf("%q of no directory", got)
	}
}
