// Package sqlite keeps the journals of runs in one SQLite file.
//
// Terms. A document is a value or a JSON text in the form in which it is stored; see
// codec.go. Strings above 1 KiB in it are taken out and kept as blobs, by the hash of
// their content: the same tool result in a step, an event and the state is stored
// once. A run uses a blob as long as the run is there; what no run uses is freed.
//
// The state of a run is stored by key. A super-step writes only what it changed, and
// of a list or a text that grew only what was added, so that the file grows with what
// happens and not with what there is. The value of a key after some super-step is
// read from its last full document, followed by the additions since.
//
// The lease of a run is a row with the identity of the process that holds it. The
// journal prolongs it while it is open. Every write checks it in the same
// transaction, so that a process which lost it, because it was stopped for longer
// than the lease lasts, cannot write any more. The row is read again only if another
// connection has written the file since it was read last. A lease whose process is gone
// is void at once.
//
// All writes of a process go through one connection, one transaction at a time, and
// each is made of statements that stay prepared. Writes that wait for the file at the
// same time share a transaction; see group.go. Reads have connections of their own, and
// see the file as it was when they began.
package sqlite
