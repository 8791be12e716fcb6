// Package tools finds the tools that agents bring, and gets the instructions that a script of an agent writes.
package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"loki/internal/agent"
	"loki/internal/agent/node"
	"loki/internal/agent/workspace/trust"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/process/environ"
	"loki/internal/base/process/sandbox"
	"loki/internal/llm/event"
	"loki/internal/setup/config"
	"loki/internal/tool"
	"loki/internal/tool/script"
	"loki/internal/tool/script/lookup"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// Service finds the tools of agents.
type Service struct {
	Agents *agent.Library
	Config *config.Config
	Trust  *trust.Service
	// Library returns the tools of the user and of the program, and Scripts says how scripts are run. Root is what scripts get as theirs.
	// They are for work in dir, "" for the working directory.
	Library func(root string, asker ask.Asker, dir string) (*lookup.Library, error)
	Scripts func(root string, asker ask.Asker) script.Options
	// Sandbox returns what confines the programs of an agent.
	Sandbox func(of agent.Agent) func() (*sandbox.Sandbox, error)
	// Variables returns the values of an agent's variables as its scripts get them.
	Variables func(of agent.Agent, values map[string]string) (map[string]string, error)
	// Texts returns the values of placeholders in texts of an agent.
	Texts func(variables map[string]string) agent.Texts
}

// Of returns the tools that an agent brings: the ones in its own script, and the ones that
// global_tools names. Of tools with the same name the first counts.
func (s *Service) Of(ctx context.Context, of agent.Agent, variables map[string]string, asker ask.Asker) (tool.Set, error) {
	file, o, scripted := s.Script(ctx, of, variables, asker)
	if !scripted && len(of.InForce.GlobalTools) == 0 {
		return tool.Set{}, nil
	}
	library, err := s.LibraryOf(of, variables, asker)
	if err != nil {
		return tool.Set{}, err
	}
	var tools []tool.Tool
	if scripted {
		own, err := script.Load(file, o)
		tools = library.Adapt(ctx, own)
		if err != nil {
			return tool.Set{}, err
		}
	}
	for i, name := range of.InForce.GlobalTools {
		found, err := library.ForEntry(ctx, name)
		if err != nil {
			pos := of.Pos(fmt.Sprintf("global_tools[%d]", i))
			return tool.Set{}, fault.Wrap(fault.Config, err, "%s:%d:%d: global_tools of agent %s", of.Definition.File, pos.Line, pos.Column, of.Name)
		}
		tools = append(tools, found...)
	}
	return tool.Set{}.With(tools...)
}

// LibraryOf returns the tools that an agent finds by name. The scripts in it get the variables of the agent.
func (s *Service) LibraryOf(of agent.Agent, variables map[string]string, asker ask.Asker) (*lookup.Library, error) {
	root := of.Dir
	if !s.Trust.Trusts(of) { // whose file .env does not count
		root = s.Agents.Paths.FunctionsDir
	}
	l, err := s.Library(root, asker, of.Workdir)
	if err != nil {
		return nil, err
	}
	l.Scripts.Variables = func() (map[string]string, error) { return s.Variables(of, variables) }
	l.Scripts.Declared = s.Trust.DeclaredVariables(of, of.InForce.Environment)
	l.Scripts.Dir = of.Workdir
	l.Scripts.Sandbox, l.Scripts.Bounds = s.Sandbox(of), func(file string) sandbox.Bounds { return s.Trust.Bounds(of, file) }
	return l, nil
}

// Script returns the script with an agent's own tools, and how it is run; ok is
// false if it has none.
func (s *Service) Script(ctx context.Context, of agent.Agent, variables map[string]string, asker ask.Asker) (file string, o script.Options, ok bool) {
	i := slices.IndexFunc(script.AgentFiles[:], func(name string) bool {
		info, err := os.Stat(filepath.Join(of.Dir, name))
		return err == nil && info.Mode().IsRegular()
	})
	if i < 0 {
		return "", o, false
	}
	o = s.Scripts(s.Agents.Paths.ConfigDir, asker)
	if o.Withhold = !s.Trust.Trusts(of); o.Withhold {
		o.Root, o.Parent = of.Dir, nil
	}
	set := make(map[string]string)
	s.Trust.OwnBytecode(of, set)
	o.Environ = environ.Merge(o.Environ, set)
	o.Agent = &script.Agent{Name: of.Name, Dir: of.Dir, CacheDir: filepath.Join(s.Agents.Paths.ConfigDir, "cache", of.Name)}
	o.Bin = s.Agents.Paths.Agent(of.Name).ToolsBinDir
	if of.InForce != nil {
		o.Declared = s.Trust.DeclaredVariables(of, of.InForce.Environment)
	}
	o.Dir = of.Workdir
	o.Sandbox, o.Bounds = s.Sandbox(of), func(file string) sandbox.Bounds { return s.Trust.Bounds(of, file) }
	o.Variables = func() (map[string]string, error) { return s.Variables(of, variables) }
	return filepath.Join(of.Dir, script.AgentFiles[i]), o, true
}

// Schema returns what models see of the tools in a script, as indented JSON.
func (s *Service) Schema(ctx context.Context, file string) ([]byte, error) {
	o := s.Scripts(s.Agents.Paths.FunctionsDir, nil)
	if filepath.Base(filepath.Dir(config.Absolute(file))) != filepath.Base(s.Agents.Paths.ToolsDir()) && strings.HasPrefix(filepath.Base(file), "tools.") {
		dir := filepath.Dir(config.Absolute(file))
		if _, own, ok := s.Script(ctx, agent.Agent{Ref: agent.Ref{Name: filepath.Base(dir), Dir: dir}}, nil, nil); ok {
			o = own
		}
	}
	tools, err := script.Load(file, o)
	if err != nil {
		return nil, err
	}
	return script.Schema(tools)
}

// Build makes the visible ones of the user's scripts, or an agent's own, ready to be
// run by hand. It returns the files it wrote.
func (s *Service) Build(ctx context.Context, ref *agent.Ref) (written []string, err error) {
	if err := s.Scripts("", nil).Prepare(); err != nil {
		event.Warn(ctx, err)
	}
	if ref != nil {
		file, o, ok := s.Script(ctx, agent.Agent{Ref: *ref}, nil, nil)
		if !ok {
			return nil, nil // there is nothing to be made ready
		}
		return script.Build([]string{file}, o)
	}
	l, err := s.Library(s.Agents.Paths.FunctionsDir, nil, "")
	if err != nil {
		return nil, err
	}
	var files []string
	for _, file := range l.VisibleFiles() {
		if _, err := l.Load(ctx, file); s.Config.VisibleTools == nil && errors.Is(err, script.ErrNoTool) {
			continue
		}
		files = append(files, l.Path(file))
	}
	return script.Build(files, l.Scripts)
}

// Instructions returns the instructions of a plain agent as they are written: those of its
// definition or, if they are dynamic, what the function _instructions of its script returns.
func (s *Service) Instructions(ctx context.Context, of agent.Agent, variables map[string]string, asker ask.Asker) (string, error) {
	if !of.InForce.Dynamic {
		return of.InForce.Instructions, nil
	}
	file, t, done, err := s.Dynamic(ctx, of, variables, asker)
	if err != nil {
		return "", err
	}
	defer done()
	if err := s.Trust.Settle(ctx, of, asker); err != nil {
		return "", err
	}
	if err := s.Trust.ScriptConsent(of, asker)(ctx, file); err != nil {
		return "", err
	}
	defer ask.Hold(asker)()
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(t.Hints().Timeout, s.Config.ToolTimeout, instructionsTimeout))
	defer cancel()
	result, err := t.Call(ctx, tool.Call{Name: t.Declaration().Name, Arguments: []byte("{}")})
	text := strings.TrimSpace(result.Output)
	switch {
	case err != nil:
		err = fault.Wrap(fault.Tool, err, "the function _instructions of %s", file)
		if said := strings.TrimSpace(result.Stderr); said != "" {
			return "", fault.Wrap(fault.Tool, err, "").WithHint("it printed: %s", said)
		}
		return "", err
	case text == "":
		return "", fault.New(fault.Tool, "the function _instructions of %s returned nothing", file).
			WithHint("what it returns becomes the instructions of the agent; a bash function writes it to $LLM_OUTPUT")
	}
	return text, nil
}

// Dynamic returns the function that writes an agent's instructions, and the script it is in. At
// a terminal it may talk with the user, also by its standard streams, until done is called.
func (s *Service) Dynamic(ctx context.Context, of agent.Agent, variables map[string]string, asker ask.Asker) (file string, t tool.Tool, done func(), err error) {
	why, done := "has no script of tools", func() {}
	file, o, ok := s.Script(ctx, of, variables, asker)
	if ok {
		if o.Terminal {
			if tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
				o.Stdin, o.Echo, done = tty, tty, func() { _ = tty.Close() }
			}
		}
		if t, err = script.Instructions(file, o); err == nil && t != nil {
			return file, t, done, nil
		}
		done()
		if err != nil {
			return "", nil, nil, err
		}
		why = filepath.Base(file) + " has no function _instructions"
	}
	return "", nil, nil, fault.New(fault.Config, "agent %s has dynamic_instructions, but %s", of.Name, why).
		WithHint("write the function _instructions in tools.sh, tools.py or tools.ts, or take dynamic_instructions out of %s", of.Definition.File)
}

// instructionsTimeout bounds how long _instructions takes where nothing else does. It may ask the
// user.
const instructionsTimeout = 10 * time.Minute

// ChildFiles adds digests of the agents that the nodes of a graph run, and of those that their
// nodes run, so that an interrupted run continues with agents that have not changed. What is wrong
// with them is reported elsewhere.
func (s *Service) ChildFiles(ctx context.Context, agents agent.Library, g *graph.Graph, files map[string]string) {
	for n := range g.All() {
		if n.Agent == nil {
			continue
		}
		what := run.ChildFile + n.Agent.Agent
		if _, seen := files[what]; seen {
			continue
		}
		ref, err := agents.Find(n.Agent.Agent)
		if err != nil {
			continue
		}
		of, _, err := agents.Load(ref)
		if err != nil {
			continue
		}
		files[what] = of.Definition.Fingerprint()
		if of.Graph != nil {
			files[what] = graph.Fingerprint(of.Graph)
		}
		tools, err := s.Of(ctx, of, nil, nil)
		if err != nil {
			continue
		}
		own, err := node.Files(of.Graph, of.Dir, tools, func(path string) string { return s.Agents.FileName(ref, path) })
		if err != nil {
			continue
		}
		for name, digest := range own {
			files[what+": "+name] = digest
		}
		if of.Graph != nil {
			s.ChildFiles(ctx, agents, of.Graph, files)
		}
	}
}
