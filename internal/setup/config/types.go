package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"loki/internal/base/process/sandbox"
	"loki/internal/base/value/yamldoc"
	"loki/internal/tool/mcp"
	"loki/internal/workflow/graph"
)

// Mapping is a list of names and their values, in the order it was written.
type Mapping []Entry

// Entry is one name of a [Mapping].
type Entry struct {
	Name, Value string
}

// Get returns the value of name; ok is false if it is not in m.
func (m Mapping) Get(name string) (value string, ok bool) {
	for _, e := range m {
		if e.Name == name {
			return e.Value, true
		}
	}
	return "", false
}

// Map returns what the names stand for.
func (m Mapping) Map() map[string]string {
	all := make(map[string]string, len(m))
	for _, e := range m {
		all[e.Name] = e.Value
	}
	return all
}

// Keybindings is the style of the line editor's keys.
type Keybindings string

// The styles. Emacs is the default, and what an unknown style becomes.
const (
	Emacs Keybindings = "emacs"
	Vi    Keybindings = "vi"
)

// Notify says of what the chat notifies a user who may look elsewhere.
type Notify string

// The choices. NotifyQuestions, the default, is questions that wait, and NotifyAll also work that has ended.
const (
	NotifyOff       Notify = "off"
	NotifyQuestions Notify = "questions"
	NotifyAll       Notify = "all"
)

// Instruct says which conversations get the instructions of the workspace.
type Instruct string

// The choices. InstructAuto, the default, is conversations whose model has a tool that sees files, and those with an agent.
const (
	InstructAuto   Instruct = "auto"
	InstructAlways Instruct = "always"
	InstructOff    Instruct = "off"
)

// InstructionBytes is how long the instructions of a workspace may be: 0 to 1 MiB.
type InstructionBytes int

// SkillTokens is how long the list of skills may be, in tokens: 0 to 20000.
type SkillTokens int

// MemoryTokens is how much of the memory comes with a question, in tokens: 0 to 8000.
type MemoryTokens int

// Jobs bound the commands that continue after their call.
type Jobs struct {
	Max      int           // of a conversation that run at a time, to 64; 0 for none at all
	MaxAge   time.Duration // after which one is killed, to 7 days
	LogBytes int64         // of the output that is kept of each, from 64 KiB to 1 GiB
}

// readJobs reads a section, which may be nil, over the defaults.
func readJobs(m *yamldoc.Map, j *Jobs) {
	const most, oldest, shortest, longest = 64, 7 * 24 * time.Hour, 64 << 10, 1 << 30
	if m == nil {
		return
	}
	if m.Uint("max", &j.Max) && j.Max > most {
		m.Get("max").Errorf("expected a number from 0 to %d, found %d", most, j.Max)
	}
	if m.Span("max_age", &j.MaxAge) && (j.MaxAge < time.Minute || j.MaxAge > oldest) {
		m.Get("max_age").Errorf("expected a time from 1m to 168h, found %s", m.Get("max_age").Describe())
	}
	bytes := int(j.LogBytes)
	if m.Uint("log_bytes", &bytes) && (bytes < shortest || bytes > longest) {
		m.Get("log_bytes").Errorf("expected a number of bytes from %d to %d, found %d", shortest, longest, bytes)
	}
	j.LogBytes = int64(bytes)
	m.Done()
}

// MCP is about the Model Context Protocol, in both directions, and about the protocol of editors.
type MCP struct {
	MCPPool   mcp.PoolConfig // connections to servers
	MCPServer MCPServer
	ACP       ACP
}

// ACP is what an editor does for tools, where it can.
type ACP struct {
	ClientFiles     bool // files are read and written there
	ClientTerminals bool // commands without a sandbox run there
}

// readACP reads a section, which may be nil, over the defaults.
func readACP(m *yamldoc.Map, a *ACP) {
	if m == nil {
		return
	}
	m.Bool("client_files", &a.ClientFiles)
	m.Bool("client_terminals", &a.ClientTerminals)
	m.Done()
}

// MCPServer is what the program offers as an MCP server.
type MCPServer struct {
	Enabled   bool          // at /mcp of a server
	Chat      bool          // a tool asks models
	Agents    []string      // the ones that are offered; nil for all that are installed
	RAGs      []string      // knowledge bases; nil for all
	Roles     []string      // that are prompts; nil for all
	Macros    []string      // that are prompts; nil for all
	Runs      string        // that a client sees: own, all or none
	Consent   bool          // the user of the client may consent to what tools ask
	Wait      time.Duration // for a run before a call of its tool ends, from 1 s to 1 h
	TaskAfter time.Duration // after which a call becomes a task for a client that has tasks, from 0 to 1 h
	Budget    graph.Budget  // of a call; zero for none
	MaxRuns   int           // that work at once, from 1 to 64
	Sandbox   sandbox.Level // the most that the agent of a call may do
}

// Values of Runs.
const (
	RunsOwn  = "own"
	RunsAll  = "all"
	RunsNone = "none"
)

func defaultMCPServer() MCPServer {
	return MCPServer{Enabled: true, Chat: true, Consent: true, Runs: RunsOwn, Wait: 50 * time.Second, TaskAfter: 10 * time.Second, MaxRuns: 8, Sandbox: sandbox.Write}
}

// readMCPServer reads a section, which may be nil, over the defaults.
func readMCPServer(m *yamldoc.Map, s *MCPServer) {
	if m == nil {
		return
	}
	m.Bool("enabled", &s.Enabled)
	m.Bool("chat", &s.Chat)
	for _, list := range []struct {
		key string
		to  *[]string
	}{{"agents", &s.Agents}, {"rags", &s.RAGs}, {"roles", &s.Roles}, {"macros", &s.Macros}} {
		if n := m.Get(list.key); n != nil && n.Kind() == yamldoc.String {
			if text := ""; m.Str(list.key, &text) && text != "all" {
				n.Errorf("expected all or a list of names, found %s", n.Describe())
			}
		} else if n != nil {
			*list.to = []string{}
			m.Strs(list.key, list.to)
		}
	}
	if m.Str("runs", &s.Runs) && s.Runs != RunsOwn && s.Runs != RunsAll && s.Runs != RunsNone {
		m.Get("runs").Errorf("expected %s, %s or %s, found %s", RunsOwn, RunsAll, RunsNone, m.Get("runs").Describe())
	}
	m.Bool("consent", &s.Consent)
	if m.Span("wait", &s.Wait) && (s.Wait < time.Second || s.Wait > time.Hour) {
		m.Get("wait").Errorf("expected a time from 1s to 1h, found %s", m.Get("wait").Describe())
	}
	if m.Span("task_after", &s.TaskAfter) && (s.TaskAfter < 0 || s.TaskAfter > time.Hour) {
		m.Get("task_after").Errorf("expected a time from 0s to 1h, found %s", m.Get("task_after").Describe())
	}
	s.Budget = graph.ReadBudget(m)
	m.Int("max_runs", &s.MaxRuns, 1, 64)
	yamldoc.Choice(m, "sandbox", &s.Sandbox, sandbox.Levels()...)
	m.Done()
}

// IgnoreFiles are names of files that hide others from models. Each begins with a dot, as the names of files that are watched do.
type IgnoreFiles []string

// readIgnoreFiles reads a list of names. A null is none.
func readIgnoreFiles(m *yamldoc.Map, key string, files *IgnoreFiles) {
	n := m.Get(key)
	if n != nil && n.Kind() == yamldoc.Null {
		*files = IgnoreFiles{}
	}
	if !m.Strs(key, (*[]string)(files)) {
		return
	}
	for _, name := range *files {
		if strings.Trim(name, ".") == "" || name[0] != '.' || strings.ContainsAny(name, `/\*?[`) {
			n.Errorf("%q is not the name of a file that begins with a dot, such as .cursorignore", name)
		}
	}
}

// Wrap says where lines of output are wrapped: empty for nowhere, "auto" for the
// width of the terminal, otherwise a number of columns.
type Wrap string

// WrapAuto wraps at the width of the terminal.
const WrapAuto Wrap = "auto"

// String returns w as config.yaml has it: "no", "auto" or a number.
func (w Wrap) String() string {
	if w == "" {
		return "no"
	}
	return string(w)
}

// Columns returns the configured number of columns; ok is false if w is not a number.
func (w Wrap) Columns() (n int, ok bool) {
	n, err := strconv.Atoi(string(w))
	return n, err == nil
}

func parseWrap(text string) (Wrap, error) {
	switch text {
	case "no":
		return "", nil
	case string(WrapAuto):
		return WrapAuto, nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", fmt.Errorf("want no, auto or a number of columns up to 65535, not %q", text)
	}
	return Wrap(strconv.FormatUint(n, 10)), nil
}
