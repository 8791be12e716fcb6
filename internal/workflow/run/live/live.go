// Package live shows a run to another process of the same user while it is at work.
//
// The record of a run has its events, but not the pieces of replies. The process at work passes all events to those who
// connect to a Unix socket with the id of the run as its name, DIR/ID.sock, which only the user can open, beginning with the last ones: some of
// these are not written yet. A watcher reads the record up to the present and then listens. Where there is no socket, or it is lost, the watcher looks at the record again and again: it misses pieces
// then, and nothing else.
//
// What goes over the socket is a line of JSON for each event, a [frame].
package live

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"iter"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"loki/internal/base/file/atomicfile"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
)

const (
	lookEvery = 200 * time.Millisecond // how often the record is looked at
	recent    = 4096                   // events that a new watcher gets
	queued    = recent + 1024          // frames that a slow watcher may be behind; then it has to read the record again
	maxFrame  = 64 << 20               // bytes of an event
)

// frame is an event on the wire.
type frame struct {
	Number int             `json:"number,omitempty"` // of an event on record; 0 for a piece
	Event  json.RawMessage `json:"event"`
}

// Share lets processes of the user watch the run called id, until the returned end is called. The emitter, to which all events of the run go
// after they have their numbers, never waits for a watcher and returns no error. Without a socket, such as where its path is too long, no
// process can.
func Share(dir, id string) (sink event.Emitter, end func()) {
	path := filepath.Join(dir, id+".sock")
	if os.MkdirAll(dir, 0o700) != nil {
		return nil, func() {}
	}
	if _, swept := sweptDirs.LoadOrStore(dir, true); !swept {
		sweep(dir)
	}
	_ = os.Remove(path) // of a process that was killed; only one at a time is at work on a run
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, func() {}
	}
	_ = os.Chmod(path, 0o600) // the directory is the user's own, too
	s := &share{watchers: make(map[*watcher]bool)}
	s.working.Go(func() { s.accept(l) }) // ends with the listener
	return event.Func(s.emit), func() {
		_ = l.Close() // removes the socket
		s.mu.Lock()
		s.over = true
		for w := range s.watchers {
			close(w.frames)
		}
		clear(s.watchers)
		s.mu.Unlock()
		s.working.Wait()
	}
}

// sweptDirs are the directories from which this process has removed what killed processes left.
var sweptDirs sync.Map

// youth is how long a socket is left alone: the process that has just made it may not listen yet.
const youth = time.Minute

// sweep removes the sockets at which no process listens.
func sweep(dir string) {
	for _, path := range atomicfile.Glob(dir, "*.sock") {
		if info, err := os.Lstat(path); err != nil || info.Mode().Type() != fs.ModeSocket || time.Since(info.ModTime()) < youth {
			continue
		}
		conn, err := net.DialTimeout("unix", path, time.Second)
		if err == nil {
			_ = conn.Close()
		}
		removeDead(path, err)
	}
}

// removeDead removes a socket if err, of a connection to it, says that no process listens.
func removeDead(path string, err error) {
	if errors.Is(err, syscall.ECONNREFUSED) {
		_ = os.Remove(path)
	}
}

// share is a run that is shared.
type share struct {
	mu       sync.Mutex
	watchers map[*watcher]bool
	events   []event.Event // the last ones, at least recent of them if there were so many
	over     bool

	working sync.WaitGroup
}

// watcher is a process that watches.
type watcher struct{ frames chan frame }

// accept takes connections.
func (s *share) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		w := &watcher{make(chan frame, queued)}
		s.mu.Lock()
		if s.over {
			_ = conn.Close()
		} else {
			for _, ev := range s.last() {
				w.pass(ev)
			}
			s.watchers[w] = true
			s.working.Go(func() { w.send(conn) }) // ends with frames, which is closed with the share
		}
		s.mu.Unlock()
	}
}

// send writes frames until there will be none.
func (w *watcher) send(conn net.Conn) {
	defer conn.Close()
	lines := json.NewEncoder(conn)
	failed := false
	for f := range w.frames {
		if failed { // until the watcher is taken for a slow one, or the run ends
			continue
		}
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
		failed = lines.Encode(f) != nil
	}
}

// emit passes an event to all who watch.
func (s *share) emit(_ context.Context, ev event.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.events) >= 2*recent {
		s.events = slices.Clone(s.last())
	}
	s.events = append(s.events, ev)
	for w := range s.watchers {
		if !w.pass(ev) {
			close(w.frames)
			delete(s.watchers, w)
		}
	}
	return nil
}

// last returns the events that a new watcher gets. The caller holds s.mu.
func (s *share) last() []event.Event { return s.events[max(0, len(s.events)-recent):] }

// pass has an event sent, and reports whether there was room for it. What cannot be encoded is left out: the record has its own.
func (w *watcher) pass(ev event.Event) bool {
	data, err := ev.MarshalJSON()
	if err != nil {
		return true
	}
	select {
	case w.frames <- frame{ev.Number, data}:
		return true
	default:
		return false
	}
}

// Watched is what a watcher gets: an event, or that it has seen everything up to now.
type Watched struct {
	Event event.Event
	Now   bool // there is no event: all that is on record was seen
}

// Watch returns the events of the run called id, from the first one on, and what follows as long as the run is at work. Whenever it has seen
// all, at least every 200 ms, it says so. It ends once the run rests. Events of types that this program does not know are left out. The error is
// that of the store or of ctx.
func Watch(ctx context.Context, store run.Store, dir, id string) iter.Seq2[Watched, error] {
	return func(yield func(Watched, error) bool) {
		w := &watching{store: store, id: id, path: filepath.Join(dir, id+".sock"), yield: yield}
		defer w.hangUp()
		if err := w.watch(ctx); err != nil && !errors.Is(err, errStopped) {
			yield(Watched{}, err)
		}
	}
}

// errStopped says that the caller wants no more events.
var errStopped = errors.New("stopped")

// watching is how far a watcher has come.
type watching struct {
	store  run.Store
	id     string
	path   string
	yield  func(Watched, error) bool
	number int // of the last event

	conn   net.Conn // nil without a connection
	frames chan frame
	reads  sync.WaitGroup
}

func (w *watching) watch(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		info, err := w.store.Info(ctx, w.id) // before the events, so that none comes after the last look
		if err != nil {
			return err
		}
		if w.conn == nil && info.Active {
			w.dial(ctx)
		}
		if err := w.record(ctx); err != nil {
			return err
		}
		if !info.Active && !info.Queued {
			return nil
		}
		if !w.yield(Watched{Now: true}, nil) {
			return errStopped
		}
		for waits := true; waits; {
			select {
			case f, ok := <-w.frames:
				if waits = ok && (f.Number == 0 || f.Number <= w.number+1); !waits { // what is between is on record
					if !ok {
						w.hangUp()
					}
					break
				}
				if err := w.show(f); err != nil {
					return err
				}
			case <-tick.C:
				waits = false
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}

// record shows the events on record that were not seen.
func (w *watching) record(ctx context.Context) error {
	const page = 256
	for {
		events, err := w.store.Events(ctx, w.id, w.number, page)
		if err != nil {
			return err
		}
		for _, ev := range events {
			if err := w.show(frame{ev.Number, ev.JSON}); err != nil {
				return err
			}
		}
		if len(events) < page {
			return nil
		}
	}
}

// show passes an event on, once.
func (w *watching) show(f frame) error {
	if f.Number > 0 && f.Number <= w.number {
		return nil
	}
	w.number = max(w.number, f.Number)
	ev, err := event.Parse(f.Event)
	if errors.Is(err, event.ErrUnknownType) {
		return nil
	}
	if err != nil {
		return err
	}
	if ev.Number = f.Number; !w.yield(Watched{Event: ev}, nil) {
		return errStopped
	}
	return nil
}

// dial connects to the process at work, if it shares the run. A socket at which no process listens is removed.
func (w *watching) dial(ctx context.Context) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", w.path)
	if err != nil {
		removeDead(w.path, err)
		return
	}
	w.conn, w.frames = conn, make(chan frame, queued)
	w.reads.Go(func() { // ends with the connection
		defer close(w.frames)
		lines := bufio.NewScanner(conn)
		lines.Buffer(nil, maxFrame)
		for lines.Scan() {
			var f frame
			if json.Unmarshal(lines.Bytes(), &f) != nil {
				return
			}
			select {
			case w.frames <- f:
			default:
				return // the record has what matters
			}
		}
	})
}

// hangUp ends the connection.
func (w *watching) hangUp() {
	if w.conn != nil {
		_ = w.conn.Close()
		w.reads.Wait()
	}
	w.conn, w.frames = nil, nil
}
