package skill

import (
	"fmt"
	"slices"
	"strings"

	"loki/internal/agent/workspace"
	"loki/internal/base/sandbox"
	"loki/internal/base/text"
	"loki/internal/tool/permission"
)

// meaning returns the tools here that a name in allowed-tools means, beside the shell. A name without tools needs no grant: it only reads.
func meaning(name string) (tools []string, known bool) {
	switch name {
	case "Read", "Grep", "Glob", "LS", "fs_cat", "fs_read", "fs_grep", "fs_glob", "fs_ls":
		return nil, true
	case "Write":
		return []string{"fs_write", "fs_mkdir"}, true
	case "Edit", "MultiEdit":
		return []string{"fs_patch"}, true
	case "WebFetch":
		return []string{"fetch_url_via_curl", "fetch_url_via_jina"}, true
	case "fs_write", "fs_patch", "fs_mkdir", "fs_rm", "fetch_url_via_curl", "fetch_url_via_jina":
		return []string{name}, true
	}
	return nil, false
}

// Grants returns what the tools that the skill lists mean here, and the entries that mean nothing. They allow no more than the level write,
// and rules of the user win.
func (s Skill) Grants() (grants []permission.Grant, unknown []string) {
	for _, entry := range s.AllowedTools {
		name, what, limited := strings.Cut(strings.TrimSuffix(entry, ")"), "(")
		tools, known := meaning(name)
		host, isHost := strings.CutPrefix(what, "domain:")
		switch {
		case name == "Bash" || name == "execute_command":
			command := strings.Join(strings.Fields(strings.ReplaceAll(what, ":*", " *")), " ")
			if !limited || command == "" {
				command = "*"
			}
			grants = append(grants, permission.Grant{Tool: "execute_command", Command: command, Level: sandbox.Write, Skill: s.Name})
			continue
		case limited && name == "WebFetch" && isHost && host != "" && !strings.ContainsAny(host, " *"):
		case !known, limited:
			unknown = append(unknown, entry)
			continue
		}
		for _, tool := range tools {
			grants = append(grants, permission.Grant{Tool: tool, Hosts: strings.ToLower(host), Skill: s.Name})
		}
	}
	return grants, unknown
}

// ToolsQuestion asks whether the grants of the skill hold.
func (s Skill) ToolsQuestion() string {
	grants, unknown := s.Grants()
	var b strings.Builder
	fmt.Fprintf(&b, "The skill %s in %s lists tools that it uses. May they be run without asking?\n\n", text.Visible(s.Name), text.Visible(s.Dir))
	for _, g := range grants {
		fmt.Fprintf(&b, "    %s\n", text.Visible(g.String()))
	}
	if len(unknown) > 0 {
		fmt.Fprintf(&b, "\nThese mean nothing here: %s\n", text.Visible(strings.Join(unknown, ", ")))
	}
	b.WriteString("\nPrograms get at most the level write of the sandbox, and your rules that deny or ask still hold.")
	return b.String()
}

// Content returns all files of the skill, by their paths in its directory.
func (s Skill) Content() ([]workspace.File, error) {
	rest, err := s.files()
	all := append([]workspace.File{s.main}, rest...)
	for i := range all {
		all[i].Name = slashPath(s.Dir, all[i].Path)
	}
	slices.SortFunc(all, func(a, b workspace.File) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}
