package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/agent"
	"loki/internal/ask"
	"loki/internal/chat"
	"loki/internal/event"
	"loki/internal/fault"
	"loki/internal/graph"
	"loki/internal/run"
	"loki/internal/run/sqlite"
	"loki/internal/value"
)

// storeFile is the name of the file that holds the runs, in the state directory.
const storeFile = "runs.db"

// Runs opens the store of runs. The caller closes it.
func (a *App) Runs(durability graph.Durability) (run.Store, error) {
	return sqlite.Open(filepath.Join(a.Paths.StateDir, storeFile), sqlite.Options{
		Durability: sqlite.Durability(durability), Hook: a.journalHook,
	})
}

// newJournal begins the record of a run. A run that cannot be recorded runs all the
// same: then the journal is nil, and the user is warned. A dry run is not recorded.
func (a *App) newJournal(ctx context.Context, r GraphRun, start run.Checkpoint, parent string) (run.Journal, func(), error) {
	none := func() {}
	durability := r.Graph.Settings.Durability
	if durability == graph.DurabilityOff || a.dryRun {
		return nil, none, nil
	}
	journal, store, err := a.createRun(ctx, durability, r, start, parent)
	if err != nil {
		if parent != "" || ctx.Err() != nil {
			return nil, none, err
		}
		return nil, none, warnUnrecorded(ctx, r, err)
	}
	return journal, func() { closeAll(journal, store) }, nil
}

func (a *App) createRun(ctx context.Context, d graph.Durability, r GraphRun, start run.Checkpoint, parent string) (run.Journal, run.Store, error) {
	store, err := a.Runs(d)
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.Getwd()
	if err != nil {
		dir = ""
	}
	journal, err := store.Create(ctx, run.Info{
		Agent: r.Agent.Name, AgentDir: r.Agent.Dir, Dir: dir, Graph: r.Graph.Name,
		Fingerprint: graph.Fingerprint(r.Graph), Definition: r.Graph.Text,
		Prompt: r.Prompt, Variables: r.Variables, Model: r.Model, Parent: parent,
	}, start)
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	return journal, store, nil
}

// closeAll gives the lease of a run back. What fails here was told before, or costs
// no more than the time until the lease expires.
func closeAll(j run.Journal, s run.Store) {
	_ = j.Close()
	_ = s.Close()
}

func warnUnrecorded(ctx context.Context, r GraphRun, err error) error {
	if r.Emitter == nil {
		return nil
	}
	text := fmt.Sprintf("the run is not recorded and cannot be resumed: %v", err)
	if hint := fault.HintOf(err); hint != "" {
		text += "; " + hint
	}
	return event.NewScope(r.Emitter, event.Source{Agent: r.Agent.Name}, nil).Emit(ctx, event.Warning{Text: text})
}

// ResumeRun is what it takes to go on with a run.
type ResumeRun struct {
	ID       string            // or a beginning of it; "" for the newest unfinished run of this directory
	Answers  map[string]string // to pending questions, by id
	Answer   *string           // to the only pending question, nil for none
	Force    bool              // go on although the graph has changed
	NoStream bool
	Emitter  event.Emitter
	Asker    ask.Asker
}

// Resume goes on with a run that did not end.
func (a *App) Resume(ctx context.Context, r ResumeRun) (run.Outcome, error) {
	if a.dryRun {
		return run.Outcome{}, errDryResume()
	}
	store, err := a.Runs(graph.DurabilityProcess)
	if err != nil {
		return run.Outcome{}, err
	}
	defer store.Close()
	info, err := findRun(ctx, store, r.ID)
	if err != nil {
		return run.Outcome{}, err
	}
	g, err := a.resumedGraph(ctx, store, info, r.Force)
	if err != nil {
		return run.Outcome{}, err
	}
	resumed := GraphRun{
		Agent: agent.Ref{Name: info.Agent, Dir: info.AgentDir, Arg: info.AgentDir}, Graph: g, Prompt: info.Prompt,
		Variables: info.Variables, Model: info.Model, NoStream: r.NoStream, Emitter: r.Emitter, Asker: r.Asker,
	}
	if graph.Fingerprint(g) != info.Fingerprint {
		if err := a.check(ctx, resumed); err != nil {
			return run.Outcome{}, err
		}
	}
	if err := giveAnswers(ctx, store, info.ID, g, r); err != nil {
		return run.Outcome{}, err
	}
	if d := g.Settings.Durability; d == graph.DurabilityPower {
		store.Close()
		if store, err = a.Runs(d); err != nil {
			return run.Outcome{}, err
		}
		defer store.Close()
	}
	journal, found, err := store.Open(ctx, info.ID)
	if err != nil {
		return run.Outcome{}, resumeError(err)
	}
	defer journal.Close()
	return a.execute(ctx, resumed, graph.NewPlan(g), found.Last, found.Tasks, journal, true)
}

// errDryResume refuses to mix what was really answered with what was not.
func errDryResume() error {
	return fault.New(fault.Usage, "a recorded run cannot go on as a dry run").
		WithHint("leave out --dry-run, and set dry_run: false in config.yaml")
}

func resumeError(err error) error {
	if lease, ok := errors.AsType[*run.LeaseError](err); ok {
		return fault.Wrap(fault.Failure, lease, "").WithHint("wait until it ends there, or stop it")
	}
	if ended, ok := errors.AsType[*run.EndedError](err); ok {
		return fault.Wrap(fault.Usage, ended, "").WithHint("run its steps again as a new run with: loki --fork %s@STEP", ended.ID)
	}
	return err
}

// findRun returns the run that id means.
func findRun(ctx context.Context, store run.Store, id string) (run.Info, error) {
	if id != "" {
		h, err := store.History(ctx, id)
		return h.Info, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return run.Info{}, err
	}
	runs, err := store.Runs(ctx, run.Query{Dir: dir, Unfinished: true})
	if err != nil {
		return run.Info{}, err
	}
	for _, info := range runs {
		if !info.Active {
			return info, nil
		}
	}
	return run.Info{}, fault.New(fault.NotFound, "no unfinished run was started in %s", dir).
		WithHint("see all runs: loki --runs; resume any of them: loki --resume ID")
}

// resumedGraph returns the definition that a run goes on with: that of the agent as
// it is now, if it means the same as when the run began or the user insists, or that
// of the record if the agent is gone.
func (a *App) resumedGraph(ctx context.Context, store run.Store, info run.Info, force bool) (*graph.Graph, error) {
	recorded, _, err := graph.Parse(filepath.Join(info.AgentDir, graph.FileName), info.Definition)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "the definition on record of run %s cannot be read", info.ID)
	}
	now, _, err := graph.Load(filepath.Join(info.AgentDir, graph.FileName))
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return recorded, nil
		}
		return nil, err
	}
	if graph.Fingerprint(now) == info.Fingerprint {
		return now, nil
	}
	if !force {
		changes := graph.Diff(recorded, now)
		return nil, fault.New(fault.Config, "the graph of agent %s has changed since run %s began:\n  %s", info.Agent, info.ID, strings.Join(changes, "\n  ")).
			WithHint("go on with the new graph: loki --resume %s --force", info.ID)
	}
	last, err := store.Checkpoint(ctx, info.ID, -1)
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Concat(last.Frontier, last.Waiting) {
		if now.Node(id) == nil {
			return nil, fault.New(fault.Config, "run %s goes on at node %q, which the new graph does not have", info.ID, id).
				WithHint("put the node back, or start again with: loki -a %s", info.Agent)
		}
	}
	return now, nil
}

// giveAnswers records the answers the user gave on the command line.
func giveAnswers(ctx context.Context, store run.Store, id string, g *graph.Graph, r ResumeRun) error {
	if r.Answer == nil && len(r.Answers) == 0 {
		return nil
	}
	h, err := store.History(ctx, id)
	if err != nil {
		return err
	}
	var waiting []string
	for _, p := range h.Pending {
		waiting = append(waiting, p.ID)
	}
	answers := r.Answers
	if r.Answer != nil {
		if len(waiting) != 1 {
			return fault.New(fault.Usage, "run %s has %d questions that wait: %s", id, len(waiting), strings.Join(waiting, ", ")).
				WithHint("answer several with --answers FILE, a YAML mapping of these ids to answers")
		}
		answers = map[string]string{waiting[0]: *r.Answer}
	}
	for question := range answers {
		if !slices.Contains(waiting, question) {
			return fault.New(fault.Usage, "run %s has no waiting question %q", id, question).
				WithHint("waiting: %s", strings.Join(waiting, ", "))
		}
	}
	// A recorded answer cannot be changed, so all are looked at before one is recorded.
	accepted := make(map[string]string, len(answers))
	for _, p := range h.Pending {
		if text, ok := answers[p.ID]; ok {
			if accepted[p.ID], err = accept(g.Node(p.Node), p, text); err != nil {
				return fault.Wrap(fault.Usage, err, "the answer to %s cannot be taken", p.ID)
			}
		}
	}
	for _, p := range h.Pending {
		if text, ok := accepted[p.ID]; ok {
			if err := store.Answer(ctx, id, p.ID, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// accept returns what a text means as the answer to a question of node n, which may
// be gone.
func accept(n *graph.Node, p run.Pending, text string) (string, error) {
	q := ask.Question{Kind: ask.Text, Options: p.Options}
	if len(p.Options) > 0 {
		q.Kind = ask.Choice
	}
	if p.Default != nil {
		q.Default, q.HasDefault = *p.Default, true
	}
	answer, err := q.Match(text)
	if err != nil {
		return "", err
	}
	switch {
	case n != nil && n.Approval != nil:
		return answer, nil // any answer is one: there is on_other
	case len(p.Options) > 0 && !slices.Contains(p.Options, answer):
		return "", fmt.Errorf("it has to be one of %s", strings.Join(p.Options, ", "))
	case n == nil || n.Input == nil || n.Input.Validation == "" || text == "" && q.HasDefault:
		return answer, nil
	}
	valid, err := graph.ParsePredicate(n.Input.Validation)
	if err == nil && !valid.Holds(answer) {
		err = fmt.Errorf("it has to satisfy %s", n.Input.Validation)
	}
	return answer, err
}

// ForkRun is what it takes to begin a new run from an old one's step.
type ForkRun struct {
	ID       string
	Step     int            // of the old run, 0 for its start, -1 for the last committed
	Set      []value.Member // state keys to change
	NoStream bool
	Emitter  event.Emitter
	Asker    ask.Asker
}

// Fork begins a new run with the state and the frontier that an old one had after a
// super-step. The old run is left as it is.
func (a *App) Fork(ctx context.Context, f ForkRun) (run.Outcome, error) {
	if a.dryRun {
		return run.Outcome{}, errDryResume()
	}
	info, start, err := a.forkPoint(ctx, f.ID, f.Step)
	if err != nil {
		return run.Outcome{}, err
	}
	if start.Done {
		return run.Outcome{}, fault.New(fault.Usage, "run %s ended with step %d, so there is nothing to run after it", info.ID, start.Step).
			WithHint("fork an earlier step: loki --fork %s@%d", info.ID, max(0, start.Step-1))
	}
	g, _, err := graph.Load(filepath.Join(info.AgentDir, graph.FileName))
	if errors.Is(err, os.ErrNotExist) {
		g, _, err = graph.Parse(filepath.Join(info.AgentDir, graph.FileName), info.Definition)
	}
	if err != nil {
		return run.Outcome{}, err
	}
	for _, id := range slices.Concat(start.Frontier, start.Waiting) {
		if g.Node(id) == nil {
			return run.Outcome{}, fault.New(fault.Config, "step %d of run %s leads to node %q, which the graph no longer has", start.Step, info.ID, id)
		}
	}
	start.State = start.State.With(lastOfEach(f.Set)...)
	start.Usage, start.Failures = chat.Usage{}, 0
	r := GraphRun{
		Agent: agent.Ref{Name: info.Agent, Dir: info.AgentDir, Arg: info.AgentDir}, Graph: g, Prompt: info.Prompt,
		Variables: info.Variables, Model: info.Model, NoStream: f.NoStream, Emitter: f.Emitter, Asker: f.Asker,
	}
	if err := a.check(ctx, r); err != nil {
		return run.Outcome{}, err
	}
	return a.start(ctx, r, graph.NewPlan(g), start, fmt.Sprintf("%s@%d", info.ID, start.Step))
}

// lastOfEach leaves the last of the members with the same name.
func lastOfEach(members []value.Member) []value.Member {
	var kept []value.Member
	for name, v := range value.ObjectOf(members...).All() {
		kept = append(kept, value.Member{Name: name, Value: v})
	}
	return kept
}

func (a *App) forkPoint(ctx context.Context, id string, step int) (run.Info, run.Checkpoint, error) {
	store, err := a.Runs(graph.DurabilityProcess)
	if err != nil {
		return run.Info{}, run.Checkpoint{}, err
	}
	defer store.Close()
	info, err := findRun(ctx, store, id)
	if err != nil {
		return info, run.Checkpoint{}, err
	}
	c, err := store.Checkpoint(ctx, info.ID, step)
	return info, c, err
}
