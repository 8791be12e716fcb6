// Package session keeps conversations: what was said, the settings it was said under,
// and where both are stored.
//
// A [Session] is a conversation whose earlier messages are sent again. Its live
// messages are what goes to the model; messages that a compaction has replaced by a
// recap are kept aside. A turn is what one question adds: the question, the rounds of
// tool calls with their results, and the answer. The role messages (instructions and
// examples) precede the first turn.
//
// A [Store] finds sessions by [ID], a UUID, or by [Alias], the name people type. They
// live in a [Scope]: the global one, or that of an agent. Package filestore keeps them
// in files, memstore in memory; sessiontest is the suite both pass.
//
// # The log
//
// The messages of a session are a log to which lines are appended and in which nothing
// is ever changed. A line is a JSON object: a message ([chat.Message]) or a mark.
// Messages belong to the mark that follows them, and a group of messages and its mark
// is written at once:
//
//	{"role":"user","parts":[{"type":"text","text":"hello"}]}
//	{"role":"assistant","parts":[{"type":"text","text":"hi"}]}
//	{"mark":"turn","messages":2,"at":"2026-11-21T09:30:00Z"}
//
// Whatever follows the last mark is the torn rest of a write that did not finish. It
// does not count, and is cut off by the next one to append. The marks are
//
//   - turn: the messages in front are a turn. "lead" of them are role messages. With
//     "replaces" that many of the last live messages go first: the answer was
//     generated again, or continued. With "interrupted" the question was not answered.
//   - compaction: the live messages are now the role messages with "recap" at the end
//     of the instructions, and the "keep" last ones there were.
//   - undo: the last turn does not count any more, which is the "replaces" last live
//     messages.
//   - empty: there are no live messages any more.
//
// # Drafts
//
// While a turn is answered it is a [Draft]: its question and its finished rounds of tool
// calls are in a file beside the log, in the same form, which its process holds. A draft
// that no process holds is left of one that died. The next process that uses the session
// makes a turn of it that is marked as interrupted; the id of the draft in the mark of a
// turn shows that this has been done.
//
// # Sharing
//
// Sessions of one store are shared: opening an open one returns the same *Session, all
// methods of which may be called from several goroutines. [Session.Acquire] lets one conversation
// continue at a time. Processes share a session through its log: each looks for
// what others appended before it appends, and reads only that.
package session
