// Package event describes what happens while Loki works, as one stream of typed events.
//
// An [Event] is a [Body], which says what happened, and a [Source], which says where.
// An [Emitter] receives events: a terminal, a JSON writer, a journal, a test that
// collects. The same stream feeds them all. MarshalJSON gives the stable form that
// machine output uses; docs/events.md describes it.
package event

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
)

// Event is one thing that happened.
type Event struct {
	Time time.Time
	Source
	Body Body

	// Number is that of the event in the record of its run, from 1. It is 0 for an event that is
	// not recorded, and for any event before it came to the record. It is not a part of the JSON.
	Number int
}

// Source says where an event comes from. Fields that do not apply are zero.
type Source struct {
	Run   string // id of the graph run
	Agent string // name of the agent

	// AgentID names a child agent within its run, the same when the run is resumed. It is
	// empty for what the user started.
	AgentID string

	Depth int    // 0 for what the user started, 1 for its children, ...
	Step  int    // super-step, from 1
	Node  string // graph node
	Item  *int   // element of the list a map node runs over, from 0

	// Within is the node whose subgraph the event is of, such as research, or each#2 for an item of a map. The names of the nodes
	// of a subgraph begin with it: research/search. It is empty outside of subgraphs.
	Within string
}

// Child returns the source of a child agent that work at s starts.
func (s Source) Child(agent, id string) Source {
	return Source{Run: s.Run, Agent: agent, AgentID: id, Depth: s.Depth + 1}
}

// Run identifies a run among those of an emitter, also one of several of the same child agent.
type Run struct{ ID, AgentID string }

// InRun returns the run that an event of s belongs to.
func (s Source) InRun() Run { return Run{s.Run, s.AgentID} }

// Place is where in a program's work one model is called at a time.
type Place struct {
	Run
	Node       string
	Step, Item int // Item is -1 outside of maps
}

// Place returns the place of an event of s.
func (s Source) Place() Place {
	p := Place{Run: s.InRun(), Node: s.Node, Step: s.Step, Item: -1}
	if s.Item != nil {
		p.Item = *s.Item
	}
	return p
}

// Body is what happened. The types of this file implement it.
type Body interface {
	// Type returns the event's stable name, such as "node_started".
	Type() string
}

// Started opens a graph run or a single answer, of a child agent too.
type Started struct {
	Graph string `json:"graph,omitempty"` // name of the graph, empty for a single answer
	Node  string `json:"start,omitempty"` // the graph's first node
	Model string `json:"model,omitempty"` // of a single answer

	Harness string `json:"harness,omitempty"` // the program of others that answers, such as claude-code

	Next []string `json:"next,omitempty"` // of a graph run that resumes, or that is a fork: the nodes with which it begins in place of the first one

	Resumed bool `json:"resumed,omitempty"` // an interrupted run resumes

	// Of a run that no user started: what did, such as schedule/morning, and how long after its time a schedule did, in seconds.
	Origin string  `json:"origin,omitempty"`
	Late   float64 `json:"late_seconds,omitempty"`

	// Of a child agent: what it was asked, and where it was started, as [Started.Under] says.
	Prompt     string `json:"prompt,omitempty"`
	Parent     string `json:"parent,omitempty"` // AgentID of the parent, empty for what the user started
	ParentNode string `json:"parent_node,omitempty"`
	ParentItem *int   `json:"parent_item,omitempty"`

	NoSnapshots bool           `json:"-"` // the state of the run is not to be logged
	State       []value.Member `json:"-"` // of a graph, as it begins or resumes
}

// Under returns b as that of a child agent that work at parent started.
func (b Started) Under(parent Source) Started {
	b.Parent, b.ParentNode, b.ParentItem = parent.AgentID, parent.Node, parent.Item
	return b
}

// ModelCall says that a model is about to be called. The call ends with a Reply; one
// that fails has none.
type ModelCall struct {
	Model string `json:"model"` // id, client:model
	Turn  int    `json:"turn"`  // call of the same request, from 1
}

// Request shows what a dry run would send to a model. It is emitted in dry runs only.
type Request struct {
	Model string `json:"model"` // id, client:model
	chat.Sampling
	MaxOutputTokens int            `json:"max_output_tokens,omitempty"`
	Stream          bool           `json:"stream"`
	Tools           []chat.Tool    `json:"tools,omitempty"`
	Messages        []chat.Message `json:"messages"`

	Schema json.RawMessage `json:"schema,omitempty"` // JSON Schema of the reply, nil for any text
}

// Delta is a piece of a model's answer. A slow reader may drop it: Reply has the whole.
type Delta struct {
	Text string `json:"text"`
}

// Reasoning is a piece of a model's reasoning. A slow reader may drop it.
type Reasoning struct {
	Text string `json:"text"`
}

// Reply is a model's complete answer to one call.
type Reply struct {
	Model string          `json:"model"` // id, client:model
	Text  string          `json:"text"`
	Stop  chat.StopReason `json:"stop"`
	Usage chat.Usage      `json:"usage"`
}

// ToolCall says that a model asked for a tool, before it runs.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`         // JSON text as the model wrote it
	Sandbox   string `json:"sandbox,omitempty"` // level of the sandbox that it asks for; empty for tools that do not run in one
}

// ToolResult is what a tool returned.
type ToolResult struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Text   string `json:"text"`
	Failed bool   `json:"failed,omitempty"`

	Sandbox string `json:"sandbox,omitempty"` // level of the sandbox in which its program ran; empty if it ran in none

	// Arguments are what the user gave the call, and OriginalArguments what the model gave; empty if they were not edited.
	Arguments         string `json:"arguments,omitempty"`
	OriginalArguments string `json:"original_arguments,omitempty"`
}

// ToolOutput is a line that a tool prints for the user while it runs. A slow reader may drop
// it.
type ToolOutput struct {
	Name string `json:"name"` // of the tool
	Text string `json:"text"`
}

// StepStarted opens a super-step of several nodes.
type StepStarted struct {
	Nodes []string `json:"nodes"` // ascending
}

// StepFinished closes a super-step of several nodes, if the run continues.
type StepFinished struct {
	Next []string `json:"next"` // ascending
}

// NodeStarted says that a node is about to run.
type NodeStarted struct {
	NodeType string `json:"node_type"`
	Visit    int    `json:"visit"`            // from 1
	Parallel bool   `json:"parallel"`         // others run in the same super-step
	Undoes   string `json:"undoes,omitempty"` // the node whose effect it undoes, of which it is the compensation
}

// NodeFinished says how a node ended.
type NodeFinished struct {
	NodeType string        `json:"node_type"`
	Duration time.Duration `json:"-"`
	Targets  []string      `json:"targets,omitempty"` // nodes it leads to
	Edges    []string      `json:"edges,omitempty"`   // that lead there: places such as review.next[1], review.routes.yes, review.fallback; none for all of next
	End      bool          `json:"end,omitempty"`     // it ended the run
	Waiting  bool          `json:"waiting,omitempty"` // it did not end: it waits, such as for an answer of the user
	Error    string        `json:"error,omitempty"`   // why it failed, whether or not the run continues

	Tolerated int `json:"tolerated,omitempty"` // failures inside of it: of items of a map, of nodes of a subgraph

	// Limited is how long, in milliseconds, calls of it waited because a provider took no more of them.
	Limited int64 `json:"limited_ms,omitempty"`

	Canceled bool `json:"canceled,omitempty"` // others were faster, so its work was stopped or dropped
	Parallel bool `json:"parallel"`
}

// Interrupted is the Error of a node that was at work when its run was interrupted.
const Interrupted = "interrupted"

// MapProgress says how far a map node has come.
type MapProgress struct {
	Done   int `json:"done"` // including failed ones
	Total  int `json:"total"`
	Failed int `json:"failed,omitempty"`

	FailedItems []string `json:"failed_items,omitempty"` // which, by number and key; only the first ones
}

// StateUpdated holds the keys that a super-step changed, merged, or the ones that the user set.
type StateUpdated struct {
	Set    bool           // the user has set them, before the run resumed
	Values []value.Member // ascending by name
}

// Question says that the user is asked.
type Question struct {
	ID      string   `json:"id"`
	Kind    string   `json:"kind,omitempty"` // consent, choice, choices, text or secret, see [ask.Question.Form]
	Text    string   `json:"text"`
	Options []string `json:"options,omitempty"`
	Default *string  `json:"default,omitempty"`

	Deadline time.Time `json:"deadline,omitzero"` // when the default is taken
}

// Answer holds what the user answered, or the default of a question whose time is over.
type Answer struct {
	ID       string `json:"id"`
	Text     string `json:"text"`
	TimedOut bool   `json:"timed_out,omitempty"` // no answer came in time: the text is the default
	Via      Via    `json:"via,omitempty"`       // empty where that is not known
	By       string `json:"by,omitempty"`        // the subject of a server who answered; empty on the command line

	// Here says that the answer was given where the events are shown, which has no place in JSON.
	Here bool `json:"-"`
}

// Via is the way in which an answer came.
type Via string

// The ways in which answers come.
const (
	ViaTerminal Via = "terminal"
	ViaCommand  Via = "command" // an option of a command, or a line of its input
	ViaREST     Via = "rest"
	ViaPage     Via = "page"
	ViaOpenAI   Via = "openai"
	ViaMCP      Via = "mcp"
	ViaACP      Via = "acp"
	ViaLink     Via = "link" // of a notice
	ViaTimeout  Via = "timeout"
)

// Waiting says that a node of a graph waits: until a time, for a signal, or for either.
type Waiting struct {
	ID     string    `json:"id"`               // of the wait, as questions have one
	Signal string    `json:"signal,omitempty"` // name of the signal; empty for a wait for a time
	Until  time.Time `json:"until,omitzero"`   // zero for a wait for a signal without a timeout
}

// Undoing says that the run has failed, or was canceled, and that the effects of nodes are undone now.
type Undoing struct {
	Nodes []string `json:"nodes"` // in the order in which they are undone; one that was visited several times is there as often
	Error string   `json:"error"` // why
}

// Signal says that a node that waited continues with a signal, or with its default.
type Signal struct {
	ID       string      `json:"id"` // of the wait
	Name     string      `json:"name"`
	Value    value.Value `json:"value"`
	TimedOut bool        `json:"timed_out,omitempty"` // no signal came in time: the value is the default
}

// Retry says that an attempt failed and another one follows. Deltas since the attempt began
// are void.
type Retry struct {
	Attempt int           `json:"attempt"` // the one that failed, from 1
	Error   string        `json:"error"`
	Wait    time.Duration `json:"-"`
}

// Limited says that a call of a model waits, because its provider, or a limit of spending, takes no more of them now. With Waited or Refused it says that
// the wait is over.
type Limited struct {
	Client string    `json:"client"`         // empty if the reason is spending, as is Model
	Model  string    `json:"model"`          // the provider's own name
	Reason string    `json:"reason"`         // concurrency, rate, refused, outage or spending
	Until  time.Time `json:"until,omitzero"` // when it is tried again, or earlier
	AtOnce int       `json:"at_once"`        // calls that the provider takes, as far as it is known

	Waited  int64 `json:"waited_ms,omitempty"` // how long the call waited
	Refused int   `json:"refused,omitempty"`   // how often the provider refused it
}

// CompressionStarted says that a model is about to write a recap of the older turns of a
// session, before the question is sent.
type CompressionStarted struct {
	Model  string `json:"model"`  // id of the one that writes the recap
	Tokens int    `json:"tokens"` // of the messages of the session
}

// CompressionFinished reports the result of a compression.
type CompressionFinished struct {
	Messages int        `json:"messages"` // how many the recap replaces
	Before   int        `json:"before"`   // tokens of the messages of the session
	After    int        `json:"after"`
	Recap    string     `json:"recap,omitempty"`
	Usage    chat.Usage `json:"usage"`           // part of that of the Finished that follows
	Error    string     `json:"error,omitempty"` // why the session stays as it is
}

// SessionNamed says that a session without a name got a title, which is part of its name.
type SessionNamed struct {
	Title string     `json:"title"`
	Usage chat.Usage `json:"usage"` // of the model that made it
}

// ServersStarting says that MCP servers are about to be started, because what is in force in
// a conversation asks for them.
type ServersStarting struct {
	Servers []string `json:"servers"` // ids
}

// ServersStarted closes what ServersStarting opened.
type ServersStarted struct {
	Servers []string `json:"servers"`          // ids of the running ones
	Failed  []string `json:"failed,omitempty"` // ids of the others, of which there are warnings
}

// Warning reports something to the user that does not stop the work.
type Warning struct {
	Text string `json:"text"`
	Once bool   `json:"-"` // it concerns more than this question, so a scope passes it on the first time only
}

// AgentWaits says whom an agent waits for.
type AgentWaits struct {
	On []string `json:"on,omitempty"` // AgentIDs of its children; empty: it waits no more
}

// TodoUpdated holds the todo list of an agent, which has changed.
type TodoUpdated struct {
	Goal  string `json:"goal,omitempty"`
	Todos []Todo `json:"todos"`
}

// DoneCount returns how many items are.
func (b TodoUpdated) DoneCount() int {
	n := 0
	for _, todo := range b.Todos {
		if todo.Done {
			n++
		}
	}
	return n
}

// Todo is an item of a todo list.
type Todo struct {
	ID   int    `json:"id"` // from 1
	Desc string `json:"desc"`
	Done bool   `json:"done"`
}

// Instructions says which files of the workspace instruct the model, when that is new to a conversation or has changed.
type Instructions struct {
	Files   []InstructionFile `json:"files"`
	Changed bool              `json:"changed,omitempty"` // an earlier question was asked with others
}

// InstructionFile is one of [Instructions].
type InstructionFile struct {
	Path  string `json:"path"` // from the root of the workspace with slashes; of the user's own file the whole path
	Bytes int    `json:"bytes"`
	State string `json:"state"` // used, untrusted, changed, cut, shadowed, hidden, deeper or unusable

	Changed bool `json:"changed,omitempty"` // since the last question of the conversation
}

// SkillLoaded says that a model got the text of a skill.
type SkillLoaded struct {
	Name      string `json:"name"`
	Directory string `json:"directory"`
	Sum       string `json:"sum"` // SHA-256 of its SKILL.md in hexadecimal
	Bytes     int    `json:"bytes"`
	By        string `json:"by"` // model or user
}

// JobStarted says that a command runs as a job, which continues after its call.
type JobStarted struct {
	ID      string `json:"id"`
	Command string `json:"command"`
	Level   string `json:"level,omitempty"` // of the sandbox; empty without one
	Ports   []int  `json:"ports,omitempty"` // at which it is reached
}

// JobEnded says how a job ended.
type JobEnded struct {
	ID      string `json:"id"`
	Command string `json:"command"`
	Status  string `json:"status"`           // exited, killed, or kept if it outlives its conversation
	Exit    *int   `json:"exit,omitempty"`   // status with which it exited
	Reason  string `json:"reason,omitempty"` // why it was killed
	Notice  string `json:"notice,omitempty"` // what the user needs to know, such as files that may be its own and run later
}

// String says how the job ended, in a line.
func (e JobEnded) String() string {
	how := e.Status
	switch {
	case e.Exit != nil:
		how += " with status " + strconv.Itoa(*e.Exit)
	case e.Reason != "":
		how += ": " + e.Reason
	}
	if e.Notice != "" {
		how += "; at its end the sandbox " + e.Notice
	}
	return e.ID + " (" + text.OneLine(e.Command, shownCommand) + ") " + how
}

// shownCommand is how many characters of the command of a job a line shows.
const shownCommand = 80

// Memory says which facts of earlier conversations came with a question, or what the model wrote into the memory. Proposals are counted
// at the end of an answer.
type Memory struct {
	Action string       `json:"action"` // recalled, saved, changed, forgotten or proposed
	Facts  []MemoryFact `json:"facts"`
}

// MemoryFact is one of [Memory].
type MemoryFact struct {
	ID    string `json:"id"`
	Scope string `json:"scope"` // user, workspace or agent
	Title string `json:"title"`
}

// Plan says that a plan which a model proposed in plan mode waits for the user, or what they decided about it.
type Plan struct {
	State   string     `json:"state"` // proposed, accepted or refused
	Title   string     `json:"title"`
	Summary string     `json:"summary,omitempty"`
	Steps   []PlanStep `json:"steps"`
	Open    []string   `json:"open,omitempty"`
	Mode    string     `json:"mode,omitempty"` // in which the work continues
	Edited  bool       `json:"edited,omitempty"`
	Reason  string     `json:"reason,omitempty"` // why it was refused
}

// PlanStep is a step of a [Plan].
type PlanStep struct {
	Text     string   `json:"text"`
	Files    []string `json:"files,omitempty"`
	Commands []string `json:"commands,omitempty"`
}

// AutoContinue says that an agent whose reply left items of its todo list open continues by itself.
type AutoContinue struct {
	Count int `json:"count"` // of these continuations, from 1
	Max   int `json:"max"`
	Open  int `json:"open"` // items

	Compressed bool `json:"compressed,omitempty"` // the session was compressed before
}

// Steered says that the model reads what the user said while it works.
type Steered struct {
	ID   string `json:"id"` // of the message
	Text string `json:"text"`
}

// MessageSent says that an agent sent another one a message.
type MessageSent struct {
	To   string `json:"to"` // AgentID, empty for what the user started
	Text string `json:"text"`
}

// TaskUpdated says that a task of an agent's queue was made or changed its status.
type TaskUpdated struct {
	ID      string `json:"id"` // a number
	Subject string `json:"subject"`
	Status  string `json:"status"` // pending, blocked, in_progress, completed or failed
	Owner   string `json:"owner,omitempty"`
}

// Escalation says that a child agent has a question to the agents above it, and waits.
type Escalation struct {
	ID      string   `json:"id"`
	Text    string   `json:"text"`
	Options []string `json:"options,omitempty"`
}

// EscalationAnswered says that a child agent's question is over. Its source is the child.
type EscalationAnswered struct {
	ID       string `json:"id"`
	Text     string `json:"text,omitempty"`
	TimedOut bool   `json:"timed_out,omitempty"` // no agent answered in time
}

// IndexStarted says that a knowledge base is about to be built.
type IndexStarted struct {
	Base    string `json:"base"`              // name of the knowledge base
	Model   string `json:"model"`             // id of the embedding model
	Resumed bool   `json:"resumed,omitempty"` // it resumes an interrupted build
}

// IndexProgress says how far the build of a knowledge base has come. A slow reader may drop it.
type IndexProgress struct {
	Base     string        `json:"base"`
	Document string        `json:"document,omitempty"` // path or address of the one that was read last
	Done     int           `json:"done"`               // documents
	Total    int           `json:"total"`              // documents that are known so far
	Kept     int           `json:"kept"`               // of Done, the unchanged ones
	Chunks   int           `json:"chunks"`             // that were indexed
	Usage    chat.Usage    `json:"usage"`              // of the embedding model
	Elapsed  time.Duration `json:"-"`
	Left     time.Duration `json:"-"` // estimated; 0 if unknown
}

// IndexFinished closes the build of a knowledge base that IndexStarted opened.
type IndexFinished struct {
	Base    string `json:"base"`
	Files   int    `json:"files"`  // in the knowledge base
	Chunks  int    `json:"chunks"` // likewise
	Added   int    `json:"added"`  // documents that are new or have changed
	Kept    int    `json:"kept"`
	Removed int    `json:"removed"`
	Passed  int    `json:"passed_over"` // files below directories that are not text or too large, and links out of them
	Failed  int    `json:"failed"`      // documents that could not be read

	PassedOver []string      `json:"passed_over_files,omitempty"` // the first 20 of Passed
	Usage      chat.Usage    `json:"usage"`
	Duration   time.Duration `json:"-"`
	Error      string        `json:"error,omitempty"` // why it was not built; empty on success
}

// Retrieved holds what was found in a knowledge base for a question.
type Retrieved struct {
	Base     string        `json:"base"`
	Query    string        `json:"query"`
	Sources  []Passage     `json:"sources"` // best first
	Duration time.Duration `json:"-"`       // of the search; 0 if its result was on record
}

// Passage is a part of a document that was found.
type Passage struct {
	Path  string  `json:"path"`            // path or address
	Start int     `json:"start,omitempty"` // first line, from 1; 0 where lines mean nothing
	End   int     `json:"end,omitempty"`   // last line
	Score float64 `json:"score"`

	Page     int `json:"page,omitempty"` // first page, from 1; 0 if its document has no pages
	LastPage int `json:"last_page,omitempty"`
}

// Finished closes a graph run or a single answer that Started opened.
type Finished struct {
	Output   string        `json:"output"`
	Duration time.Duration `json:"-"`
	Steps    int           `json:"steps,omitempty"`    // super-steps of a graph run
	Failures int           `json:"failures,omitempty"` // nodes that failed and were tolerated
	// Unhandled are those of Failures of which the graph does not say what happens then. Error is about them, and Output is there.
	Unhandled int        `json:"unhandled_failures,omitempty"`
	Usage     chat.Usage `json:"usage"`

	Stop  chat.StopReason `json:"stop,omitempty"`  // why the last reply of a single answer ended
	Error string          `json:"error,omitempty"` // why it failed; empty on success
	Code  string          `json:"code,omitempty"`  // code of the error

	// Reason is Error without the texts of questions, for logs; empty if that has none.
	Reason string `json:"-"`

	// Of a child agent: how it ended (done, failed, timed_out, canceled, out_of_budget,
	// suspended), and its part of Usage that its own children have not used.
	Outcome string     `json:"outcome,omitempty"`
	Own     chat.Usage `json:"own,omitzero"`
}

// The statuses of what has ended, beside the codes [fault.Suspended] and [fault.Canceled].
const (
	Done   = "done"
	Failed = "failed"
)

// Status returns done, failed, suspended or canceled.
func (b Finished) Status() string {
	switch {
	case b.Code == string(fault.Suspended), b.Code == string(fault.Canceled):
		return b.Code
	case b.Error != "":
		return Failed
	}
	return Done
}

// Type names of the events.
func (Started) Type() string      { return "started" }
func (ModelCall) Type() string    { return "model_call" }
func (Request) Type() string      { return "request" }
func (Delta) Type() string        { return "delta" }
func (Reasoning) Type() string    { return "reasoning" }
func (Reply) Type() string        { return "reply" }
func (ToolCall) Type() string     { return "tool_call" }
func (ToolResult) Type() string   { return "tool_result" }
func (ToolOutput) Type() string   { return "tool_output" }
func (StepStarted) Type() string  { return "step_started" }
func (StepFinished) Type() string { return "step_finished" }
func (NodeStarted) Type() string  { return "node_started" }
func (Undoing) Type() string      { return "undoing" }
func (NodeFinished) Type() string { return "node_finished" }
func (MapProgress) Type() string  { return "map_progress" }
func (StateUpdated) Type() string { return "state_updated" }
func (Question) Type() string     { return "question" }
func (Answer) Type() string       { return "answer" }
func (Waiting) Type() string      { return "waiting" }
func (Signal) Type() string       { return "signal" }
func (Retry) Type() string        { return "retry" }
func (Limited) Type() string      { return "limited" }
func (Warning) Type() string      { return "warning" }

func (CompressionStarted) Type() string  { return "compression_started" }
func (CompressionFinished) Type() string { return "compression_finished" }
func (SessionNamed) Type() string        { return "session_named" }
func (ServersStarting) Type() string     { return "servers_starting" }
func (ServersStarted) Type() string      { return "servers_started" }

func (AgentWaits) Type() string         { return "agent_waits" }
func (TodoUpdated) Type() string        { return "todo_updated" }
func (AutoContinue) Type() string       { return "auto_continue" }
func (Instructions) Type() string       { return "instructions" }
func (SkillLoaded) Type() string        { return "skill_loaded" }
func (Memory) Type() string             { return "memory" }
func (JobStarted) Type() string         { return "job_started" }
func (JobEnded) Type() string           { return "job_ended" }
func (Plan) Type() string               { return "plan" }
func (MessageSent) Type() string        { return "message_sent" }
func (Steered) Type() string            { return "steered" }
func (TaskUpdated) Type() string        { return "task_updated" }
func (Escalation) Type() string         { return "escalation" }
func (EscalationAnswered) Type() string { return "escalation_answered" }

func (IndexStarted) Type() string  { return "index_started" }
func (IndexProgress) Type() string { return "index_progress" }
func (IndexFinished) Type() string { return "index_finished" }
func (Retrieved) Type() string     { return "retrieved" }

func (Finished) Type() string { return "finished" }

// Emitter receives the events of one run or answer. Calls never overlap, and the
// events of one node arrive in order. An error from Emit ends the work.
type Emitter interface {
	Emit(ctx context.Context, ev Event) error
}

// Func is a function that is an Emitter.
type Func func(ctx context.Context, ev Event) error

// Emit calls f.
func (f Func) Emit(ctx context.Context, ev Event) error { return f(ctx, ev) }

// Discard is an Emitter that drops everything.
var Discard Emitter = Func(func(context.Context, Event) error { return nil })

// Tee returns an Emitter that passes each event to all of the emitters in turn, and
// stops at the first error.
func Tee(emitters ...Emitter) Emitter {
	emitters = slices.DeleteFunc(slices.Clone(emitters), func(e Emitter) bool { return e == nil })
	if len(emitters) == 1 {
		return emitters[0]
	}
	return Func(func(ctx context.Context, ev Event) error {
		for _, e := range emitters {
			if err := e.Emit(ctx, ev); err != nil {
				return err
			}
		}
		return nil
	})
}

// Scope emits events of one source. The zero Scope drops them; copies are cheap.
type Scope struct {
	Source
	sink *sink
}

// sink serializes what several scopes emit.
type sink struct {
	*way
	emitter Emitter
	now     func() time.Time
}

// way is what the sinks on the way to one emitter share.
type way struct {
	mu    sync.Mutex
	shown map[string]bool // texts of warnings to be shown once; guarded by mu
}

// again reports whether body is a warning to be shown once that has been. The caller has the
// lock.
func (w *way) again(body Body) bool {
	warning, ok := body.(Warning)
	if !ok || !warning.Once {
		return false
	}
	if w.shown[warning.Text] {
		return true
	}
	if w.shown == nil {
		w.shown = make(map[string]bool)
	}
	w.shown[warning.Text] = true
	return false
}

// NewScope returns a scope that emits to e, one event at a time. A nil e drops
// everything at no cost; a nil now means time.Now.
func NewScope(e Emitter, src Source, now func() time.Time) Scope {
	if e == nil {
		return Scope{Source: src}
	}
	if now == nil {
		now = time.Now
	}
	return Scope{Source: src, sink: &sink{way: new(way), emitter: e, now: now}}
}

// With returns the scope of another source that emits to the same place.
func (s Scope) With(change func(*Source)) Scope {
	change(&s.Source)
	return s
}

// Through returns a scope whose events go to the emitter that wrap makes of the one they
// would go to. They still arrive one at a time, those of s included.
func (s Scope) Through(wrap func(Emitter) Emitter) Scope {
	if s.sink == nil {
		return NewScope(wrap(Discard), s.Source, nil)
	}
	s.sink = &sink{way: s.sink.way, emitter: wrap(s.sink.emitter), now: s.sink.now}
	return s
}

// Silent reports whether events are dropped, so that a caller need not build them.
func (s Scope) Silent() bool { return s.sink == nil }

// UnshownError is the failure of an emitter, such as of a terminal that was closed. The work that emits is not at fault.
type UnshownError struct{ Err error }

func (e *UnshownError) Error() string { return e.Err.Error() }

func (e *UnshownError) Unwrap() error { return e.Err }

// Emit sends body to the emitter, stamped with the time and the scope's source. An error is an [*UnshownError].
func (s Scope) Emit(ctx context.Context, body Body) error {
	if s.sink == nil {
		return nil
	}
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	if s.sink.again(body) {
		return nil
	}
	if err := s.sink.emitter.Emit(ctx, Event{Time: s.sink.now(), Source: s.Source, Body: body}); err != nil {
		return &UnshownError{err}
	}
	return nil
}

// wire is the fields every event has in JSON, before those of its body.
type wire struct {
	Type    string `json:"type"`
	Time    string `json:"time"`
	Run     string `json:"run,omitempty"`
	Agent   string `json:"agent,omitempty"`
	AgentID string `json:"agent_id,omitempty"`
	Depth   int    `json:"depth,omitempty"`
	Step    int    `json:"step,omitempty"`
	Node    string `json:"node,omitempty"`
	Item    *int   `json:"item,omitempty"`
	Within  string `json:"within,omitempty"`
}

// MarshalJSON returns the event as one flat object: type, time (RFC 3339 in UTC with
// microseconds), source, then the fields of the body. Durations are in seconds.
func (e Event) MarshalJSON() ([]byte, error) {
	head, err := value.Marshal(wire{
		Type: e.Body.Type(), Time: e.Time.UTC().Format("2006-01-02T15:04:05.000000Z"),
		Run: e.Run, Agent: e.Agent, AgentID: e.AgentID, Depth: e.Depth, Step: e.Step, Node: e.Node, Item: e.Item, Within: e.Within,
	})
	if err != nil {
		return nil, err
	}
	body, err := value.Marshal(e.Body)
	if err != nil || len(body) == 2 {
		return head, err
	}
	head[len(head)-1] = ','
	return append(head, body[1:]...), nil
}

// MarshalJSON adds the duration in seconds.
func (b NodeFinished) MarshalJSON() ([]byte, error) {
	type plain NodeFinished
	return spans{took: &b.Duration}.marshal(plain(b))
}

// MarshalJSON adds the wait in seconds.
func (b Retry) MarshalJSON() ([]byte, error) {
	type plain Retry
	return spans{wait: &b.Wait}.marshal(plain(b))
}

// MarshalJSON adds the durations in seconds.
func (b IndexProgress) MarshalJSON() ([]byte, error) {
	type plain IndexProgress
	return spans{took: &b.Elapsed, left: &b.Left}.marshal(plain(b))
}

// MarshalJSON adds the duration in seconds.
func (b IndexFinished) MarshalJSON() ([]byte, error) {
	type plain IndexFinished
	return spans{took: &b.Duration}.marshal(plain(b))
}

// MarshalJSON adds the duration in seconds. No passages are an empty list.
func (b Retrieved) MarshalJSON() ([]byte, error) {
	type plain Retrieved
	if b.Sources == nil {
		b.Sources = []Passage{}
	}
	return spans{took: &b.Duration}.marshal(plain(b))
}

// MarshalJSON adds the duration in seconds.
func (b Finished) MarshalJSON() ([]byte, error) {
	type plain Finished
	return spans{took: &b.Duration}.marshal(plain(b))
}

// MarshalJSON returns the values as one object.
func (b StateUpdated) MarshalJSON() ([]byte, error) {
	return value.Marshal(struct {
		Set    bool        `json:"set,omitempty"`
		Values value.Value `json:"values"`
	}{b.Set, value.ObjectOf(b.Values...).Value()})
}
