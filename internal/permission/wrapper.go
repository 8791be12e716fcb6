package permission

import (
	"slices"
	"strings"
)

// command is a simple command that a text runs.
type command struct {
	words []word
	inner []command // those that it runs
	at    int       // the number of its words before those of inner[0]; 0 if inner came out of a text
	plain bool      // it does nothing but run inner
	// loose are commands that it may run, if its options mean something else than was understood.
	loose []command
	dirs  []string // in which it may run
}

// wrapper is a program that runs another command, which is given as its arguments.
type wrapper struct {
	value string // letters of its options that take the next word as their value
	flags string // letters of its options that take none
	skip  int    // words before the command, after the options
	plain bool   // it does nothing else; with options that are not listed it is not plain
	text  bool   // the rest is a text for a shell, joined with blanks
}

// wrapperOf returns the wrapper of a name.
func wrapperOf(name string) (w wrapper, ok bool) {
	switch name {
	case "env":
		return wrapper{plain: true, flags: "i0v", value: "u"}, true
	case "nohup", "builtin", "noglob", "nocorrect":
		return wrapper{plain: true}, true
	case "nice":
		return wrapper{plain: true, value: "n", flags: "0123456789"}, true
	case "ionice":
		return wrapper{plain: true, value: "cn", flags: "t"}, true
	case "time", "gtime", "command":
		return wrapper{plain: true, flags: "pv"}, true
	case "timeout":
		return wrapper{plain: true, value: "ks", flags: "v", skip: 1}, true
	case "stdbuf":
		return wrapper{plain: true, value: "ioe"}, true
	case "setsid":
		return wrapper{plain: true, flags: "cfw"}, true
	case "exec":
		return wrapper{plain: true, flags: "cl", value: "a"}, true
	case "caffeinate":
		return wrapper{plain: true, flags: "dimsu", value: "tw"}, true
	case "xargs":
		return wrapper{plain: true, value: "nPLsdIE", flags: "rt0"}, true
	case "eval":
		return wrapper{plain: true, text: true}, true
	case "watch":
		return wrapper{value: "n", flags: "dtbegcxp", text: true}, true
	case "parallel":
		return wrapper{value: "jnNI", flags: "0kvX", text: true}, true
	case "sudo", "doas", "runuser":
		return wrapper{value: "ugpCDhrRT"}, true
	case "strace", "ltrace":
		return wrapper{value: "efopsP"}, true
	case "flock", "taskset", "chrt", "chroot", "setarch", "ssh":
		return wrapper{value: "wEbcDEeIiLlmOpQRWFJoS", skip: 1}, true
	case "busybox", "toybox", "npx", "bunx", "unshare", "nsenter", "pkexec", "su", "script", "setpriv", "systemd-run", "systemd-inhibit", "linux32", "linux64", "fakeroot",
		"unbuffer", "prlimit", "choom", "torsocks", "proxychains", "proxychains4", "dbus-run-session", "xvfb-run", "rlwrap", "start-stop-daemon", "coproc", "entr", "uv", "poetry", "pipenv", "mise", "direnv":
		return wrapper{value: "ugcnf"}, true
	}
	return wrapper{}, false
}

// shells run a text that comes after -c.
var shells = []string{"sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash"}

// command returns what the words run. ok is false if the name of the program is not known.
func (a *analysis) command(words []word, depth int) (cmd command, ok bool) {
	if !words[0].known() || words[0].text == "" {
		a.hide("a command whose name is not known")
		return cmd, false
	}
	if *a.left--; depth > maxNested || *a.left < 0 {
		a.hide("too many commands within commands")
		return cmd, false
	}
	cmd = command{words: words, dirs: a.dirs}
	name, args := strings.ToLower(words[0].text[strings.LastIndexByte(words[0].text, '/')+1:]), words[1:]
	w, wraps := wrapperOf(name)
	switch {
	case slices.Contains(shells, name):
		a.shell(&cmd, args)
	case name == "find" || name == "fd" || name == "fdfind":
		a.found(&cmd, args, depth)
	case name == "command" && len(args) > 0 && (args[0].is("-v") || args[0].is("-V")):
	case wraps:
		a.wrapped(&cmd, w, name, args, depth)
	case name == "trap" && len(args) > 1:
		a.nested(&cmd, args[:len(args)-1])
		cmd.plain = true
	case slices.Contains([]string{"alias", "hash", "enable", "bind", "complete", "compgen", "fc"}, name):
		a.hide("%s can change what commands mean", name)
	case slices.Contains([]string{"read", "unset", "mapfile", "readarray", "getopts", "printf", "test", "[", "wait", "set", "shift", "export", "declare", "typeset"}, name):
		array := slices.ContainsFunc(args, func(w word) bool { return w.is("-v") || w.is("-p") || w.is("-C") })
		if evaluated(args) || array && slices.ContainsFunc(args, func(w word) bool { return !w.known() }) || name == "read" && slices.ContainsFunc(args, func(w word) bool { return !w.known() }) {
			a.hide("the shell may evaluate a word of %s", name)
		}
	}
	return cmd, true
}

// wrapped handles the programs that run another.
func (a *analysis) wrapped(cmd *command, w wrapper, name string, args []word, depth int) {
	rest, sure := w.options(args)
	for len(rest) > 0 && (name == "env" || name == "sudo" || name == "doas") && strings.Contains(rest[0].text, "=") {
		variable, _, _ := strings.Cut(rest[0].text, "=")
		sure = sure && strings.Contains(quiet, " "+variable+" ")
		rest = rest[1:]
	}
	rest = rest[min(w.skip, len(rest)):]
	cmd.plain = w.plain && sure
	if name == "xargs" {
		mark := "{}"
		for i, o := range args[:len(args)-len(rest)] {
			if strings.HasPrefix(o.text, "-I") && len(o.text) > 2 {
				mark = o.text[2:]
			} else if o.is("-I") && i+1 < len(args) && args[i+1].text != "" {
				mark = args[i+1].text
			}
		}
		rest = slices.Clone(rest)
		for i := range rest {
			rest[i].text = strings.ReplaceAll(rest[i].text, mark, string(rune(hole)))
		}
		if len(rest) > 0 {
			rest = append(rest, word{text: string(rune(hole)), many: true})
		}
	}
	if len(rest) > 0 && w.text {
		a.nested(cmd, rest)
	} else if len(rest) > 0 && name != "ssh" {
		if in, ok := a.command(rest, depth+1); ok {
			cmd.inner, cmd.at = append(cmd.inner, in), len(cmd.words)-len(rest)
		}
		if rest[0].is("cd") || rest[0].is("pushd") {
			a.cd(rest[1:])
		}
	}
	if w.plain && sure {
		return
	}
	// Any of the words may be the first of the command, and any of them a text.
	for i, o := range args {
		if _, value, ok := strings.Cut(o.text, "="); ok && strings.ContainsAny(value, " \t") {
			o.text = value
		}
		if o.known() && strings.ContainsAny(o.text, " \t;|&\n") {
			a.nestedText(&cmd.loose, o.text)
		}
		if o.known() && o.text != "" && i < 20 {
			cmd.loose = append(cmd.loose, command{words: args[i:], dirs: a.dirs})
		}
	}
	if slices.ContainsFunc(args, func(o word) bool { return o.many && o.isOption() }) && len(args) == 1 {
		a.hide("%s runs a command that is not known", name)
	}
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
		if strings.HasPrefix(o.text, "--") {
			sure = false
			continue
		}
		for i := 1; i < len(o.text); i++ {
			if strings.IndexByte(w.value, o.text[i]) >= 0 {
				if i == len(o.text)-1 && len(args) > 1 {
					args = args[1:]
				}
				break
			}
			sure = sure && strings.IndexByte(w.flags, o.text[i]) >= 0
		}
	}
	return args, sure
}

// nested adds the commands of a text that is made of words.
func (a *analysis) nested(cmd *command, words []word) {
	parts := make([]string, 0, len(words))
	for _, w := range words {
		if !w.known() {
			a.hide("%s runs a text that is not known", cmd.words[0].text)
			return
		}
		if !w.is("--") {
			parts = append(parts, w.text)
		}
	}
	a.nestedText(&cmd.inner, strings.Join(parts, " "))
}

// nestedText adds the commands of a text to list.
func (a *analysis) nestedText(list *[]command, text string) {
	in := a.j.analyze(text, a.lang, a.deep+1, a.dirs, a.left)
	*list = append(*list, in.commands...)
	a.accesses = append(a.accesses, in.accesses...)
	if len(in.dirs) > len(a.dirs) && len(in.dirs) <= maxDirs {
		a.dirs = in.dirs // those of eval and trap are those of the text
	}
	if in.hidden != "" {
		a.hide("%s", in.hidden)
	}
	if in.altered != "" {
		a.alter("%s", in.altered)
	}
}

// shell handles sh -c. What comes after the options may be the text, a value of an option, or a word for the text.
func (a *analysis) shell(cmd *command, args []word) {
	text, start := false, 0
	for start < len(args) && (args[start].isOption() || strings.HasPrefix(args[start].text, "+")) && !args[start].is("-") {
		text = text || !strings.HasPrefix(args[start].text, "--") && strings.Contains(args[start].text, "c")
		start++
	}
	switch exact := start == 1 && len(args) == 2 && (args[0].is("-c") || args[0].is("-ec")); {
	case exact:
		cmd.plain = true
		a.nested(cmd, args[1:])
	case slices.ContainsFunc(args[:start], func(w word) bool { return !w.known() }):
		a.hide("an option of a shell that is not known")
	case len(args) == 1 && (args[0].is("--version") || args[0].is("--help")):
	case start == len(args) || args[start].is("-") || slices.ContainsFunc(args[:start], func(w word) bool { return w.is("-s") }):
		a.hide("a shell runs what it reads")
	case text || start > 0: // -o and its like take a word
		for _, w := range args[start:] {
			if text && (!w.known() || strings.TrimSpace(w.text) != "") {
				a.nested(cmd, []word{w})
			}
		}
		for i, w := range args[start:] { // -o errexit -c text
			if !text && w.isOption() && strings.Contains(w.text, "c") && start+i+1 < len(args) {
				a.nested(cmd, args[start+i+1:])
			}
		}
	}
}

// found handles the commands that find and fd run for what they find.
func (a *analysis) found(cmd *command, args []word, depth int) {
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(args[i].text, "=")
		switch {
		case joined && strings.HasPrefix(name, "--exec"):
			a.nestedText(&cmd.inner, value)
			a.hide("the option %s runs a command", name)
			continue
		case cmd.words[0].text != "find" && len(name) > 2 && name[0] == '-' && name[1] != '-' && strings.ContainsAny(name, "xX"):
			a.hide("the option %s of fd runs a command", name)
			continue
		case !slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"}, name):
			continue
		}
		end := i + 1
		var words []word
		for ; end < len(args) && !args[end].is(";") && !(args[end].is("+") && end > i+1 && args[end-1].is("{}")); end++ {
			w := args[end]
			w.text = strings.ReplaceAll(w.text, "{}", string(rune(hole)))
			words = append(words, w)
		}
		if len(words) > 0 {
			if in, ok := a.command(words, depth+1); ok {
				cmd.inner, cmd.at = append(cmd.inner, in), i+2
			}
		}
		i = end
	}
}
