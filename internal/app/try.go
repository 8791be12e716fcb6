package app

import (
	"context"
	"os"

	"loki/internal/base/process"
	"loki/internal/base/process/sandbox"
)

// TryLevel runs a command of the user's shell at a level of the sandbox, in a directory of its own.
func (a *App) TryLevel(ctx context.Context, level sandbox.Level) (sandbox.Support, error) {
	dir, err := os.MkdirTemp("", "loki-try-")
	if err != nil {
		return sandbox.Support{}, err
	}
	defer os.RemoveAll(dir)
	home, _ := os.UserHomeDir() // if there is none, ~ is not expanded
	own, files := a.OwnPlaces()
	box := sandbox.New(sandbox.Options{Settings: a.Config.Sandbox, Workspace: dir, Home: home, Own: own, Files: files, Getenv: a.Env.Get})
	shell := a.Shell()
	_, err = process.Run(ctx, process.Command{
		Path: shell.Path, Args: []string{shell.Flag, "exit 0"}, Dir: dir, Env: a.Child().Environ,
		Confinement: box.Box(sandbox.Declaration{Level: level}, sandbox.Needs{}),
	})
	return box.Support(), err
}
