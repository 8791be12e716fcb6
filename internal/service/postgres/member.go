package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/base/process/identity"
)

// Timing says how fast members are found dead. All processes of a database have to use the same, so that the setting
// loki.dead_after of the database, such as '5s', comes before Dead and, as a third of it, Beat. A zero field has
// the default.
type Timing struct {
	Beat     time.Duration // between signs of life; 5 s
	Dead     time.Duration // without a sign of life, by the clock of the database, after which any member may end another one; 15 s
	Patience time.Duration // without an answer of the database, after which a member gives up; 60 s
	Wait     time.Duration // how long a call waits for a database that cannot be reached, or gives no answer; 30 s
}

func (t Timing) orDefaults() Timing {
	set := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	set(&t.Beat, 5*time.Second)
	set(&t.Dead, 15*time.Second)
	set(&t.Patience, time.Minute)
	set(&t.Wait, 30*time.Second)
	return t
}

// membersTable is there before the tables of all parts. A member that is dead has no row.
var membersTable = []string{
	`
CREATE TABLE loki.members (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	host text NOT NULL,
	pid integer NOT NULL,
	seen timestamptz NOT NULL
) WITH (fillfactor = 50)`, `
ALTER TABLE loki.members ADD COLUMN machine text, ADD COLUMN born text`, // see [identity.Process]; null in a row of an older version
}

// Member is this process as one of the processes that share the database. Its row in loki.members, with its
// id, is there for as long as the process may believe that it lives: a lease that names a row that is not
// there is free, and one whose row is there is held. A process that takes a lease does not look at a clock.
//
// The row is renewed every 5 s by the clock of the database. [DB.Bury] removes the rows that were not renewed
// for 15 s, but not in the first 15 s after the server was started, so that leases outlast a restart of the
// server. The row of a process that has ended on the same machine is removed at once. A member that was removed finds out with its next sign of life, and never comes back: the
// process gets another one.
//
// While the database gives no answer, it is unknown whether other members can reach it. For 60 s the member is in
// doubt: [Member.Confirm] fails, so that nothing new is begun, and what is under way may end. Then the
// member is lost.
type Member struct {
	db *DB
	id int64

	lost context.Context
	lose context.CancelCauseFunc
	done chan struct{} // closed when beats have ended

	beating sync.Mutex // held during a beat; guards conn
	conn    *pgx.Conn  // nil for none

	mu   sync.Mutex
	last time.Time // beginning of the last successful beat
}

// ErrLost is the cause of the end of a member.
var ErrLost = errors.New("this process gave the database no sign of life for too long, and others may have taken over what it held")

var errClosed = errors.New("the database is closed")

// Member returns the member that this process is. It becomes one at the first call, and again after
// [Member.LostContext].
func (db *DB) Member(ctx context.Context) (*Member, error) {
	ctx, cancel := db.Within(ctx)
	defer cancel()
	if err := db.Migrate(ctx, "members", membersTable...); err != nil {
		return nil, err
	}
	if err := db.joining.enter(ctx); err != nil {
		return nil, db.Explain(err)
	}
	defer db.joining.leave()
	if db.member != nil {
		if db.member.lost.Err() == nil {
			return db.member, nil
		}
		if errors.Is(context.Cause(db.member.lost), errClosed) {
			return nil, errClosed
		}
		<-db.member.done
	}
	m := &Member{db: db, done: make(chan struct{}), last: time.Now()}
	if err := db.set(ctx); err != nil {
		return nil, db.Explain(err)
	}
	err := db.Bury(ctx, db.pool)
	if self := identity.Self(); err == nil {
		err = db.pool.QueryRow(ctx, `INSERT INTO loki.members (host, pid, seen, machine, born) VALUES ($1, $2, clock_timestamp(), $3, $4) RETURNING id`,
			Text(self.Host), self.PID, Text(self.Machine), self.Born).Scan(&m.id)
	}
	if err != nil {
		return nil, db.Explain(err)
	}
	m.lost, m.lose = context.WithCancelCause(context.Background())
	go m.live()
	db.member = m
	return m, nil
}

// set takes the timing over that the database has as a setting.
func (db *DB) set(ctx context.Context) error {
	var seconds float64
	err := db.pool.QueryRow(ctx, `SELECT coalesce(extract(epoch FROM nullif(current_setting('loki.dead_after', true), '')::interval), 0)::float8`).Scan(&seconds)
	if dead := time.Duration(seconds * float64(time.Second)); err == nil && dead > 0 {
		t := *db.timing.Load()
		t.Dead, t.Beat = dead, dead/3
		db.timing.Store(&t)
	}
	return err
}

// Bury removes the rows of dead members, so that what they held is free: of members without a sign of life for
// 15 s, and of processes of this machine that have ended.
func (db *DB) Bury(ctx context.Context, q Querier) error {
	machine := identity.Self().Machine
	rows, err := q.Query(ctx, `SELECT id, pid, coalesce(born, '') FROM loki.members WHERE machine = $1`, Text(machine))
	if err != nil {
		return err
	}
	dead := []int64{} // not null
	var id int64
	p := identity.Process{Machine: machine}
	if _, err := pgx.ForEachRow(rows, []any{&id, &p.PID, &p.Born}, func() error {
		if p.Life(machine) == identity.Dead {
			dead = append(dead, id)
		}
		return nil
	}); err != nil {
		return err
	}
	_, err = q.Exec(ctx, silent, db.timing.Load().Dead.Seconds(), dead)
	return err
}

// BuryAtTimes is [DB.Bury] for those who look often: it does so once a second at most. If that fails, a dead member is
// found later.
func (db *DB) BuryAtTimes(ctx context.Context) {
	last, now := db.buried.Load(), time.Now().UnixNano()
	if now-last >= int64(time.Second) && db.buried.CompareAndSwap(last, now) {
		_ = db.Bury(ctx, db.pool)
	}
}

// silent removes the rows of members without a sign of life for $1 seconds, and those with the ids $2.
const silent = `DELETE FROM loki.members WHERE id IN (SELECT id FROM loki.members WHERE id = ANY($2)
	OR greatest(seen, pg_postmaster_start_time()) < clock_timestamp() - coalesce(nullif(current_setting('loki.dead_after', true), '')::interval, make_interval(secs => $1))
	FOR UPDATE SKIP LOCKED)`

// Silence is for how many seconds the member m gave no sign of life, counting only those in which the server was up.
const Silence = `extract(epoch from clock_timestamp() - greatest(m.seen, pg_postmaster_start_time()))::float8`

// Querier is a pool of connections, a connection or a transaction.
type Querier interface {
	Exec(ctx context.Context, statement string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, statement string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, statement string, args ...any) pgx.Row
}

// ID returns the number of the member's row.
func (m *Member) ID() int64 { return m.id }

// LostContext returns a context that ends when the member is none any more, with the reason as its cause, which
// wraps [ErrLost]: another one found it dead, or it got no answer of the database for 60 s. It ends also when the
// database is closed.
func (m *Member) LostContext() context.Context { return m.lost }

// Confirm returns an error unless no other process can have taken this one for dead. It must be called before
// something is begun that only the holder of a lease may do, and costs nothing as long as the last sign of
// life is not old. Otherwise it gives one. The error is [Passing], or wraps [ErrLost].
func (m *Member) Confirm(ctx context.Context) error {
	if m.lost.Err() == nil && m.fresh() {
		return nil
	}
	return m.beat(ctx)
}

// fresh reports whether the last sign of life is so young that no other member takes the process for dead. A clock on the
// wall that was set, or that ran while the machine slept, only makes it look older.
func (m *Member) fresh() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	limit := m.db.timing.Load().Dead * 4 / 5
	wall := time.Now().Round(0).Sub(m.last.Round(0))
	return time.Since(m.last) < limit && wall < limit && wall > -time.Second
}

// live gives signs of life until the member is lost.
func (m *Member) live() {
	defer close(m.done)
	t := *m.db.timing.Load()
	for retry.Sleep(m.lost, t.Beat) == nil {
		for {
			err := m.beat(m.lost)
			if err == nil || m.lost.Err() != nil {
				break
			}
			m.mu.Lock()
			silent := time.Since(m.last)
			m.mu.Unlock()
			if silent >= t.Patience {
				m.lose(fmt.Errorf("%w: %w", ErrLost, err))
				break
			}
			if retry.Sleep(m.lost, min(time.Second, t.Beat/5)) != nil {
				break
			}
		}
	}
	m.beating.Lock()
	defer m.beating.Unlock()
	if m.conn != nil {
		hangUp(m.conn)
		m.conn = nil
	}
}

// beat gives a sign of life, and removes dead members.
func (m *Member) beat(ctx context.Context) error {
	m.beating.Lock()
	defer m.beating.Unlock()
	if m.lost.Err() != nil {
		return context.Cause(m.lost)
	}
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, m.db.timing.Load().Dead/3)
	defer cancel()
	alive, err := m.renew(ctx)
	if err != nil {
		if m.conn != nil {
			hangUp(m.conn)
			m.conn = nil
		}
		return fault.Wrap(fault.Failure, &silence{err}, "the database %s gives no answer", m.db.pool.Config().ConnConfig.Database)
	}
	if !alive {
		m.lose(ErrLost)
		return ErrLost
	}
	m.mu.Lock()
	m.last = begin
	m.mu.Unlock()
	return nil
}

// silence is an error that is [Passing] whatever its cause.
type silence struct{ error }

func (e *silence) Unwrap() error        { return e.error }
func (e *silence) Is(target error) bool { return target == ErrAway }

// renew writes a sign of life, and says whether the member is one still.
func (m *Member) renew(ctx context.Context) (alive bool, err error) {
	if m.conn == nil {
		if m.conn, err = m.db.connect(ctx); err != nil {
			return false, err
		}
	}
	tag, err := m.conn.Exec(ctx, `UPDATE loki.members SET seen = clock_timestamp() WHERE id = $1`, m.id)
	if err == nil {
		err = m.db.Bury(ctx, m.conn)
	}
	return tag.RowsAffected() > 0, err
}

// leave ends the member and its row.
func (m *Member) leave() {
	m.lose(errClosed)
	<-m.done
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, _ = m.db.pool.Exec(ctx, `DELETE FROM loki.members WHERE id = $1`, m.id) // else others do
}

// broken reports whether an error is one of the network, or of a wait that was too long.
func broken(err error) bool {
	if errors.As(err, new(net.Error)) {
		return true
	}
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, context.DeadlineExceeded} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}
