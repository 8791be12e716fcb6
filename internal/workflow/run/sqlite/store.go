package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
	"loki/internal/base/process/identity"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/record"
)

// Durability says what a record survives once it is made.
type Durability string

// The durabilities.
const (
	// Process: the end of the process in any way. A power failure may cost the last
	// records, but never damages the file.
	Process Durability = "process"
	// Power: a power failure too. Every record waits for the disk.
	Power Durability = "power"
	// Off: the end of the process. A power failure may damage the file.
	Off Durability = "off"
)

func (d Durability) synchronous() string {
	switch d {
	case Power:
		return "FULL"
	case Off:
		return "OFF"
	}
	return "NORMAL"
}

// Options configure a store. The zero Options are usable.
type Options struct {
	Durability Durability        // empty means Process
	Now        func() time.Time  // nil means time.Now
	LeaseTime  time.Duration     // how long a lease lasts without a sign of life; 0 means 30 s
	Owner      *identity.Process // who takes leases; nil means this process
	// Live is a clock that goes while the system does and is never set: the same for
	// all processes of one Process.Boot. Nil means that of the system.
	Live func() time.Duration

	// Seal returns a text, JSON or not, as it is stored, such as without secrets, and Unseal
	// takes that back. Both are called from several goroutines; nil changes nothing.
	Seal, Unseal func(text string) string

	// EventDelay is the time after which events are written that no record has taken along; 0
	// means that they wait for the next record. Wrote is called after events of a run were written,
	// with its id: soon after, from several goroutines, while the journal waits. Nil means that
	// the writer's process does not need to know.
	EventDelay time.Duration
	Wrote      func(id string)

	// Hook is called before and after every write transaction, for tests that end
	// the process there. op names what is written: the first of the writes that share the
	// transaction. n counts the calls, from 1, so it is odd before a transaction and even
	// after it.
	Hook func(op string, n int)
}

// Store is a [run.Store] in an SQLite file.
type Store struct {
	record.Reads
	path string
	o    Options

	writing sync.Mutex // held during a write transaction; guards what follows
	writer  *conn      // nil until the file is opened for the first time
	pools   []*sql.DB  // of the writer and the readers
	hooked  int        // calls of Hook
	closed  bool
	usage   usage              // of the file
	yield   bool               // leave the file free before writing it
	version int64              // of the file, for which leased holds
	leased  map[int64]*journal // holders of leases as they were read, by run

	opened  atomic.Bool    // pools are complete
	readers chan *conn     // idle ones, nil for one that may be opened
	done    chan struct{}  // closed with the store
	leaving sync.WaitGroup // for the file, see leave

	groupMu sync.Mutex
	waiting *group // for writing; nil for none

	creating chan struct{} // has a token for each run that is being created, see Create

	mu       sync.Mutex
	journals map[*journal]struct{} // open ones
	pulse    *pulse                // of them
}

var (
	_ run.Store   = (*Store)(nil)
	_ run.Journal = (*journal)(nil)
)

// maxReaders is the number of reads at the same time.
const maxReaders = 4

// Open returns the store in the file at path. The file, and the directory it is in,
// is made when the first run is created; until then there are no runs.
func Open(path string, o Options) (*Store, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "the path of the record of runs")
	}
	switch o.Durability {
	case "":
		o.Durability = Process
	case Process, Power, Off:
	default:
		return nil, fault.New(fault.Config, "unknown durability %q", o.Durability).WithHint("use process, power or off")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Live == nil {
		o.Live = identity.LiveClock
	}
	if o.LeaseTime <= 0 {
		o.LeaseTime = 30 * time.Second
	}
	if o.Owner == nil {
		o.Owner = identity.Self()
	}
	s := &Store{
		path: abs, o: o, readers: make(chan *conn, maxReaders), done: make(chan struct{}),
		leased: make(map[int64]*journal), journals: make(map[*journal]struct{}),
		creating: make(chan struct{}, maxCreating),
	}
	s.Reads = record.NewReads(s.reads)
	for range maxReaders {
		s.readers <- nil
	}
	return s, nil
}

var (
	// errNoFile says that there is no file yet.
	errNoFile = errors.New("no runs were recorded yet")
	errClosed = errors.New("the record of runs is closed")
)

// ready opens the file if that was not done. Without create, a file that does not
// exist is errNoFile. The caller holds s.writing.
func (s *Store) ready(create bool) error {
	switch {
	case s.closed:
		return errClosed
	case s.writer != nil:
		return nil
	}
	if create {
		if err := createFile(s.path); err != nil {
			return err
		}
	} else if _, err := os.Stat(s.path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return errNoFile
		}
		return err
	}
	// The change to a log file, which the first process makes, does not wait for
	// others that are doing the same.
	deadline := time.Now().Add(busyFor)
	for {
		db, c, err := openWriter(s.path, s.o.Durability)
		if err == nil {
			s.pools, s.writer = append(s.pools, db), c
			break
		}
		if !busy(err) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
	db, err := connect(s.path, "query_only(1)")
	if err != nil {
		return err
	}
	s.pools = append(s.pools, db)
	s.opened.Store(true)
	s.adoptMarks()
	return nil
}

func (s *Store) hook(op string) {
	if s.o.Hook != nil {
		s.hooked++
		s.o.Hook(op, s.hooked)
	}
}

// view runs fn in a read transaction: all it reads is of the same moment.
func (s *Store) view(ctx context.Context, fn func(c *conn) error) error {
	if !s.opened.Load() {
		s.writing.Lock()
		err := s.ready(false)
		s.writing.Unlock()
		if err != nil {
			return s.explain(err)
		}
	}
	var c *conn
	var err error
	select {
	case c = <-s.readers:
	case <-s.done:
		return errClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { s.readers <- c }()
	if c == nil {
		if c, err = newConn(s.pools[1]); err != nil {
			return s.explain(err)
		}
	}
	return s.explain(c.transaction("BEGIN", func() error { return fn(c) }))
}

func (s *Store) explain(err error) error {
	if errors.Is(err, errNoFile) {
		return err
	}
	return explain(s.path, err)
}

// Close closes the journals that are open, and the file.
func (s *Store) Close() error {
	s.mu.Lock()
	var errs []error
	var open []*journal
	for j := range s.journals {
		open = append(open, j)
	}
	s.mu.Unlock()
	for _, j := range open {
		errs = append(errs, j.Close())
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	close(s.done)
	s.writing.Unlock()
	s.leaving.Wait()
	s.writing.Lock()
	for range maxReaders { // waits for reads under way
		if c := <-s.readers; c != nil {
			errs = append(errs, c.close())
		}
	}
	if s.writer != nil {
		errs = append(errs, s.writer.close())
	}
	for _, db := range s.pools {
		errs = append(errs, db.Close())
	}
	return s.explain(errors.Join(errs...))
}

// moment returns the time that n is on record as.
func moment(n int64) time.Time { return time.Unix(0, n).UTC() }

// Probe reports why runs could not be recorded now, nil if they could.
func (s *Store) Probe(context.Context) error {
	if err := atomicfile.Probe(filepath.Dir(s.path)); err != nil {
		return err
	}
	return s.write("probe", true, func(*conn) error { return nil })
}
