package session

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"loki/internal/service/auth"
)

// Scope says whose sessions are meant: "" is the global scope, otherwise it is the
// name of an agent. Aliases are unique within a scope.
type Scope string

// Errors that callers branch on. They are wrapped in a [*fault.Error].
var (
	ErrNotFound   = errors.New("no such session")
	ErrAliasInUse = errors.New("the name is taken")
)

// Store keeps sessions. Its methods may be called from several goroutines. Errors that
// a user can understand are a [*fault.Error]; errors about an unknown session are [ErrNotFound] and
// have the code NotFound.
type Store interface {
	// Create stores a new session, with an alias unless that is "". It is an
	// [ErrAliasInUse] if another one has it.
	Create(ctx context.Context, scope Scope, alias Alias, initial Settings) (*Session, error)

	// Temp returns a new session without an alias that is stored when it is first
	// saved, see [Session.Save].
	Temp(scope Scope, initial Settings) *Session

	// Fork returns a new session with the owner, settings and messages of s, called alias; "" makes
	// a temporary one, as Temp does. One with an alias is stored at once, and it is an
	// [ErrAliasInUse] if another session has it.
	Fork(ctx context.Context, s *Session, alias Alias) (*Session, error)

	// Open returns the session called id, with its messages.
	Open(ctx context.Context, scope Scope, id ID) (*Session, error)

	// OpenOrCreate returns the session called alias. If there is none it is a new one
	// with the settings that initial returns, which is stored when it is first saved:
	// looking into a session and leaving it leaves nothing behind.
	OpenOrCreate(ctx context.Context, scope Scope, alias Alias, initial func() (Settings, error)) (*Session, error)

	// Resolve returns the id of the stored session called alias without reading it.
	Resolve(ctx context.Context, scope Scope, alias Alias) (ID, error)

	// Rename gives a stored session another alias, instead of the one it has.
	Rename(ctx context.Context, scope Scope, id ID, alias Alias) error

	// Move makes a stored session one of another scope, where it has the same id and alias. It is an
	// [ErrAliasInUse] if another session has that there. Using it further where it is open is an
	// [ErrNotFound].
	Move(ctx context.Context, scope Scope, id ID, to Scope) error

	// Owner returns the owner of a stored session, nil if it has none, without reading the rest of it.
	Owner(ctx context.Context, scope Scope, id ID) (*auth.Owner, error)

	// Claim gives a stored session that has no owner to owner, and returns the owner that it has
	// then.
	Claim(ctx context.Context, scope Scope, id ID, owner auth.Owner) (*auth.Owner, error)

	// Delete removes a stored session and its aliases. Using it further where it is
	// open is an [ErrNotFound].
	Delete(ctx context.Context, scope Scope, id ID) error

	// List returns the stored sessions of a scope without reading them, by name; those
	// without an alias come last, the latest first. An unused scope is empty.
	List(ctx context.Context, scope Scope) ([]Meta, error)
}

// Meta is what is known of a session without reading it.
type Meta struct {
	ID       ID
	Alias    Alias     // "" if it has none
	Modified time.Time // when something was last said, or set
	Size     int64     // of the log, in bytes; 0 for one that an older version wrote
	Owner    *auth.Owner
}

// Copy is all that is stored of a session, for another store to take over.
type Copy struct {
	ID       ID
	State    State
	Log      []byte
	Drafts   [][]byte // of questions that no process answers any more
	Modified time.Time
}

// Limits say which sessions without a name are kept: the sessions that are within all of them, the latest first.
type Limits struct {
	Sessions int
	Bytes    int64     // of their messages
	Since    time.Time // of their last use
}

// Beyond returns the sessions without an alias in a list, which is in the order of [Store.List], that are not within the limits.
func (l Limits) Beyond(list []Meta) (beyond []Meta) {
	n, size := 0, int64(0)
	for _, m := range list {
		if m.Alias != "" {
			continue
		}
		n, size = n+1, size+m.Size
		if n > l.Sessions || size > l.Bytes || !m.Modified.After(l.Since) {
			beyond = append(beyond, m)
		}
	}
	return beyond
}

// Latest returns a list, which is in the order of [Store.List], without all but the latest unnamed ones of the sessions that
// have no alias, and how many it leaves out.
func Latest(list []Meta, unnamed int) (latest []Meta, more int) {
	first := slices.IndexFunc(list, func(m Meta) bool { return m.Alias == "" })
	if first < 0 {
		return list, 0
	}
	end := first + min(unnamed, len(list)-first)
	return list[:end], len(list) - end
}

// SortMetas puts a list in the order of [Store.List].
func SortMetas(list []Meta) {
	slices.SortFunc(list, func(a, b Meta) int {
		if (a.Alias == "") != (b.Alias == "") {
			return cmp.Compare(b.Alias, a.Alias) // the named one first
		}
		return cmp.Or(cmp.Compare(a.Alias, b.Alias), b.Modified.Compare(a.Modified), cmp.Compare(a.ID, b.ID))
	})
}
