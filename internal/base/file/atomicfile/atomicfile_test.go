package atomicfile_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"loki/internal/base/file/atomicfile"
)

func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	settings := filepath.Join(dir, "new", "settings.yaml")
	for _, text := range []string{"theme: light\n", "theme: dark\n"} {
		if err := atomicfile.Write(settings, []byte(text), atomicfile.Options{Mode: 0o644}); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := atomicfile.Append(settings, []byte("wrap: 80\n")); err != nil {
		fmt.Println(err)
		return
	}
	text, err := os.ReadFile(settings)
	fmt.Print(string(text), err)
	// Output:
	// theme: dark
	// wrap: 80
	// <nil>
}

// content fails the test unless the file holds want and is the only one in its directory.
func content(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v, want %q", path, got, err, want)
	}
	if got := names(t, filepath.Dir(path)); !slices.Equal(got, []string{filepath.Base(path)}) {
		t.Errorf("the directory holds %q", got)
	}
}

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestWrite(t *testing.T) {
	for _, o := range []atomicfile.Options{{}, {NoSync: true}, {Mode: 0o640}} {
		path := filepath.Join(t.TempDir(), "new", "file")
		for _, text := range []string{"first", "second, longer", ""} {
			if err := atomicfile.Write(path, []byte(text), o); err != nil {
				t.Fatal(err)
			}
			content(t, path, text)
		}
	}
}

func TestModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes of files are a Unix matter")
	}
	for _, tt := range []struct {
		name            string
		old, mode, want fs.FileMode // old 0 for a file that does not exist
	}{
		{"new_private", 0, 0, 0o600},
		{"new_public", 0, 0o666, 0o666}, // more than the umask gives
		{"keeps", 0o755, 0, 0o755},
		{"keeps_private", 0o400, 0, 0o400},
		{"tightens", 0o644, atomicfile.Private, 0o600},
		{"loosens", 0o600, 0o755, 0o755},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			if tt.old != 0 {
				if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, tt.old)); err != nil {
					t.Fatal(err)
				}
			}
			if err := atomicfile.Write(path, []byte("x"), atomicfile.Options{Mode: tt.mode}); err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != tt.want {
				t.Errorf("%v, %v, want %v", info.Mode(), err, tt.want)
			}
		})
	}
}

func TestLinks(t *testing.T) {
	for _, tt := range []struct{ name, target string }{
		{"relative", "../dotfiles/target"},
		{"new", "../dotfiles/new"},
		{"new_directory", "../dotfiles/new/file"},
		{"absolute", "/dotfiles/target"},
		{"absolute_new", "/dotfiles/new"},
		{"chain", "chain"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			target := tt.target
			if strings.HasPrefix(target, "/") {
				target = filepath.Join(dir, target)
			}
			link := filepath.Join(dir, "config", "link")
			if err := errors.Join(
				os.Mkdir(filepath.Join(dir, "config"), 0o700), os.Mkdir(filepath.Join(dir, "dotfiles"), 0o700),
				os.WriteFile(filepath.Join(dir, "dotfiles", "target"), []byte("old"), 0o644),
			); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(os.Symlink(target, link), os.Symlink("../dotfiles/target", filepath.Join(dir, "config", "chain"))); err != nil {
				t.Skip(err)
			}
			if err := atomicfile.Write(link, []byte("new"), atomicfile.Options{}); err != nil {
				t.Fatal(err)
			}
			if got, err := os.Readlink(link); err != nil || got != target {
				t.Errorf("the link became %q, %v", got, err)
			}
			if got, err := os.ReadFile(link); err != nil || string(got) != "new" {
				t.Errorf("it leads to %q, %v", got, err)
			}
			if got := names(t, filepath.Join(dir, "config")); !slices.Equal(got, []string{"chain", "link"}) {
				t.Errorf("beside the link are %q", got)
			}
		})
	}
}

func TestFailureKeepsTheOldFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	occupied := filepath.Join(dir, "file")
	if err := os.MkdirAll(filepath.Join(occupied, "a directory in its place"), 0o700); err != nil {
		t.Fatal(err)
	}
	err := atomicfile.Write(occupied, []byte("x"), atomicfile.Options{})
	if e, ok := errors.AsType[*fs.PathError](err); !ok || e.Path != occupied || strings.Contains(err.Error(), ".file-") {
		t.Errorf("error %v", err)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"file"}) {
		t.Errorf("left behind: %q", got)
	}
	if err := atomicfile.Write(filepath.Join(dir, "x", "\x00"), nil, atomicfile.Options{}); err == nil {
		t.Error("a file without a possible name was written")
	}
}

func TestWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	texts := []string{strings.Repeat("a", 100_000), strings.Repeat("b", 50_000), ""}
	var wg sync.WaitGroup
	for _, text := range texts {
		wg.Go(func() {
			for range 20 {
				if err := atomicfile.Write(path, []byte(text), atomicfile.Options{NoSync: true}); err != nil {
					t.Error(err)
				}
				if got, err := os.ReadFile(path); err != nil || !slices.Contains(texts, string(got)) {
					t.Errorf("a reader saw %d bytes, %v", len(got), err)
				}
			}
		})
	}
	wg.Wait()
	if got := names(t, filepath.Dir(path)); len(got) != 1 {
		t.Errorf("left behind: %q", got)
	}
}

// TestLeftovers finds what killed processes left: an old file, and one whose writer may be
// at work.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-2 * time.Hour)
	for name, age := range map[string]time.Time{
		".vault.yml-17": old, ".vault.yml-18": time.Now(), ".vault.yml-a": old, "vault.yml-19": old, ".other.yml-20": old,
	} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(file, []byte("x"), 0o600), os.Chtimes(file, age, age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := atomicfile.Write(filepath.Join(dir, "vault.yml"), []byte("new"), atomicfile.Options{}); err != nil {
		t.Fatal(err)
	}
	if got, want := names(t, dir), []string{".other.yml-20", ".vault.yml-18", ".vault.yml-a", "vault.yml", "vault.yml-19"}; !slices.Equal(got, want) {
		t.Errorf("left are %q, want %q", got, want)
	}
}

func TestAppend(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "file")
	for _, text := range []string{"one\n", "two\n"} {
		if err := atomicfile.Append(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	content(t, path, "one\ntwo\n")
}
