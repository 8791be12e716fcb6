package team

import (
	"context"
	"time"

	"loki/internal/tool"
)

func (m *Member) send(_ context.Context, call tool.Call, e *entry) (any, error) {
	args, err := decode[struct{ ID, Message string }](call, "id", "message")
	if err != nil {
		return nil, err
	}
	to := m.addressee(args.ID)
	switch {
	case to == nil:
		return refuse("There is no agent with the id %q that you can reach. It may have finished already.", args.ID), nil
	case to.life == nil && m.team.o.Direct != nil:
		return refuse("You were started by a graph, which reads no messages. Put what it has to know into your result."), nil
	case to.life != nil && to.graph:
		return refuse("Agent %q is a graph, which reads no messages. It knows nothing but the prompt that it was started with.", to.ID), nil
	}
	e.Sent = &letter{To: to.ID, From: m.name(), Text: args.Message, At: m.team.o.Now().UTC()}
	message := "The message is in the inbox of the agent."
	if to.life != nil && to.ended {
		message = "The message is in the inbox of the agent, but it has finished and will not read it."
	}
	return success{"ok", message}, nil
}

// addressee returns the member that m means by an id, nil if m cannot reach one: a child, a
// sibling or the parent.
func (m *Member) addressee(id string) *Member {
	if c := m.child(id); c != nil {
		return c
	}
	p := m.Parent
	if p == nil {
		return nil
	}
	if id == "parent" || id == p.name() {
		return p
	}
	if c := p.child(id); c != m {
		return c
	}
	return nil
}

// name is what other members call m: its id, else its name.
func (m *Member) name() string {
	switch {
	case m.ID != "":
		return m.ID
	case m.Agent != "":
		return m.Agent
	}
	return "parent"
}

func (m *Member) checkInbox(_ context.Context, _ tool.Call, e *entry) (any, error) {
	type payload struct {
		Type    string `json:"type"` // text
		Content string `json:"content"`
	}
	type item struct {
		From    string    `json:"from"`
		Payload payload   `json:"payload"`
		Time    time.Time `json:"timestamp"`
	}
	items := make([]item, len(m.inbox))
	for i, l := range m.inbox {
		items[i] = item{l.From, payload{"text", l.Text}, l.At}
	}
	e.Read = len(items) > 0
	return struct {
		Messages []item `json:"messages"`
		Count    int    `json:"count"`
	}{items, len(items)}, nil
}
