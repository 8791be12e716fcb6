// Package graph is the functional core of graph agents.
//
// A [Graph] is the definition of a workflow, read from a graph.yaml by [Parse]:
// typed nodes, joined by edges, that work on one shared [State]. A run advances in
// super-steps (the bulk-synchronous model of Valiant, CACM 1990, as used by
// Malewicz et al., Pregel, SIGMOD 2010): all nodes of the frontier run at once, each
// on its own [Draft] of the same state; then their writes are merged in the order of
// the node ids, through reducers where a key has one, and the nodes they route to
// are the next frontier.
//
// The scheduling is a pure state machine: [Plan.Next] says which tasks to run and
// [Plan.Apply] folds their results. It starts no goroutine, reads no clock and does
// no I/O; what a node does is not its business. A driver (package run) executes the
// tasks.
//
// [Validate] checks a definition without running it.
package graph
