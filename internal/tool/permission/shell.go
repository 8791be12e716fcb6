package permission

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"loki/internal/base/text"

	"mvdan.cc/sh/v3/syntax"
)

// dialectOf returns the languages in which the shell of a name may read a text, none if the text cannot be
// analyzed. What is called sh may be any of several shells.
func dialectOf(name string) []syntax.LangVariant {
	first, ok := map[string]syntax.LangVariant{
		"bash": syntax.LangBash, "rbash": syntax.LangBash, "zsh": syntax.LangZsh, "sh": syntax.LangPOSIX, "ash": syntax.LangPOSIX, "dash": syntax.LangPOSIX, "busybox": syntax.LangPOSIX,
		"ksh": syntax.LangMirBSDKorn, "mksh": syntax.LangMirBSDKorn, "oksh": syntax.LangMirBSDKorn, "ksh93": syntax.LangMirBSDKorn,
	}[name]
	if !ok {
		return nil
	}
	return slices.Compact([]syntax.LangVariant{first, syntax.LangBash})
}

const (
	maxText     = 64 << 10 // bytes of a text that is analyzed
	maxNested   = 8        // texts and wrappers within each other
	maxCommands = 1000     // commands that are analyzed for one call
	maxWords    = 500      // words of a command that are compared
	maxDirs     = 16       // directories in which the commands of a text may run
)

// analysis is what a text does, as far as the text shows it.
type analysis struct {
	tree     workspace
	lang     syntax.LangVariant
	left     int // how many commands may still be analyzed
	deep     int // texts and wrappers around what is analyzed
	commands []command
	accesses []access
	dirs     []string // where commands may run
	hidden   doubt    // why the text may run commands that are not in commands
	altered  doubt    // why a command may do something else than its words say
}

// doubt is why something is not known, empty if it is.
type doubt string

// note keeps the first reason.
func (d *doubt) note(format string, args ...any) {
	if *d == "" {
		*d = doubt(fmt.Sprintf(format, args...))
	}
}

// access is a file that a redirection opens.
type access struct {
	path word
	use  Access
}

// text adds what a text does.
func (a *analysis) text(text string) {
	a.hidden = cmp.Or(a.hidden, doubt(strange(text)))
	if len(text) > maxText {
		a.hidden.note("the text is too long")
		return
	}
	file, err := syntax.NewParser(syntax.Variant(a.lang)).Parse(strings.NewReader(text), "")
	if err != nil {
		a.hidden.note("the text cannot be read as %s: %v", a.lang, err)
		return
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		a.node(n)
		return a.left >= 0
	})
}

// within returns the commands that add adds, which another command runs.
func (a *analysis) within(add func()) []command {
	outer := a.commands
	a.commands = nil
	if a.deep++; a.deep > maxNested {
		a.hidden.note("too many commands within commands")
	} else {
		add()
	}
	a.deep--
	inner := a.commands
	a.commands = outer
	return inner
}

// node looks at one node of the text; those below it have their turn, too.
func (a *analysis) node(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.CallExpr:
		var words []word
		for _, w := range n.Args {
			words = append(words, a.words(w)...)
		}
		if len(words) > 0 {
			a.add(words)
		} else if len(n.Args) > 0 {
			a.hidden.note("a command whose name is not known")
		}
	case *syntax.Redirect:
		a.redirect(n)
	case *syntax.Assign:
		a.assign(n)
	case *syntax.DeclClause:
		if v := n.Variant.Value; v != "export" && v != "local" && v != "readonly" {
			a.hidden.note("%s can change what variables mean", v)
		}
		a.commands = append(a.commands, command{words: []word{{text: n.Variant.Value}, unknown}})
	case *syntax.ParamExp:
		if n.Param == nil || n.Excl || n.Flags != nil || n.NestedParam != nil || len(n.Modifiers) > 0 || n.GlobSubst != syntax.OptUnset || unsure(n.Index) ||
			n.Slice != nil && (unsure(n.Slice.Offset) || unsure(n.Slice.Length)) || n.Exp != nil && n.Exp.Op == syntax.OtherParamOps {
			a.hidden.note("the text has an expansion that can run code")
		}
	case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop:
		if unsure(n) { // shells evaluate the values of variables in it again, substitutions included
			a.hidden.note("an expression with values that are not known to be numbers")
		}
	case *syntax.BinaryTest:
		if n.Op >= syntax.TsEql && n.Op <= syntax.TsGtr && (unsure(n.X) || unsure(n.Y)) {
			a.hidden.note("a comparison of values that are not known to be numbers")
		}
	case *syntax.UnaryTest:
		if n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar {
			a.hidden.note("a test that evaluates its operand")
		}
	case *syntax.Word:
		if lit := n.Lit(); a.lang == syntax.LangZsh && len(lit) > 1 && (lit[0] == '=' || strings.ContainsAny(lit, "(^#")) {
			a.hidden.note("a word with a special meaning in zsh")
		}
	case *syntax.CoprocClause, *syntax.TestDecl:
		a.hidden.note("the text has a construct that is not analyzed")
	}
}

// unsure reports whether an expression has anything but numbers in it.
func unsure(x syntax.Node) (found bool) {
	if x == nil {
		return false
	}
	for n := range syntax.Preorder(x) {
		switch n := n.(type) {
		case *syntax.Lit:
			found = found || strings.Trim(n.Value, "0123456789@*-") != ""
		case *syntax.ParamExp, *syntax.CmdSubst, *syntax.ProcSubst, *syntax.SglQuoted, *syntax.DblQuoted, *syntax.FlagsArithm, *syntax.ExtGlob:
			found = true
		}
	}
	return found
}

// quiet are variables that change how programs print or what they are asked to build, and not which code they run.
var quiet = strings.Fields(`LANG LANGUAGE TZ TERM NO_COLOR FORCE_COLOR CI NODE_ENV GOOS GOARCH GOARM CGO_ENABLED DEBUG VERBOSE RUST_BACKTRACE RUST_LOG RAILS_ENV APP_ENV PYTHONUNBUFFERED GIT_TERMINAL_PROMPT GIT_OPTIONAL_LOCKS DEBIAN_FRONTEND`)

// private are names of variables that programs do not read. Those of npm and of proxies are read in lower case, too.
var private = text.Regexp(`^[a-z0-9_]+$`)

// assign looks at an assignment, also one before a command or in export.
func (a *analysis) assign(n *syntax.Assign) {
	if n.Name == nil {
		a.hidden.note("a declaration whose words are not known")
		return
	}
	name := n.Name.Value
	lower := private().MatchString(name) && a.lang != syntax.LangZsh && !strings.HasPrefix(name, "npm_") && !strings.HasSuffix(name, "_proxy")
	if !lower && !strings.HasPrefix(name, "LC_") && !slices.Contains(quiet, name) {
		a.altered.note("the variable %s can change what programs do", name)
	}
	if n.Array != nil && (a.lang == syntax.LangZsh || slices.ContainsFunc(n.Array.Elems, func(e *syntax.ArrayElem) bool { return e.Index != nil })) ||
		unsure(n.Index) || n.Value != nil && slices.ContainsFunc(a.words(n.Value), word.evaluated) {
		a.hidden.note("a value that can run code")
	}
}

// redirect looks at what a redirection opens.
func (a *analysis) redirect(r *syntax.Redirect) {
	f := access{path: unknown, use: Writing}
	switch lit := r.Word.Lit(); r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc, syntax.DplIn:
		return
	case syntax.RdrIn:
		f.use = Reading
	case syntax.DplOut:
		if lit != "" && strings.Trim(lit, "0123456789-") == "" {
			return
		}
	}
	if words := a.words(r.Word); len(words) == 1 {
		f.path = words[0]
	}
	if !slices.ContainsFunc([]string{"/dev/null", "/dev/stdout", "/dev/stderr"}, f.path.is) {
		a.accesses = append(a.accesses, f)
	}
}

// cd notes that commands of the text may run somewhere else.
func (a *analysis) cd(args []word) {
	if len(args) != 1 || !args[0].known() || args[0].text == "" || args[0].text[0] == '-' || len(a.dirs) > maxDirs {
		a.hidden.note("cd to a directory that is not known")
		a.altered.note("cd to a directory that is not known")
		return
	}
	for _, dir := range a.tree.locate(args[0].text, a.dirs).all {
		if !slices.Contains(a.dirs, dir) {
			a.dirs = append(a.dirs, dir)
		}
	}
}

// Shells end a comment at a backslash at the end of its line. The parser takes the next line for more words of the command before it
// (mvdan.cc/sh v3.14.1). Text in quotes may be mistaken for a comment.
var (
	backslashAtEnd = text.Regexp(`(?:^|[^\\])(?:\\\\)*\\$`)
	commentGoesOn  = text.Regexp("(?m)(?:^|[ \t;&|()<>`])#.*\\\\$")
)

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
	switch {
	case backslashAtEnd().MatchString(text):
		return "the text ends with a backslash"
	case commentGoesOn().MatchString(text):
		return "a line with a # ends with a backslash"
	}
	return ""
}
