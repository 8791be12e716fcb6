package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"loki/internal/config"
	"loki/internal/graph"
)

// Agent is an agent and its graph.
type Agent struct {
	Ref
	Graph   *graph.Graph // of the file; a run keeps this one, so that it can be resumed in another environment
	InForce *graph.Graph // with what the environment says, see [Override]
}

// Override returns the graph of the agent called name with what environment variables say
// of it: NAME_MODEL, NAME_TEMPERATURE, NAME_TOP_P, NAME_GLOBAL_TOOLS, NAME_MCP_SERVERS and
// NAME_VARIABLES, where NAME is as [config.AgentVariable] has it. getenv returns "" for
// those that are not set. A value that cannot be read is ignored; the warnings say why. g is
// unchanged.
//
// The text null clears a model, a temperature and a top_p. Tools and servers are JSON
// lists. Variables are a JSON object of values by name, or a list: of such objects, of
// {name, value}, or of {name, description, default}. They get these defaults; those
// that the agent does not declare are added.
func Override(g *graph.Graph, name string, getenv func(string) string) (overridden *graph.Graph, warnings []string) {
	o := overrides{prefix: config.AgentVariable(name), getenv: getenv}
	c := *g
	if id := getenv(o.prefix + "_MODEL"); id == cleared {
		c.Model = ""
	} else if id != "" {
		c.Model = id
	}
	o.number("_TEMPERATURE", &c.Temperature)
	o.number("_TOP_P", &c.TopP)
	o.list("_GLOBAL_TOOLS", &c.GlobalTools)
	o.list("_MCP_SERVERS", &c.MCPServers)
	o.variables("_VARIABLES", &c.Variables)
	return &c, o.warnings
}

// cleared stands for no value.
const cleared = "null"

type overrides struct {
	prefix   string
	getenv   func(string) string
	warnings []string
}

// wrong warns of a variable with an invalid value.
func (o *overrides) wrong(suffix, want string) {
	o.warnings = append(o.warnings, fmt.Sprintf("the environment variable %s%s is ignored: it is not %s", o.prefix, suffix, want))
}

func (o *overrides) number(suffix string, field **float64) {
	text := o.getenv(o.prefix + suffix)
	switch v, err := strconv.ParseFloat(text, 64); {
	case text == "":
	case text == cleared:
		*field = nil
	case err != nil || math.IsNaN(v) || math.IsInf(v, 0):
		o.wrong(suffix, "a number")
	default:
		*field = &v
	}
}

func (o *overrides) list(suffix string, field *[]string) {
	text := o.getenv(o.prefix + suffix)
	if text == "" {
		return
	}
	var list []string
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		o.wrong(suffix, `a JSON list of strings, such as ["fs_cat", "fs_ls"]`)
		return
	}
	*field = list
}

func (o *overrides) variables(suffix string, field *[]graph.Variable) {
	text := o.getenv(o.prefix + suffix)
	if text == "" {
		return
	}
	set, err := readVariables([]byte(text))
	if err != nil {
		o.wrong(suffix, `JSON such as {"name": "value"} or [{"name": "...", "value": "..."}]`)
		return
	}
	list := slices.Clone(*field)
	for _, v := range set {
		i := slices.IndexFunc(list, func(old graph.Variable) bool { return old.Name == v.Name })
		if i < 0 {
			list = append(list, v)
			continue
		}
		if v.Description != "" {
			list[i].Description = v.Description
		}
		list[i].Default = v.Default
	}
	*field = list
}

// readVariables reads one of the forms that [Override] describes.
func readVariables(text []byte) ([]graph.Variable, error) {
	var list []map[string]json.RawMessage
	if err := json.Unmarshal(text, &list); err != nil {
		list = make([]map[string]json.RawMessage, 1)
		if err := json.Unmarshal(text, &list[0]); err != nil {
			return nil, err
		}
	}
	var variables []graph.Variable
	for _, object := range list {
		if v, ok := declared(object); ok {
			variables = append(variables, v)
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(object)) {
			variables = append(variables, graph.Variable{Name: name, Default: new(valueText(object[name]))})
		}
	}
	return variables, nil
}

// declared reads an object that describes a variable.
func declared(object map[string]json.RawMessage) (v graph.Variable, ok bool) {
	if object["name"] == nil || len(object) < 2 {
		return v, false
	}
	v.Name = valueText(object["name"])
	for key, raw := range object {
		switch key {
		case "name":
		case "description":
			v.Description = valueText(raw)
		case "default", "value":
			if string(raw) != cleared {
				v.Default = new(valueText(raw))
			}
		default:
			return v, false
		}
	}
	return v, true
}

// valueText returns a string as it is and any other value as JSON.
func valueText(raw json.RawMessage) string {
	var text string
	if err := json.Unmarshal(raw, &text); err == nil && string(raw) != cleared {
		return text
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return string(raw)
	}
	return b.String()
}
