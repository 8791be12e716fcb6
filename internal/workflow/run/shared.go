package run

import "context"

// Shared is a store that several servers use as one service: a run is at work in one of them at a time,
// resumes in another when its process gives up its lease or dies, and can be followed, answered and
// canceled at any of them.
//
// A server that has no turn for a run closes its journal. The run stays [Running] on record, no process
// holds it, and Ready offers it to all servers. Several may be offered the same run: [Store.Open] gives it
// to one of them, and the others get a [*LeaseError].
//
// A run that was answered while a process held it is Ready once it rests.
type Shared interface {
	Store

	// Changes calls changed with the id of each run of which any process wrote something: events, how it
	// rests, a request to cancel it, or what makes it Ready. Calls come one at a time, soon after the
	// write, and one call may report several writes. An empty id says that anything may have
	// changed: at the beginning, and after the connection to the store was lost. Changes returns when ctx
	// ends, with its error; losing the connection is no reason.
	Changes(ctx context.Context, changed func(id string)) error

	// Ready returns the ids of at most limit runs of servers, see [Info.Served], that no process holds and
	// that can work now, by their priority, and of those the one that has waited longest first: runs that are running on record, because they
	// wait for a turn or their process died, and suspended runs whose time has come since they
	// were opened last: the deadline of a question or a wait is over, the provider is back, Answer was called, or Signal with
	// a signal that the run waits for. A run with a gap, or at a breakpoint, is not Ready. A limit of 0 or less returns none.
	Ready(ctx context.Context, limit int) ([]string, error)

	// Cancel asks the process that holds a run to cancel it, which that finds soon after: the context of
	// [Journal.Lease] ends, with a fault of code Canceled as its cause. The lease itself is not lost, so
	// that the journal takes how the run ended: see [CancelCause], also for keep. A run that no process holds is left as it is, and
	// asked is false.
	Cancel(ctx context.Context, id string, keep bool) (asked bool, err error)
}
