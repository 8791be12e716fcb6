package permission

import (
	"fmt"
	"path"
	"strings"

	"loki/internal/sandbox"
	"loki/internal/yamldoc"
)

// reserved are the keys of the mapping that are not tools.
const (
	keyDefault    = "default"
	keyUnattended = "unattended"
	keyRules      = "rules"
	keyKeepEnv    = "keep_env"
	keyTrust      = "trust"
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
	r := reader{ok: true}
	if n.Kind() == yamldoc.String {
		rules.Default = r.action(n)
		return rules, r.ok
	}
	m := n.Map()
	if m == nil {
		return Rules{}, false
	}
	for e := range m.All() {
		switch e.Key {
		case keyDefault:
			rules.Default = r.action(e.Node)
		case keyUnattended:
			rules.Unattended = Unattended(r.oneOf(e.Node, string(UnattendedDeny), string(UnattendedAllow), string(UnattendedSuspend)))
		case keyKeepEnv:
			rules.KeepEnv = r.texts(e.Node)
		case keyTrust:
			rules.Trust = r.texts(e.Node)
		case keyRules:
			items, ok := e.Node.List()
			r.ok = r.ok && ok
			for _, item := range items {
				rules.List = append(rules.List, r.rule(item))
			}
		default:
			rules.List = append(rules.List, r.short(e)...)
		}
	}
	return rules, r.ok
}

// reader remembers whether something was wrong.
type reader struct{ ok bool }

func (r *reader) fail(n *yamldoc.Node, format string, args ...any) *yamldoc.Problem {
	r.ok = false
	return n.Errorf(format, args...)
}

// oneOf reads one of several words.
func (r *reader) oneOf(n *yamldoc.Node, words ...string) string {
	s, ok := n.Str()
	if !ok {
		r.ok = false
		return ""
	}
	for _, w := range words {
		if s == w {
			return s
		}
	}
	p := r.fail(n, "%s is none of %s", n.Describe(), strings.Join(words, ", "))
	if near := yamldoc.Nearest(s, words); near != "" {
		p.Hint = "did you mean " + near + "?"
	}
	return ""
}

func (r *reader) action(n *yamldoc.Node) Action {
	return Action(r.oneOf(n, string(Allow), string(Ask), string(Deny)))
}

// texts reads a text or a list of them, none of which is empty.
func (r *reader) texts(n *yamldoc.Node) []string {
	if n.Kind() != yamldoc.List {
		s, ok := n.Text()
		if !ok || s == "" {
			r.ok = false
			if ok {
				n.Errorf("must not be empty")
			}
			return nil
		}
		return []string{s}
	}
	list, ok := n.Texts()
	r.ok = r.ok && ok
	for _, s := range list {
		if s == "" {
			r.fail(n, "must not hold an empty text")
		}
	}
	if ok && len(list) == 0 {
		r.fail(n, "the list is empty, so the rule would never match")
	}
	return list
}

func origin(n *yamldoc.Node) string { return fmt.Sprintf("line %d", n.Pos().Line) }

// rule reads an element of rules.
func (r *reader) rule(n *yamldoc.Node) Rule {
	m := n.Map()
	if m == nil {
		r.ok = false
		return Rule{}
	}
	rule := Rule{Origin: origin(n)}
	if len(m.Require("tool", "action")) > 0 {
		r.ok = false
	}
	if m.Has("tool") && !m.Str("tool", &rule.Tool) {
		r.ok = false
	}
	if a := m.Get("action"); a != nil {
		rule.Action = r.action(a)
	}
	if c := m.Get("command"); c != nil {
		rule.Commands = r.texts(c)
		r.commands(c, rule.Commands)
	}
	if p := m.Get("path"); p != nil {
		rule.Paths = r.texts(p)
		r.paths(p, rule.Paths)
	}
	if a := m.Get("access"); a != nil {
		rule.Access = Access(r.oneOf(a, string(Reading), string(Writing)))
		if len(rule.Paths) == 0 {
			r.fail(a, "access needs a path beside it")
		}
	}
	if h := m.Get("host"); h != nil {
		rule.Hosts = r.texts(h)
		r.hosts(h, rule.Hosts)
	}
	if l := m.Get("sandbox"); l != nil {
		var levels []string
		for _, level := range sandbox.Levels() {
			levels = append(levels, string(level))
		}
		rule.Sandbox = sandbox.Level(r.oneOf(l, levels...))
		if rule.Action != Allow {
			r.fail(l, "sandbox says what a rule allows, so its action has to be allow")
		}
	}
	if len(rule.Commands) > 0 && len(rule.Paths) > 0 {
		r.fail(n, "a rule has either command or path").Hint = "write two rules"
	}
	if a := m.Get("argument"); a != nil {
		args := a.Map()
		r.ok = r.ok && args != nil
		for e := range args.All() {
			text, ok := e.Node.Text()
			r.ok = r.ok && ok
			rule.Arguments = append(rule.Arguments, Argument{Name: e.Key, Pattern: text})
		}
	}
	// A key that is not understood may be a condition, and a rule without it says too much.
	known := []string{"tool", "action", "command", "path", "access", "argument", "host", "sandbox"}
	for _, w := range m.Done() {
		p := r.fail(m.Get(w.Key), "unknown key %s", w.Key)
		if near := yamldoc.Nearest(w.Key, known); near != "" {
			p.Hint = "did you mean " + near + "?"
		}
	}
	return rule
}

// short reads a tool with its action, or with actions by pattern.
func (r *reader) short(e yamldoc.Entry) []Rule {
	if e.Node.Kind() != yamldoc.Mapping {
		return []Rule{{Tool: e.Key, Action: r.action(e.Node), Origin: origin(e.Node)}}
	}
	if strings.Contains(e.Key, "*") {
		r.fail(e.Node, "%s may stand for tools of several kinds, so it takes an action only", e.Key).Hint = "write the patterns under rules:, with command: or path:"
		return nil
	}
	var rules []Rule
	for p := range e.Node.Map().All() {
		rule := Rule{Tool: e.Key, Action: r.action(p.Node), Origin: origin(p.Node)}
		switch {
		case p.Key == "*": // whatever the tool does
		case e.Key == "execute_command":
			rule.Commands = []string{p.Key}
			r.commands(p.Node, rule.Commands)
		default:
			rule.Paths = []string{p.Key}
			r.paths(p.Node, rule.Paths)
		}
		rules = append(rules, rule)
	}
	return rules
}

// commands refuses patterns that can never match.
func (r *reader) commands(n *yamldoc.Node, patterns []string) {
	for _, p := range patterns {
		words := patternWords(p)
		if len(words) == 0 {
			r.fail(n, "the pattern is empty")
			continue
		}
		if strings.ContainsAny(p, ";|&<>\n`") || strings.Contains(p, "$(") {
			r.fail(n, "the pattern %q is for one command, so it cannot hold ; | & < > or a substitution", p).
				Hint = "every command of a text is judged by itself: write a pattern for each"
		}
	}
}

// hosts brings patterns of hosts into lower case, and refuses addresses.
func (r *reader) hosts(n *yamldoc.Node, patterns []string) {
	for i, p := range patterns {
		if patterns[i] = strings.ToLower(p); strings.ContainsAny(p, "/:@? ") && !strings.HasPrefix(p, "::") {
			r.fail(n, "the pattern %q is not the name of a host", p).Hint = "write the name without scheme and port, as in docs.python.org or *.python.org"
		}
	}
}

// paths refuses patterns that cannot be read.
func (r *reader) paths(n *yamldoc.Node, patterns []string) {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			r.fail(n, "the pattern %q cannot be read: %v", p, err)
		}
		if strings.Contains("/"+p+"/", "/../") {
			r.fail(n, "the pattern %q holds .., which paths never do when they are judged", p).Hint = "write the absolute path"
		}
	}
}
