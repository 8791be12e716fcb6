package skill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"loki/internal/agent/workspace"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/text"
	"loki/internal/llm/hook"
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

// Consent is how a user is asked about the tools that a skill lists.
type Consent struct {
	Asker ask.Asker    // nil if no user can be asked
	From  ask.Question // has the origin of the question
	For   string       // how long a yes holds: "session" or "run"
	Asked *[]string    // the skills that the user was asked about, by directory and digest
	// Kept reports whether the user has allowed the tools for as long as the skill stays as it is. With keep it remembers that.
	Kept func(ctx context.Context, s Skill, keep bool) (bool, error)
	// Warn reports what could not be remembered.
	Warn func(err error)
}

// Allow returns what the skill may do without asking. The user is asked unless they decided before. Where no user can be asked, it is nothing.
func (s Skill) Allow(ctx context.Context, c Consent) ([]permission.Grant, error) {
	const no, always = "no", "always, for this skill as it is now"
	once := "yes, in this " + c.For
	grants, _ := s.Grants()
	key := s.Dir + "\n" + s.Event("").Sum
	if len(grants) == 0 || c.Kept == nil || slices.Contains(*c.Asked, key) {
		return nil, nil
	}
	kept, err := c.Kept(ctx, s, false)
	if err != nil || !kept && c.Asker == nil {
		return nil, nil // what cannot be read allows nothing
	}
	if kept {
		return grants, nil
	}
	q := c.From
	q.Kind, q.Text, q.Options, q.Consent = ask.Select, s.ToolsQuestion(), []string{no, once, always}, true
	answer, err := c.Asker.Ask(ctx, q)
	_, refused := errors.AsType[*hook.RefusedError](err)
	switch {
	case refused, errors.Is(err, ask.ErrUnavailable) || fault.CodeOf(err) == fault.Suspended:
		return nil, nil
	case err != nil:
		return nil, err
	}
	*c.Asked = append(*c.Asked, key)
	switch answer {
	case once:
		return grants, nil
	case always:
		if _, err := c.Kept(ctx, s, true); err != nil {
			c.Warn(err)
		}
		return grants, nil
	}
	return nil, nil
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
