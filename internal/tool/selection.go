package tool

import (
	"path/filepath"
	"slices"
	"strings"
)

// All is the selection of everything.
const All = "all"

// extensions are those of scripts. If scripts in different languages have the same
// name, and a list names no extension, the first one here wins.
var extensions = [...]string{".sh", ".py", ".ts", ".js"}

// Name returns the name of a tool that may be given as the file it is defined in:
// fs_cat.sh is fs_cat.
func Name(file string) string {
	for _, ext := range extensions {
		if name, ok := strings.CutSuffix(file, ext); ok {
			return name
		}
	}
	return file
}

// CompareFiles orders the files of scripts by name and then by precedence: .sh, .py,
// .ts.
func CompareFiles(a, b string) int {
	if c := strings.Compare(Name(a), Name(b)); c != 0 {
		return c
	}
	return rank(a) - rank(b)
}

// rank returns the index of a file's extension in extensions; -1 for a file
// without one of them.
func rank(file string) int { return slices.Index(extensions[:], filepath.Ext(file)) }

// FromFile is a tool that a script of the user defines.
type FromFile interface {
	Tool
	// File returns the name of the script's file, without its directory.
	File() string
	// Source returns the absolute path of the file and its text without generated code.
	Source() (path string, text []byte, err error)
}

// match returns the tools that an entry of a list of tools means. A name with an
// extension means all the tools of the file of that name. A built-in tool has every
// extension, and so has a script that replaces one. A name without an extension
// means the tool of that name (of several, the one in the first of .sh, .py and .ts), or
// else the tools of the file of that name.
func match(pool []entry, name string) []entry {
	pick := func(want func(entry) bool) (found []entry) {
		for _, e := range pool {
			if want(e) {
				found = append(found, e)
			}
		}
		slices.SortStableFunc(found, func(a, b entry) int { return rank(a.file) - rank(b.file) })
		return found
	}
	short := Name(name)
	if short != name {
		if found := pick(func(e entry) bool { return e.file == name }); found != nil {
			return found
		}
	}
	found := pick(func(e entry) bool {
		return e.declared.Name == short && (short == name || e.file == "" || e.standsIn())
	})
	if found != nil {
		return found[:1]
	}
	if short != name {
		return nil
	}
	found = pick(func(e entry) bool { return e.file != "" && Name(e.file) == name })
	return slices.DeleteFunc(found, func(e entry) bool { return e.file != found[0].file })
}

// Pool is a list of tools to choose from. Several may have the same name: scripts in
// different languages. It is immutable; the zero Pool is empty.
type Pool struct{ entries []entry }

// NewPool returns the pool of tools, in the order given.
func NewPool(tools ...Tool) Pool {
	var p Pool
	for _, t := range tools {
		p.entries = append(p.entries, newEntry(t))
	}
	return p
}

// Selection is what a setting such as enabled_tools selects.
type Selection struct {
	Tools []Tool // in the order of the pool, no two with the same name
	// Unknown lists the entries that mean nothing. Names in an alias are not among them:
	// an alias says what may be used together, not what exists.
	Unknown []string
}

// Pick returns what a setting selects. The setting is [All] or a list with commas; an
// entry is an alias, whose value is a list of names, or a name: one of a tool or of a
// script's file. Aliases come first and do not nest.
func (p Pool) Pick(setting string, alias func(name string) (list string, ok bool)) Selection {
	wanted := make(map[string]entry) // by declared name
	add := func(name string) bool {
		found := match(p.entries, name)
		for _, e := range found {
			if _, taken := wanted[e.declared.Name]; !taken {
				wanted[e.declared.Name] = e
			}
		}
		return len(found) > 0
	}
	var s Selection
	for name := range entries(setting) {
		list, isAlias := alias(name)
		switch {
		case name == All:
			for _, e := range p.entries {
				add(e.declared.Name)
			}
		case isAlias:
			for name := range entries(list) {
				add(name)
			}
		case !add(name):
			s.Unknown = append(s.Unknown, name)
		}
	}
	for _, e := range p.entries {
		if w, ok := wanted[e.declared.Name]; ok && w.file == e.file {
			s.Tools = append(s.Tools, e.tool)
			delete(wanted, e.declared.Name)
		}
	}
	return s
}

// entries ranges over the entries of a list with commas.
func entries(list string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for entry := range strings.SplitSeq(list, ",") {
			if entry = strings.TrimSpace(entry); entry != "" && !yield(entry) {
				return
			}
		}
	}
}
