package ground

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"

	"loki/internal/agent/workspace"
	"loki/internal/agent/workspace/skill"
	"loki/internal/agent/workspace/trust"
	"loki/internal/tool/builtin/ignore"
)

// Instructions returns what reads the instructions of workspaces.
func (g *Ground) Instructions() workspace.Reader { return g.InstructionsIn("") }

// InstructionsIn returns what reads the instructions for work in a directory, "" for the working directory.
func (g *Ground) InstructionsIn(dir string) workspace.Reader {
	home, _ := os.UserHomeDir() // without one, a repository is looked for in all directories above
	return workspace.Reader{
		Names: g.Config.InstructionFiles, MaxBytes: int(g.Config.InstructionMaxBytes), Home: home,
		User: filepath.Join(g.Paths.ConfigDir, "AGENTS.md"), Trust: g.TrustedFiles,
		Hides: func(path string) bool {
			_, hidden := g.IgnoredIn(dir).Rules().Hides(path)
			return hidden
		},
	}
}

// TrustedFiles tells which files of a workspace the user trusts. Those of a worktree are trusted if the same are in its source.
func (g *Ground) TrustedFiles(root string) func(name, sum string) workspace.State {
	return g.Trust.Files(g.Worktrees().Of(root))
}

// Skills returns what finds the skills for work in the working directory, with those of the agent in a directory, "" for none. A server
// has no workspace: only the skills of its user and of agents count.
func (g *Ground) Skills(agent string) skill.Finder { return g.SkillsIn(agent, "") }

// SkillsIn is [Ground.Skills] for work in a directory, "" for the working directory.
func (g *Ground) SkillsIn(agent, dir string) skill.Finder {
	home, _ := os.UserHomeDir()
	f := skill.Finder{
		Home: home, Config: g.Paths.ConfigDir, Agent: agent, More: g.Config.SkillDirs, Trust: g.TrustedFiles, Hides: g.InstructionsIn(dir).Hides,
	}
	if dir, err := WorkIn(dir); err == nil && !g.Serving() {
		f.Dir, f.Root = dir, workspace.Root(dir, home)
	}
	return f
}

// IgnoreFiles returns which ignore files count. A server has no workspace: only the file of its user counts.
func (g *Ground) IgnoreFiles() ignore.Files { return g.IgnoredIn("") }

// IgnoredIn is [Ground.IgnoreFiles] for work in a directory, "" for the working directory.
func (g *Ground) IgnoredIn(dir string) ignore.Files {
	f := ignore.Files{User: filepath.Join(g.Paths.ConfigDir, "ignore"), Others: g.Config.IgnoreFiles}
	home, _ := os.UserHomeDir()
	if dir, err := WorkIn(dir); err == nil && !g.Serving() {
		f.Root = workspace.Root(dir, home)
	}
	return f
}

// TrustsPath reports whether a file is in a directory that the user trusts, or in their configuration.
func (g *Ground) TrustsPath(path string) bool {
	path = g.Worktrees().Of(path)
	dirs := append([]string{g.Paths.ConfigDir}, g.Config.TrustedDirs...)
	records, _ := g.Trust.Store().List() // a record that cannot be read has nothing
	for _, r := range records {
		dirs = append(dirs, r.Dir)
	}
	home, _ := os.UserHomeDir() // without one, ~ means nothing
	return slices.ContainsFunc(dirs, func(dir string) bool { return trust.Below(dir, home, path) })
}

// VaultPasswordFile returns the file that the configuration names, empty if it names none. It is the same wherever the program is started.
func (g *Ground) VaultPasswordFile() string {
	file := *cmp.Or(g.Config.VaultPasswordFile, new(""))
	if file != "" && !filepath.IsAbs(file) {
		file = filepath.Join(g.Paths.ConfigDir, file)
	}
	return file
}
