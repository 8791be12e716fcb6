package sqlite

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/process/identity"
	"loki/internal/workflow/run"
)

// lease is a row of leases.
type lease struct {
	token []byte
	epoch int64
	owner identity.Process
	until int64 // by the clock on the wall: a hint for lists only
	ends  int64 // by the live clock of owner.Boot
	beats int64 // signs of life

	working bool // the holder has begun to work

	// A process on another system that waits for the lease writes what it saw: the signs
	// of life, and since when by its own live clock.
	watcher string
	watched int64
	since   int64
}

// newToken returns what distinguishes a lease from all others, also from those of a copy of
// the file.
func newToken() []byte {
	token := make([]byte, 16)
	_, _ = rand.Read(token) // never fails
	return token
}

// leaseColumns are the columns that a lease is read from, with none for a run without
// a lease.
const leaseColumns = `coalesce(l.token, x''), coalesce(l.epoch, 0), coalesce(l.host, ''), coalesce(l.boot, ''), coalesce(l.machine, ''),
	coalesce(l.pid, 0), coalesce(l.born, ''), coalesce(l.until, 0), coalesce(l.ends, 0), coalesce(l.beats, 0),
	coalesce(l.watcher, ''), coalesce(l.watched, 0), coalesce(l.since, 0), coalesce(l.working, 0)`

// dest returns where leaseColumns go.
func (l *lease) dest() []any {
	return []any{
		&l.token, &l.epoch, &l.owner.Host, &l.owner.Boot, &l.owner.Machine, &l.owner.PID, &l.owner.Born,
		&l.until, &l.ends, &l.beats, &l.watcher, &l.watched, &l.since, &l.working,
	}
}

// findLease returns the lease of a run, if it has one.
func findLease(c *conn, id int64) (l lease, ok bool, err error) {
	ok, err = c.row("SELECT "+leaseColumns+" FROM leases l WHERE l.run = ?", []any{id}, l.dest()...)
	return l, ok, err
}

// holds says whether a lease keeps others away, and until when if its holder gives
// no sign of life. A zero time means: as long as the holder lives, which can be seen.
//
// No clock on a wall has a say in that: it may be set. The live clock of a system
// stands still while that sleeps, and is one for all its processes, in containers too.
// Of a holder on another system it only counts how long there was no sign of life.
// seen is false if that began to count just now.
func (s *Store) holds(l lease) (held bool, until time.Time, seen bool) {
	if _, left := abandoned.Load(string(l.token)); left {
		return false, time.Time{}, true
	}
	me := s.o.Owner
	switch l.owner.Life(me.Machine) {
	case identity.Living:
		return true, time.Time{}, true
	case identity.Dead:
		return false, time.Time{}, true
	}
	var left time.Duration
	switch {
	case l.owner.Boot != "" && l.owner.Boot == me.Boot:
		left, seen = time.Duration(l.ends)-s.o.Live(), true
	case s.restarted(l):
		return false, time.Time{}, true
	case l.watcher != "" && l.watcher == me.Clock() && l.watched == l.beats && l.since <= int64(s.o.Live()):
		left, seen = time.Duration(l.since)+s.o.LeaseTime-s.o.Live(), true
	default:
		left = s.o.LeaseTime
	}
	return left > 0, s.o.Now().Add(left), seen
}

// restarted reports whether the system that the holder ran on was started again, so that
// the holder is gone.
func (s *Store) restarted(l lease) bool {
	me := s.o.Owner
	if l.owner.Host != me.Host || l.owner.Boot == "" || me.Boot == "" || s.o.Owner.Boot != identity.ThisBoot() {
		return false
	}
	started := identity.BootTime()
	return !started.IsZero() && moment(l.until).Before(started)
}

// active reports whether a process is taken to hold the lease, as a list says it. A
// holder on another system that should have given a sign of life long since is not,
// though it takes a watch to open its run.
func (s *Store) active(l lease) bool {
	held, _, seen := s.holds(l)
	return held && (seen || s.o.Now().UnixNano() < l.until)
}

func (l lease) error(name string, until time.Time) *run.LeaseError {
	return &run.LeaseError{ID: name, Owner: l.owner.String(), Until: until}
}

// free returns a *run.LeaseError if a process holds the lease of the run. The first one
// that asks about the lease of another system begins to watch it.
func (s *Store) free(c *conn, id int64, name string) error {
	l, ok, err := findLease(c, id)
	if err != nil || !ok {
		return err
	}
	held, until, seen := s.holds(l)
	if !held {
		return nil
	}
	if !seen {
		if _, err := c.exec("UPDATE leases SET watcher = ?, watched = ?, since = ? WHERE run = ?", s.o.Owner.Clock(), l.beats, int64(s.o.Live()), id); err != nil {
			return err
		}
	}
	return &heldError{l.error(name, until)}
}

// heldError is a *run.LeaseError after which the transaction is committed: what it has
// written is only that the lease is watched.
type heldError struct{ *run.LeaseError }

func (e *heldError) Unwrap() error { return e.LeaseError }

// take gives the lease of j's run, with j's epoch, to the owner of the store.
func (j *journal) take(c *conn) error {
	s, o := j.store, j.store.o.Owner
	delete(s.leased, j.id)
	_, err := c.exec("INSERT OR REPLACE INTO leases (run, token, epoch, host, boot, machine, pid, born, until, ends) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		j.id, j.token, j.epoch, o.Host, o.Boot, o.Machine, o.PID, o.Born, s.leaseUntil(), s.leaseEnds())
	return err
}

// leaseUntil and leaseEnds return the end of a lease whose holder lives now, by the two
// clocks.
func (s *Store) leaseUntil() int64 { return s.o.Now().Add(s.o.LeaseTime).UnixNano() }
func (s *Store) leaseEnds() int64  { return int64(s.o.Live() + s.o.LeaseTime) }

// check returns an error unless the journal holds the lease of its epoch.
func (j *journal) check(c *conn) error {
	var n int
	ok, err := c.row("SELECT 1 FROM leases WHERE run = ? AND epoch = ? AND token = ?", []any{j.id, j.epoch, j.token}, &n)
	if err != nil || ok {
		return err
	}
	l, held, err := findLease(c, j.id)
	if err != nil {
		return err
	}
	return run.As(run.ErrLeaseLost, j.loseLease(c, l, held))
}

// checkWriting is check for a write transaction. It reads the lease only if it may have
// changed since it was read last.
func (j *journal) checkWriting(c *conn) error {
	s := j.store
	if s.leased[j.id] == j {
		return nil
	}
	err := j.check(c)
	if err == nil {
		s.leased[j.id] = j
	}
	return err
}

// noteVersion forgets which leases were read if another connection has written the file
// since then. It is called at the beginning of a write transaction.
func (s *Store) noteVersion(c *conn) error {
	var version int64
	if _, err := c.row("PRAGMA data_version", nil, &version); err != nil {
		return err
	}
	if version != s.version {
		s.version = version
		clear(s.leased)
	}
	return nil
}

// abandoned has the tokens of leases that this process does not hold any more, but could not give back before their store was closed.
var abandoned sync.Map

// leave gives the lease of a closed journal back as soon as the file can be written, at the latest to processes that see this one end.
func (s *Store) leave(j *journal) {
	s.leaving.Go(func() { // ends with the store
		for {
			select {
			case <-time.After(s.o.LeaseTime / 30):
			case <-s.done:
				abandoned.Store(string(j.token), nil)
				return
			}
			if err := s.write("leave", false, func(c *conn) error {
				delete(s.leased, j.id)
				_, err := c.exec("DELETE FROM leases WHERE token = ?", j.token)
				return err
			}); err == nil {
				return
			}
		}
	})
}

// loseLease says what became of the lease, which another process may hold.
func (j *journal) loseLease(c *conn, l lease, held bool) error {
	if held {
		return fault.Wrap(fault.Failure, l.error(j.name, time.Time{}), "run %s was taken over", j.name).
			WithHint("loki --run %s shows how far it has come", j.name)
	}
	var n int
	if ok, err := c.row("SELECT 1 FROM runs WHERE id = ?", []any{j.id}, &n); err != nil {
		return err
	} else if !ok {
		return fault.New(fault.NotFound, "run %s was deleted while this process was stopped", j.name)
	}
	return fault.New(fault.Failure, "run %s was taken over by another process while this one was stopped", j.name).
		WithHint("loki --run %s shows how far it has come", j.name)
}

// beat gives signs of life of journals, and notes which of them have lost their lease. It
// returns the error of the first one that has, or of the write.
func (s *Store) beat(journals ...*journal) error {
	at := s.liveAndWall()
	lost := make([]error, len(journals))
	err := s.write("beat", false, func(c *conn) error {
		for i, j := range journals {
			if lost[i] = j.checkWriting(c); errors.Is(lost[i], run.ErrLeaseLost) {
				continue
			}
			if lost[i] != nil {
				return lost[i]
			}
			if _, err := c.exec("UPDATE leases SET until = ?, ends = ?, beats = beats + 1 WHERE run = ?", s.leaseUntil(), s.leaseEnds(), j.id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, j := range journals {
		if lost[i] == nil {
			j.alive.Store(&at)
			continue
		}
		j.noteLoss(lost[i])
		if err == nil {
			err = lost[i]
		}
	}
	return err
}

// Confirm returns an error if the lease is lost. It looks if there was no sign of life
// for half of the time that a lease lasts.
func (j *journal) Confirm(context.Context) error {
	if err := context.Cause(j.lease); err != nil {
		return err
	}
	if j.silence(j.store.liveAndWall()) < j.store.o.LeaseTime/2 {
		return nil
	}
	return j.store.beat(j)
}

// Lease returns a context that ends with the lease.
func (j *journal) Lease() context.Context { return j.lease }

// clocks is a moment by the live clock and by that on the wall, which advances while the system
// sleeps.
type clocks struct {
	live time.Duration
	wall time.Time
}

func (s *Store) liveAndWall() clocks { return clocks{s.o.Live(), s.o.Now().Round(0)} }

// silence returns for how long there may have been no sign of life of the journal.
func (j *journal) silence(now clocks) time.Duration {
	last := j.alive.Load()
	return max(now.live-last.live, now.wall.Sub(last.wall))
}

// pulse is the goroutine that gives signs of life of all open journals of a store.
type pulse struct {
	stop chan struct{} // closed to end it
	done chan struct{} // closed when it has ended
}

// maxBeats is the number of signs of life that are written together.
const maxBeats = 128

// keepAlive gives signs of life of the open journals until p is stopped: every third of the
// time that a lease lasts, and at once when the process was stopped or slept.
func (s *Store) keepAlive(p *pulse) {
	defer close(p.done)
	tick := time.NewTicker(s.o.LeaseTime / 30)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-tick.C:
		}
		for some := range slices.Chunk(s.silent(), maxBeats) {
			_ = s.beat(some...) // if it fails in passing the next one may succeed
		}
	}
}

// silent returns the open journals that a sign of life is due of.
func (s *Store) silent() (due []*journal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.liveAndWall()
	for j := range s.journals {
		if j.silence(now) >= s.o.LeaseTime/3 {
			due = append(due, j)
		}
	}
	return due
}

// start makes the journal known and keeps its lease from now on.
func (s *Store) start(j *journal) *journal {
	at := s.liveAndWall()
	j.alive.Store(&at)
	j.lease, j.lose = context.WithCancelCause(context.Background())
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.journals) == 0 {
		p := &pulse{stop: make(chan struct{}), done: make(chan struct{})}
		s.pulse = p
		go s.keepAlive(p) // until the last journal is closed, which waits for it
	}
	s.journals[j] = struct{}{}
	return j
}

// forget ends what start began.
func (s *Store) forget(j *journal) {
	s.mu.Lock()
	delete(s.journals, j)
	last := len(s.journals) == 0
	p := s.pulse
	s.mu.Unlock()
	if last {
		close(p.stop)
		<-p.done
	}
}
