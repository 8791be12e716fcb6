// Package postgres keeps the journals of runs in a PostgreSQL database, for servers that are one service: see
// [run.Shared]. Package record has the form in which runs are kept.
//
// The lease of a run is a row that names a member, see [postgres.Member], and an epoch, which Open counts up. A
// lease is held for as long as the row of its member is there. Every write checks the epoch in its own
// transaction, so that a process that lost a lease writes nothing any more, whatever it believes.
//
// Every write is one transaction, whose statements go to the server in one message. It has a number, and names
// the one before it. If the connection is lost before the answer comes, the next write asks the database which
// was the last one, so that nothing is written twice, and nothing is taken for written that is not.
//
// While the database cannot be reached, writes fail in passing, see [run.ErrPassing]. There is nothing beside the
// database to note a gap in: a run whose journal gives up because the database is gone has lost its lease, stops,
// and resumes from its record when the database is back.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"loki/internal/base/fault"
	"loki/internal/service/postgres"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/record"
)

// Options configure a store. The zero Options are usable.
type Options struct {
	Now func() time.Time // nil means time.Now

	// Seal returns a text, JSON or not, as it is stored, such as without secrets, and Unseal
	// takes that back. Both are called from several goroutines; nil changes nothing.
	Seal, Unseal func(text string) string

	// EventDelay is the time after which events are written that no record has taken along; 0
	// means that they wait for the next record. Wrote is called after events of a run were written
	// by this store, with its id: soon after, from several goroutines, while the journal waits. Nil
	// means that Changes is enough.
	EventDelay time.Duration
	Wrote      func(id string)

	// Hook is called before and after every write, for tests that end the process there. op names what
	// is written.
	Hook func(op string)
}

// Store is a [run.Shared] in a PostgreSQL database.
type Store struct {
	record.Reads
	db *postgres.DB
	o  Options

	ctx     context.Context // ends with the store
	end     context.CancelFunc
	running sync.WaitGroup
	soon    chan struct{} // holds an element for each write of events that no record took along

	mu       sync.Mutex
	journals map[int64]*journal // open ones by run
	left     []lease            // to be given back when the database can be reached
	watching bool
}

// lease is one that this process took, and may not know of.
type lease struct {
	run    int64  // 0 for a run that was created
	name   string // of the run that was created; else empty
	claims bool   // it has some: it is not forgotten, because its start is on record
	member int64
	epoch  int64
}

var (
	_ run.Shared  = (*Store)(nil)
	_ run.Journal = (*journal)(nil)
)

// maxSoon is how many writes of events that no record took along there are at the same time. The events of
// other runs wait and are written together, so that many runs do not take all connections.
const maxSoon = 3

// patience is how long one write or read may take.
const patience = 10 * time.Second

// New returns the store in a database, which is closed after the store, by its owner. It does not
// connect.
func New(db *postgres.DB, o Options) *Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Store{db: db, o: o, soon: make(chan struct{}, maxSoon), journals: make(map[int64]*journal)}
	s.Reads = record.NewReads(s.reads)
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

var errClosed = errors.New("the record of runs is closed")

// ready makes the tables, if that was not done.
func (s *Store) ready(ctx context.Context) error {
	if s.ctx.Err() != nil {
		return errClosed
	}
	return s.db.Migrate(ctx, "runs", schema...)
}

// within returns a context for one write or read. A write is not canceled: what was done is recorded.
func within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), patience)
}

// explain turns an error of the database into one for the user.
func (s *Store) explain(err error) error {
	if postgres.Passing(err) {
		return run.As(run.ErrPassing, s.db.Explain(err))
	}
	return s.db.Explain(err)
}

// explainDamage is explain for what was read of a run.
func (s *Store) explainDamage(name string, err error) error {
	if errors.Is(err, record.ErrDamaged) && !postgres.Passing(err) {
		return fault.Wrap(fault.Failure, err, "the record of run %s in the database is damaged", name).
			WithHint("other runs are not affected: loki --runs")
	}
	return s.explain(err)
}

// transaction calls fn in a transaction, once the tables are there, and again if a transaction that only reads fails in passing. It waits as long for the database as a call may, see [postgres.DB.Within].
func (s *Store) transaction(ctx context.Context, o pgx.TxOptions, fn func(ctx context.Context, tx pgx.Tx) error) error {
	ctx, cancel := s.db.Within(ctx)
	defer cancel()
	err := s.ready(ctx)
	if err != nil {
		return s.explain(err)
	}
	try := func() error {
		return pgx.BeginTxFunc(ctx, s.db.Pool(), o, func(tx pgx.Tx) error { return fn(ctx, tx) })
	}
	if o.AccessMode != pgx.ReadOnly {
		return s.explain(try())
	}
	s.db.BuryAtTimes(ctx)
	if err = try(); postgres.Passing(err) { // such as a connection that ended meanwhile
		err = try()
	}
	return s.explain(err)
}

// change is a transaction for a run whose id begins with typed, which is locked.
func (s *Store) change(ctx context.Context, op, typed string, fn func(ctx context.Context, tx pgx.Tx, r locked) error) error {
	ctx, cancel := within(ctx)
	defer cancel()
	s.hook(op)
	defer s.hook(op)
	return s.transaction(ctx, pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error {
		r, err := s.lock(ctx, tx, typed)
		if err != nil {
			return err
		}
		return fn(ctx, tx, r)
	})
}

// locked is a run whose row in leases is locked.
type locked struct {
	id     int64
	name   string
	status run.Status
	gap    *run.Gap
	epoch  int64
	member int64
	held   *run.LeaseError // nil if no process holds it

	left     bool   // by a process that died at work on it
	progress string // when the last takeover was counted
}

func (s *Store) lock(ctx context.Context, tx pgx.Tx, typed string) (r locked, err error) {
	if r.id, r.name, err = find(ctx, tx, typed); err != nil {
		return r, err
	}
	if _, err = tx.Exec(ctx, `SELECT FROM loki.leases WHERE run = $1 FOR UPDATE`, r.id); err != nil {
		return r, err
	}
	// What other tables have is read after that, by a statement of its own, which sees what others wrote meanwhile.
	if err = s.readLocked(ctx, tx, &r); err == nil && r.held != nil { // perhaps by a process that is dead
		if err = s.db.Bury(ctx, tx); err == nil {
			err = s.readLocked(ctx, tx, &r)
		}
	}
	if errors.Is(err, pgx.ErrNoRows) { // it was just deleted
		_, err = run.PickID(typed, nil)
	}
	return r, err
}

// readLocked reads the state of a locked run and of its lease.
func (s *Store) readLocked(ctx context.Context, tx pgx.Tx, r *locked) error {
	var gap []byte
	var host *string
	var pid *int
	var silent *float64
	err := tx.QueryRow(ctx, `SELECT r.status, r.gap, l.epoch, coalesce(l.member, 0), l.working AND l.member IS NOT NULL AND m.id IS NULL, l.progress, m.host, m.pid, `+postgres.Silence+`
		FROM loki.leases l JOIN loki.runs r ON r.id = l.run LEFT JOIN loki.members m ON m.id = l.member WHERE l.run = $1`, r.id).
		Scan(&r.status, &gap, &r.epoch, &r.member, &r.left, &r.progress, &host, &pid, &silent)
	if r.gap, r.held = s.reader().Gap(gap), nil; host != nil {
		r.held = s.heldBy(r.name, *host, *pid, *silent)
	}
	return err
}

// heldBy returns the error of a run that a member holds, which gave no sign of life for some seconds.
func (s *Store) heldBy(name, host string, pid int, silent float64) *run.LeaseError {
	held := &run.LeaseError{ID: name, Owner: fmt.Sprintf("process %d on %s", pid, postgres.Original(host))}
	ago := time.Duration(silent * float64(time.Second))
	if dead := s.db.Dead(); ago > dead/2 { // it lacks a sign of life
		held.Until = s.o.Now().Add(max(dead-ago, time.Second))
	}
	return held
}

// find returns the run whose id begins with typed.
func find(ctx context.Context, q querier, typed string) (id int64, name string, err error) {
	prefix, err := run.ParseID(typed)
	if err != nil {
		return 0, "", err
	}
	var names []string
	err = each(ctx, q, `SELECT id, name FROM loki.runs WHERE name >= $1 AND name < $2 ORDER BY name LIMIT 12`, []any{prefix, prefix + "~"},
		[]any{&id, &name}, func() error { names = append(names, name); return nil })
	if err != nil {
		return 0, "", err
	}
	name, err = run.PickID(typed, names)
	return id, name, err
}

func (s *Store) hook(op string) {
	if s.o.Hook != nil {
		s.o.Hook(op)
	}
}

func (s *Store) now() int64 { return s.o.Now().UnixNano() }

// seal returns what documents are sealed by.
func (s *Store) seal() record.Sealer { return s.o.Seal }

// reader returns what reads texts that need no blobs.
func (s *Store) reader() record.Reader { return record.Reader{Show: s.o.Unseal} }

// moment returns the time that n is on record as.
func moment(n int64) time.Time { return time.Unix(0, n).UTC() }

// nanoseconds returns a time as it is on record: null for none.
func nanoseconds(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	n := t.UnixNano()
	return &n
}

// Close closes the journals that are open.
func (s *Store) Close() error {
	s.mu.Lock()
	var open []*journal
	for _, j := range s.journals {
		open = append(open, j)
	}
	s.mu.Unlock()
	var errs []error
	for _, j := range open {
		errs = append(errs, j.Close())
	}
	s.end()
	s.running.Wait()
	return errors.Join(errs...)
}

// Probe reports why runs could not be recorded now, nil if they could.
func (s *Store) Probe(ctx context.Context) error {
	return s.transaction(ctx, pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE loki.leases SET writes = writes WHERE false`) // which a server that only reads refuses
		return err
	})
}
