package api

import (
	"encoding/json"
	"time"

	"loki/internal/llm/chat"
	"loki/internal/workflow/graph/gate"
)

// AgentDetail describes an agent.
type AgentDetail struct {
	Name        string          `json:"name"`
	Kind        string          `json:"kind" enum:"plain,graph"`
	Version     string          `json:"version,omitempty"`
	Description string          `json:"description,omitempty"`
	Model       string          `json:"model,omitempty" doc:"that the agent names; absent if the one of the request or of the server answers"`
	Variables   []AgentVariable `json:"variables" nullable:"false"`
	Starters    []string        `json:"starters" nullable:"false" doc:"suggestions of what to ask"`
	Asks        bool            `json:"asks,omitempty" doc:"it is a graph whose nodes may ask the user"`
}

// AgentVariable is a variable of an agent.
type AgentVariable struct {
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Default     *string `json:"default,omitempty" doc:"absent: a value must be given"`
}

// RunRequest begins a run of an agent.
type RunRequest struct {
	Prompt    string            `json:"prompt,omitempty" doc:"what the agent is asked"`
	Variables map[string]string `json:"variables,omitempty" doc:"values of the agent's variables"`
	Model     string            `json:"model,omitempty" doc:"answers where the agent does not name a model"`
	Budget    *RunBudget        `json:"budget,omitempty"`
	gate.Rules
	Yes      bool `json:"yes,omitempty" doc:"tools run without asking; denied calls stay denied. Needs the scope write:runs, as answers do"`
	NoStream bool `json:"no_stream,omitempty" doc:"models are asked for replies in one piece"`

	NoCompensate bool `json:"no_compensate,omitempty" doc:"if the run fails or is canceled, what it did is not undone, and it can be resumed"`

	Webhooks []Webhook `json:"webhooks,omitempty" maxItems:"8" doc:"addresses that are notified of what happens in the run, besides those of the server's configuration"`

	Wait   float64 `json:"wait,omitempty" minimum:"0" maximum:"3600" doc:"answer once the run has ended or so many seconds are over; without it at once"`
	Stream bool    `json:"stream,omitempty" doc:"answer with the events of the run"`
}

// Webhook is an address that is notified of what happens in a run.
type Webhook struct {
	URL    string   `json:"url" minLength:"1" maxLength:"2048" doc:"https: or http:; private addresses are not notified, unless the server allows them"`
	Events []string `json:"events,omitempty" maxItems:"16" enum:"question,suspended,finished,failed,canceled" doc:"absent: all"`
	Secret string   `json:"secret,omitempty" maxLength:"512" doc:"signs the notices as Standard Webhooks have it; absent: they are not signed. It is never shown"`
}

// Notice is how far a notice of a webhook has come.
type Notice struct {
	Event  string     `json:"event" doc:"question, suspended, finished, failed or canceled; of an alert alert. and its kind"`
	URL    string     `json:"url,omitempty" doc:"scheme and host of the address; absent if these are secret, too"`
	Tries  int        `json:"tries"`
	At     time.Time  `json:"at" doc:"of the last try"`
	Status int        `json:"status,omitempty" doc:"HTTP status of the last try; absent if there was no answer"`
	Error  string     `json:"error,omitempty" doc:"of the last try; absent if the notice was taken"`
	Again  *time.Time `json:"again,omitempty" doc:"of the next try; absent if there is none"`
}

// RunBudget bounds what a run may use. Of several bounds, the first that is reached counts.
type RunBudget struct {
	USD     float64 `json:"usd,omitempty" minimum:"0" doc:"US dollars for models"`
	Tokens  int     `json:"tokens,omitempty" minimum:"0" doc:"input and output tokens together"`
	Seconds float64 `json:"seconds,omitempty" minimum:"0" maximum:"1000000000" doc:"of work since the run was started or resumed"`
}

// Resumption says how to resume a run.
type Resumption struct {
	Set map[string]json.RawMessage `json:"set,omitempty" doc:"keys of the state of a graph that change before the run resumes, with their new values"`

	Model    string `json:"model,omitempty" doc:"instead of the one that the run began with"`
	Force    bool   `json:"force,omitempty" doc:"although the agent has changed, or a part of the run is not on record"`
	Yes      bool   `json:"yes,omitempty" doc:"tools run without asking; denied calls stay denied"`
	NoStream bool   `json:"no_stream,omitempty" doc:"models are asked for replies in one piece"`

	NoCompensate bool `json:"no_compensate,omitempty" doc:"if the run fails or is canceled, what it did is not undone, and it can be resumed"`

	Budget *RunBudget `json:"budget,omitempty" doc:"its bounds replace the ones that the run was begun with and hold from then on; of a fork, those of the new run. The agent's own hold, too"`
}

// BulkRuns says what is done with many runs.
type BulkRuns struct {
	Action string `json:"action" enum:"resume,cancel,delete" doc:"resume: runs that failed, were interrupted, suspended or canceled; cancel: runs at work or waiting; delete: runs that have ended"`
	Where  string `json:"where" minLength:"1" maxLength:"4096" doc:"a condition, as --where has it" example:"status == \"failed\" && age > 3600"`
	Limit  int    `json:"limit,omitempty" minimum:"1" maximum:"10000" doc:"most runs, oldest first; absent: 10,000"`
	DryRun bool   `json:"dry_run,omitempty" doc:"only count the runs"`
}

// BulkJob is the work on many runs.
type BulkJob struct {
	ID      string     `json:"id,omitempty" doc:"empty for a dry run"`
	Action  string     `json:"action"`
	Where   string     `json:"where"`
	Status  string     `json:"status" enum:"running,done,stopped" doc:"stopped: the server was shut down before the end"`
	Matched int        `json:"matched" doc:"runs for which the condition holds"`
	Done    int        `json:"done" doc:"of them, those that were worked on, failures included"`
	Failed  int        `json:"failed" doc:"of these, those that failed"`
	Errors  []BulkFail `json:"errors" doc:"the first 100 of the failures"`
}

// BulkFail is a run on which the work failed.
type BulkFail struct {
	ID    string `json:"id"`
	Error string `json:"error"`
}

// Fork begins a run from a super-step of another one.
type Fork struct {
	Step *int `json:"step,omitempty" minimum:"0" doc:"super-step of the old run, 0 for its start; absent for the last one"`
	Resumption
}

// Undone is how far what a run did is undone, in visits of nodes that have a compensation.
type Undone struct {
	Nodes int `json:"nodes" doc:"undone"`
	Lost  int `json:"lost,omitempty" doc:"could not be undone"`
	Left  int `json:"left,omitempty" doc:"are undone when the run is resumed"`
}

// Run is a run on record. In a list, texts of 1 KiB and more are cut and end with "…".
type Run struct {
	ID       string `json:"id"`
	Kind     string `json:"kind" enum:"graph,agent,chat" doc:"agent: the turn of a plain agent"`
	Agent    string `json:"agent" doc:"of a chat its role, or chat"`
	AgentDir string `json:"agent_dir" doc:"on the server"`
	Dir      string `json:"dir" doc:"in which the run works, on the server"`
	Owner    string `json:"owner,omitempty" doc:"subject that the run belongs to; absent for one of the command line"`

	Origin *RunOrigin `json:"origin,omitempty" doc:"of a run that a schedule, a trigger or a client of MCP began"`

	Priority string `json:"priority" enum:"high,normal,low" doc:"what comes first of its model calls, and in the queue of the server"`
	Key      string `json:"concurrency_key,omitempty" doc:"the run waits until others with the key leave room for it"`

	Status     string    `json:"status" enum:"running,suspended,canceled,failed,done,interrupted,unrecorded,damaged" doc:"interrupted: its process is gone. unrecorded: a part of it is not on record. damaged: its record cannot be read"`
	Active     bool      `json:"active" doc:"a process is running it now"`
	Queued     bool      `json:"queued,omitempty" doc:"it waits until the server has room for it"`
	Waiting    int       `json:"waiting,omitempty" doc:"questions that wait for an answer"`
	Waits      []Wait    `json:"waits,omitempty" doc:"what a suspended run waits for besides answers"`
	Breakpoint string    `json:"breakpoint,omitempty" doc:"where a suspended run stopped as its user wanted: before NODE, after NODE or after super-step N. It continues when it is resumed"`
	Undone     *Undone   `json:"undone,omitempty" doc:"how far what the run did is undone, after it failed or was canceled; absent for one that undoes nothing"`
	Started    time.Time `json:"started"`
	Updated    time.Time `json:"updated"`
	Events     int       `json:"events,omitempty" doc:"events on record; absent in a list"`
	Steps      int       `json:"steps" doc:"super-steps done"`
	Failures   int       `json:"failures" doc:"failures that were tolerated: of nodes, those of subgraphs included, and of items of maps"`
	Prompt     string    `json:"prompt"`
	Parent     string    `json:"parent,omitempty" doc:"ID@STEP that the run was forked from"`
	Error      string    `json:"error,omitempty"`
	Code       string    `json:"code,omitempty" doc:"of the error"`
	Output     string    `json:"output,omitempty" doc:"of a run that is done"`
	Gap        *RunGap   `json:"gap,omitempty"`

	Budget *RunBudget `json:"budget,omitempty" doc:"that the run was begun or resumed with, beside that of the agent"`

	Tokens      int        `json:"tokens"`
	Cost        float64    `json:"cost" doc:"US dollars"`
	CostUnknown bool       `json:"cost_unknown,omitempty" doc:"the price of at least one call is not known"`
	Estimated   bool       `json:"estimated,omitempty" doc:"the tokens of at least one call are estimated"`
	Usage       chat.Usage `json:"usage"`
}

// RunOrigin says what started a run.
type RunOrigin struct {
	Kind        string     `json:"kind" enum:"schedule,trigger,mcp"`
	Name        string     `json:"name" doc:"of the schedule or trigger; stdio or http for a client of MCP"`
	Due         *time.Time `json:"due,omitempty" doc:"when a schedule said that the run starts"`
	LateSeconds float64    `json:"late_seconds,omitempty" doc:"how long after that it started"`
	Outside     bool       `json:"outside,omitempty" doc:"the prompt has data of a sender outside"`
}

// RunGap is a part of a run that is not on record.
type RunGap struct {
	Reason string         `json:"reason,omitempty"`
	Since  *time.Time     `json:"since,omitempty"`
	Step   int            `json:"step" doc:"the last super-step on record"`
	Nodes  map[string]int `json:"nodes,omitempty" doc:"visits that are not on record"`
	Status string         `json:"status,omitempty" doc:"how the run ended, if that is known"`
	Error  string         `json:"error,omitempty"`
}

// RunDetail is a run with its path.
type RunDetail struct {
	Run
	Visits  []Visit     `json:"visits" nullable:"false" doc:"of nodes, in order"`
	Nodes   []NodeTotal `json:"nodes" nullable:"false"`
	Agents  []RunAgent  `json:"agents,omitempty" doc:"of a run with child agents, each one before its children"`
	Calls   []RunCall   `json:"calls,omitempty" doc:"of tools, in the order in which they began"`
	Pending []Question  `json:"pending" nullable:"false" doc:"questions that wait"`
	Signals []Signal    `json:"signals,omitempty" doc:"that the run was given, in order"`
	Notices []Notice    `json:"notices,omitempty" doc:"of webhooks, in the order of the last tries"`
}

// Visit is one execution of a node.
type Visit struct {
	Step      int        `json:"step"`
	Node      string     `json:"node"`
	Type      string     `json:"type"`
	Number    int        `json:"visit" doc:"of the node's visits, from 1"`
	Started   time.Time  `json:"started"`
	Seconds   float64    `json:"seconds"`
	Targets   []string   `json:"targets,omitempty" doc:"nodes that it led to"`
	Usage     chat.Usage `json:"usage"`
	Retries   int        `json:"retries,omitempty"`
	Failed    bool       `json:"failed,omitempty"`
	Error     string     `json:"error,omitempty"`
	Tolerated int        `json:"tolerated,omitempty" doc:"failures inside of it that did not fail it: of items of a map, of nodes of its subgraph"`
	Canceled  bool       `json:"canceled,omitempty" doc:"others were faster, so its work was stopped or dropped"`
	Waiting   bool       `json:"waiting,omitempty" doc:"it has not ended: it waits"`
	Undoes    string     `json:"undoes,omitempty" doc:"the node whose effect it undoes, of which it is the compensation"`
	Inner     []Visit    `json:"inner,omitempty" doc:"visits of the nodes of its subgraph, or of the nodes of a map's items, with super-steps of their own"`
}

// NodeTotal sums up the visits of one node.
type NodeTotal struct {
	Node        string  `json:"node"`
	Type        string  `json:"type"`
	Visits      int     `json:"visits"`
	Seconds     float64 `json:"seconds"`
	Tokens      int     `json:"tokens"`
	Cost        float64 `json:"cost" doc:"US dollars"`
	CostUnknown bool    `json:"cost_unknown,omitempty" doc:"the price of at least one call is not known"`
	Estimated   bool    `json:"estimated,omitempty" doc:"the tokens of at least one call are estimated"`
	Retries     int     `json:"retries"`
	Failures    int     `json:"failures"`
}

// RunAgent is what an agent of a run did.
type RunAgent struct {
	Agent      string     `json:"agent"`
	Name       string     `json:"name" doc:"as people see it: critic[3] for an element of a map, critic-2 for the second one"`
	AgentID    string     `json:"agent_id,omitempty" doc:"of a child"`
	Depth      int        `json:"depth"`
	Parent     string     `json:"parent,omitempty" doc:"agent_id of the parent; absent for children of the first agent"`
	ParentNode string     `json:"parent_node,omitempty" doc:"node of the parent's graph that it worked for"`
	ParentItem *int       `json:"parent_item,omitempty" doc:"and its element of a map"`
	Status     string     `json:"status"`
	Error      string     `json:"error,omitempty"`
	Prompt     string     `json:"prompt,omitempty" doc:"of a child"`
	Seconds    float64    `json:"seconds" doc:"how long it took the last time it ran; 0 if it has not ended"`
	Tools      []ToolUse  `json:"tools" nullable:"false"`
	Usage      chat.Usage `json:"usage" doc:"without its children"`
	Total      chat.Usage `json:"total" doc:"with them"`
}

// ToolUse counts the calls of one tool.
type ToolUse struct {
	Name   string `json:"name"`
	Calls  int    `json:"calls"`
	Failed int    `json:"failed,omitempty"`
}

// RunCall is a call of a tool.
type RunCall struct {
	Node      string    `json:"node,omitempty" doc:"of the graph"`
	AgentID   string    `json:"agent_id,omitempty" doc:"of the child agent that called"`
	Name      string    `json:"name" doc:"of the tool"`
	Arguments string    `json:"arguments" doc:"JSON text as the model wrote it, or its first KiB"`
	Started   time.Time `json:"started"`
	Seconds   float64   `json:"seconds" doc:"until the result, with a question that waited; 0 if there is none"`
	Result    *string   `json:"result,omitempty" doc:"its first KiB; absent if there is none"`
	Failed    bool      `json:"failed,omitempty"`
}

// Question is a question of a run that waits for an answer.
type Question struct {
	Run      string     `json:"run" doc:"id of the run"`
	Agent    string     `json:"agent" doc:"of the run"`
	ID       string     `json:"id" doc:"unique in the run"`
	Step     int        `json:"step"`
	Node     string     `json:"node"`
	Item     *int       `json:"item,omitempty" doc:"number of the item of the map that asks, from 0; absent for a node of another type"`
	Kind     string     `json:"kind,omitempty" doc:"consent, choice, choices, text or secret; absent for a question of an older release"`
	Text     string     `json:"text"`
	Options  []string   `json:"options,omitempty"`
	Open     bool       `json:"open,omitempty" doc:"answers other than the options are accepted"`
	Multi    bool       `json:"multi,omitempty" doc:"the answer is any number of the options"`
	Default  *string    `json:"default,omitempty" doc:"taken after the deadline"`
	Rule     string     `json:"rule,omitempty" doc:"bound of the length of the answer"`
	Asked    time.Time  `json:"asked"`
	Deadline *time.Time `json:"deadline,omitempty"`

	Assignees []string `json:"assignees,omitempty" doc:"subjects and groups who may answer; absent: all who may see the run"`
}

// Wait is a wait of a node, until a time or for a signal.
type Wait struct {
	ID     string     `json:"id" doc:"unique in the run"`
	Step   int        `json:"step"`
	Node   string     `json:"node"`
	Signal string     `json:"signal,omitempty" doc:"name of the signal; absent for a wait for a time"`
	Since  time.Time  `json:"since"`
	Until  *time.Time `json:"until,omitempty" doc:"when the run resumes without a signal; absent for never"`
}

// SignalRequest gives a run a signal.
type SignalRequest struct {
	Value json.RawMessage `json:"value,omitempty" doc:"any JSON; absent: null"`
}

// MessageRequest says something to a model while it works.
type MessageRequest struct {
	Text string `json:"text" minLength:"1" maxLength:"65536"`
	When string `json:"when,omitempty" enum:"next,now" doc:"now: after the next results of tools, or when the answer is complete; next: when the answer is complete" default:"next"`
}

// SentMessage is a message that was sent to a model while it works.
type SentMessage struct {
	ID   string `json:"id"`
	Run  string `json:"run" doc:"id of the run at work"`
	Text string `json:"text"`
	When string `json:"when"`
}

// Signal is a signal that a run was given.
type Signal struct {
	Run    string          `json:"run" doc:"id of the run"`
	Number int             `json:"number" doc:"of the signals of the run, from 1"`
	Name   string          `json:"name"`
	Value  json.RawMessage `json:"value"`
	At     time.Time       `json:"at"`
	Taken  bool            `json:"taken,omitempty" doc:"a node has taken it"`
}

// Graph is the graph of an agent.
type Graph struct {
	Name        string      `json:"name"`
	Description string      `json:"description,omitempty"`
	Start       string      `json:"start" doc:"id of the first node"`
	Nodes       []GraphNode `json:"nodes" nullable:"false"`
	Edges       []GraphEdge `json:"edges" nullable:"false"`
}

// GraphNode is a node of a graph.
type GraphNode struct {
	ID    string `json:"id"`
	Type  string `json:"type"`
	State string `json:"state,omitempty" enum:"done,running,failed,waiting,skipped" doc:"in the run; absent for a node that was not reached"`

	Instructions string `json:"instructions,omitempty" doc:"of an llm node: template of its instructions"`
	Prompt       string `json:"prompt,omitempty" doc:"of an llm node: template of its prompt"`
	Over         string `json:"over,omitempty" doc:"of a map: template of its list"`
	As           string `json:"as,omitempty" doc:"of a map: the key that holds the element"`
	Branch       string `json:"branch,omitempty" doc:"of a map: the node that is run for each element"`
}

// GraphEdge is a way from one node to another.
type GraphEdge struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Kind  string `json:"kind" doc:"key of the node that declares it, such as next, routes, fallback"`
	Label string `json:"label,omitempty" doc:"answer that leads this way"`
	ID    string `json:"id" doc:"place in the definition, by which events name it: review.next[1], review.routes.yes"`
	Taken bool   `json:"taken,omitempty" doc:"the run went this way"`
}

// RunState is the state of a run after a super-step.
type RunState struct {
	Run   string          `json:"run" doc:"id of the run"`
	Step  int             `json:"step"`
	State json.RawMessage `json:"state" doc:"the values by key"`
	Next  []string        `json:"next" nullable:"false" doc:"nodes that come next"`

	Visits map[string]int `json:"visits,omitempty" doc:"how often each node has run"`
	Loops  []LoopCount    `json:"loops,omitempty" doc:"edges with a max that the run has taken"`
}

// LoopCount says how often a run took an edge with a max.
type LoopCount struct {
	Edge  string `json:"edge" doc:"its place in the definition, such as draft.next[1]"`
	Taken int    `json:"taken"`
	Max   int    `json:"max,omitempty" doc:"absent if the graph on record does not have the edge"`
}

// Change is how the value of a key differs between two states.
type Change struct {
	Key    string          `json:"key"`
	Before json.RawMessage `json:"before,omitempty" doc:"absent if the key is new"`
	After  json.RawMessage `json:"after,omitempty" doc:"absent if the key is gone"`
}

// Step is something on record that reached outside of a run: the reply of a model, the result of a tool or
// a script, an answer.
type Step struct {
	Number int             `json:"number" doc:"in the order of recording, from 1"`
	Step   int             `json:"step" doc:"super-step"`
	Node   string          `json:"node,omitempty"`
	Key    string          `json:"key"`
	Kind   string          `json:"kind"`
	Name   string          `json:"name,omitempty" doc:"of what was called: a model, a tool, a script"`
	Done   bool            `json:"done" doc:"false: it was begun, and how it ended is unknown"`
	At     time.Time       `json:"at"`
	Size   int             `json:"size" doc:"bytes of the result"`
	Result json.RawMessage `json:"result,omitempty" doc:"absent in a list"`
}
