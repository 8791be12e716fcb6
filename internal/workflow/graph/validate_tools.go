package graph

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"loki/internal/base/value"
	"loki/internal/base/value/schema"
)

// tools checks tool nodes: that the agent has the tool, and as far as arguments are constant, that the tool takes them.
// What a server's tools take is known only once it runs.
func (v *validator) tools(n *Node) {
	if n.Tool == nil || v.env.Context == nil {
		return
	}
	if server, _, ok := n.Tool.Server(); ok {
		v.tool(n, "tool", mcpPrefix+server)
		return
	}
	if strings.HasPrefix(n.Tool.Tool, "agent__") || n.Tool.Tool == "worktree__merge" {
		v.err(RuleUnknownTool, n, "tool", "use a node of type agent", "tool %q is for models, which work with the agents that they start", n.Tool.Tool)
		return
	}
	before := len(v.findings)
	if v.tool(n, "tool", n.Tool.Tool); len(v.findings) > before || v.env.Context.Parameters == nil {
		return
	}
	parameters, ok := v.env.Context.Parameters(n.Tool.Tool)
	if !ok {
		v.err(RuleUnknownTool, n, "tool", "name one of them", "tool %q means several tools", n.Tool.Tool)
		return
	}
	v.arguments(n, parameters)
}

// arguments compares the arguments of a tool node with the schema of what its tool takes.
func (v *validator) arguments(n *Node, parameters value.Value) {
	c := argumentCheck{root: parameters.AsObject(), report: func(path, hint, format string, args ...any) {
		v.err(RuleToolArguments, n, "arguments"+path, hint, "tool %s: %s", n.Tool.Tool, fmt.Sprintf(format, args...))
	}}
	given := n.Tool.Arguments.Source
	if isPlain(c.root) {
		c.object(c.root, given, "")
	} else {
		c.value(parameters, given.Value(), "")
	}
}

// argumentCheck compares arguments, in which texts are templates, with the schema of a tool. Paths are below the arguments.
type argumentCheck struct {
	root   *value.Object // the schema
	report func(path, hint, format string, args ...any)
}

// combining are the keywords that make a schema depend on more than the type of a value and its members: it can be compared
// with constants only.
var combining = [...]string{
	"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas", "dependentRequired", "dependencies",
	"patternProperties", "propertyNames", "unevaluatedProperties", "prefixItems", "unevaluatedItems", "contains",
}

// isPlain reports whether a schema can be compared with a value member by member.
func isPlain(schema *value.Object) bool {
	return !slices.ContainsFunc(combining[:], func(keyword string) bool {
		_, ok := schema.Get(keyword)
		return ok
	})
}

// object compares members with a plain schema. Members that it does not describe are taken for mistakes unless it
// says that there may be others.
func (c *argumentCheck) object(shape, given *value.Object, path string) {
	described, _ := shape.Get("properties")
	properties := described.AsObject()
	var names []string
	for name := range properties.All() {
		names = append(names, name)
	}
	required, _ := shape.Get("required")
	list, _ := required.AsList()
	for _, r := range list.All() {
		name, _ := r.AsString()
		if _, ok := given.Get(name); !ok {
			sub, _ := properties.Get(name)
			c.report(path, describeParameter(name, sub.AsObject()), "argument %q is missing", c.name(path, name))
		}
	}
	additional, declared := shape.Get("additionalProperties")
	allowed, isBool := additional.AsBool()
	open := declared && (allowed || !isBool) || !declared && properties == nil
	for name, v := range given.All() {
		sub, ok := properties.Get(name)
		switch {
		case ok:
			c.value(sub, v, path+"."+name)
		case !open:
			hint := didYouMean(name, names)
			if hint == "" && len(names) > 0 {
				hint = "arguments: " + strings.Join(names, ", ")
			}
			c.report(path+"."+name, hint, "there is no argument %q", c.name(path, name))
		}
	}
}

// name returns the name of a member of an argument, for people.
func (c *argumentCheck) name(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

// describeParameter says what a parameter is, nothing if its schema does not.
func describeParameter(name string, shape *value.Object) string {
	kind, _ := shape.Get("type")
	of, _ := kind.AsString()
	description, _ := shape.Get("description")
	text, _ := description.AsString()
	if of != "" {
		name += " (" + of + ")"
	}
	if text = strings.Join(strings.Fields(text), " "); text != "" {
		name += ": " + text
	} else if of == "" {
		return ""
	}
	return name
}

// value compares an argument with its schema. What depends on the state is compared before the call.
func (c *argumentCheck) value(shape, v value.Value, path string) {
	templates := 0
	mapTexts(v, "", func(_, text string) value.Value {
		if len(ParseTemplate(text).Roots()) > 0 {
			templates++
		}
		return value.Value{}
	})
	object := shape.AsObject()
	switch {
	case templates == 0:
		c.constant(shape, v, path)
	case object == nil || !isPlain(object):
	case v.Kind() == value.ObjectKind:
		c.object(object, v.AsObject(), path)
	case v.Kind() == value.ListKind:
		items, ok := object.Get("items")
		list, _ := v.AsList()
		for i, item := range list.All() {
			if ok {
				c.value(items, item, fmt.Sprintf("%s[%d]", path, i))
			}
		}
	default:
		text, _ := v.AsString()
		if _, one := ParseTemplate(text).single(); !one {
			c.text(object, path)
		}
	}
}

// text compares an argument that is always a text, whatever is filled in.
func (c *argumentCheck) text(shape *value.Object, path string) {
	kind, ok := shape.Get("type")
	if !ok {
		return
	}
	list, _ := kind.AsList()
	wanted := []string{}
	for _, k := range list.Append(kind).All() {
		if name, ok := k.AsString(); ok {
			wanted = append(wanted, name)
		}
	}
	if !slices.Contains(wanted, "string") {
		c.report(path, "a template that is exactly one placeholder keeps the type of its value", "argument %q must be of type %s, and is always a text",
			strings.TrimPrefix(path, "."), strings.Join(wanted, " or "))
	}
}

// constant compares an argument that does not depend on the state.
func (c *argumentCheck) constant(shape, v value.Value, path string) {
	if object := shape.AsObject(); object != nil && object != c.root {
		members := make([]value.Member, 0, object.Len()+2)
		for _, name := range [...]string{"$defs", "definitions", "$schema"} { // what references lead to
			if defs, ok := c.root.Get(name); ok {
				members = append(members, value.Member{Name: name, Value: defs})
			}
		}
		shape = value.ObjectOf(members...).Merge(object).Value()
	}
	form, err := schema.Compile(shape)
	if err != nil {
		return // a reference to elsewhere, or a schema that is not understood; the tool checks what it gets
	}
	for _, violation := range form.Validate(v) {
		at := path + pathOf(v, violation.Path)
		what := "the arguments"
		if at != "" {
			what = fmt.Sprintf("argument %q", strings.TrimPrefix(at, "."))
		}
		c.report(at, "", "%s: %s", what, violation.Message)
	}
}

// pathOf returns a JSON Pointer into v in the form of [Graph.Pos].
func pathOf(v value.Value, pointer string) string {
	var path strings.Builder
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		if list, ok := v.AsList(); ok {
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= list.Len() {
				break
			}
			v = list.At(i)
			fmt.Fprintf(&path, "[%d]", i)
			continue
		}
		if step == "" {
			break
		}
		v, _ = v.AsObject().Get(step)
		path.WriteString("." + step)
	}
	return path.String()
}
