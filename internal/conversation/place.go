package conversation

import (
	"context"
	"os"

	"loki/internal/base/ask"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
)

// Place is a directory of its own in which an agent works, which the conversation has for itself.
type Place struct {
	Dir, Name string
	Note      string // for the user

	// Leave ends the work there, and returns what was done with it. Work that did not end, because of cause, stays. The asker, nil for
	// none, asks the user, and again asks the agent something.
	Leave func(ctx context.Context, cause error, asker ask.Asker, again func(ctx context.Context, text string) error) (note string, err error)
}

// placing is where the agent of a conversation works.
type placing struct {
	place *Place // nil for the working directory
	at    string // the directory of the run that resumes; "" for a new one
	shown bool   // the user knows of it
	cause error  // why the last question did not end
}

// takePlace takes the place of the agent, if it has one, before the first question.
func (c *Conversation) takePlace(ctx context.Context) error {
	if c.agent == nil || c.place != nil || c.options.Member != nil || c.service.Place == nil || c.values.dryRun {
		return nil
	}
	name := ""
	if c.session != nil {
		name = c.session.Settings().Worktree
	}
	p, err := c.service.Place(ctx, c.agent.Agent, name, c.at)
	if p == nil || err != nil {
		return err
	}
	a := *c.agent
	a.Workdir = p.Dir
	c.agent, c.placing = &a, placing{place: p, at: c.at}
	c.keepAgent()
	return nil
}

// tellPlace says once where the agent works.
func (c *Conversation) tellPlace(ctx context.Context, events event.Scope) error {
	if c.place == nil || c.shown {
		return nil
	}
	c.shown = true
	return events.Emit(ctx, event.ToolOutput{Name: "worktree", Text: c.place.Note})
}

// leavePlace ends the work in the place of the agent. Where the user can be asked, they decide about it.
func (c *Conversation) leavePlace(ctx context.Context, events event.Scope) error {
	p := c.place
	if p == nil {
		return nil
	}
	var asker ask.Asker
	cause := c.cause
	if c.attended() && ask.AtTerminal(c.options.Asker) {
		asker, cause = c.options.Asker, nil
	}
	note, err := p.Leave(ctx, cause, asker, func(ctx context.Context, text string) error {
		_, err := c.Tell(ctx, Question{Asked: Asked{User: chat.Text(chat.User, text), Text: text}})
		return err
	})
	a := *c.agent
	a.Workdir = ""
	c.agent, c.placing = &a, placing{}
	if note != "" {
		_ = events.Emit(ctx, event.ToolOutput{Name: "worktree", Text: note}) // it is done
	}
	return err
}

// dropPlace lets others into the place of the agent, in which nothing was done because of cause.
func (c *Conversation) dropPlace(cause error) {
	if c.place != nil {
		_, _ = c.place.Leave(context.Background(), cause, nil, nil)
		c.placing = placing{}
	}
}

// WorkDir returns the directory in which the questions are worked on.
func (c *Conversation) WorkDir() (string, error) {
	if c.place != nil {
		return c.place.Dir, nil
	}
	return os.Getwd()
}
