package tree

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"loki/internal/base/text"
	"loki/internal/base/text/pattern"
)

// maxIgnoreFile bounds an ignore file, in bytes; a larger one is ignored.
const maxIgnoreFile = 1 << 20

// ignoreFiles are read in each directory; the rules of a later one win.
var ignoreFiles = [...]string{".gitignore", ".ignore"}

// Rules are the rules in the ignore files of one directory and of the directories above
// it. They follow gitignore(5) with the patterns of package pattern: the last rule that matches decides, and rules of a
// directory come before those above it. A nil *Rules ignores nothing. They are
// immutable.
type Rules struct {
	file  string // that has them
	dir   string // with slashes, where the rules' paths start from
	list  []rule
	above *Rules
}

// Decision says which line of an ignore file decides about a path.
type Decision struct {
	File    string
	Line    int    // from 1
	Text    string // the line
	Ignored bool   // false for a line that begins with !
}

// rule is one line of an ignore file.
type rule struct {
	line    int // from 1
	text    string
	negated bool // matching paths are not ignored
	dirs    bool // is about directories only
	// One of these decides.
	name   string           // the name is equal
	suffix string           // the name ends so
	glob   *pattern.Pattern // the name matches
	path   *pattern.Pattern // the path from the rules' directory matches
}

// ParseRules reads an ignore file for the directory dir, which has slashes and
// none at its end. Lines that are no patterns are skipped, as in git, and invalid has their numbers. The result is above itself if
// data has no rules.
func ParseRules(file, dir string, data []byte, above *Rules) (rules *Rules, invalid []int) {
	r := &Rules{file: file, dir: dir, above: above}
	n := 0
	for line := range bytes.Lines(text.TrimMark(data)) {
		n++
		line := string(bytes.TrimRight(line, "\r\n"))
		switch parsed, ok := parseRule(line); {
		case ok:
			parsed.line, parsed.text = n, line
			r.list = append(r.list, parsed)
		case trimBlanks(line) != "" && line[0] != '#':
			invalid = append(invalid, n)
		}
	}
	if len(r.list) == 0 {
		return above, invalid
	}
	return r, invalid
}

// Len returns how many rules the directory has of its own.
func (r *Rules) Len() int { return len(r.list) }

// parseRule reads a line; ok is false if it is empty, a comment, or not valid.
func parseRule(line string) (r rule, ok bool) {
	line = trimBlanks(line)
	if strings.HasPrefix(line, "#") {
		return r, false
	}
	line, r.negated = strings.CutPrefix(line, "!")
	if inner, found := strings.CutSuffix(line, "/"); found {
		line, r.dirs = inner, true
	}
	line, anchored := strings.CutPrefix(line, "/")
	if line == "" {
		return r, false
	}
	literal := func(text string) bool { return !pattern.Special(text) }
	suffix, starred := strings.CutPrefix(line, "*")
	switch {
	case anchored || strings.Contains(line, "/"):
		r.path, ok = compile(line)
	case literal(line):
		r.name, ok = line, true
	case starred && suffix != "" && literal(suffix):
		r.suffix, ok = suffix, true
	default:
		r.glob, ok = compile(line)
	}
	return r, ok
}

// compile reads a pattern. As for git, a pattern with /** at its end is about what is in a directory and not about the
// directory itself. Braces that do not close are literal.
func compile(line string) (*pattern.Pattern, bool) {
	if strings.HasSuffix(line, "/**") {
		line += "/*"
	}
	p, err := pattern.CompileBoth(line)
	if err != nil {
		p, err = pattern.Compile(strings.ReplaceAll(line, "{", `\{`))
	}
	return p, err == nil
}

// trimBlanks drops blanks at the end of a line, except one behind a backslash.
func trimBlanks(line string) string {
	trimmed := strings.TrimRight(line, " ")
	slashes := len(trimmed) - len(strings.TrimRight(trimmed, `\`))
	if slashes%2 == 1 && len(trimmed) < len(line) {
		return trimmed + " "
	}
	return trimmed
}

// Ignored reports whether the file or directory at a path is ignored, as [Rules.Decide] says.
func (r *Rules) Ignored(path string, isDir bool) bool {
	d, _ := r.Decide(path, isDir)
	return d.Ignored
}

// Decide returns what decides about the file or directory at a path with slashes, below the
// directories of all rules; ok is false if nothing does. It does not check the directories on the way,
// since a walk does not enter ignored ones.
func (r *Rules) Decide(path string, isDir bool) (d Decision, ok bool) {
	name := path[strings.LastIndexByte(path, '/')+1:]
	for ; r != nil; r = r.above {
		for i := len(r.list) - 1; i >= 0; i-- {
			if one := &r.list[i]; (!one.dirs || isDir) && one.matches(r.dir, path, name) {
				return Decision{r.file, one.line, one.text, !one.negated}, true
			}
		}
	}
	return Decision{}, false
}

func (r *rule) matches(dir, path, name string) bool {
	switch {
	case r.name != "":
		return name == r.name
	case r.suffix != "":
		return strings.HasSuffix(name, r.suffix)
	case r.glob != nil:
		return r.glob.Match(name)
	}
	return len(path) > len(dir)+1 && r.path.Match(strings.TrimPrefix(path[len(dir):], "/"))
}

// readRules adds the rules of the ignore files in a directory.
func readRules(dir, slashed string, there func(name string) bool, above *Rules) *Rules {
	for _, name := range ignoreFiles {
		if there(name) {
			above = readRulesFile(filepath.Join(dir, name), slashed, above)
		}
	}
	return above
}

func readRulesFile(file, slashed string, above *Rules) *Rules {
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() || info.Size() > maxIgnoreFile {
		return above
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return above
	}
	rules, _ := ParseRules(file, slashed, text, above)
	return rules
}

// rulesAbove returns the rules of the git repository around dir that come from above
// dir: those of its directories, and its private ones. Outside of a repository it
// returns none.
func rulesAbove(dir string) *Rules {
	var dirs []string
	at := dir
	for {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			break
		}
		parent := filepath.Dir(at)
		if parent == at {
			return nil
		}
		at = parent
		dirs = append(dirs, at)
	}
	rules := readRulesFile(filepath.Join(at, ".git", "info", "exclude"), withSlashes(at), nil)
	for i := len(dirs) - 1; i >= 0; i-- {
		rules = readRules(dirs[i], withSlashes(dirs[i]), func(string) bool { return true }, rules)
	}
	return rules
}

// withSlashes returns a directory in the form of Rules.dir; that of the root is
// empty.
func withSlashes(dir string) string { return strings.TrimSuffix(filepath.ToSlash(dir), "/") }
