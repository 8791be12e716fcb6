package harness

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"loki/internal/base/process/sandbox"
	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
	"loki/internal/tool"
)

// Setting says which program an agent is, as harness: of its definition has it, with what its preset adds.
type Setting struct {
	Name    string   // of the preset, else of the program, for people and events
	Command []string // the program and its arguments
	Install string   // the command that installs the program; empty if it is not known
	Tested  string   // version of the program with which this one was tested

	Env   []string // variables that it gets although they look like secrets: names, or NAME=TEXT
	Hosts []string // that it reaches
	State []string // places of its own, which it reads and writes: absolute, or below ~/

	Mode, Model string            // of its sessions; empty leaves them to the program
	Options     map[string]string // settings of its sessions, by their ids
	Auth        string            // the way to authenticate, if it asks for that

	// OnUncertain says what to do about work that was cut off in a session that is gone; empty means [tool.Ask].
	OnUncertain tool.Policy

	USDPerTurn float64 // charged for a turn whose cost the program does not report; 0 if it is not known
	Reports    bool    // the program is known to report what its turns cost

	// Written is the setting as the file has it.
	Written value.Value
}

// presets are the programs that are known, with what they need. All speak version 1 of the protocol.
var presets = []Setting{
	{
		Name: "claude-code", Command: []string{"claude-agent-acp"}, Install: "npm install -g @agentclientprotocol/claude-agent-acp", Tested: "0.101.0",
		Env: []string{"ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "IS_SANDBOX=1"}, State: []string{"~/.claude", "~/.claude.json"},
		Hosts: []string{"api.anthropic.com", "console.anthropic.com", "platform.claude.com", "claude.ai"}, Reports: true,
	},
	{
		Name: "codex", Command: []string{"codex-acp"}, Install: "npm install -g @agentclientprotocol/codex-acp", Tested: "2.6.0",
		Env: []string{"CODEX_API_KEY", "OPENAI_API_KEY"}, State: []string{"~/.codex"},
		Hosts: []string{"api.openai.com", "auth.openai.com", "chatgpt.com"},
	},
	{
		Name: "gemini", Command: []string{"gemini", "--acp"}, Install: "npm install -g @google/gemini-cli", Tested: "0.61.0",
		Env: []string{"GEMINI_API_KEY"}, State: []string{"~/.gemini"}, Auth: "gemini-api-key",
		Hosts: []string{"generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com", "oauth2.googleapis.com", "accounts.google.com"},
	},
	{
		Name: "opencode", Command: []string{"opencode", "acp"}, Install: "npm install -g opencode-ai", Tested: "1.18.0",
		State: []string{"~/.config/opencode", "~/.local/share/opencode", "~/.local/state/opencode", "~/.cache/opencode"}, Hosts: []string{"opencode.ai", "*.opencode.ai", "models.dev"},
	},
	{
		Name: "goose", Command: []string{"goose", "acp"}, Install: "see https://block.github.io/goose/docs/getting-started/installation",
		State: []string{"~/.config/goose", "~/.local/share/goose", "~/.local/state/goose"},
	},
}

// Update returns the command that installs the version that was tested, since npm chooses an older one where Node.js is old. It is empty if it is not known.
func (s *Setting) Update() string {
	if s.Tested == "" {
		return s.Install
	}
	return s.Install + "@" + s.Tested
}

// Age says that a version of the program is older than the one that was tested, "" if it is not or if it is not known.
func (s *Setting) Age(version string) string {
	if s.Tested == "" || !semver.IsValid("v"+version) || semver.Compare("v"+version, "v"+s.Tested) >= 0 {
		return ""
	}
	return fmt.Sprintf("%s %s is older than %s, with which it was tested", s.Command[0], version, s.Tested)
}

// Presets returns the names of the programs that are known.
func Presets() []string {
	var names []string
	for _, p := range presets {
		names = append(names, p.Name)
	}
	return names
}

const example = "harness: claude-code, or harness: {acp: [my-agent, --acp], hosts: [api.example.com]}"

// Read reads the key harness of an agent's definition, nil if it is absent. Mistakes are reported to the document.
func Read(m *yamldoc.Map) *Setting {
	n := m.Get("harness")
	if n == nil || n.Kind() == yamldoc.Null {
		return nil
	}
	if n.Kind() == yamldoc.String {
		return preset(n, n)
	}
	in := n.Map()
	if in == nil {
		return nil
	}
	in.Require("acp")
	s := readCommand(n, in.Get("acp"))
	var hosts, env, state []string
	if in.Texts("hosts", &hosts) {
		s.Hosts = hosts
		for i, h := range in.List("hosts") {
			if err := sandbox.CheckHost(hosts[i]); err != nil {
				h.Errorf("%v", err)
			}
		}
	}
	in.Texts("env", &env)
	for i, e := range in.List("env") {
		if name, _, _ := strings.Cut(env[i], "="); name == "" || strings.ContainsAny(name, " \t$") {
			e.Errorf("%q is neither the name of a variable nor NAME=TEXT", env[i])
		}
	}
	in.Texts("state", &state)
	for i, e := range in.List("state") {
		if !strings.HasPrefix(state[i], "/") && !strings.HasPrefix(state[i], "~/") {
			e.Errorf("%q is not an absolute path, and does not begin with ~/", state[i])
		}
	}
	s.Env, s.State = slices.Concat(s.Env, env), slices.Concat(s.State, state)
	in.Text("mode", &s.Mode)
	in.Text("model", &s.Model)
	in.Text("auth", &s.Auth)
	yamldoc.Choice(in, "on_uncertain", &s.OnUncertain, tool.Ask, tool.Retry, tool.Skip)
	options := in.Map("options")
	s.Options = make(map[string]string, options.Len())
	for e := range options.All() {
		var text string
		if options.Text(e.Key, &text) {
			s.Options[e.Key] = text
		}
	}
	if in.Float("usd_per_turn", &s.USDPerTurn) && s.USDPerTurn <= 0 {
		in.Get("usd_per_turn").Errorf("must be greater than 0, found %s", in.Get("usd_per_turn").Describe())
	}
	in.Done()
	return s
}

// readCommand reads acp: the name of a preset, or a command.
func readCommand(whole, n *yamldoc.Node) *Setting {
	if n == nil {
		return &Setting{Written: whole.FiniteValue()}
	}
	if n.Kind() == yamldoc.String {
		return preset(whole, n)
	}
	s := &Setting{Written: whole.FiniteValue()}
	command, ok := n.Texts()
	if ok && (len(command) == 0 || command[0] == "") {
		n.Errorf("names no program").Hint = example
		return s
	}
	if s.Command = command; ok {
		s.Name = command[0][strings.LastIndexAny(command[0], `/\`)+1:]
	}
	return s
}

// preset returns the preset that a node names.
func preset(whole, n *yamldoc.Node) *Setting {
	s := &Setting{Written: whole.FiniteValue()}
	name, ok := n.Text()
	i := slices.IndexFunc(presets, func(p Setting) bool { return p.Name == name })
	switch {
	case i >= 0:
		written := s.Written
		*s = presets[i]
		s.Written = written
	case ok:
		p := n.Errorf("unknown program %q", name)
		if near := yamldoc.Nearest(name, Presets()); near != "" {
			p.Hint = "did you mean " + near + "?"
		} else {
			p.Hint = "there are " + strings.Join(Presets(), ", ") + "; of another one write the command: harness: {acp: [my-agent, --acp]}"
		}
	}
	return s
}

// optionNames returns the ids of the options in their order.
func (s *Setting) optionNames() []string { return slices.Sorted(maps.Keys(s.Options)) }
