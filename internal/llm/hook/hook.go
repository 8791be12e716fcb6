package hook

import (
	"fmt"
	"strings"
	"time"

	"loki/internal/base/process/sandbox"
)

// Kind is the point at which a hook runs.
type Kind string

// The kinds, see [Kinds].
const (
	BeforeTool   Kind = "before_tool"   // before a call is judged; may refuse it or change its arguments
	AfterTool    Kind = "after_tool"    // before a model reads the result; may withhold or change it
	BeforeModel  Kind = "before_model"  // before a request is sent; may refuse it
	AfterModel   Kind = "after_model"   // when a reply is complete; may refuse it
	SessionStart Kind = "session_start" // before a session is entered; may refuse that
	SessionEnd   Kind = "session_end"   // when it has been left
	Question     Kind = "question"      // before the user is asked; may refuse that, and cannot answer
)

// Kinds returns the kinds in the order in which they are documented and shown.
func Kinds() []Kind {
	return []Kind{BeforeTool, AfterTool, BeforeModel, AfterModel, SessionStart, SessionEnd, Question}
}

// AgentKinds returns the kinds of hooks that the definition of an agent may have.
func AgentKinds() []Kind { return []Kind{BeforeTool, AfterTool, BeforeModel, AfterModel} }

// Limits of a hook.
const (
	DefaultTimeout = 10 * time.Second
	MaxTimeout     = 5 * time.Minute
	MaxAnswer      = 1 << 20  // bytes on standard output; a hook that prints more is killed, and has failed
	MaxReason      = 4 << 10  // bytes of a reason; a longer one is cut
	MaxNote        = 16 << 10 // likewise, of a note
)

// Failure says whether the work continues when a hook fails.
type Failure string

// The choices. By default what comes after a failed hook is refused if the hook is one of [BeforeTool] or
// [BeforeModel], which are there to prevent things, and continues otherwise.
const (
	Continue Failure = "continue"
	Refuse   Failure = "refuse"
)

// Hook is a command that runs at a point of the work.
type Hook struct {
	Kind Kind
	Name string // for messages and the hook itself; unique only as far as the user makes it so
	// Command is a text for the user's shell. Args are a program and its arguments instead. One of the two is empty.
	Command string
	Args    []string
	// Match is a pattern, in which * matches any text, of what the hook is for: names of tools, ids of models, and
	// for the other kinds names of agents. Empty matches all.
	Match     string
	Timeout   time.Duration // from above 0 to MaxTimeout
	OnFailure Failure
	// Level bounds what the command can do; empty is [sandbox.Full]. Bound is set if the user did not choose it; [Read] leaves it
	// false.
	Level sandbox.Level
	Bound bool
	Env   []string // variables beyond those of all hooks, as NAME=value; Read leaves it empty
	Where string   // file:line of the definition
}

// String names the hook and where it is defined.
func (h Hook) String() string {
	if h.Where == "" {
		return "hook " + h.Name
	}
	return fmt.Sprintf("hook %s (%s)", h.Name, h.Where)
}

// Line returns the command on one line, for lists.
func (h Hook) Line() string {
	if h.Command != "" {
		return h.Command
	}
	return strings.Join(h.Args, " ")
}

// matches reports whether the hook is for what has a name.
func (h Hook) matches(name string) bool {
	parts := strings.Split(h.Match, "*")
	if h.Match == "" || len(parts) == 1 {
		return h.Match == "" || h.Match == name
	}
	rest, ok := strings.CutPrefix(name, parts[0])
	for _, part := range parts[1 : len(parts)-1] {
		if i := strings.Index(rest, part); ok && i >= 0 {
			rest = rest[i+len(part):]
		} else {
			return false
		}
	}
	return ok && strings.HasSuffix(rest, parts[len(parts)-1])
}
