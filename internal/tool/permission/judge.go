package permission

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"loki/internal/base/process/sandbox"
	"loki/internal/base/text/pattern"
	"loki/internal/llm/chat"
	"loki/internal/tool/builtin/ignore"
)

// Options configure New. The zero value of each field is its default.
type Options struct {
	Rules Rules

	// Root is the workspace, and the directory in which commands run. It is required.
	Root string
	// Home is what ~ means; empty if it is not known.
	Home string
	// Protected are directories and files that only a rule naming them may have written,
	// such as the configuration directory.
	Protected []string
	// Made is a directory that the program made for the work, such as a worktree: what is in it is neither protected nor a setting of the
	// user, wherever it is. Empty for none.
	Made string

	// Shell is the name of the program that runs the texts of the shell tool, such as bash; empty means sh.
	Shell string

	// Sandboxed says that the kernel holds what shell tools do at a level below sandbox.Full, so
	// that a text which no rule asks about or denies runs at sandbox.Read, whatever it is. Without
	// it, a short list of commands that read runs unasked, and all else is asked about.
	Sandboxed bool

	// Memory keeps what the user answers with "always"; nil means that nothing is kept.
	Memory *Memory
	// Once says that no answer of the user holds for more than one call: none is offered that does.
	Once bool
	// Agent is the agent on whose behalf calls are made, empty without one. Own are its rules,
	// which can make a verdict stricter and never the reverse.
	Agent string
	Own   Rules

	// Ignored are ignore files: what they hide is denied, to programs only below sandbox.Full. MCP servers are not held.
	Ignored ignore.Files
}

// Call is a call to be judged.
type Call struct {
	Tool      string
	Arguments json.RawMessage // a JSON object

	// The tool's own declarations. ReadOnly of MCP tools is trusted only for servers
	// that the rules trust.
	ReadOnly, Destructive bool

	// Host is the host, in lower case, that the call sends a request to because the arguments name it. It is empty
	// for calls that send nothing, or to a fixed host only.
	Host string

	// Sandbox is what the call asks for if its program runs in the sandbox. The level is empty for tools that do not start
	// one there, such as a script of the user that replaces a shell tool, and where there is no sandbox.
	Sandbox sandbox.Declaration

	// Opens are files that the call opens, or may open, beside the ones that its arguments name, such as a database. Only rules that
	// deny or ask are about them. Use says what they are opened for, empty for reading and writing.
	Opens []string
	Use   Access

	// Readable are directories outside of the workspace, links resolved, that the call may read unasked.
	Readable []string

	// Mode is that of the conversation; empty means chat.ModeAsk.
	Mode chat.Mode

	// ExactNames says that the tool takes arguments by their exact names, so that id and ID are two. Those of MCP servers do.
	ExactNames bool
}

// Verdict is the decision on a call.
type Verdict struct {
	Action Action // never empty

	// Decided is false if neither a rule nor knowledge about the call led to the action: it is
	// then only the default for tools of its kind, and the tool may know better.
	Decided bool
	// Rule is the rule that decided, as text; empty if none did.
	Rule string
	// Level is the level at which the program of a shell tool, or of another one that runs in the sandbox, runs if the action is
	// Allow, or if the user consents: sandbox.Full without a sandbox. It is empty for other tools.
	Level sandbox.Level
	// Hosts are the ones that the text reaches at sandbox.Network, as the call asks for them.
	Hosts []string
	// Files says that the user consents, or has consented, to files that a rule asks about. The sandbox then opens such files to
	// the program of the call, see [Judge.ClosedPatterns].
	Files bool
	// Reason says why the action is not Allow, in words for the user and the model.
	Reason string
	// Always lists the grants after which calls like this one need no question. Empty if
	// there is nothing to be granted.
	Always []Grant
	// Hidden reports whether a rule denies or asks about a file, by its absolute path. A
	// tool that goes through directories leaves such files out. It is nil if there is no such rule, and may be called
	// from several goroutines.
	Hidden func(path string) bool
	// Places are where the files that the arguments name were when the call was judged: absolute, symbolic links resolved. It
	// is nil if there is none, or if that is not known.
	Places []string
	// Wider lists grants after which no call at this level needs a question. Empty if that is not
	// to be offered.
	Wider []Grant
}

// Judge decides about calls. It may be used from several goroutines.
type Judge struct {
	o     Options
	tree  workspace
	langs []syntax.LangVariant // in which a shell may read a text
	own   *Judge               // by Options.Own alone, nil without such rules
}

// New returns a Judge. The error reports a workspace that does not exist.
func New(o Options) (*Judge, error) {
	tree, err := newWorkspace(o.Root, o.Home, o.Made, o.Protected)
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	j := &Judge{o: o, tree: tree, langs: dialectOf(cmp.Or(o.Shell, "sh"))}
	if own := o.Own; own.Default != "" || len(own.List) > 0 {
		inner := *j
		if own.Default == "" { // what they do not mention, they allow
			everything := Rule{Tool: "*", Action: Allow, layer: -1}
			own.List = append([]Rule{everything}, own.List...)
		}
		inner.o.Rules, inner.o.Ignored = own, ignore.Files{}
		j.own = &inner
	}
	return j, nil
}

// UnattendedPolicy is the policy for calls that need consent where no user can be asked.
func (j *Judge) UnattendedPolicy() Unattended { return cmp.Or(j.o.Rules.Unattended, UnattendedDeny) }

// ClosedPatterns returns absolute patterns of files that a rule denies to shell tools for reading, or asks about: the sandbox has to keep
// them from children, with all that is in the directories that they match.
func (j *Judge) ClosedPatterns() (denied, asked []pattern.Branch) {
	for _, r := range j.rules(shellTool, "") {
		if !r.about(Reading) || len(r.Arguments) > 0 {
			continue
		}
		for _, p := range r.places {
			if r.Action == Deny {
				denied = append(denied, p.Branches()...)
			} else {
				asked = append(asked, p.Branches()...)
			}
		}
	}
	return denied, asked
}

// Agent is the agent on whose behalf calls are made, empty without one.
func (j *Judge) Agent() string { return j.o.Agent }

// Remember keeps grants, from now on and for all judges with the same memory.
func (j *Judge) Remember(ctx context.Context, scope Scope, grants []Grant) error {
	if j.o.Memory == nil || j.o.Once {
		return nil
	}
	return j.o.Memory.Add(ctx, scope, j.o.Agent, grants)
}

// Judge gives the verdict on a call.
//
// A command pattern is compared with a simple command word by word. A word * matches any number of
// words, also none; a * within a word any text in it. The star at the
// end of a pattern covers whatever follows: "git status*" and "npm run *" match with
// further words. Without a star the command has to have the very words. Rules that deny or
// ask also match a program by its name where the command has its path, and in other letters' case.
func (j *Judge) Judge(call Call) Verdict {
	v := j.strictest(call)
	if call.Mode == chat.ModePlan {
		v = j.planVerdict(call, v)
	}
	if j.o.Once {
		v.Always, v.Wider = nil, nil
	}
	return v
}

// strictest returns the verdict of the rules of the user and of the agent.
func (j *Judge) strictest(call Call) Verdict {
	v := j.judge(call)
	if j.own == nil {
		return v
	}
	own := j.own.judge(call)
	level, hidden := sandbox.Least(v.Level, own.Level), either(v.Hidden, own.Hidden)
	// Some things are asked about although no rule mentions them. That is for the user's rules.
	if meant := own.Rule != "" || j.own.o.Rules.Default != "" || call.Tool == shellTool; meant && stricter(v.Action, own.Action) != v.Action {
		v = own
	}
	v.Level, v.Hidden = level, hidden
	return v
}

// either reports what one of two functions reports, each of which may be nil.
func either(a, b func(string) bool) func(string) bool {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(path string) bool { return a(path) || b(path) }
}

func (j *Judge) judge(call Call) Verdict {
	rules := j.rules(call.Tool, call.Host)
	if (call.Sandbox.Level != "" || j.o.Sandboxed && call.Tool == shellTool) && (call.Mode == chat.ModeWrite || slices.Contains(j.grants(), everyWrite)) {
		rules = append(rules, everyWrite.rule())
	}
	if r := j.ignoreRule(call.Tool, isProgram(call.Tool), call.ReadOnly); r != nil && call.Sandbox.Level != sandbox.Full {
		rules = append(rules, r)
	}
	switch {
	case call.Tool == shellTool:
		return j.judgeShell(call, rules)
	case call.Sandbox.Level != "":
		return j.judgeConfined(call, rules)
	}
	return j.judgeTool(call, rules)
}

// shellTool is the tool that has a text for the shell in its argument "command".
const shellTool = "execute_command"

// grants are what the user granted.
func (j *Judge) grants() []Grant {
	if j.o.Memory == nil {
		return nil
	}
	return j.o.Memory.Grants(j.o.Agent)
}

// rules are those for the tool and the host that a call sends to, with what the user granted as the last layer.
func (j *Judge) rules(name, host string) (rules []*Rule) {
	add := func(r *Rule) {
		if _, ok := r.reaches(host); ok {
			rules = append(rules, j.tree.bind(r))
		}
	}
	// Rules find a tool by its name without the extension of its file, too.
	short := name
	if ext := filepath.Ext(name); slices.Contains([]string{".sh", ".py", ".ts", ".js"}, ext) {
		short = strings.TrimSuffix(name, ext)
	}
	for i := range j.o.Rules.List {
		r := &j.o.Rules.List[i]
		if pattern.Text(r.Tool, name) || pattern.Text(r.Tool, short) {
			add(r)
		} else if wide := r.widen(); wide != nil && !strings.HasPrefix(name, mcpPrefix) {
			add(wide)
		}
	}
	for _, g := range j.grants() {
		if g.Tool == name {
			add(g.rule())
		}
	}
	return rules
}

// grantLayer is above all layers of rules.
const grantLayer = 1 << 30

// target is what a call of a tool that is not a shell is about.
type target struct {
	Call            // of the tool that is invoked
	args  arguments // of that
	rules []*Rule   // that may be about it
	// remote says that the tool is one of an MCP server: its paths are not those of the workspace.
	remote bool
	use    Access    // of the files, empty for any
	found  []located // the files that the arguments name
	opens  []located // further ones, see Call.Opens
}

// held reports whether the sandbox keeps what a rule denies from the program of the call.
func (t *target) held() bool { return t.Sandbox.Level != "" && t.Sandbox.Level != sandbox.Full }

// targetOf finds out what a call is about. ambiguous says, in words for the model, why that is not known.
func (j *Judge) targetOf(call Call, rules []*Rule) (t target, ambiguous string) {
	t = target{Call: call, rules: rules, use: Writing}
	var server, verb string
	server, verb, t.remote = mcpServer(call.Tool)
	t.args, ambiguous = readArguments(call.Arguments, call.ExactNames || t.remote && verb == "")
	if inner, ok := t.args.value("tool").(string); ok && ambiguous == "" && verb == "invoke" {
		// Rules name the tool that is invoked, and its arguments.
		t.Tool = mcpPrefix + server + "__" + inner
		t.rules = append(rules, j.rules(t.Tool, "")...)
		members, _ := t.args.value("arguments").(map[string]any)
		t.args, ambiguous = newArguments(members, true)
	}
	t.ReadOnly = t.ReadOnly && (!t.remote || verb == "search" || verb == "describe" || j.o.Rules.Trusts(call.Tool))
	if t.ReadOnly {
		t.use = Reading
	}
	if len(call.Opens) > 0 {
		t.use = call.Use
	}
	for _, p := range call.Opens {
		t.opens = append(t.opens, j.tree.locate(filepath.FromSlash(p), []string{j.tree.root}))
	}
	for _, p := range pathArguments(t.Tool, t.args) {
		l := j.tree.locate(filepath.FromSlash(p), []string{j.tree.root})
		readable := func(real string) bool {
			return slices.ContainsFunc(call.Readable, func(dir string) bool { return within(dir, real) })
		}
		if t.use == Reading && (!l.inside || l.closed != "") && len(l.all) > 0 && !slices.ContainsFunc(l.all, func(real string) bool { return !readable(real) }) {
			l.inside, l.closed = true, ""
		}
		t.found = append(t.found, l)
	}
	return t, ambiguous
}

// places returns where the files lead that the arguments name, nil if that is not known of all.
func (t *target) places() (all []string) {
	for _, l := range t.found {
		if len(l.all) == 0 {
			return nil
		}
		all = append(all, l.all...)
	}
	return all
}

// unusual returns why a file of the call is not for every call, empty if all are.
func (t *target) unusual(tree workspace) (why string) {
	if t.remote {
		return ""
	}
	for _, l := range t.found {
		if !l.inside {
			return l.shown + " is outside the workspace " + tree.root
		}
		if why == "" && (l.closed != "" || t.use == Writing && l.guarded != "") {
			why = l.shown + " is not for every call: " + cmp.Or(l.closed, l.guarded)
		}
	}
	return why
}

// judgeTool judges a tool that is not a shell.
func (j *Judge) judgeTool(call Call, rules []*Rule) Verdict {
	t, ambiguous := j.targetOf(call, rules)
	if ambiguous != "" {
		return Verdict{Action: Deny, Decided: true, Reason: ambiguous}
	}
	if v, stopped := j.below(t); stopped {
		return v
	}
	best, why := j.bestRule(t), t.unusual(j.tree)
	v := Verdict{Action: Allow}
	switch {
	case best != nil && (best.Action != Allow || len(best.Paths) > 0 || why == ""):
		v = ruleVerdict(best, t.found...)
	case why != "":
		v = Verdict{Action: Ask, Decided: true, Reason: why}
	case t.ReadOnly && t.Host == "":
		v.Decided = true
	case j.o.Rules.Default != "":
		v = Verdict{Action: j.o.Rules.Default, Decided: true, Reason: "no rule allows " + t.Tool}
	case t.Host != "":
		v = Verdict{Action: Ask, Decided: true, Reason: "it sends a request to " + t.Host + ", and an address can hold what the model has read"}
	case t.Destructive || t.remote:
		v = Verdict{Action: Ask, Decided: t.remote, Reason: t.Tool + " may change something"}
	}
	v.Hidden, v.Places = j.hidden(t), t.places()
	v.Files = best != nil && best.Action == Ask && best.about(Reading)
	switch {
	case v.Action != Ask:
	case t.Host != "":
		if v.Wider = []Grant{{Tool: t.Tool}}; !strings.ContainsAny(t.Host, "* \t\r\n") { // which would be patterns, or several hosts
			v.Always = []Grant{{Tool: t.Tool, Hosts: t.Host}}
		}
	case len(t.opens) > 0 && best != nil && len(best.Paths) > 0: // each call is asked about
	case !t.remote && best != nil && len(best.Paths) > 0, slices.ContainsFunc(t.found, func(l located) bool { return l.guarded+l.closed != "" || !t.remote && !l.inside }):
		v.Always = t.pathGrants()
	default:
		v.Always = []Grant{{Tool: t.Tool}}
	}
	return v
}

// bestRule returns the rule that decides about a call of a tool that is not a shell, nil if there is none.
func (j *Judge) bestRule(t target) *Rule {
	var best match
	for _, r := range t.rules {
		if len(r.Commands) > 0 && !slices.Contains(r.Commands, "*") || r.Text != "" || !t.args.match(r) {
			continue
		}
		specificity, _ := r.reaches(t.Host)
		if !r.wide {
			specificity += literals(r.Tool)
		}
		for _, a := range r.Arguments {
			specificity += literals(a.Pattern)
		}
		if len(r.Paths) > 0 {
			found := t.found
			if r.Action == Ask || r.Action == Deny && !t.held() {
				found = slices.Concat(found, t.opens)
			}
			n, ok := j.tree.matches(r, found...)
			if !ok || !r.isFor(t.use) {
				continue
			}
			specificity += n
		}
		best.add(r, specificity)
	}
	return best.rule
}

// pathGrants returns the grants for the very files that the arguments name, nil if one of them is not known.
func (t *target) pathGrants() (grants []Grant) {
	for _, l := range t.found {
		if len(l.all) != 1 {
			return nil
		}
		grants = append(grants, Grant{Tool: t.Tool, Path: filepath.ToSlash(l.all[0]), Access: t.use})
	}
	return grants
}

// ruleVerdict is the verdict of a rule about a call with files.
func ruleVerdict(r *Rule, found ...located) Verdict {
	v := Verdict{Action: r.Action, Decided: true, Rule: r.String()}
	if r.Action != Allow {
		v.Reason = cmp.Or(r.why(found), "rule: "+v.Rule)
	}
	return v
}

const mcpPrefix = "mcp__"

// Trusts reports whether a tool is one of an MCP server that the rules trust.
func (r Rules) Trusts(tool string) bool {
	server, _, ok := mcpServer(tool)
	return ok && slices.ContainsFunc(r.Trust, func(p string) bool { return pattern.Text(p, server) })
}

// mcpServer returns the server that a tool mcp__server__tool belongs to. For a function which Loki itself has for a server, such as
// mcp__invoke_server, it also returns the verb. One with two underscores is a tool: mcp__search__x is x of search.
func mcpServer(name string) (server, verb string, ok bool) {
	rest, ok := strings.CutPrefix(name, mcpPrefix)
	if verb, server, _ = strings.Cut(rest, "_"); ok && server != "" && !strings.Contains(rest, "__") && slices.Contains([]string{"invoke", "search", "describe", "resources"}, verb) {
		return server, verb, true
	}
	server, _, _ = strings.Cut(rest, "__")
	return server, "", ok
}
