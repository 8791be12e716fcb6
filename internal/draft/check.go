package draft

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/graph"
	"loki/internal/text"
)

// Check returns what an agent that a model has written must not have, and what of it is not used. G is the graph of the draft;
// kept reports whether the agent that is changed has a script at a path, and is nil for a new one.
func (d Draft) Check(g *graph.Graph, kept func(path string) bool) graph.Findings {
	var findings graph.Findings
	add := func(severity graph.Severity, n *graph.Node, key, hint, message string) {
		f := graph.Finding{Severity: severity, Rule: RuleDraft, Path: key, Message: message, Hint: hint}
		if n != nil {
			f.Node, f.Path = n.ID, "nodes."+n.ID+"."+key
		}
		if f.Path != "" {
			f.Pos = g.Pos(f.Path)
		}
		findings = append(findings, f)
	}
	used := make(map[string]bool)
	for _, n := range g.Nodes {
		if n.Script == nil || n.Script.Script == "" {
			continue
		}
		name := n.Script.Script
		used[clean(name)] = true
		if kept != nil && kept(name) {
			if _, written := d.File(name); !written {
				continue // it is the user's own, wherever it is
			}
		}
		if why := pathFault(name); why != "" {
			add(graph.SeverityError, n, "script", "name a file in the directory of the agent, such as scripts/"+n.ID+".sh, and write it in a block of its own", "script "+text.Visible(name)+" cannot be written: "+why)
		}
	}
	if len(g.Hooks) > 0 {
		add(graph.SeverityError, nil, "hooks", "leave them out; the user can add them", "hooks run commands at each call, so a plan has none")
	}
	for _, f := range d.Files {
		if !used[clean(f.Path)] {
			add(graph.SeverityWarning, nil, "", "leave it out, or name it in a script node", "the file "+text.Visible(f.Path)+" is not written: it is not the script of any node")
		}
	}
	return findings
}

// reserved are files of an agent that mean something by their names.
var reserved = []string{"tools.sh", "tools.py", "tools.ts", "tools.js"}

// pathFault returns why a script cannot be written at a path below the directory of an agent, "" if it can.
func pathFault(name string) string {
	switch {
	case path.IsAbs(name) || filepath.IsAbs(name) || strings.HasPrefix(name, "~") || strings.ContainsAny(name, `\:`):
		return "it is not a path relative to the directory of the agent"
	case !filepath.IsLocal(filepath.FromSlash(name)):
		return "it is outside of the directory of the agent"
	case slices.Contains(reserved, strings.ToLower(clean(name))):
		return "a file of this name has the tools of an agent"
	}
	for part := range strings.SplitSeq(clean(name), "/") {
		if why := text.FileNameFault(part); why != "" {
			return text.Visible(part) + ": " + why
		}
	}
	return ""
}

// Scripts returns the files of the draft that nodes of its graph name. No other file is written.
func (d Draft) Scripts(g *graph.Graph) []File {
	return slices.DeleteFunc(slices.Clone(d.Files), func(f File) bool {
		return !slices.ContainsFunc(g.Nodes, func(n *graph.Node) bool { return n.Script != nil && clean(n.Script.Script) == clean(f.Path) })
	})
}
