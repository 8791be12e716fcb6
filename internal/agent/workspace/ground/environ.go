package ground

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/agent"
	"loki/internal/agent/harness"
	"loki/internal/base/fault"
	"loki/internal/base/process/environ"
	"loki/internal/base/process/sandbox"
	"loki/internal/setup/config"
)

// Policy says which variables of the environment children do not get.
func (g *Ground) Policy() *environ.Policy {
	p := &environ.Policy{Keep: slices.Concat(g.Config.Permission.KeepEnv, g.Config.Sandbox.Environment), Given: g.Secrets.Add}
	for _, c := range g.Config.Clients {
		p.Keys = append(p.Keys, c.KeyVariables()...)
	}
	return p
}

// Child is what a child process gets that declares the variables of these names.
func (g *Ground) Child(declared ...string) environ.Child {
	return g.Policy().Child(g.Env.Environ(), declared...)
}

// Executable returns the path of this program, for scripts that start it, and "" if it is not
// known. A link by which it was started stays one.
func Executable() string {
	path, err := exec.LookPath(os.Args[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		path, _ = os.Executable() // "" with an error
	}
	return path
}

// Setting returns a variable of the environment for a tool. A key, such as TAVILY_API_KEY, is
// kept out of what is shown and stored from then on.
func (g *Ground) Setting(name string) string {
	text := g.Env.Get(name)
	if environ.Secret(name, text) {
		g.Secrets.Add(name, text)
	}
	return text
}

// fillVariables returns the values of an agent's variables as its scripts get them: with
// the secrets of the vault that they refer to. A reference to a secret that there is not
// stays as it is.
func (g *Ground) fillVariables(values map[string]string) (map[string]string, error) {
	filled := make(map[string]string, len(values))
	for name, v := range values {
		var err error
		if filled[name], _, err = config.Expand(v, g.Secret); err != nil {
			return nil, fault.Wrap(fault.CodeOf(err), err, "the agent's variable %s", name).WithHint("%s", fault.HintOf(err))
		}
	}
	return filled, nil
}

// ParentAddress returns the entry of the environment of scripts by which this same program,
// started by one, finds what the script did not get. It is empty where that is nothing, and
// on systems where that cannot be.
func (g *Ground) ParentAddress() string {
	g.parentMu.Lock()
	defer g.parentMu.Unlock()
	if g.parent == nil {
		withheld := g.Child().Withheld
		entries := slices.DeleteFunc(g.Env.Environ(), func(entry string) bool {
			return !slices.ContainsFunc(withheld, func(name string) bool { return len(entry) > len(name) && entry[:len(name)+1] == name+"=" })
		})
		if len(entries) == 0 {
			return ""
		}
		parent, err := environ.Listen(entries)
		if err != nil {
			return "" // the message of a script that fails names what it lacks
		}
		g.parent = parent
	}
	return g.parent.Variable()
}

// Close ends what ParentAddress started.
func (g *Ground) Close() error {
	g.parentMu.Lock()
	defer g.parentMu.Unlock()
	if g.parent == nil {
		return nil
	}
	err := g.parent.Close()
	g.parent = nil
	return err
}

// Variables is [Ground.fillVariables] for an agent. One that is not trusted gets no secrets.
func (g *Ground) Variables(of agent.Agent, values map[string]string) (map[string]string, error) {
	if !g.Trust.Trusts(of) {
		return values, nil
	}
	return g.fillVariables(values)
}

// Parent returns what gives the scripts of an agent access to variables that they did not get, nil for one that is
// not trusted.
func (g *Ground) Parent(of agent.Agent) func() string {
	if !g.Trust.Trusts(of) {
		return nil
	}
	return g.ParentAddress
}

// ScriptChild is what an agent's scripts get: the environment of children, and where
// things are.
func (g *Ground) ScriptChild(of agent.Agent, variables map[string]string) (environ.Child, error) {
	child := g.Child(g.Trust.DeclaredVariables(of, of.Graph.Environment)...)
	set := map[string]string{
		"LLM_ROOT_DIR":          g.Paths.ConfigDir,
		"LLM_PROMPT_UTILS_FILE": filepath.Join(g.Paths.FunctionsDir, "utils", "prompt-utils.sh"),
		"LLM_AGENT_DATA_DIR":    of.Dir,
		"LOKI_EXECUTABLE":       Executable(),
	}
	if g.Env.Get("NO_COLOR") == "" {
		set["CLICOLOR_FORCE"], set["FORCE_COLOR"] = "1", "1"
	}
	variables, err := g.Variables(of, variables)
	if err != nil {
		return environ.Child{}, err
	}
	g.Trust.OwnBytecode(of, set)
	for name, v := range variables {
		set[environ.AgentVariable(name)] = v
	}
	if path, ok := g.Env.Lookup("PATH"); ok {
		set["PATH"] = filepath.Join(g.Paths.FunctionsDir, "bin") + string(os.PathListSeparator) + path
	}
	child.Environ = environ.Merge(child.Environ, set)
	return child, nil
}

// ForeignEnv returns the environment of the program of others: that of children, with the variables that it declares. Its programs are not looked for in the workspace.
func (g *Ground) ForeignEnv(s *harness.Setting, dir string) ([]string, error) {
	var names []string
	set := make(map[string]string)
	for _, v := range s.Env {
		name, text, given := strings.Cut(v, "=")
		if !given {
			names = append(names, name)
			continue
		}
		value, _, err := config.Expand(text, g.Secret)
		if err != nil {
			return nil, err
		}
		if set[name] = value; environ.Secret(name, value) {
			g.Secrets.Add(name, value)
		}
	}
	env, _ := environ.Apart(g.Child(names...).Environ, dir, sandbox.KeptPlaces(dir))
	return environ.Merge(env, set), nil
}
