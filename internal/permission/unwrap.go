package permission

import (
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// wrapper is a program that runs another command, which is given as its arguments.
type wrapper struct {
	outer bool   // it does nothing else
	value string // letters of its options that take the next word as their value
	flags string // letters of its options that take none
	long  []string
	skip  int  // words before the command, after the options
	env   bool // assignments may come before the command
	text  bool // the rest is a text for a shell, joined with blanks
}

// wrappers by name. Options that are not listed make the command unclear.
var wrappers = sync.OnceValue(func() map[string]wrapper {
	return map[string]wrapper{
		"env":         {outer: true, flags: "i0v", value: "u", long: []string{"--ignore-environment"}, env: true},
		"nohup":       {outer: true},
		"nice":        {outer: true, value: "n", flags: "0123456789"},
		"ionice":      {outer: true, value: "cn", flags: "t"},
		"time":        {outer: true, flags: "pv"},
		"timeout":     {outer: true, value: "ks", flags: "v", long: []string{"--foreground", "--preserve-status", "--verbose", "--kill-after=", "--signal="}, skip: 1},
		"stdbuf":      {outer: true, value: "ioe", flags: ""},
		"setsid":      {outer: true, flags: "cfw"},
		"command":     {outer: true, flags: "p"},
		"builtin":     {outer: true},
		"exec":        {outer: true, flags: "cl"},
		"noglob":      {outer: true},
		"nocorrect":   {outer: true},
		"xargs":       {outer: true, value: "nPLsdI", flags: "rt0", long: []string{"--null", "--no-run-if-empty", "--verbose", "--max-args=", "--max-procs=", "--delimiter="}},
		"sudo":        {value: "ugpCDhrRT", flags: "nEHSbkKPisAB", env: true},
		"doas":        {value: "uC", flags: "nLs", env: true},
		"strace":      {value: "efopsP", flags: "fcqtvy"},
		"ltrace":      {value: "efopsP", flags: "fcqtvy"},
		"unshare":     {flags: "mnpuUfrCT"},
		"chroot":      {skip: 1},
		"flock":       {flags: "nsxuo", value: "wE", skip: 1},
		"taskset":     {flags: "a", value: "cp", skip: 1},
		"chrt":        {flags: "fobir", skip: 1},
		"busybox":     {},
		"toybox":      {},
		"gtime":       {outer: true, flags: "pv"},
		"proxychains": {flags: "q", value: "f"},
		"caffeinate":  {outer: true, flags: "dimsu", value: "tw"},
		"watch":       {value: "n", flags: "dtbegcxp", text: true},
		"parallel":    {value: "jnNI", flags: "0kvX", text: true},
		"npx":         {flags: "yq"},
		"eval":        {outer: true, text: true},

		"pkexec": {}, "runuser": {flags: "l", value: "ugG"}, "setpriv": {}, "systemd-run": {}, "nsenter": {}, "setarch": {skip: 1}, "linux32": {}, "linux64": {},
		"fakeroot": {}, "unbuffer": {}, "prlimit": {}, "choom": {value: "n"}, "torsocks": {}, "proxychains4": {flags: "q", value: "f"},
		"dbus-run-session": {}, "xvfb-run": {flags: "a"}, "rlwrap": {},
	}
})

// shells run a text that comes after -c.
var shells = []string{"sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash"}

// unwrap finds the commands that cmd runs.
func (a *analysis) unwrap(cmd *command, depth int) {
	if depth > maxNested {
		cmd.unclear = "too many commands within commands"
		return
	}
	name := programName(cmd.words[0].text)
	args := cmd.words[1:]
	switch {
	case slices.Contains(shells, name):
		a.shellText(cmd, args)
		return
	case name == "find" || name == "fd" || name == "fdfind":
		a.findExec(cmd, args, depth)
		return
	case name == "trap":
		for len(args) > 0 && args[0].is("--") {
			args = args[1:]
		}
		if slices.ContainsFunc(args, func(w word) bool { return w.many || w.isOption() && !w.known() }) {
			cmd.unclear = "it runs a text that is not known"
			return
		}
		if len(args) > 1 && !args[0].is("-") {
			cmd.outer, a.trapped = true, true
			a.nested(cmd, args[:1])
		}
		return
	case name == "ssh" || name == "su" || name == "script":
		// What they run counts for what is denied; the rest is for rules to say.
		for i, w := range args {
			if i > 0 && w.known() && (strings.ContainsAny(w.text, " ;|&") || args[i-1].is("-c") && name != "ssh") {
				a.nestedText(cmd, w.text)
			} else if i > 0 && w.known() && !w.isOption() && len(args) > i+1 && name == "ssh" {
				a.inner(cmd, args[i:], depth)
			}
		}
		return
	}
	w, ok := wrappers()[name]
	if !ok {
		return
	}
	if name == "command" && len(args) > 0 && (args[0].is("-v") || args[0].is("-V")) {
		return
	}
	rest, why := w.options(args)
	if why != "" {
		cmd.unclear = why
		if !w.outer {
			rest = args // what may be denied is somewhere in it
		}
	}
	if w.env {
		for len(rest) > 0 && strings.Contains(rest[0].text, "=") {
			variable, _, _ := strings.Cut(rest[0].text, "=")
			if !rest[0].known() || !harmlessVariable(variable) {
				cmd.unclear = "the variable " + strings.ReplaceAll(variable, string(rune(hole)), "?") + " can change what the command does"
			}
			rest = rest[1:]
		}
	}
	if w.skip > 0 && cmd.unclear == "" {
		if len(rest) < w.skip {
			return
		}
		rest = rest[w.skip:]
	}
	if len(rest) == 0 {
		return
	}
	cmd.outer = w.outer
	if w.text {
		a.nested(cmd, rest)
		return
	}
	if name == "xargs" {
		rest = append(replaced(args[:len(args)-len(rest)], rest), word{text: string(rune(hole)), many: true})
	}
	a.inner(cmd, rest, depth)
}

// replaced returns the words of a command that xargs runs, with a hole for what its option
// -I stands for.
func replaced(options, words []word) []word {
	words = slices.Clone(words)
	for i, o := range options {
		if !strings.HasPrefix(o.text, "-") || strings.HasPrefix(o.text, "--") {
			continue
		}
		at := strings.IndexAny(o.text, "nPLsdI") // what comes after one of them is its value
		if at < 0 || o.text[at] != 'I' {
			continue
		}
		mark := o.text[at+1:]
		if mark == "" && i+1 < len(options) {
			mark = options[i+1].text
		}
		if mark == "" {
			continue
		}
		for k := range words {
			if strings.Contains(words[k].text, mark) {
				words[k] = word{text: strings.ReplaceAll(words[k].text, mark, string(rune(hole)))}
			}
		}
	}
	return words
}

// options returns what follows the options of a wrapper, or why they are unknown.
func (w wrapper) options(args []word) (rest []word, unclear string) {
	for len(args) > 0 {
		o := args[0]
		switch {
		case o.is("--"):
			return args[1:], ""
		case !o.isOption():
			return args, ""
		case !o.known():
			return args, "an option that is not known"
		case strings.HasPrefix(o.text, "--"):
			if !slices.ContainsFunc(w.long, func(l string) bool { return o.text == l || strings.HasSuffix(l, "=") && strings.HasPrefix(o.text, l) }) {
				return args, "the option " + o.text
			}
		case o.text == "-":
			return args, "the option -"
		default:
			letters := o.text[1:]
			for i := 0; i < len(letters); i++ {
				if strings.IndexByte(w.value, letters[i]) >= 0 {
					if i == len(letters)-1 {
						if len(args) < 2 {
							return nil, "an option without its value"
						}
						args = args[1:]
					}
					break
				}
				if strings.IndexByte(w.flags, letters[i]) < 0 {
					return args, "the option " + o.text
				}
			}
		}
		args = args[1:]
	}
	return nil, ""
}

// inner adds a command that cmd runs.
func (a *analysis) inner(cmd *command, words []word, depth int) {
	if !words[0].known() || words[0].text == "" {
		cmd.unclear = "it runs a command whose name is not known"
		return
	}
	if words[0].is("cd") || words[0].is("pushd") || words[0].is("popd") {
		cmd.unclear = "it may change the directory"
	}
	in := command{words: words, dirs: cmd.dirs, external: true}
	a.unwrap(&in, depth+1)
	cmd.inner = append(cmd.inner, in)
}

// nested adds the commands of a text that is made of words.
func (a *analysis) nested(cmd *command, words []word) {
	parts := make([]string, len(words))
	for i, w := range words {
		if !w.known() {
			cmd.unclear = "it runs a text that is not known"
			return
		}
		parts[i] = w.text
	}
	a.nestedText(cmd, strings.Join(parts, " "))
}

func (a *analysis) nestedText(cmd *command, text string) {
	langs := []syntax.LangVariant{a.lang} // each of the others has its turn
	if name := programName(cmd.words[0].text); slices.Contains(shells, name) {
		langs = dialectOf(name).langs
	}
	for _, lang := range langs {
		if *a.left--; *a.left < 0 {
			cmd.unclear = "too many commands within commands"
			return
		}
		in := a.j.analyze(text, lang, a.deep+1, slices.Clone(cmd.dirs), a.left)
		if name := cmd.words[0].text; (name == "eval" || name == "trap") && len(in.dirs) != len(cmd.dirs) {
			cmd.unclear = "it may change the directory"
		}
		a.trapped = a.trapped || in.trapped
		cmd.inner = append(cmd.inner, in.commands...)
		a.accesses = append(a.accesses, in.accesses...)
		if len(in.unclear) > 0 {
			cmd.unclear = in.unclear[0]
		}
	}
	if len(langs) == 0 {
		cmd.unclear = "it runs a text that cannot be analysed"
	}
}

// shellText handles sh -c. Options that change what a text means are not analysed, but
// what they are about is judged.
func (a *analysis) shellText(cmd *command, args []word) {
	if len(args) == 1 && (args[0].is("--version") || args[0].is("--help")) {
		return
	}
	text := false // the first operand is one
	for len(args) > 0 && (args[0].isOption() || args[0].known() && strings.HasPrefix(args[0].text, "+")) {
		o := args[0]
		args = args[1:]
		if o.is("--") || o.is("-") {
			break
		}
		if !o.known() {
			cmd.unclear = "an option of a shell that is not known"
			return
		}
		if strings.HasPrefix(o.text, "--") {
			if o.text != "--norc" && o.text != "--noprofile" {
				cmd.unclear = "the option " + o.text + " of a shell"
			}
			continue
		}
		text = text || strings.Contains(o.text, "c")
		if strings.ContainsAny(o.text, "li") {
			cmd.unclear = "a shell that reads its start-up files"
		} else if strings.Trim(o.text[1:], "ceuxo") != "" || o.text[0] == '+' {
			cmd.unclear = "the option " + o.text + " of a shell"
		}
		if strings.ContainsAny(o.text, "oO") && len(args) > 0 { // the name of a setting
			if !args[0].is("pipefail") && !args[0].is("errexit") && !args[0].is("nounset") && !args[0].is("xtrace") {
				cmd.unclear = "a setting of a shell"
			}
			args = args[1:]
		}
	}
	if len(args) == 0 {
		cmd.unclear = "a shell runs what it reads"
		return
	}
	if !text {
		return // a script: for rules to say
	}
	if programName(cmd.words[0].text) == "zsh" {
		cmd.unclear = "a text for another shell"
	}
	cmd.outer = true
	a.nested(cmd, args[:1])
}

// runsFound reports whether a word of fd makes it run a command in a way that is not
// analysed: together with other letters, or with the command in the same word.
func runsFound(w word) bool {
	if strings.HasPrefix(w.text, "--") {
		name, _, value := strings.Cut(w.text, "=")
		return strings.HasPrefix(name, "--exec") && (value || name != "--exec" && name != "--exec-batch")
	}
	return len(w.text) > 2 && w.text[0] == '-' && strings.ContainsAny(w.text, "xX")
}

// findExec handles the commands that find and fd run for what they find.
func (a *analysis) findExec(cmd *command, args []word, depth int) {
	typed := slices.IndexFunc(args, func(w word) bool { return w.is("-type") })
	onlyFiles := typed >= 0 && typed+1 < len(args) && args[typed+1].is("f") &&
		!slices.ContainsFunc(args, func(w word) bool { return w.is("-o") || w.is("-or") || w.is(",") || w.is("!") || w.is("-not") })
	for i := 0; i < len(args); i++ {
		if name := programName(cmd.words[0].text); name != "find" && runsFound(args[i]) {
			cmd.unclear = "the option " + args[i].text + " of " + name + " runs a command"
			continue
		}
		files := onlyFiles && typed < i // a test after the command comes too late
		if !slices.ContainsFunc([]string{"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"}, args[i].is) {
			continue
		}
		end := i + 1
		var words []word
		for ; end < len(args) && !args[end].is(";") && !(args[end].is("+") && end > i+1 && args[end-1].is("{}")); end++ {
			w := args[end]
			if strings.Contains(w.text, "{}") {
				if files && w.is("{}") {
					w = word{text: "./" + string(rune(hole)), found: true} // not a link
				} else {
					w = word{text: strings.ReplaceAll(w.text, "{}", string(rune(hole)))}
				}
			}
			words = append(words, w)
		}
		if len(words) > 0 {
			a.inner(cmd, words, depth)
		}
		if strings.HasSuffix(args[i].text, "dir") || !strings.HasPrefix(args[i].text, "-exec") {
			cmd.unclear = args[i].text + " runs a command in a directory that is not known"
		}
		i = end
	}
}
