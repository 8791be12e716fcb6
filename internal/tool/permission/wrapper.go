package permission

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// command is a simple command that a text runs.
type command struct {
	words []word
	inner []command // the ones that it runs
	at    int       // the number of its words before those of inner[0]; 0 if inner came out of a text
	plain bool      // it does nothing but run inner
	loose []command // that it may run, if its options mean something else than was understood
}

// wrapper is a program that runs another command, which is given as its arguments.
type wrapper struct {
	value string // letters of its options that take the next word as their value
	flags string // letters of its options that take none
	skip  int    // words before the command, after the options
	plain bool   // it does nothing else; with options that are not listed it is not plain
	text  bool   // the rest is a text for a shell, joined with blanks

	texts string // letters of its options whose value is a text for a shell
	long  string // names of its long options that take the next word as their value, with blanks between them
}

// wrappers by name.
var wrappers = sync.OnceValue(func() map[string]wrapper {
	table := map[string]wrapper{
		"env": {plain: true, flags: "i0v", value: "uC", texts: "S", long: "unset chdir split-string"}, "nohup": {plain: true}, "builtin": {plain: true}, "noglob": {plain: true}, "nocorrect": {plain: true},
		"nice": {plain: true, value: "n", flags: "0123456789", long: "adjustment"}, "ionice": {plain: true, value: "cn", flags: "t", long: "class classdata"}, "time": {plain: true, flags: "pv", value: "fo", long: "format output"},
		"gtime": {plain: true, flags: "pv"}, "command": {plain: true, flags: "pv"}, "timeout": {plain: true, value: "ks", flags: "v", skip: 1, long: "signal kill-after"},
		"stdbuf": {plain: true, value: "ioe", long: "input output error"}, "setsid": {plain: true, flags: "cfw"}, "exec": {plain: true, flags: "cl", value: "a"},
		"caffeinate": {plain: true, flags: "dimsu", value: "tw"}, "xargs": {plain: true, value: "nPLsdIE", flags: "rt0"}, "eval": {plain: true, text: true},
		"watch": {value: "n", text: true}, "parallel": {value: "jnNI", text: true}, "sudo": {value: "ugpCDhrRT", long: "user group prompt chdir host role type chroot close-from command-timeout other-user"}, "doas": {value: "uC"}, "runuser": {value: "ugG", texts: "c", long: "user group supp-group command session-command shell"},
		"su": {value: "gGs", skip: 1, texts: "c", long: "command session-command shell group supp-group"}, "sg": {skip: 1, texts: "c"},
		"script": {value: "IOBTmEto", skip: 1, texts: "c", long: "command log-in log-out log-io log-timing"}, "nsenter": {value: "tSG", long: "target"}, "unshare": {value: "RwSG"},
		"busybox": {}, "toybox": {}, "pkexec": {long: "user"}, "tmux": {value: "LSfcnst"}, "screen": {value: "cSstT"}, "hyperfine": {value: "wmMr", text: true},
		"strace": {value: "abeoOPpsSuEIUX"}, "ltrace": {value: "aelnopsux"}, "flock": {value: "wE", skip: 1, texts: "c", long: "command timeout conflict-exit-code"},
		"sshpass": {value: "pfdP"}, "chpst": {value: "uUbemdoflrPn/"}, "cpulimit": {value: "lpeP"}, "bwrap": {}, "faketime": {value: "fp", skip: 1}, "perf": {skip: 1},
		"gosu": {skip: 1}, "su-exec": {skip: 1}, "setuidgid": {skip: 1}, "s6-setuidgid": {skip: 1}, "taskset": {skip: 1}, "chrt": {skip: 1}, "chroot": {skip: 1}, "setarch": {skip: 1}, "ssh": {},
	}
	for name := range strings.FieldsSeq(`npx bunx setpriv systemd-run systemd-inhibit linux32 linux64 fakeroot unbuffer
		prlimit choom torsocks proxychains proxychains4 dbus-run-session xvfb-run rlwrap start-stop-daemon entr uv poetry pipenv mise direnv
		firejail proot numactl valgrind catchsegv softlimit tini dumb-init dbus-launch ssh-agent winpty daemonize cgexec`) {
		table[name] = wrapper{value: "ugcnf"}
	}
	return table
})

// shells run a text that comes after -c.
var shells = []string{"sh", "bash", "dash", "zsh", "ksh", "ksh93", "ash", "mksh", "rbash", "yash", "fish", "csh", "tcsh", "elvish", "nu", "xonsh", "pwsh", "powershell"}

// add adds what the words run, if the name of the program is known.
func (a *analysis) add(words []word) {
	if !words[0].known() || words[0].text == "" {
		a.hidden.note("a command whose name is not known")
		return
	}
	if a.left--; a.left < 0 {
		a.hidden.note("too many commands")
		return
	}
	if len(words) > maxWords {
		words = append(words[:maxWords:maxWords], unknown)
	}
	c := command{words: words}
	name, args := strings.ToLower(path.Base(words[0].text)), words[1:]
	w, wraps := wrappers()[name]
	if short, ok := strings.CutPrefix(name, "g"); ok && !wraps { // as GNU programs are called on other systems
		if w, wraps = wrappers()[short]; wraps {
			name = short
		}
	}
	has := func(test func(word) bool) bool { return slices.ContainsFunc(args, test) }
	switch {
	case slices.Contains(shells, name):
		a.shell(&c, args)
	case name == "find" || name == "fd" || name == "fdfind":
		a.addFound(&c, args, name != "find")
	case name == "command" && len(args) > 0 && (args[0].is("-v") || args[0].is("-V")):
	case wraps:
		a.addWrapped(&c, w, name, args)
	case name == "trap" && len(args) > 1:
		a.addNested(&c, args[:len(args)-1])
		c.plain = true
	case name == "at" || name == "batch" || name == "newgrp":
		a.hidden.note("%s runs what it reads", name)
	case slices.Contains(deceivers, name):
		a.hidden.note("%s can change what commands mean", name)
	case slices.Contains(evaluators, name) && (has(word.evaluated) ||
		has(func(w word) bool { return !w.known() }) && (name == "read" || has(func(w word) bool { return w.is("-v") || w.is("-p") || w.is("-C") }))):
		a.hidden.note("the shell may evaluate a word of %s", name)
	}
	a.commands = append(a.commands, c)
	if words[0].is("cd") || words[0].is("pushd") {
		a.cd(args)
	}
}

var (
	// deceivers change what commands mean.
	deceivers = strings.Fields(`alias hash enable bind complete compgen fc`)
	// evaluators are parts of shells that evaluate a name of a variable, with what is in its brackets.
	evaluators = strings.Fields(`read unset mapfile readarray getopts printf test [ wait set shift export declare typeset`)
)

// runs adds a command that another one runs, with the last of its words.
func (a *analysis) runs(c *command, words []word, at int) {
	if len(words) > 0 {
		c.inner = append(c.inner, a.within(func() { a.add(words) })...)
		c.at = at
	}
}

// addWrapped looks at a program that runs another.
func (a *analysis) addWrapped(c *command, w wrapper, name string, args []word) {
	rest, sure := w.options(args)
	for len(rest) > 0 && (name == "env" || name == "sudo" || name == "doas") && strings.Contains(rest[0].text, "=") {
		variable, _, _ := strings.Cut(rest[0].text, "=")
		sure, rest = sure && slices.Contains(quiet, variable), rest[1:]
	}
	if texts := w.textsOf(args); len(texts) > 0 {
		for _, text := range texts {
			if sure = false; name != "env" { // to whose text the rest is appended
				rest = nil
			}
			a.addNested(c, append([]word{text}, rest...))
		}
		rest = nil
	}
	rest = rest[min(w.skip, len(rest)):]
	at := len(c.words) - len(rest)
	switch c.plain = w.plain && sure; {
	case name == "xargs" && len(rest) > 0:
		a.runs(c, fillXargs(args[:len(args)-len(rest)], rest), at)
	case w.text && len(rest) > 0:
		a.addNested(c, rest)
	case name != "ssh":
		a.runs(c, rest, at)
	}
	if c.plain {
		return
	}
	// Any of the words may be the first of the command, and any of them a text.
	for i, o := range args {
		if _, value, ok := strings.Cut(o.text, "="); ok && strings.ContainsAny(value, " \t") {
			o.text = value
		}
		if o.known() && strings.ContainsAny(o.text, " \t;|&\n") {
			c.loose = append(c.loose, a.within(func() { a.text(o.text) })...)
		}
		if o.known() && o.text != "" && i < 20 {
			c.loose = append(c.loose, command{words: args[i:]})
		}
	}
	if len(args) == 1 && args[0].many {
		a.hidden.note("%s runs a command that is not known", name)
	}
}

// fillXargs returns the words of the command that xargs runs. Any of them may hold the mark that -I names.
func fillXargs(options, rest []word) []word {
	rest = append(slices.Clone(rest), unknown)
	if !slices.ContainsFunc(options, func(o word) bool { return strings.HasPrefix(o.text, "-I") }) {
		return rest
	}
	for k := range rest {
		if k > 0 || slices.ContainsFunc(options, func(o word) bool {
			mark := strings.TrimPrefix(o.text, "-I")
			return mark != "" && strings.Contains(rest[k].text, mark)
		}) {
			rest[k] = unknown
		}
	}
	return rest
}

// textsOf returns the values of the options that are texts for a shell, wherever they are among the words.
func (w wrapper) textsOf(args []word) (texts []word) {
	if w.texts == "" {
		return nil
	}
	option := regexp.MustCompile(`(?s)^(?:-[^-` + w.value + w.texts + `]*[` + w.texts + `]|--(?:command|session-command|split-string)(?:=|$))(.*)$`)
	for i, o := range args {
		if m := option.FindStringSubmatch(o.text); m != nil && m[1] != "" {
			o.text = m[1]
			texts = append(texts, o)
		} else if m != nil {
			texts = append(texts, args[i+1:min(i+2, len(args))]...)
		}
	}
	return texts
}

// options returns what follows the options of a wrapper. sure is false if one of them is not known.
func (w wrapper) options(args []word) (rest []word, sure bool) {
	for sure = true; len(args) > 0 && args[0].isOption() && !args[0].is("-"); args = args[1:] {
		o := args[0]
		if o.is("--") {
			return args[1:], sure
		}
		if !o.known() {
			return args, false
		}
		letter := strings.IndexAny(o.text, w.value+w.texts) // of the option that has a value
		takes := letter == len(o.text)-1
		if strings.HasPrefix(o.text, "--") {
			takes, sure = slices.Contains(strings.Fields(w.long), o.text[2:]), false
		} else if flags := o.text[1:]; letter > 0 && strings.Trim(flags[:letter-1], w.flags) != "" || letter < 0 && strings.Trim(flags, w.flags) != "" {
			sure = false
		}
		if takes && len(args) > 1 {
			args = args[1:]
		}
	}
	return args, sure
}

// addNested adds the commands of a text that is made of words.
func (a *analysis) addNested(c *command, words []word) {
	text := ""
	for _, w := range words {
		if !w.known() {
			a.hidden.note("%s runs a text that is not known", c.words[0].text)
			return
		}
		if !w.is("--") {
			text += w.text + " "
		}
	}
	c.inner = append(c.inner, a.within(func() { a.text(strings.TrimSuffix(text, " ")) })...)
}

// shell looks at sh -c. With more options than -c, each word after it may be the text.
func (a *analysis) shell(c *command, args []word) {
	text := slices.IndexFunc(args, func(w word) bool {
		return strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "--") && strings.Contains(w.text, "c")
	})
	operand := slices.IndexFunc(args, func(w word) bool { return !w.isOption() && !strings.HasPrefix(w.text, "+") })
	switch {
	case len(args) == 2 && text == 0 && (args[0].is("-c") || args[0].is("-ec")):
		c.plain = true
		a.addNested(c, args[1:])
	case len(args) == 1 && (args[0].is("--version") || args[0].is("--help")):
	case operand < 0 || slices.ContainsFunc(args[:operand], func(w word) bool { return !w.known() || w.is("-s") || w.is("-") }):
		a.hidden.note("a shell runs what it reads")
	case text >= 0 && (text < operand || args[0].isOption()):
		for i := range args[text+1:] {
			a.addNested(c, args[text+1+i:text+2+i])
		}
	}
}

// addFound looks at the commands that find and fd run for what they find.
func (a *analysis) addFound(c *command, args []word, fd bool) {
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(args[i].text, "=")
		switch {
		case fd && (joined && strings.HasPrefix(name, "--exec") || len(name) > 2 && name[0] == '-' && name[1] != '-' && strings.ContainsAny(name, "xX")):
			a.hidden.note("the option %s of fd runs a command", name)
			c.inner = append(c.inner, a.within(func() { a.text(value) })...)
		case slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"}, name):
			var words []word
			first := i + 2
			for i++; i < len(args) && !args[i].is(";") && !(args[i].is("+") && len(words) > 0 && args[i-1].is("{}")); i++ {
				w := args[i]
				w.text = strings.ReplaceAll(w.text, "{}", string(rune(hole)))
				words = append(words, w)
			}
			a.runs(c, words, first)
		}
	}
}
