package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"loki/internal/base/fault"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// OfRun finds the agent of a run: by its name if it was started by that, else at
// its directory. The agent is filled in as far as it is known, also on error.
func (l Library) OfRun(info run.Info) (Ref, error) {
	ref := l.At(info.AgentDir, info.AgentDir)
	ref.Name = info.Agent
	if info.ByName {
		found, err := l.Find(info.Agent)
		if err != nil {
			return ref, fault.Wrap(fault.Config, err, "the agent of run %s is gone", info.ID)
		}
		return found, nil
	}
	if dir, err := os.Stat(ref.Dir); err != nil || !dir.IsDir() {
		return ref, fault.New(fault.Config, "the agent of run %s is gone: there is no directory %s", info.ID, ref.Dir).
			WithHint("put it back and resume the run again; nothing was done and no answer was used")
	}
	return ref, nil
}

// RecordedGraph returns the graph of an agent as it is now. If it is gone, and the user
// insists, it is the one on record.
func (r Ref) RecordedGraph(info run.Info, c run.Continuation) (*graph.Graph, error) {
	g, _, err := graph.Load(r.GraphFile())
	if !errors.Is(err, fs.ErrNotExist) {
		return g, err
	}
	if !c.Force {
		return nil, fault.New(fault.Config, "the agent of run %s, %s, has no %s any more", info.ID, r.Name, r.GraphFile()).
			WithHint("put it back, or resume with the definition on record: %s --force", c.Command)
	}
	return info.RecordedGraph()
}

// RecordedPlain returns a plain agent as it is now. If its definition is gone, and the user
// insists, it is the one on record.
func (l Library) RecordedPlain(ref Ref, info run.Info, c run.Continuation) (Agent, graph.Findings, error) {
	of, findings, err := l.Load(ref)
	switch {
	case err == nil && of.Graph != nil:
		return of, nil, fault.New(fault.Config, "the agent of run %s, %s, is a graph agent now", info.ID, ref.Name).
			WithHint("put its config.yaml back and resume the run again")
	case fault.CodeOf(err) != fault.NotFound && !errors.Is(err, fs.ErrNotExist):
		return of, findings, err
	case !c.Force:
		return of, nil, fault.Wrap(fault.Config, err, "the agent of run %s is gone", info.ID).
			WithHint("put it back, or resume with the definition on record: %s --force", c.Command)
	}
	d, _, err := Parse(filepath.Join(ref.Dir, "config.yaml"), info.Definition)
	if err != nil {
		return of, nil, fault.Wrap(fault.Config, err, "the definition on record of run %s cannot be read", info.ID)
	}
	of, findings = l.Plain(ref, d)
	return of, findings, nil
}
