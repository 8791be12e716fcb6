// Package team lets agents start other agents, and work with them.
//
// A [Team] is the agents that work on one task: the root, which is the agent of the task or a node of
// a graph, its children, and theirs. Each is a [Member]. A child is a run inside the run of its
// parent ([loki/internal/workflow/run.RunNested]): its steps have keys below those of the task, its events are
// those of the run with another source, and its budget is a part of its parent's. What kind of agent
// it is, and what it needs, is the business of the [Starter].
//
// A member that may spawn starts children in the background and continues its own work. It
// collects what they return, cancels them, keeps a queue of tasks that wait for each other, and
// answers their questions. All members send messages to their parent, their siblings and their
// children. A member owns its children: they end before it does.
//
// # The log
//
// A model that reads in one run that its child had finished must not read, when the run resumes after
// an interruption, that the child is at work. So whatever the tools of a team did is kept as an
// entry of a log in the record of the task: which call it was, its result, and what it changed. The
// state of a team is what the entries made of it, one after the other. On resume [New] reads them and
// starts the children that had not ended; the models' replies and calls come again, and a call
// that is in the log gets its result from there and changes nothing. Each call has its effect once.
package team
