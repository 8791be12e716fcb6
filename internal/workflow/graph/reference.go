package graph

import (
	"fmt"
	"slices"
	"strings"

	"loki/internal/base/process/sandbox"
	"loki/internal/llm/catalog"
	"loki/internal/llm/hook"
	"loki/internal/workflow/graph/gate"
)

// topFields are the fields of a definition, in the order of [Reference].
var topFields = []string{
	"name", "start", "nodes", "description", "version", "model", "default_model", "temperature", "top_p", "reasoning_effort", "global_tools", "mcp_servers",
	"conversation_starters", "variables", "state", "strict_state", "initial_state", "reducers", "environment", "sandbox", "hooks", "schedules", "priority", "concurrency_key",
	"concurrency_limit", "overlap", "throttle", "debounce", "settings",
}

// settingFields are the fields of settings.
var settingFields = []string{
	"max_loop_iterations", "max_concurrency", "timeout", "on_failure", "budget", "durability", "scheduling", "validate_before_run", "log_state_snapshots",
}

// innerSettings are those of subgraphs.
var innerSettings = settingFields[:5]

// commonFields are the fields that nodes of all types have.
var commonFields = []string{"type", "next", "pick", "join", "defer", "description", "id"}

// field says what a field of a definition holds.
type field struct {
	holds   shape  // its value
	unset   any    // what holds without the field; nil for nothing
	meaning string // in a few words
}

// fields are the fields by name. One with the name of a layout in front of it, "map.over" or "settings.timeout", is about that
// layout only; see [layouts].
var fields = map[string]field{
	"name":                  {`{"type":["string","number","boolean"],"minLength":1}`, nil, "text"},
	"start":                 {aText, nil, "id of the first node"},
	"nodes":                 {`{"type":"object","minProperties":1,"propertyNames":{"minLength":1},"additionalProperties":{"$ref":"#/$defs/node"}}`, nil, "mapping of id to node"},
	"description":           {aText, nil, "text for people: say in one line what it does"},
	"version":               {`{"enum":["1.0",1.0]}`, nil, `"1.0"; may be left out`},
	"model":                 {aText, nil, "model id; without it the user's"},
	"default_model":         {aText, nil, "model id, used if the user has none"},
	"temperature":           {aNumber, nil, "number"},
	"top_p":                 {aNumber, nil, "number"},
	"reasoning_effort":      {oneOf(catalog.Levels()...), nil, "none, minimal, low, medium, high, xhigh or max"},
	"global_tools":          {listOf(aText), nil, "list of tools that llm nodes may list"},
	"mcp_servers":           {listOf(aText), nil, "list of MCP servers that llm nodes may list as mcp:ID"},
	"conversation_starters": {listOf(aText), nil, "list of texts, examples of prompts"},
	"variables":             {listOf(ref("variable")), nil, "list of {name, description, default}: set by the user, seen by scripts only, as LLM_AGENT_VAR_NAME"},
	"state":                 {`{"type":"object","propertyNames":{"not":{"enum":["` + LastErrorKey + `","` + LoopKey + `"]}},"additionalProperties":{"$ref":"#/$defs/key"}}`, nil, "mapping of state key to the JSON Schema of its values, beside which it may have default, reducer, and secret: true for what must not be shown"},
	"strict_state":          {aBool, false, "boolean: only the keys of state may be written"},
	"initial_state":         {aMapping, nil, "mapping of state key to value"},
	"reducers":              {mapOf(oneOf(ReducerNames[:]...)), nil, "mapping of state key to append, extend, concat, sum, max, min, merge or overwrite: how writes of parallel nodes are combined"},
	"environment":           {`{"type":"array","items":{"type":["string","number","boolean"],"minLength":1,"pattern":"^[^=*]*$"}}`, nil, "list of variables with secrets that scripts get"},
	"sandbox":               {ref("sandbox"), nil, "read, write, network (then {level: network, hosts: [HOST]}) or full"},
	"worktree":              {worktreeShape, nil, "true, or a mapping: the agent works in a copy of the repository, with a branch of its own"},
	"hooks":                 {ref("hooks"), nil, "commands before and after calls of tools and models"},
	"schedules":             {`{}`, nil, "mapping of name to {cron, timezone, prompt}: times at which the agent runs by itself, once the user has switched it on"},
	"priority":              {oneOf(gate.High, gate.Normal, gate.Low), gate.Normal, "high, normal or low: whose calls and runs come first"},
	"concurrency_key":       {aText, nil, "template: runs with the same key share the limits below"},
	"concurrency_limit":     {`{"type":"integer","minimum":1,"maximum":100}`, nil, "how many of these runs work at the same time, 1 if there is a key"},
	"overlap":               {oneOf(gate.Queue, gate.Skip, gate.Cancel, gate.Allow), gate.Queue, "queue, skip, cancel or allow: what happens if so many are at work"},
	"throttle":              {shape(`{"type":"string","pattern":"^[0-9]+/` + spanPattern[1:] + `"}`), nil, "at most so many starts in a time, such as 10/1m; others wait"},
	"debounce":              {aSpan, nil, "a run waits for this span, and a newer one replaces it"},
	"settings":              {ref("settings"), nil, "mapping of settings of the run"},

	"settings.max_loop_iterations":       {aCount, DefaultMaxLoopIterations, "visits of each node"},
	"settings.max_concurrency":           {aCount, DefaultMaxConcurrency, "nodes at once"},
	"settings.timeout":                   {aSeconds, nil, "seconds of the run"},
	"settings.on_failure":                {oneOf(FailContinue, FailStop), FailContinue, "continue or fail: whether the run continues with next, or fails, when an llm or script node without fallback fails"},
	"settings.budget":                    {ref("budget"), nil, "{usd, tokens, seconds}"},
	"inner-settings.max_loop_iterations": {aCount, DefaultMaxLoopIterations, "visits of each node"},
	"inner-settings.max_concurrency":     {aCount, DefaultMaxConcurrency, "nodes at once"},
	"inner-settings.timeout":             {aSeconds, nil, "seconds of the subgraph"},
	"inner-settings.on_failure":          {oneOf(FailContinue, FailStop), FailContinue, "continue or fail"},
	"inner-settings.budget":              {ref("budget"), nil, "{usd, tokens, seconds}, within that of the run"},
	"settings.scheduling":                {oneOf(ScheduleSteps, ScheduleDataflow), ScheduleSteps, "steps, or dataflow: nodes may begin before their super-step where that changes nothing but the time"},

	"settings.durability":          {oneOf(DurabilityProcess, DurabilityPower, DurabilityOff), DurabilityProcess, "process, power or off: what the record of the run survives"},
	"settings.validate_before_run": {aBool, true, "boolean"},
	"settings.log_state_snapshots": {aBool, true, "boolean"},

	"type":            {oneOf(Types[:]...), nil, "what the node does"},
	"next":            {ref("exit"), nil, "id, list of ids that then run in parallel, or edges"},
	"pick":            {oneOf(pickFirst, pickAll), pickFirst, "first, or all: take every edge that holds"},
	"join":            {anyOf(oneOf("any", "all"), `{"type":"integer","minimum":1,"maximum":1000000}`), nil, "all: wait until no active node can still reach this one; any: run once the first branch gets here, and cancel the others; a number: the same once so many have; without it the node runs each time a branch gets here"},
	"defer":           {aBool, false, "boolean: run when nothing else is left to run, before the end nodes that were reached, such as for cleaning up; then next may be left out"},
	"id":              {aText, nil, "the key again; may be left out"},
	"prompt":          {aString, nil, "template"},
	"instructions":    {aString, nil, "template, the system message"},
	"question":        {aString, nil, "template"},
	"query":           {aString, "{{" + PromptKey + "}}", "template"},
	"agent":           {aString, nil, "name of an agent"},
	"script":          {aString, nil, "path in the directory of the agent, ending in .sh, .py or .ts"},
	"options":         {listOf(aString), nil, "list of texts"},
	"routes":          {mapOf(ref("exit")), nil, "mapping of each option to a node id or edges"},
	"on_other":        {ref("exit"), nil, "node id or edges for any other answer"},
	"default":         {aString, nil, "template, the answer when the timeout is over"},
	"input.default":   {aString, nil, "template, for an empty answer"},
	"validation":      {aString, nil, "len(input) with >=, <=, ==, > or < and a number"},
	"assignees":       {listOf(aString), nil, "list of subjects of a server"},
	"assignee":        {aString, nil, "subject or group of a server that may answer"},
	"expires":         {aText, nil, "template, a span such as 36h, or a time: until when the question can be answered"},
	"tool":            {`{"type":"string","if":{"pattern":"^mcp:"},"then":{"pattern":"^mcp:[^/]+/."}}`, nil, "a tool of global_tools, or mcp:SERVER/TOOL"},
	"arguments":       {aMapping, nil, "mapping of the arguments of the call; texts in it are templates"},
	"for":             {aSpan, nil, "time to wait, in seconds or as 10m; a wait has one of for, until and signal"},
	"until":           {aString, nil, "template, a time such as 2026-12-24T18:00:00Z"},
	"signal":          {`{"type":"string","minLength":1}`, nil, "name of a signal from outside to wait for"},
	"schema":          {ref("schema"), nil, "JSON Schema of the signal"},
	"wait.default":    {`{"not":{"type":"null"}}`, nil, "any JSON, the signal when the timeout is over; texts in it are templates"},
	"llm.model":       {aString, nil, "model id; without it that of the graph, or the user's"},
	"documents":       {listOf(aString), nil, "list of files, directories, patterns and addresses"},
	"tools":           {listOf(aString), nil, "list of tools of global_tools, and mcp:ID"},
	"skills":          {`{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]}`, nil, "skills that the model is offered: all, none, or names and patterns; without it none, or for an agent its own"},
	"memory":          {`{"enum":["off","read","propose",true,false]}`, "off", "what the model may do with what is remembered of earlier conversations"},
	"max_attempts":    {aCount, DefaultMaxAttempts, "tries at once"},
	"max_iterations":  {aCount, DefaultMaxIterations, "turns with tools"},
	"output_schema":   {ref("schema"), nil, "JSON Schema of the answer, whose members go into the state"},
	"state_updates":   {mapOf(aString), nil, "mapping of state key to template"},
	"timeout":         {aSeconds, nil, "seconds"},
	"agent.timeout":   {aSeconds, DefaultAgentTimeout, "seconds"},
	"script.timeout":  {aSeconds, DefaultScriptTimeout, "seconds"},
	"rag.timeout":     {aSeconds, DefaultRAGTimeout, "seconds"},
	"fallback":        {ref("exit"), nil, "node id or edges if it fails"},
	"compensate":      {aString, nil, "id of a script, tool, agent, llm or map node without next, which undoes this node's effect if the run fails or is canceled later: it sees {{_compensates.writes}}, what this node wrote, and {{_last_error.message}}"},
	"retry":           {ref("retry"), nil, "{attempts, backoff, factor, max_backoff, jitter}, seconds"},
	"cache":           {ref("cache"), nil, "{ttl, key}: seconds, template"},
	"on_uncertain":    {oneOf(UncertainRetry, UncertainSkip, UncertainAsk), nil, "retry, skip or ask, after an interruption"},
	"top_k":           {aCount, nil, "passages at most"},
	"embedding_model": {aString, nil, "model id; builtin:hash needs no network"},
	"reranker_model":  {aString, nil, "model id"},
	"chunk_size":      {aCount, nil, "characters"},
	"chunk_overlap":   {aCount, nil, "characters"},
	"batch_size":      {aCount, nil, "whole number"},
	"over":            {aString, nil, "a template that is one placeholder of a list or object, such as \"{{items}}\""},
	"as":              {aString, nil, "state key of the element"},
	"branch":          {aString, nil, "id of a script, llm, agent, rag, tool, graph, approval or input node, without next"},
	"collect_into":    {aString, nil, "state key of the list of results"},
	"output_key":      {aString, DefaultOutputKey, "key under which the branch delivers"},
	"max_concurrency": {aCount, nil, "branches at once; the same as concurrency"},
	"concurrency":     {aCount, nil, "branches at once"},
	"batch":           {`{"type":"integer","minimum":1}`, nil, "number: the branch gets lists of up to so many items"},
	"on_error":        {oneOf(ItemsFail, ItemsSkip, ItemsCollect), ItemsFail, "fail, skip or collect: what a failed item does"},
	"min_success":     {`{"type":["integer","string"],"minimum":1,"pattern":"^[0-9]+$|^[0-9.]+%$"}`, nil, "number or percentage of items that have to succeed, with on_error"},
	"item_if":         {aString, nil, "expression over the item: whether it is run"},
	"enough":          {aString, nil, "expression over results, the list of results so far: ends the map early"},
	"output":          {aString, nil, "template, the result of the run"},
	"file":            {`{"type":"string","minLength":1}`, nil, "path in the directory of the agent of a definition like this one, of which start and nodes are required; or write start and nodes in the node"},
	"with":            {aMapping, nil, "mapping of the keys that its state begins with; texts in it are templates. It sees nothing else of the state, not even initial_prompt"},
	"outputs":         {mapOf(aString), nil, "mapping of state key to the path of a value in its last state, such as report.title"},
	"graph.model":     {aText, nil, "model id of its llm nodes that name none"},
	"graph.start":     {aText, nil, "id of its first node"},
	"graph.settings":  {ref("inner-settings"), nil, "mapping of settings of the subgraph: max_loop_iterations, max_concurrency, timeout, on_failure, budget"},

	"usd":      {above0, nil, "US dollars for models"},
	"tokens":   {`{"type":"integer","minimum":1}`, nil, "tokens, of input and output together"},
	"duration": {`{"type":["number","string"],"exclusiveMinimum":0,"maximum":1000000000,"pattern":"` + spanPattern + `"}`, nil, "time of the run, in seconds or as 10m"},
	"seconds":  {`{"type":"integer","minimum":1,"maximum":9223372036}`, nil, "seconds of the run"},

	"variable.name":    {aText, nil, "text"},
	"variable.default": {aText, nil, "its value if the user gives none; without it, it must be given"},

	"attempts":    {`{"type":"integer","minimum":1}`, DefaultRetryAttempts, "tries, the first one included"},
	"backoff":     {aTime, DefaultRetryBackoff, "seconds before the second try"},
	"factor":      {`{"type":"number","minimum":1}`, DefaultRetryFactor, "what each further wait is multiplied by"},
	"max_backoff": {aTime, DefaultRetryMaxBackoff, "seconds, the longest wait"},
	"jitter":      {`{"type":"number","minimum":0,"maximum":1}`, DefaultRetryJitter, "part of a wait that is random"},

	"ttl": {aSeconds, nil, "for how many seconds a result may be used again"},
	"key": {aString, nil, "template; results with the same text are the same; without it, all that the work depends on counts"},

	"to":            {aString, nil, "id of a node"},
	"when":          {aString, nil, "expression over the state, such as score >= 8; without it, the edge always holds"},
	"max":           {`{"type":"integer","minimum":1}`, nil, "how often a run may take the edge"},
	"on":            {aString, nil, "template of the value"},
	"choice.routes": {mapOf(ref("way")), nil, "mapping of each value to a node id or an edge"},
	"otherwise":     {ref("way"), nil, "node id or edge for any other value"},

	"level": {oneOf(sandbox.Levels()...), nil, "what the program may do; each level has all that the one before it has"},
	"hosts": {`{"type":"array","items":{"type":["string","number","boolean"],"minLength":1,"not":{"type":"string","pattern":"://"}}}`, nil, "what it reaches at the level network: example.com, *.example.com"},
	"read":  {places, nil, "what it reads besides: absolute paths, such with ~/, or below the workspace"},
	"write": {places, nil, "where it writes besides"},

	"before_tool":     {listOf(ref("hook")), nil, "before a call of a tool, which it may refuse or change"},
	"after_tool":      {listOf(ref("hook")), nil, "after a call of a tool"},
	"before_model":    {listOf(ref("hook")), nil, "before a call of a model, which it may refuse or change"},
	"after_model":     {listOf(ref("hook")), nil, "after a call of a model"},
	"command":         {anyOf(`{"type":"string","pattern":"\\S"}`, `{"type":"array","minItems":1,"prefixItems":[{"type":["string","number","boolean"],"minLength":1}],"items":`+aText+`}`), nil, "text for the shell, or a list of a program and its arguments"},
	"match":           {`{"type":"string","minLength":1}`, nil, "name of a tool or model, with * for any text"},
	"hook.name":       {`{"type":"string","minLength":1}`, nil, "name in messages"},
	"hook.timeout":    {`{"type":["number","string"],"exclusiveMinimum":0,"maximum":300,"pattern":"` + spanPattern + `"}`, hook.DefaultTimeout, "seconds, or as 10s"},
	"hook.on_failure": {oneOf(hook.Continue, hook.Refuse), nil, "continue or refuse: what to do with the call when the hook fails"},
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
	GraphNode:    "runs nodes of its own, on a state of their own, to one of their end nodes, whose output is {{output}} in its state_updates; it can be the branch of a map",
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
	writeFields(&b, "settings", settingFields, nil)
	b.WriteString("\nEach node:\n")
	writeFields(&b, "", commonFields, []string{"type"})
	for _, t := range Types {
		fmt.Fprintf(&b, "\ntype %s: %s\n", t, purposes[t])
		writeFields(&b, string(t), requiredFields[t], requiredFields[t])
		writeFields(&b, string(t), optionalFields[t], nil)
	}
	return b.String()
}

func writeFields(b *strings.Builder, section string, names, required []string) {
	for _, name := range names {
		f := fieldOf(section, name)
		mark, without := "", ""
		if slices.Contains(required, name) {
			mark = " (required)"
		}
		if f.unset != nil {
			without = fmt.Sprintf(" (default %v)", f.unsetValue())
		}
		fmt.Fprintf(b, "  %s%s: %s%s\n", name, mark, f.meaning, without)
	}
}

// fieldOf returns the field of a layout.
func fieldOf(layout, name string) field {
	if f, ok := fields[layout+"."+name]; ok {
		return f
	}
	return fields[name]
}
