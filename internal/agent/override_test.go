package agent_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loki/internal/agent"
	"loki/internal/chat"
	"loki/internal/graph"
)

func TestOverride(t *testing.T) {
	t.Parallel()
	declared := []graph.Variable{{Name: "city", Description: "where", Default: new("Graz")}, {Name: "day", Description: "when"}}
	base := func() *graph.Graph {
		return &graph.Graph{
			Name: "in the file", Model: "c:own", Sampling: chat.Sampling{Temperature: new(0.1), TopP: new(0.2)},
			GlobalTools: []string{"fs_cat.sh"}, MCPServers: []string{"git"}, Variables: declared,
		}
	}
	preset := func(city, day string) []graph.Variable {
		return []graph.Variable{{Name: "city", Description: "where", Default: &city}, {Name: "day", Description: "when", Default: &day}}
	}
	for _, tt := range []struct {
		name, key, value string
		change           func(*graph.Graph)
		warning          string
	}{
		{name: "nothing", key: "MY_AGENT_OTHER", value: "x"},
		{name: "of_another", key: "MY-AGENT_MODEL", value: "x"},
		{name: "model", key: "MY_AGENT_MODEL", value: "c:other", change: func(g *graph.Graph) { g.Model = "c:other" }},
		{name: "no_model", key: "MY_AGENT_MODEL", value: "null", change: func(g *graph.Graph) { g.Model = "" }},
		{name: "temperature", key: "MY_AGENT_TEMPERATURE", value: "0.5", change: func(g *graph.Graph) { g.Temperature = new(0.5) }},
		{name: "no_temperature", key: "MY_AGENT_TEMPERATURE", value: "null", change: func(g *graph.Graph) { g.Temperature = nil }},
		{name: "warm", key: "MY_AGENT_TEMPERATURE", value: "warm", warning: "MY_AGENT_TEMPERATURE is ignored: it is not a number"},
		{name: "infinite", key: "MY_AGENT_TOP_P", value: "inf", warning: "MY_AGENT_TOP_P is ignored"},
		{name: "top_p", key: "MY_AGENT_TOP_P", value: "0", change: func(g *graph.Graph) { g.TopP = new(0.0) }},
		{name: "tools", key: "MY_AGENT_GLOBAL_TOOLS", value: `["fs_ls.sh","a"]`, change: func(g *graph.Graph) { g.GlobalTools = []string{"fs_ls.sh", "a"} }},
		{name: "no_tools", key: "MY_AGENT_GLOBAL_TOOLS", value: `[]`, change: func(g *graph.Graph) { g.GlobalTools = []string{} }},
		{name: "tools_no_json", key: "MY_AGENT_GLOBAL_TOOLS", value: `fs_ls`, warning: "MY_AGENT_GLOBAL_TOOLS is ignored: it is not a JSON list"},
		{name: "servers", key: "MY_AGENT_MCP_SERVERS", value: `["docs"]`, change: func(g *graph.Graph) { g.MCPServers = []string{"docs"} }},
		{name: "by_name", key: "MY_AGENT_VARIABLES", value: `{"city":"Linz","day":"today"}`, change: func(g *graph.Graph) { g.Variables = preset("Linz", "today") }},
		{name: "list_by_name", key: "MY_AGENT_VARIABLES", value: `[{"city":"Linz","day":5}]`, change: func(g *graph.Graph) { g.Variables = preset("Linz", "5") }},
		{name: "values", key: "MY_AGENT_VARIABLES", value: `[{"name":"city","value":"Linz"},{"name":"day","value":""}]`, change: func(g *graph.Graph) { g.Variables = preset("Linz", "") }},
		{
			name: "declarations", key: "MY_AGENT_VARIABLES", value: `[{"name":"city","description":"W","default":"Linz"},{"name":"new","description":"N"}]`,
			change: func(g *graph.Graph) {
				g.Variables = []graph.Variable{{Name: "city", Description: "W", Default: new("Linz")}, declared[1], {Name: "new", Description: "N"}}
			},
		},
		{name: "added", key: "MY_AGENT_VARIABLES", value: `{"name":"x"}`, change: func(g *graph.Graph) {
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
			got, warnings := agent.Override(g, "my-agent", func(name string) string {
				if name == tt.key {
					return tt.value
				}
				return ""
			})
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(graph.Graph{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(base(), g, cmp.AllowUnexported(graph.Graph{})); diff != "" {
				t.Errorf("the graph itself changed:\n%s", diff)
			}
			if joined := strings.Join(warnings, "\n"); tt.warning == "" && joined != "" || !strings.Contains(joined, tt.warning) {
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
		g, warnings := agent.Override(&graph.Graph{}, "a", func(string) string { return text })
		if len(g.Variables) > 0 {
			for _, w := range warnings {
				if strings.Contains(w, "_VARIABLES") {
					t.Errorf("variables %v, and %s", g.Variables, w)
				}
			}
		}
	})
}
