package permission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"loki/internal/atomicfile"
	"loki/internal/sandbox"
	"loki/internal/yamldoc"
)

// Scope says how long a grant holds.
type Scope string

// The scopes.
const (
	Session Scope = "session" // as long as the memory lives
	Agent   Scope = "agent"   // for good, for one agent
)

// Grant is a rule that allows, which the user made by answering a question. One of Command,
// Text, Path and Hosts is set, or none for all calls of the tool.
type Grant struct {
	Tool    string // or AnyProgram
	Command string // pattern of a shell command
	Text    string // whole text for a shell
	Path    string // absolute path of a file
	Access  Access // of Path
	// Level is the highest level at which a shell tool may run it; empty means sandbox.Full.
	Level sandbox.Level
	// Hosts are those that it may reach at sandbox.Network, with blanks between them. Without a level it is the host
	// to which a tool may send requests.
	Hosts string
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
	if g.Command != "" {
		r.Commands = []string{g.Command}
	}
	if g.Level == "" {
		r.Hosts = strings.Fields(g.Hosts)
	}
	if g.Path != "" {
		r.Paths = []string{g.Path}
	}
	return r
}

// families are programs whose first word after the name says what they do.
var families = []string{
	"git", "npm", "go", "cargo", "docker", "kubectl", "pip", "pip3", "yarn", "pnpm", "apt", "brew", "systemctl", "terraform", "gh", "dotnet",
	"mvn", "gradle", "poetry", "uv", "bundle", "rails", "composer", "helm", "podman", "rustup", "conda", "deno", "bun", "flutter", "mix",
}

// plainPrograms are programs that can be granted with any words: their words are options and files
// of the project.
var plainPrograms = []string{"pytest", "tsc", "eslint", "prettier", "gofmt", "gofumpt", "staticcheck", "golangci-lint", "mkdir", "touch", "jest", "vitest", "mypy", "ruff", "black"}

// suggest returns the grants after which a command needs no question, nothing if that
// cannot be said with a pattern.
func (j *Judge) suggest(tool string, c *command) []Grant {
	name := c.words[0].text
	var words []string
	switch {
	case slices.Contains(families, name) && len(c.words) > 1 && c.words[1].known() && subcommand(c.words[1].text):
		words = []string{name, c.words[1].text}
		if c.words[1].is("run") || c.words[1].is("exec") || c.words[1].is("compose") {
			if len(c.words) < 3 || !c.words[2].known() || !subcommand(c.words[2].text) {
				return nil
			}
			words = append(words, c.words[2].text)
		}
		if escapes(c, words) != "" {
			return nil
		}
		words = append(words, "*")
	case slices.Contains(plainPrograms, name) && escapes(c, []string{name}) == "":
		words = []string{name, "*"}
	default:
		for _, w := range c.words {
			if !w.known() || strings.ContainsAny(w.text, "\n\"'") {
				return nil
			}
			if w.text == "" || strings.ContainsAny(w.text, " \t*") {
				w.text = "'" + w.text + "'"
			}
			words = append(words, w.text)
		}
	}
	return []Grant{{Tool: tool, Command: strings.Join(words, " ")}}
}

func subcommand(w string) bool {
	return w != "" && strings.Trim(w, "abcdefghijklmnopqrstuvwxyz-:0123456789") == "" && w[0] != '-'
}

// Memory keeps what users granted. It may be used from several goroutines, and its file by
// several processes.
type Memory struct {
	file string

	mu      sync.Mutex
	session []Grant
	agents  map[string][]Grant
	loaded  bool
	err     error
}

// NewMemory returns a memory whose grants for agents are kept in a file, which is read when
// it is first needed and made when there is something to keep. Without a file these
// grants hold for the session only.
func NewMemory(file string) *Memory { return &Memory{file: file} }

// Err returns the mistake in the file. Its grants do not hold then, and it is not
// written.
func (m *Memory) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.load()
	return m.err
}

// Grants returns what holds for an agent, oldest first.
func (m *Memory) Grants(agent string) []Grant {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.load()
	return append(slices.Clone(m.agents[agent]), m.session...)
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
	m.loaded = false // another process may have added some
	m.load()
	if m.err != nil {
		return m.err
	}
	m.agents[agent] = union(m.agents[agent], grants)
	if m.file == "" {
		return nil
	}
	if err := atomicfile.Write(m.file, m.yaml(), atomicfile.Options{Mode: atomicfile.Private}); err != nil {
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

// load reads the file once.
func (m *Memory) load() {
	if m.loaded {
		return
	}
	m.loaded = true
	if m.file == "" {
		if m.agents == nil {
			m.agents = make(map[string][]Grant)
		}
		return
	}
	m.agents, m.err = make(map[string][]Grant), nil
	src, err := os.ReadFile(m.file)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		var agents map[string][]Grant
		if agents, err = readGrants(m.file, src); err == nil {
			m.agents = agents
		}
	}
	m.err = err
}

// readGrants reads the file of grants.
func readGrants(file string, src []byte) (map[string][]Grant, error) {
	doc, err := yamldoc.Parse(file, src)
	if err != nil {
		return nil, err
	}
	agents := make(map[string][]Grant)
	top := doc.Root().Map()
	for e := range top.Map("agents").All() {
		items, _ := e.Node.List()
		for _, item := range items {
			var g Grant
			var use string
			entry := item.Map()
			entry.Require("tool")
			entry.Str("tool", &g.Tool)
			entry.Str("command", &g.Command)
			entry.Str("text", &g.Text)
			entry.Str("path", &g.Path)
			entry.Str("access", &use)
			entry.Str("level", (*string)(&g.Level))
			entry.Str("hosts", &g.Hosts)
			for _, w := range entry.Done() {
				item.Errorf("%s", w.Msg) // a condition that is not understood must not be dropped
			}
			if g.Access = Access(use); use != "" && g.Access != Reading && g.Access != Writing {
				item.Errorf("access is read or write, not %q", use)
			}
			if g.Level != "" && !g.Level.Valid() {
				item.Errorf("level is read, write, network or full, not %q", g.Level)
			}
			agents[e.Key] = append(agents[e.Key], g)
		}
	}
	return agents, doc.Err()
}

// yaml returns the text of the file.
func (m *Memory) yaml() []byte {
	var b strings.Builder
	b.WriteString("# What was answered with \"always for this agent\". Delete a line to be asked again.\nagents:\n")
	names := make([]string, 0, len(m.agents))
	for name := range m.agents {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "  %s:\n", quote(name))
		for _, g := range m.agents[name] {
			fmt.Fprintf(&b, "    - {tool: %s", quote(g.Tool))
			for _, kv := range [...][2]string{{"command", g.Command}, {"text", g.Text}, {"path", g.Path}, {"access", string(g.Access)}, {"level", string(g.Level)}, {"hosts", g.Hosts}} {
				if kv[1] != "" {
					fmt.Fprintf(&b, ", %s: %s", kv[0], quote(kv[1]))
				}
			}
			b.WriteString("}\n")
		}
	}
	return []byte(b.String())
}

// quote returns a text as a string of JSON, which YAML reads too.
func quote(s string) string {
	b, _ := json.Marshal(s) // cannot fail for a string
	return string(b)
}
