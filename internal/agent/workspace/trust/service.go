package trust

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"loki/internal/agent"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/text"
	"loki/internal/llm/event"
	"loki/internal/setup/config"
	"loki/internal/tool"
	"loki/internal/tool/mcp"
	"loki/internal/tool/permission"
	"loki/internal/tool/script"
)

// Options configure New.
type Options struct {
	Origins
	Sandbox func() (*sandbox.Sandbox, error)
	// Script returns the script with an agent's own tools, and how it is run; ok is false if it has none.
	Script func(ctx context.Context, of agent.Agent) (file string, o script.Options, ok bool)
	// Serving reports whether this is a server, whose clients are not asked about trust.
	Serving func() bool
}

// Service tells which agents the user trusts, and asks about the others. It may be used from several goroutines.
type Service struct {
	Options

	asking  chan struct{} // holds one element while the user is asked
	settled []string      // contents that were asked about or warned of, see Settle; guarded by asking
}

// New returns a service.
func New(o Options) *Service { return &Service{Options: o, asking: make(chan struct{}, 1)} }

// AtMost returns the most that an agent may do: [sandbox.Read] for one that came with a directory which the user
// has not trusted as it is now, and for all that such an agent starts; "" without a bound. It looks at the
// directory anew each time, so ask it when a child is about to be started, not before.
//
// An agent with a bound brings no declarations of a sandbox beyond it, no variables of the environment, no hooks and no MCP
// servers, and rules of the user that allow do not count for its calls.
func (s *Service) AtMost(of agent.Agent) sandbox.Level {
	if of.AtMost != "" {
		return of.AtMost
	}
	if s.Own(of.Ref) {
		return ""
	}
	c, err := s.content(context.Background(), of)
	if err != nil || !s.recorded(c) {
		return sandbox.Read
	}
	return ""
}

// Trusts reports whether there is no [Service.AtMost] for an agent.
func (s *Service) Trusts(of agent.Agent) bool { return s.AtMost(of) == "" }

// Store is the store of the directories that the user trusts.
func (s *Service) Store() Store {
	return Store{File: filepath.Join(s.Agents.Paths.ConfigDir, "trusted.json")}
}

// content returns what can run or instruct in the directory of an agent, with the scripts that its graph names
// elsewhere. It is an error if the definition there is not the one that was loaded.
func (s *Service) content(ctx context.Context, of agent.Agent) (Content, error) {
	c, err := Read(ctx, of.Dir, namedFiles(of)...)
	if err != nil || of.Definition == nil {
		return c, err
	}
	if name := filepath.Base(of.Definition.File); !c.Holds(name, of.Definition.Text) {
		return c, fmt.Errorf("%s is not the definition that was read", filepath.Join(of.Dir, name))
	}
	if of.Graph == nil {
		return c, nil
	}
	for name, text := range of.Graph.Files {
		if !c.Holds(name, text) {
			return c, fmt.Errorf("%s is not the definition that was read", filepath.Join(of.Dir, filepath.FromSlash(name)))
		}
	}
	return c, nil
}

// namedFiles returns the paths of the scripts and subgraphs of a graph.
func namedFiles(of agent.Agent) (paths []string) {
	if of.Graph == nil {
		return nil
	}
	for name := range of.Graph.Files {
		paths = append(paths, filepath.Join(of.Dir, filepath.FromSlash(name)))
	}
	for n := range of.Graph.All() {
		if n.Script != nil {
			paths = append(paths, filepath.Clean(n.Script.Path(of.Dir)))
		}
	}
	return paths
}

// recorded reports whether the user has trusted a directory with this content. A record that cannot be read has
// nothing, and Settle says what is wrong with it.
func (s *Service) recorded(c Content) bool {
	r, ok, err := s.Store().Lookup(c.Dir, "")
	return err == nil && ok && r.Trusts(c)
}

// Of returns what there is to say about the trust in an agent.
func (s *Service) Of(ctx context.Context, of agent.Agent) Status {
	t := Status{Own: s.Own(of.Ref)}
	if of.Definition != nil {
		t.Wants = s.wants(ctx, of)
	}
	if t.Own {
		t.Trusted, t.Tests = true, true
		return t
	}
	if t.Content, t.Err = s.content(ctx, of); t.Err != nil {
		return t
	}
	r, known, err := s.Store().Lookup(t.Content.Dir, "")
	if t.Err = err; known {
		t.Trusted, t.Changes, t.Tests = r.Trusts(t.Content), r.Changes(t.Content), r.TrustsTests(t.Content)
	}
	return t
}

// OfDir is [Service.Of] for a directory that need not hold an agent.
func (s *Service) OfDir(ctx context.Context, dir string) Status {
	return s.OfRef(ctx, s.Agents.At(dir, dir))
}

// OfRef is [Service.Of] for an agent that need not be valid.
func (s *Service) OfRef(ctx context.Context, ref agent.Ref) Status {
	of, _, err := s.Agents.Load(ref)
	if err != nil {
		of = agent.Agent{Ref: ref}
	}
	return s.Of(ctx, of)
}

// wants returns what an agent wants beyond reading in the sandbox, see [Status]. Scripts have the levels that they get as
// soon as the agent is trusted.
func (s *Service) wants(ctx context.Context, of agent.Agent) (lines []string) {
	add := func(what string, list []string) {
		if len(list) > 0 {
			lines = append(lines, what+" "+strings.Join(slices.Compact(slices.Sorted(slices.Values(list))), ", "))
		}
	}
	d := of.Definition
	var scripts, agents, documents []string
	tools := slices.Clone(d.GlobalTools)
	box, err := s.Sandbox()
	confined := err == nil && box.Support().Files
	at := func(name string, declared sandbox.Declaration) {
		if held := s.trustedBounds(of, filepath.Join(of.Dir, name)).Of(declared); held.Level != sandbox.Read || len(held.Read) > 0 {
			scripts = append(scripts, name+" at level "+held.String())
		} else if !confined {
			scripts = append(scripts, name)
		}
	}
	for _, name := range script.AgentFiles {
		if _, err := os.Stat(filepath.Join(of.Dir, name)); err == nil {
			for _, declared := range s.declaredIn(ctx, of, name) {
				at(name, declared)
			}
		}
	}
	documents = append(documents, d.Documents...)
	if of.Graph != nil {
		for n := range of.Graph.All() {
			switch {
			case n.Script != nil:
				at(n.Script.Script, n.Sandbox)
			case n.Agent != nil:
				agents = append(agents, n.Agent.Agent)
			case n.RAG != nil:
				documents = append(documents, n.RAG.Documents...)
			}
		}
	} else if d.Team.CanSpawn {
		if agents = d.Team.Spawnable; len(agents) == 0 {
			agents = []string{"any"}
		}
	}
	add("run", scripts)
	add("call the tools", tools)
	add("use the MCP servers", d.MCPServers)
	add("start the agents", agents)
	add("read the documents", documents)
	add("get from your environment", d.Environment)
	for _, v := range d.Variables {
		if v.Default != nil && config.HasSecretPlaceholder(*v.Default) {
			lines = append(lines, "get from your vault "+*v.Default)
		}
	}
	return lines
}

// declaredIn returns what the tools in a script with an agent's tools declare, each once, and nothing else for a script that
// cannot be read.
func (s *Service) declaredIn(ctx context.Context, of agent.Agent, name string) []sandbox.Declaration {
	var all []sandbox.Declaration
	if file, o, ok := s.Script(ctx, of); ok && filepath.Base(file) == name {
		tools, _ := script.Load(file, o) // what is wrong is said when the tools are needed
		for _, t := range tools {
			declared := t.Hints().Sandbox
			if !slices.ContainsFunc(all, func(d sandbox.Declaration) bool { return d.String() == declared.String() }) {
				all = append(all, declared)
			}
		}
	}
	if all == nil {
		all = append(all, sandbox.Declaration{})
	}
	return all
}

// Settle asks the user whether to trust an agent, if that matters and was not asked before in this process. Where no
// user can be asked, and in a server, it warns once. The error is that of an interrupted question, or of the
// record.
func (s *Service) Settle(ctx context.Context, of agent.Agent, asker ask.Asker) error {
	if of.AtMost != "" || s.Own(of.Ref) {
		return nil
	}
	select { // several children ask one after the other, and none waits longer than it works
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	t := s.Of(ctx, of)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	key := of.Dir + "\n" + t.Content.Sum
	if t.Trusted || len(t.Wants) == 0 || slices.Contains(s.settled, key) {
		return nil
	}
	if t.Err == nil && !s.Serving() && asker != nil {
		yes, err := t.Ask(ctx, asker, of.Name, "run it restricted")
		switch {
		case yes:
			return s.Add(ctx, t.Content)
		case err == nil:
			s.settled = append(s.settled, key)
			return nil
		case !errors.Is(err, ask.ErrUnavailable) && fault.CodeOf(err) != fault.Suspended:
			return err // asked again the next time
		}
	}
	s.settled = append(s.settled, key)
	event.WarnText(ctx, s.restriction(of, t))
	return nil
}

// Add records that the user trusts a directory with this content.
func (s *Service) Add(ctx context.Context, c Content) error {
	if err := s.Store().Trust(ctx, c, time.Now()); err != nil {
		return fault.Wrap(fault.Config, err, "the record of what is trusted cannot be written")
	}
	return nil
}

// AddWritten records that the user trusts what the program has written into files of a directory at their command, by the paths of the
// files; those elsewhere do not count. It does nothing unless all else in the directory is as the user trusted it, or nothing else is there.
func (s *Service) AddWritten(ctx context.Context, dir string, written map[string][]byte) error {
	t := s.OfDir(ctx, config.Absolute(dir))
	if t.Own || t.Err != nil { // the error is reported when the directory is used
		return nil
	}
	r, _, err := s.Store().Lookup(t.Content.Dir, "")
	if err != nil {
		return fault.Wrap(fault.Config, err, "the record of what is trusted")
	}
	sums := make(map[string]string, len(written)) // by the names of files
	for path, text := range written {
		real, err := Resolve(path)
		if name, ok := inside(t.Content.Dir, real); ok && err == nil {
			sums[filepath.ToSlash(name)] = textSum(text)
		}
	}
	r.Files = slices.DeleteFunc(slices.Concat(r.Files, r.Tests), func(f File) bool { return sums[f.Name] != "" })
	for _, f := range slices.Concat(t.Content.Files, t.Content.Tests) {
		if sum := sums[f.Name]; sum != "" && f.Sum == sum && f.Mode != link {
			r.Files = append(r.Files, f)
		}
	}
	if !r.Trusts(t.Content) {
		return nil
	}
	t.Content.Tests = slices.DeleteFunc(t.Content.Tests, func(f File) bool { return !slices.Contains(r.Files, f) })
	return s.Add(ctx, t.Content)
}

// restriction says that an agent is not trusted.
func (s *Service) restriction(of agent.Agent, t Status) string {
	line := fmt.Sprintf("agent %s in %s %s, so it runs read-only: no network, MCP servers, secrets or automatic approval", of.Name, of.Dir, t.why())
	if t.Err == nil {
		line += "; " + Hint(of.Dir)
	}
	return text.Visible(line)
}

// DeclaredVariables returns the names of variables of the environment that an agent declares, none for one that is not trusted.
func (s *Service) DeclaredVariables(of agent.Agent, names []string) []string {
	if !s.Trusts(of) {
		return nil
	}
	return names
}

// OwnBytecode has Python keep bytecode apart, and not use what came with the directory of an agent: it does not count for
// its content.
func (s *Service) OwnBytecode(of agent.Agent, set map[string]string) {
	if of.InForce != nil && !s.Own(of.Ref) {
		set["PYTHONPYCACHEPREFIX"] = filepath.Join(s.Agents.Paths.CacheDir, "python")
	}
}

// reaching are the tools of the program that reach the network, as patterns.
var reaching = [...]string{"fetch_url*", "search_*", "web_search*", "get_current_weather*", "query_jina*", "send_*"}

// StrictRules returns the rules of the user as they are for an agent that is not trusted, and calls these tools.
func (s *Service) StrictRules(of agent.Agent, tools tool.Set) permission.Rules {
	rules := s.Config.Permission
	rules.List = slices.DeleteFunc(slices.Clone(rules.List), func(r permission.Rule) bool { return r.Action == permission.Allow })
	if rules.Default != permission.Deny {
		rules.Default = permission.Ask
	}
	rules.Trust = nil
	const origin = "of agents that are not trusted"
	for _, pattern := range reaching {
		rules.List = append(rules.List, permission.Rule{Tool: pattern, Action: permission.Ask, Origin: origin})
	}
	if box, err := s.Sandbox(); err == nil && box.Support().Files {
		for name, t := range tools.All() {
			if own, ok := t.(tool.FromFile); ok {
				if file, _, err := own.Source(); err == nil && filepath.Dir(file) == of.Dir {
					rules.List = append(rules.List, permission.Rule{Tool: name, Action: permission.Allow, Origin: origin})
				}
			}
		}
	}
	return rules
}

// ScriptConsent returns what asks about a script before it is started: of an agent that is not trusted, where there is
// no sandbox. Where no user can be asked it is an error.
func (s *Service) ScriptConsent(of agent.Agent, asker ask.Asker) func(ctx context.Context, path string) error {
	return func(ctx context.Context, path string) error {
		box, err := s.Sandbox()
		if err != nil || s.Trusts(of) || box.Support().Files {
			return err
		}
		if asker == nil || s.Serving() {
			asker = ask.Unavailable{}
		}
		answer, err := asker.Ask(ctx, ask.Question{
			Kind: ask.Select, Consent: true, Agent: of.Name, Options: []string{"yes", "no"},
			Text: fmt.Sprintf("The agent %s is not trusted, and there is no sandbox here.\nMay it run this script with your rights?\n\n    %s", text.Visible(of.Name), text.Visible(path)),
		})
		if err != nil && !errors.Is(err, ask.ErrUnavailable) {
			return err
		}
		if err != nil || answer != "yes" {
			return Refusal(of, "script "+path+" was not run, since there is no sandbox")
		}
		return nil
	}
}

// DirOf returns the directory that is trusted for a file: that of the agent that it belongs to, or else its own.
func (s *Service) DirOf(file string) string {
	dir := filepath.Dir(config.Absolute(file))
	for up := dir; ; up = filepath.Dir(up) {
		if _, err := s.Agents.File(s.Agents.At(up, up)); fault.CodeOf(err) != fault.NotFound {
			return up
		}
		if up == filepath.Dir(up) {
			return dir
		}
	}
}

// Require returns an error unless a file, which is used as it is, is the user's or trusted with the directory of the
// agent that it belongs to, or else with its own. The user is asked if that is possible.
func (s *Service) Require(ctx context.Context, file string, asker ask.Asker) error {
	dir := s.DirOf(file)
	t, of := s.OfDir(ctx, dir), agent.Agent{Ref: s.Agents.At(dir, dir)}
	switch {
	case t.Tests:
		return nil
	case t.Err != nil:
		return fault.Wrap(fault.Config, t.Err, "%s cannot be trusted", dir)
	}
	yes, err := t.Ask(ctx, asker, of.Name, "no")
	switch {
	case yes:
		return s.Add(ctx, t.Content)
	case (err == nil || errors.Is(err, ask.ErrUnavailable)) && t.Trusted:
		return fault.New(fault.Config, "%s was not used: it is new, or has changed since %s was trusted", file, dir).WithHint("%s", Hint(dir))
	case err == nil || errors.Is(err, ask.ErrUnavailable):
		return Refusal(of, file+" was not used")
	}
	return err
}

// Bounds returns what the script in a file, of an agent or called by it, may do with what it declares, and the most that calls
// of the agent can be granted. The zero Agent is the user. It looks at the directory of the agent anew each time, see AtMost.
func (s *Service) Bounds(of agent.Agent, file string) sandbox.Bounds {
	b := s.trustedBounds(of, file)
	if most := s.AtMost(of); most != "" {
		b.Most, b.Untrusted = sandbox.Declaration{Level: sandbox.Least(b.Most.Level, most)}, true
	}
	return b
}

// trustedBounds is Bounds for an agent as soon as it is trusted.
func (s *Service) trustedBounds(of agent.Agent, file string) sandbox.Bounds {
	b := sandbox.Bounds{Default: sandbox.Declaration{Level: s.ScriptLevel(file)}, Most: of.Within}
	if of.InForce != nil && of.InForce.Sandbox.Level != "" {
		b.Default = of.InForce.Sandbox
		b.Most = b.Default.Within(of.Within)
	}
	if s.Elsewhere(file) {
		b.Most = sandbox.Declaration{Level: sandbox.Write}.Within(b.Most)
	}
	return b
}

// Admit returns an error unless the user trusts the directories from which a server takes code, as they are now. The user is
// asked if that is possible, but never on a server, where trusted_dirs do not count either: clients write there.
func (s *Service) Admit(ctx context.Context, asker ask.Asker, server mcp.Server, code []mcp.Code) error {
	select { // one question after the other
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for i, c := range code {
		if slices.ContainsFunc(code[:i], func(before mcp.Code) bool { return before.Dir == c.Dir }) {
			continue
		}
		t := s.OfDir(ctx, c.Dir)
		if t.Own && s.Serving() {
			t.Content, t.Err = Read(ctx, c.Dir)
			t.Trusted = t.Err == nil && s.recorded(t.Content)
		}
		if t.Trusted {
			continue
		}
		t.Server = server.ID
		for _, c := range code {
			t.Code = append(t.Code, c.Entry)
		}
		refused := fault.New(fault.Config, "MCP server %q was not started: it takes code from the directory %s (%s), which %s", server.ID, text.Visible(c.Dir), text.Visible(strings.Join(t.Code, ", ")), t.why()).
			WithHint("%s", Hint(c.Dir))
		if t.Err != nil || asker == nil || s.Serving() {
			return refused
		}
		yes, err := t.Ask(ctx, asker, "", "do not start it")
		switch {
		case yes:
			if err := s.Add(ctx, t.Content); err != nil {
				return err
			}
		case err == nil, errors.Is(err, ask.ErrUnavailable):
			return refused
		default:
			return err
		}
	}
	return nil
}
