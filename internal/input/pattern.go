package input

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"loki/internal/fault"
)

// Pattern is a path, or a set of files below one:
//
//	dir, dir/**          everything below dir
//	dir/*.md             files in dir with this extension
//	dir/**/*.md          and in the directories below it
//	dir/**/*.{md,txt}    of several extensions
//	dir/**/name.md       files of this name
//	dir/*/name.md        likewise
//	dir/*/*.md           in dir and the directories in it
type Pattern struct {
	Base  string   // the path, or the directory
	Depth int      // how many levels of directories below Base are searched, -1 for all
	names []string // file names; empty for all
	exts  []string // extensions without the dot; empty for all
}

// Plain reports whether p is a path, and all files below it if it is a directory.
func (p Pattern) Plain() bool { return len(p.names) == 0 && len(p.exts) == 0 && p.Depth < 0 }

// ParsePattern reads the path of a source.
func ParsePattern(source string) (Pattern, error) {
	s := source
	if runtime.GOOS == "windows" {
		s = filepath.ToSlash(s)
	}
	if !strings.Contains(s, "*") {
		return Pattern{Base: source, Depth: -1}, nil
	}
	dir, last := "", s
	if i := strings.LastIndexByte(s, '/'); i >= 0 {
		dir, last = s[:i+1], s[i+1:]
	}
	p := Pattern{Depth: 0}
	if last == "**" {
		return p.at(dir, source, -1)
	}
	switch below, wild := strings.CutSuffix(dir, "**/"); {
	case wild:
		p.Depth, dir = -1, below
	default:
		if below, wild = strings.CutSuffix(dir, "*/"); wild {
			p.Depth, dir = 1, below
		}
	}
	filter, isExt := strings.CutPrefix(last, "*.")
	filters, err := alternatives(source, filter)
	if err != nil {
		return p, err
	}
	switch {
	case isExt:
		p.exts = filters
	case p.Depth > 0:
		p.names, p.Depth = filters, -1
	default:
		p.names = filters
	}
	return p.at(dir, source, p.Depth)
}

// at sets the directory, in which no wildcard may be left.
func (p Pattern) at(dir, source string, depth int) (Pattern, error) {
	invalid := slices.ContainsFunc(append(slices.Concat(p.names, p.exts), dir), func(s string) bool { return s != dir && s == "" || strings.ContainsAny(s, "*") })
	if invalid {
		return p, fault.New(fault.Usage, "%s is not a pattern that can be attached", source).WithHint("%s", patternHint(source))
	}
	switch {
	case dir == "":
		dir = "."
	case dir != "/":
		dir = strings.TrimSuffix(dir, "/")
	}
	p.Base, p.Depth = dir, depth
	return p, nil
}

// alternatives returns what {a,b} stands for, or s itself.
func alternatives(source, s string) ([]string, error) {
	inner, open := strings.CutPrefix(s, "{")
	inner, closed := strings.CutSuffix(inner, "}")
	if !open && !closed {
		return []string{s}, nil
	}
	if !open || !closed || strings.ContainsAny(inner, "{}") {
		return nil, fault.New(fault.Usage, "%s: the braces do not match", source)
	}
	return strings.Split(inner, ","), nil
}

// Matches reports whether a file of this name belongs to p, if it is not below too many directories.
func (p Pattern) Matches(name string) bool {
	switch {
	case len(p.names) > 0:
		return slices.Contains(p.names, name)
	case len(p.exts) > 0:
		return slices.ContainsFunc(p.exts, func(ext string) bool { return len(name) > len(ext)+1 && strings.HasSuffix(name, "."+ext) })
	}
	return true
}

// tooDeep reports whether the directory dir lies below the levels that p searches.
func (p Pattern) tooDeep(base, dir string) bool {
	if p.Depth < 0 {
		return false
	}
	rel, err := filepath.Rel(base, dir)
	return err != nil || strings.Count(filepath.ToSlash(rel), "/")+1 > p.Depth
}
