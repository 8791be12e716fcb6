package app

import (
	"context"
	"os"
	"path/filepath"

	"loki/internal/agent/skill"
	"loki/internal/agent/workspace"
	"loki/internal/conversation"
	"loki/internal/llm/event"
	"loki/internal/setup/config"
	"loki/internal/tool/ignore"
)

// Instructions returns what reads the instructions of workspaces.
func (a *App) Instructions() workspace.Reader {
	home, _ := os.UserHomeDir() // without one, a repository is looked for in all directories above
	return workspace.Reader{
		Names: a.Config.InstructionFiles, MaxBytes: int(a.Config.InstructionMaxBytes), Home: home,
		User: filepath.Join(a.Paths.ConfigDir, "AGENTS.md"), Trust: a.Trust.Files,
		Hides: func(path string) bool {
			_, hidden := a.Ignored().Rules().Hides(path)
			return hidden
		},
	}
}

// Skills returns what finds the skills for work in the working directory, with those of the agent in a directory, "" for none. A server
// has no workspace: only the skills of its user and of agents count.
func (a *App) Skills(agent string) skill.Finder {
	home, _ := os.UserHomeDir()
	f := skill.Finder{
		Home: home, Config: a.Paths.ConfigDir, Agent: agent, More: a.Config.SkillDirs, Trust: a.Trust.Files, Hides: a.Instructions().Hides,
	}
	if dir, err := os.Getwd(); err == nil && a.host == nil {
		f.Dir, f.Root = dir, workspace.Root(dir, home)
	}
	return f
}

// Ignored returns which ignore files count. A server has no workspace: only the file of its user counts.
func (a *App) Ignored() ignore.Files {
	f := ignore.Files{User: filepath.Join(a.Paths.ConfigDir, "ignore"), Others: a.Config.IgnoreFiles}
	home, _ := os.UserHomeDir()
	if dir, err := os.Getwd(); err == nil && a.host == nil {
		f.Root = workspace.Root(dir, home)
	}
	return f
}

// hidesFromPrograms returns what says which file of the workspace is hidden from programs, see [sandbox.Options].
func (a *App) hidesFromPrograms() func(path string, dir bool) string {
	rules := a.Ignored().Rules()
	return func(path string, dir bool) string {
		m, hidden := rules.HidesFromPrograms(path, dir)
		if !hidden {
			return ""
		}
		return m.String()
	}
}

// instructions returns what the working directory tells models, after the user was asked about files that are not trusted. A server has
// no workspace: only the file of its user counts.
func (a *App) instructions(ctx context.Context, from conversation.Caller) (workspace.Instructions, error) {
	r := a.Instructions()
	dir, err := os.Getwd()
	if err != nil {
		return workspace.Instructions{}, err
	}
	if a.host != nil {
		r.Names = nil
		return r.Read(dir), nil
	}
	in := r.Read(dir)
	trusted, err := a.Trust.SettleFiles(event.NewContext(ctx, from.Events), in.Root, in.Unknown(), from.Asker)
	if err == nil && trusted {
		in = r.Read(dir)
	}
	return in, err
}

// instructs says which conversations get the instructions of the workspace, see [conversation.Service].
func instructs(i config.Instruct) *bool {
	switch i {
	case config.InstructAlways:
		return new(true)
	case config.InstructOff:
		return new(false)
	}
	return nil
}
