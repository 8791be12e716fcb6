// Package environ holds what the program knows of environments, lists of NAME=value as
// from os.Environ: how they are looked up and merged, which variables are secret by their
// names, and what a child process gets.
//
// A child gets the user's environment without the variables that a [Policy] withholds, and with
// the ones that the child declares or the user allows for all children. Withheld
// variables are named, never shown, when a child fails: see [Child.Note].
//
// The policy keeps keys from programs that have no use for them: those could print them, send
// them with a crash report or pass them on. It does not protect against a program of the same
// user that looks for them.
package environ

import (
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
)

// Lookup returns the value of a variable; ok is false if environ does not have it. The last
// entry counts. On Windows the case of names does not matter.
func Lookup(environ []string, name string) (value string, ok bool) {
	for _, entry := range slices.Backward(environ) {
		if key, v, found := strings.Cut(entry, "="); found && same(key, name) {
			return v, true
		}
	}
	return "", false
}

// Get returns the value of a variable, empty if environ does not have it.
func Get(environ []string, name string) string {
	v, _ := Lookup(environ, name)
	return v
}

// AgentVariable returns the name of the variable in which scripts get the variable of an
// agent.
func AgentVariable(name string) string {
	return "LLM_AGENT_VAR_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

func same(a, b string) bool {
	return a == b || runtime.GOOS == "windows" && strings.EqualFold(a, b)
}

// Policy says which variables children do not get. A nil Policy withholds none. It must not
// change while it is in use.
type Policy struct {
	// Keys are variables that hold keys of the program itself, whatever their names are.
	Keys []string
	// Keep are names, in which * matches any text, of variables that all children get.
	Keep []string
	// Given is called for each secret variable that a child gets. Nil means that it is of no
	// interest.
	Given func(name, value string)
}

// Child is what a child process gets.
type Child struct {
	Environ  []string // as for os/exec
	Withheld []string // names of the variables that it does not get, sorted
}

// Child returns what a child gets of environ. It declares the variables of these names.
func (p *Policy) Child(environ []string, declared ...string) Child {
	if p == nil {
		return Child{Environ: environ}
	}
	c := Child{Environ: make([]string, 0, len(environ))}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		switch {
		case name == ParentVariable: // an address for this process only, and no secret
		case !p.secret(name, value):
			c.Environ = append(c.Environ, entry)
		case p.keeps(name), slices.ContainsFunc(declared, func(d string) bool { return same(d, name) }):
			c.Environ = append(c.Environ, entry)
			if p.Given != nil {
				p.Given(name, value)
			}
		case !slices.Contains(c.Withheld, name):
			c.Withheld = append(c.Withheld, name)
		}
	}
	slices.Sort(c.Withheld)
	return c
}

func (p *Policy) secret(name, value string) bool {
	return slices.ContainsFunc(p.Keys, func(k string) bool { return same(k, name) }) || Secret(name, value)
}

func (p *Policy) keeps(name string) bool {
	return slices.ContainsFunc(p.Keep, func(pattern string) bool { return matches(pattern, name) })
}

// matches reports whether a name matches a pattern, in which * matches any text.
func matches(pattern, name string) bool {
	if runtime.GOOS == "windows" {
		pattern, name = strings.ToUpper(pattern), strings.ToUpper(name)
	}
	ok, err := path.Match(pattern, name) // names have no slash
	return ok && err == nil || pattern == name
}

// maxNoted is how many variables [Child.Note] names.
const maxNoted = 8

// Note names the variables that a failed child did not get, those first that are mentioned
// in texts, such as its code and what it printed. It is empty if there are none, and begins
// in lower case otherwise. remedy says how to give a variable to children of this kind.
func (c Child) Note(remedy string, texts ...string) string {
	if len(c.Withheld) == 0 {
		return ""
	}
	names := slices.Clone(c.Withheld)
	rank := func(name string) int {
		if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, name) }) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(names, func(a, b string) int { return rank(a) - rank(b) })
	more := ""
	if left := len(names) - maxNoted; left > 0 {
		names, more = names[:maxNoted], fmt.Sprintf(" and %d more", left)
	}
	return fmt.Sprintf("withheld from its environment: %s%s; %s", strings.Join(names, ", "), more, remedy)
}

// ParentVariable is the variable with the address of a [Parent].
const ParentVariable = "LOKI_PARENT"
