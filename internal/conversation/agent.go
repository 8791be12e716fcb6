package conversation

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"loki/internal/agent"
	"loki/internal/agent/team"
	"loki/internal/agent/team/todo"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/conversation/session"
	"loki/internal/knowledge/rag"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/tool"
	"loki/internal/tool/builtin"
	"loki/internal/workflow/run"
)

// Agent is an agent that a conversation is with. Its functions are called before a question
// is asked, and not if they are not needed.
type Agent struct {
	agent.Agent
	Scope        session.Scope // of its sessions
	MessagesFile *session.MessagesFile

	Session      string // name of the session that it begins with; "" for none
	NeedsServers bool   // it cannot do without its MCP servers
	// Job returns the run of a graph agent for a question; nil for a plain agent.
	Job func(ctx context.Context, q GraphQuestion) (run.Job, error)
	// Model returns the id of the model that a graph's nodes ask unless they name one, given the id that is in force
	// around the graph, which may be empty. It is nil for a plain agent.
	Model func(id string) string

	// Variables returns a value for each variable of the agent. Given is the part of them that
	// the user gave with the command.
	Variables func(ctx context.Context) (map[string]string, error)
	Given     map[string]string
	// Instructions returns the instructions as they are written.
	Instructions func(ctx context.Context, variables map[string]string) (string, error)
	// Texts returns the values of placeholders in the instructions.
	Texts func(variables map[string]string) agent.Texts
}

// UseAgent begins to talk with an agent. Its sessions are other ones, so it comes before
// [Conversation.UseSession]. The model's todo list is empty then. The role in force comes back
// when the agent is left.
func (c *Conversation) UseAgent(ctx context.Context, a Agent) error {
	if c.agent != nil {
		return fault.New(fault.Usage, "the conversation is already with agent %s", c.agent.Name).WithHint("leave it first: .exit agent")
	}
	if c.session != nil {
		return fault.New(fault.Usage, "leave session %s before entering agent %s", c.session.Name(), a.Name).WithHint(".exit session")
	}
	c.outer = outer{c.role, c.options.Events}
	c.agent, c.role, c.tuned = &a, nil, chat.Settings{}
	c.shared, c.variables, c.base, c.unwritten = nil, nil, "", false
	c.knowledge, c.found = "", rag.Found{}
	c.list.Clear()
	c.options.Events = c.options.Events.With(func(s *event.Source) { s.Agent = a.Name })
	if err := c.rescope(ctx); err != nil {
		c.leaveAgent()
		return err
	}
	return nil
}

// leaveAgent takes the agent out of force.
func (c *Conversation) leaveAgent() {
	c.dropPlace(context.Canceled)
	c.role, c.options.Events = c.outer.role, c.outer.events
	c.agent, c.tuned, c.outer = nil, chat.Settings{}, outer{}
	c.shared, c.variables, c.base, c.unwritten = nil, nil, "", false
	c.knowledge, c.found = "", rag.Found{}
	c.list.Clear()
}

// EnterAgent begins to talk with the agent called name, in the session called so or, if that is "", in
// the one that the agent begins with. Given are values of its variables; the user is asked for
// those without one. Whatever makes it impossible is an error before anything is started.
func (c *Conversation) EnterAgent(ctx context.Context, name, sessionName string, given map[string]string) (err error) {
	switch {
	case c.agent != nil:
		return errWithAgent(c.agent)
	case c.stays():
		return errInSession(c.session)
	}
	ctx = c.context(ctx)
	a, err := c.findAgent(ctx, name, given, sessionName != "")
	if err == nil {
		err = c.setAside(ctx)
	}
	if err != nil {
		return err
	}
	if sessionName == "" && a.Job == nil && !c.options.isolated {
		sessionName = a.Session
	}
	list, knowledge, found := c.list.Clone(), c.knowledge, c.found
	defer func() {
		if err != nil {
			c.list, c.knowledge, c.found = list, knowledge, found
		}
	}()
	if err := c.UseAgent(ctx, a); err != nil {
		return err
	}
	if sessionName != "" {
		err = c.UseSession(ctx, sessionName)
	} else {
		err = c.ready(ctx)
	}
	if err != nil {
		c.leaveAgent()
		return errors.Join(err, c.rescope(context.WithoutCancel(ctx)))
	}
	return nil
}

// errWithAgent is the error of entering another agent.
func errWithAgent(a *Agent) error {
	return fault.New(fault.Usage, "the conversation is already with agent %s", a.Name).WithHint("leave it first: .exit agent")
}

// errInSession is the error of entering an agent where a session is in force.
func errInSession(s *session.Session) error {
	return fault.New(fault.Usage, "leave session %s before entering an agent", s.Name()).WithHint(".exit session")
}

// findAgent returns the agent called name, if it can be entered, in a session or without. Given are values of its
// variables.
func (c *Conversation) findAgent(ctx context.Context, name string, given map[string]string, inSession bool) (a Agent, err error) {
	switch {
	case c.service.Agent == nil:
		return a, fault.New(fault.NotFound, "no agent is called %q", name)
	case c.values.switches.NoTools:
		return a, fault.New(fault.Config, "agents work with tools, but function_calling_support is off").WithHint(".set function_calling_support true")
	}
	if a, err = c.service.Agent(ctx, name, given, c.options.Caller); err != nil {
		return a, err
	}
	switch {
	case a.Job != nil && inSession:
		return a, fault.New(fault.Usage, "agent %s is a graph, which has no sessions", a.Name).WithHint(".agent %s", name)
	case a.NeedsServers && c.values.switches.NoServers:
		return a, fault.New(fault.Config, "agent %s lists MCP servers, but mcp_server_support is off", a.Name).WithHint(".set mcp_server_support true")
	}
	return a, nil
}

// ExitAgent leaves the session, as [Conversation.ExitSession] does, and then the agent. The role that
// was in force before comes back. Without an agent it does nothing.
func (c *Conversation) ExitAgent(ctx context.Context) error {
	if c.agent == nil {
		return nil
	}
	if c.session != nil {
		if err := c.saveOnExit(ctx); err != nil {
			return err
		}
		c.leaveSession()
		if err := c.sessionEnded(ctx); err != nil {
			return err
		}
	}
	c.endJobs(ctx, "the agent ended")
	err := c.leavePlace(c.context(ctx), c.options.Events)
	c.leaveAgent()
	c.last.end()
	return errors.Join(err, c.rescopeOut(ctx))
}

// withAgent returns the settings of a over s. The agent has tools of its own. One with a model of
// its own does not take the sampling of another.
func withAgent(s chat.Settings, a *Agent) chat.Settings {
	d := a.InForce
	s.EnabledTools, s.EnabledMCPServers = nil, nil
	if d.Model != "" {
		s.Model, s.Temperature, s.TopP = d.Model, nil, nil
	}
	s.Mode = cmp.Or(d.Mode, s.Mode)
	s.Sampling = d.Sampling.Over(s.Sampling)
	return s
}

// Agent returns the agent in force; ok is false without one.
func (c *Conversation) Agent() (of Agent, ok bool) {
	if c.agent == nil {
		return Agent{}, false
	}
	return *c.agent, true
}

// Variables returns the values of the agent's variables, as far as they are known.
func (c *Conversation) Variables() map[string]string { return maps.Clone(c.variables) }

// Starters returns the conversation starters of the agent with the values of its variables, which the user may be asked for.
func (c *Conversation) Starters(ctx context.Context) ([]string, error) {
	if err := c.ready(ctx); err != nil || c.agent == nil {
		return nil, err
	}
	return c.KnownStarters(), nil
}

// KnownStarters returns the conversation starters of the agent with the values of variables that are known.
func (c *Conversation) KnownStarters() []string {
	starters := slices.Clone(c.agent.InForce.Starters)
	for i, s := range starters {
		starters[i] = agent.Texts{Variables: c.variables}.Expand(s)
		if c.agent.Texts != nil {
			starters[i] = c.agent.Texts(c.variables).Expand(s)
		}
	}
	return starters
}

// Scope returns whose sessions the conversation has.
func (c *Conversation) Scope() session.Scope {
	if c.agent == nil {
		return ""
	}
	return c.agent.Scope
}

// ready finds the values of the agent's variables and its instructions: those of the session, if
// it has messages, or else those of today, which become the session's. Instructions that a script
// writes are found by the first turn.
func (c *Conversation) ready(ctx context.Context) error {
	if c.agent == nil || c.variables != nil {
		return nil
	}
	if c.session != nil && !c.session.Empty() && c.recallAgent() {
		return nil
	}
	variables, err := c.shared, error(nil)
	if variables == nil {
		if variables, err = c.agent.Variables(ctx); err != nil {
			return err
		}
	}
	base := ""
	if !c.agent.InForce.Dynamic && c.agent.Job == nil { // see [turn.write]
		if base, err = c.agent.Instructions(ctx, variables); err != nil {
			return err
		}
	}
	c.variables, c.base, c.unwritten = variables, base, c.agent.InForce.Dynamic
	if c.variables == nil {
		c.variables = make(map[string]string) // they are known now
	}
	c.shared = c.variables
	c.keepAgent()
	return nil
}

// keepAgent has the session, if there is one, keep the variables and the instructions.
func (c *Conversation) keepAgent() {
	if c.session == nil {
		return
	}
	c.session.Sync(c.agentSettings)
}

// agentSettings sets what a session has of the agent.
func (c *Conversation) agentSettings(s *session.Settings) {
	s.AgentInstructions, s.AgentVariables = &c.base, nil
	if c.place != nil {
		s.Worktree = c.place.Name
	}
	for _, v := range c.agent.InForce.Variables {
		s.AgentVariables = append(s.AgentVariables, session.Variable{Name: v.Name, Value: c.variables[v.Name]})
	}
	if limit := c.agent.InForce.CompressionThreshold; limit != nil {
		s.CompressionThreshold = limit
	}
}

// recallAgent takes the variables and the instructions that the session has. It reports false if
// a variable of the agent is not among them.
func (c *Conversation) recallAgent() bool {
	s := c.session.Settings()
	variables := make(map[string]string, len(s.AgentVariables))
	for _, v := range s.AgentVariables {
		variables[v.Name] = v.Value
	}
	for _, v := range c.agent.InForce.Variables {
		if _, ok := variables[v.Name]; !ok {
			return false
		}
	}
	c.variables = variables
	if s.AgentInstructions != nil {
		c.base = *s.AgentInstructions
	}
	return true
}

// own returns the tools of a turn whose state belongs to it: those of its todo list, of its
// member of a team, and the ones that put questions to user.
func (t *turn) own(ctx context.Context, user ask.Asker, m *team.Member) []tool.Tool {
	var tools []tool.Tool
	switch {
	case t.kit.Foreign == nil:
	case t.c.agent.InForce.Team.CanSpawn:
		return m.Tools()
	default:
		return nil
	}
	if user == nil {
		user = ask.Unavailable{}
	}
	if t.q.Todo.Enabled {
		tools = append(tools, todo.Tools(t.c.list)...)
	}
	if t.loader != nil {
		tools = append(tools, t.loader)
	}
	if t.proposes() {
		tools = append(tools, t.planTool())
	}
	tools = append(tools, t.memoryTools(ctx)...)
	switch {
	case !t.kit.Calling:
	case t.c.agent != nil && !t.q.Aside:
		tools = append(tools, m.Tools()...)
		tools = append(tools, builtin.UserTools(user, t.from())...)
	case t.c.attended() && t.calls:
		tools = append(tools, builtin.UserTools(user, t.from())...)
	}
	return tools
}

// from is the origin of the questions of a turn.
func (t *turn) from() ask.Question {
	q := ask.Question{Depth: t.c.options.Events.Depth, Child: t.c.options.Events.AgentID}
	if t.c.agent != nil {
		q.Agent = t.c.agent.Name
	}
	return q
}

// instructions returns the system prompt of the agent for the tools of the turn, as the messages
// in front of the question.
func (t *turn) instructions(tools []chat.Tool) []chat.Message {
	c := t.c
	text := c.agent.InForce.SystemPrompt(agent.Prompt{Base: c.base, Tools: tools, Texts: c.agent.Texts(c.variables)})
	if text == "" {
		return nil
	}
	return []chat.Message{chat.Text(chat.System, text)}
}

// write has the script write the instructions of an agent whose instructions are dynamic, as a step:
// a resumed or replayed turn has them on record.
func (t *turn) write(ctx context.Context) error {
	c := t.c
	if c.agent == nil || !c.unwritten || t.q.Aside {
		return nil
	}
	base, err := steps.Do(ctx, t.rc.Steps, steps.Step{Kind: steps.Script, Key: "instructions", Name: "_instructions"}, func(ctx context.Context) (string, error) {
		return c.agent.Instructions(ctx, c.variables)
	})
	if err != nil {
		return err
	}
	c.base, c.unwritten = base, false
	c.keepAgent()
	var tools []chat.Tool
	if t.req.Tools != nil {
		tools = t.req.Tools.Declarations()
	}
	t.q.Lead = t.instructions(tools)
	return nil
}

// join gives the turn its tools and, with an agent, its member of a team, which the caller closes.
func (t *turn) join(ctx context.Context, f *run.Frame) (member *team.Member, err error) {
	t.planning.ask = t.questions(f)
	if t.c.agent != nil || t.rc.Steps.Recording() {
		t.kit.Calls.Asker = t.questions(f).ForTools()
	}
	user := t.kit.Calls.Asker
	if t.c.agent != nil {
		if member, err = t.member(ctx, f.Events, f.Budget); err != nil {
			return nil, err
		}
		if t.c.options.Escalated {
			user = member.Asker()
		}
		if member.Parent == nil && t.c.agent.InForce.Team.CanSpawn {
			t.req.Notice = member.Notice
		}
	}
	set, err := t.kit.Tools.With(t.own(ctx, user, member)...)
	if err == nil && t.kit.Foreign != nil {
		return member, t.serveForeign(f, set)
	}
	if err != nil || set.Len() == 0 {
		return member, err
	}
	o := t.kit.Calls
	o.Tools, o.Run, o.From, o.Hooks = set, f.Events.Run, t.from(), t.rc.Hooks
	t.follow(&o)
	if t.loader != nil {
		o.Readable = t.loader.Readable
	}
	if t.c.service.Memory != nil {
		o.Reads = t.reads
	}
	if t.c.jobs != nil {
		o.Notes = t.c.jobs.Notes
	}
	if more := t.kit.More; more != nil {
		o.More = func() []tool.Tool { return more(ctx) }
	}
	o.Mode, o.More = t.mode, t.laterTools(o.More)
	t.req.Tools = tool.NewBox(o)
	return member, nil
}

// member returns the member of a team that the agent is: of its parent's, or the root of its own.
func (t *turn) member(ctx context.Context, events event.Scope, budget *run.Budget) (*team.Member, error) {
	if m := t.c.options.Member; m != nil {
		return m, nil
	}
	o := t.kit.Team
	o.Agent, o.Limits, o.Steps, o.Events, o.Budget = t.c.agent.Name, t.c.agent.InForce.Team, t.rc.Steps, events, budget
	if t.q.Session != nil {
		o.Seed = t.q.Session.seed() // turns of one session have different children
	}
	own, err := team.New(ctx, o)
	if err != nil {
		return nil, err
	}
	return own.Root(), nil
}

// questions puts the questions of the turn to the user.
func (t *turn) questions(f *run.Frame) run.Questions {
	place, waits := string(run.ChatRun), "the question"
	if t.c.agent != nil {
		place, waits = t.c.agent.Name, "agent "+t.c.agent.Name
	}
	if id := t.c.options.Events.AgentID; id != "" {
		place = id
	}
	return run.Questions{
		Asker: t.kit.Calls.Asker, Steps: t.rc.Steps, Events: f.Events, From: t.from(),
		Place: place, Base: t.rc.Steps.Key(""), Waits: waits,
	}
}

// limitIn says where the budget of the agent is set.
func (t *turn) limitIn() string { return "budget in " + t.c.agent.Definition.File }

// agentTurns bounds the tool loop of an agent. Its budget, and its time as a child, end it long
// before that, unless it has run away.
const agentTurns = 1000

// Limits of the guard against repeated calls for a child, whose work the user does not follow.
const (
	childRepeats = 4
	childWindow  = 10
)

// Job returns the job of a prompt for the conversation's agent, which is a child of another one.
// Its work keeps neither a session nor a record of its own. In the session that the agent names it
// continues in memory.
func (c *Conversation) Job(ctx context.Context, prompt string) (run.Job, error) {
	ctx = c.context(ctx)
	if err := c.ready(ctx); err != nil {
		return run.Job{}, err
	}
	t := c.newTurn(Question{Asked: Asked{User: chat.Text(chat.User, prompt), Text: prompt}, Whole: true})
	t.child = true
	t.req.Repeats, t.req.Window = childRepeats, childWindow
	var err error
	if t.past, err = c.past(ctx); err != nil {
		return run.Job{}, err
	}
	return run.Job{
		Info: t.agentInfo(), Events: c.options.Events, Limit: c.agent.InForce.Budget, LimitIn: t.limitIn(),
		Make: t.makeWork,
	}, nil
}

// BackgroundJob returns the job of a question that is recorded and answered in the background, such as by a
// server. The tools and files that the question needs are checked now, and held only while the job works.
// Ask does the same at once.
func (c *Conversation) BackgroundJob(ctx context.Context, q Question) (run.Job, error) {
	ctx = c.context(ctx)
	if err := c.ready(ctx); err != nil {
		return run.Job{}, err
	}
	t := c.newTurn(q)
	done, err := t.equip(ctx) // for what the record says of its files
	done()
	var job run.Job
	if err == nil {
		job, err = t.job()
	}
	if err != nil {
		c.dropPlace(err)
		return run.Job{}, err
	}
	job.Make, job.Release = t.makeWork, func() { c.dropPlace(errNotBegun) }
	return job, nil
}

// errNotBegun is why a run has done nothing.
var errNotBegun = errors.New("the run did not begin")

// makeWork equips the turn for the work of a run, and returns it with what releases that.
func (t *turn) makeWork(ctx context.Context, _ run.Point) (run.Work, func() error, error) {
	done, err := t.equip(t.c.context(ctx))
	if err != nil {
		done()
		return nil, nil, err
	}
	return t, func() error {
		done()
		t.c.endJobs(ctx, "the agent ended")
		return t.c.leavePlace(context.WithoutCancel(ctx), t.rc.Events)
	}, nil
}

// past returns the messages of the session that the agent's own definition names, nil for none.
func (c *Conversation) past(ctx context.Context) ([]chat.Message, error) {
	name := c.agent.InForce.Session
	if name == nil || *name == "" || *name == session.TempName {
		return nil, nil
	}
	alias, err := session.ParseAlias(*name)
	if err != nil {
		return nil, err
	}
	store, err := c.service.Sessions()
	if err != nil {
		return nil, err
	}
	id, err := store.Resolve(ctx, c.agent.Scope, alias)
	if errors.Is(err, session.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s, err := store.Open(ctx, c.agent.Scope, id)
	if err != nil {
		return nil, err
	}
	return s.Messages(), nil
}
