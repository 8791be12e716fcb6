package cases

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// tree returns the paths below dir, with where links lead.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		if target, linkErr := os.Readlink(path); linkErr == nil {
			rel += " -> " + target
		}
		if !d.IsDir() {
			paths = append(paths, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestStage(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need rights there")
	}
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"agents/poet/graph.yaml", "agents/poet/.git/HEAD", "agents/poet/sessions/one.yaml", "agents/poet/scripts/sessions/kept",
		"agents/poet/node_modules/a/index.js", "agents/critic/config.yaml", "agents/lib/words", "agents/readme.md", "outside/text", "far/graph.yaml",
		"own/critic/config.yaml", "own/painter/config.yaml",
	} {
		if err := write(filepath.Join(home, name), []byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	poet := filepath.Join(home, "agents/poet")
	if err := os.WriteFile(filepath.Join(poet, "run.sh"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{
		"agents/poet/inside": "scripts", "agents/poet/text": "../../outside/text", "agents/poet/dir": "../../outside", "agents/poet/dangling": "nowhere",
		"agents/far": "../far",
	} {
		if err := os.Symlink(target, filepath.Join(home, link)); err != nil {
			t.Fatal(err)
		}
	}
	root := t.TempDir()
	s := stage{root: root, user: filepath.Join(home, "own")}
	c, err := s.cast(t.Context(), poet)
	if err != nil {
		t.Fatal(err)
	}
	place := filepath.Join(root, "2/agents")
	want := []string{
		"critic/config.yaml", "far/graph.yaml", "lib -> " + home + "/agents/lib", "poet/dir -> " + home + "/outside", "poet/graph.yaml",
		"poet/inside -> " + place + "/poet/scripts", "poet/node_modules -> " + poet + "/node_modules", "poet/run.sh", "poet/scripts/sessions/kept", "poet/text",
		"readme.md -> " + home + "/agents/readme.md",
	}
	if got := tree(t, place); !slices.Equal(got, want) {
		t.Errorf("the copy has %q\nwant %q", got, want)
	}
	if c.agent != filepath.Join(place, "poet") || c.others["critic"] != filepath.Join(place, "critic") || c.others["painter"] != filepath.Join(root, "1/own/painter") {
		t.Errorf("cast: %+v", c)
	}
	if info, err := os.Stat(filepath.Join(c.agent, "run.sh")); err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("the script cannot be run: %v, %v", info.Mode(), err)
	}
	again, err := s.cast(t.Context(), filepath.Join(home, "agents/critic"))
	if err != nil || again.agent != c.others["critic"] {
		t.Errorf("another agent of the same directory: %+v, %v", again, err)
	}
	if byName, err := s.cast(t.Context(), "digest"); err != nil || byName.agent != "digest" || len(byName.others) != 2 {
		t.Errorf("an agent by its name: %+v, %v", byName, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&stage{root: t.TempDir()}).cast(ctx, poet); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}
