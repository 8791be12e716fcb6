package mcp

import (
	"fmt"
	"slices"
	"strings"
)

// All is the setting that selects every server.
const All = "all"

// Selection is the result of a setting of servers.
type Selection struct {
	Servers  []Server // in the order of the file, each once
	Warnings []string // about names in the setting that mean nothing
}

// Select returns the servers that setting means: "all" for every one, otherwise ids and
// aliases with commas between them. Blanks around them do not count. A name that is
// both is an id. An alias means ids with commas between them, not other aliases. Disabled servers
// are never selected; naming one is a warning.
func (f *File) Select(setting string, aliases map[string]string) Selection {
	return f.SelectList(strings.Split(setting, ","), aliases)
}

// Optional returns the name of a server that a setting names, and whether the server may be
// missing: a "?" behind the name says so.
func Optional(name string) (server string, optional bool) {
	return strings.CutSuffix(strings.TrimSpace(name), "?")
}

// Required reports whether an agent cannot do without the server that it names so.
func Required(name string) bool {
	_, optional := Optional(name)
	return !optional
}

// advice returns how a missing server is added.
func (f *File) advice() string {
	switch {
	case f.Path == "":
		return ""
	case len(f.Servers) == 0:
		return fmt.Sprintf("; loki --install mcp_config writes %s with some in common use", f.Path)
	}
	return fmt.Sprintf("; add it to %s", f.Path)
}

// SelectList is Select for a setting that is a list. An [Optional] server that is not there, or
// disabled, is skipped.
func (f *File) SelectList(names []string, aliases map[string]string) Selection {
	var sel Selection
	if len(names) == 1 && strings.TrimSpace(names[0]) == All {
		for _, s := range f.Servers {
			if !s.Disabled {
				sel.Servers = append(sel.Servers, s)
			}
		}
		return sel
	}
	wanted := make(map[string]bool)
	warn := func(format string, args ...any) {
		if w := fmt.Sprintf(format, args...); !slices.Contains(sel.Warnings, w) {
			sel.Warnings = append(sel.Warnings, w)
		}
	}
	take := func(id string) bool {
		s, ok := f.Lookup(id)
		if ok && s.Disabled {
			warn("MCP server %q is disabled", id)
		} else if ok {
			wanted[id] = true
		}
		return ok
	}
	for _, name := range names {
		name, optional := Optional(name)
		if s, known := f.Lookup(name); optional && known && s.Disabled {
			continue
		}
		if name == "" || take(name) {
			continue
		}
		parts, ok := aliases[name]
		if !ok {
			if !optional {
				warn("there is no MCP server %q%s", name, f.advice())
			}
			continue
		}
		for part := range strings.SplitSeq(parts, ",") {
			if part = strings.TrimSpace(part); part != "" && !take(part) {
				warn("there is no MCP server %q, which the alias %q names%s", part, name, f.advice())
			}
		}
	}
	for _, s := range f.Servers {
		if wanted[s.ID] {
			sel.Servers = append(sel.Servers, s)
		}
	}
	return sel
}
