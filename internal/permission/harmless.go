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
		"diff": {letters: "l", long: []string{"--paginate"}},
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
		"node": {text: true, check: versionOnly}, "npm": {text: true, check: versionOnly}, "python": {text: true, check: versionOnly},
		"python3": {text: true, check: versionOnly}, "pip": {text: true, check: versionOnly}, "ruby": {text: true, check: versionOnly},
		"cargo": {text: true, check: versionOnly}, "rustc": {text: true, check: versionOnly}, "gcc": {text: true, check: versionOnly},
		"clang": {text: true, check: versionOnly}, "make": {text: true, check: versionOnly}, "docker": {text: true, check: versionOnly},
		"curl": {text: true, check: versionOnly}, "perl": {text: true, check: versionOnly}, "php": {text: true, check: versionOnly},
		"yarn": {text: true, check: versionOnly}, "pnpm": {text: true, check: versionOnly}, "deno": {text: true, check: versionOnly},
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

// wraps is for commands that only run another one.
func wraps(c *command) string {
	if c.words[0].is("exec") && len(c.words) == 1 {
		return "" // its redirections are judged
	}
	if len(c.inner) == 0 && !(c.outer && len(c.words) > 1) {
		return "no rule allows " + shown(c.words)
	}
	return ""
}

func shellVersion(c *command) string {
	if len(c.words) == 2 && c.words[1].is("--version") {
		return ""
	}
	return wraps(c)
}

func versionOnly(c *command) string {
	if len(c.words) == 2 && (c.words[1].is("--version") || c.words[1].is("-V")) {
		return ""
	}
	return "no rule allows " + shown(c.words)
}

func exportWords(c *command) string {
	for _, w := range c.words[1:] {
		if name, _, _ := strings.Cut(w.text, "="); !harmlessVariable(name) {
			return "the variable " + shown([]word{{text: name}}) + " can change what programs do"
		}
	}
	return ""
}

// alone is for arch, which on macOS runs the command that comes with it.
func alone(c *command) string {
	if len(c.words) == 1 {
		return ""
	}
	return "no rule allows " + shown(c.words)
}

func none(c *command) string {
	if len(c.words) == 1 {
		return ""
	}
	return shown(c.words) + " may change the name of the computer"
}

func numbers(c *command) string {
	for _, w := range c.words[1:] {
		if !w.numeric && (!w.known() || strings.Trim(w.text, "0123456789") != "") {
			return "a status that is not known to be a number"
		}
	}
	return ""
}

func printfWords(c *command) string {
	if len(c.words) > 1 && (c.words[1].isOption() && !c.words[1].is("--") && !(c.words[1].known() && strings.HasPrefix(c.words[1].text, "---"))) {
		return "printf may set a variable"
	}
	return ""
}

func commandV(c *command) string {
	if len(c.words) > 1 && (c.words[1].is("-v") || c.words[1].is("-V")) {
		return ""
	}
	return wraps(c)
}

// testOperators are those between two operands, or before one.
var testOperators = sync.OnceValue(func() []string {
	return strings.Fields("= == != < > -eq -ne -lt -le -gt -ge -nt -ot -ef -z -n -f -d -e -s -r -w -x -L -h -b -c -p -S -t -u -g -k -O -G ! -a -o")
})

// testWords refuses operators that are not known: one of them, -v, evaluates its operand.
func testWords(c *command) string {
	operator := func(i int) bool {
		return i > 0 && i < len(c.words) && c.words[i].known() && slices.Contains(testOperators(), c.words[i].text)
	}
	for i, w := range c.words[1:] {
		switch {
		case w.is("-v") || w.is("-R"):
			return "a test that evaluates its operand"
		case w.many && !w.numeric:
			return "a test whose operands are not known"
		case !w.known() && !w.numeric && !operator(i) && !operator(i+2):
			return "a test whose operator is not known"
		}
	}
	return ""
}

// evaluating are commands of the shell that, in some shells, evaluate numbers among their
// words as expressions, which can run commands.
var evaluating = []string{"printf", "test", "[", "shift", "break", "continue", "return", "exit", "set", "read", "wait"}

// evaluates returns why a command may run something in such a shell.
func evaluates(c *command) string {
	if !slices.Contains(evaluating, c.words[0].text) {
		return ""
	}
	for _, w := range c.words[1:] {
		if !w.known() && !w.numeric || strings.Contains(w.text, "[") {
			return "the shell may evaluate a word of " + c.words[0].text
		}
	}
	return ""
}

func readWords(c *command) string {
	args := c.words[1:]
	for len(args) > 0 && args[0].known() && strings.HasPrefix(args[0].text, "-") {
		switch args[0].text {
		case "-r", "-s", "-rs":
		case "-d", "-n", "-p", "-t", "-rd", "-rn", "-rp", "-rt":
			if len(args) < 2 {
				return "read with options that are not analysed"
			}
			args = args[1:]
		default:
			return "read with options that are not analysed"
		}
		args = args[1:]
	}
	for _, w := range args {
		if !w.known() || !lowercaseName(w.text) {
			return "read sets a variable that can change what programs do"
		}
	}
	return ""
}

func setWords(c *command) string {
	for i, w := range c.words[1:] {
		if !w.known() || w.text == "" {
			return "set with words that are not known"
		}
		if w.text == "pipefail" && i > 0 && strings.HasSuffix(c.words[i].text, "o") {
			continue
		}
		if (w.text[0] != '-' && w.text[0] != '+') || len(w.text) < 2 || strings.Trim(w.text[1:], "euxof") != "" {
			return "set may change what the shell does"
		}
	}
	return ""
}

func dateWords(c *command) string {
	for i, w := range c.words[1:] {
		switch {
		case !w.known():
			return "date with words that are not known"
		case strings.HasPrefix(w.text, "+"), w.is("-u"), w.is("-R"), strings.HasPrefix(w.text, "-I"), w.is("-d"), w.is("--utc"),
			strings.HasPrefix(w.text, "--date="), strings.HasPrefix(w.text, "--iso-8601"), strings.HasPrefix(w.text, "--rfc-"), w.is("-r"), w.is("-Iseconds"):
		case i > 0 && (c.words[i].is("-d") || c.words[i].is("-r")):
		default:
			return "date may set the clock"
		}
	}
	return ""
}

func psWords(c *command) string {
	for _, w := range c.words[1:] {
		if !w.known() || strings.Contains(w.text, "env") || w.text != "" && w.text[0] != '-' && strings.Trim(w.text, "auxwfljs0123456789,") != "" && !psColumns(w.text) || strings.HasPrefix(w.text, "-") && strings.Contains(w.text, "E") {
			return "ps may print the environment of programs"
		}
	}
	return ""
}

// psColumns reports whether a word is a list of columns, as for ps -o.
func psColumns(w string) bool {
	return strings.Contains(w, ",") && !strings.Contains(w, "env")
}

func printenvWords(c *command) string {
	if len(c.words) == 1 {
		return "printenv prints all variables, secrets included"
	}
	for _, w := range c.words[1:] {
		if !w.known() || secretName(w.text) {
			return "a variable that may hold a secret"
		}
	}
	return ""
}

// wcWords refuses a list of files to read, which nobody has judged.
func wcWords(c *command) string {
	for _, w := range c.words[1:] {
		if strings.HasPrefix(w.text, "--f") {
			return "the option " + w.text + " of wc"
		}
	}
	return ""
}

func oneOperand(c *command) string {
	operands := 0
	for _, w := range c.words[1:] {
		if !w.known() {
			return c.words[0].text + " with words that are not known may write"
		}
		if !strings.HasPrefix(w.text, "-") || w.text == "-" {
			operands++
		}
		if w.text == "--" {
			return c.words[0].text + " may write its second file"
		}
	}
	if operands > 1 {
		return c.words[0].text + " writes its second file"
	}
	return ""
}

// findTests are the words of find that neither write nor run anything.
var findTests = sync.OnceValue(func() []string {
	return strings.Fields(`-name -iname -path -ipath -wholename -iwholename -regex -iregex -type -xtype -maxdepth -mindepth -size -mtime
	-mmin -atime -amin -ctime -cmin -newer -perm -user -group -empty -print -print0 -not ! -a -and -o -or ( ) , -prune -ls -printf -depth
	-xdev -mount -links -readable -writable -executable -quit -false -true -regextype -nouser -nogroup -inum -samefile -newermt -daystart
	-exec ;`)
})

// amount reports whether a word is a number with a unit, as in -size -10k.
func amount(w string) bool {
	return w != "" && w[0] >= '0' && w[0] <= '9' && strings.Trim(w, "0123456789kMGcbw") == ""
}

func findWords(c *command) string {
	if c.unclear != "" {
		return c.unclear
	}
	runs := false
	for _, w := range c.words[1:] {
		switch {
		case w.is("-exec"):
			runs = true
		case w.is(";") || w.is("+"):
			runs = false
		case runs: // judged by itself
		case w.isOption() && !w.known():
			return "find may have an option that is not known"
		case strings.HasPrefix(w.text, "-") && !slices.Contains(findTests(), w.text) && !amount(w.text[1:]):
			return "find with " + w.text
		}
	}
	return ""
}

func jqWords(c *command) string {
	for _, w := range c.words[1:] {
		if !w.known() && !w.numeric {
			return "a filter that is not known"
		}
		for _, name := range [...]string{"env", "$ENV", "import", "include", "input_filename", "getpath/"} {
			if name != "input_filename" && strings.Contains(w.text, name) {
				return "a filter that may read the environment or other files"
			}
		}
	}
	return ""
}

func goWords(c *command) string {
	if len(c.words) < 2 {
		return ""
	}
	for _, w := range c.words[2:] {
		if !w.known() {
			return "go with words that are not known"
		}
	}
	switch sub := c.words[1]; {
	case sub.is("version"), sub.is("help"):
		return ""
	case sub.is("doc"), sub.is("env"), sub.is("list"):
		for _, w := range c.words[2:] {
			if strings.HasPrefix(w.text, "-") && !slices.Contains([]string{"-f", "-json", "-m", "-deps", "-test", "-all", "-short", "-src", "-u"}, w.text) || sub.is("env") && w.is("-u") {
				return "the option " + w.text + " of go"
			}
		}
		return ""
	}
	return "no rule allows " + shown(c.words)
}

// xargsWords: what comes in is not known, and neither is what the command makes of it.
func xargsWords(c *command) string { return wraps(c) }

// sedWords allows scripts that print, delete and substitute.
func sedWords(c *command) string {
	script, given := "", false
	args := c.words[1:]
	var operands []word
	for i := 0; i < len(args); i++ {
		w := args[i]
		switch {
		case !w.known() && (w.isOption() || !given):
			return "sed with words that are not known"
		case w.is("-e"), w.is("--expression"), w.is("-ne"):
			if i+1 >= len(args) || !args[i+1].known() {
				return "sed with a script that is not known"
			}
			i++
			script += args[i].text + ";"
			given = true
		case len(w.text) > 1 && w.text[0] == '-' && strings.Trim(w.text[1:], "nErsu") == "",
			w.is("--quiet"), w.is("--silent"), w.is("--regexp-extended"), w.is("--posix"):
		case strings.HasPrefix(w.text, "-"):
			return "the option " + w.text + " of sed"
		default:
			operands = append(operands, w)
			if len(operands) == 1 && !given && !slices.ContainsFunc(args[i+1:], func(w word) bool { return w.is("-e") || w.is("-ne") || w.is("--expression") }) {
				script, given = w.text, true
			}
		}
	}
	if !printing(script) {
		return "a sed script that may write or run something"
	}
	return ""
}

// printing reports whether a sed script has only addresses, the commands p, d, q, = and l,
// and substitutions with the flags g, p, i, I and numbers.
func printing(s string) bool {
	for {
		s = strings.TrimLeft(s, " ;")
		if s == "" {
			return true
		}
		for range 2 { // addresses
			switch {
			case s != "" && (s[0] >= '0' && s[0] <= '9' || s[0] == '$'):
				s = strings.TrimLeft(s, "0123456789$~+")
			case s != "" && s[0] == '/':
				end := delimited(s[1:], '/')
				if end < 0 {
					return false
				}
				s = strings.TrimLeft(s[1+end+1:], "I")
			}
			s = strings.TrimLeft(s, " ")
			if !strings.HasPrefix(s, ",") {
				break
			}
			s = strings.TrimLeft(s[1:], " +~")
		}
		s = strings.TrimLeft(s, " !")
		if s == "" {
			return false
		}
		switch s[0] {
		case 'p', 'd', 'q', '=', 'l', 'n', 'N', 'D', 'P', 'h', 'H', 'g', 'G', 'x':
			s = s[1:]
		case 's':
			if len(s) < 2 || strings.IndexByte("/|#,:@!_%+", s[1]) < 0 {
				return false
			}
			sep := s[1]
			a := delimited(s[2:], sep)
			if a < 0 {
				return false
			}
			b := delimited(s[2+a+1:], sep)
			if b < 0 {
				return false
			}
			s = strings.TrimLeft(s[2+a+1+b+1:], "gpiI0123456789")
		default:
			return false
		}
		s = strings.TrimLeft(s, " ")
		if s != "" && s[0] != ';' {
			return false
		}
	}
}

// delimited returns where the text before a separator ends, -1 if it does not. Brackets
// and line feeds, in which seds differ, end it too soon.
func delimited(s string, sep byte) int {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
			if i < len(s) && s[i] == '\n' {
				return -1
			}
		case '\n':
			return -1
		case '[':
			if i = bracket(s, i, sep); i < 0 {
				return -1
			}
		case sep:
			return i
		}
	}
	return -1
}

// bracket returns where the bracket expression that begins at i ends, -1 if seds may not
// agree on that.
func bracket(s string, i int, sep byte) int {
	for i++; i < len(s); i++ {
		switch {
		case s[i] == sep || s[i] == '\n' || s[i] == '\\' && i+1 < len(s) && s[i+1] == ']':
			return -1
		case s[i] == '[' && i+1 < len(s) && strings.IndexByte(":.=", s[i+1]) >= 0:
			end := strings.Index(s[i+2:], string(s[i+1])+"]")
			if end < 0 || strings.IndexByte(s[i:i+2+end], sep) >= 0 {
				return -1
			}
			i += 2 + end + 1
		case s[i] == ']':
			if s[i-1] == '[' || s[i-1] == '^' {
				return -1
			}
			return i
		}
	}
	return -1
}

// awkWords allows programs that only print.
func awkWords(c *command) string {
	args := c.words[1:]
	for len(args) > 0 {
		w := args[0]
		if !w.known() {
			return "awk with words that are not known"
		}
		if w.is("-F") || w.is("-v") {
			if len(args) < 2 || !args[1].known() {
				return "awk with words that are not known"
			}
			args = args[2:]
			continue
		}
		if strings.HasPrefix(w.text, "-F") {
			args = args[1:]
			continue
		}
		break
	}
	if len(args) == 0 || strings.HasPrefix(args[0].text, "-") {
		return "awk with options that are not analysed"
	}
	program := strings.ReplaceAll(strings.ReplaceAll(args[0].text, "||", ""), ">=", "")
	if strings.ContainsAny(program, "|>@<`") || !onlyPrints(program) {
		return "an awk program that may write, read or run something else"
	}
	for _, w := range args[1:] {
		if strings.HasPrefix(w.text, "-") {
			return "awk with options that are not analysed"
		}
	}
	return ""
}

func onlyPrints(program string) bool {
	for _, name := range [...]string{"system", "getline", "ARGV", "ARGC", "ENVIRON", "PROCINFO", "SYMTAB", "FUNCTAB", "FILENAME=", "close", "fflush", "include", "load", "extension"} {
		if strings.Contains(program, name) {
			return false
		}
	}
	return true
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
