package app

import (
	"cmp"
	"context"
	"os"

	"loki/internal/agent"
	"loki/internal/agent/workspace/ground"
	"loki/internal/agent/workspace/worktree"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/conversation"
	"loki/internal/workflow/graph"
)

// EnterWorktree makes the worktree called name of the repository around the working directory, "" for a new one, the working directory.
func (a *App) EnterWorktree(ctx context.Context, name string, s graph.Worktree) (*worktree.Tree, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, fault.Wrap(fault.Failure, err, "the working directory")
	}
	paths, err := a.Paths.Absolute()
	if err != nil {
		return nil, fault.Wrap(fault.Failure, err, "the working directory")
	}
	t, err := a.Worktrees().Open(ctx, dir, name, s)
	if err != nil {
		return nil, err
	}
	if err := os.Chdir(t.Dir()); err != nil {
		t.Close()
		return nil, err
	}
	a.tree = t
	a.setWorkDir(t.Dir(), paths)
	return t, nil
}

// EnteredWorktree returns the worktree in which this process works, nil if it is in none.
func (a *App) EnteredWorktree() *worktree.Tree { return a.tree }

// agentPlace takes the worktree in which an agent works whose process is in the checkout, see [conversation.Service].
func (a *App) agentPlace(ctx context.Context, of agent.Agent, name, at string) (*conversation.Place, error) {
	w, store := a.WorktreeOf(of), a.Worktrees()
	dir, err := ground.WorkingDir()
	if err != nil || of.Graph != nil || a.DryRun() || a.Taped() || w == nil && store.Look(at) == nil || store.Look(dir) != nil {
		return nil, err
	}
	t, err := store.At(ctx, at)
	if t == nil && err == nil {
		t, err = store.Open(ctx, dir, cmp.Or(name, worktree.Name(of.Name, "")), *w)
	}
	if err != nil {
		return nil, err
	}
	return &conversation.Place{
		Dir: t.Dir(), Name: t.Name, Note: "works in the worktree " + t.Name + ", on the branch " + t.Branch(),
		Leave: func(ctx context.Context, cause error, asker ask.Asker, again func(context.Context, string) error) (string, error) {
			if cause != nil {
				return t.Pause(ctx, cause)
			}
			return t.Settle(ctx, asker, func(ctx context.Context, files []string) error { return again(ctx, worktree.ConflictText(files)) })
		},
	}, nil
}
