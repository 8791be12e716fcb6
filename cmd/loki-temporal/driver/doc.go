// Package driver runs graph agents on Temporal.
//
// A run is a workflow: [Graph] asks the pure scheduler of package graph for the tasks of a super-step, has each executed
// as an activity, [Nodes.Execute], and folds the results. What a node does is the same as in the other drivers, because
// the activity hands the task to package run.
//
// A task makes steps, such as calls of models and tools. Each is on record before it is used: the activity sends it to
// its workflow as a signal, which is in the history of the run when the sending returns. A task whose worker died is
// executed again, with the steps on record as a part of its input. Questions wait in the workflow. An answer is an
// update of it, which refuses what is not an answer.
//
// What goes to the server is sealed: it has marks in place of the secrets that the worker used.
package driver
