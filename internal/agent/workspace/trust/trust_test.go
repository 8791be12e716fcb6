package trust_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"loki/internal/agent/workspace/trust"
)

func write(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask
		t.Fatal(err)
	}
}

func read(t *testing.T, dir string, more ...string) trust.Content {
	t.Helper()
	c, err := trust.Read(t.Context(), dir, more...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// agentDir returns the directory of an agent with a script outside of it.
func agentDir(t *testing.T) (dir, outside string) {
	t.Helper()
	root := t.TempDir()
	dir, outside = filepath.Join(root, "agent"), filepath.Join(root, "x.sh")
	write(t, filepath.Join(dir, "graph.yaml"), "start: a\n", 0o644)
	write(t, filepath.Join(dir, "lib", "a.sh"), "echo a\n", 0o755)
	write(t, filepath.Join(dir, "sessions", "old.yaml"), "messages: []\n", 0o600)
	write(t, outside, "echo x\n", 0o644)
	return dir, outside
}

// TestChanges makes each change that matters to a directory, and those that do not.
func TestChanges(t *testing.T) {
	link := func(t *testing.T, target, path string) {
		t.Helper()
		if err := os.Symlink(target, path); err != nil {
			t.Skip(err)
		}
	}
	for _, tt := range []struct {
		name   string
		before func(t *testing.T, dir, outside string)
		change func(t *testing.T, dir, outside string)
		want   string // "" if nothing changes
	}{
		{name: "content", want: "changed lib/a.sh", change: func(t *testing.T, dir, _ string) { write(t, filepath.Join(dir, "lib", "a.sh"), "echo b\n", 0o755) }},
		{name: "mode", want: "changed graph.yaml", change: func(t *testing.T, dir, _ string) { write(t, filepath.Join(dir, "graph.yaml"), "start: a\n", 0o755) }},
		{name: "new", want: "new b.py", change: func(t *testing.T, dir, _ string) { write(t, filepath.Join(dir, "b.py"), "", 0o644) }},
		{name: "renamed_in_case", want: "removed graph.yaml", change: func(t *testing.T, dir, _ string) {
			if err := os.Rename(filepath.Join(dir, "graph.yaml"), filepath.Join(dir, "Graph.yaml")); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "prompt", want: "new notes/hint.md", change: func(t *testing.T, dir, _ string) { write(t, filepath.Join(dir, "notes", "hint.md"), "obey", 0o644) }},
		{name: "hidden", want: "new .env", change: func(t *testing.T, dir, _ string) { write(t, filepath.Join(dir, ".env"), "A=1", 0o644) }},
		{name: "outside", want: "changed OUTSIDE", change: func(t *testing.T, _, outside string) { write(t, outside, "rm -rf .\n", 0o644) }},
		{name: "outside_removed", want: "changed OUTSIDE", change: func(t *testing.T, _, outside string) {
			if err := os.Remove(outside); err != nil {
				t.Fatal(err)
			}
		}},
		{
			name: "target_of_link", want: "changed run.sh",
			before: func(t *testing.T, dir, outside string) {
				link(t, filepath.Join("..", "other.sh"), filepath.Join(dir, "run.sh"))
			},
			change: func(t *testing.T, dir, _ string) { write(t, filepath.Join(dir, "..", "other.sh"), "echo y\n", 0o644) },
		},
		{
			name: "link_elsewhere", want: "changed run.sh",
			before: func(t *testing.T, dir, _ string) { link(t, "graph.yaml", filepath.Join(dir, "run.sh")) },
			change: func(t *testing.T, dir, _ string) {
				if err := os.Remove(filepath.Join(dir, "run.sh")); err != nil {
					t.Fatal(err)
				}
				link(t, filepath.Join("lib", "a.sh"), filepath.Join(dir, "run.sh"))
			},
		},
		{
			name: "link_in_between", want: "changed bin",
			before: func(t *testing.T, dir, _ string) {
				link(t, filepath.Join(dir, "lib"), filepath.Join(dir, "..", "hop"))
				link(t, filepath.Join("..", "hop"), filepath.Join(dir, "bin"))
			},
			change: func(t *testing.T, dir, _ string) {
				hop := filepath.Join(dir, "..", "hop")
				if err := os.Remove(hop); err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(dir, "new", "a.csv"), "", 0o644)
				link(t, filepath.Join(dir, "new"), hop)
			},
		},
		{name: "script_among_sessions", want: "new sessions/x.sh", change: func(t *testing.T, dir, _ string) { write(t, filepath.Join(dir, "sessions", "x.sh"), "", 0o644) }},
		{name: "executable_data", want: "new data.csv", change: func(t *testing.T, dir, _ string) { write(t, filepath.Join(dir, "data.csv"), "#!/bin/sh", 0o755) }},
		{name: "bytecode_beside", want: "new x.pyc", change: func(t *testing.T, dir, _ string) { write(t, filepath.Join(dir, "x.pyc"), "", 0o644) }},

		{name: "session", change: func(t *testing.T, dir, _ string) { write(t, filepath.Join(dir, "sessions", "new.yaml"), "x", 0o600) }},
		{name: "knowledge", change: func(t *testing.T, dir, _ string) { write(t, filepath.Join(dir, "rag.db-wal"), "x", 0o600) }},
		{name: "log", change: func(t *testing.T, dir, _ string) { write(t, filepath.Join(dir, "out", "a.LOG"), "x", 0o600) }},
		{name: "bytecode", change: func(t *testing.T, dir, _ string) {
			write(t, filepath.Join(dir, "lib", "__pycache__", "a.pyc"), "x", 0o600)
		}},
		{name: "script_among_tests", want: "new tests/x.sh", change: func(t *testing.T, dir, _ string) { write(t, filepath.Join(dir, "tests", "x.sh"), "", 0o644) }},
		{name: "test_cases", change: func(t *testing.T, dir, _ string) { write(t, filepath.Join(dir, "tests", "a.test.yaml"), "x", 0o600) }},
		{name: "test_cases_beside", change: func(t *testing.T, dir, _ string) { write(t, filepath.Join(dir, "a.test.yaml"), "x", 0o600) }},
		{name: "copy_of_an_editor", change: func(t *testing.T, dir, _ string) {
			write(t, filepath.Join(dir, "run.sh~"), "x", 0o600)
			write(t, filepath.Join(dir, ".run.sh.swp"), "x", 0o600)
			write(t, filepath.Join(dir, "run.sh.bak"), "x", 0o600)
		}},
		{name: "git", change: func(t *testing.T, dir, _ string) { write(t, filepath.Join(dir, ".git", "HEAD"), "x", 0o600) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, outside := agentDir(t)
			if tt.before != nil {
				tt.before(t, dir, outside)
			}
			before := read(t, dir, outside, filepath.Join(dir, "lib", "a.sh"))
			tt.change(t, dir, outside)
			after := read(t, dir, outside, filepath.Join(dir, "lib", "a.sh"))
			changes := trust.Record{Files: before.Files}.Changes(after)
			if tt.want == "" {
				if before.Sum != after.Sum || len(changes) > 0 {
					t.Errorf("changes %q, sums equal: %v", changes, before.Sum == after.Sum)
				}
				return
			}
			want := strings.Replace(tt.want, "OUTSIDE", filepath.ToSlash(outside), 1)
			if before.Sum == after.Sum || !slices.Contains(changes, want) {
				t.Errorf("changes %q, want %q; sums equal: %v", changes, want, before.Sum == after.Sum)
			}
		})
	}
}

// TestCasesCount: test cases are trusted by themselves, also those of records that have them among all files.
func TestCasesCount(t *testing.T) {
	dir, _ := agentDir(t)
	file := filepath.Join(dir, "tests", "a.test.yaml")
	write(t, file, "one", 0o600)
	c := read(t, dir)
	for name, r := range map[string]trust.Record{
		"now":    {Files: c.Files, Tests: c.Tests},
		"before": {Files: append(slices.Clone(c.Files), c.Tests...)},
	} {
		if !r.Trusts(c) || !r.TrustsTests(c) {
			t.Errorf("%s: trusted %v, with cases %v", name, r.Trusts(c), r.TrustsTests(c))
		}
	}
	write(t, file, "two", 0o600)
	if r, changed := (trust.Record{Files: c.Files, Tests: c.Tests}), read(t, dir); !r.Trusts(changed) || r.TrustsTests(changed) {
		t.Errorf("a changed case: trusted %v, with cases %v", r.Trusts(changed), r.TrustsTests(changed))
	}
}

// TestNamed reads files that count only since the agent names them.
func TestNamed(t *testing.T) {
	dir, _ := agentDir(t)
	for _, name := range []string{".git/run.sh", "sessions/run.yaml", "data.csv"} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		before := read(t, dir, file)
		write(t, file, "echo", 0o644)
		if read(t, dir, file).Sum == before.Sum {
			t.Errorf("%s does not count", name)
		}
	}
}

// TestRefused has directories that cannot be trusted.
func TestRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links and modes of Unix")
	}
	for _, tt := range []struct {
		name, want string
		make       func(t *testing.T, dir string)
	}{
		{"link_to_directory", "is a link to the directory", func(t *testing.T, dir string) { must(t, os.Symlink("/etc", filepath.Join(dir, "lib2"))) }},
		{"link_to_git", "is a link to the directory", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, ".git", "hooks", "x"), "", 0o755)
			must(t, os.Symlink(".git/hooks", filepath.Join(dir, "bin")))
		}},
		{"link_to_itself", "too many links", func(t *testing.T, dir string) { must(t, os.Symlink("a", filepath.Join(dir, "a"))) }},
		{"unreadable", "permission denied", func(t *testing.T, dir string) {
			if os.Getuid() == 0 {
				t.Skip("root reads all")
			}
			write(t, filepath.Join(dir, "secret.sh"), "", 0)
		}},
		{"too_large", "more than 32 MiB", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "big"), "", 0o644)
			must(t, os.Truncate(filepath.Join(dir, "big"), 40<<20))
		}},
		{"too_many", "more than 5000 files", func(t *testing.T, dir string) {
			for i := range 5001 {
				write(t, filepath.Join(dir, "many", fmt.Sprint(i)), "", 0o644)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, _ := agentDir(t)
			tt.make(t, dir)
			if _, err := trust.Read(t.Context(), dir); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	t.Run("canceled", func(t *testing.T) {
		dir, _ := agentDir(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := trust.Read(ctx, dir); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Run("file", func(t *testing.T) {
		dir, _ := agentDir(t)
		if _, err := trust.Read(t.Context(), filepath.Join(dir, "graph.yaml")); err == nil {
			t.Error("a file is trusted like a directory")
		}
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestHolds compares the text that was loaded with the file that counts.
func TestHolds(t *testing.T) {
	dir, _ := agentDir(t)
	c := read(t, dir)
	if !c.Holds("graph.yaml", []byte("start: a\n")) || c.Holds("graph.yaml", []byte("start: b\n")) || c.Holds("nothing", nil) {
		t.Error("wrong text")
	}
}

// TestLinkedDir finds a directory by its path without links.
func TestLinkedDir(t *testing.T) {
	dir, _ := agentDir(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Skip(err)
	}
	if a, b := read(t, dir), read(t, link); a.Dir != b.Dir || a.Sum != b.Sum {
		t.Errorf("%s and %s", a.Dir, b.Dir)
	}
}

func TestStore(t *testing.T) {
	s := trust.Store{File: filepath.Join(t.TempDir(), "config", "trusted.json")}
	if list, err := s.List(); err != nil || len(list) > 0 {
		t.Fatal(list, err)
	}
	a := trust.Content{Dir: "/a", Sum: "1", Files: []trust.File{{Name: "x", Mode: "file", Sum: "2"}}}
	must(t, s.Trust(t.Context(), trust.Content{Dir: "/b", Sum: "9"}, time.Now()))
	must(t, s.Trust(t.Context(), a, time.Now()))
	a.Sum = "3"
	must(t, s.Trust(t.Context(), a, time.Now()))
	r, ok, err := s.Lookup("/a", "")
	if err != nil || !ok || r.Sum != "3" || len(r.Files) != 1 {
		t.Errorf("%v, %v, %v", r, ok, err)
	}
	for _, dir := range []string{"/", "/a/b", "/A", "/a/"} {
		if _, ok, _ := s.Lookup(dir, ""); ok {
			t.Errorf("%s is trusted", dir)
		}
	}
	if info, err := os.Stat(s.File); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	if known, err := s.Forget(t.Context(), "/a"); err != nil || !known {
		t.Error(known, err)
	}
	if known, err := s.Forget(t.Context(), "/a"); err != nil || known {
		t.Error(known, err)
	}
	if list, err := s.List(); err != nil || len(list) != 1 {
		t.Error(list, err)
	}
	write(t, s.File, "{", 0o600)
	if _, _, err := s.Lookup("/b", ""); err == nil {
		t.Error("a damaged record is not reported")
	}
	if err := s.Trust(t.Context(), a, time.Now()); err == nil {
		t.Error("a damaged record is overwritten")
	}
}

// TestTrustAtOnce has many users of the file trust at the same time: none is lost.
func TestTrustAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trusted.json")
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := (trust.Store{File: file}).Trust(t.Context(), trust.Content{Dir: fmt.Sprintf("/%02d", i), Sum: "x"}, time.Now()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if list, err := (trust.Store{File: file}).List(); err != nil || len(list) != 20 {
		t.Error(len(list), err)
	}
}
