package app

import (
	"context"

	"loki/internal/agent/workspace"
	"loki/internal/agent/workspace/ground"
	"loki/internal/agent/workspace/skill"
	"loki/internal/conversation"
	"loki/internal/llm/event"
	"loki/internal/setup/config"
)

// fromWorkspace returns what the working directory tells models and the skills there are, after the user was asked about files that are not
// trusted. A server has no workspace: only the files of its user count.
func (a *App) fromWorkspace(ctx context.Context, w conversation.FromWorkspace) (in workspace.Instructions, skills []skill.Skill, err error) {
	r, finder := a.InstructionsIn(w.Dir), a.SkillsIn(w.AgentDir, w.Dir)
	dir, err := ground.WorkIn(w.Dir)
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
