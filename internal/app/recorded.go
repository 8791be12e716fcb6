package app

import (
	"cmp"
	"context"
	"errors"
	"os"
	"runtime"

	"loki/internal/agent/workspace/ground"
	"loki/internal/base/fault"
	"loki/internal/conversation/launch"
	"loki/internal/llm/event"
	"loki/internal/setup/config"
	"loki/internal/workflow/run"
)

// Resume goes on with a run, see [run.Service.Resume]. Afterwards the working directory of the process is the
// one that it was before.
func (a *App) Resume(ctx context.Context, r run.Resumption) (run.Outcome, error) {
	dir, err := ground.WorkingDir()
	if err != nil {
		return run.Outcome{}, fault.Wrap(fault.Failure, err, "the working directory")
	}
	out, err := a.Runs().Resume(ctx, r)
	if now, _ := os.Getwd(); now != dir {
		err = errors.Join(err, os.Chdir(dir))
		a.Env = a.Env.Override("PWD", dir)
	}
	return out, err
}

// recall returns the job of a run on record as it would be today, see [run.Service].
func (a *App) recall(ctx context.Context, info run.Info, _ run.Checkpoint, c run.Continuation) (run.Job, error) {
	if err := a.enter(ctx, c.Command, info, c.Here); err != nil {
		return run.Job{}, err
	}
	if info.Kind == run.ChatRun {
		return a.Conversations().Recall(ctx, info, c, nil)
	}
	ref, err := a.Agents.OfRun(info)
	if err != nil && !c.Force {
		return run.Job{}, err
	}
	if info.Kind == run.AgentRun {
		return a.recallPlain(ctx, ref, info, c)
	}
	g, err := ref.RecordedGraph(info, c)
	if err != nil {
		return run.Job{}, err
	}
	now, warnings := a.Agents.OfGraph(ref, g)
	now.Within = info.Terms.Within()
	for _, w := range warnings {
		if err := c.Events.Emit(ctx, event.Warning{Text: w.Message}); err != nil {
			return run.Job{}, err
		}
	}
	r := launch.Run{
		Agent: now, Prompt: info.Prompt, Variables: info.Variables, Model: cmp.Or(c.Model, info.Model),
		NoStream: c.NoStream, Events: c.Events, Asker: c.Asker, Yes: c.Yes, Recorded: true,
	}
	job, err := a.GraphJob(ctx, r)
	if err != nil {
		return run.Job{}, err
	}
	return job, a.CheckModels(r)
}

// enter makes the directory in which a run was started the working directory of this
// process, unless the user wants to stay. So relative paths keep their meaning:
// paths in scripts and in arguments of tools, files of models, and the workspace that
// permissions speak of.
func (a *App) enter(ctx context.Context, command string, info run.Info, here bool) error {
	if here || info.Dir == "" {
		return nil
	}
	if present, err := os.Getwd(); err == nil && present == info.Dir {
		return nil
	}
	if present, err := os.Getwd(); err == nil && a.host != nil && info.Kind == run.AgentRun && a.Worktrees().Look(info.Dir) != nil && present == a.Worktrees().Of(info.Dir) {
		return nil // the conversation enters it
	}
	if a.host != nil {
		return &run.RefusedError{Err: fault.New(fault.Failure, "run %s was started in %s, and this server works elsewhere", info.ID, info.Dir).
			WithHint("go on with it there: cd %q && %s", info.Dir, command)}
	}
	paths, err := a.Paths.Absolute()
	if err != nil {
		return fault.Wrap(fault.Failure, err, "the working directory")
	}
	if a.tree, err = a.Worktrees().At(ctx, info.Dir); err != nil {
		return err
	}
	if err := os.Chdir(info.Dir); err != nil {
		return fault.Wrap(fault.Config, err, "the directory in which run %s was started cannot be entered", info.ID).
			WithHint("put it back, or resume in the current directory: %s --here", command)
	}
	a.setWorkDir(info.Dir, paths)
	return nil
}

// setWorkDir takes note that dir is the working directory now.
func (a *App) setWorkDir(dir string, paths config.Paths) {
	a.Paths, a.Agents.Paths = paths, paths
	if a.tree != nil {
		a.Env = config.NewEnv(runtime.GOOS, ground.WithoutGit(a.Env.Environ()))
	}
	a.Env = a.Env.Override("PWD", dir)
}
