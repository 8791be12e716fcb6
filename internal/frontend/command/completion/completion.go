// Package completion completes the command line of the program in shells.
//
// A flag is an option of the command line, as package pflag has it, without what only
// the program needs to know. A word is one argument as the shell splits them, and the
// current word is the one the cursor is in, up to the cursor. A candidate is what may
// stand there instead.
//
// There are two ways to complete. A static script ([Static]) is made once and knows the
// flags and their fixed values; it never calls the program. A registration script
// ([Registration]) calls the program each time, which answers with what [Complete]
// finds, in the form of [Print]: it also knows the user's models, sessions and so on.
package completion

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"loki/internal/base/fault"
)

// Shell is a shell that can complete.
type Shell string

// The shells.
const (
	Bash       Shell = "bash"
	Zsh        Shell = "zsh"
	Fish       Shell = "fish"
	PowerShell Shell = "powershell"
	Elvish     Shell = "elvish"
	Nushell    Shell = "nushell"
)

// Shells returns the names of all shells.
func Shells() []string {
	return []string{string(Bash), string(Zsh), string(Fish), string(PowerShell), string(Elvish), string(Nushell)}
}

// ParseShell returns the shell of a name, which may be power-shell for [PowerShell]. The error has the code Usage.
func ParseShell(name string) (Shell, error) {
	if name == "power-shell" {
		return PowerShell, nil
	}
	if !slices.Contains(Shells(), name) {
		return "", fault.New(fault.Usage, "%q is not a shell that Loki can complete for", name).
			WithHint("the shells are %s", strings.Join(Shells(), ", "))
	}
	return Shell(name), nil
}

// Flag is an option of the command line.
type Flag struct {
	Name  string // without hyphens
	Short string // one letter, or empty
	Usage string // one line

	Hidden bool // it is understood and not offered

	Arg      string   // what its value is called; empty for a switch
	Words    int      // how many words its value has
	Optional bool     // the value may be left out; it is then no word of its own
	Values   []string // the only values there are; nil for any
}

// Enumerated is a [pflag.Value] that accepts a few values only.
type Enumerated interface {
	Values() []string // nil for any value
}

// Flags returns the flags of fs that are not hidden, in the order of fs. Those named in
// pairs have a value of two words.
func Flags(fs *pflag.FlagSet, pairs ...string) []Flag {
	var flags []Flag
	fs.VisitAll(func(f *pflag.Flag) {
		arg, usage := pflag.UnquoteUsage(f)
		flag := Flag{Name: f.Name, Short: f.Shorthand, Usage: usage, Hidden: f.Hidden}
		if t := f.Value.Type(); t != "bool" && t != "count" {
			flag.Arg, flag.Words, flag.Optional = arg, 1, f.NoOptDefVal != ""
			if slices.Contains(pairs, f.Name) {
				flag.Words = 2
			}
			if e, ok := f.Value.(Enumerated); ok {
				flag.Values = e.Values()
			}
		}
		flags = append(flags, flag)
	})
	return flags
}

// isFile reports whether the value of f is a path.
func (f Flag) isFile() bool { return slices.Contains([]string{"FILE", "PATH", "SCRIPT"}, f.Arg) }
