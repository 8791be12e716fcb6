package permission

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"loki/internal/base/process/sandbox"
	"loki/internal/base/text"
	"loki/internal/base/text/pattern"
	"loki/internal/base/value/yamldoc"
)

// Read reads the value of permission: in a configuration file, which is an action, or a
// mapping with the keys default, unattended, rules, keep_env and trust, and any number of
// tools. What is wrong with it is reported to its document, and ok is false then: the
// rules have to be refused as a whole, as the missing one may be the one that denies. A
// nil node, or a null, has no rules.
func Read(n *yamldoc.Node) (rules Rules, ok bool) {
	if n == nil || n.Kind() == yamldoc.Null {
		return Rules{}, true
	}
	before := n.Problems()
	if n.Kind() == yamldoc.String {
		rules.Default = action(n)
		return rules, n.Problems() == before
	}
	for e := range n.Map().All() {
		switch e.Key {
		case "default":
			rules.Default = action(e.Node)
		case "unattended":
			rules.Unattended = oneOf(e.Node, UnattendedDeny, UnattendedAllow, UnattendedSuspend)
		case "keep_env":
			rules.KeepEnv = texts(e.Node, nil)
		case "trust":
			rules.Trust = texts(e.Node, nil)
		case "rules":
			items, _ := e.Node.List()
			for _, item := range items {
				rules.List = append(rules.List, readRule(item))
			}
		case "allow", "ask", "deny", "defaultMode", "additionalDirectories":
			e.Node.KeyErrorf("%s is a setting of another program", e.Key).Hint = `rules are tools with actions here: execute_command: {"npm run *": allow, "rm *": deny}`
		default:
			rules.List = append(rules.List, readShort(e)...)
		}
	}
	return rules, n.Problems() == before
}

// oneOf reads one of several words, nothing if there is no node.
func oneOf[T ~string](n *yamldoc.Node, words ...T) T {
	if n == nil {
		return ""
	}
	s, ok := n.Str()
	var valid []string
	for _, w := range words {
		if s == string(w) {
			return w
		}
		valid = append(valid, string(w))
	}
	if ok {
		p := n.Errorf("%s is not one of %s", n.Describe(), strings.Join(valid, ", "))
		if near := yamldoc.Nearest(s, valid); near != "" {
			p.Hint = "did you mean " + near + "?"
		}
	}
	return ""
}

func action(n *yamldoc.Node) Action { return oneOf(n, Allow, Ask, Deny) }

// check returns what is wrong with a pattern, and what to do about it; empty if nothing is.
type check func(pattern string) (problem, hint string)

// report reports at a node a text that is empty, or what is wrong with it.
func (wrong check) report(n *yamldoc.Node, s string) {
	if strings.TrimSpace(s) == "" {
		n.Errorf("must not be empty")
	} else if wrong != nil {
		if problem, hint := wrong(s); problem != "" {
			n.Errorf("the pattern %q %s", s, problem).Hint = hint
		}
	}
}

// texts reads a text or a list of them, none of which is empty; nothing if there is no node.
func texts(n *yamldoc.Node, wrong check) (list []string) {
	if n == nil {
		return nil
	}
	items := []*yamldoc.Node{n}
	if n.Kind() == yamldoc.List {
		items, _ = n.List()
	}
	if len(items) == 0 {
		n.Errorf("the list is empty, so the rule would never match")
	}
	for _, item := range items {
		s, ok := item.Text()
		if list = append(list, s); ok {
			wrong.report(item, s)
		}
	}
	return list
}

// elsewhere finds what means any arguments of a command in other programs, and nothing here: Bash(git push *), git push:*.
var elsewhere = text.Regexp(`^(?:[A-Z]\w*\((.*?)(?: ?\*)?\)|([^ ]+):\*)$`)

// wrongCommand refuses patterns that can never match.
func wrongCommand(p string) (problem, hint string) {
	if m := elsewhere().FindStringSubmatch(p); m != nil {
		return "is written as in another program", fmt.Sprintf("write %q", strings.TrimSuffix(m[1]+m[2], ":")+" *")
	}
	if strings.ContainsAny(p, ";|&<>\n`") || strings.Contains(p, "$(") {
		return "is for one command, so it cannot hold ; | & < > or a substitution", "every command of a text is judged by itself: write a pattern for each"
	}
	return "", ""
}

// wrongHost refuses addresses.
func wrongHost(p string) (problem, hint string) {
	if strings.ContainsAny(p, "/:@? ") && !strings.HasPrefix(p, "::") {
		return "is not the name of a host", "write the name without scheme and port, as in docs.python.org or *.python.org"
	}
	return "", ""
}

// unexpanded finds a path that begins with a variable or with the home directory of a named user.
var unexpanded = text.Regexp(`^(\$\{?[A-Za-z_][A-Za-z0-9_]*\}?|~[A-Za-z_][A-Za-z0-9_-]*)(/|$)`)

// wrongPath refuses patterns that cannot be read, or that are not what a shell would make of them.
func wrongPath(p string) (problem, hint string) {
	if m := unexpanded().FindStringSubmatch(p); m != nil && (p[0] == '$' || m[2] != "") {
		return "begins with " + m[1] + ", which is not expanded here", `write ~/ for your home directory, or the absolute path; for a file with this very name, begin with ./`
	}
	compiled, err := pattern.Compile(p)
	if err != nil {
		return "cannot be read", `a [ or { needs its ] or } after it; \[ and \{ are the characters themselves`
	}
	for _, b := range compiled.Branches() {
		if strings.Contains("/"+b.Dir+"/"+strings.ReplaceAll(b.Glob, `\`, "")+"/", "/../") {
			return "holds .., which paths never do when they are judged", "write the absolute path"
		}
	}
	return "", ""
}

func origin(n *yamldoc.Node) string { return fmt.Sprintf("line %d", n.Pos().Line) }

// namesElsewhere are tools of this program by the names that other programs give them in their rules, in lower case.
var namesElsewhere = map[string]string{
	"bash": "execute_command", "shell": "execute_command", "sh": "execute_command", "exec": "execute_command", "run_command": "execute_command",
	"run_shell_command": "execute_command", "run_terminal_cmd": "execute_command", "execute": "execute_command", "terminal": "execute_command",
	"read": "fs_cat", "read_file": "fs_cat", "view": "fs_cat", "cat": "fs_cat", "list": "fs_ls", "ls": "fs_ls", "grep": "fs_grep", "search": "fs_grep", "glob": "fs_glob",
	"write": "fs_write", "write_file": "fs_write", "create_file": "fs_write", "edit": "fs_patch", "edit_file": "fs_patch", "multiedit": "fs_patch", "replace": "fs_patch",
	"apply_patch": "fs_patch", "str_replace_editor": "fs_patch", "webfetch": "fetch_url_via_curl", "web_fetch": "fetch_url_via_curl", "websearch": "web_search_loki",
}

// checkTool reports the name of a tool that is likely a misspelled one of a tool of the program: as an error if one letter is
// wrong, since the rule would never match, and else as a warning, since the user may have such a tool.
func checkTool(name string, fail, warn func(format string, args ...any) *yamldoc.Problem, keys ...string) {
	known := slices.Concat(readingTools, writingTools, otherTools, keys)
	if strings.Contains(name, "*") && !strings.Contains(name, "(") || strings.HasPrefix(name, mcpPrefix) || slices.Contains(known, name) {
		return
	}
	near := yamldoc.Nearest(name, known)
	other, inside, called := strings.Cut(strings.ToLower(name), "(")
	switch own := cmp.Or(namesElsewhere[other], "execute_command"); {
	case called:
		fail("%s is a rule of another program", name).Hint = fmt.Sprintf("write its pattern below the tool: %s: {%q: ACTION}", own, strings.TrimSuffix(inside, ")"))
	case namesElsewhere[other] != "":
		warn("there is no tool %s, unless it is one of yours", name).Hint = "the tool of this program is " + own
	case near == "" || strings.HasPrefix(name, near) && len(name) > len(near)+2 || name == "": // a tool of the user, such as fs_cat_all
	case yamldoc.Misspells(name, near):
		fail("there is no tool %s", name).Hint = "did you mean " + near + "?"
	default:
		warn("there is no tool %s, unless it is one of yours", name).Hint = "did you mean " + near + "?"
	}
}

// readRule reads an element of rules.
func readRule(n *yamldoc.Node) Rule {
	m := n.Map()
	m.Require("tool", "action")
	rule := Rule{
		Origin: origin(n), Action: action(m.Get("action")), Commands: texts(m.Get("command"), wrongCommand), Paths: texts(m.Get("path"), wrongPath),
		Access: oneOf(m.Get("access"), Reading, Writing), Hosts: texts(m.Get("host"), wrongHost), Sandbox: oneOf(m.Get("sandbox"), sandbox.Levels()...),
	}
	if m.Str("tool", &rule.Tool) {
		checkTool(rule.Tool, m.Get("tool").Errorf, m.Get("tool").Warnf)
		rule.Tool = ofServer(rule.Tool)
	}
	for i, h := range rule.Hosts {
		rule.Hosts[i] = strings.ToLower(h)
	}
	if len(rule.Commands) > 0 && len(rule.Paths) > 0 {
		n.Errorf("a rule has either command or path").Hint = "write two rules"
	}
	if a := m.Get("access"); a != nil && len(rule.Paths) == 0 {
		a.Errorf("access needs a path beside it")
	}
	if l := m.Get("sandbox"); l != nil && rule.Action != Allow {
		l.Errorf("sandbox says what a rule allows, so its action must be allow")
	}
	if a := m.Get("argument"); a != nil {
		for e := range a.Map().All() {
			text, _ := e.Node.Text()
			rule.Arguments = append(rule.Arguments, Argument{Name: e.Key, Pattern: text})
		}
	}
	// A key that is not understood may be a condition, and a rule without it says too much.
	for _, w := range m.Done() {
		m.Get(w.Key).Errorf("unknown key %s", w.Key).Hint = strings.ReplaceAll(w.Hint, `"`, "")
	}
	return rule.withPrefixes()
}

// readShort reads a tool with its action, or with actions by pattern.
func readShort(e yamldoc.Entry) []Rule {
	checkTool(e.Key, e.Node.KeyErrorf, e.Node.Warnf, "default", "unattended", "rules", "keep_env", "trust")
	e.Key = ofServer(e.Key)
	if e.Node.Kind() != yamldoc.Mapping {
		return []Rule{{Tool: e.Key, Action: action(e.Node), Origin: origin(e.Node)}}
	}
	sends := strings.HasPrefix(e.Key, "fetch_url_via_")
	switch {
	case strings.Contains(e.Key, "*"):
		e.Node.Errorf("%s may match tools of several kinds, so it takes an action only", e.Key).Hint = "write the patterns under rules:, with command: or path:"
		return nil
	case slices.Contains(otherTools, e.Key) && !sends:
		e.Node.Errorf("%s takes no command, file or address to which a pattern could apply, so it takes an action only", e.Key).Hint = "write the condition under rules:, with argument:"
		return nil
	}
	var rules []Rule
	for p := range e.Node.Map().All() {
		rule := Rule{Tool: e.Key, Action: action(p.Node), Origin: origin(p.Node)}
		patterns, wrong := &rule.Paths, check(wrongPath)
		switch {
		case e.Key == "execute_command":
			patterns, wrong = &rule.Commands, wrongCommand
		case sends:
			patterns, wrong = &rule.Hosts, wrongHost
		}
		if p.Key != "*" { // which is whatever the tool does
			*patterns = []string{strings.ToLower(p.Key)}
			if !sends {
				*patterns = []string{p.Key}
			}
		}
		wrong.report(p.Node, p.Key)
		rules = append(rules, rule.withPrefixes())
	}
	return rules
}

// withPrefixes returns a rule that denies or asks with what git push:* means in other programs, too: git push with any arguments.
func (r Rule) withPrefixes() Rule {
	for _, p := range r.Commands {
		if prefix, ok := strings.CutSuffix(p, ":*"); ok && r.Action != Allow {
			r.Commands = append(r.Commands, prefix+" *")
		}
	}
	return r
}

// ofServer returns the pattern for the tools of an MCP server if a rule names only the server.
func ofServer(tool string) string {
	rest, ok := strings.CutPrefix(tool, mcpPrefix)
	kind, _, _ := strings.Cut(rest, "_")
	if !ok || strings.Contains(rest, "__") || strings.Contains(rest, "*") || slices.Contains([]string{"search", "describe", "invoke", "resources"}, kind) {
		return tool
	}
	return tool + "__*"
}
