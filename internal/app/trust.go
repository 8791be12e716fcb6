package app

import (
	"loki/internal/agent"
	"loki/internal/sandbox"
)

// levelCap returns the most that an agent may do: [sandbox.Read] for one that came with a directory which the user
// has not trusted as it is now, and for all that such an agent starts; "" without a bound. It looks at the
// directory anew each time, so ask it when a child is about to be started, not before.
//
// An agent with a bound brings no declarations of a sandbox beyond it, no variables of the environment, no hooks and no MCP
// servers, and rules of the user that allow do not count for its calls.
func (a *App) levelCap(of agent.Agent) sandbox.Level { return of.AtMost }

// trusted reports whether there is no [App.levelCap] for an agent.
func (a *App) trusted(of agent.Agent) bool { return a.levelCap(of) == "" }
