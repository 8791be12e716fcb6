package argc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// parser writes the function that reads the words of one command.
func (g *generator) parser(c *Command) {
	if c.parent != nil {
		g.line("# %s", Quote(strings.Join(c.words(), " ")))
	}
	g.nest(fmt.Sprintf("_argc_parse_%d() {", c.number), "}\n", func() {
		g.line("builtin local _argc_key _argc_next= _argc_plus=%s", g.plus(c))
		g.nest(`while [[ $# -gt 0 && -z "$_argc_next" ]]; do`, "done", func() {
			g.line(`_argc_key="${1%%%%=*}"`)
			g.nest(`case "$_argc_key" in`, "esac", func() { g.words(c) })
		})
		if sub := c.fallback(); sub != nil {
			g.when(`[[ -z "$_argc_next" ]]`, func() { g.line("_argc_next=_argc_parse_%d", sub.number) })
		}
		g.after(c)
	})
}

// plus returns 1 if there are names of c that begin with +.
func (g *generator) plus(c *Command) string {
	for _, p := range g.options(c) {
		if strings.HasPrefix(p.Short, "+") || strings.HasPrefix(p.Long, "+") {
			return "1"
		}
	}
	return ""
}

// greedy reports whether c takes all words as they are.
func (g *generator) greedy(c *Command) bool {
	return len(g.options(c)) == 0 && len(c.Commands) == 0 && len(c.Args) == 1 && c.Args[0].Rest
}

// alternative writes a branch of a case for words.
func (g *generator) alternative(words []string, f func()) {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = quote(word)
	}
	g.branch(strings.Join(quoted, " | "), f)
}

func (g *generator) branch(pattern string, f func()) {
	g.nest(pattern+")", "", func() {
		f()
		g.line(";;")
	})
}

// words writes the cases of a word's part before "=".
func (g *generator) words(c *Command) {
	greedy := g.greedy(c)
	for _, b := range g.builtins(c) {
		if greedy && (b.id == "help" || c.Version == "") {
			continue
		}
		g.alternative(b.words, func() {
			if b.id == "help" {
				g.line("_argc_help_%d", c.number)
			} else {
				g.line("builtin printf '%%s\\n' %s", quote(g.version(c)))
			}
			g.line("builtin exit 0")
		})
	}
	if !greedy {
		g.alternative([]string{"--"}, func() {
			g.line("builtin shift")
			g.line("_argc_dash=${#argc__positionals[@]}")
			g.line(`argc__positionals+=("$@")`)
			g.line("builtin set --")
		})
	}
	options := g.options(c)
	// What is declared here wins over what is inherited, and names over prefixes.
	slices.SortStableFunc(options, func(p, q *Param) int { return g.rank(c, p) - g.rank(c, q) })
	for _, p := range options {
		switch {
		case p.Kind == Flag:
			g.flag(p)
		case p.Prefixed:
			g.writePrefixed(p)
		default:
			g.option(p)
		}
	}
	g.branch("*", func() { g.other(c) })
}

func (g *generator) rank(c *Command, p *Param) int {
	rank := 0
	if !slices.Contains(c.own, p) {
		rank = 1
	}
	if p.Prefixed {
		rank += 2
	}
	return rank
}

func (g *generator) version(c *Command) string {
	version := c.Version
	if version == "" {
		version = "0.0.0"
	}
	name := strings.Trim(g.name+"-"+strings.Join(c.words(), "-"), "-")
	return strings.TrimSpace(name + " " + version)
}

func (g *generator) flag(p *Param) {
	g.alternative(p.names(), func() {
		g.when(`[[ "$1" == *=* ]]`, func() {
			g.die(quote("error: flag `" + p.Switch() + "` takes no value"))
		})
		v := p.variable()
		if p.Multiple {
			g.line(`_argc_count "${%s-}"`, v)
			g.line(`%s="$_argc_used"`, v)
		} else {
			g.once(p)
			g.line("%s=1", v)
		}
		g.line("builtin shift")
	})
}

// once writes the error about a second value.
func (g *generator) once(p *Param) {
	g.when(fmt.Sprintf(`[[ -n "${%s-}" ]]`, p.variable()), func() {
		g.die(quote("error: the argument `" + p.Switch() + "` cannot be used multiple times"))
	})
}

func (g *generator) option(p *Param) {
	g.alternative(p.names(), func() {
		least, most := p.values()
		limit := strconv.Itoa(most)
		if most < 0 {
			limit = "''"
		}
		mode := "''"
		switch {
		case p.Rest:
			mode = "rest"
		case p.Assigned:
			mode = "assigned"
		}
		g.line(`_argc_take %d %s %s %s "$@"`, least, limit, mode, quote(p.signature()))
		g.line(`builtin shift "$_argc_used"`)
		g.take(p)
	})
}

func (g *generator) writePrefixed(p *Param) {
	for _, name := range p.names() {
		g.branch(quote(name)+"*", func() {
			g.line(`_argc_values=("${1:%d}")`, len(name))
			g.line("builtin shift")
			g.take(p)
		})
	}
}

// take writes what checks and keeps the values of an option.
func (g *generator) take(p *Param) {
	g.refine(p, p.what(""))
	v := p.variable()
	if p.array() {
		g.line(`%s+=(${_argc_values[@]+"${_argc_values[@]}"})`, v)
		return
	}
	g.once(p)
	g.line(`%s="${_argc_values[0]-}"`, v)
}

// what returns the words in which errors speak of a parameter whose value came from an
// environment variable, or from the command line if there is none.
func (p *Param) what(env string) string {
	of := "`" + p.ID + "`"
	switch p.Kind {
	case Flag, Option:
		of = "`" + p.signature() + "`"
	case Arg:
		of = "`" + p.placeholder() + "`"
	case Env:
		return "environment variable " + of
	}
	if env != "" {
		return "environment variable `" + env + "` that is bound to " + of
	}
	return of
}

// refine writes what splits values and checks them against the choices.
func (g *generator) refine(p *Param, what string) {
	if p.Delimiter != "" {
		g.line("_argc_split %s", quote(p.Delimiter))
	}
	switch {
	case len(p.Choices) > 0:
		g.line("_argc_check %s %s", quote(what), quoteAll(p.Choices))
	case p.ChoicesBy != "" && !p.Unchecked:
		g.line("_argc_check_by %s %s", quote(what), quote(p.ChoicesBy))
	}
}

// other writes the handling of a word that is not the name of a flag or option.
func (g *generator) other(c *Command) {
	if len(c.Commands) == 0 {
		g.positional(c)
		return
	}
	g.nest(`case "$1" in`, "esac", func() {
		for _, sub := range c.Commands {
			g.alternative(append([]string{sub.Name}, sub.Aliases...), func() {
				g.line("builtin shift")
				g.line("_argc_next=_argc_parse_%d", sub.number)
			})
		}
		if c.lookup("help") == nil {
			g.alternative([]string{"help"}, func() { g.helpWord(c) })
		}
		g.branch("*", func() { g.positional(c) })
	})
}

// helpWord writes what the word help does where there are subcommands.
func (g *generator) helpWord(c *Command) {
	g.nest(`case "${2-}" in`, "esac", func() {
		for _, sub := range c.Commands {
			g.alternative(append([]string{sub.Name}, sub.Aliases...), func() { g.line("_argc_help_%d", sub.number) })
		}
		g.alternative([]string{""}, func() { g.line("_argc_help_%d", c.number) })
		g.branch("*", func() { g.die(`"error: unknown subcommand \` + "`$2\\`" + `"`) })
	})
	g.line("builtin exit 0")
}

// positional writes the handling of a word that is not a subcommand either.
func (g *generator) positional(c *Command) {
	greedy := g.greedy(c)
	if len(g.options(c)) > 0 {
		g.when(`_argc_is_option "$1"`, func() {
			g.die(`"error: unexpected argument \` + "`$_argc_key\\`" + ` found"`)
		})
	}
	if len(c.Commands) > 0 && len(c.Args) == 0 {
		if sub := c.fallback(); sub != nil {
			g.nest("if [[ ${#argc__positionals[@]} -eq 0 ]]; then", "", func() {
				g.line("_argc_next=_argc_parse_%d", sub.number)
			})
			g.nest("else", "fi", func() { g.noCommand(c) })
			return
		}
		g.noCommand(c)
		return
	}
	g.line(`argc__positionals+=("$1")`)
	g.line("builtin shift")
	if n := len(c.Args); n > 0 && c.Args[n-1].Rest {
		rest := func() {
			g.line(`argc__positionals+=("$@")`)
			g.line("builtin set --")
		}
		if greedy || n == 1 {
			rest()
		} else {
			g.when(fmt.Sprintf("[[ ${#argc__positionals[@]} -ge %d ]]", n-1), rest)
		}
	}
}

func (g *generator) noCommand(c *Command) {
	var names []string
	for _, sub := range c.Commands {
		names = append(names, sub.Name)
	}
	who := strings.Join(append([]string{g.name}, c.words()...), " ")
	g.die(quote("error: `"+strings.TrimSpace(who)+"` requires a subcommand but one was not provided"), quote("  [subcommands: "+strings.Join(names, ", ")+"]"))
}
