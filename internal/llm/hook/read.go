package hook

import (
	"fmt"
	"strings"

	"loki/internal/base/process/sandbox"
	"loki/internal/base/value/yamldoc"
)

// Read reads the value of hooks: in a configuration file or the definition of an agent: a mapping from kinds to lists of
// entries with the keys name, command, match, timeout, on_failure and sandbox. Kinds are the ones that it may have, and the hooks come
// in their order, those of a kind as they are written. Every mistake, unknown keys among them, is reported to the document
// as an error: a hook that is left out might be the one that refuses. A nil node, or a null, has none.
func Read(n *yamldoc.Node, kinds []Kind) []Hook {
	if n == nil || n.Kind() == yamldoc.Null {
		return nil
	}
	m := n.Map()
	if m == nil {
		return nil
	}
	var hooks []Hook
	for _, kind := range kinds {
		for i, entry := range m.List(string(kind)) {
			h := Hook{Kind: kind, Name: fmt.Sprintf("%s[%d]", kind, i), Where: fmt.Sprintf("%s:%d", n.File(), entry.Pos().Line)}
			if h.read(entry) {
				hooks = append(hooks, h)
			}
		}
	}
	keys := make([]string, len(kinds))
	for i, kind := range kinds {
		keys[i] = string(kind)
	}
	m.Only(keys...)
	return hooks
}

// read reads an entry, and reports whether it is one.
func (h *Hook) read(n *yamldoc.Node) bool {
	m := n.Map()
	if m == nil {
		return false
	}
	h.Timeout, h.OnFailure = DefaultTimeout, Continue
	if h.Kind == BeforeTool || h.Kind == BeforeModel {
		h.OnFailure = Refuse
	}
	m.Only("name", "command", "match", "timeout", "on_failure", "sandbox")
	if len(m.Require("command")) > 0 {
		return false
	}
	h.readCommand(m.Get("command"))
	if m.Str("name", &h.Name) && (h.Name == "" || strings.ContainsFunc(h.Name, func(r rune) bool { return r < ' ' })) {
		m.Get("name").Errorf("a name is one line of text")
	}
	if m.Str("match", &h.Match) {
		if h.Match == "" {
			m.Get("match").Errorf("the pattern is empty, so the hook would never run").Hint = "write a name, such as fs_write, with * for any text, or leave the key out"
		}
	}
	if m.Span("timeout", &h.Timeout) && (h.Timeout <= 0 || h.Timeout > MaxTimeout) {
		m.Get("timeout").Errorf("a hook has more than 0 and up to %d seconds", int(MaxTimeout.Seconds()))
	}
	yamldoc.Choice(m, "on_failure", &h.OnFailure, Continue, Refuse)
	yamldoc.Choice(m, "sandbox", &h.Level, sandbox.Levels()...)
	return true
}

// readCommand reads a text for the shell, or a list of a program and its arguments.
func (h *Hook) readCommand(n *yamldoc.Node) {
	if n.Kind() != yamldoc.List {
		if text, ok := n.Str(); ok {
			if h.Command = text; strings.TrimSpace(text) == "" {
				n.Errorf("the command is empty")
			}
		}
		return
	}
	if args, ok := n.Texts(); ok {
		if h.Args = args; len(args) == 0 || args[0] == "" {
			n.Errorf("the list names no program")
		}
	}
}
