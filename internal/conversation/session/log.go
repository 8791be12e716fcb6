package session

import (
	"context"

	"loki/internal/service/auth"
)

// Log is where a [Store] keeps one session: its state, and the bytes of its log. Code
// that uses sessions has nothing to do with it; stores implement it. Calls for one
// session come one at a time from a [Session], but other sessions, and other
// processes, may hold a Log of the same data.
type Log interface {
	// Create stores the session, which is not stored yet, under the alias of its state,
	// if it has one, and with its owner. It is an [ErrAliasInUse] if another session has the alias.
	Create(ctx context.Context, st State) error

	// Adopt makes this the log of the stored session called alias, and returns its id.
	Adopt(ctx context.Context, alias Alias) (ID, error)

	// Load returns the state and the whole log. It need not wait for writers: the log
	// may end within a group that is being written.
	Load(ctx context.Context) (State, []byte, error)

	// Tail returns what the log holds after offset, under the same terms. It is empty,
	// too, if the log is shorter than that.
	Tail(ctx context.Context, offset int64) ([]byte, error)

	// Update calls change once, while no other goroutine or process changes the session. If it
	// fails, change may have been called, and all, a part or nothing of what it did may be stored.
	Update(ctx context.Context, change func(Tx) error) error

	// Rename gives the stored session another alias instead of its own, which may be "".
	Rename(ctx context.Context, alias Alias) error

	// Owner returns whose the stored session is, as [Store.Owner] does, and Claim is
	// [Store.Claim].
	Owner(ctx context.Context) (*auth.Owner, error)
	Claim(ctx context.Context, owner auth.Owner) (*auth.Owner, error)

	// NewDraft makes a place beside the stored log for a turn that is being answered.
	NewDraft(ctx context.Context) (DraftFile, error)

	// Abandoned returns the drafts that were neither removed nor are held any more,
	// because their process has died. They are held now.
	AbandonedDrafts(ctx context.Context) ([]DraftFile, error)

	// Withdraw removes the stored session if its log has size bytes and it has no draft.
	Withdraw(ctx context.Context, size int64) (withdrawn bool, err error)
}

// DraftFile keeps a draft. It is held until it is closed, at the latest by the end of
// the process.
type DraftFile interface {
	Data() ([]byte, error)
	Append(data []byte) error
	Remove() error // and close
	Close() error  // and leave it
}

// Tx is a session's data during [Log.Update].
type Tx interface {
	Size() (int64, error)                 // of the log, in bytes
	Tail(offset int64) ([]byte, error)    // from offset, at most Size, to the end
	Append(size int64, data []byte) error // cuts the log to size bytes and adds data in one write
	State() (State, error)                // as it is stored
	SetState(st State) error              // whole or not at all, but for the owner, who stays
}
