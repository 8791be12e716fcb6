package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/base/ask"
)

// fakeLink is a connection with nothing.
type fakeLink struct {
	id     string
	dead   atomic.Bool
	closed atomic.Int32
	grace  atomic.Int64
	sick   atomic.Bool
	checks atomic.Int32
}

func (f *fakeLink) alive() bool { return !f.dead.Load() }

func (f *fakeLink) close(grace time.Duration) {
	f.closed.Add(1)
	f.grace.Store(int64(grace))
	f.dead.Store(true)
}

func (f *fakeLink) check(ctx context.Context) error {
	f.checks.Add(1)
	if f.sick.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (f *fakeLink) describe() Status { return Status{} }

// dialer makes fake links.
type dialer struct {
	mu    sync.Mutex
	links []*fakeLink
	took  time.Duration
	err   error
}

func (d *dialer) dial(ctx context.Context, r resolved) (link, error) {
	select {
	case <-time.After(d.took):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return nil, d.err
	}
	l := &fakeLink{id: r.ID}
	d.links = append(d.links, l)
	return l, nil
}

func (d *dialer) made() []*fakeLink {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.links)
}

func fakePool(c PoolConfig) (*Pool, *dialer) {
	p, d := NewPool(Options{Pool: c}), &dialer{took: time.Second}
	p.dial = d.dial
	return p, d
}

func named(id string) Server { return Server{ID: id, Type: Stdio, Command: id} }

func mustAcquire(t *testing.T, p *Pool, s Server) *Handle {
	t.Helper()
	h, err := p.Acquire(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func closedLinks(d *dialer) (ids []string) {
	for _, l := range d.made() {
		if l.closed.Load() > 0 {
			ids = append(ids, l.id)
		}
	}
	return ids
}

func TestAcquireShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d := fakePool(served())
		defer p.Shutdown(0)
		a := mustAcquire(t, p, named("a"))
		b := mustAcquire(t, p, named("a"))
		if a.entry != b.entry {
			t.Error("not shared while in use")
		}
		a.Release()
		a.Release() // counts once
		if closedLinks(d) != nil || p.Status()[0].Users != 1 {
			t.Error("closed while in use")
		}
		b.Release()
		c := mustAcquire(t, p, named("a"))
		defer c.Release()
		if c.entry != a.entry {
			t.Error("the idle connection was not used")
		}
		want := Metrics{Started: 1, ActiveHits: 1, IdleHits: 1, Misses: 1}
		if got := p.Metrics(); got != want || got.HitRate() != 2.0/3 {
			t.Errorf("metrics %+v, rate %v", got, got.HitRate())
		}
	})
}

func TestKeysTellServersApart(t *testing.T) {
	base := func() Server {
		return Server{ID: "a", Type: Stdio, Command: "c", Args: []string{"1", "2"}, Env: map[string]string{"K": "v"}}
	}
	for name, change := range map[string]func(*Server){
		"id":      func(s *Server) { s.ID = "b" },
		"type":    func(s *Server) { s.Type = HTTP },
		"command": func(s *Server) { s.Command = "d" },
		"order":   func(s *Server) { s.Args = []string{"2", "1"} },
		"env":     func(s *Server) { s.Env = map[string]string{"K": "w"} },
		"dir":     func(s *Server) { s.Dir = "/" },
		"url":     func(s *Server) { s.URL = "u" },
		"headers": func(s *Server) { s.Headers = map[string]string{"H": ""} },
	} {
		s := base()
		change(&s)
		if keyOf(resolved{Server: s}) == keyOf(resolved{Server: base()}) {
			t.Errorf("%s is not part of the key", name)
		}
	}
	s := base()
	s.Timeout, s.Expose = time.Hour, Direct
	if keyOf(resolved{Server: s}) != keyOf(resolved{Server: base()}) {
		t.Error("what concerns us only is part of the key")
	}
}

func TestSimultaneousAcquiresStartOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d := fakePool(PoolConfig{})
		defer p.Shutdown(0)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				h, err := p.Acquire(t.Context(), named("a"))
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Second)
				h.Release()
			})
		}
		wg.Wait()
		synctest.Wait()
		if n := len(d.made()); n != 1 {
			t.Errorf("%d started", n)
		}
		if got := closedLinks(d); len(got) != 1 {
			t.Errorf("closed: %v", got)
		}
	})
}

func TestWaitersGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d := fakePool(served())
		defer p.Shutdown(0)
		first, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		go func() {
			if _, err := p.Acquire(first, named("a")); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("first: %v", err)
			}
		}()
		synctest.Wait()
		h := mustAcquire(t, p, named("a")) // the end of the first must not end it
		h.Release()

		alone, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if _, err := p.Acquire(alone, named("b")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("alone: %v", err)
		}
		time.Sleep(2 * time.Second)
		if n := len(d.made()); n != 1 {
			t.Errorf("%d were made, though nobody waited for the second", n)
		}
	})
}

func TestFailedStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d := fakePool(served())
		defer p.Shutdown(0)
		d.err = errors.New("no such program")
		if _, err := p.Acquire(t.Context(), named("a")); !errors.Is(err, d.err) {
			t.Errorf("got %v", err)
		}
		d.err = nil
		mustAcquire(t, p, named("a")).Release() // the failure is not remembered
		p.dial = func(context.Context, resolved) (link, error) { panic("bug") }
		if _, err := p.Acquire(t.Context(), named("b")); err == nil {
			t.Error("a panic went unnoticed")
		}
		broken := named("c")
		broken.Err = errors.New("wrong entry")
		if _, err := p.Acquire(t.Context(), broken); !errors.Is(err, broken.Err) {
			t.Errorf("got %v", err)
		}
	})
}

func TestDeadIsNotHandedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d := fakePool(served())
		defer p.Shutdown(0)
		a := mustAcquire(t, p, named("a"))
		d.made()[0].dead.Store(true)
		b := mustAcquire(t, p, named("a"))
		if a.entry == b.entry {
			t.Error("shared a dead one in use")
		}
		a.Release()
		b.Release()
		d.made()[1].dead.Store(true)
		mustAcquire(t, p, named("a")).Release()
		if n := len(d.made()); n != 3 {
			t.Errorf("%d made", n)
		}
	})
}

func TestIdleTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d := fakePool(PoolConfig{IdleTimeout: time.Minute, CleanupInterval: 10 * time.Second})
		defer p.Shutdown(0)
		long, none := named("long"), named("none")
		long.HasIdleTimeout, long.IdleTimeout = true, time.Hour
		none.HasIdleTimeout = true
		for _, s := range []Server{named("usual"), long, none} {
			mustAcquire(t, p, s).Release()
		}
		synctest.Wait()
		if got := closedLinks(d); !slices.Equal(got, []string{"none"}) {
			t.Errorf("at once: %v", got)
		}
		time.Sleep(55 * time.Second)
		if got := closedLinks(d); len(got) != 1 {
			t.Errorf("too early: %v", got)
		}
		time.Sleep(20 * time.Second) // the timeout and one interval
		if got := closedLinks(d); !slices.Equal(got, []string{"usual", "none"}) {
			t.Errorf("after the timeout: %v", got)
		}
		time.Sleep(2 * time.Hour)
		if got := closedLinks(d); len(got) != 3 || p.Metrics().IdleEvictions != 2 {
			t.Errorf("in the end: %v, %+v", got, p.Metrics())
		}
		if p.reaping {
			t.Error("the reaper runs with nothing to do")
		}
		mustAcquire(t, p, named("again")).Release() // and starts again
		time.Sleep(2 * time.Minute)
		if got := closedLinks(d); len(got) != 4 {
			t.Errorf("second round: %v", got)
		}
	})
}

func TestCap(t *testing.T) {
	for _, tt := range []struct{ max, left int }{{2, 2}, {-1, 5}, {0, 5}} {
		t.Run(fmt.Sprint(tt.max), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, d := fakePool(PoolConfig{IdleTimeout: time.Hour, MaxIdle: tt.max})
				defer p.Shutdown(0)
				for _, id := range []string{"c", "a", "e", "b", "d"} {
					mustAcquire(t, p, named(id)).Release()
				}
				time.Sleep(time.Minute)
				if left := len(p.Status()); left != tt.left || p.Metrics().CapEvictions != int64(5-tt.left) {
					t.Errorf("%d left", left)
				}
				if got := closedLinks(d); tt.max == 2 && !slices.Equal(got, []string{"c", "a", "e"}) {
					t.Errorf("closed %v, not the longest idle", got)
				}
			})
		})
	}
}

func TestHealth(t *testing.T) {
	for _, tt := range []struct {
		action HealthAction
		left   int
	}{{Evict, 1}, {EvictAndLog, 1}, {LogOnly, 2}, {"", 1}} {
		t.Run(string(tt.action), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, d := fakePool(PoolConfig{IdleTimeout: time.Hour, Health: &HealthCheck{OnFailure: tt.action}})
				defer p.Shutdown(0)
				mustAcquire(t, p, named("well")).Release()
				mustAcquire(t, p, named("sick")).Release()
				d.made()[1].sick.Store(true)
				time.Sleep(40 * time.Second)
				m := p.Metrics()
				if len(p.Status()) != tt.left || m.HealthOK != 1 || m.HealthFailed != 1 {
					t.Errorf("%d left, %+v", len(p.Status()), m)
				}
				time.Sleep(25 * time.Second) // the next cycle comes before the next check
				if n := d.made()[0].checks.Load(); n != 1 {
					t.Errorf("%d checks within the interval", n)
				}
			})
		})
	}
}

func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d := fakePool(served())
		defer p.Shutdown(0)
		mustAcquire(t, p, named("idle")).Release()
		used := mustAcquire(t, p, named("used"))
		starting := make(chan *Handle, 1)
		go func() { starting <- mustAcquire(t, p, named("starting")) }()
		synctest.Wait()
		p.Flush()
		time.Sleep(2 * time.Second)
		if got := closedLinks(d); !slices.Equal(got, []string{"idle"}) {
			t.Errorf("closed: %v", got)
		}
		again := mustAcquire(t, p, named("used"))
		if again.entry == used.entry {
			t.Error("an old connection was handed out")
		}
		(<-starting).Release()
		used.Release()
		again.Release()
		synctest.Wait()
		if got := closedLinks(d); !slices.Equal(got, []string{"idle", "used", "starting"}) {
			t.Errorf("closed: %v", got)
		}
	})
}

func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d := fakePool(served())
		mustAcquire(t, p, named("idle")).Release()
		done, stuck := mustAcquire(t, p, named("done")), mustAcquire(t, p, named("stuck"))
		go func() {
			time.Sleep(3 * time.Second)
			late := mustAcquire(t, p, named("late")) // still works, and is not kept
			late.Release()
			done.Release()
		}()
		began := time.Now()
		if err := p.Shutdown(10 * time.Second); err == nil {
			t.Error("nobody was cut off?")
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("took %v", took)
		}
		if got := closedLinks(d); len(got) != 4 {
			t.Errorf("closed: %v", got)
		}
		for _, l := range d.made() {
			if forced := l.grace.Load() == 0; forced != (l.id == "stuck") {
				t.Errorf("%s: forced %v", l.id, forced)
			}
		}
		stuck.Release()
		if _, err := p.Acquire(t.Context(), named("a")); !errors.Is(err, ErrShutdown) {
			t.Errorf("afterwards: %v", err)
		}
	})
}

func TestShutdownEndsWithTheLastUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := fakePool(served())
		h := mustAcquire(t, p, named("a"))
		go func() {
			time.Sleep(2 * time.Second)
			h.Release()
		}()
		began := time.Now()
		if err := p.Shutdown(time.Hour); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// nobody is an asker that can be asked, in principle.
type nobody struct{ ask.Unavailable }

// TestSharedQuestions: on a connection that two conversations use, nobody can tell whose
// question it is.
func TestSharedQuestions(t *testing.T) {
	p, _ := fakePool(PoolConfig{})
	a, b := p.Scope(nil, ScopeOptions{Asker: nobody{}}), p.Scope(nil, ScopeOptions{Asker: nobody{}})
	for _, tt := range []struct {
		name  string
		calls []*call
		asked bool
	}{
		{"one", []*call{{scope: a}}, true},
		{"same", []*call{{scope: a}, {scope: a}}, true},
		{"two", []*call{{scope: a}, {scope: b}}, false},
		{"none", nil, false},
	} {
		if got := soleAsker(tt.calls) != nil; got != tt.asked {
			t.Errorf("%s: asked %v", tt.name, got)
		}
	}
}

func TestStopwatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stopwatch
		expired := make(chan struct{})
		began := time.Now()
		s.start(10*time.Second, func() { close(expired) })
		time.Sleep(4 * time.Second)
		s.pause()
		s.pause() // two questions at once
		time.Sleep(time.Hour)
		s.resume()
		time.Sleep(time.Hour)
		s.resume()
		<-expired
		if took := time.Since(began); took != 2*time.Hour+10*time.Second {
			t.Errorf("expired after %v", took)
		}
		s.stop()
		s.resume()
	})
}

// served is how a server keeps connections, where many requests follow each other.
func served() PoolConfig { return PoolConfig{IdleTimeout: 5 * time.Minute} }
