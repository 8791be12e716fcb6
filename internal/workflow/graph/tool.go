package graph

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
)

// Tool calls a tool, without a model.
type Tool struct {
	Tool         string       // name of a tool of the agent, or mcp:SERVER/TOOL
	Arguments    Arguments    // of the call
	OutputSchema *value.Value // a JSON Schema, nil for none
}

// mcpPrefix begins the names of tools of MCP servers, and in lists of tools those of servers.
const mcpPrefix = "mcp:"

// Server returns the ids of the MCP server and of its tool; ok is false for a tool of the agent.
func (t *Tool) Server() (server, name string, ok bool) {
	rest, ok := strings.CutPrefix(t.Tool, mcpPrefix)
	if !ok {
		return "", "", false
	}
	server, name, ok = strings.Cut(rest, "/")
	return server, name, ok
}

// Arguments are those of a tool, or what a subgraph is given: a JSON object in which each text is a [Template]. The zero Arguments is the empty object.
type Arguments struct {
	Source *value.Object // as it is in the definition
}

// Render returns the arguments as they are with a state. A text that is exactly one placeholder becomes its value, with
// its type. Placeholders that are missing are a [*MissingError] that names all of them.
func (a Arguments) Render(s Lookup) (json.RawMessage, error) {
	rendered, err := a.render(s)
	if err != nil {
		return nil, err
	}
	return rendered.AppendJSON(nil), nil
}

func (a Arguments) render(s Lookup) (value.Value, error) {
	missing := new(MissingError)
	rendered := mapTexts(a.Source.Value(), "", func(_, text string) value.Value {
		v, err := ParseTemplate(text).Raw(s)
		if lacks, ok := errors.AsType[*MissingError](err); ok {
			missing.Paths = append(missing.Paths, lacks.Paths...)
		}
		return v
	})
	if missing.Paths != nil {
		return value.Value{}, missing
	}
	return rendered, nil
}

// templates calls add with each text, and its path below the arguments, such as .query or .tags[0].
func (a Arguments) templates(add func(path string, t *Template)) {
	mapTexts(a.Source.Value(), "", func(path, text string) value.Value {
		t := ParseTemplate(text)
		add(path, &t)
		return value.Value{}
	})
}

// mapTexts returns v with each text, at any depth, replaced by what f makes of it. Paths are as [Graph.Pos] has them, below
// path.
func mapTexts(v value.Value, path string, f func(path, text string) value.Value) value.Value {
	switch v.Kind() {
	case value.String:
		text, _ := v.AsString()
		return f(path, text)
	case value.ListKind:
		list, _ := v.AsList()
		items := make([]value.Value, list.Len())
		for i, item := range list.All() {
			items[i] = mapTexts(item, fmt.Sprintf("%s[%d]", path, i), f)
		}
		return value.ListOf(items...).Value()
	case value.ObjectKind:
		members := make([]value.Member, 0, v.AsObject().Len())
		for name, member := range v.AsObject().All() {
			members = append(members, value.Member{Name: name, Value: mapTexts(member, path+"."+name, f)})
		}
		return value.ObjectOf(members...).Value()
	}
	return v
}

// tool reads the fields of a tool node.
func (p *parser) tool(n *Node, m *yamldoc.Map) {
	n.Tool = &Tool{OutputSchema: outputShape(m)}
	if m.Str("tool", &n.Tool.Tool) {
		if server, name, ok := n.Tool.Server(); strings.HasPrefix(n.Tool.Tool, mcpPrefix) && (!ok || server == "" || name == "") {
			m.Get("tool").Errorf("expected mcp:SERVER/TOOL, found %q", n.Tool.Tool).Hint = "name a tool of the server: mcp:github/create_issue"
		}
	}
	if arguments := m.Map("arguments").Node(); arguments != nil {
		if v, ok := arguments.Value(); ok {
			n.Tool.Arguments.Source = v.AsObject()
		}
	}
}

func (l *aspects) tool(t *Tool) {
	l.text("tool", t.Tool)
	if t.Arguments.Source.Len() > 0 {
		v := t.Arguments.Source.Value()
		l.value("arguments", &v)
	}
	l.value("output_schema", t.OutputSchema)
}
