package skill

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/agent/workspace"
	"loki/internal/base/value/yamldoc"
)

// File is the name of the file that makes a directory a skill.
const File = "SKILL.md"

// Skill is a skill that was found.
type Skill struct {
	fields
	Dir      string             `json:"directory"` // absolute, without links
	Source   string             `json:"source"`    // the directory in which it was found, for people
	State    workspace.State    `json:"state"`     // used, untrusted, changed, shadowed, hidden or unusable
	Findings []*yamldoc.Problem `json:"-"`
	Notes    []*yamldoc.Problem `json:"-"` // what hinders nothing, such as keys of other programs

	main workspace.File // SKILL.md
	body string         // behind the front matter
	root string         // of the workspace whose trust it needs; "" for none
	rest []workspace.File
}

// Bounds of what is looked at.
const (
	maxLevels = 3        // below a directory of skills
	maxDirs   = 2000     // in all of them
	maxFiles  = 1000     // of a skill
	maxBytes  = 32 << 20 // of a skill
)

// Finder finds skills. Its fields are not changed while it is used; it may be used from several goroutines.
type Finder struct {
	Dir, Root string   // the working directory, and the root of its workspace; "" for no workspace
	Home      string   // home directory; "" for none
	Config    string   // the configuration directory
	Agent     string   // directory of the agent; "" for none
	More      []string // further directories with skills

	// Trust returns what tells the state of a file of the workspace at root.
	Trust func(root string) func(name, sum string) workspace.State
	// Hides reports whether an ignore file hides a path.
	Hides func(path string) bool
}

// place is a directory with skills.
type place struct {
	dir, name string
	within    string // links must not lead out of it
	root      string // of the workspace whose trust it needs; "" for none
}

// nested are the directories with skills of a workspace and, without the first, of a home directory.
var nested = []string{".loki/skills", ".agents/skills", ".claude/skills"}

// places returns where skills are looked for. What counts first comes first.
func (f Finder) places() (all []place) {
	home := f.Home
	if home != "" {
		home = workspace.ResolvePath(home)
	}
	var users []place
	own := func(dir, name string) {
		within := dir
		if home != "" && below(home, workspace.ResolvePath(dir)) {
			within = home
		}
		users = append(users, place{dir, name, within, ""})
	}
	own(filepath.Join(f.Config, "skills"), filepath.Join(f.Config, "skills"))
	if home != "" {
		for _, dir := range nested[1:] {
			own(filepath.Join(home, filepath.FromSlash(dir)), "~/"+dir)
		}
	}
	for _, dir := range f.More {
		name := dir
		if rest, ok := strings.CutPrefix(dir, "~/"); ok && home != "" {
			dir = filepath.Join(home, rest)
		}
		if filepath.IsAbs(dir) {
			own(dir, name)
		}
	}
	if f.Agent != "" {
		all = append(all, place{filepath.Join(f.Agent, "skills"), filepath.Join(f.Agent, "skills"), f.Agent, ""})
	}
	for at := workspace.ResolvePath(f.Dir); f.Root != ""; at = filepath.Dir(at) {
		for _, name := range nested {
			p := place{filepath.Join(at, filepath.FromSlash(name)), name, f.Root, f.Root}
			if at != f.Root {
				rel, _ := filepath.Rel(f.Root, p.dir)
				p.name = filepath.ToSlash(rel)
			}
			if !slices.ContainsFunc(users, func(u place) bool { return u.dir == p.dir }) {
				all = append(all, p)
			}
		}
		if at == f.Root || at == filepath.Dir(at) {
			break
		}
	}
	return append(all, users...)
}

// Own returns the directories with skills that need no trust, without those of an agent.
func (f Finder) Own() (dirs []string) {
	f.Agent, f.Root = "", ""
	for _, p := range f.places() {
		dirs = append(dirs, p.dir)
	}
	return dirs
}

// Find returns all skills that there are, in the order in which they count. Of two with the same name the later one is shadowed.
func (f Finder) Find() []Skill {
	var all []Skill
	seen, left := make(map[string]bool), maxDirs
	if f.Trust != nil && f.Root != "" {
		state := f.Trust(f.Root) // which reads a file
		f.Trust = func(string) func(name, sum string) workspace.State { return state }
	}
	for _, p := range f.places() {
		all = append(all, f.in(p, p.dir, 0, seen, &left)...)
	}
	first := make(map[string]int)
	for i := range all {
		s := &all[i]
		if s.State != workspace.Used {
			continue
		}
		if before, taken := first[s.Name]; taken {
			if s.State = workspace.Shadowed; s.equal(all[before]) {
				continue // a copy for another program
			}
			s.find("the skill of this name in %s counts", all[before].Source)
		} else {
			first[s.Name] = i
		}
	}
	return all
}

// equal reports whether two skills have the same text and the same files.
func (s Skill) equal(other Skill) bool {
	return s.main.Sum == other.main.Sum && slices.EqualFunc(s.rest, other.rest, func(a, b workspace.File) bool { return a.Sum == b.Sum })
}

// At returns the skill in a directory, or all below it, without their trust. What [Finder.Find] does not find is a note.
func At(dir string) (all []Skill) {
	dir = workspace.ResolvePath(dir)
	left := 10 * maxDirs // also those of a repository
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case left == 0:
			return fs.SkipAll
		case d == nil || !d.IsDir():
			return nil
		case err != nil || d.Name() == ".git" || d.Name() == "node_modules":
			return fs.SkipDir
		}
		left--
		if _, err := os.Stat(filepath.Join(path, File)); err != nil {
			return nil
		}
		if n := len(all); n > 0 && below(all[n-1].Dir, path) {
			all[n-1].note("%s is a file of this skill, and is not found as a skill of its own", slashPath(all[n-1].Dir, filepath.Join(path, File)))
			return nil
		}
		s := Finder{}.read(place{dir, dir, dir, ""}, path)
		slashed := filepath.ToSlash(path)
		if i := strings.LastIndex(slashed, "/skills/"); i >= 0 && strings.Count(slashed[i+len("/skills"):], "/") > maxLevels {
			s.note("it is not found: it is more than %d levels below %s", maxLevels, slashed[:i]+"/skills")
		}
		all = append(all, s)
		return nil
	})
	return all
}

// note adds a note about SKILL.md.
func (s *Skill) note(format string, args ...any) {
	s.Notes = append(s.Notes, finding(filepath.Join(s.Dir, File), format, args...))
}

// in returns the skills in a directory and below it.
func (f Finder) in(p place, dir string, level int, seen map[string]bool, left *int) (all []Skill) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || seen[real] || *left == 0 || !below(workspace.ResolvePath(p.within), real) {
		return nil
	}
	seen[real] = true
	*left--
	entries, err := os.ReadDir(real)
	if err != nil {
		return nil
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == File }) {
		return []Skill{f.read(p, real)}
	}
	for _, e := range entries {
		if level < maxLevels && e.Name() != ".git" && e.Name() != "node_modules" && (e.IsDir() || e.Type() == fs.ModeSymlink) {
			all = append(all, f.in(p, filepath.Join(dir, e.Name()), level+1, seen, left)...)
		}
	}
	return all
}

// read reads the skill in a directory, which has a SKILL.md.
func (f Finder) read(p place, dir string) Skill {
	r := workspace.Reader{Hides: f.Hides}
	if p.root != "" {
		r.Trust = f.Trust
	} else {
		r.Hides = nil
	}
	s := Skill{Dir: dir, Source: p.name, root: p.root}
	s.Name = filepath.Base(dir)
	s.main = workspace.File{Path: filepath.Join(dir, File), Of: s.Name}
	if s.main.Name = s.main.Path; p.root != "" {
		s.main.Name = slashPath(p.root, s.main.Path)
	}
	if there := r.Load(&s.main, cmp.Or(p.root, p.within)); !there {
		s.State = workspace.Unusable
		s.find("it is empty")
		return s
	}
	if s.State = s.main.State; s.State == workspace.Unusable {
		s.find("%s", s.main.Fault)
	}
	if s.State == workspace.Unusable || s.State == workspace.Hidden {
		return s
	}
	var usable bool
	s.fields, s.body, s.Findings, s.Notes, usable = parse(s.main.Path, s.main.Text())
	s.main.Of = s.Name
	if !usable {
		s.State = workspace.Unusable
		return s
	}
	if p.root == "" {
		return s
	}
	if err := s.load(r.Trust, f.Hides); err != nil {
		s.State = workspace.Unusable
		s.find("%v", err)
		return s
	}
	for _, file := range s.rest {
		if file.Unknown() && s.State == workspace.Used {
			s.State = workspace.Changed
		}
	}
	return s
}

// load reads the digests of the other files of the skill.
func (s *Skill) load(trust func(root string) func(name, sum string) workspace.State, hides func(string) bool) error {
	var state func(name, sum string) workspace.State
	if trust != nil && s.root != "" {
		state = trust(s.root)
	}
	left := int64(maxBytes)
	s.rest = nil
	return filepath.WalkDir(s.Dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case d.IsDir() || path == s.main.Path || hides != nil && hides(path):
			return nil
		case !d.Type().IsRegular():
			s.find("%s is not used: it is %s", slashPath(s.Dir, path), kindOf(d.Type()))
			return nil
		case len(s.rest) == maxFiles:
			return fmt.Errorf("it has more than %d files", maxFiles)
		}
		f := workspace.File{Path: path, Name: path, Of: s.Name, State: workspace.Used}
		if s.root != "" {
			f.Name = slashPath(s.root, path)
		}
		var n int64
		if f.Sum, n, err = sumOf(path, left); err != nil {
			return err
		}
		if left -= n; left < 0 {
			return fmt.Errorf("it has more than %d MiB", maxBytes>>20)
		}
		if f.Bytes = int(n); state != nil {
			f.State = state(f.Name, f.Sum)
		}
		s.rest = append(s.rest, f)
		return nil
	})
}

func kindOf(mode fs.FileMode) string {
	if mode == fs.ModeSymlink {
		return "a link"
	}
	return "not a regular file"
}

// sumOf returns the digest of a file, of which it reads at most one byte more than most.
func sumOf(path string, most int64) (sum string, n int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer file.Close()
	h := sha256.New()
	n, err = io.Copy(h, io.LimitReader(file, most+1))
	return hex.EncodeToString(h.Sum(nil)), n, err
}

// find adds a finding about SKILL.md.
func (s *Skill) find(format string, args ...any) {
	s.Findings = append(s.Findings, finding(filepath.Join(s.Dir, File), format, args...))
}

// InWorkspace reports whether the skill came with the workspace, so that it needs the user's trust.
func (s Skill) InWorkspace() bool { return s.root != "" }

// Unknown returns the files that the user has to trust before the skill counts.
func (s Skill) Unknown() (files []workspace.File) {
	if s.State != workspace.Untrusted && s.State != workspace.Changed {
		return nil
	}
	for _, f := range append([]workspace.File{s.main}, s.rest...) {
		if f.Unknown() {
			files = append(files, f)
		}
	}
	return files
}

// below reports whether path is dir or in it.
func below(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// slashPath returns a path as seen from dir, with slashes.
func slashPath(dir, path string) string {
	rel, err := filepath.Rel(dir, path)
	if err != nil {
		rel = path
	}
	return filepath.ToSlash(rel)
}
