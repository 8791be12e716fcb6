package export

import (
	"cmp"
	"context"
	"slices"
	"time"

	"loki/internal/base/text"
	"loki/internal/conversation/session"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
)

// Session returns the conversation of a session, with the turns that a recap has replaced.
func Session(s *session.Session) Talk {
	set := s.Settings()
	t := Talk{Title: s.Name(), Usage: s.Usage()}
	switch title := s.Title(); {
	case title != "":
		t.Title = title
	case s.Alias() == "":
		t.Title = cmp.Or(firstQuestion(s.Messages()), t.Title)
	}
	t.Facts = [][2]string{{"session", string(s.ID())}, {"agent", string(s.Scope())}, {"role", set.RoleName}, {"model", set.Model}}
	if at := s.CreationTime(); !at.IsZero() {
		t.Facts = append(t.Facts, [2]string{"created", at.UTC().Format(time.DateTime) + " UTC"})
	}
	for _, m := range slices.Concat(s.CompactedMessages(), s.Messages()) {
		t.Entries = append(t.Entries, Entry{Message: m})
	}
	return t
}

// firstQuestion returns the beginning of the first question, on one line.
func firstQuestion(messages []chat.Message) string {
	for _, m := range messages {
		if m.Question() {
			return text.OneLine(m.Text(), 80)
		}
	}
	return ""
}

// Run returns the conversation of a run on record: the prompt, what models said in its nodes, the calls of tools, questions and
// answers. The record of a run has no reasoning.
func Run(ctx context.Context, store run.Store, id string) (t Talk, err error) {
	info, err := store.Info(ctx, id)
	if err != nil {
		return t, err
	}
	t = Talk{Title: info.Agent + " " + info.ID, Usage: info.Usage, Facts: [][2]string{
		{"run", info.ID}, {"agent", info.Agent}, {"status", string(info.Status)}, {"started", info.Started.UTC().Format(time.DateTime) + " UTC"},
	}}
	t.say(chat.User, "", info.Prompt)
	records, err := store.Events(ctx, info.ID, 0, 0)
	if err != nil {
		return t, err
	}
	for _, r := range records {
		ev, err := event.Parse(r.JSON)
		if err != nil {
			continue // of a newer release
		}
		t.add(ev)
	}
	last := ""
	for _, e := range t.Entries {
		if e.Role == chat.Assistant && e.Text() != "" {
			last = e.Text()
		}
	}
	if info.Output != last {
		t.say(chat.Assistant, "output", info.Output)
	}
	secrets, err := run.SecretsOf(ctx, store, info)
	if err == nil && secrets != nil {
		t = t.hideSecrets(secrets.Text)
	}
	return t, err
}

// say adds a message, unless it is empty.
func (t *Talk) say(role chat.Role, by, what string) {
	if what != "" {
		t.Entries = append(t.Entries, Entry{Message: chat.Text(role, what), By: by})
	}
}

// add adds what an event says.
func (t *Talk) add(ev event.Event) {
	by := ev.Node
	if ev.AgentID != "" {
		by = ev.Agent + " " + ev.AgentID
	}
	switch b := ev.Body.(type) {
	case event.Reply:
		t.say(chat.Assistant, by, b.Text)
	case event.ToolCall:
		m := chat.Message{Role: chat.Assistant, ToolCalls: []chat.ToolCall{{ID: b.ID, Name: b.Name, Arguments: b.Arguments}}}
		t.Entries = append(t.Entries, Entry{m, by})
	case event.ToolResult:
		m := chat.Text(chat.ToolRole, b.Text)
		m.ToolCallID, m.ToolName, m.Failed = b.ID, b.Name, b.Failed
		t.Entries = append(t.Entries, Entry{m, by})
	case event.Question:
		t.say(chat.Assistant, text.OneLine(by+" asks", 200), b.Text)
	case event.Answer:
		t.say(chat.User, by, b.Text)
	}
}

// hideSecrets returns the conversation without the secrets of its run.
func (t Talk) hideSecrets(hide func(string) string) Talk {
	for i, e := range t.Entries {
		parts := slices.Clone(e.Parts)
		for n := range parts {
			parts[n].Text = hide(parts[n].Text)
		}
		calls := slices.Clone(e.ToolCalls)
		for n := range calls {
			calls[n].Arguments = hide(calls[n].Arguments)
		}
		t.Entries[i].Parts, t.Entries[i].ToolCalls = parts, calls
	}
	return t
}
