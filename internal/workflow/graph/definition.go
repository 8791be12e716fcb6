package graph

import (
	"math"
	"path/filepath"
	"strconv"
	"time"

	"loki/internal/base/fault/retry"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/llm/hook"
	"loki/internal/workflow/graph/expr"
	"loki/internal/workflow/graph/gate"
)

// FileName is the name of a definition in an agent's directory.
const FileName = "graph.yaml"

// Version is the only schema version there is.
const Version = "1.0"

// Defaults of settings and node fields.
const (
	DefaultMaxLoopIterations = 100
	DefaultMaxConcurrency    = 8
	DefaultScriptTimeout     = 30 * time.Second
	DefaultAgentTimeout      = 300 * time.Second
	DefaultRAGTimeout        = 120 * time.Second
	DefaultMaxAttempts       = 1
	DefaultMaxIterations     = 10
	DefaultRetryAttempts     = 1
	DefaultRetryBackoff      = time.Second
	DefaultRetryFactor       = 2
	DefaultRetryMaxBackoff   = 60 * time.Second
	DefaultRetryJitter       = 0.2
	DefaultOutputKey         = "output"
)

// PromptKey is the state key that every run seeds with the user's prompt.
const PromptKey = "initial_prompt"

// LastErrorKey is the state key under which a tolerated failure of a node is left: an object of node, type and message.
const LastErrorKey = "_last_error"

// Pos is a place in a definition file. The zero Pos is unknown.
type Pos struct {
	Line   int `json:"line,omitempty"`   // from 1
	Column int `json:"column,omitempty"` // from 1, in characters
}

// Graph is the definition of a workflow. It is immutable once parsed.
type Graph struct {
	Name        string
	Description string

	// Agent-level configuration.
	Model                string // default chat model of llm nodes, "" means the current one
	DefaultModel         string // model of llm nodes when neither they, nor Model, nor the user name one
	chat.Sampling               // default of llm nodes
	GlobalTools          []string
	MCPServers           []string
	ConversationStarters []string
	Variables            []Variable
	Environment          []string    // names of variables that scripts get although they look like secrets
	Hooks                []hook.Hook // of its calls of tools and models

	// Sandbox is what scripts and tools run in that declare nothing themselves, and the most that all of them may do.
	Sandbox sandbox.Declaration

	Rules        gate.Rules // by which its runs start
	Settings     Settings
	Schema       *StateSchema // nil for none
	InitialState *value.Object
	Reducers     map[string]Reducer // by state key
	Start        string             // id of a node
	Nodes        []*Node            // in declaration order, at least one

	File string // path the definition was read from, for messages; may be empty
	Text []byte // the definition as it was read

	// Files are the texts of the definitions of subgraphs by their paths as nodes have them; nil of a subgraph.
	Files map[string][]byte

	byID map[string]*Node
	pos  Places
	inside
}

// Node returns the node called id, nil if there is none.
func (g *Graph) Node(id string) *Node { return g.byID[id] }

// Pos returns where path is in the definition: "settings.timeout",
// "nodes.a", "nodes.a.next[1]"; in a subgraph paths begin there. If path itself is not there, the place of the
// nearest enclosing path is returned.
func (g *Graph) Pos(path string) Pos { return g.pos.At(g.base + path) }

// Variable is a value the user gives an agent when it starts.
type Variable struct {
	Name        string
	Description string
	Default     *string // nil means that it must be given
}

// Settings tune a run.
type Settings struct {
	MaxLoopIterations int           // visits allowed to each node
	Timeout           time.Duration // of the whole run, looked at between super-steps
	HasTimeout        bool
	LogStateSnapshots bool
	ValidateBeforeRun bool
	MaxConcurrency    int // branches running at once in a super-step
	OnFailure         FailurePolicy
	FailureWritten    bool // the definition says what OnFailure is
	FailureInherited  bool // OnFailure is that of the graph around a subgraph, which says it
	Budget            Budget
	Durability        Durability
	Scheduling        Scheduling
}

// Scheduling says when the tasks of a run begin. What comes of the run is the same.
type Scheduling string

// The schedulings.
const (
	ScheduleSteps    Scheduling = "steps"    // once the super-step before is over
	ScheduleDataflow Scheduling = "dataflow" // before that, if nothing that is not finished can make a difference; see [Plan.Ahead]
)

// Budget bounds what a run may use. A zero field sets no bound; a declared bound is
// greater than zero.
type Budget struct {
	USD      float64       // money for models, in US dollars
	Tokens   int           // input and output tokens together
	Duration time.Duration // wall-clock time of one execution; a resumed run starts it again
}

// Durability says what the record of a run survives.
type Durability string

// The durabilities.
const (
	DurabilityProcess Durability = "process" // the death of the process; the last steps can be lost with the power
	DurabilityPower   Durability = "power"   // the loss of power, too; each step waits for the disk
	DurabilityOff     Durability = "off"     // nothing: there is no record, so the run cannot be resumed
)

// FailurePolicy says what a failing llm or script node with a next and without a fallback does to
// the run. A failure of any other node without a fallback fails it.
type FailurePolicy string

// The failure policies.
const (
	FailContinue FailurePolicy = "continue" // the node's next follows, the failure is in LastErrorKey
	FailStop     FailurePolicy = "fail"     // the run fails
)

// Type is the type of a node.
type Type string

// The node types.
const (
	AgentNode    Type = "agent"
	ScriptNode   Type = "script"
	ApprovalNode Type = "approval"
	InputNode    Type = "input"
	LLMNode      Type = "llm"
	RAGNode      Type = "rag"
	MapNode      Type = "map"
	GraphNode    Type = "graph"
	ToolNode     Type = "tool"
	WaitNode     Type = "wait"
	EndNode      Type = "end"
)

// Types lists the node types in the order in which messages show them.
var Types = [...]Type{AgentNode, ScriptNode, ApprovalNode, InputNode, LLMNode, RAGNode, MapNode, GraphNode, ToolNode, WaitNode, EndNode}

// Node is one step of a workflow.
type Node struct {
	ID          string
	Type        Type
	Description string

	// Next holds the static successors: none, one, or several that run in parallel.
	// HasNext is true also for an empty list. FanOut is true for a list of two or
	// more elements, even if they are all the same.
	Next    []string
	HasNext bool
	FanOut  bool

	// Choices are the places that depend on the state, by their name below the node: next, fallback, on_other, or routes
	// and an answer. Where there is one, it decides, and the field, such as Next, only says which nodes it can lead to.
	Choices map[string]*Choice

	Join  Join
	Defer bool // it runs when nothing else is left to run

	// Updates are the state_updates; HasUpdates is true also for an empty map.
	Updates    []Update
	HasUpdates bool

	// Timeout bounds the node's work; it is meaningful only with HasTimeout. Node
	// types that have a default are filled in by the parser. A timeout of zero
	// expires at once. Of a question and a wait it is the longest time since the node was reached.
	Timeout    time.Duration
	HasTimeout bool

	// Expires says until when the question of an approval or input can be answered, see [ParseExpiry]. It is strict; nil
	// for no end.
	Expires *Template

	Fallback string // node to go to on failure, "" for none; the first of a choice

	Compensate string // node that undoes the effects of this one if the run fails later, "" for none

	Retry       *retry.Policy // nil for none
	OnUncertain Uncertain     // agent, llm, script and tool
	Cache       *Cache        // llm, rag, script and tool; nil for none

	// Sandbox is what the program of a script runs in, and for an agent the most that it may do.
	Sandbox sandbox.Declaration

	// Exactly one of these is set, as Type says.
	Agent    *Agent
	Script   *Script
	Approval *Approval
	Input    *Input
	LLM      *LLM
	RAG      *RAG
	Map      *Map
	Sub      *Subgraph
	Tool     *Tool
	Wait     *Wait
	End      *End
}

// Uncertain says what to do about a step that may have changed the world and was
// begun, but may not have happened, because the process died. The zero
// value is the default: retry for scripts and for tools that only read, ask for
// everything else.
type Uncertain string

// The ways to continue.
const (
	UncertainRetry Uncertain = "retry" // make the step again, with the same idempotency key
	UncertainSkip  Uncertain = "skip"  // do not make it again
	UncertainAsk   Uncertain = "ask"   // let a human decide
)

// Cache says that a node's result may be taken from an earlier time the node was run
// with the same key.
type Cache struct {
	TTL time.Duration // age up to which a result is used; 0 uses none
	Key *Template     // strict; nil means everything that the node's work depends on
}

// Update is one entry of state_updates: after the node's work, the rendered
// template is stored under the key.
type Update struct {
	Key      string
	Template Template
}

// Agent runs another agent as a child.
type Agent struct {
	Agent        string
	Prompt       Template
	OutputSchema *value.Value // a JSON Schema, nil for none
	Worktree     *Worktree    // it works in a copy of the repository; nil leaves it to the agent
	Skills       string       // as in [LLM]; "" leaves it to the agent
}

// Script runs a program that reads the state and prints a JSON object.
type Script struct {
	Script string // path, relative to the agent's directory unless absolute
}

// Path returns the path of the script of an agent in dir.
func (s *Script) Path(dir string) string {
	if filepath.IsAbs(s.Script) {
		return s.Script
	}
	return filepath.Join(dir, filepath.FromSlash(s.Script))
}

// Approval asks a human to choose and routes by the answer.
type Approval struct {
	Question Template
	Options  []string
	Routes   []Route
	OnOther  string
	Default  *Template // lenient; the answer when the timeout is over, nil for none

	Assignees []string // subjects and groups of a server who may answer; nil for all who may see the run
}

// Route sends one answer of an approval to a node.
type Route struct {
	Answer string
	Target string // the first of a choice
}

// place returns where the route is below the node.
func (r Route) place() string { return "routes." + r.Answer }

// Input asks a human for a text.
type Input struct {
	Question   Template
	Default    *Template // lenient; for an empty answer and when the timeout is over, nil for none
	Validation string    // length predicate, "" for none; see ParsePredicate
	Assignees  []string  // as for Approval
}

// LLM calls a model, with an optional bounded tool loop.
type LLM struct {
	Prompt        Template
	Instructions  *Template // nil for none
	Tools         []string
	Skills        string      // comma list of names and patterns, or all; "" for none
	Memory        chat.Memory // read or propose; "" and off for nothing
	Model         string      // "" means the graph's or the current model
	chat.Sampling             // over the graph's
	MaxAttempts   int
	MaxIterations int
	OutputSchema  *value.Value // a JSON Schema, nil for none
}

// RAG retrieves passages from a knowledge base.
type RAG struct {
	Documents      []string
	Query          Template
	TopK           int // 0 means the knowledge base's own
	EmbeddingModel string
	RerankerModel  string
	ChunkSize      *int
	ChunkOverlap   *int
	BatchSize      *int // of older versions; has no effect
}

// Map runs one node for each element of a list, or member of an object.
type Map struct {
	Over           Template
	As             string
	Branch         string
	OutputKey      string
	CollectInto    string
	MaxConcurrency int // 0 means the settings'

	HasMaxConcurrency bool // MaxConcurrency is declared; the validator refuses a declared 0

	Batch      int        // most elements that the branch gets at once, as a list; 0 gives it one, as it is
	OnError    ItemErrors // what a failed item does; "" means ItemsFail
	MinSuccess *Share     // items that have to succeed; nil for no bound
	ItemIf     *expr.Expr // whether an item is run; sees it under As; nil runs all
	Enough     *expr.Expr // whether the results so far, under ResultsKey, will do; nil waits for all
}

// Terms returns the fields that say which items a map runs, how, and when that will do, as a definition has them: "on_error: skip".
func (m *Map) Terms() []string {
	var terms []string
	add := func(name, text string) {
		if text != "" {
			terms = append(terms, name+": "+text)
		}
	}
	if m.ItemIf != nil {
		add("item_if", m.ItemIf.Source)
	}
	if m.Batch > 0 {
		add("batch", strconv.Itoa(m.Batch))
	}
	if m.HasMaxConcurrency {
		add("concurrency", strconv.Itoa(m.MaxConcurrency))
	}
	add("on_error", string(m.OnError))
	if m.MinSuccess != nil {
		add("min_success", m.MinSuccess.String())
	}
	if m.Enough != nil {
		add("enough", m.Enough.Source)
	}
	return terms
}

// ResultsKey is what [Map.Enough] reads the results so far as.
const ResultsKey = "results"

// ItemErrors says what a failed item does to its map.
type ItemErrors string

// What a failed item does.
const (
	ItemsFail    ItemErrors = "fail"    // the map fails once all items are done
	ItemsSkip    ItemErrors = "skip"    // it has no result
	ItemsCollect ItemErrors = "collect" // its result is an object with the member ItemErrorKey
)

// ItemErrorKey is the only member of the result of a failed item: an object with the branch as node, and a message.
const ItemErrorKey = "_error"

// Share is a number of items, or a part of all. One of the fields is set.
type Share struct {
	Count   int     // at least 1
	Percent float64 // above 0, at most 100
}

// Of returns how many of n items the share is at least.
func (s Share) Of(n int) int {
	if s.Count > 0 {
		return s.Count
	}
	return int(math.Ceil(s.Percent * float64(n) / 100))
}

// String returns the share as a definition has it.
func (s Share) String() string {
	if s.Count > 0 {
		return strconv.Itoa(s.Count)
	}
	return strconv.FormatFloat(s.Percent, 'f', -1, 64) + "%"
}

// End ends the run with a text.
type End struct {
	Output Template
}
