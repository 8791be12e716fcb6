package conversation

import (
	"context"
	"errors"
	"strings"

	"loki/internal/agent/role"
	"loki/internal/agent/team/job"
	"loki/internal/agent/team/todo"
	"loki/internal/agent/workspace"
	"loki/internal/base/fault"
	"loki/internal/conversation/session"
	"loki/internal/knowledge/rag"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/hook"
)

// Conversation is a talk with a model, and what is in force for it. It belongs to one
// goroutine.
type Conversation struct {
	options Options
	service *Service
	values  values // of the configuration, as they are set here
	role    *role.Role
	outside *role.Role // comes back when the session is left
	session *session.Session
	unnamed bool            // a question began the session, see [Conversation.remember]
	release func()          // lets others into the session; nil if only turns keep them out
	draft   *session.Draft  // the question that was asked last, until it is recorded
	stay    *string         // name of the session whose hooks of the beginning have run; nil for none
	talking bool            // those of a REPL outside of sessions have run
	kept    bool            // it was recorded with its run
	passing bool            // the conversation cannot continue from the last question
	list    *todo.List      // of the model
	recent  *session.Recent // what was remembered last of it; nil for nothing
	jobs    *job.List       // that models started; nil if there can be none
	last    *last           // nil before the first question
	spent   chat.Usage      // of all turns
	servers func()          // stops the MCP servers of what is in force; nil for none

	steering *steering // what the user sends while the model works

	knowledge string    // name of the knowledge base that the user named; "" for none
	found     rag.Found // for the last question

	told    string             // which files of the workspace the last question was asked with; "" for none
	allowed []string           // skills whose lists of tools the user was asked about, by directory and digest
	tracker *workspace.Tracker // of the directories in which the model works; nil without instructions

	planState
	placing

	agent     *Agent            // nil for none
	tuned     chat.Settings     // set for the agent while it is in force
	outer     outer             // what comes back when the agent is left
	shared    map[string]string // variables of the agent outside of sessions; nil until they are known
	variables map[string]string // of the agent; nil until they are known
	base      string            // its instructions as they are written, once the variables are known
	unwritten bool              // a script has yet to write them
}

// planState is what plan mode leaves in a conversation.
type planState struct {
	writes    bool // the user consents to programs that write in the workspace
	granted   bool // they did so by accepting a plan
	continues bool // a plan was accepted: the model continues by itself
}

// outer is what an agent hides while it is in force.
type outer struct {
	role   *role.Role
	events event.Scope
}

// Session returns the session, nil if there is none.
func (c *Conversation) Session() *session.Session { return c.session }

// With returns the conversation with its events going to another scope.
func (c *Conversation) With(events event.Scope) *Conversation {
	other := *c
	other.options.Events = events
	return &other
}

// context returns ctx for work of the conversation: what only a context reaches, such as the
// store of sessions, emits its warnings to the conversation's scope.
func (c *Conversation) context(ctx context.Context) context.Context {
	return event.NewContext(ctx, c.options.Events)
}

// Close leaves what is in force: the session is saved if required, see [Conversation.ExitSession], also if the user
// interrupts the question, and the MCP servers of the conversation stop.
func (c *Conversation) Close(ctx context.Context) error {
	c.endJobs(ctx, "the conversation ended")
	err := c.leavePlace(c.context(ctx), c.options.Events)
	if c.session != nil {
		if !c.options.isolated {
			err = errors.Join(err, c.saveOnExit(ctx))
		}
		if errors.Is(err, context.Canceled) { // nothing was decided
			err = c.keepSession(c.context(ctx))
		}
		c.leave()
	}
	err = errors.Join(err, c.sessionEnded(ctx))
	if c.talking {
		c.talking = false
		_, endErr := c.runSessionHooks(context.WithoutCancel(ctx), hook.SessionEnd, "")
		err = errors.Join(err, endErr)
	}
	c.stopServers()
	return err
}

// Prelude does what the setting called key says about how conversations begin: role:NAME,
// session:NAME, or SESSION:ROLE for a session and the role that it begins with.
func (c *Conversation) Prelude(ctx context.Context, key, text string) error {
	kind, name, ok := strings.Cut(text, ":")
	if !ok {
		return fault.New(fault.Config, "%s: %q is neither role:NAME, session:NAME nor SESSION:ROLE", key, text)
	}
	var err error
	switch kind {
	case "role":
		err = c.useRole(ctx, name)
	case "session":
		err = c.UseSession(ctx, name)
	default:
		if err = c.UseSession(ctx, kind); err == nil && c.session.Empty() {
			err = c.useRole(ctx, name)
		}
	}
	if err != nil {
		return fault.Wrap(fault.CodeOf(err), err, "%s %q", key, text)
	}
	return nil
}

// Consents reports whether whatever tools would ask the user is answered with yes.
func (c *Conversation) Consents() bool { return c.options.Yes }

// Settings returns what is in force: what was asked for with the command, else what the
// session says, else the agent or the role, else the configuration. Of what is below it, a session takes
// the model and the effort only: it began with the rest. The model is the one that the next question asks, and that
// [Conversation.State] shows.
func (c *Conversation) Settings() chat.Settings {
	s := c.values.settings
	switch {
	case c.agent != nil:
		s = c.tuned.Over(withAgent(s, c.agent))
	case c.role != nil:
		s = withRole(s, *c.role)
	}
	if in := c.enteredSession(); in != nil {
		s = in.Settings().Over(chat.Settings{Model: s.Model, Mode: s.Mode, Sampling: chat.Sampling{Effort: s.Effort}})
	}
	s = c.options.Settings.Over(s)
	if c.agent != nil && c.agent.Model != nil {
		s.Model = c.agent.Model(s.Model)
	}
	return s
}

// withRole returns the settings of r over s. A role says which tools there are, also when it
// names none, and one with a model of its own does not take the temperature of another.
func withRole(s chat.Settings, r role.Role) chat.Settings {
	s.EnabledTools, s.EnabledMCPServers = nil, nil
	if r.Settings.Model != "" {
		s.Temperature, s.TopP = nil, nil
	}
	return r.Settings.Over(s)
}

// split returns what the role puts in front of the first question, and the question as
// the role puts it. Later questions are put as they are.
func (c *Conversation) split(user chat.Message) (roleMessages []chat.Message, put chat.Message) {
	if c.role == nil || c.session != nil && !c.session.Empty() {
		return nil, user
	}
	messages := c.role.Messages(user)
	return messages[:len(messages)-1], messages[len(messages)-1]
}
