// Package shim turns this program, started again, into a command that the kernel confines.
//
// A plan is a list of raw system calls with their arguments; the last of them executes the command. The parent makes
// it, see [Plan], and knows all that there is to know: policies, constants, filters. The shim only makes the calls, in
// order. The first one that fails ends it, so that a command that cannot be confined does not run.
//
// # Why the package has an init
//
// It is the only package of the program with a function init, and it imports only syscall and unsafe. Both are for one
// reason: the runtime initializes packages in the order of their imports, so this one comes right after
// syscall, before some 280 others have read files, changed limits or cost time. While packages are initialized, the
// program has its main thread to itself: what the kernel confines by thread, and keeps when a program is
// executed, is that thread. A function main would come some milliseconds too late for each call.
//
// # Between parent and shim
//
// The parent starts /proc/self/exe with [Environ] as its whole environment, so that nothing of the command can be
// seen in /proc before it runs. Descriptor [PlanFD] is a pipe with the plan: it is written when the parent is
// ready, and the shim waits for it. Descriptor [ReportFD] is a pipe on which the shim reports, see [ParseReport]. Other
// descriptors are for the plan.
package shim
