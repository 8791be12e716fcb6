package app

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"loki/internal/base/fault"
	"loki/internal/base/process/environ"
	"loki/internal/setup/config"
)

// policy says which variables of the environment children do not get.
func (a *App) policy() *environ.Policy {
	p := &environ.Policy{Keep: slices.Concat(a.Config.Permission.KeepEnv, a.Config.Sandbox.Environment), Given: a.used.Add}
	for _, c := range a.Config.Clients {
		p.Keys = append(p.Keys, c.KeyVariables()...)
	}
	return p
}

// Child is what a child process gets that declares the variables of these names.
func (a *App) Child(declared ...string) environ.Child {
	return a.policy().Child(a.Env.Environ(), declared...)
}

// executable returns the path of this program, for scripts that start it, and "" if it is not
// known. A link by which it was started stays one.
func executable() string {
	path, err := exec.LookPath(os.Args[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		path, _ = os.Executable() // "" with an error
	}
	return path
}

// setting returns a variable of the environment for a tool. A key, such as TAVILY_API_KEY, is
// kept out of what is shown and stored from then on.
func (a *App) setting(name string) string {
	text := a.Env.Get(name)
	if environ.Secret(name, text) {
		a.used.Add(name, text)
	}
	return text
}

// scriptVariables returns the values of an agent's variables as its scripts get them: with
// the secrets of the vault that they refer to. A reference to a secret that there is not
// stays as it is.
func (a *App) scriptVariables(values map[string]string) (map[string]string, error) {
	filled := make(map[string]string, len(values))
	for name, v := range values {
		var err error
		if filled[name], _, err = config.Expand(v, a.lookupSecret); err != nil {
			return nil, fault.Wrap(fault.CodeOf(err), err, "the agent's variable %s", name).WithHint("%s", fault.HintOf(err))
		}
	}
	return filled, nil
}

// parentAddress returns the entry of the environment of scripts by which this same program,
// started by one, finds what the script did not get. It is empty where that is nothing, and
// on systems where that cannot be.
func (a *App) parentAddress() string {
	a.parentMu.Lock()
	defer a.parentMu.Unlock()
	if a.parent == nil {
		withheld := a.Child().Withheld
		entries := slices.DeleteFunc(a.Env.Environ(), func(entry string) bool {
			return !slices.ContainsFunc(withheld, func(name string) bool { return len(entry) > len(name) && entry[:len(name)+1] == name+"=" })
		})
		if len(entries) == 0 {
			return ""
		}
		parent, err := environ.Listen(entries)
		if err != nil {
			return "" // the message of a script that fails names what it lacks
		}
		a.parent = parent
	}
	return a.parent.Variable()
}

// closeParent ends what parentAddress started.
func (a *App) closeParent() error {
	a.parentMu.Lock()
	defer a.parentMu.Unlock()
	if a.parent == nil {
		return nil
	}
	err := a.parent.Close()
	a.parent = nil
	return err
}
