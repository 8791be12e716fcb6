package argc_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"mvdan.cc/sh/v3/syntax"

	"loki/internal/tool/script/argc"
)

// newer lists what a script has that bash 3.2, the one of macOS, does not know.
func newer(tb testing.TB, script string) []string {
	tb.Helper()
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	report := func(n syntax.Node, what string) {
		found = append(found, fmt.Sprintf("%s: %s", n.Pos(), what))
	}
	syntax.Walk(file, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.ParamExp:
			if n.Exp != nil && slices.Contains([]syntax.ParExpOperator{syntax.UpperFirst, syntax.UpperAll, syntax.LowerFirst, syntax.LowerAll, syntax.OtherParamOps}, n.Exp.Op) {
				report(n, "${x"+n.Exp.Op.String()+"}")
			}
			if n.Slice != nil && (negative(n.Slice.Offset) || negative(n.Slice.Length)) {
				report(n, "a negative offset or length")
			}
			if word, ok := n.Index.(*syntax.Word); ok && strings.HasPrefix(word.Lit(), "-") || negative(n.Index) {
				report(n, "a negative index")
			}
		case *syntax.DeclClause:
			for _, arg := range n.Args {
				if arg.Name == nil && arg.Value != nil {
					flags(arg.Value.Lit(), func(what string) { report(n, what) })
				}
			}
		case *syntax.CallExpr:
			for i, arg := range n.Args {
				word := arg.Lit()
				if slices.Contains([]string{"mapfile", "readarray", "coproc"}, word) {
					report(n, word)
				}
				if quoted, ok := arg.Parts[0].(*syntax.SglQuoted); ok && i > 0 && n.Args[i-1].Lit() == "printf" && strings.Contains(quoted.Value, "%(") {
					report(n, "printf %()T")
				}
				if i > 0 && slices.Contains([]string{"local", "declare", "typeset", "export"}, n.Args[i-1].Lit()) {
					flags(word, func(what string) { report(n, what) })
				}
			}
		case *syntax.BinaryCmd:
			if n.Op == syntax.PipeAll {
				report(n, "|&")
			}
		case *syntax.Redirect:
			if strings.HasPrefix(n.Op.String(), "&>>") || n.N != nil && strings.HasPrefix(n.N.Value, "{") {
				report(n, n.Op.String())
			}
		case *syntax.CaseItem:
			if n.Op != syntax.Break {
				report(n, n.Op.String())
			}
		case *syntax.UnaryTest:
			if n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar {
				report(n, n.Op.String())
			}
		case *syntax.CoprocClause:
			report(n, "coproc")
		case *syntax.SglQuoted:
			if n.Dollar && regexp.MustCompile(`(^|[^\\])(\\\\)*\\[uU]`).MatchString(n.Value) {
				report(n, "\\u")
			}
		}
		return true
	})
	return found
}

func negative(x syntax.ArithmExpr) bool {
	switch x := x.(type) {
	case *syntax.UnaryArithm:
		return x.Op == syntax.Minus
	case *syntax.ParenArithm:
		return negative(x.X)
	case *syntax.Word:
		return strings.HasPrefix(x.Lit(), "-")
	}
	return false
}

// flags reports the flags of declarations that came after bash 3.2.
func flags(word string, report func(string)) {
	if strings.HasPrefix(word, "-") && strings.ContainsAny(word, "Agnlu") {
		report("declare " + word)
	}
}

// foreign lists what generated code calls that a function of the script could stand in
// for: anything but its own functions and builtins that are called as such.
func foreign(tb testing.TB, script string) []string {
	tb.Helper()
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		tb.Fatal(err)
	}
	var found []string
	syntax.Walk(file, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.DeclClause, *syntax.LetClause:
			found = append(found, fmt.Sprint(n.Pos(), " a declaration"))
		case *syntax.CallExpr:
			if len(n.Args) == 0 {
				return true
			}
			switch n.Args[0].Parts[0].(type) {
			case *syntax.DblQuoted, *syntax.SglQuoted: // a function of the script
				return true
			}
			word := n.Args[0].Lit()
			if word != "builtin" && !strings.HasPrefix(word, "_argc_") {
				found = append(found, fmt.Sprint(n.Pos(), " ", word))
			}
		}
		return true
	})
	return found
}

// TestLinter shows that the linter finds what it is there for.
func TestLinter(t *testing.T) {
	for _, script := range []string{
		"echo ${x^^}", "echo ${x,}", "echo ${x@Q}", "declare -A x", "local -n x", "builtin local -A x", "declare -g x=1", "mapfile x",
		"builtin readarray -t x", "a |& b", "a &>> f", "case a in a) b ;& esac", "case a in a) b ;;& esac", "echo ${x: -1}", "echo ${x:0:-1}",
		"[[ -v x ]]", "echo ${x[-1]}", `echo $'\u00e9'`, "exec {fd}>x", "printf '%(%s)T'", "if",
	} {
		if newer(t, script) == nil {
			t.Errorf("%s passes", script)
		}
	}
	if got := newer(t, "builtin local x=1; echo \"${x%%=*}\" \"${a[@]:1:2}\"; a+=(b); [[ $a =~ $b ]]"); got != nil {
		t.Error(got)
	}
	for script, want := range map[string]int{"builtin shift; _argc_x; \"$f\" a; a=b": 0, "shift": 1, "local x": 1, "x() { exit 1; }": 1} {
		if got := foreign(t, script); len(got) != want {
			t.Errorf("%s: %v", script, got)
		}
	}
}

// TestSyntaxLevel checks the code that is generated for all scripts here.
func TestSyntaxLevel(t *testing.T) {
	files, err := filepath.Glob("testdata/run/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		block, err := argc.Block(archive.Files[0].Data, argc.Options{})
		if err != nil {
			t.Fatal(file, err)
		}
		for _, what := range newer(t, block) {
			t.Errorf("%s: bash 3.2 does not know %s", file, what)
		}
		for _, what := range foreign(t, block) {
			t.Errorf("%s: a function of the script could take the place of %s", file, what)
		}
	}
}

// TestRuntimeSyntaxLevel checks the part that generated code has in common, used or not.
func TestRuntimeSyntaxLevel(t *testing.T) {
	text, err := os.ReadFile("runtime.sh")
	if err != nil {
		t.Fatal(err)
	}
	if found := slices.Concat(newer(t, string(text)), foreign(t, string(text))); found != nil {
		t.Error(found)
	}
}
