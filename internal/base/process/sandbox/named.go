//go:build (linux && (amd64 || arm64)) || darwin

package sandbox

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Names by which git takes a directory for a repository, whatever its name is: one with a commondir has its settings and objects
// elsewhere. What runs later in it are the settings.
var (
	repositorySettings = []string{"config", "config.worktree", "hooks", "commondir", "modules", "worktrees"}
	repositoryNames    = map[string]bool{".git": true, "head": true, "objects": true, "refs": true, "config": true, "config.worktree": true, "hooks": true, "commondir": true, "modules": true, "worktrees": true, "attributes": true}
)

// entry protects what a link in a protected directory leads to, such as hooks that are kept under version control. Of
// node_modules/.bin only what is in another package counts: the packages of the workspace itself are work.
func (w *walk) entry(f *frame, name string) {
	target, err := filepath.EvalSymlinks(filepath.Join(f.path, name))
	if err != nil || !contains(w.l.workspace, target) || target == w.l.workspace || contains(f.path, target) {
		return
	}
	if f.name != ".bin" || strings.Contains(filepath.ToSlash(target), "/node_modules/") {
		w.lead(target, "a link in "+w.named(f.path)+" leads to it")
	}
}

// maxSettings is how much is read of settings of git, in bytes.
const maxSettings = 1 << 20

// git examines a repository: what its settings name runs later, and what it does with the next --continue.
func (w *walk) git(f *frame) {
	dir := f.path
	if f.isGit() {
		dir = f.parent.path
	}
	for _, name := range []string{"config", "config.worktree"} {
		if !w.after() || w.knows(f, name) {
			w.settings(read(f.fd, name, maxSettings), f.path, dir, 0)
		}
	}
	for _, state := range []struct {
		dir, name string
		commands  func(text []byte) []string
	}{
		{"rebase-merge", "git-rebase-todo", execs},
		{"rebase-merge", "strategy", strategy},
		{"rebase-apply", "strategy", strategy},
		{"sequencer", "todo", execs},
		{"sequencer", "opts", strategies},
	} {
		if !slices.ContainsFunc(f.list.entries, func(e entry) bool { return strings.EqualFold(e.name, state.dir) }) {
			continue
		}
		w.state(f, state.dir, state.name, state.commands)
	}
}

// state protects what will be executed when git continues: only commands that are not in the file before a child count. A link is
// not git's, and neither is a file that is too long to be read.
func (w *walk) state(f *frame, dir, name string, commands func(text []byte) []string) {
	const most = 64 << 20
	const reason = "git runs what it names with the next --continue"
	fd, err := unix.Openat(f.fd, dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		_, statErr := statAt(f.fd, dir)
		switch {
		case statErr != nil:
		case !w.after() || w.known.at[f.id][dir]:
			w.s.places.add(f.id, dir)
		default:
			f.places = append(f.places, found{dir, reason, false}) // it has its name until what is in it has been examined
		}
		return
	}
	defer unix.Close(fd)
	s, err := statAt(fd, "")
	if err != nil {
		return
	}
	in := &frame{fd: fd, id: s.id, path: join(f.path, dir)}
	file, err := statAt(fd, name)
	if err != nil {
		return
	}
	text := read(fd, name, most)
	if text == nil && file.mode&unix.S_IFMT != unix.S_IFREG || len(text) == most {
		w.command(f, in, name, reason, dir+"/"+name)
	}
	for _, command := range commands(text) {
		sum := sha256.Sum256([]byte(command))
		w.command(f, in, name, reason, fmt.Sprintf("%s/%s %x", dir, name, sum[:8]))
	}
}

// command records a command of a repository as something that is there, and withholds the file that has it if it was not before.
func (w *walk) command(repository, in *frame, name, reason, key string) {
	if !w.after() || w.known.at[repository.id][key] {
		w.s.places.add(repository.id, key)
		return
	}
	w.withhold(in, found{name, reason, false})
}

// execs returns the commands of the list of a rebase.
func execs(text []byte) (all []string) {
	for line := range bytes.Lines(text) {
		word, command, _ := strings.Cut(strings.ReplaceAll(strings.TrimSpace(string(line)), "\t", " "), " ")
		if word == "exec" || word == "x" {
			all = append(all, command)
		}
	}
	return all
}

// strategies of git itself. Of another one, git runs the program git-merge-NAME, which can be a path.
var ownStrategies = []string{"", "ort", "recursive", "recursive-ours", "recursive-theirs", "resolve", "octopus", "ours", "theirs", "subtree"}

func strategy(text []byte) []string {
	if name := strings.TrimSpace(string(text)); !slices.Contains(ownStrategies, name) {
		return []string{name}
	}
	return nil
}

// strategies returns the strategies in options of a cherry-pick.
func strategies(text []byte) (all []string) {
	for line := range strings.Lines(string(text)) {
		if i := strings.LastIndexByte(line, ']'); i >= 0 && strings.HasPrefix(strings.TrimSpace(line), "[") {
			line = line[i+1:]
		}
		key, value, _ := strings.Cut(line, "=")
		if strings.EqualFold(strings.TrimSpace(key), "strategy") {
			all = append(all, strategy([]byte(strings.Trim(strings.TrimSpace(value), `"`)))...)
		}
	}
	return all
}

// settings protects what settings of git name and git runs or includes. around is the directory of the file, dir the one that
// commands start in. depth is how many files include this one.
func (w *walk) settings(text []byte, around, dir string, depth int) {
	if depth > 10 { // as in git
		return
	}
	for _, named := range namedBy(text) {
		base := dir
		if named.included {
			base = around
		}
		path := named.path
		if below, ok := strings.CutPrefix(path, "~/"); ok {
			path = filepath.Join(w.l.userHome, below)
		} else if !filepath.IsAbs(path) {
			path = filepath.Join(base, path)
		}
		target, err := filepath.EvalSymlinks(path)
		if err != nil || !contains(w.l.workspace, target) || contains(target, w.l.workspace) || contains(target, around) {
			continue
		}
		w.lead(target, "the settings of git name it")
		if info, err := os.Stat(target); err == nil && info.IsDir() {
			entries, _ := os.ReadDir(target) // links in a directory that cannot be read lead nowhere
			for _, e := range entries {
				if e.Type()&fs.ModeSymlink != 0 {
					w.entry(&frame{path: target, name: filepath.Base(target)}, e.Name())
				}
			}
		} else if named.included {
			w.settings(read(unix.AT_FDCWD, target, maxSettings), filepath.Dir(target), dir, depth+1)
		}
	}
}

// namedPath is a path in settings of git.
type namedPath struct {
	path     string
	included bool // it has more settings, and is relative to the file that names it
}

// programSettings are the settings in the section core that are commands.
var programSettings = []string{"fsmonitor", "sshcommand", "gitproxy", "editor", "pager", "askpass"}

// namedBy returns the paths that settings of git name for programs and for more settings.
func namedBy(text []byte) []namedPath {
	var all []namedPath
	section := ""
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxSettings+1)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if rest, ok := strings.CutPrefix(line, "["); ok {
			name, after, _ := strings.Cut(rest, "]")
			if i := strings.LastIndex(rest, `"]`); i >= 0 { // a condition can have brackets
				name, after = rest[:i], rest[i+2:]
			}
			section, _, _ = strings.Cut(strings.ToLower(name), " ")
			line = strings.TrimSpace(after)
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			continue
		}
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		if inside, ok := strings.CutPrefix(value, `"`); ok {
			value, _, _ = strings.Cut(inside, `"`)
		} else if i := strings.IndexAny(value, "#;"); i >= 0 {
			value = strings.TrimSpace(value[:i])
		}
		switch {
		case value == "":
		case (section == "include" || section == "includeif") && key == "path":
			all = append(all, namedPath{value, true})
		case section == "core" && (key == "hookspath" || key == "attributesfile"):
			all = append(all, namedPath{path: value})
		case section == "core" && slices.Contains(programSettings, key):
			if first, _, _ := strings.Cut(value, " "); strings.Contains(first, "/") { // else it is a program on the PATH
				all = append(all, namedPath{path: first})
			}
		}
	}
	return all
}
