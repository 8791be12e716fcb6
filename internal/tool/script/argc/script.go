package argc

import (
	"fmt"
	"slices"
	"strings"
)

// Error is a mistake in the tags of a script.
type Error struct {
	Line   int // from 1
	Column int // in bytes, from 1
	Msg    string
}

// Error returns the place and the message.
func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Msg)
}

// Script is a script as its tags describe it. It is immutable.
type Script struct {
	Root *Command
	// Binname is the program's name as @meta binname gives it, or empty.
	Binname string
	// Body reports whether the script reads its arguments itself and has lines below that.
	Body bool
	// Early is the line of the first call of main before the arguments are read, from 1; 0 without one.
	Early int

	dotenv    string // file of @meta dotenv, or empty
	inherit   bool   // @meta inherit-flag-options
	functions map[string]bool
}

// Command is the root or a subcommand.
type Command struct {
	Name     string   // the word that calls it; empty for the root
	Aliases  []string // other words that call it
	Function string   // what it runs; empty without one
	Describe string   // may have several lines
	Version  string   // as declared, or empty
	Args     []*Param // positional, in order
	Envs     []*Param // of @env, the root's first
	Tools    []string // programs that it needs, the root's first
	Commands []*Command
	Default  bool // its parent runs it where no subcommand is named
	Line     int  // of its first tag; 0 for the root

	parent    *Command
	own       []*Param // flags and options declared here
	inherited []*Param // and those of its parents that it takes too
	path      string   // function that it was declared with; empty for the root
	number    int      // in the generated code; the root is 0
}

// Options returns the flags and options of a command in order, inherited ones first.
func (c *Command) Options() []*Param { return slices.Concat(c.inherited, c.own) }

// words returns the names below the root that lead to c.
func (c *Command) words() []string {
	if c.parent == nil {
		return nil
	}
	return append(c.parent.words(), c.Name)
}

// all calls f for c and the commands below it, parents first.
func (c *Command) all(f func(*Command)) {
	f(c)
	for _, sub := range c.Commands {
		sub.all(f)
	}
}

// Kind is what a parameter is.
type Kind uint8

// The kinds of parameters.
const (
	Flag   Kind = iota // a switch
	Option             // named values
	Arg                // positional values
	Env                // an environment variable
)

// Param is a parameter of a command.
type Param struct {
	Kind Kind
	// ID identifies the parameter: its long name without sign, or else its letter, or the
	// name of an argument or variable. Names that begin with + give plus_NAME.
	ID          string
	Short       string // with its sign, such as -s; may be empty
	Long        string // with its signs, such as --long, -long or +long; may be empty
	Description string // may have several lines

	Required  bool   // and has no default
	Multiple  bool   // it may be given several times; a flag is counted
	Rest      bool   // it takes everything that follows
	Delimiter string // at which each value is split; may be empty

	Choices   []string // the values it may have; nil for any
	ChoicesBy string   // function that prints the choices, one a line; may be empty
	Unchecked bool     // choices of ChoicesBy are proposals only

	Default   *string // nil without one
	DefaultBy string  // function that prints the default; may be empty

	// Labels name the values of an option or argument in help, in upper case. An option
	// takes as many values as it has labels. Of the last one there may also be none, one
	// ("?"), one or more ("+") or any number ("*"), as Last says; 0 means exactly one.
	Labels []string
	Last   byte

	Bind     string // environment variable that can replace it; may be empty
	Assigned bool   // its value has to follow "="
	Prefixed bool   // its value directly follows its name
	Line     int    // of its tag
}

// Switch returns the name by which a flag or option is best given on the command line: the
// long one if it has one.
func (p *Param) Switch() string {
	if p.Long != "" {
		return p.Long
	}
	return p.Short
}

// names returns the names by which a flag or option may be given.
func (p *Param) names() []string {
	names := make([]string, 0, 2)
	for _, name := range []string{p.Long, p.Short} {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// values returns how many values an option takes at once. max is negative if there is no
// limit.
func (p *Param) values() (least, most int) {
	n := len(p.Labels)
	switch {
	case p.Rest:
		return 1, -1
	case p.Last == '?':
		return n - 1, n
	case p.Last == '+':
		return n, -1
	case p.Last == '*':
		return n - 1, -1
	}
	return n, n
}

// array reports whether the variable of p is an array.
func (p *Param) array() bool {
	if p.Kind == Flag || p.Kind == Env {
		return false
	}
	if p.Multiple || p.Rest {
		return true
	}
	if p.Kind == Arg {
		return false
	}
	_, most := p.values()
	return most != 1
}

// variable returns the shell variable that the value of p goes to.
func (p *Param) variable() string {
	if p.Kind == Env {
		return p.ID
	}
	return "argc_" + identifier(p.ID)
}

// identifier returns name with "_" for whatever cannot be part of a shell variable.
func identifier(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || isAlnum(r) {
			return r
		}
		return '_'
	}, name)
}

func isAlnum(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

// label returns a word of help as labels are written: upper case, words separated by
// dashes.
func label(name string) string {
	var b strings.Builder
	lower := false
	for _, r := range name {
		switch {
		case r == '_':
			r = '-'
		case lower && r >= 'A' && r <= 'Z':
			b.WriteByte('-')
		}
		lower = r >= 'a' && r <= 'z'
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}
