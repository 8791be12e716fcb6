package session

import (
	"slices"
	"time"

	"loki/internal/llm/chat"
)

// Turn is what is recorded when a request is answered.
type Turn struct {
	// ID identifies the turn in its session, see [Session.Trace]. "" is none.
	ID string

	Mode Mode

	// Role holds the role messages, see [Input]. They are recorded if the conversation
	// has no messages yet.
	Role []chat.Message

	// User is the message as the user gave it, without what a retrieval put around it.
	// It may be the zero value in modes Continue and Regenerate.
	User chat.Message

	// InPlaceOf is the question of the last turn, which this one in mode Ask replaces; the zero
	// value is none. If that is not the last turn any more it stays.
	InPlaceOf chat.Message

	// Reply is what the model added: tool calls, their results, the answer. In mode
	// Continue its first message continues the last one of the session.
	Reply []chat.Message

	// Usage is what the model calls of the turn used.
	Usage chat.Usage

	// DataURLs says where images in User came from, see [State].
	DataURLs map[string]string
}

// op is a change of a conversation that can be made to another history than the one it
// was meant for, because meanwhile another process has appended to it.
type op interface {
	// group returns what to append to h; ok is false if the change makes no sense there
	// any more.
	group(h *history) (g group, ok bool)
}

// turnOp records a turn.
type turnOp struct {
	role    []chat.Message
	user    chat.Message
	reply   []chat.Message
	replace bool // what follows user goes, if user is in the last turn still
	usage   chat.Usage

	draft       string // id of the turn, "" for none
	interrupted bool
	abandoned   bool // the draft of a process that died, perhaps after it had recorded the turn
	at          time.Time
}

// newTurn returns the change that t makes to h.
func newTurn(h *history, t Turn, at time.Time) turnOp {
	o := turnOp{role: t.Role, user: t.User, reply: slices.Clone(t.Reply), usage: t.Usage, draft: t.ID, at: at}
	last := h.lastUser()
	if t.Mode == Ask || last < 0 {
		return o
	}
	if t.Mode == Regenerate {
		last = h.lastTurn()
		if o.user.Role != "" {
			last = h.findSame(o.user)
		}
	}
	if last < 0 {
		return o // the question was never recorded: its answer was interrupted
	}
	o.user, o.replace = h.live[last], true
	if t.Mode == Continue {
		o.reply = JoinContinuation(h.live[last+1:], o.reply)
	}
	return o
}

// JoinContinuation returns the messages of a reply of which more is the continuation. The mark of an
// interruption between them goes.
func JoinContinuation(reply, more []chat.Message) []chat.Message {
	n := len(reply)
	if n == 0 || len(more) == 0 || reply[n-1].Role != chat.Assistant || more[0].Role != chat.Assistant || len(reply[n-1].ToolCalls) > 0 {
		return append(slices.Clone(reply), more...)
	}
	joined := more[0]
	joined.Parts = joinParts(withoutMark(reply[n-1]).Parts, more[0].Parts)
	return append(append(slices.Clone(reply[:n-1]), joined), more[1:]...)
}

// joinParts joins two lists of parts, and the texts where they meet.
func joinParts(a, b []chat.Part) []chat.Part {
	if len(a) == 0 || len(b) == 0 || a[len(a)-1].Type != chat.TextPart || b[0].Type != chat.TextPart {
		return append(slices.Clone(a), b...)
	}
	list := slices.Clone(a)
	list[len(list)-1].Text += b[0].Text
	return append(list, b[1:]...)
}

func (o turnOp) group(h *history) (group, bool) {
	if o.abandoned && h.last.ofTurn(o.draft) != nil {
		return group{}, false
	}
	g := group{mark: mark{Mark: markTurn, Usage: o.usage, Draft: o.draft, Interrupted: o.interrupted, At: o.at}}
	last := -1
	if o.replace {
		last = h.findSame(o.user)
	}
	switch {
	case last >= 0:
		g.Replaces = len(h.live) - last - 1
	case len(h.live) == 0:
		g.messages = append(slices.Clone(o.role), messages(o.user)...)
		g.Lead = len(o.role)
	default:
		g.messages = messages(o.user)
	}
	g.messages = append(g.messages, o.reply...)
	g.Messages = len(g.messages)
	return g, g.Messages > 0
}

// usageOp records the usage of model calls outside of turns.
type usageOp struct {
	usage chat.Usage
	at    time.Time
}

func (o usageOp) group(*history) (group, bool) {
	return group{mark: mark{Mark: markUsage, Usage: o.usage, At: o.at}}, true
}

// emptyOp takes all live messages out of a conversation.
type emptyOp struct{ at time.Time }

func (o emptyOp) group(*history) (group, bool) {
	return group{mark: mark{Mark: markEmpty, At: o.at}}, true
}
