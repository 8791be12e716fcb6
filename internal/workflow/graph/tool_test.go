package graph_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"loki/internal/base/value"
	"loki/internal/workflow/graph"
)

func TestParseToolNode(t *testing.T) {
	g := parse(t, `name: x
start: a
nodes:
  a:
    type: tool
    tool: mcp:papers/find
    arguments: {query: "{{topic}}", limit: 3, tags: ["x {{y}}", null]}
    output_schema: {type: object}
    state_updates: {k: "{{output}}"}
    timeout: 5
    retry: {attempts: 2}
    cache: {ttl: 60}
    fallback: z
    on_uncertain: skip
    next: z
  z: {type: end}
`)
	n := g.Node("a")
	server, name, ok := n.Tool.Server()
	if server != "papers" || name != "find" || !ok {
		t.Errorf("server %q, tool %q, %v", server, name, ok)
	}
	if n.Timeout != 5*time.Second || !n.HasTimeout || n.Retry.Attempts != 2 || n.Cache.TTL != time.Minute || n.Fallback != "z" || n.OnUncertain != graph.UncertainSkip || len(n.Updates) != 1 || n.Tool.OutputSchema == nil {
		t.Errorf("%+v", n)
	}
	if got := n.Tool.Arguments.Source.Value().String(); got != `{"query":"{{topic}}","limit":3,"tags":["x {{y}}",null]}` {
		t.Error(got)
	}
	if _, _, ok := (&graph.Tool{Tool: "papers/find"}).Server(); ok {
		t.Error("a name without mcp: is that of a server")
	}
}

// badTools are the fields of tool nodes that cannot be read, and what is said about them.
var badTools = []struct{ fields, want string }{
	{"", `nodes.a: required field "tool" is missing`},
	{"tool: 5", "nodes.a.tool: expected a string"},
	{"tool: 'mcp:papers'", `2:25: nodes.a.tool: expected mcp:SERVER/TOOL, found "mcp:papers"`},
	{"tool: 'mcp:/find'", `expected mcp:SERVER/TOOL, found "mcp:/find"`},
	{"tool: 'mcp:papers/'", `expected mcp:SERVER/TOOL, found "mcp:papers/"`},
	{"tool: t, arguments: [a]", "nodes.a.arguments: expected a mapping"},
	{"tool: t, arguments: {a: .inf}", "nodes.a.arguments.a: .inf cannot be expressed in JSON"},
	{"tool: t, output_schema: {type: text}", "not valid JSON Schema"},
}

func TestToolNodesThatCannotBeRead(t *testing.T) {
	for _, tt := range badTools {
		_, _, err := graph.Parse("g.yaml", []byte("nodes:\n  a: {type: tool, "+tt.fields+"}\nname: x\nstart: a\n"))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.fields, err, tt.want)
		}
	}
}

func TestArgumentsAreFilledIn(t *testing.T) {
	state := graph.NewState(value.ObjectOf(
		value.Member{Name: "n", Value: value.Of(2)},
		value.Member{Name: "who", Value: value.ObjectOf(value.Member{Name: "names", Value: value.ListOf(value.Of("Ada"), value.Of("{{n}}")).Value()}).Value()},
	))
	for _, tt := range []struct{ source, want string }{
		{`{"a": "{{n}}", "b": " {{n}} ", "c": "no. {{n}}"}`, `{"a":2,"b":2,"c":"no. 2"}`},
		{`{"a": {"b": ["{{who.names[0]}}", "{{who}}", 1.50, true, null, []]}}`, `{"a":{"b":["Ada",{"names":["Ada","{{n}}"]},1.5,true,null,[]]}}`},
		{`{"{{n}}": "{{ n }}", "once": "{{who.names[1]}}"}`, `{"{{n}}":"{{ n }}","once":"{{n}}"}`},
		{`{}`, `{}`},
		{`{"a": "{{x}}", "b": ["{{n}} {{y.z}}", "{{x}}"]}`, `"x", "y.z", "x" not found in state`},
	} {
		source, err := value.ParseJSON([]byte(tt.source))
		if err != nil {
			t.Fatal(err)
		}
		got, err := graph.Arguments{Source: source.AsObject()}.Render(state)
		if _, missing := errors.AsType[*graph.MissingError](err); missing {
			got = []byte(err.Error())
		} else if err != nil {
			t.Fatal(err)
		}
		if string(got) != tt.want {
			t.Errorf("%s: got %s, want %s", tt.source, got, tt.want)
		}
	}
	if got, err := (graph.Arguments{}).Render(state); err != nil || string(got) != "{}" {
		t.Errorf("no arguments are %s, %v", got, err)
	}
}

// lookUp is the schema of the tool look_up in the world of these tests.
const lookUp = `{
	"type": "object", "required": ["query"],
	"properties": {
		"query": {"type": "string", "description": "what to\nfind", "minLength": 1},
		"limit": {"type": "integer", "maximum": 10},
		"tags": {"type": "array", "items": {"type": "string"}},
		"where": {"type": "object", "properties": {"lang": {"enum": ["de", "en"]}, "year": {"type": "integer"}}, "required": ["lang"]},
		"free": {"type": "object"},
		"ref": {"$ref": "#/$defs/color"},
		"either": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]}
	},
	"$defs": {"color": {"enum": ["red"]}}
}`

// toolWorld has a tool with arguments, one that takes anything, and a file with several.
func toolWorld(t *testing.T) graph.ValidateEnv {
	t.Helper()
	schemas := map[string]string{"look_up": lookUp, "anything": "{}", "choosy": `{"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}`, "closed": `{"additionalProperties": false}`}
	env := world
	env.Context = &graph.AgentContext{
		Functions: []string{"look_up", "anything", "choosy", "closed", "several"},
		Servers:   []string{"papers", "maybe?"},
		Parameters: func(name string) (value.Value, bool) {
			text, ok := schemas[name]
			if !ok {
				return value.Value{}, false
			}
			v, err := value.ParseJSON([]byte(text))
			if err != nil {
				t.Error(err)
			}
			return v, true
		},
	}
	return env
}

func TestToolRules(t *testing.T) {
	for _, tt := range []struct {
		rule       graph.Rule
		name       string
		node, want string
	}{
		{graph.RuleUnknownTool, "unknown", "tool: lok_up", `4:25 error [a] tool "lok_up" is not a function of the agent | did you mean "look_up"?`},
		{graph.RuleUnknownTool, "several", "tool: several", `4:25 error [a] tool "several" means several tools | name one of them`},
		{graph.RuleUnknownTool, "of_models", "tool: agent__spawn", `4:25 error [a] tool "agent__spawn" is for models, which work with the agents that they start | use a node of type agent`},
		{graph.RuleUnknownTool, "known", "tool: anything, arguments: {x: {y: [1]}}", ""},
		{graph.RuleUnknownMCPServer, "unknown", "tool: 'mcp:paper/find'", `4:25 error [a] tool "mcp:paper": the agent has no MCP server "paper" | did you mean "papers"?`},
		{graph.RuleUnknownMCPServer, "known", "tool: 'mcp:papers/find', arguments: {what: ever}", ""},
		{graph.RuleUnknownMCPServer, "optional", "tool: 'mcp:maybe/find'", ""},

		{graph.RuleToolArguments, "good", `tool: look_up, arguments: {query: x, limit: 3, tags: [a], where: {lang: de, other: 1}, ref: red, either: true}`, ""},
		{graph.RuleToolArguments, "templates", `tool: look_up, arguments: {query: "{{q}}", limit: "{{n}}", tags: "{{t}}", where: "{{w}}", ref: "{{r}}", either: "{{e}}"}`, ""},
		{graph.RuleToolArguments, "templates_inside", `tool: look_up, arguments: {query: "a {{q}}", tags: ["{{t}}", "b"], where: {lang: "{{l}}", year: 1999}, free: {x: "{{x}}"}}`, ""},
		{graph.RuleToolArguments, "missing", "tool: look_up", `4:3 error [a] tool look_up: argument "query" is missing | query (string): what to find`},
		{graph.RuleToolArguments, "missing_beside_others", "tool: look_up, arguments: {limit: 3}", `4:34 error [a] tool look_up: argument "query" is missing | query (string): what to find`},
		{graph.RuleToolArguments, "unknown_argument", "tool: look_up, arguments: {query: x, limits: '{{n}}'}", `4:64 error [a] tool look_up: there is no argument "limits" | did you mean "limit"?`},
		{graph.RuleToolArguments, "wrong_type", "tool: look_up, arguments: {query: x, limit: many}", `4:63 error [a] tool look_up: argument "limit": must be an integer, got the string "many"`},
		{graph.RuleToolArguments, "wrong_value", "tool: look_up, arguments: {query: x, limit: 11}", `4:63 error [a] tool look_up: argument "limit": must be at most 10, got 11`},
		{graph.RuleToolArguments, "wrong_element", "tool: look_up, arguments: {query: '{{q}}', tags: ['{{t}}', 5]}", `4:78 error [a] tool look_up: argument "tags[1]": must be a string, got the number 5`},
		{graph.RuleToolArguments, "wrong_inside", "tool: look_up, arguments: {query: x, where: {year: '{{y}}'}}", `4:56 error [a] tool look_up: argument "where.lang" is missing`},
		{graph.RuleToolArguments, "reference", "tool: look_up, arguments: {query: x, ref: blue}", `4:61 error [a] tool look_up: argument "ref": must be one of "red", got the string "blue"`},
		{graph.RuleToolArguments, "always_text", "tool: look_up, arguments: {query: x, limit: 'at most {{n}}'}", `4:63 error [a] tool look_up: argument "limit" must be of type integer, and is always a text | a template that is exactly one placeholder keeps the type of its value`},
		{graph.RuleToolArguments, "combined", "tool: choosy, arguments: {c: 1}", `4:33 error [a] tool choosy: the arguments: matches none of the 2 alternatives (oneOf)
4:33 error [a] tool choosy: argument "a": is required, but missing`},
		{graph.RuleToolArguments, "combined_with_templates", "tool: choosy, arguments: {c: '{{c}}'}", ""},
		{graph.RuleToolArguments, "closed", "tool: closed, arguments: {c: '{{c}}'}", `4:48 error [a] tool closed: there is no argument "c"`},

		{graph.RuleMissingNext, "no_next", "tool: anything", "4:3 warning [a] a node of type tool needs next, without it the run fails here | add next:, if only to an end node"},
		{graph.RulePlaceholder, "in_an_argument", "tool: anything, arguments: {x: ['{{ y }}']}", "4:51 warning [a] {{ y }} is ordinary text | a placeholder is written {{y}}, of letters, digits, _ . [ ] and without spaces"},
		{graph.RuleUndefinedRead, "in_an_argument", "tool: anything, arguments: {x: {y: '{{topic}}'}}", `4:54 warning [a] {{topic}} is read, but nothing writes "topic", so the node always fails`},
		{graph.RuleUnknownTarget, "fallback", "tool: anything, fallback: gone", `4:45 error [a] tool fallback leads to "gone", which is not a node`},
	} {
		t.Run(string(tt.rule)+"/"+tt.name, func(t *testing.T) {
			next := ", next: z"
			if tt.rule == graph.RuleMissingNext {
				next = ""
			}
			src := top + "nodes:\n  a: {type: tool, " + tt.node + next + "}\n" + tail
			var lines []string
			for _, f := range graph.Validate(parse(t, src), toolWorld(t)) {
				if f.Rule == tt.rule {
					lines = append(lines, strings.TrimSuffix(strings.SplitN(rules(graph.Findings{f}, tt.rule)+" | "+f.Hint, "; what", 2)[0], " | "))
				}
			}
			if got := strings.Join(lines, "\n"); !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
				t.Errorf("%s\ngot\n%s\nwant\n%s", src, got, tt.want)
			}
		})
	}
}

// TestToolsInParallel: what a tool writes is known, as for a model.
func TestToolsInParallel(t *testing.T) {
	src := top + fan("{type: tool, tool: anything, state_updates: {k: x}, next: z}", "{type: tool, tool: anything, output_schema: {properties: {k: {}}}, arguments: {x: '{{j}}'}, next: z}")
	findings := graph.Validate(parse(t, src), toolWorld(t))
	if got := rules(findings, graph.RuleParallelWrite); !strings.Contains(got, `parallel nodes [b, c] all write "k"`) {
		t.Errorf("%v", findings)
	}
	src = top + fan("{type: tool, tool: anything, next: z}", "{type: tool, tool: anything, arguments: {x: '{{k}}'}, state_updates: {k: x}, next: z}")
	if findings := graph.Validate(parse(t, src), toolWorld(t)).Errors(); len(findings) > 0 {
		t.Errorf("%v", findings)
	}
}

func TestToolWithoutFallbackFailsTheRun(t *testing.T) {
	g := parse(t, top+"nodes:\n  a: {type: tool, tool: t, next: z}\n  b: {type: tool, tool: t, fallback: z, next: a}\n"+tail)
	p := graph.NewPlan(g)
	if targets, ok := p.OnFailure(g.Node("a")); ok {
		t.Errorf("it goes on at %v", targets)
	}
	if targets, ok := p.OnFailure(g.Node("b")); !ok || !slices.Equal(targets, []string{"z"}) {
		t.Errorf("with a fallback it goes on at %v, %v", targets, ok)
	}
}
