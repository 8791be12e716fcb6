// Package bashdecl declares the functions of bash tools to models, and turns the calls
// that models make into command lines.
//
// A tool is a script that its comment tags describe, see package argc. Without subcommands
// it has one function, named after the script; with subcommands, each one of the first
// level is a function. The flags and options of a command are the function's properties.
// Positional arguments and environment variables are not: they are for people.
//
// Models see names with "_" where the command line has "-". A [Function] remembers the
// real ones, so every declared name can be called. No script is run.
package bashdecl

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/tool/script/argc"
	"loki/internal/tool/script/signature"
)

// Instructions is the subcommand that an agent script may have for the program's own use.
// Like all names with "_" in front it is not meant for models.
const Instructions = "_instructions"

// Function is a function of a bash script. It is immutable.
type Function struct {
	// Tool is the declaration. Its schema always has properties and required.
	Tool chat.Tool
	// Subcommand is the word that calls it, empty if the script itself is the function.
	Subcommand string
	// Line is that of the subcommand's @cmd, from 1; 0 for the script itself.
	Line int

	options map[string]*argc.Param // by property
}

// Parse returns the functions of a script in their order. stem is the name of its file
// without the extension. Subcommands with "_" in front are left out, except for
// [Instructions].
//
// Errors about tags are an *argc.Error. A function without a description is an error, and
// so are two functions or properties that would have the same name, and commands that would
// run before the arguments are read: a script without subcommands has to have a function
// main, or to read its arguments itself above its commands.
func Parse(src []byte, stem string) ([]Function, error) {
	s, err := argc.Parse(src)
	if err != nil {
		return nil, err
	}
	if s.Early > 0 {
		return nil, &argc.Error{Line: s.Early, Column: 1, Msg: "main is called before the arguments are read; remove this line, as main is called by itself"}
	}
	if len(s.Root.Commands) == 0 {
		name := stem
		if s.Binname != "" {
			name = s.Binname
		}
		f, err := declare(s.Root, name)
		if err != nil {
			return nil, err
		}
		if s.Root.Function == "" && !s.Body {
			return nil, errors.New("no function main: its commands would run before the arguments are read; put the commands into main() { ... }")
		}
		return []Function{f}, nil
	}
	var list []Function
	for _, c := range s.Root.Commands {
		if strings.HasPrefix(c.Name, "_") && c.Name != Instructions {
			continue
		}
		f, err := declare(c, c.Name)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(list, func(g Function) bool { return g.Tool.Name == f.Tool.Name }) {
			return nil, &argc.Error{Line: c.Line, Column: 1, Msg: fmt.Sprintf("two functions are called %s", f.Tool.Name)}
		}
		list = append(list, f)
	}
	return list, nil
}

// declare returns the declaration of a command under a name.
func declare(c *argc.Command, name string) (Function, error) {
	f := Function{Subcommand: c.Name, Line: c.Line, options: make(map[string]*argc.Param)}
	f.Tool.Name = propertyName(name)
	f.Tool.Description = c.Describe
	if c.Describe == "" {
		tag := "@cmd"
		if c.Name == "" {
			tag = "@describe"
		}
		return f, &argc.Error{Line: max(c.Line, 1), Column: 1, Msg: fmt.Sprintf("function %s has no description; write one after %s", name, tag)}
	}
	var list []value.Member
	required := []string{}
	for _, p := range c.Options() {
		if p.ID == "help" || p.ID == "version" {
			continue
		}
		key := propertyName(p.ID)
		if other := f.options[key]; other != nil {
			return f, &argc.Error{Line: p.Line, Column: 1, Msg: fmt.Sprintf("%s and %s are both property %s of function %s", other.Switch(), p.Switch(), key, name)}
		}
		f.options[key] = p
		list = append(list, value.Member{Name: key, Value: typeOf(p).Schema(p.Description)})
		if p.Required {
			required = append(required, key)
		}
	}
	f.Tool.Parameters = signature.ObjectSchema(list, required)
	return f, nil
}

func propertyName(name string) string { return strings.ReplaceAll(name, "-", "_") }

// typeOf returns the type of an option's values.
func typeOf(p *argc.Param) signature.Type {
	t := signature.Type{Kind: kind(p)}
	for _, c := range p.Choices {
		t.Literals = append(t.Literals, signature.Literal{Text: c})
	}
	if t.Kind == signature.Array {
		item := signature.Type{Kind: signature.String, Literals: t.Literals}
		return signature.Type{Kind: t.Kind, Item: &item}
	}
	return t
}

// kind returns the JSON type of an option.
func kind(p *argc.Param) signature.Kind {
	switch {
	case p.Kind == argc.Flag:
		return signature.Boolean
	case p.Multiple:
		return signature.Array
	}
	return numeric(p, signature.String)
}

// numeric returns the type of number that the values of an option must have, otherwise if they may be any text.
func numeric(p *argc.Param, otherwise signature.Kind) signature.Kind {
	switch p.Labels[0] {
	case "INT":
		return signature.Integer
	case "NUM":
		return signature.Number
	}
	return otherwise
}
