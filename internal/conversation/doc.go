// Package conversation is talking with a model: one question after the other, under a role or
// with an agent, and in a session, with the settings of these.
//
// A [Service] begins conversations; it holds what they share. A [Conversation] knows what is
// in force: its role, its session, and its settings, which are laid over one another
// ([Conversation.Settings]). A [Question] is what is asked, an [Answer] its result.
// Between the two is a turn: the session is compressed if it has become too long, the
// messages are put together, the model answers and uses tools, and what was asked for is
// taken out of the answer. A turn is a run of the driver in package run, so it has the same
// events as the run of a graph. With an agent the turn also has the agent's own tools and its
// team, and it is the work of children: [Conversation.Job]. Asking records nothing:
// [Conversation.Record] keeps a question with its answer. [Conversation.Tell] does both, and what is due
// after a line of a REPL.
//
// What a face lets its user do with a conversation is a method here, so that a command, a
// line of a REPL and a request to a server do the same.
package conversation
