package conversation

import (
	"context"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/conversation/session"
	"loki/internal/knowledge/rag"
	"loki/internal/llm/chat"
)

// UseKnowledge has questions answered from the knowledge base called name. That it exists is looked
// at when a question is asked. An agent has its own: with one it is an error with code Usage.
func (c *Conversation) UseKnowledge(name string) error {
	if c.agent != nil {
		return fault.New(fault.Usage, "agent %s answers from its own documents, so it takes no other knowledge base", c.agent.Name)
	}
	c.knowledge = name
	return nil
}

// ExitKnowledge has questions answered without the knowledge base that the user named. Without one it
// does nothing; that of an agent stays, which is an error with code Usage.
func (c *Conversation) ExitKnowledge() error {
	if c.agent != nil {
		return fault.New(fault.Usage, "the knowledge base is that of agent %s", c.agent.Name).WithHint("leave the agent: .exit agent")
	}
	c.knowledge, c.found = "", rag.Found{}
	c.setKnowledge("")
	return nil
}

// KeepKnowledge is UseKnowledge for good: the session, which must exist, remembers the name.
func (c *Conversation) KeepKnowledge(name string) error {
	in := c.enteredSession()
	if in == nil {
		return c.NoSession()
	}
	if err := c.UseKnowledge(name); err != nil {
		return err
	}
	c.setKnowledge(name)
	return nil
}

// setKnowledge has the session, if there is one, remember a knowledge base.
func (c *Conversation) setKnowledge(name string) {
	if in := c.enteredSession(); in != nil && in.Settings().Knowledge != name {
		in.Set(func(s *session.Settings) { s.Knowledge = name })
	}
}

// Knowledge returns the name of the knowledge base that the user, or else the session, names; "" for none.
func (c *Conversation) Knowledge() string {
	if in := c.enteredSession(); c.knowledge == "" && in != nil && c.agent == nil {
		return in.Settings().Knowledge
	}
	return c.knowledge
}

// LastFound returns what was found for the last question that was answered from a knowledge base.
func (c *Conversation) LastFound() rag.Found { return c.found }

// retrieve returns the question as the model gets it: with what was found for it, if there is a
// knowledge base. What is kept of the question is without that. The search is a step of the run.
func (t *turn) retrieve(ctx context.Context) (chat.Message, error) {
	if t.kit.Knowledge == nil || t.q.Command || strings.TrimSpace(t.q.Query) == "" {
		return t.q.User, nil
	}
	found, err := rag.Retrieve(ctx, t.rc.Steps, t.rc.Events, t.kit.Knowledge, rag.Query{Text: t.q.Query, Budget: t.rc.Budget})
	t.found = found.Usage
	if err != nil {
		return chat.Message{}, fault.Wrap(fault.CodeOf(err), err, "searching knowledge base %s", t.kit.Knowledge.Name()).WithHint("%s", fault.HintOf(err))
	}
	t.c.found = found
	return enrich(t.q.User, t.kit.Template, found), nil
}

// enrich returns a message with its text in a template, and its pictures behind it.
func enrich(m chat.Message, t rag.Template, found rag.Found) chat.Message {
	rich := m
	rich.Parts = []chat.Part{{Type: chat.TextPart, Text: t.Fill(m.Text(), found)}}
	for _, p := range m.Parts {
		if p.Type != chat.TextPart {
			rich.Parts = append(rich.Parts, p)
		}
	}
	return rich
}
