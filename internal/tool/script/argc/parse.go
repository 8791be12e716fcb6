package argc

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"loki/internal/base/text"
)

// Parse reads the tags of a script and runs nothing of it. Code of an earlier [Build] is
// skipped. The error is an *[Error].
func Parse(src []byte) (*Script, error) {
	lines, regions, err := splitGenerated(src)
	if err != nil {
		return nil, err
	}
	r := &reader{script: &Script{Root: &Command{}, functions: make(map[string]bool)}}
	r.current = r.script.Root
	for i, l := range lines {
		_, comment := l.comment()
		switch below := len(regions) > 0 && l.start > regions[0].start; {
		case comment || strings.TrimSpace(l.text) == "":
		case below || strings.Contains(l.text, " --argc-eval "):
			r.script.Body = true
		case l.text == "main" || strings.HasPrefix(l.text, `main "$@"`) || strings.HasPrefix(l.text, "main $@"):
			r.script.Early = cmp.Or(r.script.Early, l.number)
		}
		if err := r.line(l, lines[i+1:]); err != nil {
			return nil, err
		}
	}
	if r.pending != nil {
		return nil, &Error{r.pending.Line, 1, "@cmd without a function"}
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	return r.script, nil
}

// A reader puts the tags of a script together.
type reader struct {
	script  *Script
	current *Command // what tags belong to; nil after a function
	pending *Command // command whose function is still to come; nil without one
	params  []*Param // all of them, for checks that need the whole script
}

// line reads one line. below are the lines that follow it.
func (r *reader) line(l line, below []line) error {
	if text, column, ok := l.tag(); ok {
		c := &cursor{s: text}
		name := c.while(func(b byte) bool { return !isBlank(b) })
		if err := r.tag(l.number, name, c, below); err != nil {
			err.Line, err.Column = l.number, column+1+min(c.i, len(text))
			return err
		}
		return nil
	}
	if name := l.function(); name != "" {
		return r.function(name, l.number)
	}
	return nil
}

// tag reads the tag called name, whose name c has passed. Errors have no place
// yet; it is that of c.
func (r *reader) tag(number int, name string, c *cursor, below []line) *Error {
	known := []string{"describe", "version", "cmd", "meta", "alias", "flag", "option", "env", "arg", "sandbox"}
	if !slices.Contains(known, name) {
		c.i = 0
		return problem("unknown tag @%s", name)
	}
	if name == "cmd" {
		if r.pending != nil {
			c.i = 0
			return problem("the @cmd of line %d has no function", r.pending.Line)
		}
		r.pending = &Command{Line: number}
		r.current = r.pending
	}
	if r.current == nil {
		c.i = 0
		return problem("@%s after a function belongs to no command; put it above the first function, or below a @cmd", name)
	}
	switch name {
	case "sandbox": // for who starts the script
		return nil
	case "describe", "cmd":
		text, _ := c.tail()
		r.current.Describe = paragraph(text, below)
		return nil
	case "version":
		text, _ := c.tail()
		return r.meta("version", text)
	case "meta":
		c.blanks()
		what := c.while(isNameByte)
		text, ok := c.tail()
		if what == "" || !ok {
			return problem("syntax error in @meta: expected a name and a value")
		}
		return r.meta(what, text)
	case "alias":
		c.blanks()
		names := c.names()
		if names == nil {
			return problem("syntax error in @alias: expected names, separated by commas")
		}
		r.current.Aliases = append(r.current.Aliases, names...)
		return nil
	}
	return r.param(number, name, c, below)
}

func problem(format string, args ...any) *Error {
	return &Error{Msg: fmt.Sprintf(format, args...)}
}

// paragraph joins the text of a tag with the comment lines that continue it.
func paragraph(text string, below []line) string {
	lines := []string{text}
	for _, l := range below {
		more, ok := l.continuation()
		if !ok {
			break
		}
		lines = append(lines, more)
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// param reads the tag of a parameter.
func (r *reader) param(number int, name string, c *cursor, below []line) *Error {
	forms := map[string]struct {
		read func(*cursor) *Param
		form string
	}{
		"flag":   {(*cursor).flag, "-s --name*"},
		"option": {(*cursor).option, "-s --name!, --name[a|b] or --name=default, then <LABEL>s after one blank each"},
		"arg":    {(*cursor).arg, "name!, name[a|b] or name=default, then <LABEL> after one blank"},
		"env":    {(*cursor).env, "NAME!, NAME[a|b] or NAME=default"},
	}
	form := forms[name]
	c.blanks()
	p := form.read(c)
	if p == nil {
		return problem("syntax error in @%s: unexpected %s; the form is %s", name, excerpt(c.rest()), form.form)
	}
	p.Line = number
	p.Description = paragraph(p.Description, below)
	c.i = len("@" + name) // what follows is about the tag as a whole
	if err := p.check(); err != nil {
		return err
	}
	if err := r.current.add(p); err != nil {
		return err
	}
	r.params = append(r.params, p)
	return nil
}

func excerpt(s string) string {
	if s == "" {
		return "end of line"
	}
	return strconv.Quote(text.CutRunes(s, 20))
}

// check reports what a parameter may not combine.
func (p *Param) check() *Error {
	switch {
	case p.Kind != Env && slices.Contains([]string{"argc__args", "argc__fn", "argc__positionals"}, p.variable()):
		return problem("the name %s is taken: %s has another meaning", p.ID, p.variable())
	case p.Kind == Env && (p.Multiple || p.Rest):
		return problem("@env %s: a variable has one value, so there can be no \"*\", \"+\" or \"~\"", p.ID)
	case p.Kind == Env && (identifier(p.ID) != p.ID || p.ID[0] >= '0' && p.ID[0] <= '9'):
		return problem("@env %s: this cannot be the name of an environment variable", p.ID)
	case p.Kind == Option && len(p.Labels) > 1 && (p.Assigned || p.Prefixed || p.Delimiter != ""):
		return problem("option %s takes several values at once, so it can have no delimiter and no value behind \"=\" or its name", p.Switch())
	case p.Bind != "" && p.Prefixed:
		return problem("option %s has its value behind its name, so it cannot be bound to a variable", p.Switch())
	}
	return nil
}

// add gives a parameter to a command.
func (c *Command) add(p *Param) *Error {
	switch p.Kind {
	case Arg:
		if other := find(c.Args, p.ID); other != nil {
			return problem("argument %s is declared twice, first in line %d", p.ID, other.Line)
		}
		c.Args = append(c.Args, p)
	case Env:
		if other := find(c.Envs, p.ID); other != nil {
			return problem("environment variable %s is declared twice, first in line %d", p.ID, other.Line)
		}
		c.Envs = append(c.Envs, p)
	default:
		for _, other := range c.own {
			for _, name := range p.names() {
				if slices.Contains(other.names(), name) {
					return problem("%s is declared twice, first in line %d", name, other.Line)
				}
			}
		}
		c.own = append(c.own, p)
	}
	return nil
}

func find(params []*Param, id string) *Param {
	for _, p := range params {
		if p.ID == id {
			return p
		}
	}
	return nil
}

// meta reads what a @meta tag says. Names that mean nothing here are those of other
// programs.
func (r *reader) meta(name, text string) *Error {
	root := r.current == r.script.Root
	switch name {
	case "version":
		if text == "" {
			return problem("the version is missing")
		}
		r.current.Version = text
	case "binname":
		if root {
			r.script.Binname = text
		}
	case "require-tools":
		r.current.Tools = append(r.current.Tools, strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t,", r) })...)
	case "dotenv":
		if root {
			r.script.dotenv = text
			if text == "" {
				r.script.dotenv = ".env"
			}
		}
	case "default-subcommand":
		r.current.Default = !root
	case "inherit-flag-options":
		r.script.inherit = r.script.inherit || root
	}
	return nil
}

// function reads the line that a function begins in.
func (r *reader) function(name string, number int) error {
	r.script.functions[name] = true
	cmd := r.pending
	r.pending, r.current = nil, nil
	if cmd == nil {
		return nil
	}
	parent := r.script.Root
	words := strings.Split(name, "::")
	for i, word := range words[:len(words)-1] {
		above := parent.lookup(strings.TrimRight(word, "_"))
		if above == nil {
			return &Error{number, 1, fmt.Sprintf("function %s is a command below %s, which is not declared above it", name, strings.Join(words[:i+1], " "))}
		}
		parent = above
	}
	last := words[len(words)-1]
	cmd.Name, cmd.path, cmd.Function, cmd.parent = strings.TrimRight(last, "_"), name, name, parent
	if cmd.Name == "" {
		return &Error{number, 1, fmt.Sprintf("function %s gives its command no name", name)}
	}
	if dashed := strings.ReplaceAll(cmd.Name, "_", "-"); dashed != cmd.Name && cmd.Name[0] != '_' {
		cmd.Aliases = slices.DeleteFunc(cmd.Aliases, func(alias string) bool { return alias == dashed })
		cmd.Aliases = slices.Insert(cmd.Aliases, 0, dashed)
	}
	cmd.Aliases = slices.DeleteFunc(cmd.Aliases, func(alias string) bool { return alias == cmd.Name })
	for _, word := range append([]string{cmd.Name}, cmd.Aliases...) {
		if other := parent.lookup(word); other != nil {
			return &Error{number, 1, fmt.Sprintf("two commands are called %s, the first in line %d", word, other.Line)}
		}
	}
	if cmd.Default {
		if err := parent.takeDefault(cmd); err != nil {
			return err
		}
	}
	parent.Commands = append(parent.Commands, cmd)
	return nil
}

func (c *Command) lookup(word string) *Command {
	for _, sub := range c.Commands {
		if sub.Name == word || slices.Contains(sub.Aliases, word) {
			return sub
		}
	}
	return nil
}

// fallback returns the default subcommand, or nil.
func (c *Command) fallback() *Command {
	for _, sub := range c.Commands {
		if sub.Default {
			return sub
		}
	}
	return nil
}

func (c *Command) takeDefault(sub *Command) error {
	if other := c.fallback(); other != nil {
		return &Error{sub.Line, 1, fmt.Sprintf("two default subcommands, the first in line %d", other.Line)}
	}
	if len(c.Args) > 0 {
		return &Error{sub.Line, 1, fmt.Sprintf("there can be no default subcommand, as arguments are declared in line %d", c.Args[0].Line)}
	}
	return nil
}

// finish checks and completes what needs the whole script.
func (r *reader) finish() error {
	s := r.script
	for _, p := range r.params {
		for _, name := range []string{p.DefaultBy, p.ChoicesBy} {
			if name != "" && !s.functions[name] {
				return &Error{p.Line, 1, fmt.Sprintf("function %s is not defined in the script", name)}
			}
		}
	}
	number := 0
	s.Root.all(func(c *Command) {
		c.number = number
		number++
		if len(c.Commands) > 0 || c.parent == nil {
			c.Function = "main"
			if c.parent != nil {
				c.Function = c.path + "::main"
			}
			if !s.functions[c.Function] {
				c.Function = ""
			}
		}
		for _, p := range slices.Concat(c.own, c.Args) {
			if p.Bind == "$" {
				p.Bind = strings.ToUpper(identifier(s.Binname + "_" + p.ID))
			}
		}
		if c.parent != nil {
			c.inherit(s)
		}
	})
	return nil
}

// inherit gives a command what its parents hand down. They have been given theirs before.
func (c *Command) inherit(s *Script) {
	for _, p := range slices.Backward(s.Root.Envs) {
		if find(c.Envs, p.ID) == nil {
			c.Envs = slices.Insert(c.Envs, 0, p)
		}
	}
	c.Tools = slices.Concat(s.Root.Tools, c.Tools)
	if !s.inherit {
		return
	}
	for _, p := range c.parent.Options() {
		if find(c.own, p.ID) == nil {
			c.inherited = append(c.inherited, p)
		}
	}
}
