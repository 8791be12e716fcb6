package team

import (
	"context"
	"time"

	"loki/internal/ask"
	"loki/internal/chat"
	"loki/internal/event"
	"loki/internal/run"
	"loki/internal/steps"
	"loki/internal/tool"
)

// Options configure New. The zero value of a field that is not required is its default.
type Options struct {
	Agent  string      // name of the root
	Limits Limits      // of the root
	Steps  steps.Steps // of the task; the zero value records nothing, and nothing can be resumed
	Events event.Scope // of the root
	Budget *run.Budget // of the root; nil bounds nothing

	// Start prepares children. It is required if the root can spawn.
	Start Starter
	// Available lists the agents that can be started at all, by name. It may be nil.
	Available func(ctx context.Context) ([]Candidate, error)
	// Summarize shortens the long output of a child that is collected. If it is nil or fails,
	// the collector gets the output as it is.
	Summarize func(ctx context.Context, s Summary) (summary string, used chat.Usage, err error)

	// Direct puts the questions of children to the user. It is set if the root is a graph, which
	// cannot answer them; if it is nil they are escalated to the model of the root.
	Direct ask.Asker

	// Seed makes the ids of children differ from those of another team whose calls have the same
	// keys, such as that of another turn of a conversation. It has to be the same on resume.
	Seed string

	Now func() time.Time // nil means time.Now
	// OnPanic, if set, receives the panics of children, for the log.
	OnPanic func(agent string, value any, stack []byte)
}

// Starter prepares a child: it finds the agent and what the child needs. It is called once for
// each child and process, also when an interrupted run goes on, and perhaps from several
// goroutines. ctx lives as long as the child. The error is the result of the call that wanted the
// child, so it says what the model may do instead.
type Starter func(ctx context.Context, s Spawn) (Child, error)

// Spawn is a child to start.
type Spawn struct {
	Member  *Member // the child; its Budget is still that of its parent
	Agent   string  // name of an agent
	Prompt  string
	Resumed bool // the child was started before an interruption, and may have steps on record
}

// Child is what a [Starter] returns.
type Child struct {
	// Job makes the work of the child, which gets the Member of the [Spawn] for its tools and
	// questions. Its Start, Limit and Make are used; the limit holds below the parent's budget.
	Job    run.Job
	Limits Limits // of the child's agent
}

// Candidate is an agent that can be started.
type Candidate struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// Summary is an output to be shortened.
type Summary struct {
	Collector *Member // who gets the summary
	Agent     string  // whose output it is
	Output    string
	Model     string      // id, empty for the collector's own model
	Steps     steps.Steps // record of the model call
}

// Status says how a child ended.
type Status string

// The statuses.
const (
	Done        Status = "done"
	Failed      Status = "failed"
	TimedOut    Status = "timed_out"     // it worked, or did nothing, for too long
	Canceled    Status = "canceled"      // by its parent, or because its parent ended
	OutOfBudget Status = "out_of_budget" // it goes on if the run is resumed with a higher budget
	Suspended   Status = "suspended"     // it waits for an answer of the user, or for its provider
)

// Result is how a child ended.
type Result struct {
	ID     string     `json:"id"`
	Agent  string     `json:"agent"`
	Status Status     `json:"status"`
	Output string     `json:"output"`          // as far as it came if it is not Done
	Error  string     `json:"error,omitempty"` // with all causes, empty if it is Done
	Usage  chat.Usage `json:"usage"`           // of the child and all its descendants
	Own    chat.Usage `json:"own"`             // of the child alone
}

// Team is the tree of agents that work on one task: its root and the root's descendants. It may be
// used from several goroutines.
type Team struct{ root *Member }

// New returns the team of a task, whose children end with ctx at the latest. What the team did
// before an interruption is read back from the record of the task, and children that had not ended
// go on at once. The caller calls [Member.Close] of the root at the end of the task.
func New(ctx context.Context, o Options) (*Team, error) { return &Team{root: new(Member)}, ctx.Err() }

// Root returns the root: the agent of the task, or a node of a graph.
func (t *Team) Root() *Member { return t.root }

// Member is an agent in a team. The exported fields do not change once the member works.
type Member struct {
	ID     string      // as models and events name it; empty for the root
	Agent  string      // name
	Depth  int         // 0 for the root
	Parent *Member     // nil for the root
	Steps  steps.Steps // record of a child's work; of the root, that of the task
	Events event.Scope // of the member's work
	Budget *run.Budget // nil bounds nothing
}

// Tools returns the tools of the member: those to work with children if its limits allow any, and
// those to send and read messages. They are stateful, see [tool.Hints].
func (m *Member) Tools() []tool.Tool { return nil }

// Asker returns what puts the questions of a child that its model asks with the tools user__* to
// the model of the root, or to [Options.Direct]. It never answers questions of consent.
func (m *Member) Asker() ask.Asker { return ask.Unavailable{} }

// Run starts a child and waits for it. Its id comes from key, which is unique in the task and the
// same on resume. It is not bound by MaxConcurrent, and cannot be collected or sent messages. The
// error is that of ctx or of the Starter, or one with code Suspended or Limit, if the task cannot
// go on; how the child ended otherwise is in the result.
func (m *Member) Run(ctx context.Context, key, agent, prompt string) (Result, error) {
	return Result{}, ctx.Err()
}

// Notice returns what the model of the root has to be reminded of together with the results of its
// calls, empty for nothing: questions of children that wait for an answer.
func (m *Member) Notice(ctx context.Context) string { return "" }

// Close cancels all children of m, waits for them, and returns what they and their descendants
// used, with what was spent on summaries for m. Called again it returns zero, so that nothing is
// counted twice: work that has a member closes it and adds that to its own usage.
func (m *Member) Close() chat.Usage { return chat.Usage{} }
