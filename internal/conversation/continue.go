package conversation

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"loki/internal/agent/team/todo"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
)

// todo returns whether the model continues by itself: each setting as the session says, else the role or the
// agent, else the configuration, whose settings an agent does not take.
func (c *Conversation) todo() todo.Settings {
	var s chat.Settings
	if in := c.enteredSession(); in != nil {
		s = in.Settings().Settings
	}
	all := c.values.todo
	switch {
	case c.agent != nil:
		s, all = s.Over(c.tuned), c.agent.InForce.Todo
	case c.role != nil:
		s = s.Over(c.role.Settings)
	}
	return todo.Settings{
		Enabled: *cmp.Or(s.AutoContinue, &all.Enabled) || c.continues, Max: *cmp.Or(s.MaxAutoContinues, &all.Max),
		Inject: *cmp.Or(s.InjectTodoInstructions, &all.Inject), Prompt: *cmp.Or(s.ContinuationPrompt, &all.Prompt),
	}
}

// todoRecap returns the list as a recap has it: "" if it has no items or the model does not continue
// by itself.
func (c *Conversation) todoRecap(s todo.Settings) string {
	if !s.Enabled || len(c.list.Items()) == 0 {
		return ""
	}
	return c.list.Render()
}

// run asks the model, and lets it continue while its todo list has open items.
func (t *turn) run(ctx context.Context) (engine.Reply, error) {
	stop := t.listen(ctx)
	if t.kit.Foreign != nil {
		reply, err := t.askForeign(ctx)
		stop(err)
		return reply, err
	}
	reply, err := todo.Answer(ctx, t.c.engine(), &t.rc, t.req, t.c.list, &t.q.Todo)
	stop(err)
	return reply, err
}

// instruct adds text to the system message of a conversation, which is its first if there is one.
func instruct(messages []chat.Message, text string) []chat.Message {
	if len(messages) == 0 || messages[0].Role != chat.System {
		return append([]chat.Message{chat.Text(chat.System, text)}, messages...)
	}
	messages = slices.Clone(messages)
	messages[0] = chat.Text(chat.System, messages[0].Text()+"\n\n"+text)
	return messages
}

// keepTodo has the session of the question keep the list.
func (t *turn) keepTodo() {
	if t.c.session != nil && !t.q.Aside {
		t.c.keepTodo()
	}
}

// keepTodo has the session keep the list.
func (c *Conversation) keepTodo() {
	kept := ""
	if data, err := json.Marshal(c.list); err == nil && len(c.list.Items()) > 0 {
		kept = string(data)
	}
	if kept != c.session.Settings().Todo {
		c.session.KeepTodo(kept)
	}
}

// recallTodo takes the list that the session keeps, after whose plan the model continues by itself.
func (c *Conversation) recallTodo() {
	c.forgetWork()
	s := c.session.Settings()
	if s.Todo == "" || json.Unmarshal([]byte(s.Todo), c.list) != nil {
		return // a user has changed it
	}
	c.continues = s.Plan != "" && c.list.Open() > 0 && (s.AutoContinue == nil || *s.AutoContinue)
}

// forgetWork takes back what holds for the work in one conversation only: the list of the model, what an accepted plan allows, and the
// directories whose instructions the model has.
func (c *Conversation) forgetWork() {
	c.list.Clear()
	if c.granted {
		c.writes = false
	}
	c.granted, c.continues, c.tracker = false, false, nil
}
