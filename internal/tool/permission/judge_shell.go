package permission

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"loki/internal/base/process/sandbox"
)

// shellArguments are the arguments of shell tools.
type shellArguments struct {
	Command string        `json:"command"`
	Sandbox sandbox.Level `json:"sandbox"` // that the call asks for; empty leaves it to the rules, and is Read without one
	Hosts   []string      `json:"hosts"`   // that it reaches at Network
}

// wish describes the level that a call asks for.
func wish(level sandbox.Level, hosts []string) string {
	wish := "it asks for level " + string(level)
	if level == sandbox.Network && len(hosts) > 0 {
		wish += " to reach " + strings.Join(hosts, ", ")
	}
	return wish
}

// shellText is a text for the shell with the knowledge about it so far.
type shellText struct {
	*Judge
	args  shellArguments
	text  string   // the command without blanks around it
	rules []*Rule  // that may be about it
	dirs  []string // in which its commands may run

	action  Action
	rule    string   // the first that led to the action
	reasons []string // of the action, none twice

	covered  bool          // rules allow all of the text
	level    sandbox.Level // up to which they do, empty without a rule
	hosts    *string       // at Network, nil for any
	harmless bool          // a command is covered because it only reads
	open     []string      // why the text is not covered
	firm     bool          // not even default: allow allows it
	offered  bool          // the user granted the level that the call asks for, for all texts

	uncertain doubt                   // why it is not known whether a rule that asks or denies is about a command
	mentioned map[sandbox.Level]doubt // the same for rules about a path and the files that a command uses, from a level on
	named     *Rule                   // that denies a file which the text names, for calls that the sandbox does not keep from it
	hidden    doubt                   // why the text may run what is not seen
	files     bool                    // see Verdict.Files
}

// stop notes that a rule asks about a part or denies it.
func (s *shellText) stop(r *Rule, found ...located) {
	v := ruleVerdict(r, found...)
	if stricter(s.action, r.Action) != s.action {
		s.action, s.rule, s.reasons = r.Action, v.Rule, nil
	}
	s.files = s.files || r.Action == Ask && r.about(Reading)
	if s.action == r.Action && !slices.Contains(s.reasons, v.Reason) {
		s.reasons = append(s.reasons, v.Reason)
	}
	s.leave(v.Reason)
}

// leave notes that no rule allows a part.
func (s *shellText) leave(reason string) {
	s.covered = false
	if !slices.Contains(s.open, reason) {
		s.open = append(s.open, reason)
	}
}

// allow notes that a rule allows a part.
func (s *shellText) allow(r *Rule) {
	s.rule = cmp.Or(s.rule, r.String())
	s.level = sandbox.Least(s.level, cmp.Or(r.Sandbox, sandbox.Full))
	if r.Sandbox == sandbox.Network && r.Origin == granted {
		s.hosts = &r.hosts
	}
}

// few joins reasons, the first first.
func few(reasons []string) string {
	const most = 6
	if more := len(reasons) - most; more > 0 {
		return strings.Join(reasons[:most], "; ") + fmt.Sprintf("; and %d more", more)
	}
	return strings.Join(reasons, "; ")
}

// judgeShell judges a call of a shell tool.
func (j *Judge) judgeShell(call Call, rules []*Rule) (v Verdict) {
	given, ambiguous := readArguments(call.Arguments, false)
	if ambiguous != "" {
		return Verdict{Action: Deny, Decided: true, Reason: ambiguous}
	}
	var args shellArguments
	if err := json.Unmarshal(call.Arguments, &args); err != nil || strings.TrimSpace(args.Command) == "" {
		return Verdict{Action: Allow, Level: sandbox.Read} // the tool refuses it
	}
	if args.Sandbox != "" && !args.Sandbox.Valid() {
		return Verdict{Action: Deny, Decided: true, Reason: fmt.Sprintf("the argument sandbox is read, write, network or full, not %q", args.Sandbox)}
	}
	// A mistake in the analysis must not let a command through, nor end the program.
	defer func() {
		if r := recover(); r != nil {
			v = Verdict{Action: Ask, Decided: true, Level: cmp.Or(args.Sandbox, sandbox.Read), Reason: "the command could not be analyzed"}
		}
	}()
	s := shellText{Judge: j, args: args, text: strings.TrimSpace(args.Command), action: Allow, covered: true, mentioned: make(map[sandbox.Level]doubt)}
	for _, r := range rules {
		if r.Origin == granted && r.layer < 0 {
			s.offered = s.offered || j.o.Sandboxed && r.Sandbox.Covers(args.Sandbox)
		} else if given.match(r) {
			s.rules = append(s.rules, r)
		}
	}
	v = s.verdict()
	if v.Level == sandbox.Network {
		v.Hosts = args.Hosts
	}
	return v
}

// verdict gives the verdict on the text.
func (s *shellText) verdict() Verdict {
	var every, exact match // of the rules about all texts, and about this very one
	exceptions := false    // there are other rules, which what is hidden may be about
	for _, r := range s.rules {
		switch {
		case r.Text != "":
			if strings.TrimSpace(r.Text) == s.text {
				exact.add(r, 0)
			}
		case len(s.langs) == 0 && slices.Contains(r.Commands, s.text) && !strings.Contains(s.text, "*"):
			exact.add(r, 0)
		case r.whole():
			every.add(r, literals(r.Tool))
		case r.Action != Allow:
			writes := r.Access == Writing && s.args.Sandbox.Covers(sandbox.Write)
			exceptions = exceptions || !s.o.Sandboxed || len(r.Commands) > 0 || writes || r.Access != Writing && r.Action == Ask
		}
	}
	if every.is(Deny) {
		return ruleVerdict(every.rule)
	}
	s.judgeParts()
	if every.is(Allow) {
		s.covered, s.level = true, ""
		s.allow(every.rule)
	}
	if exact.is(Allow) && s.action != Deny {
		*s = shellText{Judge: s.Judge, args: s.args, text: s.text, action: Allow, covered: true, named: s.named, files: true}
		s.allow(exact.rule)
	}
	v := s.conclude(exceptions)
	if v.Files = s.files; s.named != nil && v.Level == sandbox.Full && v.Action != Deny {
		return ruleVerdict(s.named) // nothing keeps the call from the file
	}
	return v
}

// judgeParts judges the commands of the text and the files that it opens, in all languages in which the shell may read it.
func (s *shellText) judgeParts() {
	a := analysis{tree: s.tree, left: maxCommands}
	if len(s.langs) == 0 {
		a.hidden = "commands for this shell are not analyzed"
	}
	for _, a.lang = range s.langs {
		a.commands, a.accesses, a.dirs = nil, nil, []string{s.tree.root}
		a.text(s.args.Command)
		s.dirs = a.dirs
		for i := range a.commands {
			s.judgeCommand(&a.commands[i], false, false)
		}
		if s.harmless && len(a.dirs) > 1 && !s.o.Sandboxed {
			s.leave("it changes the directory")
		}
		for _, f := range a.accesses {
			s.judgeAccess(f)
		}
	}
	s.hidden = a.hidden
	if why := cmp.Or(a.hidden, a.altered); why != "" {
		s.open, s.firm = nil, true
		s.leave(string(why))
	} else if s.harmless && len(s.open) == 0 && !plain(s.text) && !s.o.Sandboxed {
		s.leave("shells may differ in what they make of the text")
	}
}

// conclude gives the verdict from what is known about the parts. exceptions says that there are rules which what is hidden may be about.
func (s *shellText) conclude(exceptions bool) Verdict {
	have := sandbox.Read // up to which the text is allowed
	if s.covered && s.level != "" {
		have = s.level
	}
	if s.offered && !have.Covers(s.args.Sandbox) {
		have = s.args.Sandbox
	}
	switch doubt := cmp.Or(s.uncertain, s.hidden); {
	case s.action == Deny:
		return Verdict{Action: Deny, Decided: true, Rule: s.rule, Reason: few(s.reasons)}
	case s.action == Ask:
		v := s.askVerdict(sandbox.Read, s.reasons...)
		v.Rule = s.rule
		return v
	case exceptions && doubt != "":
		return s.askVerdict(have, string(doubt))
	}
	v := Verdict{Action: Allow, Decided: true, Level: sandbox.Full}
	if s.covered {
		v.Rule = s.rule
	}
	ok, why := s.covered, few(s.open)
	switch {
	case s.o.Sandboxed:
		v.Level = cmp.Or(s.args.Sandbox, have)
		ok = have.Covers(v.Level) && (v.Level != sandbox.Network || have != sandbox.Network || s.reaches(s.args.Hosts))
		why = wish(v.Level, s.args.Hosts)
	case ok && s.level != "" && s.level != sandbox.Full:
		ok, why = false, "the rule allows it in the sandbox only, and there is none here"
	}
	for _, from := range sandbox.Levels() {
		if about := s.mentioned[from]; about != "" && v.Level.Covers(from) {
			return s.askVerdict(v.Level, string(about))
		}
	}
	switch {
	case ok, s.o.Rules.Default == Allow && (s.o.Sandboxed || !s.firm):
		return v
	case s.o.Rules.Default == Deny:
		return Verdict{Action: Deny, Decided: true, Reason: why}
	}
	if v = s.askVerdict(v.Level, why); s.o.Sandboxed && v.Level == sandbox.Write {
		v.Wider = []Grant{everyWrite} // nothing else than the level is asked about
	}
	return v
}

// reaches reports whether hosts are among the granted ones.
func (s *shellText) reaches(hosts []string) bool {
	return s.hosts == nil || !slices.ContainsFunc(hosts, func(h string) bool { return !slices.Contains(strings.Fields(*s.hosts), h) })
}

// askVerdict is the verdict that the user has to consent to the text, at level if the call asks for none. A lasting
// answer is for this very text at this level.
func (s *shellText) askVerdict(level sandbox.Level, why ...string) Verdict {
	v := Verdict{Action: Ask, Decided: true, Level: sandbox.Full}
	exact := Grant{Tool: shellTool, Text: s.text}
	if s.o.Sandboxed {
		v.Level = cmp.Or(s.args.Sandbox, level)
		if exact.Level = v.Level; v.Level == sandbox.Network {
			exact.Hosts = strings.Join(s.args.Hosts, " ")
		}
		if !level.Covers(s.args.Sandbox) {
			why = append(why, wish(s.args.Sandbox, s.args.Hosts))
		}
	}
	if v.Reason = few(why); strange(s.args.Command) == "" {
		v.Always = []Grant{exact}
	}
	return v
}

// judgeCommand judges a command and the ones that it runs. within says that another command runs it, and named that a
// rule has judged it with that one.
func (s *shellText) judgeCommand(c *command, within, named bool) {
	d := decide(c, s.rules)
	s.uncertain = cmp.Or(s.uncertain, d.uncertain)
	for i := range c.loose {
		if l := decide(&c.loose[i], s.rules).rule; l != nil && l.Action != Allow && !l.whole() {
			s.uncertain.note("%s may run what a rule is about: %s", commandText(c.words), l)
		}
	}
	s.mention(c)
	switch {
	case d.is(Deny), d.is(Ask):
		s.stop(d.rule)
	case named:
	case d.rule != nil:
		if why := escapes(c, d.fixed); d.wild && !d.rule.whole() && why != "" {
			s.firm = true
			s.leave(why)
			break
		}
		s.allow(d.rule)
		named = d.rule.whole() || c.at > 0 && len(d.fixed) > c.at // as "sudo systemctl *" does
	case c.plain && len(c.inner) > 0, c.words[0].is("exec") && len(c.words) == 1:
	default:
		why := s.reads(c)
		if why == "" && (s.o.Sandboxed || !within) {
			s.harmless = true
			break
		}
		s.firm = s.firm || escapes(c, nil) != ""
		s.leave(cmp.Or(why, "no rule allows "+commandText(c.words)))
	}
	for i := range c.inner {
		s.judgeCommand(&c.inner[i], true, named)
	}
}

// decision is what rules say about a command, without the ones that it runs.
type decision struct {
	match
	fixed     []string // the words of the rule's pattern before the first with a wildcard
	wild      bool     // the pattern has a wildcard
	uncertain doubt    // why it cannot be known whether a rule that asks or denies is about the command
}

func decide(c *command, rules []*Rule) (d decision) {
	for _, r := range rules {
		patterns, specificity := r.Commands, literals(shellTool) // which a rule with a command is about
		if r.whole() {
			patterns, specificity = []string{"*"}, literals(r.Tool)
		}
		for _, text := range patterns {
			p := patternWords(text)
			hit := matchCommand(p, c, r.Action != Allow)
			if hit == maybe && r.Action != Allow {
				d.uncertain = doubt("it cannot be known whether " + commandText(c.words) + " is what a rule is about: " + r.String())
			}
			if hit != yes {
				continue
			}
			if d.add(r, specificity+literals(text)); d.rule == r {
				end := slices.IndexFunc(p, func(w string) bool { return strings.Contains(w, "*") })
				if d.fixed, d.wild = p, end >= 0; d.wild {
					d.fixed = p[:end]
				}
			}
		}
	}
	if d.is(Deny) || d.is(Ask) {
		d.uncertain = ""
	}
	return d
}

// matchCommand compares a command with a pattern. A strict comparison also knows the program by its file name, in any
// letters' case, and with options before its subcommand.
func matchCommand(pattern []string, c *command, strict bool) truth {
	words := slices.Clone(c.words)
	if words[0].text = programName(words[0].text); strict {
		words[0].text = strings.TrimSuffix(strings.ToLower(words[0].text[strings.LastIndexAny(words[0].text, `/\`)+1:]), ".exe")
	}
	best := max(matchWords(pattern, c.words, strict), matchWords(pattern, words, strict))
	if !strict || !slices.Contains(families, words[0].text) {
		return best
	}
	// Options before the subcommand do not change what the rule is about. Of other programs than git it is not known which take a value.
	for i := subcommandOf(words); i > 0 && i < len(words); i++ {
		if best = max(best, matchWords(pattern, append(words[:1:1], words[i:]...), true)); words[0].is("git") || !words[i-1].isOption() {
			break
		}
		if i+1 < len(words) {
			best = max(best, min(maybe, matchWords(pattern, append(words[:1:1], words[i+1:]...), true)))
		}
	}
	return best
}

// judgeAccess judges a file that a redirection opens.
func (s *shellText) judgeAccess(f access) {
	if !f.path.known() || f.path.text == "" {
		s.firm = true
		s.leave("a file is " + map[Access]string{Reading: "read", Writing: "written"}[f.use] + " whose name is not known")
		s.mention(&command{words: []word{{}, f.path}})
		return
	}
	l := s.tree.locate(f.path.text, s.dirs)
	switch r := s.tree.best(forPaths(s.rules, f.use), l); {
	case r != nil && r.Action != Allow:
		s.stop(r, l)
	case r != nil:
		s.rule = cmp.Or(s.rule, r.String())
		s.level = cmp.Or(s.level, r.Sandbox, map[bool]sandbox.Level{true: sandbox.Write, false: sandbox.Full}[s.o.Sandboxed && l.inside && l.guarded == ""])
	case !l.inside || l.closed != "" && f.use == Reading:
		s.firm = true
		s.leave(f.path.text + " is outside the workspace " + s.tree.root)
	case f.use == Writing && s.o.Sandboxed && l.guarded == "" && s.covered && s.level != "":
		s.level = sandbox.Least(s.level, sandbox.Write)
	case f.use == Writing:
		s.firm = s.firm || l.guarded != ""
		s.leave("the file " + f.path.text + " would be written")
	}
}

// families are programs whose first word after the name says what they do.
var families = strings.Fields(`git npm go cargo docker kubectl pip pip3 yarn pnpm apt brew systemctl terraform gh dotnet
	mvn gradle poetry uv bundle rails composer helm podman rustup conda deno bun flutter mix`)

// commandText returns a command as users see it.
func commandText(words []word) string {
	parts := make([]string, len(words))
	for i, w := range words {
		parts[i] = strings.ReplaceAll(w.text, string(rune(hole)), "?")
	}
	s := strings.Join(parts, " ")
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "..."
	}
	return s
}
