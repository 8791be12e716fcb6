package team

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"loki/internal/base/ask"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
)

// Options configure New. The zero value of a field that is not required is its default.
type Options struct {
	Agent  string      // name of the root
	Limits Limits      // of the root
	Steps  steps.Steps // of the task; the zero value records nothing, and nothing can be resumed
	Events event.Scope // of the root; they say how deep it is
	Budget *run.Budget // of the root; nil bounds nothing

	// Start prepares children. It is required if there are any.
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
	// keys, such as that of another turn of a conversation. It must be the same on resume.
	Seed string

	Now func() time.Time // nil means time.Now

	// Merge merges the branch that a child has left into the work of the member that started it.
	Merge func(ctx context.Context, m *Member, branch string) error
}

// Starter prepares a child: it finds the agent and what the child needs. It is called once for
// each child and process, also when an interrupted run resumes, and perhaps from several
// goroutines. ctx lives as long as the child. The error is the result of the call that wanted the
// child, so it says what the model may do instead.
type Starter func(ctx context.Context, s Spawn) (Child, error)

// Spawn is a child to start.
type Spawn struct {
	Member   *Member // the child; its Budget is still that of its parent
	Agent    string  // name of an agent
	Prompt   string
	Worktree bool // the child works in a worktree, whatever its definition says
	Resumed  bool // the child was started before an interruption, and may have steps on record
}

// Child is what a [Starter] returns.
type Child struct {
	// Job makes the work of the child, which gets the Member of the [Spawn] for its tools and
	// questions. The methods of the Member may be called from then on. Its Start, Limit and Make
	// are used; the limit holds below the parent's budget.
	Job    run.Job
	Limits Limits // of the child's agent
	Graph  bool   // the child is a graph, which reads no messages
	// Leave, if set, ends the work in the worktree of the child, or leaves it for later if the child resumes. It returns the work that can be
	// merged, nil for none.
	Leave func(ctx context.Context, later bool) *Work
}

// Work is what a child has left on a branch.
type Work struct {
	Branch   string `json:"branch"`
	Commits  int    `json:"commits"`
	Diffstat string `json:"diffstat"`
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
	OutOfBudget Status = "out_of_budget" // it resumes if the run is resumed with a higher budget
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
	Work   *Work      `json:"work,omitempty"`  // on a branch, of a child in a worktree
}

// Team is the tree of agents that work on one task: its root and the root's descendants. It may be
// used from several goroutines.
type Team struct {
	o     Options
	root  *Member
	log   steps.Steps
	known map[string]*entry // entries read back, by the key of their call

	mu          sync.Mutex         // guards what follows, and what members say of it
	entries     int                // of the log
	members     map[string]*Member // by id: the root, and children that have not been collected
	ids         map[string]bool    // that children have or had
	escalations []*escalation      // that wait for an answer, in their order
	answers     map[string]string  // to escalations whose child has not come to its question again
	changed     chan struct{}      // closed, and made anew, when a child ends or asks
}

// New returns the team of a task, whose children end with ctx at the latest. What the team did
// before an interruption is read back from the record of the task, and children that had not ended
// resume at once. The caller calls [Member.Close] of the root at the end of the task.
func New(ctx context.Context, o Options) (*Team, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	t := &Team{
		o: o, log: o.Steps.At("team"),
		known: make(map[string]*entry), members: make(map[string]*Member), ids: make(map[string]bool),
		answers: make(map[string]string), changed: make(chan struct{}),
	}
	t.root = &Member{Agent: o.Agent, Depth: o.Events.Depth, Steps: o.Steps, Events: o.Events, Budget: o.Budget, team: t, limits: o.Limits, works: make(map[string]string)}
	t.members[""] = t.root
	if err := t.readLog(ctx); err != nil {
		return nil, err
	}
	if err := t.root.open(ctx); err != nil {
		t.root.Close()
		return nil, err
	}
	return t, nil
}

// Root returns the root: the agent of the task, or a node of a graph.
func (t *Team) Root() *Member { return t.root }

// wake wakes those who wait for a change. t.mu is held.
func (t *Team) wake() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// outside calls f without the lock. t.mu is held before and after.
func (t *Team) outside(f func()) {
	t.mu.Unlock()
	defer t.mu.Lock()
	f()
}

// hash returns a short name of key, 8 lower-case hex digits.
func (t *Team) hash(key string) string {
	sum := sha256.Sum256([]byte(t.o.Seed + "\x00" + key))
	return hex.EncodeToString(sum[:4])
}

// id returns the id of a new child, which ends with a hash of key. t.mu is held.
func (t *Team) id(prefix, key string) string {
	id := prefix + "_" + t.hash(key)
	for ; t.ids[id]; id = prefix + "_" + t.hash(key) {
		key += "'" // two keys with the same hash
	}
	t.ids[id] = true
	return id
}

// summaryKey is the part of the record that the summaries of children have.
const summaryKey = "summaries"

// summarize returns the output of a child as m gets it.
func (m *Member) summarize(ctx context.Context, r Result) (output string, used chat.Usage) {
	o := &m.team.o
	if o.Summarize == nil || r.Output == "" || len(r.Output) < m.limits.SummarizationThreshold {
		return r.Output, chat.Usage{}
	}
	var summary string
	err := m.safely(ctx, func() (err error) {
		summary, used, err = o.Summarize(ctx, Summary{
			Collector: m, Agent: r.Agent, Output: r.Output, Model: m.limits.SummarizationModel,
			Steps: o.Steps.At(summaryKey).At(r.ID),
		})
		return err
	})
	if err != nil || summary == "" {
		return r.Output, used
	}
	return summary, used
}

// exitStatus is r's outcome as models read it.
func (r Result) exitStatus() string {
	if r.Status == Done {
		return "Completed"
	}
	return fmt.Sprintf("Failed(%q)", r.Error)
}
