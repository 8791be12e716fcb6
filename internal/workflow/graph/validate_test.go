package graph_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loki/internal/base/fault"
	"loki/internal/workflow/graph"
)

// world has one script, two agents, one of which is an empty directory, and one of
// everything for llm nodes.
var world = graph.ValidateEnv{
	Dir:        "/agents/x",
	FileExists: func(path string) bool { return path == "/agents/x/ok.sh" || path == "/bin/abs.py" },
	Agent:      func(name string) (known, defined bool) { return name == "child" || name == "husk", name == "child" },
	Context: &graph.AgentContext{
		Functions:   []string{"fs_cat", "web_search"},
		HasFunction: func(entry string) bool { return slices.Contains([]string{"fs_cat", "fs_cat.sh", "web_search"}, entry) },
		Servers:     []string{"papers"},
		Model: func(id string) error {
			if id != "good:model" {
				return errors.New("unknown chat model")
			}
			return nil
		},
	},
}

// rules lists the findings of one rule.
func rules(findings graph.Findings, rule graph.Rule) string {
	var lines []string
	for _, f := range findings {
		if f.Rule == rule {
			lines = append(lines, fmt.Sprintf("%d:%d %s %s", f.Line, f.Column, f.Severity, f))
		}
	}
	return strings.Join(lines, "\n")
}

const (
	top  = "name: x\nstart: a\n"
	tail = "  z: {type: end}\n"
)

// TestRules has, for every rule, a definition that breaks it and its neighbour that
// does not.
func TestRules(t *testing.T) {
	for _, tt := range []struct {
		rule graph.Rule
		name string
		src  string // the definition below top
		want string
	}{
		{graph.RuleUnknownTarget, "next", "nodes:\n  a: {type: llm, prompt: p, next: y}\n" + tail, `4:35 error [a] next leads to "y", which is not a node`},
		{graph.RuleUnknownTarget, "next_known", "nodes:\n  a: {type: llm, prompt: p, next: z}\n" + tail, ""},
		{
			graph.RuleUnknownTarget, "every_field", "nodes:\n  a: {type: llm, prompt: p, next: [b, n1], fallback: n2}\n  b: {type: approval, question: q, options: [x], routes: {x: n3}, on_other: n4, next: n5}\n" +
				"  c: {type: script, script: ok.sh, fallback: n6}\n  d: {type: map, over: o, as: i, branch: n7, collect_into: r}\n  z: {type: end, next: n8}\n",
			`4:39 error [a] next leads to "n1", which is not a node
4:54 error [a] llm fallback leads to "n2", which is not a node
5:87 error [b] next leads to "n5", which is not a node
5:62 error [b] approval routes leads to "n3", which is not a node
5:77 error [b] approval on_other leads to "n4", which is not a node
6:46 error [c] script fallback leads to "n6", which is not a node
7:42 error [d] map branch leads to "n7", which is not a node
8:24 error [z] next leads to "n8", which is not a node`,
		},

		{
			graph.RuleCycle, "two_nodes", "nodes:\n  a: {type: llm, prompt: p, next: b}\n  b: {type: llm, prompt: p, next: a, fallback: z}\n" + tail,
			`5:35 error the declared edges form a cycle: a -> b -> a`,
		},
		{graph.RuleCycle, "diamond", "nodes:\n  a: {type: llm, prompt: p, next: [b, c]}\n  b: {type: llm, prompt: p, next: z}\n  c: {type: llm, prompt: p, next: z}\n" + tail, ""},
		{graph.RuleCycle, "self", "nodes:\n  a: {type: llm, prompt: p, next: a}\n" + tail, `4:35 error the declared edges form a cycle: a -> a`},
		{graph.RuleCycle, "to_end_that_goes_back", "nodes:\n  a: {type: llm, prompt: p, next: z}\n  z: {type: end, next: a}\n", `5:24 error the declared edges form a cycle: a -> z -> a`},
		{
			graph.RuleCycle, "over_fallback_and_unreachable", "nodes:\n  a: {type: end}\n  b: {type: script, script: ok.sh, fallback: c}\n  c: {type: approval, question: q, options: [], routes: {}, on_other: b}\n",
			`6:71 error the declared edges form a cycle: b -> c -> b`,
		},
		{graph.RuleCycle, "over_branch", "nodes:\n  a: {type: map, over: o, as: i, branch: b, collect_into: r, next: z}\n  b: {type: llm, prompt: p, next: a}\n" + tail, `5:35 error the declared edges form a cycle: a -> b -> a`},
		{graph.RuleCycle, "only_the_first", "nodes:\n  a: {type: llm, prompt: p, next: a}\n  b: {type: llm, prompt: p, next: b}\n" + tail, `4:35 error the declared edges form a cycle: a -> a`},

		{
			graph.RuleUnreachable, "island", "nodes:\n  a: {type: end}\n  b: {type: end}\n  c: {type: end}\n",
			"5:3 warning [b] no declared edge leads here from the start \"a\" (a script's _next is not analysed)\n6:3 warning [c] no declared edge leads here from the start \"a\" (a script's _next is not analysed)",
		},
		{graph.RuleUnreachable, "over_fallback_and_branch", "nodes:\n  a: {type: llm, prompt: p, next: m, fallback: b}\n  b: {type: end}\n  m: {type: map, over: o, as: i, branch: c, collect_into: r, next: b}\n  c: {type: llm, prompt: p}\n", ""},
		{graph.RuleNoEnd, "none", "nodes:\n  a: {type: llm, prompt: p}\n", "3:1 error there is no end node, so a run could not end"},
		{graph.RuleNoEnd, "one", "nodes:\n  a: {type: llm, prompt: p}\n" + tail, ""},
		{graph.RuleUnreachableEnd, "not_linked", "nodes:\n  a: {type: llm, prompt: p}\n" + tail, "3:1 warning no end node can be reached from the start \"a\" over declared edges (a script's _next is not analysed)"},
		{graph.RuleUnreachableEnd, "linked", "nodes:\n  a: {type: llm, prompt: p, next: z}\n" + tail, ""},
		{graph.RuleUnreachableEnd, "no_end_at_all", "nodes:\n  a: {type: llm, prompt: p}\n", ""},

		{graph.RuleMissingScript, "missing", "nodes:\n  a: {type: script, script: sub/no.sh, next: z}\n" + tail, "4:29 error [a] script file /agents/x/sub/no.sh does not exist"},
		{graph.RuleMissingScript, "there", "nodes:\n  a: {type: script, script: ok.sh, next: z}\n" + tail, ""},
		{graph.RuleMissingScript, "absolute", "nodes:\n  a: {type: script, script: /bin/abs.py, next: z}\n" + tail, ""},
		{graph.RuleMissingScript, "empty", "nodes:\n  a: {type: script, script: \"\", next: z}\n" + tail, "4:29 error [a] script names no file"},
		{graph.RuleScriptExtension, "javascript", "nodes:\n  a: {type: script, script: a.js, next: z}\n" + tail, `4:29 error [a] script "a.js" has extension .js, so it cannot be run`},
		{graph.RuleScriptExtension, "none", "nodes:\n  a: {type: script, script: bin/a, next: z}\n" + tail, `4:29 error [a] script "bin/a" has no extension, so it cannot be run`},
		{graph.RuleScriptExtension, "only_a_dot_and_letters", "nodes:\n  a: {type: script, script: x.d/.sh, next: z}\n" + tail, `4:29 error [a] script "x.d/.sh" has no extension, so it cannot be run`},
		{graph.RuleScriptExtension, "good", "nodes:\n  a: {type: script, script: a.SH, next: b}\n  b: {type: script, script: a.b.py, next: c}\n  c: {type: script, script: a.ts, next: z}\n" + tail, ""},

		{graph.RuleUnknownAgent, "unknown", "nodes:\n  a: {type: agent, agent: nobody, prompt: p, next: z}\n" + tail, `4:27 error [a] agent "nobody" does not exist`},
		{graph.RuleUnknownAgent, "empty", "nodes:\n  a: {type: agent, agent: \"\", prompt: p, next: z}\n" + tail, `4:27 error [a] agent "" does not exist`},
		{graph.RuleUnknownAgent, "known", "nodes:\n  a: {type: agent, agent: child, prompt: p, next: z}\n" + tail, ""},
		{graph.RuleUndefinedAgent, "empty_directory", "nodes:\n  a: {type: agent, agent: husk, prompt: p, next: z}\n" + tail, `4:27 error [a] agent "husk" has neither a config.yaml nor a graph.yaml`},
		{graph.RuleUndefinedAgent, "defined", "nodes:\n  a: {type: agent, agent: child, prompt: p, next: z}\n" + tail, ""},

		{graph.RuleMissingRoute, "option_without_route", "nodes:\n  a: {type: approval, question: q, options: [yes, no], routes: {yes: z}, on_other: z}\n" + tail, `4:51 error [a] option "no" has no entry in routes`},
		{graph.RuleMissingRoute, "all_routed", "nodes:\n  a: {type: approval, question: q, options: [yes, no], routes: {yes: z, no: z}, on_other: z}\n" + tail, ""},
		{graph.RuleUnusedRoute, "route_without_option", "nodes:\n  a: {type: approval, question: q, options: [yes], routes: {yes: z, Yes: z, no: z}, on_other: z}\n" + tail, "4:74 warning [a] route \"Yes\" is not among the options\n4:81 warning [a] route \"no\" is not among the options"},
		{graph.RuleUnusedRoute, "all_used", "nodes:\n  a: {type: approval, question: q, options: [yes, no], routes: {no: z, yes: z}, on_other: z}\n" + tail, ""},

		{graph.RuleNoDocuments, "empty", "nodes:\n  a: {type: rag, documents: [], next: z}\n" + tail, "4:18 error [a] documents is empty, so there is nothing to search"},
		{graph.RuleNoDocuments, "one", "nodes:\n  a: {type: rag, documents: [d], next: z}\n" + tail, ""},
		{graph.RuleUnusedResult, "absent", "nodes:\n  a: {type: rag, documents: [d], next: z}\n" + tail, "4:3 warning [a] there are no state_updates, so what is found is lost"},
		{graph.RuleUnusedResult, "empty_map", "nodes:\n  a: {type: rag, documents: [d], state_updates: {}, next: z}\n" + tail, ""},
		{graph.RuleUnusedResult, "branch_of_a_map", "nodes:\n  a: {type: map, over: o, as: i, branch: b, collect_into: r, next: z}\n  b: {type: rag, documents: [d]}\n" + tail, ""},

		{
			graph.RuleUnknownMCPServer, "unknown", "nodes:\n  a: {type: llm, prompt: p, tools: [\"mcp:paper\", \"mcp:papers\"], next: z}\n" + tail,
			`4:37 error [a] tool "mcp:paper": the agent has no MCP server "paper"`,
		},
		{graph.RuleUnknownTool, "unknown", "nodes:\n  a: {type: llm, prompt: p, tools: [web_search, nope, fs_cat.sh], next: z}\n" + tail, `4:49 error [a] tool "nope" is not a function of the agent`},
		{graph.RuleUnknownTool, "none", "nodes:\n  a: {type: llm, prompt: p, tools: [], next: z}\n" + tail, ""},
		{graph.RuleUnknownModel, "unknown", "nodes:\n  a: {type: llm, prompt: p, model: bad, next: z}\n" + tail, `4:36 error [a] model "bad" cannot be used: unknown chat model`},
		{graph.RuleUnknownModel, "known", "nodes:\n  a: {type: llm, prompt: p, model: good:model, next: z}\n" + tail, ""},
		{graph.RuleUnknownModel, "of_the_graph", "model: bad\nnodes:\n  a: {type: llm, prompt: p, next: z}\n" + tail, `3:8 error model "bad" cannot be used: unknown chat model`},

		{graph.RuleZeroConcurrency, "settings", "settings: {max_concurrency: 0}\nnodes:\n  a: {type: end}\n", "3:29 error settings.max_concurrency is 0, so nothing could run"},
		{graph.RuleZeroConcurrency, "settings_one", "settings: {max_concurrency: 1}\nnodes:\n  a: {type: end}\n", ""},
		{
			graph.RuleZeroConcurrency, "map", "nodes:\n  a: {type: map, over: o, as: i, branch: b, collect_into: r, max_concurrency: 0, next: z}\n  b: {type: llm, prompt: p}\n" + tail,
			"4:79 error [a] max_concurrency is 0, so no branch could run",
		},
		{graph.RuleZeroConcurrency, "map_default", "nodes:\n  a: {type: map, over: o, as: i, branch: b, collect_into: r, max_concurrency: ~, next: z}\n  b: {type: llm, prompt: p}\n" + tail, ""},

		{graph.RuleMapBranch, "end", mapOver("{type: end}"), `4:42 error [a] branch "b" is of type end, which a map cannot run`},
		{graph.RuleMapBranch, "input", mapOver("{type: input, question: q}"), ""},
		{graph.RuleMapBranch, "input_with_next", mapOver("{type: input, question: q, next: z}"), `5:39 error [b] the branch of map "a" must not have next, it is run once for each item and for itself`},
		{graph.RuleMapBranch, "approval", mapOver("{type: approval, question: q, options: [yes, no]}"), ""},
		{graph.RuleMapBranch, "approval_with_routes", mapOver("{type: approval, question: q, options: [yes], routes: {yes: z}, on_other: z}"), `5:52 warning [b] map "a" delivers the choice for each item, so the routes of its branch lead nowhere`},
		{graph.RuleMapBranch, "approval_with_on_other", mapOver("{type: approval, question: q, options: [], routes: {}, on_other: z}"), `5:71 warning [b] map "a" delivers the choice for each item, so the routes of its branch lead nowhere`},
		{graph.RuleMapBranch, "map", mapOver("{type: map, over: o, as: i, branch: c, collect_into: r}\n  c: {type: llm, prompt: p}"), `4:42 error [a] branch "b" is of type map, which a map cannot run`},
		{graph.RuleMapBranch, "next", mapOver("{type: llm, prompt: p, next: []}"), `5:29 error [b] the branch of map "a" must not have next, it is run once for each item and for itself`},
		{
			graph.RuleMapBranch, "other_keys", mapOver("{type: script, script: ok.sh, state_updates: {k: x, other: y}}"),
			`5:65 error [b] the branch of map "a" delivers "k" alone, what it writes to "other" is lost`,
		},
		{
			graph.RuleMapBranch, "schema", mapOver("{type: llm, prompt: p, output_schema: {properties: {q: {}, p: {}}}}"),
			`5:29 error [b] the output_schema of the branch of map "a" would write p, q to the state, but a branch delivers "k" alone`,
		},
		{graph.RuleMapBranch, "good", mapOver("{type: llm, prompt: p, state_updates: {k: x}, output_schema: {type: object, properties: {}}}"), ""},
		{graph.RuleMapBranch, "script_without_updates", mapOver("{type: script, script: ok.sh}"), ""},

		{graph.RuleParallelScript, "absent", fan("{type: script, script: ok.sh, next: z}", "{type: llm, prompt: p, next: z}"), `5:3 error [b] "a" starts the script in parallel with others, so it needs state_updates that show what it writes`},
		{graph.RuleParallelScript, "empty", fan("{type: script, script: ok.sh, state_updates: {}, next: z}", "{type: llm, prompt: p, next: z}"), ""},

		{
			graph.RuleParallelWrite, "two_writers", fan("{type: llm, prompt: p, state_updates: {k: x, own: y}, next: z}", "{type: script, script: ok.sh, state_updates: {k: x}, next: z}"),
			`4:29 error parallel nodes [b, c] all write "k", and no reducer is declared for it`,
		},
		{graph.RuleParallelWrite, "reducer", "reducers: {k: append}\n" + fan("{type: llm, prompt: p, state_updates: {k: x}, next: z}", "{type: llm, prompt: p, state_updates: {k: x}, next: z}"), ""},
		{
			graph.RuleParallelWrite, "schemas", fan("{type: llm, prompt: p, output_schema: {properties: {k: {}}}, next: z}", "{type: agent, agent: child, prompt: p, output_schema: {properties: {k: {}, j: {}}}, next: z}"),
			`4:29 error parallel nodes [b, c] all write "k", and no reducer is declared for it`,
		},
		{
			graph.RuleParallelWrite, "one_of_a_race",
			strings.Replace(fan("{type: llm, prompt: p, state_updates: {k: x}, next: z}", "{type: llm, prompt: p, state_updates: {k: x}, next: z}"), "{type: end}", "{type: end, join: any}", 1), "",
		},
		{
			graph.RuleParallelWrite, "both_may_finish_before_the_race_ends",
			strings.Replace(fan("{type: llm, prompt: p, state_updates: {k: x}, next: z}", "{type: llm, prompt: p, state_updates: {k: x}, next: d}\n  d: {type: llm, prompt: p, next: z}"), "{type: end}", "{type: end, join: any}", 1),
			`4:29 error parallel nodes [b, c] all write "k", and no reducer is declared for it`,
		},
		{graph.RuleParallelWrite, "different_keys", fan("{type: llm, prompt: p, state_updates: {k: x}, next: z}", "{type: llm, prompt: p, state_updates: {j: x}, next: z}"), ""},
		{graph.RuleParallelWrite, "scoped_key_is_no_write", fan("{type: llm, prompt: p, state_updates: {output: x}, next: z}", "{type: llm, prompt: p, state_updates: {output: x}, next: z}"), ""},
		{
			graph.RuleParallelWrite, "map_result_is_not_known", fan("{type: map, over: o, as: i, branch: d, collect_into: k, next: z}\n  d: {type: llm, prompt: p}", "{type: llm, prompt: p, state_updates: {k: x}, next: z}"), "",
		},

		{
			graph.RuleParallelRead, "prompt", fan(`{type: llm, prompt: "{{k.m}} {{j}} {{free}}", next: z}`, "{type: llm, prompt: p, state_updates: {j: x, k: x}, next: z}"),
			`5:3 error [b] "b" reads j, k, which "c" writes in parallel with it`,
		},
		{
			graph.RuleParallelRead, "deferred", fan(`{type: llm, prompt: "{{k}}", next: z, defer: true}`, "{type: llm, prompt: p, state_updates: {k: x}, next: z}"), "",
		},
		{
			graph.RuleParallelRead, "a_reducer_does_not_excuse", "reducers: {k: append}\n" + fan(`{type: llm, prompt: p, instructions: "{{k[0]}}", next: z}`, "{type: llm, prompt: p, state_updates: {k: x}, next: z}"),
			`6:3 error [b] "b" reads k, which "c" writes in parallel with it`,
		},
		{
			graph.RuleParallelRead, "state_update_of_a_script", fan(`{type: script, script: ok.sh, state_updates: {own: "{{k}}"}, next: z}`, "{type: llm, prompt: p, state_updates: {k: x}, next: z}"),
			`5:3 error [b] "b" reads k, which "c" writes in parallel with it`,
		},
		{
			graph.RuleParallelRead, "query_by_default", fan("{type: rag, documents: [d], state_updates: {}, next: z}", "{type: llm, prompt: p, state_updates: {initial_prompt: x}, next: z}"),
			`5:3 error [b] "b" reads initial_prompt, which "c" writes in parallel with it`,
		},
		{
			graph.RuleParallelRead, "cache_key", fan(`{type: llm, prompt: p, cache: {ttl: 5, key: "{{k}}"}, next: z}`, "{type: llm, prompt: p, state_updates: {k: x}, next: z}"),
			`5:3 error [b] "b" reads k, which "c" writes in parallel with it`,
		},
		{
			graph.RuleParallelRead, "schema_of_a_sibling", fan(`{type: llm, prompt: "{{k}}", next: z}`, "{type: llm, prompt: p, output_schema: {properties: {k: {}}}, next: z}"),
			`5:3 error [b] "b" reads k, which "c" writes in parallel with it`,
		},
		{graph.RuleParallelRead, "own_write", fan(`{type: llm, prompt: "{{k}}", state_updates: {k: x}, next: z}`, "{type: llm, prompt: p, next: z}"), ""},
		{
			graph.RuleParallelRead, "scoped_variable", fan(`{type: llm, prompt: p, state_updates: {k: "{{output}}"}, next: z}`, "{type: script, script: ok.sh, state_updates: {output: x}, next: z}"), "",
		},
		{
			graph.RuleParallelRead, "scoped_variable_in_the_prompt", fan(`{type: llm, prompt: "{{output}}", next: z}`, "{type: script, script: ok.sh, state_updates: {output: x}, next: z}"),
			`5:3 error [b] "b" reads output, which "c" writes in parallel with it`,
		},
		{graph.RuleParallelRead, "no_placeholder", fan(`{type: llm, prompt: "{{ k }}", next: z}`, "{type: llm, prompt: p, state_updates: {k: x}, next: z}"), ""},
		{
			graph.RuleParallelRead, "over_and_output", fan(`{type: map, over: "{{k}}", as: i, branch: d, collect_into: r, next: z}`+"\n  d: {type: llm, prompt: p}", "{type: llm, prompt: p, state_updates: {k: x}, next: z}"),
			`5:3 error [b] "b" reads k, which "c" writes in parallel with it`,
		},
		{
			graph.RuleParallelRead, "both_ways", fan(`{type: llm, prompt: "{{j}}", state_updates: {k: x}, next: z}`, `{type: end, output: "{{k}}", state_updates: {j: x}}`),
			"5:3 error [b] \"b\" reads j, which \"c\" writes in parallel with it\n6:3 error [c] \"c\" reads k, which \"b\" writes in parallel with it",
		},

		{
			graph.RulePredicate, "bad", "nodes:\n  a: {type: input, question: q, validation: len(input) != 0, next: z}\n" + tail,
			`4:45 error [a] validation: "len(input) != 0" is not a length predicate: expected len(input), one of >= <= == > <, and a whole number, as in len(input) > 0`,
		},
		{
			graph.RuleAssignees, "none", "nodes:\n  a: {type: input, question: q, assignees: [], next: z}\n" + tail,
			"4:33 error [a] assignees has to name the subjects who may answer; leave it out if all may who see the run",
		},
		{graph.RuleAssignees, "single", "nodes:\n  a: {type: input, question: q, assignee: ada, next: z}\n" + tail, ""},
		{
			graph.RuleAssignees, "single_empty", "nodes:\n  a: {type: input, question: q, assignee: '', next: z}\n" + tail,
			"4:3 error [a] assignees has to name the subjects who may answer; leave it out if all may who see the run",
		},
		{graph.RuleAssignees, "one", "nodes:\n  a: {type: input, question: q, assignees: [ada], next: z}\n" + tail, ""},
		{graph.RulePredicate, "good", "nodes:\n  a: {type: input, question: q, validation: len(input) > 0, next: z}\n" + tail, ""},
		{
			graph.RuleZeroLimit, "zero", "settings: {max_loop_iterations: 0}\nnodes:\n  a: {type: llm, prompt: p, max_attempts: 0, max_iterations: 0, next: z}\n" + tail,
			"3:33 error settings.max_loop_iterations is 0, so no node may run\n5:43 warning [a] max_attempts is 0, so the node always fails\n5:62 warning [a] max_iterations is 0, so the node always fails",
		},
		{graph.RuleZeroLimit, "one", "settings: {max_loop_iterations: 1}\nnodes:\n  a: {type: llm, prompt: p, max_attempts: 1, max_iterations: 1, next: z}\n" + tail, ""},
		{
			graph.RuleTimeoutDefault, "timeout_without_default", "nodes:\n  a: {type: approval, question: q, options: [x], routes: {x: b}, on_other: b, timeout: 60}\n  b: {type: input, question: q, timeout: 1, next: z}\n" + tail,
			"4:88 warning [a] there is no default, so the node fails without an answer within 60 seconds\n5:42 warning [b] there is no default, so the node fails without an answer within 1 second",
		},
		{
			graph.RuleTimeoutDefault, "default_without_timeout", "nodes:\n  a: {type: approval, question: q, options: [x], routes: {x: b}, on_other: b, default: x}\n  b: {type: input, question: q, default: d, next: z}\n" + tail,
			"4:88 warning [a] the default of an approval is for when its timeout is over, and there is none",
		},
		{
			graph.RuleTimeoutDefault, "both", "nodes:\n  a: {type: approval, question: q, options: [x], routes: {x: b}, on_other: b, default: x, timeout: 60}\n" +
				"  b: {type: input, question: q, default: \"\", timeout: 60, next: c}\n  c: {type: llm, prompt: p, timeout: 5, next: z}\n" + tail, "",
		},
		{
			graph.RuleTimeoutDefault, "expires", "nodes:\n  a: {type: approval, question: q, options: [x], routes: {x: b}, on_other: b, expires: 36h, default: x}\n" +
				"  b: {type: input, question: q, default: d, expires: \"2030-12-24T18:00:00Z\", next: z}\n" + tail, "",
		},
		{
			graph.RuleTimeoutDefault, "expires_without_default", "nodes:\n  a: {type: input, question: q, expires: 36h, next: z}\n" + tail,
			"4:42 warning [a] there is no default, so the node fails if the question expires without an answer",
		},
		{
			graph.RuleTimeoutDefault, "expires_and_timeout", "nodes:\n  a: {type: input, question: q, default: d, expires: 36h, timeout: 5, next: z}\n" + tail,
			"4:68 error [a] timeout and expires both say until when the question can be answered",
		},
		{
			graph.RuleDefaultAnswer, "neither_option_nor_route", "nodes:\n  a: {type: approval, question: q, options: [yes], routes: {yes: z, no: z}, on_other: z, default: nope, timeout: 60}\n" + tail,
			`4:99 warning [a] default "nope" is not among the options, so it leads to on_other, "z"`,
		},
		{graph.RuleDefaultAnswer, "option", answeredBy("yes"), ""},
		{graph.RuleDefaultAnswer, "route", answeredBy("no"), ""},
		{graph.RuleDefaultAnswer, "template", answeredBy(`"{{initial_prompt}}"`), ""},
		{graph.RuleRetry, "one_attempt", "nodes:\n  a: {type: script, script: ok.sh, retry: {backoff: 90}, next: z}\n" + tail, "4:36 warning [a] retry with 1 attempt tries nothing again"},
		{
			graph.RuleRetry, "with_max_attempts", "nodes:\n  a: {type: llm, prompt: p, retry: {attempts: 3}, max_attempts: 2, next: z}\n" + tail,
			"4:65 warning [a] each of the 3 attempts of retry may call the model 2 times because of max_attempts",
		},
		{graph.RuleRetry, "max_attempts_of_one", "nodes:\n  a: {type: llm, prompt: p, retry: {attempts: 3}, max_attempts: 1, next: z}\n" + tail, ""},
		{graph.RuleRetry, "backoff_beyond_max", "nodes:\n  a: {type: llm, prompt: p, retry: {attempts: 2, backoff: 61}, next: z}\n" + tail, "4:59 warning [a] backoff is longer than max_backoff, so every wait is 60 seconds"},
		{graph.RuleRetry, "backoff_at_max", "nodes:\n  a: {type: llm, prompt: p, retry: {attempts: 2, backoff: 60}, next: z}\n" + tail, ""},
		{graph.RuleCache, "zero", "nodes:\n  a: {type: llm, prompt: p, cache: {ttl: 0}, next: z}\n" + tail, "4:42 warning [a] ttl is 0, so no result is ever used again"},
		{graph.RuleCache, "one", "nodes:\n  a: {type: llm, prompt: p, cache: {ttl: 1}, next: z}\n" + tail, ""},
		{
			graph.RuleUncertain, "without_a_record", "settings: {durability: off}\nnodes:\n  a: {type: llm, prompt: p, on_uncertain: ask, next: z}\n" + tail,
			"5:43 warning [a] on_uncertain means nothing with settings.durability: off, since such a run cannot be resumed",
		},
		{
			graph.RuleUncertain, "skip_to_nowhere", "nodes:\n  a: {type: script, script: ok.sh, on_uncertain: skip}\n" + tail,
			"4:50 warning [a] a script that is skipped names no _next, and the node has no next, so the run fails here",
		},
		{graph.RuleUncertain, "skip_to_next", "nodes:\n  a: {type: script, script: ok.sh, on_uncertain: skip, next: z}\n" + tail, ""},
		{graph.RuleUncertain, "skip_in_a_map", mapOver("{type: script, script: ok.sh, on_uncertain: skip}"), ""},
		{graph.RuleMissingNext, "deferred", "nodes:\n  a: {type: llm, prompt: p, next: [b, z]}\n  b: {type: llm, prompt: p, defer: true}\n" + tail, ""},
		{graph.RuleMissingNext, "llm", "nodes:\n  a: {type: llm, prompt: p, fallback: z}\n" + tail, "4:3 warning [a] a node of type llm needs next, without it the run fails here"},
		{graph.RuleMissingNext, "needless", "nodes:\n  a: {type: script, script: ok.sh}\n  b: {type: llm, prompt: p, next: []}\n" + tail, ""},
		{graph.RuleMissingNext, "branch", mapOver("{type: llm, prompt: p}"), ""},
		{graph.RuleJoin, "one_source", "nodes:\n  a: {type: approval, question: q, options: [x], routes: {x: z}, on_other: z}\n  z: {type: end, join: all}\n", "5:24 warning [z] join: all has nothing to wait for, since fewer than two nodes lead here"},
		{graph.RuleJoin, "nothing_races", "nodes:\n  a: {type: llm, prompt: p, next: z}\n  z: {type: end, join: any}\n", "5:24 warning [z] join: any has nothing to choose from, since fewer than two nodes lead here"},
		{graph.RuleJoin, "too_many", strings.Replace(fan("{type: llm, prompt: p, next: z}", "{type: llm, prompt: p, next: z}"), "{type: end}", "{type: end, join: 3}", 1), "7:24 warning [z] join: 3 waits for more arrivals than there are nodes that lead here, which are 2"},
		{graph.RuleJoin, "as_many", strings.Replace(fan("{type: llm, prompt: p, next: z}", "{type: llm, prompt: p, next: z}"), "{type: end}", "{type: end, join: 2}", 1), ""},
		{graph.RuleJoin, "behind_a_node_that_runs_twice", strings.Replace(fan("{type: llm, prompt: p, next: z}", "{type: llm, prompt: p, next: y}"), "  z: {type: end}", "  y: {type: llm, prompt: p, next: z}\n  z: {type: llm, prompt: p, next: w}\n  w: {type: end, join: all}", 1), ""},
		{graph.RuleJoin, "behind_a_join", strings.Replace(fan("{type: llm, prompt: p, next: z}", "{type: llm, prompt: p, next: z}"), "  z: {type: end}", "  z: {type: llm, prompt: p, join: all, next: w}\n  w: {type: end, join: all}", 1), "8:24 warning [w] join: all has nothing to wait for, since fewer than two nodes lead here"},
		{graph.RuleJoin, "two_sources", strings.Replace(fan("{type: llm, prompt: p, next: z}", "{type: llm, prompt: p, next: z}"), "{type: end}", "{type: end, join: all}", 1), ""},
		{graph.RuleScopedUpdate, "dropped", "nodes:\n  a: {type: llm, prompt: p, state_updates: {output: \"{{output}}\"}, next: z}\n" + tail, `4:53 warning [a] "output" is there only while the state_updates are made, so this one is dropped`},
		{graph.RuleScopedUpdate, "another_type's", "nodes:\n  a: {type: llm, prompt: p, state_updates: {input: x, choice: y}, next: z}\n" + tail, ""},
		{graph.RuleScopedUpdate, "delivered", strings.Replace(mapOver("{type: llm, prompt: p, state_updates: {output: x}}"), "output_key: k, ", "", 1), ""},
		{
			graph.RulePlaceholder, "spaces_and_hyphens", "nodes:\n  a: {type: llm, prompt: \"{{ topic }} {{topic}}\", state_updates: {k: \"{{my-key}}\"}, next: z}\n" + tail,
			"4:26 warning [a] {{ topic }} is ordinary text\n4:70 warning [a] {{my-key}} is ordinary text",
		},
		{graph.RulePlaceholder, "never_there", "nodes:\n  a: {type: llm, prompt: \"{{a[b]}}\", next: z}\n" + tail, "4:26 warning [a] {{a[b]}} can never be found in the state"},
		{graph.RulePlaceholder, "other_braces", "nodes:\n  a: {type: llm, prompt: '{{\"a\": 1}} {{}} {{ }} {{k|upper}} {{a b}} {{- x }} {{é}} {{{initial_prompt}}} }} {{', next: z}\n" + tail, ""},

		{
			graph.RuleUndefinedRead, "nothing_writes", "initial_state: {seed: 1}\nnodes:\n  a: {type: llm, prompt: \"{{seed}} {{sed}} {{topic}} {{topic.x}}\", state_updates: {k: \"{{output}}\"}, next: z}\n  z: {type: end, output: \"{{k}} {{output}} {{_last_error.node}}\"}\n",
			"5:26 warning [a] {{sed}} is read, but nothing writes \"sed\", so the node always fails\n5:26 warning [a] {{topic}} is read, but nothing writes \"topic\", so the node always fails\n" +
				"6:26 warning [z] {{output}} is read, but nothing writes \"output\", so it is always empty",
		},
		{graph.RuleUndefinedRead, "a_script_may_write", "nodes:\n  a: {type: llm, prompt: \"{{topic}}\", next: b}\n  b: {type: script, script: ok.sh, next: z}\n" + tail, ""},
		{graph.RuleUndefinedRead, "an_open_schema_may_write", "nodes:\n  a: {type: llm, prompt: p, output_schema: {type: object}, next: z}\n  z: {type: end, output: \"{{topic}}\"}\n", ""},
		{
			graph.RuleUndefinedRead, "cache_key_and_default", "nodes:\n  a: {type: llm, prompt: p, cache: {ttl: 5, key: \"{{sed}}\"}, next: b}\n" +
				"  b: {type: approval, question: q, options: [], routes: {}, on_other: z, timeout: 5, default: \"{{seed}}\"}\n" + tail,
			"4:50 warning [a] {{sed}} is read, but nothing writes \"sed\", so the node always fails\n5:95 warning [b] {{seed}} is read, but nothing writes \"seed\", so it is always empty",
		},
		{
			graph.RuleUndefinedRead, "schema_map_and_item", "nodes:\n  a: {type: llm, prompt: p, output_schema: {properties: {list: {}}}, next: m}\n  m: {type: map, over: \"{{list}}\", as: it, branch: b, collect_into: all, next: z}\n" +
				"  b: {type: llm, prompt: \"{{it}}\"}\n  z: {type: end, output: \"{{all}} {{it}}\"}\n",
			"7:26 warning [z] {{it}} is read, but nothing writes \"it\", so it is always empty",
		},
	} {
		t.Run(string(tt.rule)+"/"+tt.name, func(t *testing.T) {
			if got := rules(graph.Validate(parse(t, top+tt.src), world), tt.rule); got != tt.want {
				t.Errorf("%s\ngot\n%s\nwant\n%s", tt.src, got, tt.want)
			}
		})
	}
}

// mapOver is a map a over the branch b, which delivers k.
func mapOver(branch string) string {
	return "nodes:\n  a: {type: map, over: o, as: i, branch: b, output_key: k, collect_into: r, next: z}\n  b: " + branch + "\n" + tail
}

// answeredBy is an approval with the given default.
func answeredBy(answer string) string {
	return "nodes:\n  a: {type: approval, question: q, options: [yes], routes: {yes: z, no: z}, on_other: z, timeout: 60, default: " + answer + "}\n" + tail
}

// fan is a fan-out of a to b and c.
func fan(b, c string) string {
	return "nodes:\n  a: {type: llm, prompt: p, next: [c, b]}\n  b: " + b + "\n  c: " + c + "\n" + tail
}

func TestHints(t *testing.T) {
	for _, tt := range []struct {
		rule      graph.Rule
		src, want string
	}{
		{graph.RuleUnknownTarget, "nodes:\n  a: {type: llm, prompt: p, next: finsh}\n  finish: {type: end}\n", `did you mean "finish"?`},
		{graph.RuleUnknownTool, "nodes:\n  a: {type: llm, prompt: p, tools: [web_serch]}\n", `did you mean "web_search"?`},
		{graph.RuleUnknownTool, "nodes:\n  a: {type: llm, prompt: p, tools: [nope]}\n", `available: fs_cat, web_search; or list it in global_tools, or write it in the agent's tools file`},
		{graph.RuleUndefinedRead, "nodes:\n  a: {type: llm, prompt: '{{initial_promt}}'}\n", `did you mean "initial_prompt"?`},
		{graph.RuleUndefinedRead, "nodes:\n  a: {type: llm, prompt: '{{choice}}'}\n", "choice is there only in the state_updates of the node it comes from; store it under a key of your own"},
		{graph.RuleUndefinedRead, "variables: [{name: api_url, description: d}]\nnodes:\n  a: {type: llm, prompt: '{{api_url}}'}\n", "agent variables reach scripts, as LLM_AGENT_VAR_API_URL, but not the state"},
		{graph.RuleConsent, "variables: [{name: auto-confirm, description: d, default: '1'}]\nnodes:\n  a: {type: llm, prompt: p}\n", "leave out the default, or leave it empty"},
		{graph.RuleDefaultAnswer, answeredBy("yess"), `did you mean "yes"?`},
		{graph.RuleDefaultAnswer, answeredBy("maybe"), "options: yes"},
		{graph.RuleDefaultAnswer, "nodes:\n  a: {type: approval, question: q, options: [], routes: {}, on_other: z, timeout: 60, default: maybe}\n" + tail, ""},
		{graph.RuleTimeoutDefault, "nodes:\n  a: {type: input, question: q, timeout: 5, next: z}\n" + tail, "add default: with the answer to take then, or fallback:"},
		{graph.RuleRetry, "nodes:\n  a: {type: rag, documents: [d], retry: {}, next: z}\n" + tail, "attempts counts all tries, the first one included"},
		{graph.RuleParallelWrite, fan("{type: llm, prompt: p, state_updates: {k: x}}", "{type: llm, prompt: p, state_updates: {k: x}}"), "declare how to combine them, for example reducers: {k: append}"},
	} {
		findings := graph.Validate(parse(t, top+tt.src), world)
		i := slices.IndexFunc(findings, func(f graph.Finding) bool { return f.Rule == tt.rule })
		if i < 0 || findings[i].Hint != tt.want {
			t.Errorf("%s of\n%s\ngot  %v\nwant %s", tt.rule, tt.src, findings, tt.want)
		}
	}
}

// TestOrderOfRules breaks many rules at once; the findings come in their order.
func TestOrderOfRules(t *testing.T) {
	g := parse(t, top+`settings: {max_concurrency: 0}
nodes:
  a: {type: llm, prompt: p, tools: [nope], model: bad, next: [b, c, nowhere]}
  b: {type: approval, question: "{{k}}", options: [x], routes: {y: a}, on_other: a}
  c: {type: script, script: no.js, state_updates: {k: v}, next: m}
  d: {type: script, script: ok.sh, next: [e, f]}
  e: {type: script, script: ok.sh}
  f: {type: rag, documents: []}
  m: {type: map, over: o, as: i, branch: m, collect_into: r}
  n: {type: agent, agent: nobody, prompt: p}
  o: {type: agent, agent: husk, prompt: p}
`)
	var got []string
	for _, f := range graph.Validate(g, world) {
		got = append(got, string(f.Rule))
	}
	want := []string{
		"unknown-target", "cycle", "unreachable", "no-end", "missing-script", "script-extension", "unknown-agent", "undefined-agent",
		"missing-route", "unused-route", "no-documents", "unused-result", "unknown-tool", "unknown-model", "zero-concurrency", "map-branch",
		"parallel-script", "parallel-read", "missing-next",
	}
	if got = slices.Compact(got); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// TestSorted makes sure that findings come in the order of the text, whatever they are about.
func TestSorted(t *testing.T) {
	at := func(file string, line, column int, message string) graph.Finding {
		return graph.Finding{File: file, Pos: graph.Pos{Line: line, Column: column}, Message: message}
	}
	findings := graph.Findings{
		at("b.yaml", 1, 1, "h"), at("", 12, 1, "f"), at("", 3, 5, "d"), at("a.yaml", 20, 1, "g"), at("", 3, 5, "e"), at("", 3, 2, "c"), at("", 0, 0, "a"), at("", 2, 9, "b"),
	}
	got := ""
	for _, f := range findings.InOrder() {
		got += f.Message
	}
	if got != "abcdefgh" || findings[0].Message != "h" {
		t.Errorf("got the order %s, and the list begins with %q", got, findings[0].Message)
	}
}

func TestChecksWithoutAWorld(t *testing.T) {
	g := parse(t, top+"nodes:\n  a: {type: llm, prompt: p, tools: [nope], model: bad, next: b}\n  b: {type: script, script: no.sh, next: c}\n  c: {type: agent, agent: nobody, prompt: p, next: z}\n"+tail)
	if findings := graph.Validate(g, graph.ValidateEnv{}); len(findings) > 0 {
		t.Error(findings)
	}
	if findings := graph.Validate(g, graph.ValidateEnv{Context: &graph.AgentContext{}}); len(findings) > 0 {
		t.Errorf("an unknown set of functions and models is not checked: %v", findings)
	}
	none := graph.Validate(g, graph.ValidateEnv{Context: &graph.AgentContext{Functions: []string{}}})
	if got := rules(none, graph.RuleUnknownTool); !strings.HasPrefix(got, "4:37 error [a]") {
		t.Errorf("an agent without functions: %v", none)
	}
}

func TestScriptsAreLookedForOnDisk(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "dir.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "there.sh"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	g := parse(t, top+"nodes:\n  a: {type: script, script: there.sh, next: b}\n  b: {type: script, script: dir.sh, next: c}\n  c: {type: script, script: gone.sh, next: z}\n"+tail)
	var missing []string
	for _, f := range graph.Validate(g, graph.ValidateEnv{Dir: dir}) {
		missing = append(missing, f.Node+" "+string(f.Rule))
	}
	if got := strings.Join(missing, ", "); got != "b missing-script, c missing-script" {
		t.Error(got)
	}
}

func TestFindings(t *testing.T) {
	findings := graph.Validate(parse(t, top+"nodes:\n  a: {type: llm, prompt: '{{ x }}', next: y}\n  b: {type: end, next: [a, y]}\n"), world)
	if got := len(findings.Errors()); got != 2 {
		t.Errorf("%d errors in %v", got, findings)
	}
	if got := len(findings.Warnings()); got != 3 {
		t.Errorf("%d warnings in %v", got, findings)
	}
	err := findings.Err()
	want := `graph validation failed with 2 errors:
  [a] next leads to "y", which is not a node
  [b] next leads to "y", which is not a node`
	if err == nil || err.Error() != want || fault.CodeOf(err) != fault.Config {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if err := findings.Warnings().Err(); err != nil {
		t.Errorf("warnings are an error: %v", err)
	}
	if got := len(findings.Warnings().Strict().Errors()); got != 3 {
		t.Errorf("strict warnings: %d errors", got)
	}
	data, jsonErr := json.Marshal(findings[0])
	if wantJSON := `{"severity":"error","rule":"unknown-target","node":"a","path":"nodes.a.next","line":4,"column":43,"message":"next leads to \"y\", which is not a node"}`; jsonErr != nil || string(data) != wantJSON {
		t.Errorf("got  %s, %v\nwant %s", data, jsonErr, wantJSON)
	}
}
