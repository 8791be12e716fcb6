package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/value/yamldoc"
)

// PoolConfig is the setting mcp_pool. The zero value closes a connection as soon as it is
// idle.
type PoolConfig struct {
	// IdleTimeout is how long an idle connection is kept, unless its server has a
	// timeout of its own. 0 closes it at once.
	IdleTimeout    time.Duration
	HasIdleTimeout bool // the setting says so; of use to those with a default of their own
	// CleanupInterval is how often idle connections are checked; 0 means 30 s. A
	// connection lives for up to its timeout plus this interval.
	CleanupInterval time.Duration
	// MaxIdle is the maximum number of idle connections; 0 means 50, a negative number
	// no limit.
	MaxIdle int
	Health  *HealthCheck // nil: no checks
}

// HealthCheck says how idle connections are checked.
type HealthCheck struct {
	Interval  time.Duration // between two checks of one connection; 0 means 60 s
	Timeout   time.Duration // for the answer; 0 means 5 s
	OnFailure HealthAction  // empty means EvictAndLog
}

// HealthAction is the treatment of a connection that failed a check.
type HealthAction string

// The actions, as the configuration spells them.
const (
	Evict       HealthAction = "Evict"
	EvictAndLog HealthAction = "EvictAndLog"
	LogOnly     HealthAction = "LogOnly"
)

// ReadPool reads the setting mcp_pool; a nil m is the zero value. Mistakes are reported to
// the document of m.
func ReadPool(m *yamldoc.Map) (c PoolConfig) {
	c.HasIdleTimeout = m.Get("idle_timeout_seconds") != nil
	m.Seconds("idle_timeout_seconds", &c.IdleTimeout)
	m.Seconds("cleanup_interval_seconds", &c.CleanupInterval)
	m.Uint("max_idle_servers", &c.MaxIdle)
	if n := m.Get("max_idle_servers"); n != nil && n.Kind() == yamldoc.Null {
		c.MaxIdle = -1
	}
	if health := m.Map("health_check"); health != nil {
		c.Health = new(HealthCheck)
		health.Seconds("interval_seconds", &c.Health.Interval)
		health.Seconds("timeout_seconds", &c.Health.Timeout)
		var action string
		if health.Str("on_failure", &action) {
			c.Health.OnFailure = HealthAction(action)
			switch c.Health.OnFailure {
			case Evict, EvictAndLog, LogOnly:
			default:
				health.Get("on_failure").Errorf("%q is not %s, %s or %s", action, Evict, EvictAndLog, LogOnly)
			}
		}
		health.Done()
	}
	m.Done()
	return c
}

func (c PoolConfig) withDefaults() PoolConfig {
	c.CleanupInterval = cmp.Or(c.CleanupInterval, 30*time.Second)
	c.MaxIdle = cmp.Or(c.MaxIdle, 50)
	if c.Health != nil {
		h := *c.Health
		h.Interval = cmp.Or(h.Interval, time.Minute)
		h.Timeout = cmp.Or(h.Timeout, 5*time.Second)
		h.OnFailure = cmp.Or(h.OnFailure, EvictAndLog)
		c.Health = &h
	}
	return c
}

// ErrShutdown reports that a pool was shut down.
var ErrShutdown = errors.New("the MCP servers have been shut down")

// link is the part of a connection that a pool needs.
type link interface {
	alive() bool
	close(grace time.Duration)
	check(ctx context.Context) error
	describe() Status
}

// key identifies servers that can share a connection: those with the same settings,
// including secrets. It is a hash, so that no secret is kept.
type key [sha256.Size]byte

func keyOf(r resolved) key {
	text, err := json.Marshal([]any{r.ID, r.Type, r.Command, r.Args, r.Env, r.Dir, r.URL, r.Headers})
	if err != nil {
		panic(err) // only strings are in it
	}
	return sha256.Sum256(text)
}

// Pool keeps the connections of a process. Its methods may be called from several
// goroutines. It starts no server before the first Acquire, and no goroutine before a
// connection is idle.
type Pool struct {
	opts    Options
	ownHTTP bool // opts.HTTP belongs to this pool alone
	dial    func(ctx context.Context, r resolved) (link, error)

	mu       sync.Mutex
	entries  map[key]*entry // the ones that can be acquired
	others   map[*entry]bool
	starting map[key]*start  // the ones that others can wait for
	begun    map[*start]bool // all of them
	metrics  Metrics
	phase    phase
	changed  chan struct{} // closed and replaced when a connection is released or gone, or made

	reaping  bool
	reapStop context.CancelFunc
	work     sync.WaitGroup // every goroutine of the pool
}

// phase is the progress of the shutdown.
type phase int

const (
	open    phase = iota
	closing       // nothing becomes idle any more
	shut          // nothing can be acquired any more
)

// entry is a connection of the pool. Its fields are guarded by the pool's mutex.
type entry struct {
	key     key
	server  Server
	link    link
	users   int
	timeout time.Duration // when idle

	idleSince time.Time // if users is 0
	checked   time.Time // last health check
}

// start is a connection that is being made.
type start struct {
	waiting int
	cancel  context.CancelFunc
	done    chan struct{} // closed when entry or err is set
	entry   *entry
	err     error
}

// NewPool returns a pool without connections.
func NewPool(o Options) *Pool {
	ownHTTP := o.HTTP == nil
	o = o.withDefaults()
	p := &Pool{
		ownHTTP:  ownHTTP,
		opts:     o,
		entries:  make(map[key]*entry),
		others:   make(map[*entry]bool),
		starting: make(map[key]*start),
		begun:    make(map[*start]bool),
		changed:  make(chan struct{}),
	}
	p.dial = func(ctx context.Context, r resolved) (link, error) { return dial(ctx, r, &p.opts) }
	return p
}

// Handle is the right to use a connection, until Release.
type Handle struct {
	pool  *Pool
	entry *entry
	once  sync.Once
}

// Acquire returns a connection to s: one in use, an idle one, or a new one. Callers that
// ask while it is being made wait for the same one. It is closed if all of them give up.
// The caller has to release the handle.
func (p *Pool) Acquire(ctx context.Context, s Server) (*Handle, error) {
	if s.Err != nil {
		return nil, s.Err
	}
	r, err := s.resolve(&p.opts)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	h, err := p.acquire(ctx, r)
	if err == nil && p.opts.Acquired != nil {
		p.opts.Acquired(time.Since(begun))
	}
	return h, err
}

// admit returns an error if the program of s takes code from the workspace and may not.
func (p *Pool) admit(ctx context.Context, asker ask.Asker, s Server) error {
	if s.Type != Stdio || s.Err != nil || s.Sandbox.Level == sandbox.Read {
		return nil
	}
	r, err := s.resolve(&p.opts)
	if err != nil {
		return err
	}
	at, err := r.place(&p.opts)
	switch {
	case err != nil || len(at.code) == 0:
		return err
	case p.opts.Admit == nil:
		return fault.New(fault.Config, "MCP server %q takes code from the working directory (%s)", s.ID, at.code[0].Entry)
	}
	return p.opts.Admit(ctx, asker, s, at.code)
}

// connected reports whether there is a connection to s that works.
func (p *Pool) connected(s Server) bool {
	if s.Err != nil {
		return false
	}
	r, err := s.resolve(&p.opts)
	if err != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[keyOf(r)]
	return e != nil && e.link.alive()
}

func (p *Pool) acquire(ctx context.Context, r resolved) (*Handle, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	k := keyOf(r)
	p.mu.Lock()
	if p.phase == shut {
		p.mu.Unlock()
		return nil, ErrShutdown
	}
	if e := p.entries[k]; e != nil {
		if e.link.alive() {
			if e.users == 0 {
				p.metrics.IdleHits++
			} else {
				p.metrics.ActiveHits++
			}
			e.users++
			p.mu.Unlock()
			return &Handle{pool: p, entry: e}, nil
		}
		p.remove(e)
	}
	st := p.starting[k]
	if st == nil {
		p.metrics.Misses++
		st = p.begin(ctx, k, r)
	} else {
		p.metrics.ActiveHits++
	}
	st.waiting++
	p.mu.Unlock()
	return p.await(ctx, st, r.ID)
}

// begin starts making a connection. p.mu is held.
func (p *Pool) begin(ctx context.Context, k key, r resolved) *start {
	// Other callers may wait for it too, so the end of this ctx must not end it.
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	st := &start{cancel: cancel, done: make(chan struct{})}
	p.starting[k] = st
	p.begun[st] = true
	p.work.Go(func() {
		defer cancel()
		l, err := p.dialSafely(own, r)
		p.mu.Lock()
		defer p.mu.Unlock()
		defer p.signal()
		defer close(st.done)
		delete(p.begun, st)
		current := p.starting[k] == st
		if current {
			delete(p.starting, k)
		}
		if err == nil && p.phase == shut {
			l.close(0)
			err = ErrShutdown
		}
		if err != nil {
			st.err = err
			return
		}
		p.metrics.Started++
		e := &entry{key: k, server: r.Server, link: l, users: st.waiting, timeout: p.timeout(r.Server)}
		st.entry = e
		if current && p.entries[k] == nil {
			p.entries[k] = e
		} else {
			p.others[e] = true
		}
		if e.users == 0 {
			p.retire(e)
		}
	})
	return st
}

// dialSafely turns a panic into an error, since other callers wait for the
// outcome.
func (p *Pool) dialSafely(ctx context.Context, r resolved) (l link, err error) {
	defer func() {
		if v := recover(); v != nil {
			l, err = nil, fmt.Errorf("MCP server %q: internal error: %v", r.ID, v)
		}
	}()
	return p.dial(ctx, r)
}

// await waits for a connection that is being made.
func (p *Pool) await(ctx context.Context, st *start, id string) (*Handle, error) {
	select {
	case <-st.done:
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		select {
		case <-st.done: // it finished at the same moment
			if st.err == nil {
				p.release(st.entry)
			}
		default:
			if st.waiting--; st.waiting == 0 {
				st.cancel()
				for k, other := range p.starting {
					if other == st {
						delete(p.starting, k) // the next caller starts a new one
					}
				}
			}
		}
		return nil, fmt.Errorf("MCP server %q: %w", id, context.Cause(ctx))
	}
	if st.err != nil {
		return nil, st.err
	}
	return &Handle{pool: p, entry: st.entry}, nil
}

func (p *Pool) timeout(s Server) time.Duration {
	if s.HasIdleTimeout {
		return s.IdleTimeout
	}
	return p.opts.Pool.IdleTimeout
}

// Release gives the connection back. Further calls do nothing.
func (h *Handle) Release() {
	h.once.Do(func() {
		h.pool.mu.Lock()
		defer h.pool.mu.Unlock()
		h.pool.release(h.entry)
	})
}

// release takes one user off. p.mu is held.
func (p *Pool) release(e *entry) {
	if e.users--; e.users == 0 {
		p.retire(e)
	}
	p.signal()
}

// signal wakes the callers that wait for a change. p.mu is held.
func (p *Pool) signal() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// retire makes a connection without users idle, or closes it. p.mu is held.
func (p *Pool) retire(e *entry) {
	if p.phase == shut {
		return // Shutdown closes it
	}
	if p.entries[e.key] != e || e.timeout <= 0 || p.phase != open || !e.link.alive() {
		p.drop(e, p.opts.StopGrace)
		return
	}
	e.idleSince = time.Now()
	p.reap()
}

// remove removes a connection from the ones that can be acquired. p.mu is held.
func (p *Pool) remove(e *entry) {
	if p.entries[e.key] != e {
		return
	}
	delete(p.entries, e.key)
	if e.users == 0 {
		p.drop(e, 0)
	} else {
		p.others[e] = true
	}
}

// drop closes a connection without users, in a goroutine of its own. p.mu is held.
func (p *Pool) drop(e *entry, grace time.Duration) {
	if p.entries[e.key] == e {
		delete(p.entries, e.key)
	}
	p.others[e] = true
	p.work.Go(func() {
		e.link.close(grace)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.others, e)
		p.signal()
	})
}

// Flush closes the idle connections, and those in use when their last user is done. From
// now on Acquire makes new connections. It is for changes that servers notice only at
// their start, such as that of a password.
func (p *Pool) Flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range slices.Collect(maps.Values(p.entries)) {
		if e.users == 0 {
			p.drop(e, p.opts.StopGrace)
		} else {
			p.remove(e)
		}
	}
	// A connection that is being made began with the old state. Only the callers that wait for it get it.
	clear(p.starting)
}

// Status returns the connections, by server.
func (p *Pool) Status() []Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []Status
	for _, e := range append(p.idle(), p.inUse()...) {
		s := e.link.describe()
		s.Server, s.Type, s.Users, s.Stale = e.server.ID, e.server.Type, e.users, p.others[e]
		if e.users == 0 {
			s.IdleSince = e.idleSince
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b Status) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.PID, b.PID))
	})
	return list
}

// Shutdown is [Pool.Retire] with a limit.
func (p *Pool) Shutdown(grace time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	return p.Retire(ctx)
}

// Retire closes the idle connections, waits for those in use to be released until ctx ends,
// closes the rest, and returns when no connection, program or goroutine is left. Until
// it has waited Acquire works; then its error is [ErrShutdown]. The error of Retire, with
// code Limit, reports connections that were closed while in use.
func (p *Pool) Retire(ctx context.Context) error {
	p.mu.Lock()
	p.phase = max(p.phase, closing)
	if p.reapStop != nil {
		p.reapStop()
	}
	for _, e := range slices.Collect(maps.Values(p.entries)) {
		if e.users == 0 {
			p.drop(e, p.opts.StopGrace)
		}
	}
	p.mu.Unlock()
	begun := time.Now()
	p.drain(ctx)

	p.mu.Lock()
	p.phase = shut
	for st := range p.begun {
		st.cancel()
	}
	cut := p.inUse()
	for _, e := range cut {
		p.drop(e, 0) // its users' Release will find it closed
	}
	p.mu.Unlock()
	p.work.Wait()
	if t, ok := p.opts.HTTP.(interface{ CloseIdleConnections() }); ok && p.ownHTTP {
		t.CloseIdleConnections()
	}
	if len(cut) == 0 {
		return nil
	}
	return fault.New(fault.Limit, "%d MCP servers were still in use after %v and have been stopped", len(cut), time.Since(begun).Round(time.Millisecond))
}

func (p *Pool) inUse() []*entry {
	all := slices.AppendSeq(slices.Collect(maps.Values(p.entries)), maps.Keys(p.others))
	return slices.DeleteFunc(all, func(e *entry) bool { return e.users == 0 })
}

// drain waits until nothing is in use or being made, or ctx ends.
func (p *Pool) drain(ctx context.Context) {
	for {
		p.mu.Lock()
		busy, changed := len(p.inUse()) > 0 || len(p.begun) > 0, p.changed
		p.mu.Unlock()
		if !busy {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
