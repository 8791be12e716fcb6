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
	list := properties{}
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
		list = append(list, property{key, describe(p)})
		if p.Required {
			required = append(required, key)
		}
	}
	parameters, err := value.Marshal(schema{Type: "object", Properties: &list, Required: &required})
	if err != nil {
		return f, fmt.Errorf("function %s: %w", name, err)
	}
	f.Tool.Parameters = parameters
	return f, nil
}

func propertyName(name string) string { return strings.ReplaceAll(name, "-", "_") }

// describe returns the schema of an option's values.
func describe(p *argc.Param) schema {
	s := schema{Type: kind(p), Description: p.Description, Enum: p.Choices}
	if s.Type == "array" {
		s.Items = &schema{Type: "string", Enum: p.Choices}
		s.Enum = nil
	}
	return s
}

// kind returns the JSON type of an option.
func kind(p *argc.Param) string {
	switch {
	case p.Kind == argc.Flag:
		return "boolean"
	case p.Multiple:
		return "array"
	case p.Labels[0] == "INT":
		return "integer"
	case p.Labels[0] == "NUM":
		return "number"
	}
	return "string"
}

// schema is the part of JSON Schema that options need, in the order it is written.
type schema struct {
	Type        string      `json:"type"`
	Description string      `json:"description,omitempty"`
	Properties  *properties `json:"properties,omitempty"`
	Items       *schema     `json:"items,omitempty"`
	Enum        []string    `json:"enum,omitempty"`
	Required    *[]string   `json:"required,omitempty"`
}

type property struct {
	key    string
	schema schema
}

// properties is an object whose members keep their order.
type properties []property

// MarshalJSON returns the object.
func (ps properties) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, p := range ps {
		if i > 0 {
			out = append(out, ',')
		}
		key, err := value.Marshal(p.key)
		if err != nil {
			return nil, err
		}
		member, err := value.Marshal(p.schema)
		if err != nil {
			return nil, err
		}
		out = append(append(append(out, key...), ':'), member...)
	}
	return append(out, '}'), nil
}
