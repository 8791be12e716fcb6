package postgres

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"loki/internal/base/fault/retry"
)

// channel is the one that all news go through. A payload is a topic and the names of what changed, with a
// space before each. An empty name is anything.
const channel = "loki"

const (
	newsDelay = 10 * time.Millisecond // in which news are collected
	newsRetry = time.Second           // after a failure
	newsSize  = 7900                  // bytes of a payload; PostgreSQL takes less than 8000
	mostNews  = 10_000                // names that wait; from then on, anything may have changed
)

// news collects what others are to hear of. A notification makes commits wait for each other, so that many writes
// share one that has a transaction of its own.
type news struct {
	db *DB

	mu      sync.Mutex
	waiting map[string]map[string]bool // names by topic; an empty name for anything
	closed  bool
	ring    chan struct{} // has an element once something waits
	running sync.WaitGroup
	started bool
	ctx     context.Context
	end     context.CancelFunc
}

func (n *news) init(db *DB) {
	n.db, n.waiting, n.ring = db, make(map[string]map[string]bool), make(chan struct{}, 1)
	n.ctx, n.end = context.WithCancel(context.Background())
}

// Notify has those who listen to a topic hear of a name, soon, in whichever process they are. Both are words
// without spaces, together less than 1,000 bytes long. It does not wait, and is called after the write was
// committed. If the process dies before that, no listener hears of it: one that must not miss a name also looks from time to time.
func (db *DB) Notify(topic, name string) {
	n := &db.news
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	names := n.waiting[topic]
	if names == nil {
		names = make(map[string]bool)
		n.waiting[topic] = names
	}
	if len(names) >= mostNews {
		clear(names)
		name = ""
	}
	names[name] = true
	if !n.started {
		n.started = true
		n.running.Add(1)
		go n.run()
	}
	select {
	case n.ring <- struct{}{}:
	default: // it is about to
	}
}

// run sends news until the database is closed.
func (n *news) run() {
	defer n.running.Done()
	for {
		select {
		case <-n.ring:
		case <-n.ctx.Done():
			return
		}
		if retry.Sleep(n.ctx, newsDelay) != nil {
			return
		}
		for n.send(n.ctx) != nil {
			if retry.Sleep(n.ctx, newsRetry) != nil {
				return
			}
		}
	}
}

// send sends the news that wait. What could not be sent waits on.
func (n *news) send(ctx context.Context) error {
	n.mu.Lock()
	sent := n.waiting
	n.waiting = make(map[string]map[string]bool)
	n.mu.Unlock()
	batch := &pgx.Batch{}
	for topic, names := range sent {
		for _, payload := range payloads(topic, names) {
			batch.Queue(`SELECT pg_notify($1, $2)`, channel, payload)
		}
	}
	if batch.Len() == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err := n.db.pool.SendBatch(ctx, batch).Close()
	if err != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		for topic, names := range sent {
			for name := range n.waiting[topic] {
				names[name] = true
			}
			n.waiting[topic] = names
		}
	}
	return err
}

// payloads returns names as they are sent.
func payloads(topic string, names map[string]bool) []string {
	if names[""] {
		return []string{topic + " "}
	}
	var all []string
	var b strings.Builder
	for name := range names {
		if b.Len()+1+len(name) > newsSize {
			all = append(all, b.String())
			b.Reset()
		}
		if b.Len() == 0 {
			b.WriteString(topic)
		}
		b.WriteString(" " + name)
	}
	return append(all, b.String())
}

// close sends what waits.
func (n *news) close() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.end()
	n.running.Wait()
	_ = n.send(context.Background())
}

// hearing is the connection that listens, from the first call of Listen on.
type hearing struct {
	db      *DB
	ctx     context.Context
	end     context.CancelFunc
	running sync.WaitGroup

	mu        sync.Mutex
	listeners map[*listener]bool
	started   bool
	connected bool // so that nothing is missed
}

func (h *hearing) init(db *DB) {
	h.db, h.listeners = db, make(map[*listener]bool)
	h.ctx, h.end = context.WithCancel(context.Background())
}

// listener is a call of Listen.
type listener struct {
	topic string
	ring  chan struct{} // has an element once there are names

	mu    sync.Mutex
	names map[string]bool // to call for
}

// Listen calls heard with each name that is notified under a topic, in this process or another one, one at a
// time. A name that is notified often meanwhile is one call. An empty name says that anything may have
// changed: that is the first call, once the database is reached, and one after each time that the connection
// was lost. It returns when ctx ends, with its error, or when the database is closed.
func (db *DB) Listen(ctx context.Context, topic string, heard func(name string)) error {
	h := &db.hear
	l := &listener{topic: topic, ring: make(chan struct{}, 1), names: make(map[string]bool)}
	h.add(l)
	defer h.remove(l)
	for {
		select {
		case <-l.ring:
		case <-ctx.Done():
			return ctx.Err()
		case <-h.ctx.Done():
			return errClosed
		}
		l.mu.Lock()
		names := l.names
		l.names = make(map[string]bool)
		l.mu.Unlock()
		if names[""] {
			names = map[string]bool{"": true}
		}
		for name := range names {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			heard(name)
		}
	}
}

func (h *hearing) add(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners[l] = true
	if h.connected {
		l.add("")
	}
	if !h.started && h.ctx.Err() == nil {
		h.started = true
		h.running.Add(1)
		go h.run()
	}
}

func (h *hearing) remove(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.listeners, l)
}

// add adds a name to the ones that l calls for.
func (l *listener) add(name string) {
	l.mu.Lock()
	if len(l.names) >= mostNews {
		clear(l.names)
		name = ""
	}
	l.names[name] = true
	l.mu.Unlock()
	select {
	case l.ring <- struct{}{}:
	default: // it is about to look
	}
}

// tell has the listeners of a topic, or all for an empty one, call for a name.
func (h *hearing) tell(topic, name string) {
	for l := range h.listeners {
		if topic == "" || l.topic == topic {
			l.add(name)
		}
	}
}

// run connects until the database is closed.
func (h *hearing) run() {
	defer h.running.Done()
	const first, most = 100 * time.Millisecond, 2 * time.Second
	for wait := first; h.ctx.Err() == nil; {
		conn, err := h.db.connect(h.ctx)
		if err == nil {
			if err = h.listen(conn); err == nil {
				wait = first
			}
			hangUp(conn)
		}
		if retry.Sleep(h.ctx, wait) != nil {
			return
		}
		wait = min(2*wait, most)
	}
}

// quiet is how long the connection may be silent before it is looked at.
const quiet = 30 * time.Second

// listen hands on what a connection hears until that is lost. The error is that of the beginning.
func (h *hearing) listen(conn *pgx.Conn) error {
	if _, err := conn.Exec(h.ctx, "LISTEN "+channel); err != nil {
		return err
	}
	h.mu.Lock()
	h.connected = true
	h.tell("", "")
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		h.connected = false
		h.mu.Unlock()
	}()
	for {
		ctx, cancel := context.WithTimeout(h.ctx, quiet)
		got, err := conn.WaitForNotification(ctx)
		cancel()
		if err != nil && ctx.Err() != nil && h.ctx.Err() == nil {
			ctx, cancel := context.WithTimeout(h.ctx, quiet/6)
			err = conn.Ping(ctx)
			cancel()
		}
		if err != nil {
			return nil
		}
		if got == nil {
			continue
		}
		topic, names, _ := strings.Cut(got.Payload, " ")
		h.mu.Lock()
		for name := range strings.SplitSeq(names, " ") {
			h.tell(topic, name)
		}
		h.mu.Unlock()
	}
}

// close ends the connection and the calls of Listen.
func (h *hearing) close() {
	h.mu.Lock()
	h.end()
	h.mu.Unlock()
	h.running.Wait()
}
