package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loki/assets"
	"loki/internal/agent"
	"loki/internal/agent/bundle"
	"loki/internal/base/ask"
	"loki/internal/base/environ"
	"loki/internal/base/fault"
	"loki/internal/base/sandbox"
	"loki/internal/llm/event"
	"loki/internal/setup/config"
	"loki/internal/tool"
	"loki/internal/tool/script"
)

// scriptOptions say how the user's own tools are run. root is what they get as theirs.
func (a *App) scriptOptions(root string, asker ask.Asker) script.Options {
	cache := filepath.Join(a.Paths.CacheDir, "declarations")
	if a.looking {
		cache = ""
	}
	return script.Options{
		Cache: cache, Root: root, Prepare: a.installUtils,
		PromptUtils: filepath.Join(a.Paths.ToolsUtilsDir(), "prompt-utils.sh"), Bin: a.Paths.ToolsBinDir(),
		Environ: a.Env.Environ(), Policy: a.policy(), Apart: a.apartScripts(), Executable: executable(), Sandbox: a.Sandbox, Bounds: func(file string) sandbox.Bounds { return a.Trust.Bounds(agent.Agent{}, file) }, Parent: a.parentAddress, Terminal: ask.AtTerminal(asker), Output: toolOutput, Timeout: a.Config.ToolTimeout, MaxOutput: a.Config.ToolMaxOutput,
	}
}

// toolOutput emits a line that a script prints for the user.
func toolOutput(ctx context.Context, name, line string) {
	_ = event.FromContext(ctx).Emit(ctx, event.ToolOutput{Name: name, Text: line}) // the tool goes on if the line cannot be shown
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

// agentTools returns the tools that an agent brings: those of its own script, and those that
// global_tools names. Of tools with the same name the first counts.
func (a *App) agentTools(ctx context.Context, of agent.Agent, variables map[string]string, asker ask.Asker) (tool.Set, error) {
	file, o, scripted := a.agentScript(ctx, of, variables, asker)
	if !scripted && len(of.InForce.GlobalTools) == 0 {
		return tool.Set{}, nil
	}
	shelf, err := a.agentShelf(of, variables, asker)
	if err != nil {
		return tool.Set{}, err
	}
	var tools []tool.Tool
	if scripted {
		own, err := script.Load(file, o)
		own = named(ctx, own)
		if err != nil {
			return tool.Set{}, err
		}
		tools = standIns(own, shelf.natives)
	}
	for i, name := range of.InForce.GlobalTools {
		found, err := shelf.listed(ctx, name)
		if err != nil {
			pos := of.Pos(fmt.Sprintf("global_tools[%d]", i))
			return tool.Set{}, fault.Wrap(fault.Config, err, "%s:%d:%d: global_tools of agent %s", of.Definition.File, pos.Line, pos.Column, of.Name)
		}
		tools = append(tools, found...)
	}
	return tool.Set{}.With(tools...)
}

// agentShelf is the shelf of an agent. The scripts on it get the variables of the agent.
func (a *App) agentShelf(of agent.Agent, variables map[string]string, asker ask.Asker) (*shelf, error) {
	root := of.Dir
	if !a.Trust.Trusts(of) { // whose file .env does not count
		root = a.Paths.FunctionsDir
	}
	s, err := a.shelf(root, asker)
	if err != nil {
		return nil, err
	}
	s.options.Variables = func() (map[string]string, error) { return a.agentVariables(of, variables) }
	s.options.Declared = a.Trust.Declared(of, of.InForce.Environment)
	s.options.Sandbox, s.options.Bounds = a.sandboxOf(of), func(file string) sandbox.Bounds { return a.Trust.Bounds(of, file) }
	return s, nil
}

// agentScript returns the script with an agent's own tools, and how it is run; ok is
// false if it has none.
func (a *App) agentScript(ctx context.Context, of agent.Agent, variables map[string]string, asker ask.Asker) (file string, o script.Options, ok bool) {
	i := slices.IndexFunc(script.AgentFiles[:], func(name string) bool {
		info, err := os.Stat(filepath.Join(of.Dir, name))
		return err == nil && info.Mode().IsRegular()
	})
	if i < 0 {
		return "", o, false
	}
	o = a.scriptOptions(a.Paths.ConfigDir, asker)
	if o.Withhold = !a.Trust.Trusts(of); o.Withhold {
		o.Root, o.Parent = of.Dir, nil
	}
	set := make(map[string]string)
	a.Trust.OwnBytecode(of, set)
	o.Environ = environ.Merge(o.Environ, set)
	o.Agent = &script.Agent{Name: of.Name, Dir: of.Dir, CacheDir: filepath.Join(a.Paths.ConfigDir, "cache", of.Name)}
	o.Bin = a.Paths.Agent(of.Name).ToolsBinDir
	if of.InForce != nil {
		o.Declared = a.Trust.Declared(of, of.InForce.Environment)
	}
	o.Sandbox, o.Bounds = a.sandboxOf(of), func(file string) sandbox.Bounds { return a.Trust.Bounds(of, file) }
	o.Variables = func() (map[string]string, error) { return a.agentVariables(of, variables) }
	return filepath.Join(of.Dir, script.AgentFiles[i]), o, true
}

// ToolSchema returns what models see of the tools in a script, as indented JSON.
func (a *App) ToolSchema(ctx context.Context, file string) ([]byte, error) {
	o := a.scriptOptions(a.Paths.FunctionsDir, nil)
	if filepath.Base(filepath.Dir(config.Absolute(file))) != filepath.Base(a.Paths.ToolsDir()) && strings.HasPrefix(filepath.Base(file), "tools.") {
		dir := filepath.Dir(config.Absolute(file))
		if _, own, ok := a.agentScript(ctx, agent.Agent{Ref: agent.Ref{Name: filepath.Base(dir), Dir: dir}}, nil, nil); ok {
			o = own
		}
	}
	tools, err := script.Load(file, o)
	if err != nil {
		return nil, err
	}
	return script.Schema(tools)
}

// BuildTools makes the visible ones of the user's scripts, or an agent's own, ready to be
// run by hand. It returns the files it wrote.
func (a *App) BuildTools(ctx context.Context, ref *agent.Ref) (written []string, err error) {
	if err := a.installUtils(); err != nil {
		event.Warn(ctx, err)
	}
	if ref != nil {
		file, o, ok := a.agentScript(ctx, agent.Agent{Ref: *ref}, nil, nil)
		if !ok {
			return nil, nil // there is nothing to be made ready
		}
		return script.Build([]string{file}, o)
	}
	s, err := a.shelf(a.Paths.FunctionsDir, nil)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, file := range s.visibleFiles() {
		if _, err := s.load(ctx, file); a.Config.VisibleTools == nil && errors.Is(err, script.ErrNoTool) {
			continue
		}
		files = append(files, s.path(file))
	}
	return script.Build(files, s.options)
}
