package tool

import (
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/llm/chat"
)

// Set is a list of tools with different names. It is immutable; the zero Set is empty.
type Set struct {
	entries []entry
	index   map[string]int // into entries, by declared name
}

// entry is a tool and what does not change about it.
type entry struct {
	tool     Tool
	declared chat.Tool
	file     string // name of the file of a script, else empty
}

func newEntry(t Tool) entry {
	e := entry{tool: t, declared: t.Declaration()}
	if f, ok := t.(FromFile); ok {
		e.file = f.File()
	}
	return e
}

func (e entry) standsIn() bool {
	_, ok := e.tool.(StandIn)
	return ok
}

// NewSet returns the set of tools in the order given. A name that providers do not
// accept, or that two tools have, is an error.
func NewSet(tools ...Tool) (Set, error) {
	s := Set{index: make(map[string]int, len(tools))}
	for _, t := range tools {
		e := newEntry(t)
		if !ValidName(e.declared.Name) {
			return Set{}, fmt.Errorf("tool %q: a name has 1 to 64 letters, digits, \"_\" and \"-\"", e.declared.Name)
		}
		if !s.add(e) {
			return Set{}, fmt.Errorf("two tools have the name %q", e.declared.Name)
		}
	}
	return s, nil
}

// add appends e and reports true, unless there is a tool of that name already.
func (s *Set) add(e entry) bool {
	name := e.declared.Name
	if _, taken := s.index[name]; taken {
		return false
	}
	s.index[name] = len(s.entries)
	s.entries = append(s.entries, e)
	return true
}

// ValidName reports whether a tool may have the name.
func ValidName(name string) bool {
	if len(name) == 0 || len(name) > 64 {
		return false
	}
	for _, c := range []byte(name) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

// Len returns the number of tools.
func (s Set) Len() int { return len(s.entries) }

// All yields the tools with their names, in order.
func (s Set) All() iter.Seq2[string, Tool] {
	return func(yield func(string, Tool) bool) {
		for _, e := range s.entries {
			if !yield(e.declared.Name, e.tool) {
				return
			}
		}
	}
}

// Names returns the names of the tools, in order.
func (s Set) Names() []string {
	names := make([]string, len(s.entries))
	for i, e := range s.entries {
		names[i] = e.declared.Name
	}
	return names
}

// Declarations returns the tools as models see them, in order.
func (s Set) Declarations() []chat.Tool {
	list := make([]chat.Tool, len(s.entries))
	for i, e := range s.entries {
		list[i] = e.declared
	}
	return list
}

// Lookup returns the tool called name, or the tool from the file called name.
func (s Set) Lookup(name string) (Tool, bool) {
	e, ok := s.lookup(name)
	return e.tool, ok
}

func (s Set) lookup(name string) (entry, bool) {
	if i, ok := s.index[name]; ok {
		return s.entries[i], true
	}
	if found := match(s.entries, name); len(found) == 1 {
		return found[0], true
	}
	return entry{}, false
}

// UnknownError reports the name of a tool that does not exist.
type UnknownError struct {
	Name      string
	Available []string // the existing names, sorted
}

func (e *UnknownError) Error() string {
	return e.WithoutNames() + "; available: " + list(e.Available)
}

// WithoutNames returns the error without the names that exist.
func (e *UnknownError) WithoutNames() string {
	text := fmt.Sprintf("there is no tool %q", e.Name)
	if ext := filepath.Ext(e.Name); slices.Contains([]string{".js", ".mjs", ".cjs", ".mts", ".rb", ".pl", ".bash", ".zsh", ".fish", ".ps1"}, ext) {
		text += ": scripts of tools end in .sh, .py or .ts"
	}
	return text
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// Select returns the tools that names mean, in the order of names and each once. A name
// is that of a tool or of its file. The error is an [*UnknownError].
func (s Set) Select(names []string) (Set, error) {
	chosen := Set{index: make(map[string]int, len(names))}
	for _, name := range names {
		found := match(s.entries, name)
		if len(found) == 0 {
			return Set{}, &UnknownError{Name: name, Available: slices.Sorted(slices.Values(s.Names()))}
		}
		for _, e := range found {
			chosen.add(e)
		}
	}
	return chosen, nil
}

// ForNode returns the tools that a graph node of agent lists, where s holds those of
// the agent. An entry that s does not have is a [*fault.Error] with code Config.
func (s Set) ForNode(agent string, names []string) (Set, error) {
	chosen, err := s.Select(names)
	if unknown, ok := errors.AsType[*UnknownError](err); ok {
		return Set{}, fault.New(fault.Config, "agent %q has no tool %q; available: %s", agent, unknown.Name, list(unknown.Available)).
			WithHint("list it in global_tools of the agent, or take it out of the node's tools")
	}
	return chosen, err
}

// With returns s followed by more. If tools have the same name, the first one stays.
func (s Set) With(more ...Tool) (Set, error) {
	list := make([]Tool, 0, s.Len()+len(more))
	seen := make(map[string]bool, cap(list))
	for name, t := range s.All() {
		list, seen[name] = append(list, t), true
	}
	for _, t := range more {
		if name := t.Declaration().Name; !seen[name] {
			list, seen[name] = append(list, t), true
		}
	}
	return NewSet(list...)
}
