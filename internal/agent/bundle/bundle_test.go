package bundle_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"loki/internal/agent/bundle"
	"loki/internal/base/fault"
)

func sample() fstest.MapFS {
	return fstest.MapFS{
		"alpha/graph.yaml":     {Data: []byte("alpha graph")},
		"alpha/README.md":      {Data: []byte("alpha readme")},
		"alpha/scripts/run.sh": {Data: []byte("echo alpha")},
		"alpha/scripts/run.py": {Data: []byte("print(1)")},
		"alpha/zz/notes.txt":   {Data: []byte("notes")},
		"beta/config.yaml":     {Data: []byte("beta config")},
		"beta/tools.sh":        {Data: []byte("echo beta")},
		"stray.txt":            {Data: []byte("no agent")},
	}
}

func TestNamesAreTheDirectories(t *testing.T) {
	if got, want := bundle.Names(sample()), []string{"alpha", "beta"}; !slices.Equal(got, want) {
		t.Errorf("Names = %q, want %q", got, want)
	}
}

func TestInstallCopiesEverything(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	written, err := bundle.Install(sample(), dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"alpha/README.md", "alpha/scripts/run.py", "alpha/scripts/run.sh", "alpha/zz/notes.txt", "alpha/graph.yaml",
		"beta/tools.sh", "beta/config.yaml",
	}
	if !slices.Equal(written, want) {
		t.Errorf("written, definitions last:\n got %q\nwant %q", written, want)
	}
	if got := tree(t, dir); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("on disk: %q", got)
	}
	for _, file := range want {
		if got, want := read(t, dir, file), string(sample()[file].Data); got != want {
			t.Errorf("%s holds %q, want %q", file, got, want)
		}
	}
}

// TestShared installs what agents have in common with each agent, and lists it as none.
func TestShared(t *testing.T) {
	files := sample()
	files[".shared/utils.sh"] = &fstest.MapFile{Data: []byte("utils")}
	if got := bundle.Names(files); slices.Contains(got, ".shared") {
		t.Errorf("Names = %q", got)
	}
	dir := t.TempDir()
	if err := bundle.Ensure(files, "beta", dir); err != nil {
		t.Fatal(err)
	}
	if got, want := tree(t, dir), []string{".shared/utils.sh", "beta/config.yaml", "beta/tools.sh"}; !slices.Equal(got, want) {
		t.Errorf("on disk: %q, want %q", got, want)
	}
	write(t, dir, ".shared/utils.sh", "mine")
	if err := bundle.Ensure(files, "alpha", dir); err != nil || read(t, dir, ".shared/utils.sh") != "mine" {
		t.Errorf("Ensure of another agent: %v, and utils.sh is %q", err, read(t, dir, ".shared/utils.sh"))
	}
	alone := t.TempDir()
	for range 2 {
		if err := bundle.EnsureShared(files, alone); err != nil || !slices.Equal(tree(t, alone), []string{".shared/utils.sh"}) {
			t.Errorf("EnsureShared: %v, on disk: %q", err, tree(t, alone))
		}
	}
	if err := bundle.EnsureShared(sample(), alone); err != nil {
		t.Errorf("EnsureShared of nothing: %v", err)
	}
	if err := bundle.Ensure(files, ".shared", dir); err == nil {
		t.Error("Ensure takes .shared for an agent")
	}
	if _, err := bundle.Restore(files, dir); err != nil || read(t, dir, ".shared/utils.sh") != "utils" {
		t.Errorf("Restore: %v, and utils.sh is %q", err, read(t, dir, ".shared/utils.sh"))
	}
}

func TestInstallNeverOverwrites(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "alpha/README.md", "mine")
	write(t, dir, "alpha/extra.txt", "mine too")
	written, err := bundle.Install(sample(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(written, "alpha/README.md") || slices.Contains(written, "alpha/graph.yaml") || !slices.Contains(written, "beta/config.yaml") {
		t.Errorf("written = %q", written) // a directory that holds a file of the user is the user's
	}
	if read(t, dir, "alpha/README.md") != "mine" || read(t, dir, "alpha/extra.txt") != "mine too" {
		t.Error("a file of the user was changed")
	}
	again, err := bundle.Install(sample(), dir)
	if err != nil || len(again) != 0 {
		t.Errorf("a second Install wrote %q, err %v", again, err)
	}
}

func TestInstallRestoresAMissingFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := bundle.Install(sample(), dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "alpha", "scripts", "run.sh")); err != nil {
		t.Fatal(err)
	}
	written, err := bundle.Install(sample(), dir)
	if err != nil || !slices.Equal(written, []string{"alpha/scripts/run.sh"}) {
		t.Errorf("written = %q, err %v", written, err)
	}
}

func TestModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no such permissions")
	}
	dir := t.TempDir()
	if _, err := bundle.Install(sample(), dir); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]fs.FileMode{
		"alpha/scripts/run.sh": 0o755, "alpha/scripts/run.py": 0o755, "beta/tools.sh": 0o755,
		"alpha/graph.yaml": 0o644, "alpha/README.md": 0o644,
	} {
		info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", file, info.Mode().Perm(), want)
		}
	}
}

func TestEnsureInstallsOneAgent(t *testing.T) {
	dir := t.TempDir()
	if err := bundle.Ensure(sample(), "beta", dir); err != nil {
		t.Fatal(err)
	}
	if got, want := tree(t, dir), []string{"beta/config.yaml", "beta/tools.sh"}; !slices.Equal(got, want) {
		t.Errorf("on disk: %q, want %q", got, want)
	}
}

func TestEnsureRejectsOtherNames(t *testing.T) {
	for _, name := range []string{"gamma", "", ".", "..", "stray.txt", "alpha/scripts", "../alpha"} {
		dir := filepath.Join(t.TempDir(), "agents")
		err := bundle.Ensure(sample(), name, dir)
		if fault.CodeOf(err) != fault.NotFound {
			t.Errorf("Ensure(%q) = %v, want code not_found", name, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Ensure(%q) made the agents directory", name)
		}
	}
}

// A directory with the other kind of definition is another agent, and would be broken
// by a second definition.
func TestAnAgentOfTheUserIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "alpha/config.yaml", "my own alpha")
	if err := bundle.Ensure(sample(), "alpha", dir); err != nil {
		t.Fatal(err)
	}
	written, err := bundle.Install(sample(), dir)
	if err != nil || !slices.Equal(written, []string{"beta/tools.sh", "beta/config.yaml"}) {
		t.Errorf("written = %q, err %v", written, err)
	}
	if got := tree(t, filepath.Join(dir, "alpha")); !slices.Equal(got, []string{"config.yaml"}) {
		t.Errorf("alpha holds %q", got)
	}
}

// broken is a bundle in which reading one file fails.
type broken struct {
	fstest.MapFS
	file string
}

func (b broken) ReadFile(name string) ([]byte, error) {
	if name == b.file {
		return nil, errors.New("bad sector")
	}
	return b.MapFS.ReadFile(name)
}

// An installation that is cut short must not leave an agent that looks complete.
func TestAFailureLeavesNoDefinition(t *testing.T) {
	dir := t.TempDir()
	written, err := bundle.Install(broken{sample(), "alpha/zz/notes.txt"}, dir)
	if err == nil || !strings.Contains(err.Error(), "alpha/zz/notes.txt") || !strings.Contains(err.Error(), "bad sector") {
		t.Errorf("err = %v, want the file and the cause", err)
	}
	if slices.Contains(written, "alpha/graph.yaml") || len(written) == 0 {
		t.Errorf("written = %q", written)
	}
	if got := tree(t, dir); !slices.Equal(got, slices.Sorted(slices.Values(written))) {
		t.Errorf("on disk: %q, reported: %q", got, written)
	}
	if err := bundle.Ensure(sample(), "alpha", dir); err != nil {
		t.Fatal(err)
	}
	if got := read(t, dir, "alpha/graph.yaml"); got != "alpha graph" {
		t.Errorf("graph.yaml after the second try: %q", got)
	}
}

func TestADirectoryThatCannotBeMade(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "agents", "a file where the directory should be")
	if err := bundle.Ensure(sample(), "alpha", filepath.Join(dir, "agents")); err == nil {
		t.Error("no error")
	}
}

func TestConcurrentFirstUses(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := bundle.Ensure(sample(), "alpha", dir); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := tree(t, dir); len(got) != 5 {
		t.Errorf("on disk: %q, want the five files of alpha and nothing temporary", got)
	}
}

// tree lists the files below dir, relative to it, with slashes, ascending.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	return files
}

func read(t *testing.T, dir, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func write(t *testing.T, dir, file, text string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(file))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRestore(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "alpha/README.md", "mine")
	write(t, dir, "alpha/extra.txt", "mine too")
	write(t, dir, "beta/graph.yaml", "an agent of my own")
	written, err := bundle.Restore(sample(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if read(t, dir, "alpha/README.md") != "alpha readme" || read(t, dir, "alpha/extra.txt") != "mine too" {
		t.Error("the bundled file has to be back, and the other to stay")
	}
	if !slices.Contains(written, "alpha/README.md") || !slices.Contains(written, "stray.txt") {
		t.Errorf("written: %q", written)
	}
	if _, err := os.Stat(filepath.Join(dir, "beta", "config.yaml")); err == nil {
		t.Error("a definition was put into an agent of the user's own")
	}
	if info, err := os.Stat(filepath.Join(dir, "alpha", "scripts", "run.py")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
}
