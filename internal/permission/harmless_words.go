package permission

import (
	"slices"
	"strings"
	"sync"

	"loki/internal/environ"
)

// wraps is for commands that only run another one.
func wraps(c *command) string {
	if c.words[0].is("exec") && len(c.words) == 1 {
		return "" // its redirections are judged
	}
	if len(c.inner) == 0 && !c.outer { // what runs an empty text runs nothing
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
		if !w.known() || environ.SecretName(w.text) {
			return "a variable that may hold a secret"
		}
	}
	return ""
}

// wcWords refuses a list of files to read, which was not judged.
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
