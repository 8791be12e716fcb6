// Package node implements the types of graph nodes.
//
// A [Runner] executes one task at a time: it renders the node's templates against the
// task's draft of the state, does the work, applies state_updates and returns where the run
// goes next. What reaches outside (models, scripts, the user) is made as a recorded step and
// reported as events.
package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"time"

	"loki/internal/agent/team"
	"loki/internal/agent/team/job"
	"loki/internal/agent/workspace/skill"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/base/process"
	"loki/internal/base/process/awake"
	"loki/internal/base/process/tempdir"
	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/tool"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// Options configure New. All fields but Asker are required; agents without llm nodes
// need no Engine, agents without script nodes no Scripts.
type Options struct {
	Plan    *graph.Plan
	Engine  *engine.Engine
	Context engine.RequestContext // copied for every request: model and sampling of the agent
	Asker   ask.Asker             // answers the questions of nodes; nil means that the user cannot be asked
	// Escalated says that Asker is not the user but another agent. Such questions are neither
	// shown to the user nor recorded as ones that wait for an answer.
	Escalated bool
	// User answers the questions of tools for consent; nil is Asker.
	User    ask.Asker
	Scripts Scripts
	Tools   tool.Set // the ones that llm nodes may list and tool nodes name
	// Servers returns the tools of MCP servers of the agent; nil if there are none.
	Servers func(ctx context.Context, ids []string) ([]tool.Tool, error)
	// MoreOfServers returns the tools of the servers that work by now, without starting any; nil if there are none.
	MoreOfServers func(ctx context.Context, ids []string) []tool.Tool
	// ServerTool returns a tool of an MCP server of the agent; nil if there are none.
	ServerTool func(ctx context.Context, server, name string) (tool.Bound, error)
	// Calls says how tools are called: who judges the calls, and which limits they have. The
	// node sets the fields that depend on it.
	Calls tool.Options
	Agent string // name of the agent, for messages
	Dry   bool   // tool nodes call nothing: their result shows the call
	// OldWrites says that what a node writes does not count if it is what was there: so it was when the run began.
	OldWrites bool

	// Knowledge are the knowledge bases of rag nodes, by the ids of the nodes.
	Knowledge map[string]Knowledge

	// Skills returns what loads the skills that a setting names, and the list of them; nil if there are none.
	Skills func(ctx context.Context, setting string) (*skill.Loader, string, error)

	// Memory returns what is remembered for a prompt, to be put in front of it, and the tools by which the model of a task uses the memory in a
	// mode. In a resumed task the text is that on record.
	Memory func(ctx context.Context, t *run.Task, mode chat.Memory, prompt string) (recalled string, tools []tool.Tool, err error)

	// Jobs are the commands of models that continue after their call; nil if there can be none.
	Jobs *job.List

	// Team says how a node starts other agents: what is not particular to the task. Nil means
	// that it cannot.
	Team func(n *graph.Node) team.Options

	Cache  Cache            // nil caches nothing
	Now    func() time.Time // nil means time.Now
	Sleep  func(ctx context.Context, d time.Duration) error
	Random func() float64 // from 0 up to 1; nil means a random source
}

// Runner executes the nodes of one graph run. It is an [run.Executor].
type Runner struct {
	Options

	// Of the nodes of a subgraph, whose places and names are below those of the node that runs it.
	around string // the place of the node, with its visit and try; empty outside of subgraphs
	within string // its name in events
	static string // its name in the definition
}

// Close removes the temporary files of nodes of processes that were killed.
// Call it when the run is over.
func (r *Runner) Close() { tempdir.Sweep(os.TempDir()) }

// New returns a Runner.
func New(o Options) *Runner {
	o.Asker = cmp.Or[ask.Asker](o.Asker, ask.Unavailable{})
	o.User = cmp.Or(o.User, o.Asker)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = retry.Sleep
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	return &Runner{Options: o}
}

// product is the result of a node's work.
type product struct {
	result  value.Value // value of the scoped variable of state_updates
	wanted  value.Value // rendered state_updates entry of the wanted key
	updated bool        // there was such an entry
	targets []string
	taken   []string // ids of the edges of a choice that lead there
	ended   bool
	output  string // of an end node
	failure *graph.Failure
	inner   graph.Failed // tolerated in its subgraph or its items
}

// Execute implements [run.Executor].
func (r *Runner) Execute(ctx context.Context, t *run.Task) graph.Result {
	p, err := r.begin(ctx, t)
	if err == nil {
		p, err = r.fit(ctx, t, p)
	}
	if err != nil {
		return graph.Result{Err: err}
	}
	if r.OldWrites {
		t.Draft.DropUnchanged()
	}
	return graph.Result{Targets: p.targets, Taken: p.taken, Ended: p.ended, Output: p.output, Failure: p.failure, Inner: p.inner}
}

// begin runs the node of t, unless it has failed before that.
func (r *Runner) begin(ctx context.Context, t *run.Task) (product, error) {
	if t.Short == nil {
		return r.work(ctx, t, "")
	}
	return r.fail(ctx, t, t.Short)
}

// work runs the node of t. wanted is the state key whose state_updates entry the caller
// needs, empty for none.
func (r *Runner) work(ctx context.Context, t *run.Task, wanted string) (product, error) {
	switch t.Node.Type {
	case graph.LLMNode:
		return r.llm(ctx, t, wanted)
	case graph.ScriptNode:
		return r.script(ctx, t)
	case graph.AgentNode:
		return r.agent(ctx, t, wanted)
	case graph.RAGNode:
		return r.rag(ctx, t, wanted)
	case graph.GraphNode:
		return r.subgraph(ctx, t, wanted)
	case graph.ToolNode:
		return r.tool(ctx, t, wanted)
	case graph.WaitNode:
		return r.wait(ctx, t)
	case graph.ApprovalNode: // their timeout is a deadline for the answer
		return r.approval(ctx, t, wanted)
	case graph.InputNode:
		return r.input(ctx, t, wanted)
	case graph.MapNode:
		return r.mapOver(ctx, t)
	default:
		return r.end(t)
	}
}

// timeoutError says that a node took longer than its timeout.
type timeoutError struct {
	what  string
	limit time.Duration
}

func (e *timeoutError) Error() string { return fmt.Sprintf("%s timed out after %s", e.what, e.limit) }

// within calls fn and ends its context after the node's timeout, if it has one.
func within[T any](ctx context.Context, n *graph.Node, fn func(context.Context) (T, error)) (T, error) {
	if !n.HasTimeout {
		return fn(ctx)
	}
	limit := &timeoutError{what: fmt.Sprintf("%s node", n.Type), limit: n.Timeout}
	timed, cancel := awake.WithTimeoutCause(ctx, n.Timeout, limit)
	defer cancel()
	result, err := fn(timed)
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(timed), limit) {
		return result, limit
	}
	return result, err
}

// unfitError is a failure of what the run depends on, not of the node's work: something is
// missing that was there when the run was checked. Another node cannot make up for it, and
// continuing would hide it.
type unfitError struct {
	code fault.Code
	err  error
}

func (e *unfitError) Error() string         { return e.err.Error() }
func (e *unfitError) Unwrap() error         { return e.err }
func (e *unfitError) FaultCode() fault.Code { return e.code }

// asUnfit returns err as an unfitError if a limit of the system was reached, which says
// nothing about the work. Other errors it returns as they are.
func asUnfit(err error) error {
	start := is[*process.StartError](err)
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), start && process.IsLimit(err):
		return &unfitError{fault.Failure, fault.Wrap(fault.Failure, err, "").
			WithHint("a limit of the system is reached: raise it (ulimit -n, ulimit -u) or lower settings.max_concurrency")}
	case start && errors.Is(err, syscall.ENOSPC):
		return &unfitError{fault.Failure, fault.Wrap(fault.Failure, err, "").WithHint("free some space in the directory of temporary files")}
	}
	return err
}

// fail returns the product of a node that failed with err: it goes to the fallback or, if the run allows that, to the next. The
// error is err if the run cannot continue, see tolerate.
func (r *Runner) fail(ctx context.Context, t *run.Task, err error) (product, error) {
	p, err := r.tolerate(ctx, t, err)
	if err != nil {
		return p, err
	}
	return r.exit(ctx, t, p)
}

// tolerate returns the product of a node that failed with err if the run can continue, without where it goes, and err
// otherwise. It does not tolerate a cancellation, a question that waits for the user, a used-up
// budget, unless it is that of a subgraph alone, and an unfitError. Of the items of a map it tolerates those of llm nodes,
// whose failure is their result.
func (r *Runner) tolerate(ctx context.Context, t *run.Task, err error) (product, error) {
	if ctx.Err() != nil {
		return product{}, context.Cause(ctx)
	}
	if code := fault.CodeOf(err); code == fault.Suspended || code == fault.Limit && !is[*limitError](err) || code == fault.Canceled {
		return product{}, err
	}
	if err = asUnfit(err); is[*unfitError](err) {
		return product{}, err
	}
	if _, ok := r.Plan.OnFailure(t.Node); !ok || isItem(t) && t.Node.Type != graph.LLMNode {
		return product{}, err
	}
	return product{failure: &graph.Failure{Node: t.Node.ID, Type: t.Node.Type, Message: short(err), Unhandled: !r.Plan.Handles(t.Node)}}, nil
}

// fit returns p if what the node wrote fits the schema of the state, and else what comes of the failure that this is. Nothing that
// the node wrote counts then.
func (r *Runner) fit(ctx context.Context, t *run.Task, p product) (product, error) {
	misfit := r.Plan.Graph().CheckDraft(t.Draft)
	if misfit == nil {
		return p, nil
	}
	t.Draft.Discard()
	failed, err := r.tolerate(ctx, t, misfit)
	if err != nil {
		return failed, err
	}
	if p.failure != nil { // it comes first, and its text may be what does not fit
		failed.failure = p.failure
	}
	return r.exit(ctx, t, failed)
}

// shortLength bounds the text of an error in state and prompts, in bytes.
const shortLength = 600

// short returns the text of err, cut to a length that fits a prompt.
func short(err error) string { return text.Cut(strings.TrimSpace(err.Error()), shortLength) }

// end applies the last updates and renders the run's output.
func (r *Runner) end(t *run.Task) (product, error) {
	t.Draft.ApplyUpdates(t.Node.Updates, "", value.Value{}, "")
	return product{ended: true, output: t.Node.End.Output.Lenient(t.Draft)}, nil
}

// request returns the context of a model request made for t.
func (r *Runner) request(t *run.Task) *engine.RequestContext {
	rc := r.Context
	rc.Events, rc.Steps = t.Events, t.Steps
	return &rc
}

// addUsage adds the usage of a request to that of its task.
func addUsage(t *run.Task, u chat.Usage) { t.Usage = t.Usage.Add(u) }
