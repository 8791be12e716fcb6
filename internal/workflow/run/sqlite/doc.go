// Package sqlite keeps the journals of runs in one SQLite file.
//
// What is stored of a run are documents and blobs, see package record. A run uses a blob as long as the run is there;
// what no run uses is freed.
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
