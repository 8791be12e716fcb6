//go:build unix

package flow_test

import (
	"strings"
	"testing"
)

// helpers are agents of the user.
var helpers = map[string]string{
	"config/agents/helper/config.yaml": `name: helper
description: Helps with letters
version: 1
instructions: You help {{who}}.
variables: [{name: who, description: Who is helped, default: Ann}]
conversation_starters: [What can you do, Help me]
auto_continue: true
max_auto_continues: 3
global_tools: [fs_ls]
`,
	"config/agents/helper/tools.sh": `# @cmd Keep a note
# @option --text! The text
note() { echo "$argc_text for $LLM_AGENT_VAR_WHO" >> "$HOME/notes"; printf noted >> "$LLM_OUTPUT"; }
# @cmd Fail
broken() { echo "it broke" >&2; exit 3; }
eval "$(argc --argc-eval "$0" "$@")"
`,
	"config/agents/boss/config.yaml": `name: boss
instructions: You lead.
can_spawn_agents: true
max_concurrent_agents: 1
`,
	"letters/ann.txt": "Dear Ann",
	"config/agents/child/config.yaml": `name: child
instructions: You are a child.
`,
}

// tools allows the tools of the agents.
const tools = "permission: {\"*\": allow}\n"

func TestAgent(t *testing.T) {
	t.Parallel()
	rules := `rules:
  - {match: {text: note, turn: 1}, tool_calls: [{name: note, arguments: {text: milk}}]}
  - {match: {text: note, turn: 2}, reply: 'It is {{tool_result}}.'}
  - {match: {text: break, turn: 1}, tool_calls: [{name: broken}]}
  - {match: {text: break, turn: 2}, reply: 'The tool said: {{tool_result}}'}
  - {match: {text: list, turn: 1}, tool_calls: [{name: fs_ls, arguments: {path: letters}}]}
  - {match: {text: list, turn: 2}, reply: 'There is {{tool_result}}'}
` + answers
	eachFace(t, setup{rules: rules, files: helpers, config: tools, rows: 80}, func(t *testing.T, u *user, name string) {
		u.do(".agent helper who=Bob")
		u.prompted("builtin:script)helper>>")
		u.do(".info agent", `Helps with letters`, `Bob`)
		u.do(".starter", `helper`, `What can you do`, `Help me`)
		u.do(".starter 1", `^>> What can you do`, `^You said: What can you do$`)
		u.do(".starter 7", `(?i)starter`)
		u.do("take a note", `^It is .*noted`)
		if got := u.read("notes"); got != "milk for Bob\n" {
			t.Errorf("notes: %q", got)
		}
		u.do("break it", `(?s)The tool said:.*it broke`)
		u.do("list them", `(?s)There is.*ann.txt`)
		u.do(".agent boss", `(?i)already`)
		u.do(".edit agent-config")
		if got := u.read("edited"); got != "config.yaml\n" {
			t.Errorf("edited: %q", got)
		}
		u.do(".exit agent")
		u.prompted("builtin:script)>")
		u.golden(name)
	})
}

func TestAgentSession(t *testing.T) {
	t.Parallel()
	u := begin(t, setup{files: helpers, config: "save_session: true\n"})
	u.do(".agent helper mysession who=Eve")
	u.prompted("builtin:script)helper>mysession)")
	u.do("hello")
	u.do(".exit agent")
	u.prompted("builtin:script)>")
	u.do(".agent helper mysession", `hello`)
}

// TestAgentTodo: an agent goes on until its list has no open items.
func TestAgentTodo(t *testing.T) {
	t.Parallel()
	rules := `rules:
  - {match: {text: work, turn: 1}, tool_calls: [{name: todo__init, arguments: {goal: bake}}, {name: todo__add, arguments: {task: mix}}]}
  - {match: {text: work, turn: 2}, reply: planned}
  - {match: {text: "○ 1. mix", turn: 1}, tool_calls: [{name: todo__done, arguments: {id: 1}}]}
  - {match: {text: "○ 1. mix", turn: 2}, reply: mixed}
  - {match: {text: leave, turn: 1}, tool_calls: [{name: todo__add, arguments: {task: wash}}]}
` + answers
	u := begin(t, setup{rules: rules, files: helpers})
	u.do(".agent helper")
	u.do("work", `(?s)planned.*Auto-continuing \(1/3\): 1 incomplete todo.*mixed`)
	u.do(".clear todo")
	u.do(".clear todo", `(?i)empty`)
	u.do(".exit agent")
	u.do(".clear todo", `(?i)auto_continue`)
}

// TestGraphAgent: a graph is run for each line, and takes no session.
func TestGraphAgent(t *testing.T) {
	t.Parallel()
	graph := `name: twice
start: say
nodes:
  say: {type: llm, prompt: "twice {{initial_prompt}}", state_updates: {said: "{{output}}"}, next: done}
  done: {type: end, output: "{{said}}"}
`
	u := begin(t, setup{files: map[string]string{"config/agents/twice/graph.yaml": graph}})
	u.do(".agent twice")
	u.do("hello", `^You said: twice hello$`)
	u.do("again", `^You said: twice again$`)
	u.do(".session x", `(?i)graph`)
	u.do(".edit agent-config")
	if got := u.read("edited"); got != "graph.yaml\n" {
		t.Errorf("edited: %q", got)
	}
	u.do(".exit agent")
	u.do(".agent twice x", `(?i)session`)
	u.prompted("builtin:script)>")
}

func TestAgentWithoutServers(t *testing.T) {
	t.Parallel()
	u := begin(t, setup{config: "mcp_server_support: false\n", files: map[string]string{
		"config/functions/mcp.json":       `{"mcpServers": {"a": {"command": "mcp-server", "args": ["a"], "sandbox": "full"}}}`,
		"config/agents/greet/config.yaml": "name: greet\nmcp_servers: [a]\n",
	}})
	u.do(".agent greet", `mcp_server_support`)
	u.prompted("builtin:script)>")
}

// TestToolPriority: of several scripts of the same name, the one in bash is the tool.
func TestToolPriority(t *testing.T) {
	t.Parallel()
	rules := `rules:
  - {match: {text: go, turn: 1}, tool_calls: [{name: which}]}
  - {match: {text: go, turn: 2}, reply: 'It was {{tool_result}}'}
` + answers
	u := begin(t, setup{rules: rules, config: tools + "enabled_tools: which\n", files: map[string]string{
		"config/functions/tools/which.sh": "# @describe Which\nmain() { printf bash >> \"$LLM_OUTPUT\"; }\neval \"$(argc --argc-eval \"$0\" \"$@\")\"\n",
		"config/functions/tools/which.py": "def run():\n    \"\"\"Which\"\"\"\n    return 'python'\n",
	}})
	u.do("go", `^It was .*bash`)
}

// TestDepth: agents start others only down to the depth that their definitions allow.
func TestDepth(t *testing.T) {
	t.Parallel()
	rules := `rules:
  - {match: {system: in the middle, turn: 1}, tool_calls: [{name: agent__spawn, arguments: {agent: middle, prompt: go on}}]}
  - {match: {system: in the middle}, reply: 'The middle got {{tool_result}}'}
  - {match: {text: go, turn: 1}, tool_calls: [{name: agent__spawn, arguments: {agent: middle, prompt: go on}}]}
  - {match: {text: go, result_regex: '"id":"(agent_middle_[0-9a-f]{8})', turn: 2}, tool_calls: [{name: agent__collect, arguments: {id: $1}}]}
  - {match: {text: go, turn: 3}, reply: 'Collected {{tool_result}}'}
` + answers
	u := begin(t, setup{rules: rules, config: tools, rows: 100, columns: 120, files: map[string]string{
		"config/agents/top/config.yaml":    "name: top\ninstructions: You lead.\ncan_spawn_agents: true\nmax_agent_depth: 1\n",
		"config/agents/middle/config.yaml": "name: middle\ninstructions: You are in the middle.\ncan_spawn_agents: true\nmax_agent_depth: 1\n",
	}})
	u.do(".agent top")
	u.do("go", `(?s)Collected.*at depth 2, and at most 1 is\s+allowed`)
}

// TestMessages: an agent gets the message of one that was started beside it.
func TestMessages(t *testing.T) {
	t.Parallel()
	const id = `(agent_child_[0-9a-f]{8})`
	rules := `rules:
  - {match: {system: You are a child, text: listen, turn: 1}, tool_calls: [{name: wait_for_it}]}
  - {match: {system: You are a child, text: listen, turn: 2}, tool_calls: [{name: agent__check_inbox}]}
  - {match: {system: You are a child, text: listen, turn: 3}, reply: 'The inbox: {{tool_result}}'}
  - {match: {system: You are a child, regex: 'tell (\S+)', turn: 1}, tool_calls: [{name: agent__send_message, arguments: {id: $1, message: from your sister}}]}
  - {match: {system: You are a child, text: tell, turn: 2}, tool_calls: [{name: say_told}]}
  - {match: {system: You are a child, text: tell, turn: 3}, reply: It was sent.}
  - {match: {text: talk, turn: 1}, tool_calls: [{name: agent__spawn, arguments: {agent: child, prompt: listen}}]}
  - {match: {text: talk, result_regex: '"id":"` + id + `', turn: 2}, tool_calls: [{name: agent__spawn, arguments: {agent: child, prompt: tell $1}}]}
  - {match: {text: talk, turn: 3}, tool_calls: [{name: agent__list}]}
  - {match: {text: talk, result_regex: '"agents":\[\{"id":"` + id + `', turn: 4}, tool_calls: [{name: agent__collect, arguments: {id: $1}}]}
  - {match: {text: talk, turn: 5}, reply: 'Collected {{tool_result}}'}
` + answers
	u := begin(t, setup{rules: rules, config: tools, rows: 100, columns: 120, files: map[string]string{
		"config/agents/boss/config.yaml":  "name: boss\ninstructions: You lead.\ncan_spawn_agents: true\n",
		"config/agents/child/config.yaml": "name: child\ninstructions: You are a child.\n",
		"config/agents/child/tools.sh": `# @cmd Wait for the message
wait_for_it() { until [ -e "$HOME/told" ]; do sleep 0.05; done; }
# @cmd Say that it was sent
say_told() { touch "$HOME/told"; }
eval "$(argc --argc-eval "$0" "$@")"
`,
	}})
	u.do(".agent boss")
	u.do("talk", `(?s)Collected.*from\s+your\s+sister`)
}

// TestChildren: an agent starts others, looks after them, and answers them.
func TestChildren(t *testing.T) {
	t.Parallel()
	const id = `'"id":"(agent_child_[0-9a-f]{8})'`
	spawn := `[{name: agent__spawn, arguments: {agent: child, prompt: say hello}}]`
	rules := `rules:
  - {match: {system: You are a child, text: ask, turn: 1}, tool_calls: [{name: user__ask, arguments: {question: "Which color?", options: [red, blue]}}]}
  - {match: {system: You are a child, text: ask, turn: 2}, reply: 'The color: {{tool_result}}'}
  - {match: {system: You are a child, text: slow}, reply: late, delay: 10m}
  - {match: {system: You are a child}, reply: 'child says {{text}}'}
  - {match: {text: collect, turn: 1}, tool_calls: ` + spawn + `}
  - {match: {text: collect, result_regex: ` + id + `, turn: 2}, tool_calls: [{name: agent__collect, arguments: {id: $1}}]}
  - {match: {text: collect, turn: 3}, reply: 'Collected {{tool_result}}'}
  - {match: {text: cancel, turn: 1}, tool_calls: [{name: agent__spawn, arguments: {agent: child, prompt: be slow}}]}
  - {match: {text: cancel, result_regex: ` + id + `, turn: 2}, tool_calls: [{name: agent__check, arguments: {id: $1}}, {name: agent__list}, {name: agent__spawn, arguments: {agent: child, prompt: too many}}, {name: agent__cancel, arguments: {id: $1}}]}
  - {match: {text: cancel, turn: 3}, reply: 'Seen {{tool_result}}'}
  - {match: {text: color, turn: 1}, tool_calls: [{name: agent__spawn, arguments: {agent: child, prompt: ask for it}}]}
  - {match: {text: color, result_regex: ` + id + `, turn: 2}, tool_calls: [{name: agent__collect, arguments: {id: $1}}]}
  - {match: {text: color, result_regex: '"escalation_id":"([^"]+)"', turn: 3}, tool_calls: [{name: agent__reply_escalation, arguments: {escalation_id: $1, reply: blue}}]}
  - {match: {text: color, turn: 4}, reply: 'Replied {{tool_result}}'}
` + answers
	u := begin(t, setup{rules: rules, files: helpers, config: tools, rows: 100, columns: 120})
	u.do(".agent boss")
	u.do("collect", `(?s)Collected.*says say hello`)
	out := u.do("cancel")
	for _, want := range []string{"pending", "agent_child_", "at most 1", "stopped"} {
		if !strings.Contains(strings.ToLower(strings.ReplaceAll(out, "\n", "")), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	u.do("color", `Replied`)
}
