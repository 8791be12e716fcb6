package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
)

// Severity says whether a [Finding] keeps a graph from running.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Rule names what a [Finding] is about. Rules are stable: machine output and tests
// depend on them.
type Rule string

// The rules of reading a definition.
const (
	RuleDefinition  Rule = "definition"  // not a definition: syntax, types, required fields
	RuleUnknownKey  Rule = "unknown-key" // a key that means nothing
	RuleEnvironment Rule = "environment" // a variable of the environment that cannot be used
)

// The rules of [Validate], in the order in which they are checked.
const (
	RuleUnknownTarget    Rule = "unknown-target"   // an edge leads to no node
	RuleCycle            Rule = "cycle"            // the declared edges form a cycle
	RuleUnreachable      Rule = "unreachable"      // no declared way from the start to a node
	RuleNoEnd            Rule = "no-end"           // there is no end node
	RuleUnreachableEnd   Rule = "unreachable-end"  // no declared way from the start to an end node
	RuleMissingScript    Rule = "missing-script"   // a script does not exist
	RuleScriptExtension  Rule = "script-extension" // nothing can run a script of that name
	RuleUnknownAgent     Rule = "unknown-agent"    // an agent does not exist
	RuleUndefinedAgent   Rule = "undefined-agent"  // an agent's directory holds no definition
	RuleMissingRoute     Rule = "missing-route"    // an option of an approval leads nowhere
	RuleUnusedRoute      Rule = "unused-route"     // a route of an approval is not an option
	RuleNoDocuments      Rule = "no-documents"     // a rag node has nothing to search
	RuleUnusedResult     Rule = "unused-result"    // a rag node's result is stored nowhere
	RuleUnknownMCPServer Rule = "unknown-mcp-server"
	RuleUnknownTool      Rule = "unknown-tool"
	RuleToolArguments    Rule = "tool-arguments" // a tool does not take the arguments of its node
	RuleUnknownModel     Rule = "unknown-model"
	RuleToolScript       Rule = "tool-script"       // a script of tools is wrong
	RuleKnowledge        Rule = "knowledge-base"    // a knowledge base was not built, and is not built unasked
	RuleOutputs          Rule = "outputs"           // a value of a subgraph that nothing in it writes
	RuleZeroConcurrency  Rule = "zero-concurrency"  // nothing may run
	RuleMapBranch        Rule = "map-branch"        // a node that cannot be the branch of a map
	RuleItems            Rule = "items"             // what a map says of its items has no effect, or can never be
	RuleParallelScript   Rule = "parallel-script"   // a script in a fan-out does not say what it writes
	RuleParallelWrite    Rule = "parallel-write"    // two branches write a key without a reducer
	RuleParallelRead     Rule = "parallel-read"     // a branch reads what its sibling writes
	RulePredicate        Rule = "predicate"         // an input's validation cannot be read
	RuleAssignees        Rule = "assignees"         // a question has assignees, but names none
	RuleWait             Rule = "wait"              // a wait that cannot end as it is written
	RuleZeroLimit        Rule = "zero-limit"        // a limit that nothing can keep
	RuleTimeoutDefault   Rule = "timeout-default"   // a question's time for an answer and its default do not go together
	RuleDefaultAnswer    Rule = "default-answer"    // an approval's default answer is not one of its options
	RuleRetry            Rule = "retry"             // a retry that does nothing, or more than it seems
	RuleCache            Rule = "cache"             // a cache that holds nothing
	RuleCompensate       Rule = "compensate"        // a compensation that cannot run, or does not undo what it says
	RuleUncertain        Rule = "uncertain"         // an on_uncertain that cannot be followed
	RuleMissingNext      Rule = "missing-next"      // a node has no way to continue
	RuleOtherwise        Rule = "otherwise"         // all edges of a node may fail to hold
	RuleUnreachableEdge  Rule = "unreachable-edge"  // an edge behind one that always holds
	RuleLoopBound        Rule = "loop-bound"        // an edge with a max that is never reached
	RuleCondition        Rule = "condition"         // a condition that cannot be meant
	RuleJoin             Rule = "join"              // a join that joins nothing
	RuleScopedUpdate     Rule = "scoped-update"     // a state update that is dropped
	RulePlaceholder      Rule = "placeholder"       // a text that looks like a placeholder and is none
	RuleUndefinedRead    Rule = "undefined-read"    // a template or condition reads a key that nothing writes
	RuleFailureText      Rule = "failure-text"      // the text of an error may stand where a user or a tool takes it for a result
	RuleUnknownMember    Rule = "unknown-member"    // a template reads a member that a schema excludes
	RuleUnknownStateKey  Rule = "unknown-state-key" // a node writes a key that a strict state does not have
	RuleStateType        Rule = "state-type"        // a node writes what the schema of the state excludes
	RuleOutsideScript    Rule = "outside-script"    // a script outside of the agent's directory
	RuleConsent          Rule = "consent"           // an agent that would consent for its user
)

// Finding is something wrong, or doubtful, about a definition.
type Finding struct {
	Severity Severity `json:"severity"`
	Rule     Rule     `json:"rule"`
	Node     string   `json:"node,omitempty"` // id of the node it is about; of one in a subgraph as [InnerName] has it
	File     string   `json:"file,omitempty"` // the definition of a subgraph that it is in; empty for that of the agent
	Path     string   `json:"path,omitempty"` // place in the definition, "nodes.a.next[1]"
	Pos               // of the path; unknown for a graph that was not parsed
	Message  string   `json:"message"`
	Hint     string   `json:"hint,omitempty"` // what to do about it
}

// String returns "[node] message".
func (f Finding) String() string {
	if f.Node == "" {
		return f.Message
	}
	return fmt.Sprintf("[%s] %s", f.Node, f.Message)
}

// Findings is a list of findings. [Validate] returns them in the order of the rules.
type Findings []Finding

// InOrder returns the findings in the order of the text: those of the agent's own file first, then those of the files of its subgraphs by
// name. What has no place comes first in its file, and findings about one place keep their order.
func (f Findings) InOrder() Findings {
	sorted := slices.Clone(f)
	slices.SortStableFunc(sorted, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return sorted
}

// Errors returns the findings that keep the graph from running.
func (f Findings) Errors() Findings { return f.of(SeverityError) }

// Warnings returns the other findings.
func (f Findings) Warnings() Findings { return f.of(SeverityWarning) }

func (f Findings) of(s Severity) Findings {
	var some Findings
	for _, finding := range f {
		if finding.Severity == s {
			some = append(some, finding)
		}
	}
	return some
}

// Strict returns the findings with all warnings made errors.
func (f Findings) Strict() Findings {
	strict := slices.Clone(f)
	for i := range strict {
		strict[i].Severity = SeverityError
	}
	return strict
}

// Err returns nil if there are no errors, and otherwise a [*fault.Error] that lists
// them, one to a line.
func (f Findings) Err() error {
	errs := f.Errors()
	if len(errs) == 0 {
		return nil
	}
	var b strings.Builder
	for _, finding := range errs {
		b.WriteString("\n  " + finding.String())
	}
	return fault.New(fault.Config, "graph validation failed with %s:%s", text.Count(len(errs), "error"), b.String()).WithHint("%s", errs[0].Hint)
}

// ValidateEnv is what [Validate] may know about the world. Checks whose part is zero
// are left out.
type ValidateEnv struct {
	Dir string // the agent's directory, which script paths are relative to

	// FileExists reports whether there is a regular file at path; nil asks the file
	// system.
	FileExists func(path string) bool

	// Agent reports whether there is an agent called name, and whether its directory
	// holds a definition.
	Agent func(name string) (known, defined bool)

	Context *AgentContext
}

// AgentContext is what the llm nodes of an agent can use.
type AgentContext struct {
	Functions []string // names of the agent's functions; nil means that they are not checked
	// HasFunction reports whether an entry of a node's tools is a function of the agent, or
	// the file of some; nil looks for the entry itself in Functions.
	HasFunction func(entry string) bool
	// Parameters returns the JSON Schema of what the one tool takes that an entry means; ok is false if it means several. Nil
	// means that arguments are not checked.
	Parameters func(entry string) (schema value.Value, ok bool)
	Servers    []string              // names of the agent's MCP servers
	Model      func(id string) error // fails if id names no chat model; nil means that models are not checked
}

// Validate checks a definition without running it. All checks are always made, in
// the order of the rules, and every finding is kept.
func Validate(g *Graph, env ValidateEnv) Findings {
	v := &validator{g: g, env: env, reached: g.reachable(), branchOf: map[string][]*Node{}, reported: map[Finding]bool{}}
	for _, n := range g.Nodes {
		if n.Map != nil {
			v.branchOf[n.Map.Branch] = append(v.branchOf[n.Map.Branch], n)
		}
	}
	v.each(v.references)
	v.cycles()
	v.each(v.reachability)
	v.termination()
	v.each(v.scripts)
	v.agents()
	v.each(v.approvals)
	v.each(v.rags)
	v.llms()
	v.each(v.tools)
	v.concurrency()
	v.each(v.mapBranches)
	v.each(v.maps)
	v.each(v.subgraphs)
	groups := v.groups()
	for _, check := range []func(group){v.parallelWrites, v.parallelReads} {
		for _, group := range groups {
			check(group)
		}
	}
	v.each(v.predicates)
	v.each(v.assignees)
	v.each(v.waits)
	v.limits()
	v.each(v.answers)
	v.each(v.retries)
	v.each(v.caches)
	v.each(v.compensations)
	v.each(v.uncertain)
	v.each(v.successors)
	v.each(v.choices)
	v.each(v.conditions)
	v.joins()
	v.each(v.scopedUpdates)
	v.each(v.placeholders)
	v.each(v.undefinedReads)
	v.firstReads()
	v.each(v.failureTexts)
	v.each(v.members)
	v.stateWrites()
	v.consent()
	return v.findings
}

type validator struct {
	g        *Graph
	env      ValidateEnv
	reached  map[string]bool    // nodes that can be reached from the start
	branchOf map[string][]*Node // map nodes by their branch
	findings Findings
	reported map[Finding]bool

	known  []string // see knownKeys; nil before it was asked
	closed bool
}

// each makes a check of every node.
func (v *validator) each(check func(n *Node)) {
	for _, n := range v.g.Nodes {
		check(n)
	}
}

// err adds an error; node may be nil, and path is below the node if there is one.
func (v *validator) err(rule Rule, node *Node, path, hint, format string, args ...any) {
	v.add(SeverityError, rule, node, path, hint, fmt.Sprintf(format, args...))
}

// warn adds a warning, see err.
func (v *validator) warn(rule Rule, node *Node, path, hint, format string, args ...any) {
	v.add(SeverityWarning, rule, node, path, hint, fmt.Sprintf(format, args...))
}

func (v *validator) add(severity Severity, rule Rule, node *Node, path, hint, msg string) {
	v.report(v.g.at(Finding{Severity: severity, Rule: rule, Path: path, Message: msg, Hint: hint}, node))
}

// report adds a finding. Two maps over one branch, or two equal fan-outs, need not be reported twice.
func (v *validator) report(f Finding) {
	if !v.reported[f] {
		v.reported[f] = true
		v.findings = append(v.findings, f)
	}
}

// didYouMean is a hint that names the word that a wrong one is nearest to; it is empty if none is near.
func didYouMean(wrong string, words []string) string {
	near := yamldoc.Nearest(wrong, words)
	if near == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", near)
}
