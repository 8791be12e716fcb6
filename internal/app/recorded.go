package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/agent"
	"loki/internal/catalog"
	"loki/internal/fault"
	"loki/internal/graph"
	"loki/internal/run"
	"loki/internal/tool"
)

// recordedRun returns what a recorded run goes on with from a checkpoint. Like a fresh run it is
// refused unless all it needs is there, and unless the user insists also if the agent is
// not what it was. command is what the user asked for, for hints.
func (a *App) recordedRun(ctx context.Context, command string, info run.Info, from run.Checkpoint, o Continuation) (GraphRun, error) {
	if err := a.enter(command, info, o.Here); err != nil {
		return GraphRun{}, err
	}
	ref, err := a.recordedAgent(info)
	if err != nil && !o.Force {
		return GraphRun{}, err
	}
	recorded, _, err := graph.Parse(filepath.Join(info.AgentDir, graph.FileName), info.Definition)
	if err != nil {
		return GraphRun{}, fault.Wrap(fault.Config, err, "the definition on record of run %s cannot be read", info.ID)
	}
	now, _, err := graph.Load(ref.File())
	if errors.Is(err, fs.ErrNotExist) {
		if !o.Force {
			return GraphRun{}, fault.New(fault.Config, "the agent of run %s, %s, has no %s any more", info.ID, ref.Name, ref.File()).
				WithHint("put it back, or go on with the definition on record: %s --force", command)
		}
		now, err = recorded, nil
	}
	if err != nil {
		return GraphRun{}, err
	}
	r := GraphRun{
		Agent: ref, Graph: now, Prompt: info.Prompt, Variables: info.Variables, Model: cmp.Or(o.Model, info.Model),
		NoStream: o.NoStream, Emitter: o.Emitter, Asker: o.Asker, Yes: o.Yes,
	}
	if err := a.check(ctx, &r); err != nil {
		return GraphRun{}, err
	}
	if err := a.checkModels(r); err != nil {
		return GraphRun{}, err
	}
	if what, lines := changed(info, recorded, r); len(lines) > 0 && !o.Force {
		return GraphRun{}, fault.New(fault.Config, "%s of agent %s has changed since run %s began:\n  %s", what, info.Agent, info.ID, strings.Join(lines, "\n  ")).
			WithHint("undo that, or go on with the agent as it is now: %s --force", command)
	}
	for _, id := range slices.Concat(from.Frontier, from.Waiting) {
		if now.Node(id) == nil {
			return GraphRun{}, fault.New(fault.Config, "run %s goes on at node %q, which the graph does not have", info.ID, id).
				WithHint("put the node back, or start again with: loki -a %s", info.Agent)
		}
	}
	return r, nil
}

// enter makes the directory in which a run was started the working directory of this
// process, unless the user wants to stay. So all that is relative means what it meant:
// paths in scripts and in arguments of tools, files of models, and the workspace that
// permissions speak of.
func (a *App) enter(command string, info run.Info, here bool) error {
	if here || info.Dir == "" {
		return nil
	}
	if present, err := os.Getwd(); err == nil && present == info.Dir {
		return nil
	}
	paths, err := a.Paths.Absolute()
	if err != nil {
		return fault.Wrap(fault.Failure, err, "the working directory")
	}
	if err := os.Chdir(info.Dir); err != nil {
		return fault.Wrap(fault.Config, err, "the directory in which run %s was started cannot be entered", info.ID).
			WithHint("put it back, or go on in the present directory: %s --here", command)
	}
	a.Paths, a.Agents.Paths = paths, paths
	a.Env = a.Env.Override("PWD", info.Dir)
	return nil
}

// recordedAgent finds the agent of a run: by its name if it was started by that, else at
// its directory. The agent is filled in as far as it is known, also on error.
func (a *App) recordedAgent(info run.Info) (agent.Ref, error) {
	ref := agent.Ref{Name: info.Agent, Dir: info.AgentDir, Arg: info.AgentDir}
	if info.ByName {
		found, err := a.Agents.Find(info.Agent)
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

// changed says in what an agent differs from what it was when a run of it began, and what
// of it does.
func changed(info run.Info, recorded *graph.Graph, r GraphRun) (what string, lines []string) {
	if graph.Fingerprint(r.Graph) != info.Fingerprint {
		what, lines = "the graph", graph.Diff(recorded, r.Graph)
	}
	if info.Files == nil { // recorded by a version that did not keep them
		return what, lines
	}
	names := slices.Collect(maps.Keys(info.Files))
	for name := range r.files {
		if _, ok := info.Files[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		before, was := info.Files[name]
		now, is := r.files[name]
		switch {
		case !is:
			lines = append(lines, name+" is not there or not used any more")
		case !was:
			lines = append(lines, name+" was added")
		case before != now:
			lines = append(lines, "the contents of "+name+" changed")
		}
	}
	return cmp.Or(what, "a script"), lines
}

// contents returns digests of the files that a graph uses beside its definition: its
// scripts, as far as they are there, and those of its tools. The names are as people
// write them, and the same wherever the agent is.
func (a *App) contents(r GraphRun, tools tool.Set) (map[string]string, error) {
	files := make(map[string]string)
	add := func(path string, text []byte) {
		sum := sha256.Sum256(text)
		files[a.fileName(r.Agent, path)] = hex.EncodeToString(sum[:16])
	}
	for _, n := range r.Graph.Nodes {
		if n.Script == nil {
			continue
		}
		path := n.Script.Path(r.Agent.Dir)
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a run says it, before it begins or when it comes to it
		}
		if err != nil {
			return nil, fault.Wrap(fault.Config, err, "script %s", n.Script.Script)
		}
		add(path, text)
	}
	for _, t := range tools.All() {
		if own, ok := t.(tool.FromFile); ok {
			path, text, err := own.Source()
			if err != nil {
				return nil, err
			}
			add(path, text)
		}
	}
	return files, nil
}

// fileName names a file as seen from the agent's directory or from that of the user's
// functions, if it is in one of them.
func (a *App) fileName(ref agent.Ref, path string) string {
	if rel, err := filepath.Rel(ref.Dir, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	if rel, err := filepath.Rel(absolute(a.Paths.FunctionsDir), path); err == nil && filepath.IsLocal(rel) {
		return "functions/" + filepath.ToSlash(rel)
	}
	return path
}

// checkModels refuses a run whose models are not known.
func (a *App) checkModels(r GraphRun) error {
	for _, n := range r.Graph.Nodes {
		if n.LLM == nil {
			continue
		}
		if _, err := a.Catalog.Resolve(cmp.Or(n.LLM.Model, a.graphModel(r)), catalog.Chat); err != nil {
			return fault.Wrap(fault.CodeOf(err), err, "the model of node %s", n.ID)
		}
	}
	return nil
}
