package permission

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// binding is a value that the text gives to a variable, and where that holds for sure.
type binding struct {
	words      []*syntax.Word // nil: not known
	arithmetic bool           // it is a number
	from, to   uint           // offsets; both 0 if it holds nowhere for sure
}

// collect finds the variables and functions of the text.
func (a *analysis) collect() {
	a.assigns, a.functions = map[string][]binding{}, map[string]syntax.Pos{}
	top := make(map[*syntax.CallExpr]*syntax.Stmt)
	for _, s := range a.file.Stmts {
		if s.Background || s.Coprocess || s.Disown {
			continue
		}
		switch c := s.Cmd.(type) {
		case *syntax.CallExpr:
			if len(c.Args) == 0 {
				top[c] = s
			}
		case *syntax.FuncDecl:
			if c.Name != nil {
				a.functions[c.Name.Value] = c.End()
			}
		}
	}
	var named []*syntax.CallExpr // those whose names have to be expanded
	syntax.Walk(a.file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			for _, as := range n.Assigns {
				b := bound(as)
				if s := top[n]; s != nil {
					b.from, b.to = s.End().Offset(), ^uint(0)
				}
				a.assigns[as.Name.Value] = append(a.assigns[as.Name.Value], b)
			}
			a.sets(n.Args)
			if len(n.Args) > 0 && n.Args[0].Lit() == "" {
				named = append(named, n)
			}
		case *syntax.DeclClause:
			for _, as := range n.Args {
				if as.Name != nil {
					a.assigns[as.Name.Value] = append(a.assigns[as.Name.Value], bound(as))
				}
			}
		case *syntax.ForClause:
			if it, ok := n.Loop.(*syntax.WordIter); ok {
				b := binding{words: it.Items}
				if len(n.Do) > 0 {
					b.from, b.to = n.Do[0].Pos().Offset(), n.Do[len(n.Do)-1].End().Offset()
				}
				a.assigns[it.Name.Value] = append(a.assigns[it.Name.Value], b)
			}
		case *syntax.BinaryArithm:
			switch op := n.Op.String(); op {
			case "==", "!=", "<=", ">=":
			default:
				if strings.HasSuffix(op, "=") {
					a.counts(n.X)
				}
			}
		case *syntax.UnaryArithm:
			if n.Op == syntax.Inc || n.Op == syntax.Dec {
				a.counts(n.X)
			}
		case *syntax.CoprocClause:
			a.stop("coproc runs a command on the side")
		}
		return true
	})
	a.resolve(named)
}

// sets notes the variables that a command sets by its arguments.
func (a *analysis) sets(args []*syntax.Word) {
	var words []word
	for _, w := range args {
		words = append(words, expansion{a: a}.words(w)...) // without values: they are not collected yet
	}
	if len(words) == 0 || !words[0].known() {
		return // see resolve
	}
	switch words[0].text {
	case "read", "getopts", "mapfile", "readarray", "unset", "printf":
		for _, w := range words[1:] {
			if !w.known() {
				a.opaque = a.opaque || words[0].text != "printf" || len(words) > 1 && words[1].isOption()
				continue
			}
			a.assigns[w.text] = append(a.assigns[w.text], binding{})
		}
	case "command", "builtin", "noglob", "nocorrect":
		if len(words) > 1 && (words[1].is("-v") || words[1].is("-V")) {
			return
		}
		a.opaque = true
	case "eval", "trap":
		a.opaque = true
	}
}

// setters are commands that can set variables without looking like it.
var setters = []string{"read", "getopts", "mapfile", "readarray", "unset", "printf", "command", "builtin", "noglob", "nocorrect", "eval", "trap"}

// resolve finds setters among the commands whose names are in variables. The first of them
// that runs has a name that is made of values which the text shows.
func (a *analysis) resolve(calls []*syntax.CallExpr) {
	for _, c := range calls {
		for _, bind := range a.bindings(c.Args[:1], c.Pos().Offset()) {
			words := expansion{a: a, bind: bind}.words(c.Args[0])
			a.opaque = a.opaque || len(words) == 0 || !words[0].known() || slices.Contains(setters, words[0].text)
		}
	}
}

// counts notes that an expression gives a variable a number.
func (a *analysis) counts(x syntax.ArithmExpr) {
	if w, ok := x.(*syntax.Word); ok && w.Lit() != "" {
		a.assigns[w.Lit()] = append(a.assigns[w.Lit()], binding{arithmetic: true})
	}
}

func bound(as *syntax.Assign) binding {
	if as.Append || as.Naked || as.Index != nil || as.Array != nil {
		return binding{}
	}
	if as.Value == nil {
		return binding{words: []*syntax.Word{{}}}
	}
	if len(as.Value.Parts) == 1 {
		if _, ok := as.Value.Parts[0].(*syntax.ArithmExp); ok {
			return binding{arithmetic: true}
		}
	}
	return binding{words: []*syntax.Word{as.Value}}
}

// assigned reports whether the text gives the variable a value.
func (a *analysis) assigned(name string) bool { return len(a.assigns[name]) > 0 }

// numeric reports whether all values that the text gives a variable are numbers.
func (a *analysis) numeric(name string, seen []string) bool {
	if a.opaque {
		return false
	}
	if slices.Contains(seen, name) {
		return true
	}
	switch name { // none of them can come from the environment, see quiet
	case "?", "#", "$", "LINENO", "RANDOM", "SECONDS", "EPOCHSECONDS", "UID", "EUID", "PPID":
		return !a.assigned(name)
	}
	if !lowercaseName(name) || !a.assigned(name) {
		return false
	}
	for _, b := range a.assigns[name] {
		if b.arithmetic {
			continue
		}
		if b.words == nil {
			return false
		}
		for _, w := range b.words {
			lit := w.Lit()
			if len(w.Parts) > 0 && (lit == "" || strings.Trim(lit, "0123456789") != "") {
				return false
			}
		}
	}
	return true
}

// values returns what a variable may be at a place, nil if that is not known.
func (a *analysis) values(name string, at uint) []word {
	if a.opaque {
		return nil
	}
	sure := false
	var all []word
	for _, b := range a.assigns[name] {
		if b.words == nil {
			return nil
		}
		sure = sure || b.to > 0 && at >= b.from && at < b.to
		for _, w := range b.words {
			if len(w.Parts) == 0 {
				all = append(all, word{})
				continue
			}
			// Values that depend on other variables are not followed.
			evaluated := expansion{a: a}.words(w)
			for i := range evaluated {
				if strings.IndexByte(evaluated[i].text, hole) >= 0 || evaluated[i].many {
					return nil
				}
			}
			all = append(all, evaluated...)
		}
	}
	if !sure || len(all) == 0 || len(all) > 64 {
		return nil
	}
	return all
}

// printsDirectory reports whether a substitution gives the current directory.
func (a *analysis) printsDirectory(c *syntax.CmdSubst) (string, bool) {
	if len(c.Stmts) != 1 || len(c.Stmts[0].Redirs) > 0 {
		return "", false
	}
	call, ok := c.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) != 1 || len(call.Assigns) > 0 || call.Args[0].Lit() != "pwd" {
		return "", false
	}
	dir, ok := a.directory()
	return dir, ok && !strings.ContainsAny(dir, " \t\n*?[")
}

// directory returns where commands run, if there is one answer.
func (a *analysis) directory() (string, bool) {
	if len(a.dirs) != 1 || a.inLoop > 0 {
		return "", false
	}
	return a.dirs[0], true
}

func (a *analysis) declare(c *syntax.DeclClause) {
	if c.Variant.Value != "local" && c.Variant.Value != "readonly" && c.Variant.Value != "export" {
		a.stop("%s can change what variables mean", c.Variant.Value)
	}
	for _, as := range c.Args {
		if as.Name == nil {
			a.stop("%s with an option", c.Variant.Value)
			continue
		}
		if c.Variant.Value == "export" && !harmlessVariable(as.Name.Value) {
			a.stop("the variable %s can change what programs do", as.Name.Value)
		}
		a.assign(as)
	}
}

func (a *analysis) assign(as *syntax.Assign) {
	a.assignable(as.Name.Value)
	if as.Index != nil {
		a.arithmetic(as.Index)
	}
	if as.Value != nil {
		a.word(as.Value)
	}
	if as.Array != nil {
		for _, e := range as.Array.Elems {
			if e.Index != nil {
				a.stop("an array with keys")
			}
			if e.Value != nil {
				a.word(e.Value)
			}
		}
	}
}

func (a *analysis) assignable(name string) {
	if !lowercaseName(name) && !harmlessVariable(name) {
		a.stop("the variable %s can change what programs do", name)
	}
}

// numericWord reports whether a word is one variable whose values are numbers.
func (a *analysis) numericWord(w *syntax.Word) bool {
	if len(w.Parts) != 1 {
		return false
	}
	part := w.Parts[0]
	if q, ok := part.(*syntax.DblQuoted); ok && len(q.Parts) == 1 {
		part = q.Parts[0]
	}
	p, ok := part.(*syntax.ParamExp)
	return ok && simple(p) && a.numeric(p.Param.Value, nil)
}

// bindings returns the combinations of values that the variables in words may have.
func (a *analysis) bindings(words []*syntax.Word, at uint) []map[string][]word {
	var names []string
	for _, w := range words {
		if w == nil || w.Lit() != "" {
			continue
		}
		syntax.Walk(w, func(n syntax.Node) bool {
			if p, ok := n.(*syntax.ParamExp); ok && simple(p) && a.assigned(p.Param.Value) && !slices.Contains(names, p.Param.Value) {
				names = append(names, p.Param.Value)
			}
			_, sub := n.(*syntax.CmdSubst)
			return !sub
		})
	}
	all := []map[string][]word{{}}
	for _, name := range names {
		values := a.values(name, at)
		if values == nil || len(all)*len(values) > 64 {
			continue // stays unknown
		}
		var next []map[string][]word
		for _, v := range values {
			for _, m := range all {
				c := make(map[string][]word, len(m)+1)
				for k, old := range m {
					c[k] = old
				}
				c[name] = []word{v}
				next = append(next, c)
			}
		}
		all = next
	}
	return all
}

var shellName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z_][a-z0-9_]*$`) })

// zshSpecial are variables in lower case that zsh gives a meaning.
var zshSpecial = [...]string{
	"path", "fpath", "cdpath", "manpath", "module_path", "mailpath", "prompt", "psvar", "fignore", "watch", "histchars",
	"aliases", "galiases", "saliases", "functions", "commands", "options", "argv", "status", "signals", "dirstack", "nameddirs",
	"keymap", "widgets", "parameters", "modules", "reswords", "patchars", "userdirs", "usergroups", "jobdirs", "jobstates", "jobtexts",
	"http_proxy", "https_proxy", "all_proxy", "ftp_proxy", "no_proxy",
}

// lowercaseName reports whether a variable is an ordinary one of a script: no program
// looks at it.
func lowercaseName(name string) bool {
	return shellName().MatchString(name) && name != "_" && !slices.Contains(zshSpecial[:], name) && !strings.HasPrefix(name, "npm_") && !strings.HasPrefix(name, "zsh") && !strings.HasPrefix(name, "dis_")
}

// quiet are variables that change how programs print or what they are told, but not
// which code they run.
var quiet = [...]string{
	"LANG", "LANGUAGE", "TZ", "TERM", "COLUMNS", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI", "NODE_ENV", "GOOS", "GOARCH",
	"GOARM", "CGO_ENABLED", "DEBUG", "VERBOSE", "RUST_BACKTRACE", "RUST_LOG", "RAILS_ENV", "RACK_ENV", "APP_ENV", "PYTHONUNBUFFERED",
	"PYTHONDONTWRITEBYTECODE", "GIT_PAGER_IN_USE", "GIT_TERMINAL_PROMPT", "GIT_OPTIONAL_LOCKS", "HUSKY", "DEBIAN_FRONTEND", "VERSION", "NAME", "COUNT",
}

func harmlessVariable(name string) bool {
	return slices.Contains(quiet[:], name) || strings.HasPrefix(name, "LC_")
}
