package permission

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// dialectOf returns the languages in which the shell of a name may read a text, none if the text cannot be
// analyzed. What is called sh may be any of several shells.
func dialectOf(name string) []syntax.LangVariant {
	switch name {
	case "bash", "rbash":
		return []syntax.LangVariant{syntax.LangBash}
	case "sh", "ash", "dash", "busybox":
		return []syntax.LangVariant{syntax.LangPOSIX, syntax.LangBash}
	case "ksh", "mksh", "oksh", "ksh93":
		return []syntax.LangVariant{syntax.LangMirBSDKorn, syntax.LangBash}
	case "zsh":
		return []syntax.LangVariant{syntax.LangZsh, syntax.LangBash}
	}
	return nil
}

const (
	maxText     = 64 << 10 // bytes of a text that is analyzed
	maxNested   = 8        // texts and wrappers within each other
	maxCommands = 2000     // commands that are analyzed for one call
	maxWords    = 500      // words of a command that are compared
	maxDirs     = 16       // directories in which the commands of a text may run
)

// analysis is what a text does, as far as the text shows it.
type analysis struct {
	j        *Judge
	lang     syntax.LangVariant
	left     *int // how many commands may still be analyzed
	deep     int
	commands []command
	accesses []access
	dirs     []string // where commands may run
	// hidden says why the text may run commands that are not in commands, altered why a command may do something
	// else than its words say. Empty if neither is so.
	hidden, altered string
}

// access is a file that a redirection opens.
type access struct {
	path word
	use  Access
}

// analyze returns what a text does in a language, in the directories dirs.
func (j *Judge) analyze(text string, lang syntax.LangVariant, deep int, dirs []string, left *int) *analysis {
	a := &analysis{j: j, lang: lang, deep: deep, dirs: slices.Clone(dirs), left: left, hidden: strange(text)}
	switch {
	case len(text) > maxText:
		a.hide("the text is too long")
		return a
	case deep > maxNested:
		a.hide("too many commands within commands")
		return a
	}
	file, err := syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(text), "")
	if err != nil {
		a.hide("the text cannot be read as %s: %v", lang, err)
		return a
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		a.node(n)
		return *a.left >= 0
	})
	return a
}

// hide notes the first reason for which the text may run what is not seen.
func (a *analysis) hide(format string, args ...any) {
	if a.hidden == "" {
		a.hidden = fmt.Sprintf(format, args...)
	}
}

// alter notes the first reason for which commands may do something else than their words say.
func (a *analysis) alter(format string, args ...any) {
	if a.altered == "" {
		a.altered = fmt.Sprintf(format, args...)
	}
}

// node looks at one node of the text; those below it have their turn, too.
func (a *analysis) node(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.CallExpr:
		a.call(n)
	case *syntax.Redirect:
		a.redirect(n)
	case *syntax.Assign:
		a.assign(n)
	case *syntax.DeclClause:
		if v := n.Variant.Value; v != "export" && v != "local" && v != "readonly" {
			a.hide("%s can change what variables mean", v)
		}
		a.commands = append(a.commands, command{words: []word{{text: n.Variant.Value}, {text: string(rune(hole)), many: true}}})
	case *syntax.ParamExp:
		if n.Param == nil || n.Excl || n.Flags != nil || n.NestedParam != nil || len(n.Modifiers) > 0 || n.GlobSubst != syntax.OptUnset ||
			n.Index != nil && unsure(n.Index) || n.Slice != nil && (n.Slice.Offset != nil && unsure(n.Slice.Offset) || n.Slice.Length != nil && unsure(n.Slice.Length)) || n.Exp != nil && n.Exp.Op == syntax.OtherParamOps {
			a.hide("the text has an expansion that can run code")
		}
	case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop:
		if unsure(n) { // shells evaluate the values of variables in it again, substitutions included
			a.hide("an expression with values that are not known to be numbers")
		}
	case *syntax.BinaryTest:
		if n.Op >= syntax.TsEql && n.Op <= syntax.TsGtr {
			for _, x := range []syntax.TestExpr{n.X, n.Y} {
				if w, ok := x.(*syntax.Word); !ok || strings.Trim(w.Lit(), "0123456789-") != "" || w.Lit() == "" {
					a.hide("a comparison of values that are not known to be numbers")
				}
			}
		}
	case *syntax.UnaryTest:
		if n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar {
			a.hide("a test that evaluates its operand")
		}
	case *syntax.Word:
		if lit := n.Lit(); a.lang == syntax.LangZsh && len(lit) > 1 && (lit[0] == '=' || strings.ContainsAny(lit, "(^#")) {
			a.hide("a word with a special meaning in zsh")
		}
	case *syntax.CoprocClause, *syntax.TestDecl:
		a.hide("the text has a construct that is not analyzed")
	}
}

// unsure reports whether an expression has anything but numbers in it.
func unsure(x syntax.Node) (found bool) {
	for n := range syntax.Preorder(x) {
		switch n := n.(type) {
		case *syntax.Lit:
			found = found || strings.Trim(n.Value, "0123456789@*") != ""
		case *syntax.ParamExp, *syntax.CmdSubst, *syntax.ProcSubst, *syntax.SglQuoted, *syntax.DblQuoted, *syntax.FlagsArithm, *syntax.ExtGlob:
			found = true
		}
	}
	return found
}

// quiet are variables that change how programs print or what they are asked to build, and not which code they run.
const quiet = " LANG LANGUAGE TZ TERM NO_COLOR FORCE_COLOR CI NODE_ENV GOOS GOARCH GOARM CGO_ENABLED DEBUG VERBOSE RUST_BACKTRACE RUST_LOG RAILS_ENV APP_ENV PYTHONUNBUFFERED GIT_TERMINAL_PROMPT GIT_OPTIONAL_LOCKS DEBIAN_FRONTEND "

// assign looks at an assignment, also one before a command or in export.
func (a *analysis) assign(n *syntax.Assign) {
	if n.Name == nil {
		a.hide("a declaration whose words are not known")
		return
	}
	name := n.Name.Value
	lower := strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == "" && a.lang != syntax.LangZsh && !strings.HasPrefix(name, "npm_") && !strings.HasSuffix(name, "_proxy")
	if !lower && !strings.HasPrefix(name, "LC_") && !strings.Contains(quiet, " "+name+" ") {
		a.alter("the variable %s can change what programs do", name)
	}
	if n.Array != nil && slices.ContainsFunc(n.Array.Elems, func(e *syntax.ArrayElem) bool { return e.Index != nil }) || n.Index != nil && unsure(n.Index) || n.Value != nil && evaluated(a.words(n.Value)) || n.Array != nil && a.lang == syntax.LangZsh {
		a.hide("a value that can run code")
	}
}

// evaluated reports whether words hold a command that a shell may run when it looks at them again.
func evaluated(words []word) bool {
	return slices.ContainsFunc(words, func(w word) bool { return strings.Contains(w.text, "$(") || strings.Contains(w.text, "`") })
}

// redirect looks at what a redirection opens.
func (a *analysis) redirect(r *syntax.Redirect) {
	use := Writing
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc, syntax.DplIn:
		return
	case syntax.RdrIn:
		use = Reading
	case syntax.DplOut:
		if lit := r.Word.Lit(); lit != "" && strings.Trim(lit, "0123456789-") == "" {
			return
		}
	}
	path := word{text: string(rune(hole))}
	if words := a.words(r.Word); len(words) == 1 {
		path = words[0]
	}
	if !slices.ContainsFunc([]string{"/dev/null", "/dev/stdout", "/dev/stderr"}, path.is) {
		a.accesses = append(a.accesses, access{path: path, use: use})
	}
}

// call looks at a simple command.
func (a *analysis) call(c *syntax.CallExpr) {
	var words []word
	for _, w := range c.Args {
		words = append(words, a.words(w)...)
	}
	if *a.left--; *a.left < 0 {
		a.hide("too many commands")
		return
	}
	if len(words) == 0 {
		if len(c.Args) > 0 {
			a.hide("a command whose name is not known")
		}
		return
	}
	if cmd, ok := a.command(words, 0); ok {
		a.commands = append(a.commands, cmd)
	}
	if words[0].is("cd") {
		a.cd(words[1:])
	}
}

// cd notes that commands of the text may run somewhere else.
func (a *analysis) cd(args []word) {
	if len(args) != 1 || !args[0].known() || args[0].text == "" || args[0].text[0] == '-' || len(a.dirs) > maxDirs {
		a.hide("cd to a directory that is not known")
		a.alter("cd to a directory that is not known")
		return
	}
	for _, dir := range a.j.tree.locate(args[0].text, a.dirs).all {
		if !slices.Contains(a.dirs, dir) {
			a.dirs = append(a.dirs, dir)
		}
	}
}

// strange returns why shells, terminals and parsers may not agree on a text, empty if they do.
func strange(text string) string {
	if !utf8.ValidString(text) {
		return "the text is not valid UTF-8"
	}
	for _, r := range text {
		if r != '\n' && r != '\t' && (r < ' ' || r >= 0x7f) && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Z, r)) {
			return fmt.Sprintf("the text holds the character U+%04X", r)
		}
	}
	if trimmed := strings.TrimRight(text, `\`); (len(text)-len(trimmed))%2 == 1 {
		return "the text ends with a backslash"
	}
	for line := range strings.SplitSeq(text, "\n") {
		// Shells end a comment there. The parser takes the next line for more words of the command before it
		// (mvdan.cc/sh v3.14.1). Text in quotes may be mistaken for a comment.
		if strings.HasSuffix(line, `\`) && comment(line) {
			return "a line with a # ends with a backslash"
		}
	}
	return ""
}

// comment reports whether a line may have a comment.
func comment(line string) bool {
	for i := range len(line) {
		if line[i] == '#' && (i == 0 || strings.IndexByte(" \t;&|()<>`", line[i-1]) >= 0) {
			return true
		}
	}
	return false
}
