package permission

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"loki/internal/sandbox"
)

// outcome is the knowledge about a text so far.
type outcome struct {
	action   Action
	rule     string   // the first that led to the action
	reasons  []string // of the action, the first decides; none twice
	settled  bool     // a language has given its reasons
	harmless bool     // a command is allowed without a rule
	always   []Grant
	exact    bool // only the whole text can be granted
}

// add takes the decision on a part into account.
func (o *outcome) add(a Action, rule, reason string, grants ...Grant) {
	if a == Ask {
		o.exact = o.exact || len(grants) == 0
		for _, g := range grants {
			if !slices.Contains(o.always, g) {
				o.always = append(o.always, g)
			}
		}
	}
	switch {
	case stricter(o.action, a) != o.action:
		o.action, o.rule, o.reasons = a, rule, nil
		if reason != "" {
			o.reasons = []string{reason}
		}
	case a == Allow && o.action == Allow:
		o.rule = cmp.Or(o.rule, rule)
	case o.action == a && reason != "" && !o.settled && !slices.Contains(o.reasons, reason):
		o.reasons = append(o.reasons, reason)
	}
}

// reason is why the action is not Allow: each of the commands that a rule or the lack of one
// stops, then what the text leaves open.
func (o *outcome) reason() string {
	const most = 6
	if more := len(o.reasons) - most; more > 0 {
		return strings.Join(o.reasons[:most], "; ") + fmt.Sprintf("; and %d more", more)
	}
	return strings.Join(o.reasons, "; ")
}

// judgeShell judges a call of a shell tool.
func (j *Judge) judgeShell(call Call, rules []*Rule) (v Verdict) {
	var args shellArguments
	given, ambiguous := readArguments(call.Arguments)
	if ambiguous != "" {
		return Verdict{Action: Deny, Decided: true, Reason: ambiguous}
	}
	if err := json.Unmarshal(call.Arguments, &args); err != nil || strings.TrimSpace(args.Command) == "" {
		return Verdict{Action: Allow} // the tool refuses it
	}
	// A mistake in the analysis must not let a command through, nor end the program.
	defer func() {
		if r := recover(); r != nil {
			v = Verdict{Action: Ask, Decided: true, Reason: "the command could not be analysed"}
		}
	}()
	kept := rules[:0:0]
	for _, r := range rules {
		if given.match(r) {
			kept = append(kept, r)
		}
	}
	v = j.judgeText(call.Tool, args.Command, kept)
	v.Level = sandbox.Full
	return v
}

// shellArguments are the arguments of shell tools.
type shellArguments struct {
	Command string        `json:"command"`
	Sandbox sandbox.Level `json:"sandbox"` // that the call asks for; empty leaves it to the rules, and is Read without one
	Hosts   []string      `json:"hosts"`   // that it reaches at Network
	Reason  string        `json:"reason"`  // why it needs more than Read
}

// judgeText judges a text for the shell.
func (j *Judge) judgeText(tool, text string, rules []*Rule) Verdict {
	var whole, exact match
	exceptions := false
	for _, r := range rules {
		switch {
		case r.Text != "" || r.exactly(text, j.shell):
			if strings.TrimSpace(r.Text) == strings.TrimSpace(text) || r.exactly(text, j.shell) {
				exact.add(r, len(text))
			}
		case r.whole():
			whole.add(r, literals(r.Tool))
		}
		exceptions = exceptions || r.Action != Allow && !r.whole()
	}
	if whole.rule != nil && whole.rule.Action == Deny {
		return ruled(whole.rule)
	}
	all := whole.rule != nil && whole.rule.Action == Allow
	o := outcome{action: Allow}
	if all {
		o.rule = whole.rule.String()
	}
	if len(j.shell.langs) == 0 && !all {
		o.add(Ask, "", "commands for this shell are not analysed")
	}
	if len(j.shell.langs) == 0 && all && exceptions {
		o.add(Ask, "", "commands for this shell are not analysed, and some are not allowed")
	}
	for _, lang := range j.shell.langs {
		j.judgeIn(&o, tool, text, lang, rules, all, exceptions)
		if o.action == Deny {
			break
		}
		o.settled = o.action == Ask // what the others find is mostly that they are others
	}
	if o.action == Ask && exact.rule != nil && exact.rule.Action == Allow && strings.TrimSpace(text) != "" {
		return Verdict{Action: Allow, Decided: true, Rule: exact.rule.String()}
	}
	v := Verdict{Action: o.action, Decided: true, Rule: o.rule, Reason: o.reason()}
	v.Harmless = v.Action == Allow && o.harmless
	if v.Action == Ask {
		v.Always = o.always
		if o.exact || len(v.Always) == 0 {
			v.Always = nil
			if strange(text) == "" {
				v.Always = []Grant{{Tool: tool, Text: strings.TrimSpace(text)}}
			}
		}
	}
	return v
}

// exactly reports whether a rule for commands names the whole text, for shells whose texts are
// not analysed.
func (r *Rule) exactly(text string, d dialect) bool {
	return len(d.langs) == 0 && slices.ContainsFunc(r.Commands, func(p string) bool { return !strings.Contains(p, "*") && p == strings.TrimSpace(text) })
}

// judgeIn judges a text in one language.
func (j *Judge) judgeIn(o *outcome, tool, text string, lang syntax.LangVariant, rules []*Rule, all, exceptions bool) {
	left := maxTexts
	a := j.analyze(text, lang, 0, []string{j.tree.root}, &left)
	for i := range a.commands {
		j.judgeCommand(o, tool, &a.commands[i], rules)
	}
	for _, f := range a.accesses {
		j.judgeAccess(o, tool, f, rules)
	}
	if len(a.unclear) > 0 && (!all || exceptions) {
		o.add(Ask, "", a.unclear[0])
	}
}

// judgeCommand judges a command and those that it runs.
func (j *Judge) judgeCommand(o *outcome, tool string, c *command, rules []*Rule) {
	action, rule, reason, named := j.decide(c, rules)
	if action == Deny {
		o.add(Deny, rule, reason)
		return
	}
	inner := outcome{action: Allow}
	for i := range c.inner {
		j.judgeCommand(&inner, tool, &c.inner[i], rules)
	}
	if inner.action == Deny {
		o.add(Deny, inner.rule, inner.reason())
		return
	}
	o.add(action, rule, reason, j.suggest(tool, c)...)
	o.harmless = o.harmless || inner.harmless || len(c.inner) == 0 && action == Allow && rule == ""
	// A rule that names the command within, such as "sudo systemctl *", has judged it.
	if len(c.inner) > 0 && !(action == Allow && named) {
		o.add(inner.action, inner.rule, "", inner.always...)
		for _, reason := range inner.reasons {
			o.add(inner.action, inner.rule, reason, inner.always...)
		}
		o.exact = o.exact || inner.exact
	}
}

// decide judges a command without those that it runs. named tells that a rule allows it
// which spells more of it out than its first word.
func (j *Judge) decide(c *command, rules []*Rule) (action Action, rule, reason string, named bool) {
	var best match
	var pattern []string
	uncertain := ""
	for _, r := range rules {
		if r.whole() {
			best.add(r, 0)
			if best.rule == r {
				pattern = nil
			}
			continue
		}
		for _, text := range r.Commands {
			p := patternWords(text)
			if len(p) == 0 {
				continue
			}
			hit := j.matchCommand(p, c, r.Action != Allow)
			if hit == maybe && r.Action != Allow {
				uncertain = "it cannot be told whether " + shown(c.words) + " is what a rule is about: " + r.String()
			}
			if hit == yes {
				best.add(r, literals(text))
				if best.rule == r {
					pattern = p
				}
			}
		}
	}
	switch {
	case best.rule != nil && best.rule.Action == Deny, best.rule != nil && best.rule.Action == Ask:
		v := ruled(best.rule)
		return v.Action, v.Rule, v.Reason, false
	case uncertain != "":
		return Ask, "", uncertain, false
	case best.rule != nil:
		// What cannot be told may hide what other rules are about.
		if pattern == nil && c.unclear != "" && slices.ContainsFunc(rules, func(r *Rule) bool { return r.Action != Allow && !r.whole() }) {
			return Ask, "", c.unclear, false
		}
		if pattern != nil {
			if c.unclear != "" && !wordsSpelled(pattern) {
				return Ask, "", c.unclear, false
			}
			if why := escapes(c, pattern); why != "" {
				return Ask, "", why, false
			}
		}
		return Allow, best.rule.String(), "", len(pattern) > 1 && pattern[1] != "*"
	}
	if why := j.harmless(c); why != "" {
		if j.o.Rules.Default == Allow && c.unclear == "" && escapes(c, []string{"*"}) == "" {
			return Allow, "", "", false
		}
		if j.o.Rules.Default == Deny {
			return Deny, "", why, false
		}
		return Ask, "", why, false
	}
	return Allow, "", "", false
}

// matchCommand compares a command with a pattern. A strict comparison also knows the
// program by its file name, and in any letters' case.
func (j *Judge) matchCommand(pattern []string, c *command, strict bool) truth {
	words := slices.Clone(c.words)
	words[0].text = programName(words[0].text)
	best := max(matchWords(pattern, c.words, strict), matchWords(pattern, words, strict))
	if strict {
		words[0].text = words[0].text[strings.LastIndexAny(words[0].text, `/\`)+1:]
		words[0].text = strings.TrimSuffix(strings.ToLower(words[0].text), ".exe")
		best = max(best, matchWords(pattern, words, true))
		if words[0].is("git") {
			best = max(best, matchWords(pattern, append([]word{words[0]}, afterGitOptions(words[1:])...), true))
		}
	}
	return best
}

// judgeAccess judges a file that a redirection opens.
func (j *Judge) judgeAccess(o *outcome, tool string, f access, rules []*Rule) {
	verb := "written"
	if f.use == Reading {
		verb = "read"
	}
	var best match
	for _, r := range rules {
		if r.whole() {
			best.add(r, 0)
		}
	}
	all := best.rule != nil && best.rule.Action == Allow
	if !f.path.known() || f.path.text == "" {
		if !all || slices.ContainsFunc(rules, func(r *Rule) bool { return r.Action != Allow }) {
			o.add(Ask, "", "a file is "+verb+" whose name is not known")
		}
		return
	}
	l := j.tree.locate(f.path.text, f.dirs)
	byPath := false
	for _, r := range rules {
		if len(r.Paths) == 0 || r.Access != "" && r.Access != f.use {
			continue
		}
		if n, ok := j.tree.matches(r, l); ok {
			best.add(r, n)
			byPath = byPath || best.rule == r
		}
	}
	grant := Grant{Tool: tool, Path: l.real, Access: f.use}
	grants := []Grant{grant}
	if l.real == "" || strings.ContainsAny(l.real, `*?[\`) {
		grants = nil
	}
	switch {
	case best.rule != nil && best.rule.Action != Allow:
		v := ruled(best.rule)
		o.add(v.Action, v.Rule, v.Reason, grants...)
	case best.rule != nil && (byPath || all): // what runs without a question can write anywhere
		o.add(Allow, best.rule.String(), "")
	case !l.inside:
		o.add(Ask, "", f.path.text+" is outside the workspace "+j.tree.root, grants...)
	case f.use == Reading:
		o.add(Allow, "", "")
	case j.o.Rules.Default == Allow && !l.guarded:
		o.add(Allow, "", "")
	case j.o.Rules.Default == Deny:
		o.add(Deny, "", "the file "+f.path.text+" would be written")
	default:
		o.add(Ask, "", "the file "+f.path.text+" would be written", grants...)
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
