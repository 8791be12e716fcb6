package governor

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"
)

// Rows are the limits that several servers share: a document for each account. Its methods may be called from several goroutines.
type Rows interface {
	// Change has change replace a document, "" for a new one, while no other process does. self is this process, living reports whether
	// a process is there. If news is true the other processes hear of it.
	Change(ctx context.Context, account string, change func(doc, self string, living func(process string) bool) (after string, news bool)) error
	// All returns all documents by account.
	All(ctx context.Context) (docs map[string]string, living func(process string) bool, err error)
	// Listen calls heard with the accounts of which there are news, until ctx ends.
	Listen(ctx context.Context, heard func(account string)) error
}

// database is where the limits of several servers are.
type database struct {
	open func() (Rows, error) // nil for none
	once sync.Once
	rows Rows  // nil for none
	err  error // of open
	end  context.CancelFunc
	done sync.WaitGroup

	mu    sync.Mutex
	heard map[string]func() // by account: has its calls look again
}

// ShareThrough shares the limits with all processes that use a database, which is opened for the first call. It is called before
// other methods.
func (g *Governor) ShareThrough(open func() (Rows, error)) { g.database.open = open }

// has reports whether there is a database. It opens it, once.
func (d *database) has() bool {
	d.once.Do(func() {
		if d.open == nil {
			return
		}
		d.heard = make(map[string]func())
		d.rows, d.err = d.open()
	})
	return d.rows != nil
}

// hear has look called whenever a call of another process may have ended.
func (d *database) hear(account string, look func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.heard[account]
	d.heard[account] = func() {
		if before != nil { // another client of the same account
			before()
		}
		look()
	}
	if d.end != nil {
		return
	}
	ctx, end := context.WithCancel(context.Background())
	d.end = end
	d.done.Go(func() { // ends with close
		_ = d.rows.Listen(ctx, func(account string) {
			d.mu.Lock()
			look := d.heard[account]
			d.mu.Unlock()
			if look != nil {
				look()
			}
		})
	})
}

func (d *database) close() {
	d.mu.Lock()
	end := d.end
	d.mu.Unlock()
	if end != nil {
		end()
		d.done.Wait()
	}
}

// row keeps a state in a row of a database. While that cannot be reached the state is that of this process alone.
type row struct {
	rows    Rows
	account string
	share   string    // of this process, as its limiter names it
	away    time.Time // until then the database is not asked
	own     memory    // what was read or written last
}

const (
	rowTime  = 2 * time.Second  // that a change may take
	awayTime = 10 * time.Second // for which a database that did not answer is left alone
)

func (r *row) update(change func(*state)) {
	if now := time.Now(); now.Before(r.away) {
		r.own.update(change)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), rowTime)
	defer cancel()
	done := false
	err := r.change(ctx, func(s *state) {
		done = true
		r.own.s = *s
		r.own.update(change)
		*s = r.own.s
	})
	if err != nil {
		r.away = time.Now().Add(awayTime)
		if !done {
			r.own.update(change)
		}
	}
}

// change reads, changes and writes the row.
func (r *row) change(ctx context.Context, change func(*state)) error {
	return r.rows.Change(ctx, r.account, func(doc, self string, living func(string) bool) (string, bool) {
		s := readState([]byte(doc), time.Now())
		s.bury(living)
		before := s.heldCalls()
		s.rename(self+r.share, r.share)
		change(&s)
		s.rename(r.share, self+r.share)
		data, err := json.Marshal(s)
		if err != nil { // it cannot be: what is read has bounds
			return doc, false
		}
		return string(data), s.heldCalls() < before
	})
}

// bury forgets the shares of processes that are no more.
func (s *state) bury(living func(string) bool) {
	for share := range s.Shares {
		if id, _, _ := strings.Cut(share, "#"); !living(id) {
			delete(s.Shares, share)
		}
	}
}

// rename gives a share another name.
func (s *state) rename(from, to string) {
	if p := s.Shares[from]; p != nil {
		delete(s.Shares, from)
		s.Shares[to] = p
	}
}

// list returns the states of all limits, by account.
func (d *database) list(ctx context.Context) (map[string]state, error) {
	docs, living, err := d.rows.All(ctx)
	all := make(map[string]state, len(docs))
	for account, doc := range docs {
		s := readState([]byte(doc), time.Now())
		s.bury(living)
		all[account] = s
	}
	return all, err
}
