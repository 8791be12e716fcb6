package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"loki/internal/llm/chat"
	"loki/internal/setup/config"
	"loki/internal/workflow/graph"
)

// Override returns a definition with what environment variables say of it: NAME_MODEL,
// NAME_TEMPERATURE, NAME_TOP_P, NAME_GLOBAL_TOOLS, NAME_MCP_SERVERS, NAME_AGENT_SESSION,
// NAME_INSTRUCTIONS and NAME_VARIABLES, where NAME is one of names as
// [config.AgentVariable] has it; the first that is set counts. getenv returns "" for unset ones. A
// value that cannot be read is ignored; the findings say why. d is unchanged.
//
// The text null clears a model, a temperature, a top_p and a session. Tools and servers are
// JSON lists. Variables are a JSON object of values by name, or a list: of such objects, of
// {name, value}, or of {name, description, default}. They get these defaults; variables that the
// agent does not declare are added.
func Override(d *Definition, getenv func(string) string, names ...string) (overridden *Definition, findings graph.Findings) {
	o := overrides{getenv: getenv}
	for _, name := range names {
		o.prefixes = append(o.prefixes, config.AgentVariable(name))
	}
	c := *d
	if id := o.text("_MODEL"); id == cleared {
		c.Model = ""
	} else if id != "" {
		c.Model = id
	}
	if session := o.text("_AGENT_SESSION"); session == cleared {
		c.Session = new("")
	} else if session != "" {
		c.Session = &session
	}
	if text := o.text("_INSTRUCTIONS"); text != "" {
		c.Instructions, c.Dynamic = text, false
	}
	o.number("temperature", &c.Temperature)
	o.number("top_p", &c.TopP)
	o.list("_GLOBAL_TOOLS", &c.GlobalTools)
	o.list("_MCP_SERVERS", &c.MCPServers)
	o.variables("_VARIABLES", &c.Variables)
	return &c, o.findings
}

// cleared means no value.
const cleared = "null"

type overrides struct {
	prefixes []string
	getenv   func(string) string
	name     string // of the variable that text returned last
	findings graph.Findings
}

// text returns the value of the variable with a suffix, "" if it is not set.
func (o *overrides) text(suffix string) string {
	for _, prefix := range o.prefixes {
		o.name = prefix + suffix
		if text := o.getenv(o.name); text != "" {
			return text
		}
	}
	return ""
}

// wrong warns that the variable that was read last has an invalid value.
func (o *overrides) wrong(want string) {
	o.findings = append(o.findings, graph.Finding{
		Severity: graph.SeverityWarning, Rule: graph.RuleEnvironment,
		Message: fmt.Sprintf("the environment variable %s is ignored: it is not %s", o.name, want),
	})
}

func (o *overrides) number(key string, field **float64) {
	text := o.text("_" + strings.ToUpper(key))
	v, err := strconv.ParseFloat(text, 64)
	if err == nil {
		err = chat.CheckNumber(key, v)
	}
	switch {
	case text == "":
	case text == cleared:
		*field = nil
	case err != nil:
		o.wrong(chat.NumberRange(key))
	default:
		*field = &v
	}
}

func (o *overrides) list(suffix string, field *[]string) {
	text := o.text(suffix)
	if text == "" {
		return
	}
	var list []string
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		o.wrong(`a JSON list of strings, such as ["fs_cat", "fs_ls"]`)
		return
	}
	*field = list
}

func (o *overrides) variables(suffix string, field *[]graph.Variable) {
	text := o.text(suffix)
	if text == "" {
		return
	}
	set, err := readVariables([]byte(text))
	if err != nil {
		o.wrong(`JSON such as {"name": "value"} or [{"name": "...", "value": "..."}]`)
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
		if v, ok := parseVariable(object); ok {
			variables = append(variables, v)
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(object)) {
			variables = append(variables, graph.Variable{Name: name, Default: new(valueText(object[name]))})
		}
	}
	return variables, nil
}

// parseVariable reads an object that describes a variable.
func parseVariable(object map[string]json.RawMessage) (v graph.Variable, ok bool) {
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
