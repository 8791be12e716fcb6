package argc

import (
	"fmt"
	"slices"
)

// after writes what follows the words of a command: values from elsewhere, what is
// missing, and the next command or the function.
func (g *generator) after(c *Command) {
	// Options that the subcommand inherits may still come, so it settles them.
	if !g.script.inherit {
		g.settle(g.options(c))
	}
	if len(c.Commands) > 0 {
		g.when(`[[ -n "$_argc_next" ]]`, func() {
			g.line(`"$_argc_next" "$@"`)
			g.line("builtin return 0")
		})
	}
	if g.script.inherit {
		g.settle(g.options(c))
	}
	if len(c.Tools) > 0 {
		g.line("_argc_tools=(%s)", quoteAll(c.Tools))
	}
	if len(c.Commands) > 0 && c.Function == "" {
		g.when("[[ ${#argc__positionals[@]} -eq 0 ]]", func() { g.printHelp(c) })
	}
	if !g.greedy(c) {
		g.when(`[[ ${#argc__positionals[@]} -eq 1 && "${argc__positionals[0]}" == help && "$_argc_dash" -lt 0 ]]`, func() { g.printHelp(c) })
	}
	g.args(c)
	for _, p := range c.Envs {
		g.env(p)
	}
	if c.Function != "" {
		g.line("argc__fn=%s", quote(c.Function))
	}
	g.line("builtin return 0")
}

func (g *generator) printHelp(c *Command) {
	g.line("_argc_help_%d", c.number)
	g.line("builtin exit 0")
}

// settle writes where flags and options that were not given get their values.
func (g *generator) settle(options []*Param) {
	for _, p := range options {
		if p.Bind != "" {
			g.writeBinding(p)
		}
	}
	for _, p := range options {
		if p.Default != nil || p.DefaultBy != "" {
			g.when(p.missingCondition(), func() {
				if p.array() {
					g.line("builtin unset -v %s", p.variable())
				}
				g.fallback(p, p.variable())
			})
		}
	}
	for _, p := range options {
		if p.Required {
			g.when(fmt.Sprintf(`[[ -z "${%s+set}" ]]`, p.variable()+index(p)), func() { g.line("_argc_missing+=(%s)", quote("  "+p.signature())) })
		}
	}
}

// missingCondition returns the condition that an option has no value, or an empty one.
func (p *Param) missingCondition() string {
	if p.array() {
		return fmt.Sprintf(`[[ -z "${%s[*]-}" ]]`, p.variable())
	}
	return fmt.Sprintf(`[[ -z "${%s-}" ]]`, p.variable())
}

// writeBinding writes how a flag or option gets the value of the variable that it is bound to.
func (g *generator) writeBinding(p *Param) {
	v := p.variable()
	g.when(fmt.Sprintf(`[[ -z "${%s+set}" && -n "${%s-}" ]]`, v+index(p), p.Bind), func() {
		if p.Kind == Flag {
			g.nest(fmt.Sprintf(`case "$%s" in`, p.Bind), "esac", func() {
				g.branch("true | 1", func() { g.line("%s=1", v) })
				g.branch("false | 0", func() { g.line("builtin :") })
				g.branch("*", func() {
					g.die(quote("error: environment variable `" + p.Bind + "` must be true or false, as it is bound to `" + p.Switch() + "`"))
				})
			})
			return
		}
		g.line(`_argc_values=("$%s")`, p.Bind)
		g.refine(p, p.what(p.Bind))
		g.store(p)
	})
}

// index returns what refers to the elements of p's variable.
func index(p *Param) string {
	if p.array() {
		return "[*]"
	}
	return ""
}

// fallback writes the assignment of a default.
func (g *generator) fallback(p *Param, to string) {
	if p.DefaultBy != "" {
		// A function that fails gives what it has printed, also where errors end the script.
		g.line(`%s="$(%s)" || builtin :`, to, quote(p.DefaultBy))
		return
	}
	g.line("%s=%s", to, quote(*p.Default))
}

// store writes the assignment of the values at hand.
func (g *generator) store(p *Param) {
	if p.array() {
		g.line(`%s=(${_argc_values[@]+"${_argc_values[@]}"})`, p.variable())
		return
	}
	g.line(`%s="${_argc_values[0]-}"`, p.variable())
}

// args writes how the positional words become the values of arguments.
func (g *generator) args(c *Command) {
	n := len(c.Args)
	if n == 0 {
		return
	}
	g.line(`_argc_given=(${argc__positionals[@]+"${argc__positionals[@]}"})`)
	g.line("_argc_at=0")
	g.line("argc__positionals=()")
	several := func(p *Param) bool { return p.Multiple || p.Rest }
	for i, p := range c.Args {
		mark := "''"
		if several(p) {
			mark = "1"
		}
		pick := func() { g.line("_argc_pick %s %d", mark, n-1-i) }
		if n == 2 && i == 0 && several(p) && several(c.Args[1]) {
			g.nest(`if [[ "$_argc_dash" -gt 0 ]]; then`, "", func() { g.line(`_argc_slice "$_argc_dash"`) })
			g.nest("else", "fi", pick)
		} else {
			pick()
		}
		g.arg(p, g.shares(c, p))
	}
	g.when("[[ $_argc_at -lt ${#_argc_given[@]} ]]", func() {
		g.die(`"error: unexpected argument \` + "`${_argc_given[_argc_at]}\\`" + ` found"`)
	})
}

// shares reports whether an option has the variable of an argument.
func (g *generator) shares(c *Command, p *Param) bool {
	for ; c != nil; c = c.parent {
		if slices.ContainsFunc(c.Options(), func(q *Param) bool { return q.variable() == p.variable() }) {
			return true
		}
	}
	return false
}

// arg writes how an argument gets its values, which are at hand if there are any.
func (g *generator) arg(p *Param, shared bool) {
	keep := func() {
		if shared {
			g.line("builtin unset -v %s", p.variable())
		}
		g.store(p)
	}
	g.nest("if [[ ${#_argc_values[@]} -gt 0 ]]; then", "", func() {
		g.refine(p, p.what(""))
		keep()
	})
	if p.Bind != "" {
		g.nest(fmt.Sprintf(`elif [[ -n "${%s-}" ]]; then`, p.Bind), "", func() {
			g.line(`_argc_values=("$%s")`, p.Bind)
			g.refine(p, p.what(p.Bind))
			keep()
		})
	}
	switch {
	case p.Default != nil || p.DefaultBy != "":
		g.nest("else", "", func() {
			g.fallback(p, "_argc_values")
			keep()
		})
	case p.Required:
		g.nest("else", "", func() {
			g.die(quote("error: the required argument was not provided:"), quote("  "+p.placeholder()))
		})
	}
	g.line("fi")
	g.line(`argc__positionals+=(${_argc_values[@]+"${_argc_values[@]}"})`)
}

// env writes the handling of an environment variable.
func (g *generator) env(p *Param) {
	empty := "[[ -z \"${" + p.ID + "-}\" ]]"
	switch {
	case p.Required:
		g.when(empty, func() { g.line("_argc_unset+=(%s)", quote("  "+p.ID)) })
	case p.Default != nil || p.DefaultBy != "":
		g.when(empty, func() {
			g.fallback(p, p.ID)
			g.line("builtin export %s", p.ID)
		})
	}
	if len(p.Choices) == 0 && (p.ChoicesBy == "" || p.Unchecked) {
		return
	}
	g.when("[[ -n \"${"+p.ID+"-}\" ]]", func() {
		g.line(`_argc_values=("$%s")`, p.ID)
		g.refine(p, p.what(""))
	})
}
