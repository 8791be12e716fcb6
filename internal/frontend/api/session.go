package api

import (
	"time"

	"loki/internal/llm/chat"
)

// SessionRequest begins a session.
type SessionRequest struct {
	Alias     string            `json:"alias,omitempty" maxLength:"200" doc:"name, unique among the sessions of the agent"`
	Role      string            `json:"role,omitempty" maxLength:"256"`
	Agent     string            `json:"agent,omitempty" maxLength:"256" doc:"name of a plain agent"`
	RAG       string            `json:"rag,omitempty" maxLength:"256" doc:"name of a knowledge base"`
	Model     string            `json:"model,omitempty" maxLength:"256" doc:"client:model"`
	Variables map[string]string `json:"variables,omitempty" doc:"values of the agent's variables"`
}

// RegenerateRequest asks for another answer to the last question of a session.
type RegenerateRequest struct {
	Model  string `json:"model,omitempty" maxLength:"256" doc:"client:model; absent for that of the session"`
	Mode   string `json:"mode,omitempty" enum:"ask,plan" doc:"as for a completion; the session keeps it"`
	Stream bool   `json:"stream,omitempty" doc:"answer with server-sent events, as the header Accept: text/event-stream does"`
	Seen
}

// SessionFork begins a session with the turns of another one.
type SessionFork struct {
	Messages *int `json:"messages,omitempty" minimum:"0" doc:"only turns that end within the first so many messages; absent for all"`
	Seen
}

// Seen says which messages of a session a request is about.
type Seen struct {
	Version string `json:"version,omitempty" maxLength:"64" doc:"of the messages that the caller has seen: if the session has others now, the request is refused with status 409; absent for the messages that it has now, whatever they are"`
}

// Session is what is known of a session.
type Session struct {
	ID        string        `json:"id"`
	Alias     string        `json:"alias,omitempty"`
	Title     string        `json:"title,omitempty" doc:"what Loki called it"`
	Agent     string        `json:"agent,omitempty"`
	Role      string        `json:"role,omitempty"`
	RAG       string        `json:"rag,omitempty"`
	Model     string        `json:"model"`
	CreatedAt time.Time     `json:"created_at,omitzero"`
	Owner     *SessionOwner `json:"owner,omitempty" doc:"for those who may see the sessions of all"`
}

// SessionOwner is whose session it is.
type SessionOwner struct {
	Subject string `json:"subject"`
	KeyID   string `json:"key_id,omitempty"`
}

// SessionDetails is a session with a page of its messages.
type SessionDetails struct {
	Session

	Settings  map[string]any `json:"settings" doc:"the ones that are set, as in state.yaml"`
	Usage     TokenUsage     `json:"usage" doc:"of all model calls of the session"`
	Tokens    int            `json:"tokens" doc:"that the messages count"`
	Messages  []chat.Message `json:"messages" nullable:"false" doc:"oldest first, in the form of messages.jsonl"`
	Count     int            `json:"message_count" doc:"of all messages that count"`
	NextAfter int            `json:"next_after,omitempty" doc:"value of the parameter after for the next page; absent on the last one"`
	Version   string         `json:"version" doc:"of all messages that count: another one after each change of them"`
	Waiting   []WaitingTurn  `json:"waiting,omitempty" doc:"turns that wait for answers, oldest first; the session has their messages once they have ended"`
}

// WaitingTurn is a turn whose run waits for answers.
type WaitingTurn struct {
	Run    string `json:"run" doc:"whose questions are at /v1/runs/{id}/questions"`
	Prompt string `json:"prompt" doc:"what the user said"`
}

// SessionEntry is a session in the list.
type SessionEntry struct {
	ID         string        `json:"id"`
	Alias      string        `json:"alias,omitempty"`
	Agent      string        `json:"agent,omitempty"`
	ModifiedAt time.Time     `json:"modified_at" doc:"when something was last said or set"`
	Turns      int           `json:"turns"`
	First      string        `json:"first,omitempty" doc:"beginning of the first question"`
	Error      string        `json:"error,omitempty" doc:"why it cannot be read"`
	Owner      *SessionOwner `json:"owner,omitempty" doc:"for those who may see the sessions of all"`
}

// SessionCompressed says what a compression did.
type SessionCompressed struct {
	Messages int    `json:"messages" doc:"that the recap replaces"`
	Before   int    `json:"tokens_before"`
	After    int    `json:"tokens_after"`
	Recap    string `json:"recap"`
}

// RoleRequest gives a session a role.
type RoleRequest struct {
	Name string `json:"name" minLength:"1" maxLength:"256"`
}

// AgentRequest makes a session one of an agent.
type AgentRequest struct {
	Name      string            `json:"name" minLength:"1" maxLength:"256"`
	Variables map[string]string `json:"variables,omitempty"`
}

// RAGRequest has a session answer from a knowledge base.
type RAGRequest struct {
	Name string `json:"name" minLength:"1" maxLength:"256"`
}

// CommandJob is a command of a model that continues after the call that started it.
type CommandJob struct {
	ID      string `json:"id"`
	Command string `json:"command"`
	Status  string `json:"status" enum:"running,exited,killed"`
	Exit    *int   `json:"exit,omitempty" doc:"its exit status"`
	Level   string `json:"level,omitempty" doc:"of the sandbox; absent without one"`
	Ports   []int  `json:"ports,omitempty" doc:"at which it is reached at 127.0.0.1 of the server"`
	Bytes   int64  `json:"bytes" doc:"that it printed"`
}

// JobOutput is a part of the output of a [CommandJob].
type JobOutput struct {
	Status  string `json:"status" enum:"running,exited,killed"`
	Exit    *int   `json:"exit,omitempty" doc:"its exit status"`
	From    int64  `json:"from" doc:"position of the first byte"`
	To      int64  `json:"to" doc:"position after the last byte, which is since of the next request"`
	Dropped int64  `json:"dropped,omitempty" doc:"bytes from since on that are not kept anymore"`
	Output  string `json:"output"`
}

// Job is work in the background.
type Job struct {
	ID         string       `json:"id"`
	Object     string       `json:"object" enum:"job"`
	Kind       string       `json:"kind" enum:"rag_rebuild"`
	Target     string       `json:"target" doc:"name of what is worked on"`
	Status     string       `json:"status" enum:"running,done,failed,canceled"`
	CreatedAt  time.Time    `json:"created_at"`
	FinishedAt *time.Time   `json:"finished_at,omitempty"`
	Progress   *JobProgress `json:"progress,omitempty" doc:"absent before the first one"`
	Warnings   []string     `json:"warnings,omitempty"`
	Error      *ErrorBody   `json:"error,omitempty"`
}

// JobProgress is how far a rebuild has come.
type JobProgress struct {
	Document string `json:"document,omitempty" doc:"that was read last"`
	Done     int    `json:"done" doc:"documents"`
	Total    int    `json:"total" doc:"documents that are known so far"`
	Kept     int    `json:"kept" doc:"part of done that had not changed"`
	Chunks   int    `json:"chunks" doc:"that were indexed"`
}

// Limit is what is known of how many calls a provider takes.
type Limit struct {
	Client      string             `json:"client"`
	Model       string             `json:"model"`
	Concurrency int                `json:"concurrency" doc:"calls at once"`
	AtWork      int                `json:"at_work" doc:"calls under way"`
	Waiting     int                `json:"waiting" doc:"calls that wait"`
	Remaining   map[string]float64 `json:"remaining,omitempty" doc:"requests and tokens that are left, by limit"`
	Reset       time.Time          `json:"reset,omitzero" doc:"when nothing is used of them"`
	PausedUntil time.Time          `json:"paused_until,omitzero" doc:"when the provider takes calls again"`
	Breaker     string             `json:"breaker" enum:"closed,open,trying" doc:"open: the provider did not answer the last calls"`
	Calls       int                `json:"calls"`
	Refused     int                `json:"refused"`
}

// MCPInfo counts the connections to MCP servers.
type MCPInfo struct {
	Started       int64   `json:"started" doc:"connections that were made"`
	ActiveHits    int64   `json:"active_hits" doc:"requests that shared a connection in use"`
	IdleHits      int64   `json:"idle_hits" doc:"requests that took an idle connection"`
	Misses        int64   `json:"misses" doc:"requests that made a connection"`
	HitRate       float64 `json:"hit_rate" doc:"share of the requests that did not make one, 0 to 1"`
	IdleEvictions int64   `json:"idle_evictions" doc:"closed because they were idle for too long"`
	CapEvictions  int64   `json:"cap_evictions" doc:"closed because too many were idle"`
	HealthOK      int64   `json:"health_ok"`
	HealthFailed  int64   `json:"health_failed"`
	Idle          int     `json:"idle" doc:"connections"`
	InUse         int     `json:"in_use" doc:"connections"`
}

// MCPReloaded says what mcp.json has.
type MCPReloaded struct {
	Servers []string `json:"servers" nullable:"false" doc:"names"`
}
