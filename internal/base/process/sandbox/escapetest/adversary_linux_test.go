//go:build amd64 || arm64

package escapetest

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"loki/internal/base/process"
	"loki/internal/base/process/sandbox"
)

// evil is what the adversary writes everywhere.
const evil = "[core]\n\tfsmonitor = evil\nexec evil\n"

// TestAdversary has four processes at once do random things in one workspace at level write, round after round: nothing outside of
// it changes, no place that runs later changes, goes or comes to be, and the call after each round works. The sample does what one
// seed leads to; LOKI_TEST=full takes half an hour with seeds of its own. The seed is printed; LOKI_SEED repeats it, as far as
// processes that run at once repeat what they did.
func TestAdversary(t *testing.T) {
	seed, length := uint64(1), 10*time.Second
	if full() {
		seed, length = uint64(time.Now().UnixNano()), 30*time.Minute
	}
	if text := os.Getenv("LOKI_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	if text := os.Getenv("LOKI_ADVERSARY"); text != "" {
		length, _ = time.ParseDuration(text)
	}
	t.Logf("seed %d", seed)
	root, err := os.MkdirTemp("", "adversary")
	must(t, err)
	t.Cleanup(func() { // deeper than os.RemoveAll goes
		_ = exec.Command("chmod", "-R", "u+rwX", root).Run()
		if out, err := exec.Command("rm", "-rf", root).CombinedOutput(); err != nil {
			t.Errorf("%v: %.300s", err, out)
		}
	})
	program, err := os.Executable()
	must(t, err)
	if root, err = filepath.EvalSymlinks(root); err != nil {
		t.Fatal(err)
	}
	workspace, home := filepath.Join(root, "workspace"), filepath.Join(root, "home")
	for _, path := range []string{
		"home/.npmrc", "home/.claude/settings", "home/.vscode/x", "home/.envrc", "home/.git/config", "home/.git/HEAD", "home/d/.envrc", "beside/.envrc", "beside/d/f", "beside/.git/hooks/x",
		"workspace/.envrc", "workspace/.vscode/tasks.json", "workspace/.git/HEAD", "workspace/.git/config", "workspace/.git/hooks/x", "workspace/.git/objects/x", "workspace/.git/refs/x",
		"workspace/a/b/AGENTS.md", "workspace/a/b/f", "workspace/node_modules/.bin/x", "workspace/node_modules/p/x", "workspace/bare/HEAD", "workspace/bare/objects/x", "workspace/bare/refs/x", "workspace/bare/config",
	} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755))
		must(t, os.WriteFile(filepath.Join(root, path), []byte("mine "+path), 0o644))
	}
	must(t, os.MkdirAll(filepath.Join(root, "state"), 0o700))
	options := sandbox.Options{Workspace: workspace, Home: home, State: filepath.Join(root, "state"), Own: []string{filepath.Join(root, "state")}, Getenv: os.Getenv}
	if s := sandbox.New(options).Support(); !strings.Contains(s.How, "namespaces") {
		t.Skip("needs namespaces: " + s.Missing)
	}
	outside := func() string { return tree(t, filepath.Join(root, "home")) + tree(t, filepath.Join(root, "beside")) }
	mine, around := laterIn(t, workspace, nil), outside()
	run := func(args ...string) error {
		b := sandbox.New(options).Box(sandbox.Declaration{Level: sandbox.Write}, sandbox.Needs{Read: []string{program}})
		_, err := process.Run(t.Context(), process.Command{
			Path: program, Args: args, Dir: workspace, Env: append(os.Environ(), roleVariable+"=adversary"), Confinement: b, Timeout: 5 * time.Minute, HasTimeout: true,
		})
		return err
	}
	random := rand.New(rand.NewPCG(seed, 0))
	for began, round := time.Now(), 0; round == 0 || time.Since(began) < length && !t.Failed(); round++ {
		var all sync.WaitGroup
		for range 4 {
			seed := random.Uint64()
			all.Go(func() { // one that is set up while others work in its way may not run
				_ = run(strconv.FormatUint(seed, 10), strconv.Itoa(int(seed%400)), home)
			})
		}
		all.Wait()
		if now := outside(); now != around {
			t.Errorf("round %d: outside of the workspace there was\n%s\nand is\n%s", round, around, now)
		}
		now := laterIn(t, workspace, mine)
		for id, was := range mine {
			if now[id].text != was.text {
				t.Errorf("round %d: %q is %q", round, was, now[id])
			}
		}
		for id, is := range now {
			if _, known := mine[id]; !known {
				t.Errorf("round %d: came to be: %.300q", round, is)
			}
		}
		if err := run("0", "0", home); err != nil {
			t.Errorf("round %d: the next call: %v", round, err)
		}
		if round%20 == 19 { // it grows
			entries, err := os.ReadDir(workspace)
			must(t, err)
			for _, e := range entries {
				path := filepath.Join(workspace, e.Name())
				switch {
				case slices.Contains([]string{".envrc", ".vscode", ".git", "a", "node_modules", "bare"}, e.Name()):
				case !e.IsDir(): // some are links to the root of the file system, which nobody may follow here
					_ = os.Remove(path)
				case !holdsMine(t, path, mine):
					_ = exec.Command("chmod", "-R", "u+rwX", path).Run()
					_ = exec.Command("rm", "-rf", path).Run()
				}
			}
		}
	}
}

// holdsMine reports whether a place of the beginning is somewhere below a directory by now.
func holdsMine(t *testing.T, dir string, mine map[string]later) bool {
	for id := range laterIn(t, dir, mine) {
		if mine[id].text != "" {
			return true
		}
	}
	return false
}

// tree returns the names, modes and texts of files.
func tree(t *testing.T, root string) string {
	var b strings.Builder
	must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text, _ := os.ReadFile(path) // of a directory there is none
		_, err = fmt.Fprintf(&b, "%s %v %q\n", path, info.Mode(), text)
		return err
	}))
	return b.String()
}

// later is something that runs later: the end of its path, and its type and text.
type later struct{ path, text string }

// laterIn returns what runs later in a directory, by the identity of the file, and what did so before. It finds it by
// itself, so that it does not share the mistakes of the sandbox.
func laterIn(t *testing.T, root string, before map[string]later) map[string]later {
	found := make(map[string]later)
	var walk func(own int, names []string, inside bool) int
	walk = func(own int, names []string, inside bool) int { // returns own, which is closed and opened again meanwhile
		fd, err := unix.Openat(own, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		must(t, err)
		dir := os.NewFile(uintptr(fd), "")
		list, err := dir.Readdirnames(-1)
		must(t, err)
		dir.Close()
		has := func(name string) bool { return slices.Contains(list, name) }
		repository := has("HEAD") && (has("commondir") || has("objects") && has("refs")) || len(names) > 0 && names[len(names)-1] == ".git"
		for _, name := range list {
			var s unix.Stat_t
			must(t, unix.Fstatat(own, name, &s, unix.AT_SYMLINK_NOFOLLOW))
			below := append(slices.Clone(names[max(0, len(names)-2):]), name)
			_, runs := sandbox.RunsLater(strings.Join(below, "/"))
			if base := names[max(0, len(names)-1):]; !inside && runs { // not by the names of directories that hold it
				_, around := sandbox.RunsLater(strings.Join(base, "/"))
				runs = !around || len(below) > 1
			}
			runs = runs || inside || repository && slices.Contains([]string{"config", "hooks", "commondir", "config.worktree", "modules", "worktrees"}, name)
			text := ""
			if s.Mode&unix.S_IFMT == unix.S_IFREG {
				text = readAt(own, name)
			}
			id := fmt.Sprint(s.Dev, s.Ino)
			if runs || before[id].text != "" || name == "git-rebase-todo" && repositoryState(names) && text == evil {
				found[id] = later{strings.Join(below, "/"), fmt.Sprintf("%o %s", s.Mode&unix.S_IFMT, text)}
			}
			if s.Mode&unix.S_IFMT == unix.S_IFDIR {
				if s.Mode&0o700 != 0o700 {
					_ = unix.Fchmodat(own, name, 0o700, 0)
				}
				fd, err := unix.Openat(own, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
				must(t, err)
				unix.Close(own)
				fd = walk(fd, below, runs)
				own, err = unix.Openat(fd, "..", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
				must(t, err)
				unix.Close(fd)
			}
		}
		return own
	}
	if info, err := os.Lstat(root); err == nil && info.IsDir() && info.Mode()&0o700 != 0o700 {
		must(t, os.Chmod(root, 0o700))
	}
	fd, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	must(t, err)
	unix.Close(walk(fd, nil, false))
	return found
}

// repositoryState reports whether a directory is where git keeps the state of a rebase.
func repositoryState(names []string) bool {
	return len(names) > 1 && names[len(names)-1] == "rebase-merge" && names[len(names)-2] == ".git"
}

func readAt(dir int, name string) string {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err.Error()
	}
	defer unix.Close(fd)
	buf := make([]byte, 1000)
	n, _ := unix.Read(fd, buf)
	return string(buf[:max(n, 0)])
}

// adversaryNames are names that matter.
var adversaryNames = []string{
	".git", "hooks", "config", "HEAD", "objects", "refs", "commondir", "info", "attributes", ".envrc", ".vscode", ".npmrc", ".claude", "node_modules", ".bin", "AGENTS.md", "loki-sandbox-x", ".venv",
	"rebase-merge", "git-rebase-todo", ".envrc.withheld", "config.withheld", "a", "b", "d", "l", "bare", "p", ".GIT", "worktrees", "modules",
}

// runAdversary does so many random things in its working directory. home is outside.
func runAdversary(args []string) int {
	seed, _ := strconv.ParseUint(args[0], 10, 64)
	count, _ := strconv.Atoi(args[1])
	r := rand.New(rand.NewPCG(seed, 1))
	unix.Umask(0)
	a := adversary{r, args[2]}
	for range count {
		a.act()
	}
	return 0
}

type adversary struct {
	*rand.Rand
	home string
}

func (a adversary) name() string {
	if a.IntN(5) > 0 {
		return adversaryNames[a.IntN(len(adversaryNames))]
	}
	return strings.Repeat(string(rune('e'+a.IntN(20))), 1+a.IntN(255))
}

// dir returns a directory somewhere in the workspace.
func (a adversary) dir() int {
	fd, _ := unix.Open(".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	for range a.IntN(5) {
		own, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			break
		}
		f := os.NewFile(uintptr(own), "")
		names, _ := f.Readdirnames(200)
		f.Close()
		if len(names) == 0 {
			break
		}
		below, err := unix.Openat(fd, names[a.IntN(len(names))], unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			continue
		}
		unix.Close(fd)
		fd = below
	}
	return fd
}

func (a adversary) write(dir int, name string) {
	if fd, err := unix.Openat(dir, name, unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC|unix.O_NONBLOCK, 0o666); err == nil {
		_, _ = unix.Write(fd, []byte(evil))
		unix.Close(fd)
	}
}

// act does one thing. Most of it can fail.
func (a adversary) act() {
	dir, name := a.dir(), a.name()
	defer unix.Close(dir)
	switch a.IntN(16) {
	case 0, 1, 2:
		_ = unix.Mkdirat(dir, name, 0o777)
	case 3, 4, 5:
		a.write(dir, name)
	case 6:
		targets := []string{a.home, a.home + "/.npmrc", "..", "../..", "../../../beside", ".", a.name(), "../" + a.name(), "/proc/self/cwd", "/"}
		_ = unix.Symlinkat(targets[a.IntN(len(targets))], dir, name)
	case 7, 8:
		other := a.dir()
		_ = unix.Renameat2(dir, a.name(), other, name, []uint{0, unix.RENAME_EXCHANGE, unix.RENAME_NOREPLACE}[a.IntN(3)])
		unix.Close(other)
	case 9:
		_ = unix.Fchmodat(dir, name, []uint32{0, 0o311, 0o555, 0o700, 0o600, 0o777}[a.IntN(6)], 0)
	case 10:
		other := a.dir()
		_ = unix.Linkat(dir, a.name(), other, name, 0)
		unix.Close(other)
	case 11: // a repository
		_ = unix.Mkdirat(dir, name, 0o777)
		if fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY, 0); err == nil {
			for _, d := range []string{"objects", "refs", "rebase-merge"} {
				_ = unix.Mkdirat(fd, d, 0o777)
			}
			for _, f := range []string{"HEAD", "config", "rebase-merge/git-rebase-todo"} {
				a.write(fd, f)
			}
			unix.Close(fd)
		}
	case 12: // a directory and a link to the home directory change places
		_ = unix.Mkdirat(dir, "d", 0o777)
		_ = unix.Symlinkat(a.home, dir, "l")
		for range a.IntN(300) {
			_ = unix.Renameat2(dir, "d", dir, "l", unix.RENAME_EXCHANGE)
			if a.IntN(20) == 0 {
				a.write(dir, "d/"+[]string{".npmrc", ".envrc"}[a.IntN(2)])
			}
		}
	case 13:
		_ = unix.Mount("none", "a", "tmpfs", 0, "")
		_ = unix.Unshare(unix.CLONE_NEWUSER | unix.CLONE_NEWNS)
		_ = unix.Mknodat(dir, name, unix.S_IFIFO|0o666, 0)
		_ = unix.Mknodat(dir, a.name(), unix.S_IFSOCK|0o666, 0)
	case 14:
		_ = unix.Unlinkat(dir, name, []int{0, unix.AT_REMOVEDIR}[a.IntN(2)])
	case 15: // deep
		if a.IntN(20) > 0 {
			return
		}
		fd, _ := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		long := strings.Repeat("x", 1+a.IntN(255))
		for range []int{150, 600, 10_000}[a.IntN(3)] {
			_ = unix.Mkdirat(fd, long, 0o777)
			below, err := unix.Openat(fd, long, unix.O_RDONLY|unix.O_DIRECTORY, 0)
			if err != nil {
				break
			}
			if a.IntN(50) == 0 {
				a.write(fd, a.name())
			}
			unix.Close(fd)
			fd = below
		}
		a.write(fd, ".envrc")
		unix.Close(fd)
	}
}
