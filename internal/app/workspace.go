package app

import (
	"context"
	"os"
	"path/filepath"

	"loki/internal/agent/workspace"
	"loki/internal/agent/workspace/skill"
	"loki/internal/conversation"
	"loki/internal/llm/event"
	"loki/internal/setup/config"
	"loki/internal/tool/builtin/ignore"
)

// Instructions returns what reads the instructions of workspaces.
func (a *App) Instructions() workspace.Reader { return a.instructionsIn("") }

func (a *App) instructionsIn(dir string) workspace.Reader {
	home, _ := os.UserHomeDir() // without one, a repository is looked for in all directories above
	return workspace.Reader{
		Names: a.Config.InstructionFiles, MaxBytes: int(a.Config.InstructionMaxBytes), Home: home,
		User: filepath.Join(a.Paths.ConfigDir, "AGENTS.md"), Trust: a.trustedFiles,
		Hides: func(path string) bool {
			_, hidden := a.ignoredIn(dir).Rules().Hides(path)
			return hidden
		},
	}
}

// trustedFiles tells which files of a workspace the user trusts. Those of a worktree are trusted if the same are in its source.
func (a *App) trustedFiles(root string) func(name, sum string) workspace.State {
	return a.Trust.Files(a.Worktrees().Of(root))
}

// Skills returns what finds the skills for work in the working directory, with those of the agent in a directory, "" for none. A server
// has no workspace: only the skills of its user and of agents count.
func (a *App) Skills(agent string) skill.Finder { return a.skillsIn(agent, "") }

func (a *App) skillsIn(agent, dir string) skill.Finder {
	home, _ := os.UserHomeDir()
	f := skill.Finder{
		Home: home, Config: a.Paths.ConfigDir, Agent: agent, More: a.Config.SkillDirs, Trust: a.trustedFiles, Hides: a.instructionsIn(dir).Hides,
	}
	if dir, err := workIn(dir); err == nil && a.host == nil {
		f.Dir, f.Root = dir, workspace.Root(dir, home)
	}
	return f
}

// IgnoreFiles returns which ignore files count. A server has no workspace: only the file of its user counts.
func (a *App) IgnoreFiles() ignore.Files { return a.ignoredIn("") }

func (a *App) ignoredIn(dir string) ignore.Files {
	f := ignore.Files{User: filepath.Join(a.Paths.ConfigDir, "ignore"), Others: a.Config.IgnoreFiles}
	home, _ := os.UserHomeDir()
	if dir, err := workIn(dir); err == nil && a.host == nil {
		f.Root = workspace.Root(dir, home)
	}
	return f
}

// fromWorkspace returns what the working directory tells models and the skills there are, after the user was asked about files that are not
// trusted. A server has no workspace: only the files of its user count.
func (a *App) fromWorkspace(ctx context.Context, w conversation.FromWorkspace) (in workspace.Instructions, skills []skill.Skill, err error) {
	r, finder := a.instructionsIn(w.Dir), a.skillsIn(w.AgentDir, w.Dir)
	dir, err := workIn(w.Dir)
	if err != nil {
		return in, nil, err
	}
	if a.host != nil {
		r.Names = nil
	}
	read := func() (unknown []workspace.File) {
		if w.Instructions {
			in = r.Read(dir)
			unknown = in.Unknown()
		}
		skills = finder.Find()
		wanted, _ := skill.Choose(skills, w.Skills)
		for _, s := range wanted {
			unknown = append(unknown, s.Unknown()...)
		}
		return unknown
	}
	unknown := read()
	trusted, err := a.Trust.SettleFiles(event.NewContext(ctx, w.Events), a.Worktrees().Of(workspace.Root(dir, finder.Home)), unknown, w.Asker)
	if err == nil && trusted {
		read()
	}
	return in, skills, err
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
