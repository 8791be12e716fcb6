package draft

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/base/text"
	"loki/internal/workflow/graph"
)

// Check returns what an agent that a model has written must not have, and what of it is not used. G is the graph of the draft;
// kept reports whether the agent that is changed has a script at a path, and is nil for a new one.
func (d Draft) Check(g *graph.Graph, kept func(path string) bool) graph.Findings {
	var findings graph.Findings
	add := func(severity graph.Severity, n *graph.Member, key, hint, message string) {
		f := graph.Finding{Severity: severity, Rule: RuleDraft, Path: key, Message: message, Hint: hint}
		switch {
		case n != nil:
			f = n.At(f)
		case f.Path != "":
			f.Pos = g.Pos(f.Path)
		}
		findings = append(findings, f)
	}
	used := make(map[string]bool)
	for n := range g.All() {
		if n.Sub != nil && n.Sub.File != "" {
			used[clean(n.Sub.File)] = true
			if _, written := d.File(n.Sub.File); written {
				if why := pathFault(n.Sub.File); why != "" {
					add(graph.SeverityError, &n, "file", "name a file in the directory of the agent, such as "+n.ID+".yaml", "the subgraph "+text.Visible(n.Sub.File)+" cannot be written: "+why)
				}
			}
		}
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
			add(graph.SeverityError, &n, "script", "name a file in the directory of the agent, such as scripts/"+n.ID+".sh, and write it in a block of its own", "script "+text.Visible(name)+" cannot be written: "+why)
		}
	}
	if len(g.Hooks) > 0 {
		add(graph.SeverityError, nil, "hooks", "leave them out; the user can add them", "hooks run commands at each call, so a plan has none")
	}
	for _, f := range d.Files {
		if !used[clean(f.Path)] {
			add(graph.SeverityWarning, nil, "", "leave it out, or name it in a node", "the file "+text.Visible(f.Path)+" is not written: it is neither the script nor the subgraph of a node")
		}
	}
	return findings
}

// reserved are files of an agent that mean something by their names.
var reserved = map[string]string{
	"tools.sh": toolsFile, "tools.py": toolsFile, "tools.ts": toolsFile, "tools.js": toolsFile, "config.yaml": "a file of this name makes a plain agent",
}

const toolsFile = "a file of this name has the tools of an agent"

// pathFault returns why a script cannot be written at a path below the directory of an agent, "" if it can.
func pathFault(name string) string {
	switch {
	case path.IsAbs(name) || filepath.IsAbs(name) || strings.HasPrefix(name, "~") || strings.ContainsAny(name, `\:`):
		return "it is not a path relative to the directory of the agent"
	case !filepath.IsLocal(filepath.FromSlash(name)):
		return "it is outside of the directory of the agent"
	case reserved[strings.ToLower(clean(name))] != "":
		return reserved[strings.ToLower(clean(name))]
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
		_, named := g.Find(func(n *graph.Node) bool {
			return n.Script != nil && clean(n.Script.Script) == clean(f.Path) || n.Sub != nil && n.Sub.File != "" && clean(n.Sub.File) == clean(f.Path)
		})
		return !named
	})
}
