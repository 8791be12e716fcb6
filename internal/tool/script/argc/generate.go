package argc

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// runtime holds the functions that generated code may call. Each begins, at the
// beginning of a line, with its name and ends with a line "}".
//
//go:embed runtime.sh
var runtime string

// Options say how code is generated. The zero value of each field is its default.
type Options struct {
	// Name is the program's name in help and versions, unless @meta binname gives one.
	Name string
	// Width is the number of columns that texts of help are wrapped to; 0 or less means
	// that they are not wrapped, and they never are to less than 20 columns.
	Width int
}

// generator writes the code of one script.
type generator struct {
	script *Script
	name   string
	width  int
	strings.Builder
	depth int
}

// line writes a line of code, indented.
func (g *generator) line(format string, args ...any) {
	g.WriteString(strings.Repeat("    ", g.depth))
	fmt.Fprintf(g, format, args...)
	g.WriteByte('\n')
}

// nest writes what f writes one level deeper, between two lines.
func (g *generator) nest(first, last string, f func()) {
	g.line("%s", first)
	g.depth++
	f()
	g.depth--
	if last != "" {
		g.line("%s", last)
	}
}

// when writes "if condition; then ... fi".
func (g *generator) when(condition string, f func()) {
	g.nest("if "+condition+"; then", "fi", f)
}

// die writes the end of the script with an error. The lines are words of bash.
func (g *generator) die(lines ...string) {
	g.line("_argc_die %s", strings.Join(lines, " "))
}

// code returns what parses the command line and runs the script's function. words is the
// bash text of the words to parse.
func code(s *Script, o Options, words string) string {
	g := &generator{script: s, name: o.Name, width: o.Width}
	if s.Binname != "" {
		g.name = s.Binname
	}
	s.Root.all(func(c *Command) {
		g.nest(fmt.Sprintf("_argc_help_%d() {", c.number), "}\n", func() {
			// A text of several lines has to keep its indentation, so it is not nested.
			g.line("builtin printf '%%s\\n' %s", quote(g.help(c, g.width)))
		})
		g.parser(c)
	})
	g.run()
	return runtimeFor(g.String()) + g.String() + "_argc_run" + words + "\n"
}

// runtimeFor returns the functions that code calls, and the ones that they call.
func runtimeFor(code string) string {
	type function struct {
		name, text string
		used       bool
	}
	var list []function
	for text := range strings.SplitSeq(strings.TrimSpace(runtime), "\n}\n") {
		text = strings.TrimSpace(strings.TrimSuffix(text, "\n}")) + "\n}\n"
		start := strings.Index("\n"+text, "\n_argc_")
		name, _, _ := strings.Cut(text[start:], "(")
		list = append(list, function{name: name, text: text})
	}
	for changed := true; changed; {
		changed = false
		for i, f := range list {
			if !f.used && strings.Contains(code, f.name+" ") {
				list[i].used, changed = true, true
				code += f.text
			}
		}
	}
	var b strings.Builder
	for _, f := range list {
		if f.used {
			b.WriteString(f.text + "\n")
		}
	}
	return b.String()
}

// A builtin is help or version, which commands have without declaring them.
type builtin struct {
	*Param
	id    string
	words []string
}

func (b builtin) term() string { return b.Param.term() }

// builtins returns help and, where there is one, version, with the names that are not
// declared for something else.
func (g *generator) builtins(c *Command) []builtin {
	list := []builtin{{&Param{Short: "-h", Long: "--help"}, "help", []string{"--help", "-help", "-h"}}}
	if c.parent == nil || c.Version != "" {
		list = append(list, builtin{&Param{Short: "-V", Long: "--version"}, "version", []string{"--version", "-version", "-V"}})
	}
	for i := range list {
		b := &list[i]
		for _, p := range c.Options() {
			for _, name := range p.names() {
				switch {
				case p.ID == b.id && !slices.Contains(b.words, name):
					b.words = append(b.words, name)
				case p.ID != b.id:
					b.words = slices.DeleteFunc(b.words, func(word string) bool { return word == name })
				}
			}
		}
		if !slices.Contains(b.words, b.Short) {
			b.Short = ""
		}
	}
	return list
}

// options returns the flags and options of a command without the ones that only declare what is
// built in.
func (g *generator) options(c *Command) []*Param {
	built := g.builtins(c)
	return slices.DeleteFunc(c.Options(), func(p *Param) bool {
		return slices.ContainsFunc(built, func(b builtin) bool { return b.id == p.ID })
	})
}

// run writes the function that everything begins with.
func (g *generator) run() {
	g.nest("_argc_run() {", "}\n", func() {
		g.line("builtin local _argc_values _argc_used _argc_missing _argc_unset _argc_tools _argc_absent _argc_at _argc_given")
		g.line("builtin local _argc_dash=-1 _argc_word=\"${0##*/}\"")
		g.when(`[[ "${OSTYPE-}" == msys* || "${OSTYPE-}" == cygwin* ]] && (builtin set -o igncr) 2>/dev/null`, func() {
			g.line("builtin set -o igncr # carriage returns of Windows programs")
		})
		g.line("argc__args=(\"${_argc_word%%.sh}\" \"$@\")")
		g.line("argc__positionals=()")
		g.line("argc__fn=")
		g.line("_argc_missing=() _argc_unset=() _argc_tools=() _argc_absent=()")
		if names := g.variables(); len(names) > 0 {
			g.line("builtin unset -v %s", strings.Join(names, " "))
		}
		if g.script.dotenv != "" {
			g.line("_argc_dotenv %s", quote(g.script.dotenv))
		}
		g.line("_argc_parse_0 \"$@\"")
		g.report("_argc_missing", "the following required arguments were not provided:")
		g.report("_argc_unset", "the following required environments were not provided:")
		g.tools()
		if g.script.functions["_argc_before"] {
			g.line("_argc_before")
		}
		g.when(`[[ -n "$argc__fn" ]]`, func() {
			g.line(`"$argc__fn" ${argc__positionals[@]+"${argc__positionals[@]}"}`)
		})
		if g.script.functions["_argc_after"] {
			g.line("_argc_after")
		}
	})
}

// report writes the error about what an array lists.
func (g *generator) report(array, text string) {
	g.when(fmt.Sprintf("[[ ${#%s[@]} -gt 0 ]]", array), func() {
		g.die(quote("error: "+text), fmt.Sprintf(`"${%s[@]}"`, array))
	})
}

func (g *generator) tools() {
	any := false
	g.script.Root.all(func(c *Command) { any = any || len(c.Tools) > 0 })
	if !any {
		return
	}
	g.nest(`for _argc_word in ${_argc_tools[@]+"${_argc_tools[@]}"}; do`, "done", func() {
		g.when(`! builtin type -P "$_argc_word" >/dev/null`, func() {
			g.line(`_argc_absent+=("$_argc_word")`)
		})
	})
	g.when("[[ ${#_argc_absent[@]} -gt 0 ]]", func() {
		g.line(`_argc_join "${_argc_absent[@]}"`)
		g.die(`"error: missing tools: $_argc_joined"`)
	})
}

// variables returns the shell variables of all parameters, sorted.
func (g *generator) variables() []string {
	var names []string
	g.script.Root.all(func(c *Command) {
		for _, p := range slices.Concat(c.own, c.Args) {
			names = append(names, p.variable())
		}
	})
	slices.Sort(names)
	return slices.Compact(names)
}
