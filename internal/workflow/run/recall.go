package run

import (
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/workflow/graph"
)

// JobOf returns the job with which a recorded run resumes from a checkpoint. It is refused,
// unless the user insists, if the agent is not what it was.
func (s *Service) JobOf(ctx context.Context, info Info, from Checkpoint, c Continuation) (Job, error) {
	switch {
	case info.Kind == GraphRun:
	case len(c.Set) > 0:
		return Job{}, fault.New(fault.Usage, "run %s is the answer to one question, and has no state that could be set", info.ID).WithHint("leave out --set")
	case c.stops():
		return Job{}, onlyGraphsStop(info.Agent)
	}
	job, err := s.Recall(ctx, info, from, c)
	if err != nil || info.Kind == ChatRun {
		return job, err
	}
	err = checkUnchanged(info, job, from, c)
	job.Keep = c.Keep
	if err == nil && c.stops() {
		job.Stops, err = ParseBreakpoints(job.Graph, c.Break)
		job.Stops.Steps = c.Steps
	}
	if err == nil {
		err = s.mayStop(job)
	}
	if err != nil {
		job.release()
		return Job{}, err
	}
	return job, nil
}

// checkUnchanged returns why a recorded run does not resume from a checkpoint as the job that it is today.
func checkUnchanged(info Info, job Job, from Checkpoint, c Continuation) error {
	what, lines, err := changes(info, job)
	if err != nil {
		return err
	}
	if len(lines) > 0 && !c.Force {
		return fault.New(fault.Config, "%s of agent %s has changed since run %s began:\n  %s", what, info.Agent, info.ID, strings.Join(lines, "\n  ")).
			WithHint("undo that, or resume with the agent as it is now: %s --force", c.Command)
	}
	for _, id := range slices.Concat(from.Frontier, from.Waiting) {
		if job.Graph.Node(id) == nil {
			return fault.New(fault.Config, "run %s resumes at node %q, which the graph does not have", info.ID, id).
				WithHint("put the node back, or start again with: loki -a %s", info.Agent)
		}
	}
	return nil
}

// RecordedGraph returns the graph that the run began with.
func (i Info) RecordedGraph() (*graph.Graph, error) {
	g, _, err := graph.ReadBundle(filepath.Join(i.AgentDir, graph.FileName), i.Definition)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "the definition on record of run %s cannot be read", i.ID)
	}
	return g, nil
}

// changes says in what an agent differs from what it was when a run of it began, and what
// of it does.
func changes(info Info, now Job) (what string, lines []string, err error) {
	if now.Info.Fingerprint != info.Fingerprint {
		if what, lines, err = definitionChanges(info, now); err != nil {
			return "", nil, err
		}
	}
	if info.Files == nil { // recorded by a version that did not keep them
		return what, lines, nil
	}
	names := slices.Collect(maps.Keys(info.Files))
	for name := range now.Info.Files {
		if _, ok := info.Files[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	part := "a script"
	for _, name := range names {
		before, was := info.Files[name]
		today, is := now.Info.Files[name]
		if strings.HasPrefix(name, ChildFile) && before != today {
			part = "a child"
		}
		switch {
		case !is:
			lines = append(lines, name+" is not there or not used any more")
		case !was:
			lines = append(lines, name+" was added")
		case before != today:
			lines = append(lines, "the contents of "+name+" changed")
		}
	}
	return cmp.Or(what, part), lines, nil
}

// definitionChanges says in what the definition of an agent differs from the one on record.
func definitionChanges(info Info, now Job) (what string, lines []string, err error) {
	if now.Diff != nil {
		lines, err = now.Diff(info.Definition)
		return "the definition", lines, err
	}
	recorded, err := info.RecordedGraph()
	if err != nil {
		return "", nil, err
	}
	return "the graph", graph.Diff(recorded, now.Graph), nil
}
