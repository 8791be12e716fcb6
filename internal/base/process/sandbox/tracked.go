//go:build (linux && (amd64 || arm64)) || darwin

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// trackedPaths returns the paths that git tracks, or below which it tracks something: the ones in the index of the repository around them.
// They are absolute and below the workspace.
func (b *Box) trackedPaths(paths []string) (found []string) {
	const most = 64 << 20 // bytes of an index
	wanted := make(map[string]map[string]string)
	for _, path := range paths {
		for dir := filepath.Dir(path); contains(b.held.workspace, dir); dir = filepath.Dir(dir) {
			if info, err := os.Lstat(filepath.Join(dir, ".git")); err == nil && info.IsDir() {
				if wanted[dir] == nil {
					wanted[dir] = make(map[string]string)
				}
				wanted[dir][strings.TrimPrefix(path, dir+"/")] = path
				break
			}
		}
	}
	for dir, names := range wanted {
		index := read(unix.AT_FDCWD, filepath.Join(dir, ".git", "index"), most)
		add := func(name string) {
			if path := names[name]; path != "" {
				found = append(found, path)
				delete(names, name)
			}
		}
		Index(index, func(name []byte) {
			for i, c := range name {
				if c == '/' {
					add(string(name[:i]))
				}
			}
			add(string(name))
		})
	}
	slices.Sort(found)
	return found
}

// moved is a file that was withheld, with its absolute paths.
type moved struct{ from, to string }

// paths returns both paths of each file.
func paths(files []moved) (all []string) {
	for _, m := range files {
		all = append(all, m.from, m.to)
	}
	return all
}

// noticeDeleted adds a notice about files that git tracks and that were withheld just now. It returns the refusals without theirs: a
// command of git at a higher level does not put them back.
func (b *Box) noticeDeleted(files []moved, all []Refusal) []Refusal {
	known := b.trackedPaths(paths(files))
	b.noticeMoved(files, func(m moved) bool { return slices.Contains(known, m.from) }, "left files withheld that git tracks and now takes for deleted: %s",
		"programs may run it later: look at it; commit nothing with git add -A or git commit -a before the user has put it back: ")
	return slices.DeleteFunc(all, func(r Refusal) bool {
		return slices.ContainsFunc(known, func(path string) bool { return b.s.display(path) == r.What })
	})
}

// noticeRecorded adds a notice about files that were withheld before this call, of which git tracked some paths then: it recorded them
// as deleted since, or tracks them by their other names.
func (b *Box) noticeRecorded(files []moved, before []string) {
	if len(files) == 0 {
		return
	}
	known := b.trackedPaths(paths(files))
	is := func(path string, now bool) bool {
		return slices.Contains(known, path) == now && slices.Contains(before, path) != now
	}
	b.noticeMoved(files, func(m moved) bool { return exists(m.to) && (is(m.from, false) || is(m.to, true)) },
		"changed what git tracks of files that are withheld: %s", "unless that was meant, the user puts it back and adds it again: ")
}

// noticeMoved adds a notice about the files that count, with the command that gives them their names back.
func (b *Box) noticeMoved(files []moved, counts func(moved) bool, what, remedy string) {
	plain := regexp.MustCompile(`^[\w./][\w./-]*$`)
	quote := func(path string) string {
		if path = b.s.display(path); plain.MatchString(path) {
			return path
		}
		return "'./" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	slices.SortFunc(files, func(x, y moved) int { return strings.Compare(x.to, y.to) }) // directories before what is in them
	var names, commands []string
	for _, m := range files {
		if counts(m) && !slices.Contains(names, b.s.display(m.from)) {
			names = append(names, b.s.display(m.from))
			commands = append(commands, "mv "+quote(m.to)+" "+quote(m.from))
		}
	}
	if len(names) > 0 {
		b.notice(fmt.Sprintf(what, some(names, ", ")), remedy+some(commands, " && "))
	}
}
