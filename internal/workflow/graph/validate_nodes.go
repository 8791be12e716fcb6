package graph

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/value"
)

// scriptExtensions are the extensions a script can have, in lower case; the case of
// a file's extension does not matter.
var scriptExtensions = [...]string{".sh", ".py", ".ts"}

// ScriptExtension returns the extension of a script's file name in lower case, ""
// if there is none. A name that is nothing but a dot and letters has none.
func ScriptExtension(path string) string {
	name := filepath.Base(filepath.FromSlash(path))
	if strings.LastIndexByte(name, '.') <= 0 {
		return ""
	}
	return strings.ToLower(filepath.Ext(name))
}

// scripts reports a script that does not exist or that nothing can run.
func (v *validator) scripts(n *Node) {
	if n.Script == nil {
		return
	}
	script := n.Script.Script
	if script == "" {
		v.err(RuleMissingScript, n, "script", "", "script names no file")
		return
	}
	path := n.Script.Path(v.env.Dir)
	if v.env.Dir != "" && !v.fileExists(path) {
		v.err(RuleMissingScript, n, "script", "paths are relative to the agent's directory", "script file %s does not exist", path)
	}
	if ext := ScriptExtension(script); !slices.Contains(scriptExtensions[:], ext) {
		what := "extension " + ext
		if ext == "" {
			what = "no extension"
		}
		v.err(RuleScriptExtension, n, "script", "scripts are "+strings.Join(scriptExtensions[:], ", ")+"; the first line does not matter",
			"script %q has %s, so it cannot be run", script, what)
	}
}

func (v *validator) fileExists(path string) bool {
	if v.env.FileExists != nil {
		return v.env.FileExists(path)
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// agents reports agents that cannot be started.
func (v *validator) agents() {
	if v.env.Agent == nil {
		return
	}
	for _, n := range v.g.Nodes {
		if n.Agent == nil {
			continue
		}
		name := n.Agent.Agent
		known, defined := false, false
		if name != "" {
			known, defined = v.env.Agent(name)
		}
		switch {
		case !known:
			v.err(RuleUnknownAgent, n, "agent", "all agents: loki --list agents", "agent %q does not exist", name)
		case !defined:
			v.err(RuleUndefinedAgent, n, "agent", "", "agent %q has neither a config.yaml nor a graph.yaml", name)
		}
	}
}

// approvals compares the options and routes of an approval.
func (v *validator) approvals(n *Node) {
	if n.Approval == nil {
		return
	}
	if len(v.branchOf[n.ID]) > 0 {
		return // see branchRoutes
	}
	answers := make([]string, len(n.Approval.Routes))
	for i, r := range n.Approval.Routes {
		answers[i] = r.Answer
	}
	for i, option := range n.Approval.Options {
		if !slices.Contains(answers, option) {
			v.err(RuleMissingRoute, n, fmt.Sprintf("options[%d]", i), didYouMean(option, answers), "option %q has no entry in routes", option)
		}
	}
	for _, answer := range answers {
		if !slices.Contains(n.Approval.Options, answer) {
			v.warn(RuleUnusedRoute, n, "routes."+answer, didYouMean(answer, n.Approval.Options), "route %q is not among the options", answer)
		}
	}
}

// rags reports a rag node without a source or without a use.
func (v *validator) rags(n *Node) {
	if n.RAG == nil {
		return
	}
	if len(n.RAG.Documents) == 0 {
		v.err(RuleNoDocuments, n, "documents", "name at least one file, directory or URL", "documents is empty, so there is nothing to search")
	}
	if !n.HasUpdates && len(v.branchOf[n.ID]) == 0 {
		v.warn(RuleUnusedResult, n, "", `store it: state_updates: {context: "{{output.context}}"}`, "there are no state_updates, so what is found is lost")
	}
}

// llms checks tools and models against what the agent has.
func (v *validator) llms() {
	if v.env.Context == nil {
		return
	}
	v.model(nil, "model", v.g.Model)
	v.model(nil, "default_model", v.g.DefaultModel)
	for _, n := range v.g.Nodes {
		if n.LLM == nil {
			continue
		}
		for i, tool := range n.LLM.Tools {
			v.tool(n, fmt.Sprintf("tools[%d]", i), tool)
		}
		v.model(n, "model", n.LLM.Model)
	}
}

func (v *validator) tool(n *Node, path, tool string) {
	agent := v.env.Context
	if server, ok := strings.CutPrefix(tool, "mcp:"); ok {
		optional := strings.HasSuffix(server, "?") // it may be missing
		if !optional && !slices.Contains(agent.Servers, server) && !slices.Contains(agent.Servers, server+"?") {
			v.err(RuleUnknownMCPServer, n, path, available(server, agent.Servers, "list it in mcp_servers"),
				"tool %q: the agent has no MCP server %q", tool, server)
		}
		return
	}
	has := agent.HasFunction
	if has == nil {
		has = func(name string) bool { return agent.Functions == nil || slices.Contains(agent.Functions, name) }
	}
	if !has(tool) {
		v.err(RuleUnknownTool, n, path, available(tool, agent.Functions, "list it in global_tools, or write it in the agent's tools file"),
			"tool %q is not a function of the agent", tool)
	}
}

// available is a hint about a name that is not among the ones there are.
func available(name string, have []string, otherwise string) string {
	if hint := didYouMean(name, have); hint != "" {
		return hint
	}
	if len(have) == 0 {
		return "there are none; " + otherwise
	}
	return fmt.Sprintf("available: %s; or %s", strings.Join(slices.Sorted(slices.Values(have)), ", "), otherwise)
}

func (v *validator) model(n *Node, path, id string) {
	if id == "" || v.env.Context.Model == nil {
		return
	}
	if err := v.env.Context.Model(id); err != nil {
		v.err(RuleUnknownModel, n, path, ModelHint(err), "model %q cannot be used: %v", id, err)
	}
}

// concurrency reports limits under which nothing could run.
func (v *validator) concurrency() {
	if v.g.Settings.MaxConcurrency == 0 {
		v.err(RuleZeroConcurrency, nil, "settings.max_concurrency", "", "settings.max_concurrency is 0, so nothing could run")
	}
	for _, n := range v.g.Nodes {
		if n.Map != nil && n.Map.HasMaxConcurrency && n.Map.MaxConcurrency == 0 {
			v.err(RuleZeroConcurrency, n, "max_concurrency", "", "max_concurrency is 0, so no branch could run")
		}
	}
}

// mapBranches checks the contract of the nodes that maps run: they work alone, on
// one item, and deliver one key.
func (v *validator) mapBranches(n *Node) {
	if n.Map == nil {
		return
	}
	branch := v.g.Node(n.Map.Branch)
	if branch == nil {
		return // see references
	}
	switch branch.Type {
	case EndNode, MapNode, WaitNode:
		v.err(RuleMapBranch, n, "branch", "a branch is a script, llm, agent, rag, tool, graph, approval or input node", "branch %q is of type %s, which a map cannot run", branch.ID, branch.Type)
		return
	}
	if branch.Sub != nil {
		if wait, ok := branch.Sub.Graph.Find(func(n *Node) bool { return n.Wait != nil }); ok {
			v.err(RuleMapBranch, n, "branch", "move the wait out of what the map runs", "branch %q has a node that waits, %s, which a map cannot run", branch.ID, wait.Name)
		}
	}
	v.branchRoutes(n, branch)
	if branch.Fallback != "" && branch.Type != LLMNode {
		v.warn(RuleMapBranch, branch, "fallback", "remove it, and say with on_error of the map what a failed item does",
			"the fallback of a branch leads nowhere: an item of map %q that fails has failed", n.ID)
	}
	if branch.HasNext {
		v.err(RuleMapBranch, branch, "next", "remove next: the map continues when all branches are done",
			"the branch of map %q must not have next, it is run once for each item and for itself", n.ID)
	}
	lost := func(field, key string) {
		if key != n.Map.OutputKey {
			v.err(RuleMapBranch, branch, field+"."+key, fmt.Sprintf("write %s, or set output_key of the map", n.Map.OutputKey),
				"the branch of map %q delivers %q alone, what it writes to %q is lost", n.ID, n.Map.OutputKey, key)
		}
	}
	for _, u := range branch.Updates {
		lost("state_updates", u.Key)
	}
	for _, key := range subWrites(branch) {
		lost("outputs", key)
	}
	if properties := schemaProperties(branch); len(properties) > 0 {
		slices.Sort(properties)
		v.err(RuleMapBranch, branch, "output_schema", "drop properties from the schema, the branch then delivers the whole object",
			"the output_schema of the branch of map %q would write %s to the state, but a branch delivers %q alone", n.ID, strings.Join(properties, ", "), n.Map.OutputKey)
	}
}

// schemaProperties returns the top-level properties of a node's output_schema in
// document order.
func schemaProperties(n *Node) []string {
	var names []string
	for name := range properties(n).All() {
		names = append(names, name)
	}
	return names
}

// properties returns the properties of a node's output_schema, nil for none.
func properties(n *Node) *value.Object {
	schema := outputSchema(n)
	if schema == nil {
		return nil
	}
	o, _ := schema.AsObject().Get("properties")
	return o.AsObject()
}

func outputSchema(n *Node) *value.Value {
	switch {
	case n.LLM != nil:
		return n.LLM.OutputSchema
	case n.Agent != nil:
		return n.Agent.OutputSchema
	case n.Tool != nil:
		return n.Tool.OutputSchema
	}
	return nil
}

// predicates reports a validation that cannot be read.
func (v *validator) predicates(n *Node) {
	if n.Input == nil || n.Input.Validation == "" {
		return
	}
	if _, err := ParsePredicate(n.Input.Validation); err != nil {
		v.err(RulePredicate, n, "validation", "", "validation: %v", err)
	}
}

// limits reports limits that nothing can keep.
func (v *validator) limits() {
	if v.g.Settings.MaxLoopIterations == 0 {
		v.err(RuleZeroLimit, nil, "settings.max_loop_iterations", "", "settings.max_loop_iterations is 0, so no node may run")
	}
	for _, n := range v.g.Nodes {
		if n.LLM == nil {
			continue
		}
		if n.LLM.MaxAttempts == 0 {
			v.warn(RuleZeroLimit, n, "max_attempts", "", "max_attempts is 0, so the node always fails")
		}
		if n.LLM.MaxIterations == 0 {
			v.warn(RuleZeroLimit, n, "max_iterations", "", "max_iterations is 0, so the node always fails")
		}
	}
}

// ModelHint returns what to do about a model that cannot be used for a reason.
func ModelHint(err error) string {
	const list = "all models: loki --list models"
	if hint := fault.HintOf(err); hint != "" && !strings.Contains(hint, "\n") {
		return hint + "; " + list
	}
	return list
}
