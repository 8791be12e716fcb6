package sandbox

import (
	"bufio"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// entries protects what the links in a protected directory lead to, such as hooks that are kept under version control. Of
// node_modules/.bin only what is in another package counts: the packages of the workspace itself are work.
func (s *survey) entries(l *limits, dir, reason string) {
	all, _ := os.ReadDir(dir) // a file has none
	for _, e := range all {
		if e.Type()&fs.ModeSymlink == 0 {
			continue
		}
		link := filepath.Join(dir, e.Name())
		target, err := filepath.EvalSymlinks(link)
		if filepath.Base(dir) == ".bin" && (err != nil || !strings.Contains(filepath.ToSlash(target), "/node_modules/")) {
			continue
		}
		s.links = append(s.links, link)
		if !contains(dir, target) {
			s.lead(l, link, "", reason)
		}
	}
}

// maxSettings is how much is read of settings of git and of the list of a rebase, in bytes.
const maxSettings = 1 << 20

// settings protects what settings of git in a file name and git runs or includes. dir is the one that commands start in. depth
// is how many files include this one.
func (s *survey) settings(l *limits, file, dir string, depth int) {
	if depth > 10 { // as in git
		return
	}
	for _, named := range namedBy(head(file)) {
		base := dir
		if named.included {
			base = filepath.Dir(file)
		}
		path := named.path
		if below, ok := strings.CutPrefix(path, "~/"); ok {
			path = filepath.Join(l.userHome, below)
		} else if !filepath.IsAbs(path) {
			path = filepath.Join(base, path)
		}
		target, err := filepath.EvalSymlinks(path)
		if err != nil || !contains(l.workspace, target) || contains(target, l.workspace) || contains(target, file) {
			continue
		}
		known := s.protected[target] != ""
		s.protected[target] = "the settings of git name it"
		if named.included && !known {
			s.settings(l, target, dir, depth+1)
		}
		s.entries(l, target, s.protected[target])
	}
}

// head returns the beginning of a file, nothing if it cannot be read.
func head(file string) []byte {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	text := make([]byte, min(info.Size(), maxSettings))
	n, _ := f.ReadAt(text, 0)
	return text[:n]
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

// rebase records the commands that a rebase in a directory of git, if there is one, executes when it goes on.
func (s *survey) rebase(dir string) {
	file := filepath.Join(dir, "rebase-merge", "git-rebase-todo")
	for line := range bytes.Lines(head(file)) {
		word, command, _ := strings.Cut(strings.ReplaceAll(strings.TrimSpace(string(line)), "\t", " "), " ")
		if word == "exec" || word == "x" {
			s.execs[file] = append(s.execs[file], command)
		}
	}
}
