// Package ignore finds which files the user hides from models.
//
// The root is that of the workspace. An ignore file has patterns as gitignore(5) has them, and holds for its directory and what is
// below it; of two that have the same name the deeper one decides. [Name] is the name of those that count for everything that models do.
// Others, by names of other programs, hide files from tools and attachments only. The user's own file
// counts everywhere, also outside of the workspace, where its patterns are relative to the root of the file system. No file takes back what one of another name hides.
package ignore

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"loki/internal/tool/builtin/tree"
)

// Name is the name of the ignore files that count for programs, too.
const Name = ".aiignore"

// maxFile bounds an ignore file, in bytes; what follows in a larger one does not count.
const maxFile = 1 << 20

// Files say where ignore files are.
type Files struct {
	Root   string   // of the workspace: absolute, without links; "" for none
	User   string   // the user's own file; "" for none
	Others []string // names of ignore files beside [Name]
}

// Match says why a path is hidden.
type Match struct {
	File    string // as it is shown
	Line    int
	Pattern string
}

// String returns the place of the pattern, such as .aiignore:3.
func (m Match) String() string { return fmt.Sprintf("%s:%d", m.File, m.Line) }

// Rules are the rules of ignore files, each of which is read once. They may be used from several goroutines.
type Rules struct {
	files Files
	names []string // of the ignore files; the first is Name

	mu       sync.Mutex
	dirs     map[string]*directory
	findings []Finding
}

// Finding is something that is wrong with an ignore file.
type Finding struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"` // 0 for the file as a whole
	Problem string `json:"problem"`
}

// directory has the rules for what is in a directory.
type directory struct {
	slashed string
	rules   []*tree.Rules // first the user's own, then of each name
	hidden  []*Match      // likewise: why the directory itself is hidden
}

// Rules returns the rules as the files are now.
func (f Files) Rules() *Rules {
	return &Rules{files: f, names: append([]string{Name}, f.Others...), dirs: make(map[string]*directory)}
}

// Hides reports whether a file is hidden from tools and attachments, by its absolute path without links.
func (r *Rules) Hides(path string) (m Match, ok bool) {
	info, err := os.Stat(path) // a link to a directory is taken for one
	if m, ok = r.match(path, err == nil && info.IsDir(), len(r.names)+1); ok || err == nil {
		return m, ok
	}
	return r.match(path, true, len(r.names)+1) // what is made there may be a directory
}

// ForPrograms returns what says why a file is hidden from programs, as .aiignore:3 does; "" if it is not.
func (f Files) ForPrograms() func(path string, dir bool) (why string) {
	rules := f.Rules()
	return func(path string, dir bool) string {
		if m, hidden := rules.HidesFromPrograms(path, dir); hidden {
			return m.String()
		}
		return ""
	}
}

// HidesFromPrograms reports whether a file is hidden from programs in the sandbox, too. What is in a directory that builds fill is not.
func (r *Rules) HidesFromPrograms(path string, dir bool) (m Match, ok bool) {
	for name := range strings.SplitSeq(filepath.ToSlash(strings.TrimPrefix(path, r.files.Root)), "/") {
		if isBuilt(name) {
			return m, false
		}
	}
	return r.match(path, dir, 2)
}

// isBuilt reports whether a directory is one that builds and package managers fill, by its name.
func isBuilt(name string) bool {
	switch name {
	case "node_modules", "vendor", "target", "dist", "build", "out", ".venv", "venv", "__pycache__", ".gradle", ".next":
		return true
	}
	return false
}

// Is reports whether a file is an ignore file that counts here, by its path.
func (r *Rules) Is(path string) bool {
	return path == r.files.User && path != "" || slices.Contains(r.names, filepath.Base(path)) && below(r.files.Root, path)
}

// Findings returns what is wrong with the files that were read.
func (r *Rules) Findings() []Finding {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.findings)
}

// match applies the first kinds of rules to a path.
func (r *Rules) match(path string, dir bool, kinds int) (m Match, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	base := r.files.Root
	if !below(base, path) {
		base = filepath.VolumeName(path) + string(filepath.Separator)
	}
	if path == base {
		return m, false
	}
	d := r.dir(base, filepath.Dir(path))
	for i, one := range d.decide(filepath.Base(path), dir) {
		if i < kinds && one != nil {
			return Match{r.displayPath(one.File), one.Line, one.Pattern}, true
		}
	}
	return m, false
}

// dir returns the rules for what is in a directory, which is base or below it.
func (r *Rules) dir(base, path string) *directory {
	if d := r.dirs[path]; d != nil {
		return d
	}
	d := &directory{slashed: strings.TrimSuffix(filepath.ToSlash(path), "/")}
	r.dirs[path] = d
	if path == base || !below(base, path) {
		d.rules, d.hidden = make([]*tree.Rules, len(r.names)+1), make([]*Match, len(r.names)+1)
		d.rules[0] = r.read(r.files.User, d.slashed, nil)
	} else {
		above := r.dir(base, filepath.Dir(path))
		d.rules, d.hidden = slices.Clone(above.rules), above.decide(filepath.Base(path), true)
	}
	if base == r.files.Root {
		for i, name := range r.names {
			d.rules[i+1] = r.read(filepath.Join(path, name), d.slashed, d.rules[i+1])
		}
	}
	return d
}

// decide returns by kind why a name in the directory is hidden, nil if it is not.
func (d *directory) decide(name string, dir bool) []*Match {
	matches := slices.Clone(d.hidden)
	for i, rules := range d.rules {
		if matches[i] != nil {
			continue // what is in a hidden directory cannot be taken back
		}
		if found, _ := rules.Decide(d.slashed+"/"+name, dir); found.Ignored {
			matches[i] = &Match{found.File, found.Line, found.Text}
		}
	}
	return matches
}

// read adds the rules of a file, if it is there, to those above it.
func (r *Rules) read(file, slashed string, above *tree.Rules) *tree.Rules {
	if _, err := os.Lstat(file); err != nil {
		return above
	}
	find := func(line int, problem string) {
		r.findings = append(r.findings, Finding{r.displayPath(file), line, problem})
	}
	data, cut, err := readFile(file)
	if err != nil {
		find(0, err.Error())
		return above
	}
	if cut {
		find(0, fmt.Sprintf("only its first %d bytes count", maxFile))
	}
	rules, invalid := tree.ParseRules(file, slashed, data, above)
	for _, line := range invalid {
		find(line, "is not a pattern")
	}
	return rules
}

// readFile reads an ignore file, whole lines of it if it is too large.
func readFile(path string) (data []byte, cut bool, err error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("it is not a regular file")
	}
	if err != nil {
		return nil, false, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	if data, err = io.ReadAll(io.LimitReader(file, maxFile+1)); len(data) > maxFile {
		data, cut = data[:strings.LastIndexByte(string(data[:maxFile]), '\n')+1], true
	}
	return data, cut, err
}

// displayPath returns the path of an ignore file as users see it: from the root of the workspace.
func (r *Rules) displayPath(file string) string {
	if rel, err := filepath.Rel(r.files.Root, file); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return file
}

// below reports whether a path is dir or below it. Nothing is below the empty one.
func below(dir, path string) bool {
	return dir != "" && (path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator)))
}

// Listed is an ignore file, with what it does.
type Listed struct {
	File     string    `json:"file"`
	Patterns int       `json:"patterns"`
	Hidden   int       `json:"hidden"`   // files and directories below the root that it hides, without what is in these
	Programs bool      `json:"programs"` // it counts for programs in the sandbox, too
	Findings []Finding `json:"findings"`
}

// List returns the ignore files of the workspace and the user's own.
func (f Files) List() (list []Listed) {
	r := f.Rules()
	hidden := make(map[string]int)
	add := func(file, dir string) {
		if _, err := os.Lstat(file); err != nil {
			return
		}
		one := Listed{File: r.displayPath(file), Programs: file == f.User || filepath.Base(file) == Name, Findings: []Finding{}}
		if data, _, err := readFile(file); err == nil {
			if rules, _ := tree.ParseRules(file, dir, data, nil); rules != nil {
				one.Patterns = rules.Len()
			}
		}
		list = append(list, one)
	}
	if f.User != "" {
		add(f.User, "")
	}
	r.walk(f.Root, add, hidden)
	for i := range list {
		one := &list[i]
		one.Hidden = hidden[one.File]
		for _, finding := range r.findings {
			if finding.File == one.File && !slices.Contains(one.Findings, finding) {
				one.Findings = append(one.Findings, finding)
			}
		}
	}
	return list
}

// walk calls add for the ignore files below a directory, and counts what files hide.
func (r *Rules) walk(root string, add func(file, dir string), hidden map[string]int) {
	if root == "" {
		return
	}
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch m, ok := r.match(path, err != nil || d.IsDir(), len(r.names)+1); {
		case err != nil || d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case ok && d.IsDir():
			hidden[m.File]++
			return fs.SkipDir
		case ok:
			hidden[m.File]++
		case d.IsDir():
			for _, name := range r.names {
				add(filepath.Join(path, name), path)
			}
		}
		return nil
	})
}
