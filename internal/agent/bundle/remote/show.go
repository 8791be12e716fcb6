package remote

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"loki/internal/agent/role"
	"loki/internal/agent/role/macro"
	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/event/redact"
	"loki/internal/tool/script"
)

// heading shows what a bundle is and how its files compare with what is there.
func (p *plan) heading(r Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Bundle %s: %s", text.Name(r.Name), text.Name(r.URL))
	if r.Ref != "" {
		fmt.Fprintf(&b, ", %s", text.Name(r.Ref))
	}
	fmt.Fprintf(&b, ", commit %.12s", p.report.Commit)
	for _, l := range layout[:len(layout)-1] {
		counts, any := make(map[State]int), false
		for _, t := range p.files {
			if t.Category == l.category && (t.State != Left || t.ours != "") {
				counts[t.State]++
				any = true
			}
		}
		if !any {
			continue
		}
		fmt.Fprintf(&b, "\n  %-16s new=%d  identical=%d  conflict=%d", l.path, counts[New], counts[Identical], counts[Conflict])
		for _, s := range []State{Updated, Kept, Removed, Left} {
			if counts[s] > 0 {
				fmt.Fprintf(&b, "  %s=%d", s, counts[s])
			}
		}
	}
	for _, note := range p.notes {
		b.WriteString("\nnote: " + text.Visible(note))
	}
	return b.String()
}

// dangers lists what a bundle is about to bring that can run, one or more lines each.
func (i *Installer) dangers(p *plan) []string {
	var lines []string
	agents := make(map[string][]string) // what each is about to get that decides what it does
	var names []string
	for _, t := range p.files {
		if !t.State.comes() {
			continue
		}
		name := text.Name(t.Path)
		switch t.Category {
		case Agents:
			_, rest, _ := strings.Cut(t.Path, "/")
			agent, file, _ := strings.Cut(rest, "/")
			if _, known := agents[agent]; !known {
				names = append(names, agent)
				agents[agent] = nil
			}
			if isScript(t) || definition(t) > 0 {
				agents[agent] = append(agents[agent], text.Name(file)+declaredVariables(t))
			}
		case Macros:
			lines = append(lines, "  macro       "+name+steps(t))
		case Functions:
			lines = append(lines, "  tool        "+name+" ("+size(len(t.content))+")"+declaredVariables(t)+i.shippedNote(Functions, strings.TrimSuffix(path.Base(t.Path), path.Ext(t.Path)), "tool"))
		case Skills:
			if path.Base(t.Path) == "SKILL.md" {
				lines = append(lines, "  skill       "+name)
			} else if isScript(t) {
				lines = append(lines, "  script      "+name+declaredVariables(t))
			}
		case Roles:
			if isScript(t) {
				lines = append(lines, "  script      "+name+declaredVariables(t))
			} else if marks := i.roleMarks(t); marks != "" {
				lines = append(lines, "  role        "+name+marks)
			}
		}
	}
	slices.Sort(names)
	for _, agent := range names {
		line := "  agent       " + text.Name(agent) + i.shippedNote(Agents, agent, "agent")
		for _, file := range slices.Sorted(slices.Values(agents[agent])) {
			line += "\n                " + file
		}
		lines = append(lines, line)
	}
	for _, t := range p.mcp {
		if t.State.comes() {
			lines = append(lines, "  MCP server  "+text.Name(t.here())+": "+describe(t.spec, true))
		}
	}
	return lines
}

// declaredVariables names the variables that a script or an agent gets from the environment because it says so.
func declaredVariables(t item) string {
	names := script.DeclaredVariables(t.content)
	if definition(t) > 0 {
		names = nil
		if doc, err := yamldoc.Parse(t.Path, t.content); err == nil {
			doc.Root().Map().Texts("environment", &names)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ", gets from your environment: " + text.Name(strings.Join(names, ", "))
}

// steps shows the steps of a macro, which may be commands of the shell.
func steps(t item) string {
	m, _, err := macro.Parse(strings.TrimSuffix(path.Base(t.Path), path.Ext(t.Path)), t.Path, t.content)
	if err != nil {
		return "" // it does not run
	}
	var b strings.Builder
	for _, s := range m.Steps {
		b.WriteString("\n                " + strings.ReplaceAll(text.Visible(s.Text), "\n", "\n                "))
	}
	return b.String()
}

// roleMarks returns why a role needs consent, or nothing: it takes the place of one of the program, which
// may write commands for a shell, or it names tools or MCP servers, which models then call.
func (i *Installer) roleMarks(t item) string {
	name, ok := strings.CutSuffix(t.Path, ".md")
	if !ok {
		return "" // not a role
	}
	name = strings.TrimPrefix(name, "roles/")
	marks := i.shippedNote(Roles, name, "role")
	r, _, err := role.Parse(name, t.Path, string(t.content))
	if err != nil {
		return marks + ", which cannot be read"
	}
	if list := r.Settings.EnabledTools; list != nil && *list != "" {
		marks += ", tools: " + text.Name(*list)
	}
	if list := r.Settings.EnabledMCPServers; list != nil && *list != "" {
		marks += ", MCP servers: " + text.Name(*list)
	}
	return marks
}

// comes reports whether the bundle's may be written.
func (s State) comes() bool { return s == Conflict || s.writes() }

func (i *Installer) shippedNote(c Category, name, what string) string {
	if i.Ships != nil && i.Ships(c, name) {
		return ", in place of the " + what + " that is part of the program"
	}
	return ""
}

// isScript reports whether a file is a program, to judge by its name and its first bytes.
func isScript(t item) bool {
	switch strings.ToLower(path.Ext(t.Path)) {
	case ".sh", ".bash", ".zsh", ".py", ".ts", ".js", ".mjs", ".rb", ".pl", ".ps1", ".bat", ".cmd", ".exe":
		return true
	}
	return bytes.HasPrefix(t.content, []byte("#!"))
}

// describe shows what a server starts or where it is, and all else that is set for it: with values, or
// only the names, as the values may be secret.
func describe(spec value.Value, values bool) string {
	o := spec.AsObject()
	line := ""
	if c, ok := o.Get("command"); ok {
		line = text.Word(c.Text())
		if args, ok := o.Get("args"); ok {
			list, _ := args.AsList()
			for _, arg := range list.All() {
				line += " " + text.Word(arg.Text())
			}
		}
		o = o.Without("command").Without("args")
	} else if u, ok := o.Get("url"); ok {
		line = redact.MaskAddress(u.Text())
		o = o.Without("url")
	}
	for name, v := range o.All() {
		if line += "\n                " + name; values {
			line += ": " + v.String()
		}
	}
	return text.Visible(line)
}

// size returns a number of bytes for people.
func size(n int) string {
	if n < 10_000 {
		return text.Count(n, "byte")
	}
	return fmt.Sprintf("%d KiB", (n+1023)>>10)
}

// Text returns the report for people.
func (r Report) Text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	files, servers := make(map[State][]string), make(map[State][]string)
	for _, t := range r.Items {
		switch {
		case t.Category != MCPConfig:
			files[t.State] = append(files[t.State], t.Path)
		case t.State == Renamed:
			servers[t.State] = append(servers[t.State], t.Path+" -> "+t.As)
		default:
			servers[t.State] = append(servers[t.State], cmp.Or(t.As, t.Path))
		}
	}
	switch {
	case r.Bundle == "":
		for _, note := range r.Notes { // without a plan nothing has shown them
			line("%s: %s", text.Name(r.URL), text.Visible(note))
		}
		return b.String()
	case r.DryRun:
		line("Nothing was changed. Without --dry-run:")
	case r.Declined:
		line("Nothing was changed.")
	case r.Gone:
		line("Bundle %s is removed: %s deleted.", text.Name(r.Bundle), text.Count(len(files[Removed]), "file"))
	default:
		line("Bundle %s is installed: %d new, %d replaced, %d kept, %d identical.", text.Name(r.Bundle),
			len(files[New]), len(files[Replaced])+len(files[Updated]), len(files[Kept]), len(files[Identical]))
	}
	names := func(mark string, list []string) {
		for _, name := range list {
			line("  %s %s", mark, text.Name(name))
		}
	}
	if !r.Gone {
		names("-", files[Removed])
	}
	names("=", files[Kept])
	names("!", files[Conflict])
	if r.DryRun {
		names("+", files[New])
		names("~", slices.Concat(files[Updated], files[Replaced]))
	}
	if left := files[Left]; len(left) > 0 {
		line("Left, as they are yours or you have changed them:")
		names("=", left)
	}
	if len(servers) > 1 || len(servers) == 1 && servers[Identical] == nil {
		added, replaced := servers[New], slices.Concat(servers[Updated], servers[Replaced])
		counts := fmt.Sprintf("%d added, %d replaced, %d kept, %d renamed", len(added), len(replaced), len(servers[Kept]), len(servers[Renamed]))
		if n := len(servers[Removed]); r.Gone {
			counts = fmt.Sprintf("%d removed", n)
		} else if n > 0 {
			counts += fmt.Sprintf(", %d removed", n)
		}
		line("MCP servers in %s: %s.", r.servers, counts)
		names("+", added)
		names("~", replaced)
		names("=", slices.Concat(servers[Kept], servers[Left]))
		names(">", servers[Renamed])
		names("-", servers[Removed])
		names("!", servers[Conflict])
	}
	for _, note := range r.Notes[min(len(r.Notes), r.shown):] {
		line("note: %s", text.Visible(note))
	}
	if len(r.Added) > 0 {
		line("Secrets that were added: %s", strings.Join(r.Added, ", "))
	}
	if len(r.Missing) > 0 {
		line("Secrets that the servers need and the vault does not have:")
		for _, name := range r.Missing {
			line("  loki --secret add %s", text.Word(name))
		}
	}
	return b.String()
}
