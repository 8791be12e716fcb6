//go:build unix

package yamldoc_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"loki/internal/base/value/yamldoc"
)

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, failed := range []error{
		os.WriteFile(in("text"), []byte("a: 1\n"), 0o600),
		os.Symlink("text", in("link")),
		os.Symlink("/dev/zero", in("endless")),
		syscall.Mkfifo(in("pipe"), 0o600),
		os.WriteFile(in("large"), nil, 0o600),
		os.Truncate(in("large"), yamldoc.MaxSize+1),
	} {
		if failed != nil {
			t.Fatal(failed)
		}
	}
	for name, want := range map[string]string{
		"text": "", "link": "", "endless": "not a regular file", "pipe": "not a regular file", "large": "larger than 16 MiB",
		".": "is a directory", "missing": "no such file",
	} {
		text, err := yamldoc.ReadFile(in(name))
		if want == "" {
			if err != nil || string(text) != "a: 1\n" {
				t.Errorf("%s: %q, %v", name, text, err)
			}
			continue
		}
		if _, ok := errors.AsType[*fs.PathError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q that names the file", name, err, want)
		}
	}
}
