package permission

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"loki/internal/environ"
)

// dialect is what a shell may make of a text: every language in which it has to be
// harmless. Without one the text cannot be analysed.
type dialect struct {
	langs []syntax.LangVariant
	zsh   bool
	// evaluates is true if commands of the shell evaluate their words as expressions.
	evaluates bool
}

// dialectOf returns what the shell of a name understands. What is called sh may be any of
// several shells.
func dialectOf(name string) dialect {
	switch name {
	case "bash", "rbash":
		return dialect{langs: []syntax.LangVariant{syntax.LangBash}}
	case "sh", "ash", "dash", "busybox":
		return dialect{langs: []syntax.LangVariant{syntax.LangPOSIX, syntax.LangBash}}
	case "ksh", "mksh", "oksh", "ksh93":
		return dialect{langs: []syntax.LangVariant{syntax.LangMirBSDKorn, syntax.LangBash}, evaluates: true}
	case "zsh":
		return dialect{langs: []syntax.LangVariant{syntax.LangZsh, syntax.LangBash}, zsh: true, evaluates: true}
	}
	return dialect{}
}

const (
	maxText   = 64 << 10 // bytes of a text that is analysed
	maxNested = 8        // texts within texts
	maxJudged = 2000     // commands of one text
	maxTexts  = 64       // texts within one text
)

// strange reports whether a text holds characters that shells, terminals and parsers do not
// agree on.
func strange(text string) string {
	if !utf8.ValidString(text) {
		return "the text is not valid UTF-8"
	}
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t' || r >= ' ' && r < 0x7f:
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Z, r):
			return fmt.Sprintf("the text holds the character U+%04X", r)
		}
	}
	trimmed := strings.TrimRight(text, `\`)
	if (len(text)-len(trimmed))%2 == 1 {
		return "the text ends with a backslash"
	}
	if continuesComment(text) {
		return "a line with a # ends with a backslash"
	}
	return ""
}

// continuesComment reports whether a line may be a comment that ends with a backslash. Shells
// end the comment there; the parser takes the next line for more words of the command
// before the comment (mvdan.cc/sh v3.14.1). Text in quotes may be mistaken for a comment.
func continuesComment(text string) bool {
	for line := range strings.SplitSeq(text, "\n") {
		if !strings.HasSuffix(line, `\`) {
			continue
		}
		for i := range len(line) {
			if line[i] == '#' && (i == 0 || strings.IndexByte(" \t;&|()<>`", line[i-1]) >= 0) {
				return true
			}
		}
	}
	return false
}

// command is a simple command that a text runs.
type command struct {
	words    []word
	dirs     []string // where it may run
	external bool     // not a function, even if one of that name is defined
	outer    bool     // it runs the command that comes with it and does nothing else
	inner    []command
	unclear  string // why its other effects are unknown, or empty
}

// access is a file that a redirection opens.
type access struct {
	path word
	use  Access
	dirs []string
}

// analysis is what a text does.
type analysis struct {
	j         *Judge
	lang      syntax.LangVariant
	zsh       bool
	deep      int
	left      *int // how many texts within texts may still be analysed
	file      *syntax.File
	assigns   map[string][]binding
	functions map[string]syntax.Pos // end of the definition
	dirs      []string              // where the commands that come next may run
	inLoop    int
	trapped   bool // a text waits to be run when the shell ends or gets a signal
	opaque    bool // a command of the text may set variables that are not in assigns

	commands []command
	accesses []access
	unclear  []string // what the text does not show
}

// analyze returns what a text does in a language. The error says why it is unknown.
func (j *Judge) analyze(text string, lang syntax.LangVariant, deep int, dirs []string, left *int) *analysis {
	a := &analysis{j: j, lang: lang, zsh: j.shell.zsh, deep: deep, dirs: dirs, left: left}
	if len(text) > maxText {
		return a.stop("the text is too long")
	}
	if why := strange(text); why != "" {
		// What the parser makes of it need not be what the shell does; but what can be seen in it
		// is worth naming.
		defer a.stop("%s", why)
	}
	if deep > maxNested {
		return a.stop("too many commands within commands")
	}
	file, err := syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(text), "")
	if err != nil {
		return a.stop("the text cannot be read as %s: %v", lang, err)
	}
	a.file = file
	a.collect()
	a.stmts(file.Stmts)
	return a
}

// stop notes what the text does not show.
func (a *analysis) stop(format string, args ...any) *analysis {
	if len(a.unclear) < 10 {
		a.unclear = append(a.unclear, fmt.Sprintf(format, args...))
	}
	return a
}

func (a *analysis) stmts(list []*syntax.Stmt) {
	for _, s := range list {
		a.stmt(s)
	}
}

func (a *analysis) stmt(s *syntax.Stmt) {
	if s == nil {
		return
	}
	if len(a.commands) > maxJudged {
		a.stop("too many commands")
		return
	}
	for _, r := range s.Redirs {
		a.redirect(r)
	}
	if s.Cmd == nil && len(s.Redirs) > 0 && a.zsh {
		a.stop("a redirection without a command runs a program in zsh")
	}
	switch c := s.Cmd.(type) {
	case nil:
	case *syntax.CallExpr:
		a.call(c)
	case *syntax.Subshell:
		a.stmts(c.Stmts)
	case *syntax.Block:
		a.stmts(c.Stmts)
	case *syntax.IfClause:
		for clause := c; clause != nil; clause = clause.Else {
			a.stmts(clause.Cond)
			a.stmts(clause.Then)
		}
	case *syntax.WhileClause:
		a.inLoop++
		a.stmts(c.Cond)
		a.stmts(c.Do)
		a.inLoop--
	case *syntax.ForClause:
		a.loop(c)
	case *syntax.CaseClause:
		a.word(c.Word)
		for _, item := range c.Items {
			for _, p := range item.Patterns {
				a.word(p)
			}
			a.stmts(item.Stmts)
		}
	case *syntax.BinaryCmd:
		a.stmt(c.X)
		a.stmt(c.Y)
	case *syntax.FuncDecl:
		a.function(c)
	case *syntax.TimeClause:
		a.stmt(c.Stmt)
	case *syntax.ArithmCmd:
		a.arithmetic(c.X)
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			a.arithmetic(x)
		}
	case *syntax.TestClause:
		a.test(c.X)
	case *syntax.DeclClause:
		a.declare(c)
	default:
		a.stop("the text has a construct that is not analysed")
	}
}

func (a *analysis) loop(c *syntax.ForClause) {
	if c.Select {
		a.stop("select asks the user")
	}
	a.inLoop++
	defer func() { a.inLoop-- }()
	switch it := c.Loop.(type) {
	case *syntax.WordIter:
		a.assignable(it.Name.Value)
		for _, w := range it.Items {
			a.word(w)
		}
	case *syntax.CStyleLoop:
		for _, x := range []syntax.ArithmExpr{it.Init, it.Cond, it.Post} {
			if x != nil {
				a.arithmetic(x)
			}
		}
	default:
		a.stop("the text has a loop that is not analysed")
	}
	a.stmts(c.Do)
}

func (a *analysis) function(c *syntax.FuncDecl) {
	if c.Name == nil {
		a.stop("the text defines a function that is not analysed")
		return
	}
	if name := c.Name.Value; meaningful(name) {
		a.stop("the text gives %s another meaning", name)
	}
	a.inLoop++ // it runs somewhere else
	a.stmt(c.Body)
	a.inLoop--
}

// word looks into a word for commands, and for expansions that run some.
func (a *analysis) word(w *syntax.Word) {
	if w == nil {
		return
	}
	if a.zsh {
		a.zshWord(w)
	}
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			a.stmts(n.Stmts)
			return false
		case *syntax.ProcSubst:
			a.stmts(n.Stmts)
			return false
		case *syntax.ArithmExp:
			a.arithmetic(n.X)
			return false
		case *syntax.ParamExp:
			a.parameter(n)
		case *syntax.ExtGlob:
			a.stop("an extended pattern")
		}
		return true
	})
}

// zshWord refuses what means more in zsh than elsewhere: =program, and the qualifiers of
// patterns, which can run code.
func (a *analysis) zshWord(w *syntax.Word) {
	for i, p := range w.Parts {
		lit, ok := p.(*syntax.Lit)
		if !ok {
			continue
		}
		if i == 0 && strings.HasPrefix(lit.Value, "=") && len(w.Lit()) != 1 {
			a.stop("a word that begins with = is a program in zsh")
		}
		for k := 0; k < len(lit.Value); k++ {
			switch lit.Value[k] {
			case '\\':
				k++
			case '(', '^', '#':
				a.stop("a pattern with qualifiers")
			}
		}
	}
}

func (a *analysis) parameter(p *syntax.ParamExp) {
	switch {
	case p.Param == nil || p.Excl || p.Flags != nil || p.NestedParam != nil || p.Names != 0 || p.Width || p.IsSet || len(p.Modifiers) > 0 ||
		p.Split != syntax.OptUnset || p.GlobSubst != syntax.OptUnset || p.RcExpand != syntax.OptUnset:
		a.stop("an expansion that is not analysed")
		return
	case environ.SecretName(p.Param.Value):
		a.stop("%s may hold a secret", p.Param.Value)
	}
	if p.Index != nil {
		if w, ok := p.Index.(*syntax.Word); !ok || w.Lit() != "@" && w.Lit() != "*" {
			a.arithmetic(p.Index)
		}
	}
	if p.Slice != nil {
		for _, x := range []syntax.ArithmExpr{p.Slice.Offset, p.Slice.Length} {
			if x != nil {
				a.arithmetic(x)
			}
		}
	}
	if p.Exp != nil {
		switch p.Exp.Op {
		case syntax.AssignUnset, syntax.AssignUnsetOrNull:
			a.assignable(p.Param.Value)
			a.stop("an expansion that sets %s", p.Param.Value)
		case syntax.OtherParamOps:
			a.stop("an expansion that is not analysed")
		}
	}
}

// arithmetic looks into an expression. Shells evaluate the values of variables in it
// again, substitutions included, so only numbers may be in them.
func (a *analysis) arithmetic(x syntax.ArithmExpr) {
	if x == nil {
		return
	}
	syntax.Walk(x, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			a.stop("an expression with the output of a command")
			a.stmts(n.Stmts)
			return false
		case *syntax.ProcSubst:
			a.stop("an expression with a command")
			a.stmts(n.Stmts)
			return false
		case *syntax.ParamExp:
			if n.Param == nil || !simple(n) && !n.Length || !n.Length && !a.numeric(n.Param.Value, nil) {
				a.stop("an expression with a value that is not known to be a number")
			}
			return true // substitutions in an index
		case *syntax.Lit:
			if strings.Trim(n.Value, "0123456789") != "" && !a.numeric(n.Value, nil) {
				a.stop("an expression with a value that is not known to be a number")
			}
		case *syntax.Word, *syntax.BinaryArithm, *syntax.UnaryArithm, *syntax.ParenArithm, *syntax.ArithmExp, *syntax.DblQuoted, nil:
		default:
			a.stop("an expression that is not analysed")
		}
		return true
	})
}

func (a *analysis) test(x syntax.TestExpr) {
	switch x := x.(type) {
	case *syntax.Word:
		a.word(x)
	case *syntax.ParenTest:
		a.test(x.X)
	case *syntax.UnaryTest:
		if x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar {
			a.stop("a test that evaluates its operand")
		}
		a.test(x.X)
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			for _, side := range []syntax.TestExpr{x.X, x.Y} {
				w, ok := side.(*syntax.Word)
				if !ok {
					a.stop("a test that is not analysed")
					continue
				}
				a.word(w)
				for _, v := range (expansion{a: a}).words(w) {
					if strings.Trim(v.text, "0123456789-") != "" && !v.numeric && !a.numericWord(w) {
						a.stop("a comparison of values that are not known to be numbers")
					}
				}
			}
		default:
			a.test(x.X)
			a.test(x.Y)
		}
	default:
		a.stop("a test that is not analysed")
	}
}

// redirect looks at what a redirection opens.
func (a *analysis) redirect(r *syntax.Redirect) {
	a.word(r.Word)
	if r.Hdoc != nil {
		body := *a
		body.zsh = false // no patterns in a text
		body.word(r.Hdoc)
		body.zsh = a.zsh
		*a = body
	}
	use := Writing
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return
	case syntax.RdrIn:
		use = Reading
	case syntax.DplIn:
		return // a number, or a file that is open already
	case syntax.DplOut:
		if lit := r.Word.Lit(); lit != "" && strings.Trim(lit, "0123456789-") == "" {
			return
		}
	}
	if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		a.stop("a redirection that sets a variable")
	}
	at := r.Pos().Offset()
	for _, bind := range a.bindings([]*syntax.Word{r.Word}, at) {
		words := expansion{a: a, bind: bind}.words(r.Word)
		if len(words) != 1 {
			a.stop("a redirection to a file whose name is not known")
			continue
		}
		if w := words[0]; w.known() && (w.text == "/dev/null" || w.text == "/dev/stdout" || w.text == "/dev/stderr" || descriptor(w.text)) {
			continue
		}
		a.accesses = append(a.accesses, access{path: words[0], use: use, dirs: slices.Clone(a.dirs)})
	}
}

// call looks at a simple command.
func (a *analysis) call(c *syntax.CallExpr) {
	for _, as := range c.Assigns {
		if len(c.Args) > 0 && !harmlessVariable(as.Name.Value) {
			a.stop("the variable %s can change what the command does", as.Name.Value)
		}
		a.assign(as)
	}
	for _, w := range c.Args {
		a.word(w)
	}
	if len(c.Args) == 0 {
		return
	}
	for _, bind := range a.bindings(c.Args, c.Pos().Offset()) {
		var words []word
		for _, w := range c.Args {
			words = append(words, expansion{a: a, bind: bind}.words(w)...)
		}
		if len(words) == 0 {
			a.stop("a command that may be empty")
			continue
		}
		if end, ok := a.functions[words[0].text]; ok && words[0].known() && c.Pos().After(end) {
			if len(a.dirs) > 1 {
				a.stop("a function that runs in another directory than it was judged for")
			}
			continue // its body is judged
		}
		a.simple(words)
	}
}

// simple notes a command of known words.
func (a *analysis) simple(words []word) {
	if !words[0].known() || words[0].text == "" {
		a.stop("a command whose name is not known")
		return
	}
	cmd := command{words: words, dirs: slices.Clone(a.dirs)}
	a.unwrap(&cmd, 0)
	a.commands = append(a.commands, cmd)
	if words[0].is("cd") {
		a.cd(words)
	}
}

// cd notes that the commands that come next may run somewhere else.
func (a *analysis) cd(words []word) {
	args := words[1:]
	for len(args) > 0 && (args[0].is("-P") || args[0].is("-L") || args[0].is("--")) {
		args = args[1:]
	}
	if len(args) != 1 || !args[0].known() || strings.HasPrefix(args[0].text, "-") || args[0].text == "" {
		a.stop("cd to a directory that is not known")
		return
	}
	if a.inLoop > 0 { // what comes before it runs there too
		a.stop("cd in a loop or function")
		return
	}
	if a.trapped {
		a.stop("cd after a trap, whose command then runs there")
		return
	}
	if l := a.j.tree.locate(args[0].text, a.dirs); !l.inside {
		a.accesses = append(a.accesses, access{path: args[0], use: Reading, dirs: slices.Clone(a.dirs)})
		a.stop("cd out of the workspace")
	} else {
		for _, dir := range l.all {
			if !slices.Contains(a.dirs, dir) {
				a.dirs = append(a.dirs, dir)
			}
		}
	}
	const most = 16
	if len(a.dirs) > most { // without an end, each cd doubles them
		a.stop("too many directories")
		a.dirs = a.dirs[:most]
	}
}
