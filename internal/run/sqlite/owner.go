package sqlite

import (
	"crypto/rand"
	"fmt"
	"os"
	"time"

	"loki/internal/run"
)

// Owner is the identity of a process that takes leases.
type Owner struct {
	Host    string // its name, for people
	Machine string // where PID means this process: one start of a system and, in it, one space of process ids
	PID     int
	Born    string // when the process was started, in the system's own terms; empty if that is unknown
}

func (o Owner) String() string { return fmt.Sprintf("process %d on %s", o.PID, o.Host) }

func thisProcess() *Owner {
	host, err := os.Hostname()
	if err != nil {
		host = "this computer"
	}
	o := &Owner{Host: host, Machine: host + machine(), PID: os.Getpid()}
	o.Born, _ = processBorn(o.PID)
	return o
}

// gone reports whether the process, of the given machine, is known to have ended.
func (o Owner) gone(machine string) bool {
	if o.Machine != machine {
		return false
	}
	born, alive := processBorn(o.PID)
	return !alive || born != "" && o.Born != "" && born != o.Born
}

// lease is a row of leases.
type lease struct {
	token []byte
	owner Owner
	until int64
}

// newToken returns what tells a lease from all others.
func newToken() []byte {
	token := make([]byte, 16)
	_, _ = rand.Read(token) // never fails
	return token
}

// findLease returns the lease of a run, if it has one.
func findLease(c *conn, id int64) (l lease, ok bool, err error) {
	ok, err = c.row("SELECT token, host, machine, pid, born, until FROM leases WHERE run = ?", []any{id},
		&l.token, &l.owner.Host, &l.owner.Machine, &l.owner.PID, &l.owner.Born, &l.until)
	return l, ok, err
}

// holds reports whether the lease still keeps others away.
func (s *Store) holds(l lease) bool {
	return s.o.Now().UnixNano() < l.until && !l.owner.gone(s.o.Owner.Machine)
}

// free returns a *run.LeaseError if somebody holds the lease of the run.
func (s *Store) free(c *conn, id int64, name string) error {
	l, ok, err := findLease(c, id)
	if err != nil {
		return err
	}
	if ok && s.holds(l) {
		return &run.LeaseError{ID: name, Owner: l.owner.String(), Until: moment(l.until)}
	}
	return nil
}

// take gives the lease of a run to the owner of the store.
func (s *Store) take(c *conn, id int64, token []byte) error {
	o := s.o.Owner
	_, err := c.exec("INSERT OR REPLACE INTO leases (run, token, host, machine, pid, born, until) VALUES (?, ?, ?, ?, ?, ?, ?)",
		id, token, o.Host, o.Machine, o.PID, o.Born, s.leaseUntil())
	return err
}

// prolong keeps the lease of j until stop is closed.
func (j *journal) prolong(stop <-chan struct{}) {
	tick := time.NewTicker(j.store.o.LeaseTime / 3)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		// If that fails the next one may succeed; and if the lease is lost, the next
		// write tells.
		_ = j.store.write("prolong", false, func(c *conn) error {
			_, err := c.exec("UPDATE leases SET until = ? WHERE run = ? AND token = ?", j.store.leaseUntil(), j.id, j.token)
			return err
		})
	}
}
