package session

import (
	"slices"

	"loki/internal/llm/chat"
)

// Mode says how a request continues a conversation.
type Mode int

// The modes.
const (
	Ask        Mode = iota // with a new message of the user
	Continue               // the last reply is incomplete and is continued
	Regenerate             // the last question is answered again
)

// Input is what a request adds to a conversation.
type Input struct {
	Mode Mode

	// Role holds the role messages: at most one system message, then examples. They
	// go in front of a conversation that has no messages yet. A role that wraps the
	// input in its prompt has none.
	Role []chat.Message

	// User is the message of the user; the zero value is none. Outside a session it is
	// needed in all modes.
	User chat.Message

	// Partial is the reply so far, in mode Continue. A session has it already.
	Partial string

	// Rounds are the tool calls of this turn and their results so far.
	Rounds []chat.Message
}

// Request returns the messages to send for in, behind the live messages of a
// conversation, which are nil outside sessions. The result is the caller's.
func Request(live []chat.Message, in Input) []chat.Message {
	fresh := len(live) == 0
	var list []chat.Message
	switch {
	case fresh:
		list = append(slices.Clone(in.Role), messages(in.User)...)
		if in.Mode == Continue {
			list = append(list, chat.Text(chat.Assistant, in.Partial))
		}
	case in.Mode == Ask:
		list = append(slices.Clone(live), messages(in.User)...)
	case in.Mode == Regenerate:
		list = slices.Clone(live)
		for len(list) > 0 && (list[len(list)-1].Role == chat.Assistant || list[len(list)-1].Role == chat.ToolRole ||
			list[len(list)-1].Continuation && !in.User.Continuation) {
			list = list[:len(list)-1]
		}
	default:
		list = slices.Clone(live)
		list[len(list)-1] = withoutMark(list[len(list)-1])
	}
	return append(list, in.Rounds...)
}

// messages returns m as a list, which is empty for the zero value.
func messages(m chat.Message) []chat.Message {
	if m.Role == "" {
		return nil
	}
	return []chat.Message{m}
}
