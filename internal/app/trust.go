package app

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
	"loki/internal/agent/trust"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/sandbox"
	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/llm/event"
	"loki/internal/setup/config"
	"loki/internal/tool"
	"loki/internal/tool/permission"
	"loki/internal/tool/script"
)

// levelCap returns the most that an agent may do: [sandbox.Read] for one that came with a directory which the user
// has not trusted as it is now, and for all that such an agent starts; "" without a bound. It looks at the
// directory anew each time, so ask it when a child is about to be started, not before.
//
// An agent with a bound brings no declarations of a sandbox beyond it, no variables of the environment, no hooks and no MCP
// servers, and rules of the user that allow do not count for its calls.
func (a *App) levelCap(of agent.Agent) sandbox.Level {
	if of.AtMost != "" {
		return of.AtMost
	}
	if a.own(of.Ref) {
		return ""
	}
	c, err := a.content(context.Background(), of)
	if err != nil || !a.recorded(c) {
		return sandbox.Read
	}
	return ""
}

// trusted reports whether there is no [App.levelCap] for an agent.
func (a *App) trusted(of agent.Agent) bool { return a.levelCap(of) == "" }

// Trusts is the store of the directories that the user trusts.
func (a *App) Trusts() trust.Store {
	return trust.Store{File: filepath.Join(a.Paths.ConfigDir, "trusted.json")}
}

// content returns what can run or instruct in the directory of an agent, with the scripts that its graph names
// elsewhere. It is an error if the definition there is not the one that was loaded.
func (a *App) content(ctx context.Context, of agent.Agent) (trust.Content, error) {
	c, err := trust.Read(ctx, of.Dir, namedFiles(of)...)
	if err != nil || of.Definition == nil {
		return c, err
	}
	if name := filepath.Base(of.Definition.File); !c.Holds(name, of.Definition.Text) {
		return c, fmt.Errorf("%s is not the definition that was read", filepath.Join(of.Dir, name))
	}
	for name, text := range filesOf(of) {
		if !c.Holds(name, text) {
			return c, fmt.Errorf("%s is not the definition that was read", filepath.Join(of.Dir, filepath.FromSlash(name)))
		}
	}
	return c, nil
}

// filesOf returns the definitions of the subgraphs of a graph that are files, by their paths below the directory.
func filesOf(of agent.Agent) map[string][]byte {
	if of.Graph == nil {
		return nil
	}
	return of.Graph.Files
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
// nothing, and settle says what is wrong with it.
func (a *App) recorded(c trust.Content) bool {
	r, ok, err := a.Trusts().Lookup(c.Dir)
	return err == nil && ok && r.Trusts(c)
}

// Trust is what there is to say about the trust in an agent.
type Trust struct {
	Own     bool // it is the user's: nothing is asked
	Trusted bool // as it is now; so is an agent of the user
	Tests   bool // likewise, with its test cases
	// Wants is what the agent wants beyond reading in the sandbox, a line each; without any of it, it is not
	// asked about.
	Wants   []string
	Content trust.Content
	// Changes are what has changed since the directory was trusted, see [trust.Record.Changes].
	Changes []string
	// Err says what keeps the directory from being trusted.
	Err error
	// Server is the MCP server that takes code from the directory, and Code the parts of its entry by which it does; empty
	// for an agent.
	Server string
	Code   []string
}

// TrustOf returns what there is to say about the trust in an agent.
func (a *App) TrustOf(ctx context.Context, of agent.Agent) Trust {
	t := Trust{Own: a.own(of.Ref)}
	if of.Definition != nil {
		t.Wants = a.wants(ctx, of)
	}
	if t.Own {
		t.Trusted, t.Tests = true, true
		return t
	}
	if t.Content, t.Err = a.content(ctx, of); t.Err != nil {
		return t
	}
	r, known, err := a.Trusts().Lookup(t.Content.Dir)
	if t.Err = err; known {
		t.Trusted, t.Changes, t.Tests = r.Trusts(t.Content), r.Changes(t.Content), r.TrustsTests(t.Content)
	}
	return t
}

// TrustOfDir is [App.TrustOf] for a directory that need not hold an agent.
func (a *App) TrustOfDir(ctx context.Context, dir string) Trust {
	return a.TrustOfRef(ctx, a.Agents.At(dir, dir))
}

// TrustOfRef is [App.TrustOf] for an agent that need not be valid.
func (a *App) TrustOfRef(ctx context.Context, ref agent.Ref) Trust {
	of, _, err := a.Agents.Load(ref)
	if err != nil {
		of = agent.Agent{Ref: ref}
	}
	return a.TrustOf(ctx, of)
}

// Ask asks whether to trust what is called name as it is now. Otherwise is the other answer.
func (t Trust) Ask(ctx context.Context, asker ask.Asker, name, otherwise string) (bool, error) {
	const yes = "trust it"
	answer, err := asker.Ask(ctx, ask.Question{
		Kind: ask.Select, Text: t.Question(name), Options: []string{otherwise, yes}, Consent: true, Affirms: yes, Lasts: true, Agent: name,
	})
	return answer == yes, err
}

// TrustQuestion ends each question about trust.
const TrustQuestion = "Do you trust it as it is now?"

// Question returns the question whether the agent is to be trusted, with all that the answer needs.
func (t Trust) Question(name string) string {
	var b strings.Builder
	what := "agent " + text.Visible(name) + " came with"
	before := "its programs only read the workspace, without network, and each other call needs your consent. What you trust is like your own."
	if t.Server != "" {
		what = "MCP server " + text.Visible(t.Server) + " takes code from"
		before = "the server does not start. What you trust runs with your rights, unless the server has a sandbox. If a file changes, you are asked again."
	}
	fmt.Fprintf(&b, "The %s the directory\n\n    %s\n\n", what, text.Visible(t.Content.Dir))
	if len(t.Code) > 0 {
		fmt.Fprintf(&b, "by %s.\n\n", text.Visible(strings.Join(t.Code, ", ")))
	}
	if len(t.Changes) > 0 {
		fmt.Fprintf(&b, "You have trusted it before, and %s changed since:\n\n", text.Count(len(t.Changes), "file"))
		writeLines(&b, t.Changes)
	} else {
		fmt.Fprintf(&b, "It has %s that can run or instruct.\n", text.Count(len(t.Content.Files), "file"))
	}
	if len(t.Wants) > 0 {
		b.WriteString("\nBeyond reading the workspace it wants to\n\n")
		writeLines(&b, t.Wants)
	}
	b.WriteString("\nUntil you trust it, " + before + "\n\n" + TrustQuestion)
	return b.String()
}

// maxLines is how many lines of a list a question shows.
const maxLines = 20

func writeLines(b *strings.Builder, lines []string) {
	for _, line := range lines[:min(len(lines), maxLines)] {
		fmt.Fprintf(b, "    %s\n", text.Visible(line))
	}
	if more := len(lines) - maxLines; more > 0 {
		fmt.Fprintf(b, "    and %d more\n", more)
	}
}

// wants returns what an agent wants beyond reading in the sandbox, see [Trust]. Scripts have the levels that they get as
// soon as the agent is trusted.
func (a *App) wants(ctx context.Context, of agent.Agent) (lines []string) {
	add := func(what string, list []string) {
		if len(list) > 0 {
			lines = append(lines, what+" "+strings.Join(slices.Compact(slices.Sorted(slices.Values(list))), ", "))
		}
	}
	d := of.Definition
	var scripts, agents, documents []string
	tools := slices.Clone(d.GlobalTools)
	box, err := a.Sandbox()
	confined := err == nil && box.Support().Files
	at := func(name string, declared sandbox.Declaration) {
		if held := a.trustedBounds(of, filepath.Join(of.Dir, name)).Of(declared); held.Level != sandbox.Read || len(held.Read) > 0 {
			scripts = append(scripts, name+" at level "+held.String())
		} else if !confined {
			scripts = append(scripts, name)
		}
	}
	for _, name := range agentScripts {
		if _, err := os.Stat(filepath.Join(of.Dir, name)); err == nil {
			for _, declared := range a.declaredIn(ctx, of, name) {
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
func (a *App) declaredIn(ctx context.Context, of agent.Agent, name string) []sandbox.Declaration {
	var all []sandbox.Declaration
	if file, o, ok := a.agentScript(ctx, of, nil, nil); ok && filepath.Base(file) == name {
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

// settle asks the user whether an agent is to be trusted, if that matters and was not asked before in this process. Where no
// user can be asked, and in a server, it warns once. The error is that of an interrupted question, or of the
// record.
func (a *App) settle(ctx context.Context, of agent.Agent, asker ask.Asker) error {
	if of.AtMost != "" || a.own(of.Ref) {
		return nil
	}
	select { // several children ask one after the other, and none waits longer than it works
	case a.settling <- struct{}{}:
		defer func() { <-a.settling }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	t := a.TrustOf(ctx, of)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	key := of.Dir + "\n" + t.Content.Sum
	if t.Trusted || len(t.Wants) == 0 || slices.Contains(a.settled, key) {
		return nil
	}
	if t.Err == nil && a.host == nil && asker != nil {
		yes, err := t.Ask(ctx, asker, of.Name, "run it restricted")
		switch {
		case yes:
			return a.TrustContent(ctx, t.Content)
		case err == nil:
			a.settled = append(a.settled, key)
			return nil
		case !errors.Is(err, ask.ErrUnavailable) && fault.CodeOf(err) != fault.Suspended:
			return err // asked again the next time
		}
	}
	a.settled = append(a.settled, key)
	event.WarnText(ctx, a.restriction(of, t))
	return nil
}

// TrustContent records that the user trusts a directory with this content.
func (a *App) TrustContent(ctx context.Context, c trust.Content) error {
	if err := a.Trusts().Trust(ctx, c, time.Now()); err != nil {
		return fault.Wrap(fault.Config, err, "the record of what is trusted cannot be written")
	}
	return nil
}

// why says why there is no trust.
func (t Trust) why() string {
	switch {
	case t.Err != nil:
		return fmt.Sprintf("cannot be trusted (%v)", t.Err)
	case len(t.Changes) > 0:
		return fmt.Sprintf("has changed since it was trusted (%s)", strings.Join(t.Changes[:min(len(t.Changes), 3)], ", "))
	}
	return "is not trusted"
}

// restriction says that an agent is not trusted.
func (a *App) restriction(of agent.Agent, t Trust) string {
	line := fmt.Sprintf("agent %s in %s %s: it runs at level read, without MCP servers, secrets and what --yes or rules of yours allow", of.Name, of.Dir, t.why())
	if t.Err == nil {
		line += "; " + trust.Hint(of.Dir)
	}
	return text.Visible(line)
}

// declared returns the names of variables of the environment that an agent declares, none for one that is not trusted.
func (a *App) declared(of agent.Agent, names []string) []string {
	if !a.trusted(of) {
		return nil
	}
	return names
}

// agentVariables is [App.scriptVariables] for an agent. One that is not trusted gets no secrets.
func (a *App) agentVariables(of agent.Agent, values map[string]string) (map[string]string, error) {
	if !a.trusted(of) {
		return values, nil
	}
	return a.scriptVariables(values)
}

// parentOf returns what gives the scripts of an agent access to variables that they did not get, nil for one that is
// not trusted.
func (a *App) parentOf(of agent.Agent) func() string {
	if !a.trusted(of) {
		return nil
	}
	return a.parentAddress
}

// ownBytecode has Python keep bytecode apart, and not use what came with the directory of an agent: it does not count for
// its content.
func (a *App) ownBytecode(of agent.Agent, set map[string]string) {
	if of.InForce != nil && !a.own(of.Ref) {
		set["PYTHONPYCACHEPREFIX"] = filepath.Join(a.Paths.CacheDir, "python")
	}
}

// agentCalls says how the tools of an agent are called, see [App.calls]. Neither rules that allow nor consent beforehand count
// for one that is not trusted, and tools that reach the network are asked about. Its own scripts are confined
// or, where there is no sandbox, asked about.
func (a *App) agentCalls(r AgentRun, tools tool.Set) (tool.Options, error) {
	own := r.Agent.InForce.Permission
	if a.trusted(r.Agent) {
		return a.calls(r.Agent.Name, own, r.Asker, a.consents(r))
	}
	o, err := a.calls(r.Agent.Name, own, r.Asker, false)
	if err != nil {
		return o, err
	}
	o.AutoConfirm, o.AtMost = false, sandbox.Read
	o.Judge, err = a.strictJudge(r.Agent, tools)
	return o, err
}

// reaching are the tools of the program that reach the network, as patterns.
var reaching = [...]string{"fetch_url*", "search_*", "web_search*", "get_current_weather*", "query_jina*", "send_*"}

// strictJudge is [App.judge] for an agent that is not trusted.
func (a *App) strictJudge(of agent.Agent, tools tool.Set) (*permission.Judge, error) {
	rules := a.Config.Permission
	rules.List = slices.DeleteFunc(slices.Clone(rules.List), func(r permission.Rule) bool { return r.Action == permission.Allow })
	if rules.Default != permission.Deny {
		rules.Default = permission.Ask
	}
	rules.Trust = nil
	const origin = "of agents that are not trusted"
	for _, pattern := range reaching {
		rules.List = append(rules.List, permission.Rule{Tool: pattern, Action: permission.Ask, Origin: origin})
	}
	if box, err := a.Sandbox(); err == nil && box.Support().Files {
		for name, t := range tools.All() {
			if own, ok := t.(tool.FromFile); ok {
				if file, _, err := own.Source(); err == nil && filepath.Dir(file) == of.Dir {
					rules.List = append(rules.List, permission.Rule{Tool: name, Action: permission.Allow, Origin: origin})
				}
			}
		}
	}
	return a.judgeBy(rules, nil, of.Name, of.InForce.Permission) // nothing is remembered either
}

// scriptConsent returns what asks about a script before it is started: of an agent that is not trusted, where there is
// no sandbox. Where no user can be asked it is an error.
func (a *App) scriptConsent(of agent.Agent, asker ask.Asker) func(ctx context.Context, path string) error {
	return func(ctx context.Context, path string) error {
		box, err := a.Sandbox()
		if err != nil || a.trusted(of) || box.Support().Files {
			return err
		}
		if asker == nil || a.host != nil {
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
			return trust.Refusal(of, "script "+path+" was not run, since there is no sandbox")
		}
		return nil
	}
}

// RequireTrust returns an error unless a file, which is used as it is, is the user's or trusted with the directory of the
// agent that it belongs to, or else with its own. The user is asked if that is possible.
func (a *App) RequireTrust(ctx context.Context, file string, asker ask.Asker) error {
	dir := filepath.Dir(config.Absolute(file))
	for up := dir; ; up = filepath.Dir(up) {
		if _, err := a.Agents.File(a.Agents.At(up, up)); fault.CodeOf(err) != fault.NotFound {
			dir = up
			break
		}
		if up == filepath.Dir(up) {
			break
		}
	}
	t, of := a.TrustOfDir(ctx, dir), agent.Agent{Ref: a.Agents.At(dir, dir)}
	switch {
	case t.Tests:
		return nil
	case t.Err != nil:
		return fault.Wrap(fault.Config, t.Err, "%s cannot be trusted", dir)
	}
	yes, err := t.Ask(ctx, asker, of.Name, "no")
	switch {
	case yes:
		return a.TrustContent(ctx, t.Content)
	case (err == nil || errors.Is(err, ask.ErrUnavailable)) && t.Trusted:
		return fault.New(fault.Config, "%s was not used: it is new, or has changed since %s was trusted", file, dir).WithHint("%s", trust.Hint(dir))
	case err == nil || errors.Is(err, ask.ErrUnavailable):
		return trust.Refusal(of, file+" was not used")
	}
	return err
}

// trustedInfo returns how many directories the user trusts, for --info; null if the record cannot be read.
func (a *App) trustedInfo() value.Value {
	records, err := a.Trusts().List()
	if err != nil {
		return value.Value{}
	}
	return value.Of(len(records))
}
