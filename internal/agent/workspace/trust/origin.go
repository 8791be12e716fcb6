package trust

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
	"loki/internal/base/process/sandbox"
	"loki/internal/setup/config"
	"loki/internal/workflow/graph"
)

// Origins tells agents and scripts of the user from ones that came from others.
type Origins struct {
	Agents  *agent.Library
	Config  *config.Config
	Bundled func(file string) bool // reports whether a file is part of an installed bundle
}

// Own reports whether an agent is the user's: it is in the directory of agents or in one of trusted_dirs, links resolved, or is
// part of the program and was not installed.
func (o *Origins) Own(ref agent.Ref) bool {
	if ref.ByName() && !insideOf(config.Absolute(o.Agents.Paths.AgentsDir), config.Absolute(ref.Dir)) {
		return true
	}
	return Below(o.Agents.Paths.AgentsDir, "", ref.Dir) || o.inTrustedDirs(ref.Dir)
}

func (o *Origins) inTrustedDirs(path string) bool {
	home, _ := os.UserHomeDir() // if there is none, ~ is not expanded
	return slices.ContainsFunc(o.Config.TrustedDirs, func(dir string) bool { return Below(dir, home, path) })
}

// Below reports whether path is dir or in it, links resolved. ~/ in dir is home; a relative dir has nothing.
func Below(dir, home, path string) bool {
	if rest, ok := strings.CutPrefix(dir, "~/"); ok && home != "" {
		dir = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(dir) {
		return false
	}
	dir, err := Resolve(dir)
	if err != nil {
		return false
	}
	if path, err = Resolve(path); err != nil {
		return false
	}
	return insideOf(dir, path)
}

// insideOf reports whether path is dir or in it, by the names alone.
func insideOf(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// ScriptLevel returns the level of the script in a file that declares none: that of the setting sandbox.scripts, or
// [sandbox.Full], for a script of the user's own, and [sandbox.Write] for all others.
func (o *Origins) ScriptLevel(file string) sandbox.Level {
	if o.ownScript(file) {
		return cmp.Or(o.Config.Sandbox.Scripts, sandbox.Full)
	}
	return sandbox.Write
}

// Elsewhere reports whether a file of the directory of functions or agents is reached there by a link, or has a second name, so
// that its content can change where the user does not look, such as in a directory that a model works in. What it declares is no
// decision of the user then, unless its directory is one of trusted_dirs.
func (o *Origins) Elsewhere(file string) bool {
	if !insideOf(config.Absolute(o.Agents.Paths.FunctionsDir), config.Absolute(file)) && !insideOf(config.Absolute(o.Agents.Paths.AgentsDir), config.Absolute(file)) {
		return false
	}
	if o.inTrustedDirs(file) {
		return false
	}
	return !Below(o.Agents.Paths.FunctionsDir, "", file) && !Below(o.Agents.Paths.AgentsDir, "", file) || hasOtherNames(file)
}

// hasOtherNames reports whether a file has more than one name.
func hasOtherNames(file string) bool {
	info, err := os.Stat(file)
	return err == nil && sandbox.Names(info) > 1
}

// ownScript reports whether the user wrote a script or copied it: its file is in the directory of functions or agents, by its name
// and also with links resolved, and is part of neither an installed bundle nor the program. Files that models can write do not count: those
// with a second name, those in caches of scripts, and, unless it is the configuration directory that holds them, those in the working directory.
func (o *Origins) ownScript(file string) bool {
	real, err := Resolve(file)
	if err != nil {
		return false
	}
	within := func(dir string) bool { return Below(dir, "", real) }
	named := func(dir string) bool { return insideOf(config.Absolute(dir), config.Absolute(file)) }
	if !named(o.Agents.Paths.FunctionsDir) && !named(o.Agents.Paths.AgentsDir) {
		return false
	}
	if !within(o.Agents.Paths.FunctionsDir) && !within(o.Agents.Paths.AgentsDir) || within(filepath.Join(o.Agents.Paths.FunctionsDir, "cache")) {
		return false
	}
	if hasOtherNames(real) {
		return false
	}
	if work, err := os.Getwd(); !within(o.Agents.Paths.ConfigDir) && (err != nil || within(work)) {
		return false
	}
	return !o.bundledFile(real) && !o.Bundled(real)
}

// bundledFile reports whether a file in the directory of agents, links resolved, is part of the program: it is as it was
// installed, or the definition beside it is.
func (o *Origins) bundledFile(real string) bool {
	dir, err := Resolve(o.Agents.Paths.AgentsDir)
	if err != nil {
		return false
	}
	name, err := filepath.Rel(dir, real)
	if err != nil || !filepath.IsLocal(name) {
		return false
	}
	same := func(name string) bool {
		shipped, err := fs.ReadFile(o.Agents.Files, name)
		installed, missing := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		return err == nil && missing == nil && bytes.Equal(installed, shipped)
	}
	name = filepath.ToSlash(name)
	if _, err := fs.Stat(o.Agents.Files, name); err != nil {
		return false
	}
	of, _, _ := strings.Cut(name, "/")
	return same(name) || same(path.Join(of, graph.FileName)) || same(path.Join(of, "config.yaml"))
}
