package team

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"loki/internal/base/ask"
	"loki/internal/base/value"
	"loki/internal/llm/event"
	"loki/internal/tool"
)

// escalation is a question of a child that waits for the answer of a model.
type escalation struct {
	ID        string   `json:"escalation_id"`
	AgentID   string   `json:"from_agent_id"`
	AgentName string   `json:"from_agent_name"`
	Question  string   `json:"question"`
	Options   []string `json:"options,omitempty"`

	member *Member
	asked  time.Duration // how long the member had worked then
	reply  chan answer   // receives the end; nil if the child has not come to the question again
}

// kindNames are what an escalated question says it asks for.
var kindNames = map[ask.Kind]string{
	ask.Choice: "ask", ask.Select: "confirm", ask.Text: "input", ask.Line: "input", ask.Multi: "checkbox",
}

// Asker returns what puts the questions of a child that its model asks with the tools user__* to
// the model of the root, or to [Options.Direct]. It never answers questions of consent.
func (m *Member) Asker() ask.Asker {
	switch {
	case m.team.o.Direct != nil:
		return m.Patient(m.team.o.Direct)
	case m.life == nil:
		return ask.Unavailable{}
	}
	return m.Patient(ask.Func(m.escalate))
}

// Escalates reports whether the questions that m puts to [Member.Asker] go to the model of another
// agent.
func (m *Member) Escalates() bool { return m.life != nil && m.team.o.Direct == nil }

// escalate asks the models of the agents above c, and waits for the answer.
func (c *Member) escalate(ctx context.Context, q ask.Question) (string, error) {
	if q.Consent || q.Kind == ask.Secret {
		return ask.Unavailable{}.Ask(ctx, q)
	}
	t := c.team
	t.mu.Lock()
	key := c.ID + "/" + q.ID
	id := "esc_" + t.hash(key)
	if text, ok := t.answers[id]; ok { // given before the run was interrupted
		delete(t.answers, id)
		t.mu.Unlock()
		return asAnswer(q, text), nil
	}
	i := slices.IndexFunc(t.escalations, func(e *escalation) bool { return e.ID == id })
	if i < 0 {
		i = len(t.escalations)
		e := &escalation{ID: id, AgentID: c.ID, AgentName: c.Agent, Question: fmt.Sprintf("[%s] %s", kindNames[q.Kind], q.Text), Options: q.Options, asked: c.workTime()}
		if err := t.commit(ctx, &entry{Key: "escalate/" + key, By: c.ID, Op: "escalate", Asked: e, AskedAt: e.asked}); err != nil {
			t.mu.Unlock()
			return "", err
		}
	}
	e := t.escalations[i]
	e.reply = make(chan answer, 1)
	t.mu.Unlock()
	if err := c.Events.Emit(ctx, event.Escalation{ID: id, Text: e.Question, Options: e.Options}); err != nil {
		return "", err
	}
	a, err := c.await(ctx, e)
	if err != nil {
		return "", err
	}
	if err := c.Events.Emit(ctx, event.EscalationAnswered(a)); err != nil {
		return "", err
	}
	if a.TimedOut {
		return "", &noAnswerError{c.limits.EscalationTimeout}
	}
	return asAnswer(q, a.Text), nil
}

// await waits for the end of e, or makes it when the time is over.
func (c *Member) await(ctx context.Context, e *escalation) (answer, error) {
	var timeout <-chan time.Time
	if limit := c.limits.EscalationTimeout; limit > 0 {
		c.team.mu.Lock()
		limit -= c.workTime() - e.asked
		c.team.mu.Unlock()
		timer := time.NewTimer(limit)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case a := <-e.reply:
		return a, nil
	case <-timeout:
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
	t := c.team
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case a := <-e.reply: // at the last moment
		return a, nil
	default:
	}
	a := answer{ID: e.ID, TimedOut: true}
	return a, t.commit(ctx, &entry{Key: "timeout/" + e.ID, By: c.ID, Op: "escalation_timeout", Answered: &a})
}

// answer ends an escalation. t.mu is held.
func (t *Team) answer(a answer) {
	i := slices.IndexFunc(t.escalations, func(e *escalation) bool { return e.ID == a.ID })
	if i < 0 {
		return
	}
	e := t.escalations[i]
	t.escalations = slices.Delete(t.escalations, i, i+1)
	switch {
	case e.reply != nil:
		e.reply <- a
	case !a.TimedOut:
		t.answers[a.ID] = a.Text
	}
}

// asAnswer returns the text of a model as an answer to q.
func asAnswer(q ask.Question, text string) string {
	matched, err := q.Match(text)
	switch {
	case err == nil:
		return matched
	case q.Kind == ask.Multi:
		return ask.JoinAnswers([]string{text})
	}
	return text
}

// dropEscalations removes the questions of a child that has ended. t.mu is held.
func (t *Team) dropEscalations(c *Member) {
	t.escalations = slices.DeleteFunc(t.escalations, func(e *escalation) bool { return e.member == c })
}

// dropDead removes the questions of children that had ended when the run was interrupted, or
// whose parents had. t.mu is held.
func (t *Team) dropDead() {
	t.escalations = slices.DeleteFunc(t.escalations, func(e *escalation) bool {
		for m := e.member; m.life != nil; m = m.Parent {
			if m.ended || t.members[m.ID] != m {
				return true
			}
		}
		return false
	})
}

// pendingQuestions returns the questions of m's descendants. t.mu is held.
func (m *Member) pendingQuestions() []*escalation {
	var list []*escalation
	for _, e := range m.team.escalations {
		if e.member.under(m) {
			list = append(list, e)
		}
	}
	return list
}

// Notice returns the reminder for the model of the root, sent together with the results of its
// calls, empty for nothing: questions of children that wait for an answer.
func (m *Member) Notice(context.Context) string {
	if m.life != nil || m.team.o.Direct != nil {
		return ""
	}
	m.team.mu.Lock()
	defer m.team.mu.Unlock()
	list := m.pendingQuestions()
	if len(list) == 0 {
		return ""
	}
	doc, err := value.Marshal(struct {
		Pending     []*escalation `json:"pending_escalations"`
		Instruction string        `json:"instruction"`
	}{list, "These agents are blocked until you answer. Answer each with agent__reply_escalation: from what you know, or after asking the user. An agent that gets no answer in time continues without one."})
	if err != nil {
		return ""
	}
	return string(doc)
}

// noAnswerError says that no model answered a question in time.
type noAnswerError struct{ after time.Duration }

func (e *noAnswerError) Error() string {
	return fmt.Sprintf("no answer within %d seconds", int(e.after.Seconds()))
}

// Fallback returns what the child does without an answer.
func (*noAnswerError) Fallback() string {
	return "Use your own judgment: choose the safest option that lets you continue, and say in your result what you assumed."
}

func (m *Member) replyEscalation(_ context.Context, call tool.Call, e *entry) (any, error) {
	args, err := decode[struct {
		ID    string  `json:"escalation_id"`
		Reply *string // perhaps empty
	}](call, "escalation_id")
	if err == nil && args.Reply == nil {
		err = errors.New(`argument "reply" is missing`)
	}
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, asked := range m.team.escalations {
		if asked.ID == args.ID {
			e.Answered = &answer{ID: args.ID, Text: *args.Reply}
			return struct {
				Status   string `json:"status"` // ok
				Message  string `json:"message"`
				Question string `json:"original_question"`
			}{"ok", fmt.Sprintf("The answer was given to agent %s, which continues.", asked.AgentID), asked.Question}, nil
		}
		ids = append(ids, asked.ID)
	}
	return refuse("No question with the id %q waits for an answer: it was answered, or its time is over. Waiting: %s.", args.ID, orNone(ids)), nil
}
