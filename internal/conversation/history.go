package conversation

import (
	"context"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/conversation/session"
	"loki/internal/llm/chat"
)

// leadIn returns what precedes a question, what was said before it, and the question itself, of which
// put changes the first one that was asked.
func leadIn(q Question, put func(first chat.Message) (lead []chat.Message, as chat.Message)) (lead, history []chat.Message, user chat.Message) {
	at := slices.IndexFunc(q.History, chat.Message.Question)
	if at < 0 {
		lead, user = put(q.User)
		return lead, q.History, user
	}
	history = slices.Clone(q.History)
	lead, history[at] = put(history[at])
	return lead, history, q.User
}

// withHistory returns the role messages and the history as one list, whose system messages are one in front of it.
func withHistory(lead, history []chat.Message) []chat.Message {
	var system []string
	var list []chat.Message
	for _, m := range slices.Concat(lead, history) {
		if m.Role == chat.System {
			system = append(system, m.Text())
			continue
		}
		list = append(list, m)
	}
	if len(system) == 0 {
		return list
	}
	return append([]chat.Message{chat.Text(chat.System, strings.Join(system, "\n\n"))}, list...)
}

// settle answers the calls that the last turn of the session left to its caller: with the results that are the
// history of the question, or else by saying that they were not run. A model takes no call without a result.
func (t *turn) settle(ctx context.Context) error {
	c := t.c
	if c.session == nil || t.q.Aside {
		return nil
	}
	given := make(map[string]chat.Message, len(t.q.History))
	for _, m := range t.q.History {
		if m.Role != chat.ToolRole {
			return fault.New(fault.Usage, "session %s has what was said before, so a question cannot bring it along", c.session.Name())
		}
		given[m.ToolCallID] = m
	}
	t.q.History = nil
	calls, answered := openCalls(c.session.Messages())
	var results []chat.Message
	for _, call := range calls {
		m, ok := given[call.ID]
		if delete(given, call.ID); answered[call.ID] {
			continue
		}
		if !ok {
			m = chat.Text(chat.ToolRole, call.Name+" was not run: the user continued without it.")
			m.Failed = true
		}
		m.ToolCallID, m.ToolName = call.ID, call.Name
		results = append(results, m)
	}
	for id := range given {
		if answered[id] { // asked again
			continue
		}
		return fault.New(fault.Usage, "session %s does not wait for the result of a call %q", c.session.Name(), id)
	}
	if len(results) == 0 || c.values.dryRun {
		return nil
	}
	return c.session.Append(ctx, session.Turn{Reply: results})
}

// openCalls returns the calls with which messages end, if they do, and the ids of the calls that have a result.
func openCalls(messages []chat.Message) (calls []chat.ToolCall, answered map[string]bool) {
	answered = make(map[string]bool)
	end := true // nothing but results has been seen
	for _, m := range slices.Backward(messages) {
		switch {
		case m.Role == chat.ToolRole:
			answered[m.ToolCallID] = true
		case end:
			calls, end = m.ToolCalls, false
		}
	}
	return calls, answered
}
