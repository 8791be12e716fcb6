package permission

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// program says when a command is harmless: it then reads nothing outside the workspace,
// and neither writes nor runs anything.
type program struct {
	text    bool     // its words are only text: it opens no files
	letters string   // letters of options that are not harmless
	long    []string // and long options, which may be abbreviated
	// pattern marks programs whose first operand is a pattern or script, no file, unless one
	// comes with -e or -f; values are letters of their options that take the next word.
	pattern bool
	values  string
	delim   byte // letter of the option whose value is a separator
	check   func(c *command) string
}

// programs that are harmless by construction, with the exceptions that their options make.
var programs = sync.OnceValue(func() map[string]program {
	return map[string]program{
		"echo": {text: true}, "true": {text: true}, "false": {text: true}, ":": {text: true},
		"basename": {text: true}, "dirname": {text: true}, "sleep": {text: true}, "seq": {text: true}, "pwd": {text: true},
		"whoami": {text: true}, "id": {text: true}, "uname": {text: true}, "uptime": {text: true}, "nproc": {text: true}, "arch": {text: true, check: alone},
		"tty": {text: true}, "groups": {text: true}, "logname": {text: true}, "expr": {text: true}, "factor": {text: true}, "cal": {text: true},
		"type": {text: true}, "which": {text: true}, "shift": {text: true}, "break": {text: true}, "continue": {text: true}, "wait": {text: true, check: numbers},
		"return": {text: true, check: numbers}, "exit": {text: true, check: numbers}, "getconf": {text: true}, "free": {text: true},
		"printf": {text: true, check: printfWords}, "command": {text: true, check: commandV}, "cd": {}, "test": {text: true, check: testWords}, "[": {text: true, check: testWords},
		"read": {text: true, check: readWords}, "set": {text: true, check: setWords}, "trap": {text: true}, "date": {text: true, check: dateWords},
		"hostname": {text: true, check: none}, "ps": {text: true, check: psWords}, "df": {text: true}, "printenv": {text: true, check: printenvWords},

		"cat": {}, "head": {}, "tail": {}, "nl": {}, "tac": {}, "rev": {}, "cut": {delim: 'd'}, "tr": {text: true}, "comm": {}, "cmp": {}, "fold": {}, "fmt": {},
		"column": {delim: 's'}, "expand": {}, "unexpand": {}, "paste": {delim: 'd'}, "join": {delim: 't'}, "od": {}, "hexdump": {}, "strings": {}, "md5sum": {}, "sha1sum": {},
		"sha256sum": {}, "sha512sum": {}, "b2sum": {}, "cksum": {}, "sum": {}, "stat": {}, "readlink": {}, "realpath": {},
		"wc": {check: wcWords}, "export": {text: true, check: exportWords},
		"du":   {letters: "LD", long: []string{"--dereference", "--files0-from", "--dereference-args"}},
		"diff": {letters: "lr", long: []string{"--paginate", "--recursive"}}, // it follows links below a directory
		"file": {letters: "CfzZ", long: []string{"--compile", "--files-from", "--uncompress", "--uncompress-noreport"}},
		"ls":   {letters: "L", long: []string{"--dereference"}}, "tree": {letters: "oRl", long: []string{"--output", "--fromfile"}},
		"sort": {delim: 't', letters: "oT", long: []string{"--output", "--compress-program", "--temporary-directory", "--files0-from"}},
		"uniq": {check: oneOperand}, "xxd": {letters: "r", check: oneOperand},
		"grep": {pattern: true, values: "ABCmdD", letters: "R", long: []string{"--dereference-recursive"}}, "egrep": {pattern: true, values: "ABCmdD", letters: "R", long: []string{"--dereference-recursive"}},
		"fgrep": {pattern: true, values: "ABCmdD", letters: "R", long: []string{"--dereference-recursive"}},
		"rg":    {pattern: true, values: "ABCgtTmjdEMr", letters: "Lz", long: []string{"--pre", "--pre-glob", "--hostname-bin", "--follow", "--search-zip"}},
		"find":  {check: findWords}, "sed": {pattern: true, check: sedWords}, "awk": {pattern: true, values: "v", delim: 'F', check: awkWords}, "gawk": {pattern: true, values: "v", delim: 'F', check: awkWords}, "mawk": {pattern: true, values: "v", delim: 'F', check: awkWords},
		"jq": {pattern: true, letters: "fL", long: []string{"--from-file"}, check: jqWords}, "git": {check: gitWords}, "go": {check: goWords},
		"xargs": {check: xargsWords}, "env": {check: wraps}, "nohup": {text: true, check: wraps}, "nice": {text: true, check: wraps},
		"ionice": {text: true, check: wraps}, "time": {text: true, check: wraps}, "timeout": {text: true, check: wraps}, "stdbuf": {text: true, check: wraps},
		"setsid": {text: true, check: wraps}, "builtin": {text: true, check: wraps}, "exec": {text: true, check: wraps}, "eval": {text: true, check: wraps},
		"noglob": {text: true, check: wraps}, "nocorrect": {text: true, check: wraps}, "gtime": {text: true, check: wraps}, "caffeinate": {text: true, check: wraps},
		"sh": {text: true, check: wraps}, "bash": {text: true, check: shellVersion}, "dash": {text: true, check: wraps},
		// Not yarn, npm, pnpm, node, python, ruby, cargo, rustc and their like: even for --version they may be
		// front ends that run, or first fetch, what a file of the project names.
		"gcc": {text: true, check: versionOnly}, "clang": {text: true, check: versionOnly}, "make": {text: true, check: versionOnly},
		"docker": {text: true, check: versionOnly}, "curl": {text: true, check: versionOnly},
	}
})

// meaningful reports whether the analysis relies on what a name stands for.
func meaningful(name string) bool {
	_, harmless := programs()[name]
	_, wraps := wrappers()[name]
	return harmless || wraps || slices.Contains(shells, name)
}

// harmless returns why a command is not harmless, or nothing if it is.
func (j *Judge) harmless(c *command) string {
	name := programName(c.words[0].text)
	p, ok := programs()[name]
	if !ok {
		return "no rule allows " + shown(c.words)
	}
	if c.unclear != "" {
		return c.unclear
	}
	strict := p.letters != "" || p.long != nil
	files := p.files(c.words)
	for i, w := range c.words[1:] {
		if strict && w.isOption() {
			if w.numeric {
				continue
			}
			if !w.known() {
				return shown(c.words) + " may have an option that is not known"
			}
			if bad := p.option(w.text); bad {
				return "the option " + w.text + " of " + name
			}
		}
		if files[i] {
			if why := j.readable(w, c); why != "" {
				return why
			}
		}
	}
	if j.shell.evaluates {
		if why := evaluates(c); why != "" {
			return why
		}
	}
	if p.check != nil {
		return p.check(c)
	}
	return ""
}

// files tells of each word after the first whether it may name a file.
func (p *program) files(words []word) []bool {
	files := make([]bool, len(words)-1)
	if p.text {
		return files
	}
	name := programName(words[0].text)
	given := false // the pattern is the value of an option
	for _, w := range words[1:] {
		short := len(w.text) > 1 && w.text[0] == '-' && w.text[1] != '-'
		given = given || !w.known() && w.isOption() || short && strings.ContainsAny(w.text, "ef") ||
			strings.HasPrefix(w.text, "--re") && w.text != "--recursive" || strings.HasPrefix(w.text, "--fi") && w.text != "--fixed-strings" ||
			w.is("--expression") || w.is("--type-list")
	}
	operand := false // an operand or -- came, after which some programs know no options
	for i := 1; i < len(words); i++ {
		w := words[i]
		sure := !operand && (i == 1 || !p.takesValue(words[i-1]))
		operand = operand || w.is("--") || !w.isOption()
		switch {
		case name == "find" && (strings.HasPrefix(w.text, "-") || w.is("(") || w.is("!")):
			return files // only conditions follow
		case name == "xargs" || name == "env" || name == "git":
			return files // judged by themselves
		case sure && p.delim != 0 && w.is("-"+string(p.delim)) && i+1 < len(words) && len(words[i+1].text) <= 1:
			i++ // what is longer is looked at as if it were a file
		case sure && p.delim != 0 && strings.HasPrefix(w.text, "-"+string(p.delim)):
		case sure && p.pattern && name != "jq" && (w.is("-e") || name == "sed" && (w.is("-ne") || w.is("--expression"))):
			i++
		case p.pattern && !given && len(w.text) == 2 && w.text[0] == '-' && w.known() && strings.IndexByte(p.values, w.text[1]) >= 0:
			i++
			if i < len(words) {
				files[i-1] = true
			}
		case p.pattern && !given && !strings.HasPrefix(w.text, "-"):
			given = true
		default:
			files[i-1] = true
		}
	}
	return files
}

// takesValue reports whether a word may be an option whose value is the word after it.
func (p *program) takesValue(w word) bool {
	switch {
	case !w.isOption():
		return false
	case !w.known(), strings.HasPrefix(w.text, "--"):
		return !strings.Contains(w.text, "=")
	case p.pattern:
		return strings.ContainsAny(w.text[1:], p.values+"ef")
	}
	return false
}

// option reports whether a word that is an option is not harmless.
func (p *program) option(w string) bool {
	if name, ok := strings.CutPrefix(w, "--"); ok {
		name, _, _ = strings.Cut(name, "=")
		if name == "" {
			return false
		}
		return slices.ContainsFunc(p.long, func(l string) bool { return strings.HasPrefix(l[2:], name) })
	}
	return strings.ContainsAny(w[1:], p.letters)
}

// readable returns why a word may name something to read outside the workspace.
func (j *Judge) readable(w word, c *command) string {
	if w.numeric {
		return ""
	}
	if w.found {
		return ""
	}
	if strings.IndexByte(w.text, hole) >= 0 || w.many {
		return "it is not known what " + shown(c.words) + " reads"
	}
	for _, p := range candidates(w.text) {
		if w.glob && strings.ContainsAny(p, "*?[") {
			if why := j.readableGlob(p, c.dirs); why != "" {
				return why
			}
			continue
		}
		if p == "/dev/null" || p == "/dev/stdin" || descriptor(p) {
			continue
		}
		l := j.tree.locate(p, c.dirs)
		switch r := j.readingRule(l); {
		case r != nil && r.Action != Allow:
			return p + " is what a rule is about: " + r.String()
		case !l.inside && r == nil:
			return p + " is outside the workspace " + j.tree.root
		}
	}
	return ""
}

// candidates returns the parts of a word that may name files: itself, the value of a long
// option, what follows the letter of a short one.
func candidates(text string) []string {
	out := []string{text}
	if strings.HasPrefix(text, "-") {
		if _, v, ok := strings.Cut(text, "="); ok {
			out = append(out, v)
		}
		for i := 2; i < len(text) && text[i] != '='; i++ {
			if strings.IndexByte("/~.", text[i]) >= 0 {
				out = append(out, text[i:])
			}
		}
	} else if _, v, ok := strings.Cut(text, "="); ok && v != "" {
		out = append(out, v)
	}
	if _, v, ok := strings.Cut(text, ":"); ok && v != "" {
		out = append(out, v)
	}
	if v, ok := strings.CutPrefix(text, "@"); ok && v != "" {
		out = append(out, v) // a file with more words, to the tools of binutils
	}
	return out
}

// descriptor reports whether a path is that of a file which is open already.
func descriptor(path string) bool {
	number, ok := strings.CutPrefix(path, "/dev/fd/")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

// readingRule returns the rule with a path that says whether shell tools may read there,
// nil if there is none.
func (j *Judge) readingRule(l located) *Rule {
	var best match
	for _, r := range j.rules(j.o.ShellTools[0]) {
		if len(r.Paths) == 0 || r.Access == Writing {
			continue
		}
		if n, ok := j.tree.matches(r, l); ok {
			best.add(r, n)
		}
	}
	return best.rule
}

// readableGlob returns why names that match a pattern may lead outside the workspace: one
// of the directories on the way may hold a link that does. Anything in a directory counts
// as a match.
func (j *Judge) readableGlob(pattern string, from []string) string {
	const most = 2000 // names that are looked at
	parts := strings.Split(pattern, "/")
	first := slices.IndexFunc(parts, func(p string) bool { return strings.ContainsAny(p, "*?[") })
	prefix := strings.Join(parts[:first], "/")
	if first == 1 && prefix == "" {
		return pattern + " is outside the workspace " + j.tree.root
	}
	if prefix == "" {
		prefix = "."
	}
	if strings.Contains(pattern[len(prefix):], "..") || slices.Contains(parts[first:], "**") {
		return "it is not known what " + pattern + " matches"
	}
	l := j.tree.locate(prefix, from)
	if !l.inside {
		return prefix + " is outside the workspace " + j.tree.root
	}
	dirs, seen := l.all, 0
	for range parts[first:] {
		var next []string
		for _, dir := range dirs {
			entries, err := os.ReadDir(dir)
			if err != nil {
				continue
			}
			if seen += len(entries); seen > most {
				return "too many files match " + pattern
			}
			for _, e := range entries {
				name := filepath.Join(dir, e.Name())
				if e.Type()&os.ModeSymlink != 0 && !within(j.tree.root, resolve(name)) {
					return name + " leads outside the workspace " + j.tree.root
				}
				if e.Type()&os.ModeSymlink != 0 || e.IsDir() {
					next = append(next, name)
				}
			}
		}
		dirs = next
	}
	return ""
}
