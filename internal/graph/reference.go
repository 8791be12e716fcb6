package graph

import (
	"fmt"
	"strings"
)

// topFields are the fields of a definition, in the order of [Reference].
var topFields = []string{
	"name", "start", "nodes", "description", "version", "model", "default_model", "temperature", "top_p", "reasoning_effort", "global_tools", "mcp_servers",
	"conversation_starters", "variables", "initial_state", "reducers", "environment", "sandbox", "hooks", "settings",
}

// settingFields are the fields of settings.
var settingFields = []string{
	"max_loop_iterations", "max_concurrency", "timeout", "on_failure", "budget", "durability", "validate_before_run", "log_state_snapshots",
}

// commonFields are the fields that nodes of all types have.
var commonFields = []string{"type", "next", "pick", "join", "description", "id"}

// meanings say in a few words what a field holds. A key with a type in front of it, "map.over", is about nodes of that type,
// and "settings.timeout" about settings.
var meanings = map[string]string{
	"name":                  "text",
	"start":                 "id of the first node",
	"nodes":                 "mapping of id to node",
	"description":           "text for people: say in one line what it does",
	"version":               `"1.0"; may be left out`,
	"model":                 "model id; without it the user's",
	"default_model":         "model id, used if the user has none",
	"temperature":           "number",
	"top_p":                 "number",
	"reasoning_effort":      "none, minimal, low, medium, high, xhigh or max",
	"global_tools":          "list of tools that llm nodes may list",
	"mcp_servers":           "list of MCP servers that llm nodes may list as mcp:ID",
	"conversation_starters": "list of texts, examples of prompts",
	"variables":             "list of {name, description, default}: set by the user, seen by scripts only, as LLM_AGENT_VAR_NAME",
	"initial_state":         "mapping of state key to value",
	"reducers":              "mapping of state key to append, extend, concat, sum, max, min, merge or overwrite: how writes of parallel nodes are combined",
	"environment":           "list of variables with secrets that scripts get",
	"sandbox":               "read, write, network (then {level: network, hosts: [HOST]}) or full",
	"hooks":                 "commands around calls",
	"settings":              "mapping, see below",

	"settings.max_loop_iterations": "visits of each node, 100",
	"settings.max_concurrency":     "nodes at once, 8",
	"settings.timeout":             "seconds of the run",
	"settings.on_failure":          "continue or fail: what a failing llm or script node without fallback does",
	"settings.budget":              "{usd, tokens, seconds}",
	"settings.durability":          "process, power or off",
	"settings.validate_before_run": "boolean",
	"settings.log_state_snapshots": "boolean",

	"type":            "see below",
	"next":            "id, list of ids that then run in parallel, or edges, see above",
	"pick":            "first, or all: take every edge that holds",
	"join":            "any, or all: wait until no active node can still reach this one",
	"id":              "the key again; may be left out",
	"prompt":          "template",
	"instructions":    "template, the system message",
	"question":        "template",
	"query":           "template, {{initial_prompt}} without it",
	"agent":           "name of an agent",
	"script":          "path in the directory of the agent, ending in .sh, .py or .ts",
	"options":         "list of texts",
	"routes":          "mapping of each option to a node id or edges",
	"on_other":        "node id or edges for any other answer",
	"default":         "template, the answer when the timeout is over",
	"input.default":   "template, for an empty answer",
	"validation":      "len(input) with >=, <=, ==, > or < and a number",
	"assignees":       "list of subjects of a server",
	"assignee":        "subject or group of a server that may answer",
	"expires":         "template, a span such as 36h, or a time: until when the question can be answered",
	"tool":            "a tool of global_tools, or mcp:SERVER/TOOL",
	"arguments":       "mapping of the arguments of the call; texts in it are templates",
	"for":             "time to wait, in seconds or as 10m; a wait has one of for, until and signal",
	"until":           "template, a time such as 2026-12-24T18:00:00Z",
	"signal":          "name of a signal from outside to wait for",
	"schema":          "JSON Schema of the signal",
	"wait.default":    "any JSON, the signal when the timeout is over; texts in it are templates",
	"documents":       "list of files, directories, patterns and addresses",
	"tools":           "list of tools of global_tools, and mcp:ID",
	"max_attempts":    "tries at once, 1",
	"max_iterations":  "turns with tools, 10",
	"output_schema":   "JSON Schema of the answer, whose members go into the state",
	"state_updates":   "mapping of state key to template",
	"timeout":         "seconds",
	"fallback":        "node id or edges if it fails",
	"retry":           "{attempts, backoff, factor, max_backoff, jitter}, seconds",
	"cache":           "{ttl, key}: seconds, template",
	"on_uncertain":    "retry, skip or ask, after an interruption",
	"top_k":           "passages at most",
	"embedding_model": "model id; builtin:hash needs no network",
	"reranker_model":  "model id",
	"chunk_size":      "characters",
	"chunk_overlap":   "characters",
	"batch_size":      "whole number",
	"over":            "a template that is one placeholder of a list or object, such as \"{{items}}\"",
	"as":              "state key of the element",
	"branch":          "id of a script, llm, agent, rag, tool, approval or input node, without next",
	"collect_into":    "state key of the list of results",
	"output_key":      "key under which the branch delivers, output",
	"max_concurrency": "branches at once; the same as concurrency",
	"concurrency":     "branches at once",
	"batch":           "number: the branch gets lists of up to so many items",
	"on_error":        "fail, skip or collect: what a failed item does",
	"min_success":     "number or percentage of items that have to succeed, with on_error",
	"item_if":         "expression over the item: whether it is run",
	"enough":          "expression over results, the list of results so far: ends the map early",
	"output":          "template, the result of the run",
}

// purposes say what nodes of a type do.
var purposes = map[Type]string{
	LLMNode:      "asks a model; {{output}} in its state_updates is the answer",
	ScriptNode:   "runs a program that gets the state as JSON in GRAPH_STATE, or in the file GRAPH_STATE_FILE if it is large, and prints one JSON object, whose members go into the state; the member _next names the node to go to instead of next",
	ApprovalNode: "asks the user to choose, and goes where the answer leads; it has no next; {{choice}} in its state_updates is the answer",
	InputNode:    "asks the user for a text; {{input}} in its state_updates is the answer",
	MapNode:      "runs the node branch for each element of a list or member of an object; the branch is not in any next",
	ToolNode:     "calls a tool, without a model; {{output}} in its state_updates is the result",
	WaitNode:     "puts the run aside for a time, until a time, or until a signal comes; {{signal}} in its state_updates is the signal's value",
	EndNode:      "ends the run",
	AgentNode:    "has another agent work; {{output}} in its state_updates is the answer",
	RAGNode:      "finds passages; {{output.context}} in its state_updates is their text",
}

// rules are what a writer has to know besides the fields.
const rules = `The nodes work on one state, a table of keys and JSON values. initial_prompt in it is what the user says when the graph is run.

Templates are texts with placeholders: {{key}}, {{key.member}}, {{key[0]}}, without blanks. A key that is not in the state is an error in prompt,
instructions, query and question, and empty elsewhere. In state_updates and over, a template that is one placeholder keeps the type of the value.

next can be a list of edges, the first of which that holds is taken: [{when: "score >= 8", to: publish}, {to: draft, max: 3}, {to: give_up}].
when is an expression over the state, without braces: == != < <= > >= in contains matches && || ! ?? ?: + - * / % len() count() any() all().
Or it goes by a value: {on: "{{kind}}", routes: {bug: fix, idea: plan}, otherwise: triage}. Edges may form a cycle only if each way round
passes an edge with max, which bounds how often a run takes it. {{_loop.NODE}} is how often a node was visited.

Nodes that a list in next starts together must not write the same key, unless it has a reducer, nor read what another of them writes; a script among them has state_updates, {} if it shares nothing. At
least one node is of the type end.

`

// Reference describes the format of a definition for a model that writes one: its rules and, a line each, the fields of the
// top level, the settings and each type of node. What the parser does not read is not in it.
func Reference() string {
	var b strings.Builder
	b.WriteString(rules + "Top level:\n")
	writeFields(&b, "", topFields, topRequired)
	b.WriteString("\nsettings:\n")
	writeFields(&b, "settings.", settingFields, nil)
	b.WriteString("\nEach node:\n")
	writeFields(&b, "", commonFields, []string{"type"})
	for _, t := range Types {
		fmt.Fprintf(&b, "\ntype %s: %s\n", t, purposes[t])
		writeFields(&b, string(t)+".", requiredFields[t], requiredFields[t])
		writeFields(&b, string(t)+".", optionalFields[t], nil)
	}
	return b.String()
}

func writeFields(b *strings.Builder, prefix string, fields, required []string) {
	for _, name := range fields {
		meaning, ok := meanings[prefix+name]
		if !ok {
			meaning = meanings[name]
		}
		mark := ""
		for _, r := range required {
			if r == name {
				mark = " (required)"
			}
		}
		fmt.Fprintf(b, "  %s%s: %s\n", name, mark, meaning)
	}
}
