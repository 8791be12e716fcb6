package permission

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"loki/internal/sandbox"
)

// shellArguments are the arguments of shell tools.
type shellArguments struct {
	Command string        `json:"command"`
	Sandbox sandbox.Level `json:"sandbox"` // that the call asks for; empty leaves it to the rules, and is Read without one
	Hosts   []string      `json:"hosts"`   // that it reaches at Network
}

// above reports whether a call asks for a level above l.
func (a shellArguments) above(l sandbox.Level) bool { return !l.Covers(a.Sandbox) }

// wish says what a call asks for that names a level.
func (a shellArguments) wish() string {
	wish := "it asks for level " + string(a.Sandbox)
	if a.Sandbox == sandbox.Network && len(a.Hosts) > 0 {
		wish += " to reach " + strings.Join(a.Hosts, ", ")
	}
	return wish
}

// outcome is the knowledge about a text so far.
type outcome struct {
	action  Action
	rule    string   // the first that led to the action
	reasons []string // of the action, none twice

	covered  bool          // rules allow all of the text
	level    sandbox.Level // up to which they do, empty without a rule
	hosts    *string       // at Network, nil for any
	harmless bool          // a command is covered because it only reads
	open     []string      // why the text is not covered
	grants   []Grant       // after which it would be
	exact    bool          // only the whole text can be granted
	firm     bool          // not even default: allow allows it
	offered  bool          // level is for calls that ask for it

	uncertain doubt                   // why it is not known whether a rule that asks or denies is about a command
	mentioned map[sandbox.Level]doubt // the same for rules about a path and the files that a command uses, from a level on
	named     *Rule                   // that denies a file which the text names, for calls that the sandbox does not keep from it
	hidden    doubt                   // why the text may run what is not seen
	altered   doubt                   // why a command may do something else than its words say
	files     bool                    // see Verdict.Files
}

// stop notes that a rule asks about a part or denies it, and the grants after which it would not ask.
func (o *outcome) stop(r *Rule, grants ...Grant) {
	v := ruled(r)
	if stricter(o.action, r.Action) != o.action {
		o.action, o.rule, o.reasons = r.Action, v.Rule, nil
	}
	o.files = o.files || r.Action == Ask && r.about(Reading)
	if o.action == r.Action && !slices.Contains(o.reasons, v.Reason) {
		o.reasons = append(o.reasons, v.Reason)
	}
	o.leave(v.Reason, grants...)
}

// leave notes that no rule allows a part, and the grants after which one would.
func (o *outcome) leave(reason string, grants ...Grant) {
	o.covered = false
	if !slices.Contains(o.open, reason) {
		o.open = append(o.open, reason)
	}
	o.exact = o.exact || len(grants) == 0
	o.grants = union(o.grants, grants)
}

// allow notes that a rule allows a part.
func (o *outcome) allow(r *Rule) {
	o.rule = cmp.Or(o.rule, r.String())
	o.level = sandbox.Least(o.level, cmp.Or(r.Sandbox, sandbox.Full))
	if r.Sandbox == sandbox.Network && r.Origin == granted {
		o.hosts = &r.hosts
	}
	o.offered = o.offered || r.layer < 0 && r.Origin == granted
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
	rules = slices.DeleteFunc(slices.Clone(rules), func(r *Rule) bool { return !given.match(r) })
	v = j.judgeText(args, rules)
	if v.Level == sandbox.Network {
		v.Hosts = args.Hosts
	}
	return v
}

// wholes are the rules that are about a text as a whole.
type wholes struct {
	every match // for all texts
	exact match // for this very text
	// exceptions says that there are others that ask or deny, which what is hidden may be about.
	exceptions bool
}

// wholesOf sorts out the rules about a text as a whole.
func (j *Judge) wholesOf(args shellArguments, rules []*Rule) (w wholes) {
	text := strings.TrimSpace(args.Command)
	writes := !j.o.Sandboxed || args.Sandbox.Covers(sandbox.Write)
	for _, r := range rules {
		switch {
		case r.Text != "" || len(j.langs) == 0 && slices.Contains(r.Commands, text) && !strings.Contains(text, "*"):
			if r.Text == "" || strings.TrimSpace(r.Text) == text {
				w.exact.add(r, len(text))
			}
		case r.whole():
			w.every.add(r, literals(r.Tool))
		case r.Action != Allow:
			w.exceptions = w.exceptions || !j.o.Sandboxed || len(r.Commands) > 0 || r.Access == Writing && writes || r.Access != Writing && r.Action == Ask
		}
	}
	return w
}

// judgeText judges a text for the shell.
func (j *Judge) judgeText(args shellArguments, rules []*Rule) Verdict {
	w := j.wholesOf(args, rules)
	if w.every.rule != nil && w.every.rule.Action == Deny {
		return ruled(w.every.rule)
	}
	o := j.judgeParts(args.Command, rules)
	if w.every.rule != nil && w.every.rule.Action == Allow {
		o.covered, o.harmless, o.level = true, false, ""
		o.allow(w.every.rule)
	}
	if w.exact.rule != nil && w.exact.rule.Action == Allow && o.action != Deny {
		o = outcome{action: Allow, covered: true, named: o.named, files: true}
		o.allow(w.exact.rule)
	}
	v := j.conclude(args, &o, w.exceptions)
	if v.Files = o.files; o.named != nil && v.Level == sandbox.Full && v.Action != Deny {
		return ruled(o.named) // nothing keeps the call from the file
	}
	return v
}

// judgeParts judges the commands of a text and the files that it opens, in all languages in which the shell may read it.
func (j *Judge) judgeParts(text string, rules []*Rule) outcome {
	o := outcome{action: Allow, covered: true, mentioned: make(map[sandbox.Level]doubt)}
	if len(j.langs) == 0 {
		o.hidden = "commands for this shell are not analyzed"
	}
	left := maxCommands
	for _, lang := range j.langs {
		a := j.analyze(text, lang, 0, []string{j.tree.root}, &left)
		o.hidden, o.altered = cmp.Or(o.hidden, a.hidden), cmp.Or(o.altered, a.altered)
		for i := range a.commands {
			a.commands[i].dirs = a.dirs
			j.judgeCommand(&o, &a.commands[i], rules, false, false)
		}
		if o.harmless && len(a.dirs) > 1 && !j.o.Sandboxed {
			o.leave("it changes the directory")
		}
		for _, f := range a.accesses {
			j.judgeAccess(&o, f, a.dirs, rules)
		}
	}
	if why := cmp.Or(o.hidden, o.altered); why != "" {
		o.open, o.firm = nil, true
		o.leave(string(why))
	} else if o.harmless && len(o.open) == 0 && !plain(strings.TrimSpace(text)) && !j.o.Sandboxed {
		o.leave("shells may differ in what they make of the text")
	}
	return o
}

// conclude gives the verdict on a text from what is known about its parts. exceptions says that there are rules which what is hidden
// may be about.
func (j *Judge) conclude(args shellArguments, o *outcome, exceptions bool) Verdict {
	have := sandbox.Read // up to which the text is allowed
	if o.covered && o.level != "" {
		have = o.level
	}
	switch doubt := cmp.Or(o.uncertain, o.hidden); {
	case o.action == Deny:
		return Verdict{Action: Deny, Decided: true, Rule: o.rule, Reason: few(o.reasons)}
	case o.action == Ask:
		v := j.asked(args, o, sandbox.Read, o.reasons...)
		v.Rule = o.rule
		return v
	case exceptions && doubt != "":
		o.exact = o.exact || o.uncertain == ""
		return j.asked(args, o, have, string(doubt))
	}
	v := Verdict{Action: Allow, Decided: true, Level: sandbox.Full}
	if o.covered {
		v.Rule = o.rule
	}
	ok, why := o.covered, few(o.open)
	switch {
	case j.o.Sandboxed:
		if v.Level = cmp.Or(args.Sandbox, have); o.offered && args.Sandbox == "" {
			v.Level = sandbox.Read
		}
		ok = have.Covers(v.Level) && (v.Level != sandbox.Network || have != sandbox.Network || o.reaches(args.Hosts))
		why = shellArguments{Sandbox: v.Level, Hosts: args.Hosts}.wish()
	case ok && o.level != "" && o.level != sandbox.Full:
		ok, why = false, "the rule allows it in the sandbox only, and there is none here"
	default:
		v.Harmless = ok && o.harmless
	}
	for _, from := range sandbox.Levels() {
		if about := o.mentioned[from]; about != "" && v.Level.Covers(from) {
			return j.asked(args, o, v.Level, string(about))
		}
	}
	switch {
	case ok, j.o.Rules.Default == Allow && (j.o.Sandboxed || !o.firm):
		return v
	case j.o.Rules.Default == Deny:
		return Verdict{Action: Deny, Decided: true, Reason: why}
	}
	if v = j.asked(args, o, v.Level, why); j.o.Sandboxed && v.Level == sandbox.Write {
		v.Wider = []Grant{everyWrite} // nothing else than the level is asked about
	}
	return v
}

// reaches reports whether hosts are among those that were granted.
func (o *outcome) reaches(hosts []string) bool {
	return o.hosts == nil || !slices.ContainsFunc(hosts, func(h string) bool { return !slices.Contains(strings.Fields(*o.hosts), h) })
}

// asked is the verdict that the user has to consent to the text, at level if the call asks for none. Where a level is held, a lasting
// answer is for this very text at this level.
func (j *Judge) asked(args shellArguments, o *outcome, level sandbox.Level, why ...string) Verdict {
	v := Verdict{Action: Ask, Decided: true, Level: sandbox.Full, Always: o.grants}
	exact := Grant{Tool: shellTool, Text: strings.TrimSpace(args.Command)}
	if j.o.Sandboxed {
		v.Level = cmp.Or(args.Sandbox, level)
		if exact.Level = v.Level; v.Level == sandbox.Network {
			exact.Hosts = strings.Join(args.Hosts, " ")
		}
		if args.above(level) {
			why = append(why, args.wish())
		}
	}
	if v.Reason = few(why); j.o.Sandboxed || o.exact || len(v.Always) == 0 {
		if v.Always = nil; strange(args.Command) == "" {
			v.Always = []Grant{exact}
		}
	}
	return v
}

// judgeCommand judges a command and those that it runs. within says that another command runs it, and named that a
// rule has judged it with that one.
func (j *Judge) judgeCommand(o *outcome, c *command, rules []*Rule, within, named bool) {
	d := decide(c, rules)
	o.uncertain = cmp.Or(o.uncertain, d.uncertain)
	for i := range c.loose {
		if l := decide(&c.loose[i], rules); l.rule != nil && l.rule.Action != Allow && !l.rule.whole() {
			o.uncertain.note("%s may run what a rule is about: %s", shown(c.words), l.rule)
		}
	}
	j.mention(o, c, rules)
	grants, why := suggest(c), ""
	switch {
	case d.rule != nil && d.rule.Action != Allow:
		o.stop(d.rule, grants...)
	case named:
	case d.rule != nil:
		if why = escapes(c, d.fixed); d.wild && why != "" {
			o.firm = true
			o.leave(why, grants...)
			break
		}
		o.allow(d.rule)
		o.grants = union(o.grants, grants)
		named = d.rule.whole() || c.at > 0 && len(d.fixed) > c.at // as "sudo systemctl *" does
	case c.plain && len(c.inner) > 0, c.words[0].is("exec") && len(c.words) == 1:
	default:
		if why = j.reads(c); why == "" && (j.o.Sandboxed || !within) {
			o.harmless = true
			break
		}
		o.firm = o.firm || escapes(c, nil) != ""
		o.leave(cmp.Or(why, "no rule allows "+shown(c.words)), grants...)
	}
	for i := range c.inner {
		c.inner[i].dirs = c.dirs
		j.judgeCommand(o, &c.inner[i], rules, true, named)
	}
}

// decision is what rules say about a command, without those that it runs.
type decision struct {
	rule      *Rule    // nil if none decides
	fixed     []string // the words of the rule's pattern before the first with a wildcard
	wild      bool     // the pattern has a wildcard
	uncertain doubt    // why it cannot be known whether a rule that asks or denies is about the command
}

func decide(c *command, rules []*Rule) (d decision) {
	var best match
	for _, r := range rules {
		if r.whole() {
			if best.add(r, 0); best.rule == r {
				d.fixed, d.wild = nil, false
			}
			continue
		}
		for _, text := range r.Commands {
			p := patternWords(text)
			hit := matchCommand(p, c, r.Action != Allow)
			if hit == maybe && r.Action != Allow {
				d.uncertain = doubt("it cannot be known whether " + shown(c.words) + " is what a rule is about: " + r.String())
			}
			if hit != yes {
				continue
			}
			if best.add(r, literals(text)); best.rule == r {
				end := slices.IndexFunc(p, func(w string) bool { return strings.Contains(w, "*") })
				if d.fixed, d.wild = p, end >= 0; d.wild {
					d.fixed = p[:end]
				}
			}
		}
	}
	if d.rule = best.rule; d.rule != nil && d.rule.Action != Allow {
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
func (j *Judge) judgeAccess(o *outcome, f access, dirs []string, rules []*Rule) {
	if !f.path.known() || f.path.text == "" {
		o.firm = true
		o.leave("a file is " + map[Access]string{Reading: "read", Writing: "written"}[f.use] + " whose name is not known")
		j.mention(o, &command{words: []word{{}, f.path}, dirs: dirs}, rules)
		return
	}
	l := j.tree.locate(f.path.text, dirs)
	grants := pathGrants(shellTool, f.use, l)
	switch r := j.tree.best(forPaths(rules, f.use), l); {
	case r != nil && r.Action != Allow:
		o.stop(r, grants...)
	case r != nil:
		o.rule = cmp.Or(o.rule, r.String())
		o.level = cmp.Or(o.level, r.Sandbox, map[bool]sandbox.Level{true: sandbox.Write, false: sandbox.Full}[j.o.Sandboxed && l.inside && l.guarded == ""])
	case !l.inside || l.closed != "" && f.use == Reading:
		o.firm = true
		o.leave(f.path.text+" is outside the workspace "+j.tree.root, grants...)
	case f.use == Writing && j.o.Sandboxed && l.guarded == "" && o.covered && o.level != "":
		o.level = sandbox.Least(o.level, sandbox.Write)
	case f.use == Writing:
		o.firm = o.firm || l.guarded != ""
		o.leave("the file "+f.path.text+" would be written", grants...)
	}
}

// shown returns a command as users see it.
func shown(words []word) string {
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
