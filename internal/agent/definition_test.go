package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"loki/internal/agent"
	"loki/internal/base/value/yamldoc"
	"loki/internal/workflow/graph"
)

// TestParseFindings: what is wrong is reported with its place.
func TestParseFindings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "name: a", ""},
		{"empty", "", `error 1:1 required field "name" is missing`},
		{"no_name", "model: m", `error 1:1 required field "name" is missing`},
		{"name_null", "name:", `error 1:1 required field "name" has no value`},
		{"name_blank", "name: ' '", "error 1:7 name must not be empty"},
		{"list", "[a]", "error 1:1 expected a mapping, found a list"},
		{"no_yaml", "name: [", "error 1:7 "},
		{"unknown_key", "name: a\nmax_auto_continue: 3", `warning 2:1 unknown key "max_auto_continue" is ignored; did you mean "max_auto_continues"?`},
		{"bool", "name: a\nauto_continue: 'yes'", "error 2:16 expected true or false, found the string \"yes\""},
		{"number", "name: a\nmax_agent_depth: -1", "error 2:18 must not be negative, found the number -1"},
		{"timeout", "name: a\ntimeout: 5 minutes", "error 2:10 expected a time of 0 or more, found the string \"5 minutes\"; write a number of seconds, or a text such as 90s, 10m or 1h30m"},
		{"durability", "name: a\ndurability: disk", `error 2:13 unknown value "disk"; valid are process, power, off`},
		{"variable", "name: a\nvariables: [{name: v}]", `error 2:13 required field "description" is missing`},
		{"variable_twice", "name: a\nvariables: [{name: v, description: d}, {name: v, description: e}]", `warning 2:40 the variable "v" is declared twice, and the first declaration counts`},
		{"budget", "name: a\nbudget: {usd: 0}", "error 2:15 must be greater than 0, found the number 0; for no bound, leave it out"},
		{"document_outside", "name: a\ndocuments: [docs/../../x]", `error 2:13 "docs/../../x" leads out of the agent's directory; write the absolute path, or one that begins with ~/`},
		{"document_of_a_loader", "name: a\ndocuments: ['pdf:../x.pdf']", `error 2:13 "pdf:../x.pdf" leads out of`},
		{"documents", "name: a\ndocuments: ['https://x/../y/**', /a/../b, ~/../c, 'pdf:/../d', a..b/c, docs/**/*.md]", ""},
		{"environment", "name: a\nenvironment: ['A=b']", `error 2:15 "A=b" cannot be the name of an environment variable`},
		{"permission", "name: a\npermission: {fs_write: maybe}", `error 2:24 the string "maybe" is not one of allow, ask, deny`},
		{"sandbox", "name: a\nsandbox: {level: network, hosts: [a.com], read: [~/x], write: [y]}", ""},
		{"sandbox_level", "name: a\nsandbox: all", `error 2:10 the string "all" is not one of read, write, network, full`},
		{"sandbox_hosts", "name: a\nsandbox: {level: write, hosts: [a.com]}", "error 2:10 hosts need the level network, not write"},
		{"permission_allows", "name: a\npermission: {fs_write: allow}", "warning 2:13 rules of an agent can ask or deny, not allow"},
		{"permission_with_default", "name: a\npermission: {default: deny, fs_write: allow}", ""},
		{"permission_of_users", "name: a\npermission: {keep_env: X}", "warning 2:24 permission.keep_env has no effect for an agent"},
		{"no_children", "name: a\ncan_spawn_agents: true\nmax_concurrent_agents: 0", "warning 3:24 with max_concurrent_agents: 0 the agent cannot start other agents"},
		{"no_depth", "name: a\ncan_spawn_agents: true\nmax_agent_depth: 0", "warning 3:18 with max_agent_depth: 0 the agent cannot start other agents"},
		{"no_depth_needed", "name: a\nmax_agent_depth: 0", ""},
		{"spawnable", "name: a\nspawnable_agents: [b]", "warning 2:19 spawnable_agents has no effect without can_spawn_agents: true"},
		{"other_program", "name: a\nenabled_skills: [x]", "warning 2:1 keys of another program, which do nothing here: enabled_skills"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d, findings, err := agent.Parse("config.yaml", []byte(tt.text))
			findings = append(graph.ErrorFindings(err), findings...)
			if (err == nil) != (d != nil) || err != nil && len(graph.ErrorFindings(err)) == 0 {
				t.Fatalf("definition %v, error %v", d, err)
			}
			var lines []string
			for _, f := range findings {
				p := yamldoc.Problem{Msg: f.Message, Hint: f.Hint}
				lines = append(lines, string(f.Severity)+" "+place(f)+" "+p.Text())
			}
			if got := strings.Join(lines, "\n"); got != tt.want && (tt.want == "" || !strings.HasPrefix(got, tt.want)) {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func place(f graph.Finding) string { return fmt.Sprintf("%d:%d", f.Line, f.Column) }

func TestFingerprint(t *testing.T) {
	t.Parallel()
	parse := func(text string) *agent.Definition {
		d, _, err := agent.Parse("config.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	base := parse("name: a\ninstructions: Be brief.\ncan_spawn_agents: true\n")
	for _, tt := range []struct{ name, text, want string }{
		{"comments", "# c\ncan_spawn_agents:   true\nname: a\ninstructions: 'Be brief.'\n", ""},
		{"defaults", "name: a\ninstructions: Be brief.\ncan_spawn_agents: true\nmax_auto_continues: 10\nglobal_tools: []\nmodel: null\n", ""},
		{"bounds", "name: b\ndescription: d\ninstructions: Be brief.\ncan_spawn_agents: true\nbudget: {usd: 1}\ntimeout: 5\n", ""},
		{"instructions", "name: a\ninstructions: Be long.\ncan_spawn_agents: true\n", `instructions changed from "Be brief." to "Be long."`},
		{"model", "name: a\ninstructions: Be brief.\ncan_spawn_agents: true\nmodel: m\n", "model was added"},
		{"none_may_be_started", "name: a\ninstructions: Be brief.\ncan_spawn_agents: true\nspawnable_agents: []\n", "spawnable_agents was added"},
		{"removed", "name: a\ncan_spawn_agents: true\n", "instructions was removed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := parse(tt.text)
			if got := strings.Join(agent.Diff(base, d), "\n"); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if same := d.Fingerprint() == base.Fingerprint(); same != (tt.want == "") {
				t.Errorf("fingerprints are the same: %v", same)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"name: a", "name: 1\nversion: 1.0\nvariables: [{name: v, description: d, default: 5}]\n", "name: a\nglobal_tools: null\nbudget: {duration: 1h}\n",
		"name: a\npermission: {execute_command: {'git *': ask}}\ntimeout: 1.5\n", "documents: ['pdf:../x']", "[", "name: &a b\nmodel: *a\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, _, err := agent.Parse("config.yaml", text)
		if err != nil {
			if len(graph.ErrorFindings(err)) == 0 {
				t.Errorf("an error without findings: %v", err)
			}
			return
		}
		if diff := agent.Diff(d, d); diff != nil || len(d.Fingerprint()) != 16 {
			t.Errorf("a definition differs from itself: %s", diff)
		}
		_ = d.Settings()
		_ = d.SystemPrompt(agent.Prompt{Base: d.Instructions})
	})
}

// TestFromGraph: a graph agent can start others if it has a node for that.
func TestFromGraph(t *testing.T) {
	t.Parallel()
	for node, want := range map[string]bool{
		"{type: end}": false,
		"{type: llm, prompt: p, tools: [fs_cat]}":               false,
		"{type: llm, prompt: p, tools: [fs_cat, agent__spawn]}": false,
		"{type: agent, agent: x, prompt: p}":                    true,
	} {
		g, _, err := graph.Parse("graph.yaml", []byte("name: other\ndescription: d\nmodel: m\nstart: a\nnodes: {a: "+node+"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		d := agent.FromGraph("dir", g)
		if d.Team.CanSpawn != want || d.Name != "dir" || d.Model != "m" || d.Description != "d" || d.Todo.Enabled || d.Team.SummarizationThreshold != 4000 {
			t.Errorf("%s: %+v", node, d)
		}
	}
}
