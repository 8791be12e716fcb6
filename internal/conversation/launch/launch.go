// Package launch makes the jobs of agents of either kind, for users, for other agents and for what starts by itself.
package launch

import (
	"cmp"
	"context"

	"loki/internal/agent"
	"loki/internal/agent/cases/cassette"
	"loki/internal/agent/team"
	"loki/internal/agent/team/job"
	"loki/internal/agent/validate"
	"loki/internal/agent/validate/tools"
	"loki/internal/agent/workspace"
	"loki/internal/agent/workspace/ground"
	"loki/internal/agent/workspace/skill"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/value"
	"loki/internal/conversation"
	"loki/internal/conversation/knowledge"
	"loki/internal/conversation/session"
	"loki/internal/llm/catalog"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
	"loki/internal/setup/clients"
	"loki/internal/tool"
	"loki/internal/tool/builtin"
	"loki/internal/tool/mcp"
	"loki/internal/tool/mcp/servers"
	"loki/internal/tool/permission"
	"loki/internal/workflow/run"
)

// Options configure a Service. The functions return what there is when they are called.
type Options struct {
	*ground.Ground
	Catalog       *catalog.Catalog
	Tools         *tools.Service
	Models        *clients.Service
	Engine, Dry   *engine.Engine // dry ones answer with what would be sent
	Knowledge     func() *knowledge.Service
	Validator     func() *validate.Service
	Talks         func() *conversation.Service
	Plain         func(of agent.Agent, given map[string]string, asker ask.Asker, variables func(context.Context) (map[string]string, error)) conversation.Agent
	Scope         func(agent.Ref) session.Scope
	Memory        func() *conversation.Memory // nil for none
	Jobs          func() *job.Options         // nil for none
	FromWorkspace func(context.Context, conversation.FromWorkspace) (workspace.Instructions, []skill.Skill, error)
	Servers       func(ctx context.Context, events event.Scope, asker ask.Asker, supported bool, pick servers.Choice) (mcp.Servers, error)
	Calls         func(of agent.Agent, asker ask.Asker, yes bool) (tool.Options, error)
	Judge         func(rules permission.Rules, grants *permission.Memory, of agent.Agent) (*permission.Judge, error)
	Unmark        func(marked string) (secret string, ok bool) // returns the secret that a mark in a record replaces
}

// Service makes the jobs. Its methods may be called from several goroutines.
type Service struct {
	Options
	Recorder *cassette.Recorder // nil unless a cassette is recorded
	Player   *cassette.Player   // nil unless one is played

	loaded agent.Cache // of the agents that others start
}

// Taped reports whether a cassette is recorded or played.
func (s *Service) Taped() bool { return s.Recorder != nil || s.Player != nil }

// Run holds everything needed to run an agent of either kind.
type Run struct {
	Agent     agent.Agent
	Prompt    string
	Variables map[string]string // a value for every variable that the agent declares
	Given     map[string]string // the part of them that the user gave with this command
	Model     string            // id the user asked for; "" leaves it to the agent and the configuration
	NoStream  bool
	Events    event.Scope
	Asker     ask.Asker
	Yes       bool             // every question of tools is answered with yes
	Servers   *bool            // there are MCP servers; nil leaves it to the configuration
	Dry       bool             // models answer with what would be sent to them
	Instructs *bool            // models get what the workspace tells them; nil leaves it to the agents and the configuration
	Memory    chat.Memory      // what models may do with what is remembered; "" leaves it to the agents and the configuration
	Skills    *string          // setting of skills over those of the agents and the configuration; nil leaves it to them
	Mode      func() chat.Mode // returns the mode of the conversation that started it; nil for chat.ModeAsk
	Recorded  bool             // the run is resumed: its record may have what was found in knowledge bases

	State []value.Member // of a graph at its start, over what its definition says

	// Member is what the agent is in its team if another agent started it; nil for what the user
	// started.
	Member *team.Member
	// Escalated says that questions to the user, those for consent aside, go to the model of
	// another agent.
	Escalated bool
}

// answers returns what answers questions to the user, those for consent aside.
func (r Run) answers() ask.Asker {
	if r.Member == nil {
		return r.Asker
	}
	return r.Member.Asker()
}

// AgentJob returns the job of an agent. What cannot work is refused before there is a record of
// it: tools that do not exist and, as far as the settings of a graph ask for that, one that is
// not valid. The error is a [*fault.Error].
//
// That of a plain agent is the job of a child: it answers one prompt, and keeps neither a session
// nor a record of its own.
func (s *Service) AgentJob(ctx context.Context, r Run) (run.Job, error) {
	if r.Agent.Graph != nil {
		return s.GraphJob(ctx, r)
	}
	conv, err := s.agentConversation(ctx, r)
	if err != nil {
		return run.Job{}, err
	}
	return conv.Job(ctx, r.Prompt)
}

// DetachedJob returns the job of an agent of either kind that is recorded and works without who has
// started it. That of a plain agent answers one prompt, outside of sessions. Variables
// that consent to all calls of tools are a [*run.ConsentError]; all other errors are a [*fault.Error].
func (s *Service) DetachedJob(ctx context.Context, r Run) (run.Job, error) {
	if err := agent.CheckGiven(r.Given); err != nil {
		return run.Job{}, err
	}
	if r.Agent.Graph != nil {
		return s.GraphJob(ctx, r)
	}
	conv, err := s.agentConversation(ctx, r)
	if err != nil {
		return run.Job{}, err
	}
	asked := conversation.Asked{User: chat.Text(chat.User, r.Prompt), Text: r.Prompt}
	return conv.BackgroundJob(ctx, conversation.Question{Asked: asked})
}

// agentConversation returns a conversation with a plain agent.
func (s *Service) agentConversation(ctx context.Context, r Run) (*conversation.Conversation, error) {
	talks := s.Talks()
	talks.Switches.NoServers, talks.DryRun = !s.hasServers(r), talks.DryRun || r.Dry
	conv := talks.Begin(conversation.Options{
		Settings: chat.Settings{Model: r.Model}, NoStream: r.NoStream, Workspace: r.Instructs, Skills: r.Skills, Memory: r.Memory, Member: r.Member, Escalated: r.Escalated, Mode: r.Mode,
		Caller: conversation.Caller{Events: r.Events, Asker: r.Asker, Yes: r.Yes},
	})
	who := s.Plain(r.Agent, r.Given, r.Asker, func(context.Context) (map[string]string, error) { return r.Variables, nil })
	return conv, conv.UseAgent(ctx, who)
}

// agentServers returns the MCP servers of the agent, nil if it has none. They are started when
// they are needed, and stay until the run is over.
func (s *Service) agentServers(ctx context.Context, r Run, events event.Scope) (mcp.Servers, error) {
	names := r.Agent.InForce.MCPServers
	if len(names) == 0 || !s.Trust.Trusts(r.Agent) {
		return nil, nil
	}
	return s.Servers(ctx, events, r.Asker, s.hasServers(r), servers.ChooseList(names))
}

// hasServers reports whether there are MCP servers for an agent.
func (s *Service) hasServers(r Run) bool { return *cmp.Or(r.Servers, &s.Config.MCPServerSupport) }

// Consents reports whether the user consented beforehand to whatever tools would ask. What
// the agent itself says, by the default of a variable, is not the user's word.
func (s *Service) Consents(r Run) bool {
	_, given := agent.ConsentVariable(r.Given)
	return r.Yes || given
}

// AgentCalls says how the tools of an agent are called, see Calls. Neither rules that allow nor consent beforehand count
// for one that is not trusted, and tools that reach the network are asked about. Its own scripts are confined
// or, where there is no sandbox, asked about.
func (s *Service) AgentCalls(r Run, tools tool.Set) (tool.Options, error) {
	if s.Trust.Trusts(r.Agent) {
		return s.Calls(r.Agent, r.Asker, s.Consents(r))
	}
	o, err := s.Calls(r.Agent, r.Asker, false)
	if err != nil {
		return o, err
	}
	o.AutoConfirm, o.AtMost = false, sandbox.Read
	o.Judge, err = s.Judge(s.Trust.StrictRules(r.Agent, tools), nil, r.Agent) // nothing is remembered either
	return o, err
}

// RequestContext returns the context of requests to the model called id, or the configured
// one if id is empty.
func (s *Service) RequestContext(id string, noStream bool) engine.RequestContext {
	return engine.RequestContext{
		Model:    cmp.Or(id, s.Config.Model),
		Sampling: s.Config.Sampling,
		Hooks:    s.Hooks(nil),
		NoStream: noStream || !s.Config.Stream,
	}
}

// CheckModels refuses a run whose models are not known.
func (s *Service) CheckModels(r Run) error {
	for n := range r.Agent.Graph.All() {
		if n.LLM == nil {
			continue
		}
		if _, err := s.Models.Resolve(cmp.Or(n.Model(), s.GraphModel(r))); err != nil {
			return fault.Wrap(fault.CodeOf(err), err, "the model of node %s", n.Name)
		}
	}
	return nil
}

// UserTools returns the tools by which a model asks the user.
func UserTools(asker ask.Asker, agent string) []tool.Tool {
	if asker == nil {
		asker = ask.Unavailable{}
	}
	return builtin.UserTools(asker, ask.Question{Agent: agent})
}
