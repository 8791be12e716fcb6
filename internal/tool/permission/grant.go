package permission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"loki/internal/base/file/atomicfile"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/text/pattern"
	"loki/internal/base/value/yamldoc"
)

// Scope says how long a grant holds.
type Scope string

// The scopes.
const (
	Session Scope = "session" // as long as the memory lives
	Run     Scope = "run"     // for one run, in a memory of [Memory.ForRun]
	Agent   Scope = "agent"   // for good, for one agent
)

// Grant is a rule that allows, which the user made by answering a question. One of Command,
// Text, Path and Hosts is set, or none for all calls of the tool.
type Grant struct {
	Tool    string `json:"tool"`              // or AnyProgram
	Command string `json:"command,omitempty"` // pattern of a shell command; no answer grants one
	Text    string `json:"text,omitempty"`    // whole text for a shell
	Path    string `json:"path,omitempty"`    // absolute path of a file
	Access  Access `json:"access,omitempty"`  // of Path
	// Level is the highest level at which a shell tool may run it; empty means sandbox.Full.
	Level sandbox.Level `json:"level,omitempty"`
	// Hosts are the ones that it may reach at sandbox.Network, with blanks between them. Without a level it is the host
	// to which a tool may send requests.
	Hosts string `json:"hosts,omitempty"`
	// Skill is the skill whose list of tools the user allowed. Rules of the user win over such a grant.
	Skill string `json:"skill,omitempty"`
}

// AnyProgram is the tool of a grant for the calls of all tools whose program runs in the sandbox.
const AnyProgram = "*"

// everyWrite is the grant after which no program that asks for [sandbox.Write] needs a question.
var everyWrite = Grant{Tool: AnyProgram, Level: sandbox.Write}

// String returns what the grant allows. The level and the hosts come first: the end may be cut where it is shown.
func (g Grant) String() string {
	at := ""
	if g.Level != "" {
		at = "level " + string(g.Level)
		if g.Hosts != "" {
			at += " (" + strings.Join(strings.Fields(g.Hosts), ", ") + ")"
		}
		at += ": "
	}
	switch {
	case g == everyWrite:
		return "write in the workspace"
	case g.Command != "":
		return at + g.Command
	case g.Text != "":
		return at + "exactly " + g.Text
	case g.Path != "" && g.Access == Writing:
		return "writing " + g.Path
	case g.Path != "":
		return "reading " + g.Path
	case g.Hosts != "" && g.Level == "":
		return g.Tool + " from " + g.Hosts
	}
	return at + "all calls of " + g.Tool
}

// granted is the origin of the rules that grants are.
const granted = "granted"

func (g Grant) rule() *Rule {
	r := &Rule{Tool: g.Tool, Action: Allow, Text: g.Text, Access: g.Access, Sandbox: g.Level, Origin: granted, layer: grantLayer, hosts: g.Hosts}
	if g.Command+g.Text+g.Path == "" && g.Level != "" {
		r.layer = -1 // for calls that ask for the level, and that no rule mentions
	}
	if g.Skill != "" {
		r.layer, r.Origin = -1, "skill "+g.Skill
	}
	if g.Command != "" {
		r.Commands = []string{g.Command}
	}
	if g.Level == "" {
		r.Hosts = strings.Fields(g.Hosts)
	}
	if g.Path != "" {
		r.Paths = []string{pattern.Escape(g.Path)}
	}
	return r
}

// Memory keeps what users granted. It may be used from several goroutines, and its file by
// several processes.
type Memory struct {
	file string
	over *Memory // whose grants hold, too, see ForRun; nil for none

	mu      sync.Mutex
	session []Grant
	agents  map[string][]Grant // without a file
}

// NewMemory returns a memory whose grants for agents are kept in a file, which is made when there is something to keep.
// Without a file these grants hold for the session only.
func NewMemory(file string) *Memory { return &Memory{file: file, agents: make(map[string][]Grant)} }

// ForRun returns the memory of one run. The grants of m hold in it, and what is added to it holds nowhere else.
func (m *Memory) ForRun() *Memory { return &Memory{over: m, agents: make(map[string][]Grant)} }

// Err returns the mistake in the file. Its grants do not hold then, and it is not
// written.
func (m *Memory) Err() error {
	if m.over != nil {
		return m.over.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := m.read()
	return err
}

// Grants returns what holds for an agent, oldest first.
func (m *Memory) Grants(agent string) []Grant {
	m.mu.Lock()
	defer m.mu.Unlock()
	agents, _ := m.read() // see Err
	held := append(slices.Clone(agents[agent]), m.session...)
	if m.over != nil {
		held = append(m.over.Grants(agent), held...)
	}
	return held
}

// Add keeps grants. Without an agent they hold for the session. It waits for other processes that do the same.
func (m *Memory) Add(ctx context.Context, scope Scope, agent string, grants []Grant) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if scope != Agent || agent == "" {
		m.session = union(m.session, grants)
		return nil
	}
	if m.file != "" {
		unlock, err := atomicfile.Lock(ctx, m.file+".lock")
		if err != nil {
			return fmt.Errorf("keep grants: %w", err)
		}
		defer unlock()
	}
	agents, err := m.read()
	if err != nil {
		return err
	}
	if agents[agent] = union(agents[agent], grants); m.file == "" {
		return nil
	}
	if err := atomicfile.Write(m.file, asYAML(agents), atomicfile.Options{Mode: atomicfile.Private}); err != nil {
		return fmt.Errorf("keep grants: %w", err)
	}
	return nil
}

func union(have, more []Grant) []Grant {
	have = slices.Clone(have)
	for _, g := range more {
		if !slices.Contains(have, g) {
			have = append(have, g)
		}
	}
	return have
}

// read returns the grants for agents, none if there is a mistake in the file.
func (m *Memory) read() (map[string][]Grant, error) {
	if m.file == "" {
		return m.agents, nil
	}
	agents := make(map[string][]Grant)
	src, err := os.ReadFile(m.file)
	if errors.Is(err, fs.ErrNotExist) {
		return agents, nil
	} else if err != nil {
		return nil, err
	}
	doc, err := yamldoc.Parse(m.file, src)
	if err != nil {
		return nil, err
	}
	for e := range doc.Root().Map().Map("agents").All() {
		items, _ := e.Node.List()
		for _, item := range items {
			entry := item.Map()
			entry.Require("tool")
			g := Grant{Access: oneOf(entry.Get("access"), Reading, Writing), Level: oneOf(entry.Get("level"), sandbox.Levels()...)}
			for key, member := range map[string]*string{"tool": &g.Tool, "command": &g.Command, "text": &g.Text, "path": &g.Path, "hosts": &g.Hosts} {
				entry.Str(key, member)
			}
			for _, w := range entry.Done() {
				item.Errorf("%s", w.Msg) // a condition that is not understood must not be dropped
			}
			agents[e.Key] = append(agents[e.Key], g)
		}
	}
	if err := doc.Err(); err != nil {
		return nil, err
	}
	return agents, nil
}

// asYAML returns the text of the file, in which agents and grants are written as JSON, which YAML reads too.
func asYAML(agents map[string][]Grant) []byte {
	b := []byte("# What was answered with \"always for this agent\". Delete a line to be asked again.\nagents:\n")
	for _, name := range slices.Sorted(maps.Keys(agents)) {
		key, _ := json.Marshal(name) // cannot fail, nor can the other
		b = fmt.Appendf(b, "  %s:\n", key)
		for _, g := range agents[name] {
			grant, _ := json.Marshal(g)
			b = fmt.Appendf(b, "    - %s\n", grant)
		}
	}
	return b
}
