package app

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loki/assets"
	"loki/internal/agent/bundle/remote"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/file/repository"
	"loki/internal/setup/config"
)

// Bundles returns what installs bundles of others. Show gets what the user has to know before the
// work has ended.
func (a *App) Bundles(asker ask.Asker, show func(text string)) *remote.Installer {
	work, _ := os.Getwd() // without one relative paths are not found
	p := a.Paths
	return &remote.Installer{
		Dirs: remote.Dirs{
			Agents: p.AgentsDir, Roles: p.RolesDir, Macros: p.MacrosDir, Tools: p.ToolsDir(), Skills: filepath.Join(p.ConfigDir, "skills"), Servers: p.MCPFile(),
			Records: filepath.Join(p.ConfigDir, "bundles"), Work: work,
		},
		Git: repository.Git{Environ: a.ProgramChild().Environ}, Asker: asker, Show: show, Secrets: bundleSecrets{a}, Ships: a.ships,
	}
}

// ships reports whether an agent, a role or a tool of this name is part of the program.
func (a *App) ships(c remote.Category, name string) bool {
	switch c {
	case remote.Agents:
		return slices.Contains(a.Agents.Bundled, name)
	case remote.Roles:
		_, err := fs.Stat(assets.Roles, strings.ToLower(name)+".md") // some file systems ignore the case
		return err == nil
	case remote.Functions:
		natives, err := a.builtinTools("")
		_, native := natives.Lookup(name)
		return err == nil && native
	}
	return false
}

// bundleSecrets are the secrets of the vault.
type bundleSecrets struct{ app *App }

var _ remote.Secrets = bundleSecrets{}

// Missing implements [remote.Secrets].
func (s bundleSecrets) Missing(text string) ([]string, error) {
	if !config.HasSecretPlaceholder(text) {
		return nil, nil
	}
	_, missing, err := config.Expand(text, s.app.lookupSecret)
	if fault.CodeOf(err) == fault.Config { // there is no vault to look into yet
		_, missing, err = config.Expand(text, func(name string) (string, error) { return "", fault.New(fault.NotFound, "%s", name) })
	}
	return missing, err
}

// Add implements [remote.Secrets].
func (s bundleSecrets) Add(ctx context.Context, asker ask.Asker, name string) error {
	return s.app.Vault().Ask(ctx, asker, name, false)
}
