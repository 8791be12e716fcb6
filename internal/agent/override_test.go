package agent_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"loki/internal/agent"
	"loki/internal/llm/chat"
	"loki/internal/workflow/graph"
)

func TestOverride(t *testing.T) {
	t.Parallel()
	declared := []graph.Variable{{Name: "city", Description: "where", Default: new("Graz")}, {Name: "day", Description: "when"}}
	base := func() *agent.Definition {
		return &agent.Definition{
			Name: "in the file", Model: "c:own", Sampling: chat.Sampling{Temperature: new(0.1), TopP: new(0.2)},
			GlobalTools: []string{"fs_cat.sh"}, MCPServers: []string{"git"}, Variables: declared,
		}
	}
	preset := func(city, day string) []graph.Variable {
		return []graph.Variable{{Name: "city", Description: "where", Default: &city}, {Name: "day", Description: "when", Default: &day}}
	}
	for _, tt := range []struct {
		name, key, value string
		change           func(*agent.Definition)
		warning          string
	}{
		{name: "nothing", key: "MY_AGENT_OTHER", value: "x"},
		{name: "of_another", key: "MY-AGENT_MODEL", value: "x"},
		{name: "model", key: "MY_AGENT_MODEL", value: "c:other", change: func(g *agent.Definition) { g.Model = "c:other" }},
		{name: "no_model", key: "MY_AGENT_MODEL", value: "null", change: func(g *agent.Definition) { g.Model = "" }},
		{name: "instructions", key: "MY_AGENT_INSTRUCTIONS", value: "be brief", change: func(g *agent.Definition) { g.Instructions = "be brief" }},
		{name: "session", key: "MY_AGENT_AGENT_SESSION", value: "temp", change: func(g *agent.Definition) { g.Session = new("temp") }},
		{name: "no_session", key: "MY_AGENT_AGENT_SESSION", value: "null", change: func(g *agent.Definition) { g.Session = new("") }},
		{name: "by_directory", key: "BY_DIR_MODEL", value: "c:other", change: func(g *agent.Definition) { g.Model = "c:other" }},
		{name: "temperature", key: "MY_AGENT_TEMPERATURE", value: "0.5", change: func(g *agent.Definition) { g.Temperature = new(0.5) }},
		{name: "no_temperature", key: "MY_AGENT_TEMPERATURE", value: "null", change: func(g *agent.Definition) { g.Temperature = nil }},
		{name: "warm", key: "MY_AGENT_TEMPERATURE", value: "warm", warning: "MY_AGENT_TEMPERATURE is ignored: it is not a number"},
		{name: "infinite", key: "MY_AGENT_TOP_P", value: "inf", warning: "MY_AGENT_TOP_P is ignored"},
		{name: "top_p", key: "MY_AGENT_TOP_P", value: "0", change: func(g *agent.Definition) { g.TopP = new(0.0) }},
		{name: "tools", key: "MY_AGENT_GLOBAL_TOOLS", value: `["fs_ls.sh","a"]`, change: func(g *agent.Definition) { g.GlobalTools = []string{"fs_ls.sh", "a"} }},
		{name: "no_tools", key: "MY_AGENT_GLOBAL_TOOLS", value: `[]`, change: func(g *agent.Definition) { g.GlobalTools = []string{} }},
		{name: "tools_no_json", key: "MY_AGENT_GLOBAL_TOOLS", value: `fs_ls`, warning: "MY_AGENT_GLOBAL_TOOLS is ignored: it is not a JSON list"},
		{name: "servers", key: "MY_AGENT_MCP_SERVERS", value: `["docs"]`, change: func(g *agent.Definition) { g.MCPServers = []string{"docs"} }},
		{name: "by_name", key: "MY_AGENT_VARIABLES", value: `{"city":"Linz","day":"today"}`, change: func(g *agent.Definition) { g.Variables = preset("Linz", "today") }},
		{name: "list_by_name", key: "MY_AGENT_VARIABLES", value: `[{"city":"Linz","day":5}]`, change: func(g *agent.Definition) { g.Variables = preset("Linz", "5") }},
		{name: "values", key: "MY_AGENT_VARIABLES", value: `[{"name":"city","value":"Linz"},{"name":"day","value":""}]`, change: func(g *agent.Definition) { g.Variables = preset("Linz", "") }},
		{
			name: "declarations", key: "MY_AGENT_VARIABLES", value: `[{"name":"city","description":"W","default":"Linz"},{"name":"new","description":"N"}]`,
			change: func(g *agent.Definition) {
				g.Variables = []graph.Variable{{Name: "city", Description: "W", Default: new("Linz")}, declared[1], {Name: "new", Description: "N"}}
			},
		},
		{name: "added", key: "MY_AGENT_VARIABLES", value: `{"name":"x"}`, change: func(g *agent.Definition) {
			g.Variables = append(append([]graph.Variable{}, declared...), graph.Variable{Name: "name", Default: new("x")})
		}},
		{name: "variables_no_json", key: "MY_AGENT_VARIABLES", value: `city=Linz`, warning: "MY_AGENT_VARIABLES is ignored"},
		{name: "variables_of_strings", key: "MY_AGENT_VARIABLES", value: `["city"]`, warning: "MY_AGENT_VARIABLES is ignored"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g, want := base(), base()
			if tt.change != nil {
				tt.change(want)
			}
			got, warnings := agent.Override(g, func(name string) string {
				if name == tt.key {
					return tt.value
				}
				return ""
			}, "my-agent", "by-dir")
			if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(agent.Definition{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(base(), g, cmpopts.IgnoreUnexported(agent.Definition{})); diff != "" {
				t.Errorf("the graph itself changed:\n%s", diff)
			}
			joined := ""
			for _, w := range warnings {
				joined += w.Message
			}
			if tt.warning == "" && joined != "" || !strings.Contains(joined, tt.warning) {
				t.Errorf("warnings %q, want %q", warnings, tt.warning)
			}
		})
	}
}

func FuzzOverride(f *testing.F) {
	for _, seed := range []string{`{"a":"b"}`, `[{"name":"a","value":1}]`, `[{"name":"a","description":"d","default":null}]`, `[1]`, `null`, ``} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		g, warnings := agent.Override(&agent.Definition{}, func(string) string { return text }, "a")
		if len(g.Variables) > 0 {
			for _, w := range warnings {
				if strings.Contains(w.Message, "_VARIABLES") {
					t.Errorf("variables %v, and %s", g.Variables, w.Message)
				}
			}
		}
	})
}
