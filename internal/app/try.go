package app

import (
	"context"
	"errors"
	"os"

	"loki/internal/base/process"
	"loki/internal/base/process/sandbox"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/tool/mcp"
)

// ErrNoList is the error of [App.ListModels] for a client whose API has no list of models.
var ErrNoList = errors.New("its API has no list of models")

// ListModels asks the server of a client for the names of its models. It uses no tokens.
func (a *App) ListModels(ctx context.Context, client string) ([]string, error) {
	chat, err := a.connect(client)
	if err != nil {
		return nil, err
	}
	lister, ok := chat.(provider.Lister)
	if !ok {
		return nil, ErrNoList
	}
	names, err := lister.ListModels(ctx)
	return names, a.hint(a.Config.Client(client), "")(err)
}

// TryModel sends a short question to the default model.
func (a *App) TryModel(ctx context.Context) error {
	m, err := a.ChatModel(ctx, a.Config.Model)
	if err != nil {
		return err
	}
	question := provider.Request{Model: m.Name, Messages: []chat.Message{chat.Text(chat.User, "Answer with the word OK.")}, OutputLimit: m.OutputLimit, MaxOutputTokens: m.MaxOutputTokens}
	for _, err := range m.Provider.Chat(ctx, question) {
		if err != nil {
			return err
		}
	}
	return nil
}

// TryServer starts an MCP server, or connects to it, without a question to the user.
func (a *App) TryServer(ctx context.Context, server mcp.Server) error {
	s, err := a.mcpServers()
	if err != nil {
		return err
	}
	scope := s.pool.Scope([]mcp.Server{server}, mcp.ScopeOptions{})
	defer scope.Close()
	return scope.Connect(ctx)
}

// TryLevel runs a command of the user's shell at a level of the sandbox, in a directory of its own.
func (a *App) TryLevel(ctx context.Context, level sandbox.Level) (sandbox.Support, error) {
	dir, err := os.MkdirTemp("", "loki-try-")
	if err != nil {
		return sandbox.Support{}, err
	}
	defer os.RemoveAll(dir)
	home, _ := os.UserHomeDir() // if there is none, ~ is not expanded
	own, files := a.ownPlaces()
	box := sandbox.New(sandbox.Options{Settings: a.Config.Sandbox, Workspace: dir, Home: home, Own: own, Files: files, Getenv: a.Env.Get})
	shell := a.Shell()
	_, err = process.Run(ctx, process.Command{
		Path: shell.Path, Args: []string{shell.Flag, "exit 0"}, Dir: dir, Env: a.Child().Environ,
		Confinement: box.Box(sandbox.Declaration{Level: level}, sandbox.Needs{}),
	})
	return box.Support(), err
}
