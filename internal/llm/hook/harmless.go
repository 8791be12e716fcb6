package hook

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/base/text"

	"mvdan.cc/sh/v3/syntax"
)

// Harmless reports whether the programs that a command starts take no code from the directory in which they run: they are known,
// and do not look there for modules, settings or plugins. It goes by names, and looks into scripts for sh and bash.
// inside reports whether an absolute path is in that directory.
func (h Hook) Harmless(inside func(path string) bool) bool {
	if h.Command == "" {
		return harmlessProgram(h.Args[0], inside, true)
	}
	return harmlessText([]byte(h.Command), inside, true)
}

// harmless are programs that take no code from their working directory.
var harmless = strings.Fields(`: [ [[ test true false echo printf read cd pwd exit return break continue shift set unset export readonly local declare umask trap wait
	basename cat chmod cmp comm cp cut date dirname head hostname id jq ln logger ls mkdir mktemp mv od paste ps readlink realpath rm rmdir sha256sum sleep sort
	stat sync tail tee touch tr uname uniq uptime wc whoami xxd yq base64 egrep fgrep grep diff seq
	curl wget gofmt gofumpt shfmt clang-format notify-send osascript terminal-notifier say afplay paplay wall`)

// deciding are variables that decide which code a program runs.
var deciding = strings.Fields("PATH IFS ENV BASH_ENV LD_PRELOAD LD_LIBRARY_PATH DYLD_INSERT_LIBRARIES SHELLOPTS BASHOPTS CDPATH PYTHONPATH NODE_OPTIONS NODE_PATH")

// harmlessText is [Hook.Harmless] for a text for a shell. Scripts that it starts are looked at if deeper is set.
func harmlessText(text []byte, inside func(path string) bool, deeper bool) bool {
	file, err := syntax.NewParser().Parse(bytes.NewReader(text), "")
	if err != nil {
		return false
	}
	functions := make(map[string]bool)
	syntax.Walk(file, func(n syntax.Node) bool {
		if f, ok := n.(*syntax.FuncDecl); ok {
			functions[f.Name.Value] = true
		}
		return true
	})
	ok := true
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			for _, a := range n.Assigns {
				ok = ok && (a.Name == nil || !slices.Contains(deciding, a.Name.Value)) && (len(n.Args) == 0 || a.Name != nil)
			}
			if len(n.Args) > 0 {
				name := literal(n.Args[0])
				ok = ok && name != "" && (functions[name] || harmlessProgram(name, inside, deeper) || name == "command" && len(n.Args) > 1 && literal(n.Args[1]) == "-v")
			}
		case *syntax.DeclClause:
			for _, a := range n.Args {
				ok = ok && a.Name != nil && !slices.Contains(deciding, a.Name.Value)
			}
		case *syntax.CoprocClause:
			ok = false
		}
		return ok
	})
	return ok
}

// literal returns the text of a word without its quotes, with the home directory in front for ~ and $HOME; "" for a word that is
// not known.
func literal(w *syntax.Word) string {
	var b strings.Builder
	parts := w.Parts
	if len(parts) == 1 {
		if q, ok := parts[0].(*syntax.DblQuoted); ok {
			parts = q.Parts
		}
	}
	for i, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.ParamExp:
			if i > 0 || p.Param == nil || p.Param.Value != "HOME" || p.Exp != nil {
				return ""
			}
			b.WriteByte('~')
		default:
			return ""
		}
	}
	text := b.String()
	if rest, ok := strings.CutPrefix(text, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		return filepath.Join(home, rest)
	}
	return text
}

// harmlessProgram reports whether a program is known to take no code from its working directory.
func harmlessProgram(name string, inside func(path string) bool, deeper bool) bool {
	if !strings.ContainsAny(name, `/\`) {
		return slices.Contains(harmless, name)
	}
	if !filepath.IsAbs(name) || inside(name) {
		return false
	}
	if slices.Contains(harmless, filepath.Base(name)) {
		return true
	}
	const most = 256 << 10 // bytes of a script
	info, err := os.Stat(name)
	if err != nil || !deeper || !info.Mode().IsRegular() || info.Size() > most {
		return false
	}
	text, err := os.ReadFile(name)
	return err == nil && shellScript().Match(text) && harmlessText(text, inside, false)
}

var shellScript = text.Regexp(`^#! */(?:usr/)?bin/(?:env +)?(?:ba|da)?sh *\r?\n`)

// pythonScript matches a command that starts a Python script, which finds modules beside it.
var pythonScript = text.Regexp(`(?:^|[\s;|&("'/])python[0-9.]*['"]?(?:\s+-[a-zA-Z]+)*\s+["']?[^\s"'-][^\s"']*\.py\b`)

// environment returns the variables of a hook beyond those of all hooks. Python takes no module from the working directory, unless
// the hook starts a script, of which the directory would not count either then.
func (h Hook) environment() []string {
	if strings.HasSuffix(h.Line(), ".py") && len(h.Args) == 1 || pythonScript().MatchString(h.Line()) {
		return h.Env
	}
	return append(h.Env[:len(h.Env):len(h.Env)], "PYTHONSAFEPATH=1")
}
