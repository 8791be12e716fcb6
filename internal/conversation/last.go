package conversation

import (
	"slices"

	"loki/internal/agent/role"
	"loki/internal/conversation/session"
	"loki/internal/llm/chat"
)

// Last is the question that was asked last, with its answer.
type Last struct {
	Asked
	Reply      string // its text; of an answer that was continued only the new part; "" for none
	Continuous bool   // the conversation can continue from it
}

// last is a question and its answer so far.
type last struct {
	question   Question
	role       *role.Role       // that it was put to; nil for none
	agent      string           // likewise, its name
	session    *session.Session // that has it; nil for none
	reply      []chat.Message   // all of it, also of an answer that was continued
	new        string           // text of what came last
	counted    int              // how often the model was asked to continue before
	used       chat.Usage       // of what came last
	continuous bool
}

// recall makes the last turn of the session, if it has one, the last question.
func (c *Conversation) recall() {
	turn, err := c.session.LastTurn()
	if err != nil {
		return
	}
	l := &last{
		question: Question{Asked: Asked{User: turn[0], Text: turn[0].Text()}}, role: c.role, agent: c.agentName(), session: c.session,
		reply: session.Uncut(turn[1:]), continuous: true,
	}
	l.new = l.text()
	c.last = l
}

// text returns the text of the whole reply.
func (l *last) text() string { return textOf(l.reply) }

// textOf returns the last text of the model in a reply, "" if there is none.
func textOf(reply []chat.Message) string {
	for _, m := range slices.Backward(reply) {
		if text := m.Text(); m.Role == chat.Assistant && text != "" {
			return text
		}
	}
	return ""
}

// continuations returns how often the model was asked to continue in a reply.
func continuations(reply []chat.Message) (n int) {
	for _, m := range reply {
		if m.Role == chat.User && !m.Steer {
			n++
		}
	}
	return n
}

// take notes messages that came in one of the modes. If none came, what was there stays.
func (l *last) take(messages []chat.Message, mode session.Mode) {
	came := last{reply: messages}
	switch {
	case mode == session.Continue:
		l.reply = session.JoinContinuation(l.reply, messages)
	case mode == session.Ask || len(messages) > 0:
		l.reply = messages
	default:
		return
	}
	l.new = came.text()
}

// end keeps the conversation from continuing from l, which may be nil.
func (l *last) end() {
	if l != nil {
		l.continuous = false
	}
}

// Last returns the question that was asked last, also outside of sessions; ok is false if there
// is none.
func (c *Conversation) Last() (last Last, ok bool) {
	if c.last == nil {
		return Last{}, false
	}
	return Last{Asked: c.last.question.Asked, Reply: c.last.new, Continuous: c.last.continuous}, true
}

// LastReply returns the text of the last reply that has one: to the last question, else in the session. It is
// nil if there is none.
func (c *Conversation) LastReply() *string {
	if c.last != nil && c.last.new != "" {
		return &c.last.new
	}
	if c.session == nil {
		return nil
	}
	l := last{reply: c.session.Messages()}
	if text := l.text(); text != "" {
		return &text
	}
	return nil
}

// Spending returns what the last question used, and what the session used, without one all
// questions of the conversation.
func (c *Conversation) Spending() (turn, all chat.Usage) {
	if c.last != nil {
		turn = c.last.used
	}
	if in := c.enteredSession(); in != nil {
		return turn, in.Usage()
	}
	return turn, c.spent
}
