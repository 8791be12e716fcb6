package conversation

import (
	"context"

	"loki/internal/agent"
	"loki/internal/agent/harness"
	"loki/internal/agent/role"
	"loki/internal/agent/team"
	"loki/internal/agent/team/job"
	"loki/internal/agent/team/todo"
	"loki/internal/agent/workspace"
	"loki/internal/agent/workspace/skill"
	"loki/internal/base/ask"
	"loki/internal/conversation/session"
	"loki/internal/knowledge/rag"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
	"loki/internal/llm/hook"
	"loki/internal/service/auth"
	"loki/internal/tool"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/gate"
	"loki/internal/workflow/run"
)

// Service begins conversations. Its fields are what they share; they are not changed once
// there is a conversation. It may be used from several goroutines.
type Service struct {
	Engine   *engine.Engine
	Dry      *engine.Engine // of dry runs: it answers with what would be sent; nil means Engine
	Roles    func() role.Library
	Sessions func() (session.Store, error) // always the same store

	// Tools returns what a question is asked with. done releases what the tools hold; it is
	// called also after an error. A nil Tools has none.
	Tools func(ctx context.Context, w Wanted) (kit Kit, done func(), err error)

	// Workspace returns what the workspace tells models, without a text where it tells nothing, and all skills that there are. A nil
	// Workspace has nothing.
	Workspace func(ctx context.Context, w FromWorkspace) (workspace.Instructions, []skill.Skill, error)
	// SkillTools reports whether the user has allowed the tools that a skill lists for as long as the skill stays as it is. With keep it
	// records that.
	SkillTools func(ctx context.Context, s skill.Skill, keep bool) (bool, error)
	// SkillTokens is how long the list of skills may be.
	SkillTokens int
	Instruct    *bool // all conversations get it, or none; nil means the ones whose model has a tool that sees files, and those with an agent

	// Place returns the place of an agent: that with a name, or that of the run that was at work in a directory, each "" for none. It is nil
	// for an agent that works in the working directory. A nil Place has none for any agent.
	Place func(ctx context.Context, of agent.Agent, name, at string) (*Place, error)

	Memory *Memory      // nil remembers nothing
	Jobs   *job.Options // nil has no jobs

	// Servers starts the MCP servers that a conversation asks for, and keeps them running until stop is
	// called. A server that does not work is a warning. Nil starts none.
	Servers func(ctx context.Context, w Wanted) (stop func(), err error)
	// ServerNames returns what a setting of MCP servers may name; nil allows all names.
	ServerNames func() ([]string, error)
	// CheckReranker returns the error for an id that is not that of a reranker; nil allows all ids.
	CheckReranker func(ctx context.Context, id string) error
	// Hooks returns the hooks of conversations with an agent, nil for none. A nil Hooks has none at all.
	Hooks func(with *Agent) *hook.Runner
	// Agent finds an agent. Given are values of its variables. What is wrong with the agent and does not
	// prevent its use is a warning. Nil has no agents.
	Agent func(ctx context.Context, name string, given map[string]string, from Caller) (Agent, error)

	Settings     chat.Settings          // of the configuration, below all others
	Todo         todo.Settings          // likewise; without Enabled models have no todo list
	NoStream     bool                   // replies come in one piece
	InputLimit   func(model string) int // most tokens that the model called by this id takes; 0 means unknown
	ModelID      func(id string) string // whole id, client:model, of the chat model called by this id, which may be empty; nil leaves ids as they are
	MessagesFile *session.MessagesFile  // keeps turns outside of sessions, if Save says so; nil keeps none
	// SourceOf returns the directory of the user that belongs to one in a copy of a repository; nil if there are none.
	SourceOf    func(dir string) string
	Recents     session.Recents // remembers the last conversation of each directory; without a path none
	Save        bool            // turns outside of sessions are kept in the file of messages
	PromptLog   bool            // turns outside of sessions are kept as sessions without a name
	InDatabase  bool            // sessions are in a database, which is not opened for a turn outside of them
	Highlight   bool            // for faces: answers and input are shown in color
	Switches    Switches
	TopK        func(knowledge string) int // passages that a knowledge base finds without a setting of the conversation; nil is not known
	SaveSession *bool                      // that new sessions begin with
	Remember    bool                       // interactive conversations remember what is said outside of sessions
	Compression Compression
	Durability  graph.Durability // of the records of questions; off and "" keep none
	Runs        *run.Service     // records them; nil if Durability says that there are none
	DryRun      bool             // models answer with what would be sent, and nothing is kept
	Unkept      bool             // nothing is kept: neither in sessions, which change in memory only, nor in files of messages
}

// Wanted says for whom which tools are wanted.
type Wanted struct {
	chat.Settings      // that are in force
	Usual         bool // the choice of tools is that of a role of the program, so names without a tool are no mistake
	Caller

	Agent     *Agent            // nil for none
	Variables map[string]string // of the agent

	Mode func() chat.Mode // returns the mode, which may change while the question is answered

	Switches
	Knowledge string // name of the knowledge base that the user named; "" for none
	// Recorded says that the question resumes from its record, which may have what was found for it.
	Recorded bool
}

// FromWorkspace says what is wanted of a workspace. The user is asked about what they do not trust.
type FromWorkspace struct {
	Caller
	Instructions bool
	Skills       string // a setting, see [skill.Choose]
	AgentDir     string // that may have skills; "" for none
	Dir          string // in which the agent works; "" for the working directory
}

// Kit is what a question is asked with.
type Kit struct {
	Tools tool.Set
	// More returns tools of which some may not have been there before; nil for none. See [tool.Options].
	More    func(ctx context.Context) []tool.Tool
	Calling bool              // models are offered tools at all
	Files   map[string]string // digests of the files of the tools, for the record; see [run.Info]
	// Calls says how they are called: who judges the calls, and which limits they have. The
	// turn sets the tools and what depends on its run.
	Calls tool.Options
	// Foreign is the program of others that is the agent, nil for none, and Served the tools that serve it.
	Foreign *harness.Program
	Served  tool.Set
	// Team says how an agent starts children. The turn sets who the root is.
	Team team.Options
	// Knowledge is what the question is answered from, with Template: the knowledge base that the
	// user named, or that of the agent; nil for none.
	Knowledge rag.Searcher
	Template  rag.Template
}

// Caller is the user behind a conversation: where it turns to them.
type Caller struct {
	Events event.Scope // the zero Scope drops events
	Asker  ask.Asker   // asks whether tools may be used, and what tools ask; nil if the user cannot be asked
	Yes    bool        // whatever tools would ask is answered with yes
}

// Options configure [Service.Begin]. The zero value of a field is its default.
type Options struct {
	Settings chat.Settings // over those of the session, the role and the configuration
	NoStream bool          // replies come in one piece
	Caller
	Rules gate.Rules // by which the runs of its questions start, beside those of the agent

	// Member is what an agent is in its team if another one started it; nil for what the user
	// started.
	Member *team.Member
	// Escalated says that the questions of such an agent to the user, those for consent aside, go to
	// the model of another agent.
	Escalated bool

	// Unrecorded says that there are no records of its questions, such as when a list of
	// them is asked.
	Unrecorded bool

	// Interactive says that a user continues the conversation, line by line, as in a REPL. MCP
	// servers run as long as what asks for them is in force, models may ask the user, and the user decides
	// whether to keep sessions, of which turns are the conversation's alone.
	Interactive bool

	// MaxOutputTokens bounds the replies of every model for which no limit was set since; 0 leaves that to the model.
	MaxOutputTokens int

	// EmptySession has a session that is entered forget its messages, in a dry run only
	// for the time being.
	EmptySession bool

	// Workspace says whether questions get what the workspace tells models, over all settings; nil leaves it to them.
	Workspace *bool

	// Skills is likewise the setting of skills over all settings.
	Skills *string
	// Memory is what models may do with what is remembered, over all settings; "" leaves it to them.
	Memory chat.Memory

	// View is whose sessions can be entered; nil for all. Owner is who owns the sessions and runs that the
	// conversation makes, and ones without an owner from its first change of them on; nil for no owner.
	View  *auth.View
	Owner *auth.Owner

	// Mode returns the mode of the conversation that started an agent of a team; nil for what the user started.
	Mode func() chat.Mode
	// Writes says that the user consents to programs that write in the workspace, AcceptPlan that they accept the plans of
	// plan mode in advance.
	Writes, AcceptPlan bool

	isolated bool // sessions are saved when they are left, and not if they are left open
}

// Begin begins a conversation without role and session.
func (s *Service) Begin(o Options) *Conversation {
	v := values{
		settings: s.Settings, todo: s.Todo, noStream: o.NoStream || s.NoStream, save: s.Save, promptLog: s.PromptLog, saveSession: s.SaveSession,
		threshold: s.Compression.Threshold, dryRun: s.DryRun, highlight: s.Highlight, switches: s.Switches,
	}
	if s.Hooks != nil {
		o.Asker = s.Hooks(nil).Asker(o.Asker)
	}
	return &Conversation{service: s, options: o, values: v, list: new(todo.List), steering: new(steering), jobs: job.New(s.Jobs), planState: planState{writes: o.Writes}}
}

// Isolate returns a conversation that begins with the settings in force in c and with a copy of its todo list, and
// with nothing else that is in force there. A session is saved when it is left, as its settings or the user
// say, but not if Close finds it open. What happens in it does not change c. The
// caller closes it.
func (c *Conversation) Isolate() *Conversation {
	o := c.options
	o.Settings, o.isolated, o.EmptySession = chat.Settings{}, true, false
	if c.agent != nil {
		o.Events = c.outer.events
	}
	other := &Conversation{service: c.service, options: o, values: c.values, list: c.list.Clone(), steering: c.steering, jobs: job.New(c.service.Jobs), planState: c.planState}
	other.values.settings, other.values.todo = c.Settings(), c.todo()
	if c.last != nil {
		l := *c.last
		l.continuous = false
		other.last = &l
	}
	return other
}

// Now returns the conversation as it is now, for looking at it while c works.
func (c *Conversation) Now() *Conversation {
	now := *c
	return &now
}

// engine returns what asks models.
func (c *Conversation) engine() *engine.Engine {
	if c.values.dryRun && c.service.Dry != nil {
		return c.service.Dry
	}
	return c.service.Engine
}

// runs returns what questions are run by.
func (c *Conversation) runs() *run.Service {
	if c.service.Runs == nil || c.values.dryRun {
		return &run.Service{Unrecorded: true}
	}
	return c.service.Runs
}
