// Package secretfile locks files that hold secrets, so that one process at a time changes
// them.
//
// A lock is an advisory lock of the operating system on a file of its own, so it is gone
// when its holder dies, however it dies.
package secretfile
