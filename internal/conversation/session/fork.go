package session

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"loki/internal/llm/chat"
)

// Fork returns a session of the same scope and owner with the settings and messages of s, including
// the messages that compactions have replaced. What s cost is not what the new one costs. Without an
// alias it is temporary and stored when [Session.Append] would store it; with one it is stored
// at once, and it is an [ErrAliasInUse] if another session has it. Fork is for stores.
func Fork(ctx context.Context, s *Session, id ID, log Log, alias Alias) (*Session, error) {
	s.mu.Lock()
	groups := s.view.history.groups(s.now())
	st := s.state
	owner, err := s.owner(ctx)
	if errors.Is(err, ErrNotFound) { // deleted meanwhile
		owner, err = st.Owner, nil
	}
	save, attended, wait, unkept := s.force, s.attended, s.held != nil, s.unkept || s.partial
	st.DataURLs = maps.Clone(st.DataURLs)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}

	st.Alias, st.Owner = alias, owner
	f := New(s.scope, id, log, s.options, st)
	f.temp, f.adopt = alias == "", false
	f.force, f.unkept = save, unkept
	f.Attend(attended)
	for _, g := range groups {
		f.remember(groupOp{g})
	}
	f.dirty = len(groups) > 0
	switch {
	case unkept || alias == "" && (wait || !f.dirty || !f.due()):
		if wait {
			f.Hold()
		}
		return f, nil
	case alias == "":
		return f, f.commit(ctx, nil)
	}
	err = f.Save(ctx)
	if wait {
		f.Hold()
	}
	return f, err
}

// groupOp appends a group as it is.
type groupOp struct{ g group }

func (o groupOp) group(*history) (group, bool) { return o.g, true }

// groups returns what brings an empty log to the same messages.
func (h *history) groups(at time.Time) []group {
	turn := func(lead int, messages []chat.Message) group {
		return group{mark: mark{Mark: markTurn, Messages: len(messages), Lead: lead, At: at}, messages: messages}
	}
	if len(h.live) == 0 && len(h.compacted) == 0 {
		return nil
	}
	if len(h.compacted) == 0 && h.recap == "" {
		return []group{turn(h.lead, slices.Clone(h.live))}
	}
	var messages []chat.Message
	if h.instructions != "" {
		messages = append(messages, chat.Text(chat.System, h.instructions))
	}
	for _, m := range h.live[:h.lead] {
		if m.Role != chat.System { // an example
			messages = append(messages, m)
		}
	}
	lead := len(messages)
	messages = slices.Concat(messages, h.compacted, h.live[h.lead:])
	return []group{turn(lead, messages), {mark: mark{Mark: markCompaction, Keep: len(h.live) - h.lead, Recap: h.recap, At: at}}}
}
