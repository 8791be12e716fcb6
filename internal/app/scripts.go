package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"loki/assets"
	"loki/internal/agent"
	"loki/internal/agent/bundle"
	"loki/internal/agent/validate/tools"
	"loki/internal/agent/workspace/ground"
	"loki/internal/base/ask"
	"loki/internal/base/process/sandbox"
	"loki/internal/tool/script"
	"loki/internal/tool/script/lookup"
)

// scriptOptions say how the user's own tools are run. root is what they get as theirs.
func (a *App) scriptOptions(root string, asker ask.Asker) script.Options {
	cache := filepath.Join(a.Paths.CacheDir, "declarations")
	if a.Looking {
		cache = ""
	}
	return script.Options{
		Cache: cache, Root: root, Prepare: a.installUtils,
		PromptUtils: filepath.Join(a.Paths.ToolsUtilsDir(), "prompt-utils.sh"), Bin: a.Paths.ToolsBinDir(),
		Environ: a.Env.Environ(), Policy: a.Policy(), Apart: a.ApartScripts(), Executable: ground.Executable(), Sandbox: a.Sandbox, Bounds: func(file string) sandbox.Bounds { return a.Trust.Bounds(agent.Agent{}, file) }, Parent: a.ParentAddress, Terminal: ask.AtTerminal(asker), Output: ground.ToolOutput, Timeout: a.Config.ToolTimeout, MaxOutput: a.Config.ToolMaxOutput,
	}
}

// toolsIn returns the tools there are for work in dir, "" for the working directory. Scripts get root as theirs, and talk to the user at the
// terminal if that is where asker asks; it may be nil.
func (a *App) toolsIn(root string, asker ask.Asker, dir string) (*lookup.Library, error) {
	natives, err := a.builtinTools(dir)
	if err != nil {
		return nil, err
	}
	return lookup.New(lookup.Options{
		Scripts: a.scriptOptions(root, asker), Dir: a.Paths.ToolsDir(), Natives: natives,
		Visible: a.Config.VisibleTools, Alias: a.Config.MappingTools.Get, Config: a.Config.File,
	})
}

// installUtils puts the file that scripts may source where they find it, unless it is
// there.
func (a *App) installUtils() error {
	const name = "prompt-utils.sh"
	target := filepath.Join(a.Paths.ToolsUtilsDir(), name)
	if _, err := os.Stat(target); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	content, err := fs.ReadFile(assets.Utils, name)
	if err != nil {
		return err
	}
	return bundle.Replace(target, content)
}

// newTools returns what finds the tools of agents.
func (a *App) newTools() *tools.Service {
	return &tools.Service{
		Texts:  a.texts,
		Agents: &a.Agents, Config: a.Config, Trust: a.Trust,
		Library: a.toolsIn, Scripts: a.scriptOptions, Sandbox: a.SandboxOf, Variables: a.Variables,
	}
}
