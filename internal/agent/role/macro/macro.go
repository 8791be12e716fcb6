// Package macro reads macros: steps, as a user types them in the REPL, that run one after the
// other in a conversation of their own.
//
// A macro is a YAML file whose name is the macro's. Its steps may have placeholders,
// {{name}}, for the variables that it declares. Their values are arguments, by position:
//
//	variables:
//	  - name: agent
//	  - name: question
//	    rest: true
//	    default: What can you do?
//	steps:
//	  - .agent {{agent}}
//	  - '{{question}}'
//
// The package finds and fills macros. It runs nothing: package command does.
package macro

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/base/value/yamldoc"
)

// Macro is a macro as it is written.
type Macro struct {
	Name      string
	File      string // "" for one that is part of the program
	Steps     []Step // at least one
	Variables []Variable
}

// Step is what one submission to the REPL would be: a command or a prompt.
type Step struct {
	Text string // perhaps of several lines
	Line int    // of the file, from 1
}

// Variable is a value that a macro is run with.
type Variable struct {
	Name    string
	Default *string // nil: it must be given
	Rest    bool    // takes all arguments that are left; only the last variable has it
}

// Parse reads a macro. name and file are those of the macro, file may be empty. The warnings
// are for the user; the error reports, by line and column, what is wrong with the text.
func Parse(name, file string, text []byte) (Macro, []*yamldoc.Problem, error) {
	doc, err := yamldoc.Parse(cmp.Or(file, "macro "+name), text)
	if err != nil {
		if p := yamldoc.AsProblems(err); len(p) > 0 && p[0].Hint == "" {
			p[0].Hint = "a step that begins with {{ or has a colon and a space in it needs quotes"
		}
		return Macro{}, nil, err
	}
	m := Macro{Name: name, File: file}
	root := doc.Root().Map()
	root.Require("steps")
	m.readVariables(root)
	m.readSteps(root)
	root.Done()
	return m, doc.Warnings(), doc.Err()
}

func (m *Macro) readVariables(root *yamldoc.Map) {
	items := root.List("variables")
	for i, item := range items {
		fields := item.Map()
		if fields == nil {
			continue
		}
		var v Variable
		fields.Require("name")
		var text string
		if fields.Str("name", &v.Name) {
			m.checkName(fields.Get("name"), v.Name)
		}
		if fields.Text("default", &text) {
			v.Default = &text
		}
		if fields.Bool("rest", &v.Rest); v.Rest && i < len(items)-1 {
			fields.Get("rest").Warnf("rest is ignored, because %s is not the last variable", v.Name)
			v.Rest = false
		}
		fields.Done()
		m.Variables = append(m.Variables, v)
	}
}

// checkName reports a name that no placeholder can have, or that another variable has.
func (m *Macro) checkName(n *yamldoc.Node, name string) {
	if name == "" || strings.TrimSpace(name) != name || strings.ContainsAny(name, "{}\n") {
		n.Errorf("%q cannot be the name of a variable", name).Hint = "a name is what stands between {{ and }} in a step"
	}
	for _, other := range m.Variables {
		if other.Name == name {
			n.Errorf("another variable is called %q", name)
		}
	}
}

func (m *Macro) readSteps(root *yamldoc.Map) {
	items := root.List("steps")
	if n := root.Get("steps"); n != nil && n.Kind() == yamldoc.List && len(items) == 0 {
		n.Errorf("a macro has at least one step")
	}
	names := make([]string, len(m.Variables))
	for i, v := range m.Variables {
		names[i] = v.Name
	}
	for _, item := range items {
		text, ok := item.Str()
		if !ok {
			continue
		}
		m.Steps = append(m.Steps, Step{Text: text, Line: item.Pos().Line})
		for _, match := range placeholder().FindAllStringSubmatch(text, -1) {
			if near := yamldoc.Nearest(match[1], names); near != "" && near != match[1] {
				item.Warnf("{{%s}} stays as it is, because no variable has this name", match[1]).Hint = "did you mean {{" + near + "}}?"
			}
		}
	}
}

// placeholder matches {{name}}, also with spaces around the name.
var placeholder = text.Regexp(`\{\{[ \t]*([^{}\n]*?)[ \t]*\}\}`)

// Usage returns the line that shows which arguments the macro takes: its name, then <x> for a
// variable that must be given and [x] for another one, with an ellipsis if it takes the rest.
func (m Macro) Usage() string {
	usage := m.Name
	for _, v := range m.Variables {
		word := "<" + v.Name + ">"
		if v.Default != nil {
			word = "[" + v.Name + "]"
		}
		if v.Rest {
			word += "..."
		}
		usage += " " + word
	}
	return usage
}

// OnlyPrompts reports whether no step is a command.
func (m Macro) OnlyPrompts() bool {
	return !slices.ContainsFunc(m.Steps, func(s Step) bool { return strings.HasPrefix(strings.TrimSpace(s.Text), ".") })
}

// Place says where a step stands: file:line, or "line N" for a macro that is part of the program.
func (m Macro) Place(s Step) string {
	if m.File == "" {
		return fmt.Sprintf("line %d", s.Line)
	}
	return fmt.Sprintf("%s:%d", m.File, s.Line)
}

// Fill returns the steps with the values of the variables in place of their placeholders. What is
// in a value is not searched for placeholders. Placeholders of other names stay as they are, and arguments without
// a variable are ignored. A variable that lacks a value is a [*fault.Error] with code Usage.
func (m Macro) Fill(args []string) ([]Step, error) {
	values := make(map[string]string, len(m.Variables))
	for i, v := range m.Variables {
		switch {
		case i < len(args) && v.Rest:
			values[v.Name] = strings.Join(args[i:], " ")
		case i < len(args):
			values[v.Name] = args[i]
		case v.Default != nil:
			values[v.Name] = *v.Default
		default:
			return nil, fault.New(fault.Usage, "macro %s: variable %q has no value", m.Name, v.Name).WithHint("usage: %s", m.Usage())
		}
	}
	steps := make([]Step, len(m.Steps))
	for i, s := range m.Steps {
		s.Text = placeholder().ReplaceAllStringFunc(s.Text, func(match string) string {
			if value, ok := values[placeholder().FindStringSubmatch(match)[1]]; ok {
				return value
			}
			return match
		})
		steps[i] = s
	}
	return steps, nil
}
