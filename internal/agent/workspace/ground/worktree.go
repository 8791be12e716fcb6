package ground

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"loki/internal/agent/workspace/worktree"
	"loki/internal/base/process"
	"loki/internal/base/process/environ"
	"loki/internal/base/process/sandbox"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
)

// worktreesDir is the part of the state directory in which worktrees are.
const worktreesDir = "worktrees"

// Worktrees returns the copies of repositories in which agents work.
func (g *Ground) Worktrees() *worktree.Store {
	home, _ := os.UserHomeDir() // if there is none, ~ is not expanded
	own, files := g.OwnPlaces()
	return &worktree.Store{
		Dir: filepath.Join(g.Paths.StateDir, worktreesDir), Environ: g.Env.Environ(), Setup: g.setUpWorktree,
		Sandbox: func(t *worktree.Tree) (*sandbox.Sandbox, error) { // git is to see what rules deny to models
			return sandbox.New(sandbox.Options{
				Settings: sandbox.Settings{Disabled: g.Config.Sandbox.Disabled, Read: t.Read}, Workspace: t.Root, Home: home, Own: own, Files: files, State: g.Paths.StateDir, Getenv: g.Env.Get,
			}), nil
		},
	}
}

// setUpWorktree runs the command that prepares a worktree, in the sandbox, see [worktree.Store].
func (g *Ground) setUpWorktree(ctx context.Context, t *worktree.Tree, s graph.Setup) error {
	box, err := g.Worktrees().Sandbox(t)
	if err != nil {
		return err
	}
	shell := g.Shell()
	say := func(line string) { ToolOutput(ctx, "worktree.setup", line) }
	_, err = process.Run(ctx, process.Command{
		Path: shell.Path, Args: []string{shell.Flag, s.Command}, Dir: t.Dir(), Env: WithoutGit(g.Child().Environ), OnStdout: say, OnStderr: say,
		Timeout: 10 * time.Minute, HasTimeout: true, Confinement: box.Box(s.Declaration, sandbox.Needs{}),
	})
	return err
}

// WithoutGit returns an environment without the variables that lead git to another repository than that of its directory.
func WithoutGit(entries []string) []string {
	return environ.Merge(entries, nil, worktree.LeavingVariables(entries)...)
}

// ToolOutput emits a line that a program prints for the user.
func ToolOutput(ctx context.Context, name, line string) {
	_ = event.FromContext(ctx).Emit(ctx, event.ToolOutput{Name: name, Text: line}) // the program continues if the line cannot be shown
}
