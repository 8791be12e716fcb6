package app

import (
	"bytes"
	"cmp"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/agent"
	"loki/internal/agent/trust"
	"loki/internal/base/sandbox"
	"loki/internal/setup/config"
	"loki/internal/workflow/graph"
)

// own reports whether an agent is the user's: it is in the directory of agents or in one of trusted_dirs, links resolved, or is
// part of the program and was not installed.
func (a *App) own(ref agent.Ref) bool {
	if ref.ByName() && !insideOf(config.Absolute(a.Paths.AgentsDir), config.Absolute(ref.Dir)) {
		return true
	}
	home, _ := os.UserHomeDir() // if there is none, ~ is not expanded
	dirs := slices.Concat([]string{a.Paths.AgentsDir}, a.Config.TrustedDirs)
	for _, dir := range dirs {
		if below(dir, home, ref.Dir) {
			return true
		}
	}
	return false
}

// below reports whether path is dir or in it, links resolved. ~/ in dir is home; a relative dir has nothing.
func below(dir, home, path string) bool {
	if rest, ok := strings.CutPrefix(dir, "~/"); ok && home != "" {
		dir = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(dir) {
		return false
	}
	dir, err := trust.Resolve(dir)
	if err != nil {
		return false
	}
	if path, err = trust.Resolve(path); err != nil {
		return false
	}
	return insideOf(dir, path)
}

// insideOf reports whether path is dir or in it, by the names alone.
func insideOf(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// scriptLevel returns the level of the script in a file that declares none: that of the setting sandbox.scripts, or
// [sandbox.Full], for a script of the user's own, and [sandbox.Write] for all others.
func (a *App) scriptLevel(file string) sandbox.Level {
	if a.ownScript(file) {
		return cmp.Or(a.Config.Sandbox.Scripts, sandbox.Full)
	}
	return sandbox.Write
}

// elsewhere reports whether a file of the directory of functions or agents is reached there by a link, or has a second name, so
// that its content can change where the user does not look, such as in a directory that a model works in. What it declares is no
// decision of the user then, unless its directory is one of trusted_dirs.
func (a *App) elsewhere(file string) bool {
	if !insideOf(config.Absolute(a.Paths.FunctionsDir), config.Absolute(file)) && !insideOf(config.Absolute(a.Paths.AgentsDir), config.Absolute(file)) {
		return false
	}
	home, _ := os.UserHomeDir()
	for _, dir := range a.Config.TrustedDirs {
		if below(dir, home, file) {
			return false
		}
	}
	return !below(a.Paths.FunctionsDir, "", file) && !below(a.Paths.AgentsDir, "", file) || hasOtherNames(file)
}

// hasOtherNames reports whether a file has more than one name.
func hasOtherNames(file string) bool {
	info, err := os.Stat(file)
	return err == nil && sandbox.Names(info) > 1
}

// ownScript reports whether the user wrote a script or copied it: its file is in the directory of functions or agents, by its name
// and also with links resolved, and is part of neither an installed bundle nor the program. Files that models can write do not count: those
// with a second name, those in caches of scripts, and, unless it is the configuration directory that holds them, those in the working directory.
func (a *App) ownScript(file string) bool {
	real, err := trust.Resolve(file)
	if err != nil {
		return false
	}
	within := func(dir string) bool { return below(dir, "", real) }
	named := func(dir string) bool { return insideOf(config.Absolute(dir), config.Absolute(file)) }
	if !named(a.Paths.FunctionsDir) && !named(a.Paths.AgentsDir) {
		return false
	}
	if !within(a.Paths.FunctionsDir) && !within(a.Paths.AgentsDir) || within(filepath.Join(a.Paths.FunctionsDir, "cache")) {
		return false
	}
	if hasOtherNames(real) {
		return false
	}
	if work, err := os.Getwd(); !within(a.Paths.ConfigDir) && (err != nil || within(work)) {
		return false
	}
	return !a.bundledFile(real) && !a.Bundles(nil, nil).Owns(real)
}

// bundledFile reports whether a file in the directory of agents, links resolved, is part of the program: it is as it was
// installed, or the definition beside it is.
func (a *App) bundledFile(real string) bool {
	dir, err := trust.Resolve(a.Paths.AgentsDir)
	if err != nil {
		return false
	}
	name, err := filepath.Rel(dir, real)
	if err != nil || !filepath.IsLocal(name) {
		return false
	}
	same := func(name string) bool {
		shipped, err := fs.ReadFile(a.Agents.Files, name)
		if err != nil {
			return false
		}
		installed, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		return err == nil && bytes.Equal(installed, shipped)
	}
	name = filepath.ToSlash(name)
	if _, err := fs.Stat(a.Agents.Files, name); err != nil {
		return false
	}
	of, _, _ := strings.Cut(name, "/")
	return same(name) || same(path.Join(of, graph.FileName)) || same(path.Join(of, "config.yaml"))
}
