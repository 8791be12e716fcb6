// Package secretfile keeps files that hold secrets: readable by their owner only, written
// whole or not at all, and changed by one process at a time.
//
// A lock is an advisory lock of the operating system on a file of its own, so it is gone
// when its holder dies, however it dies. Whoever reads a file without a lock sees it
// before or after a change, never in between.
package secretfile
