package manager

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/workflow/run"
)

const (
	sweep      = 2 * time.Second       // how often at least a shared store is asked what is ready, and how a run is
	breath     = 50 * time.Millisecond // at most between a change and the question what is ready
	delayFirst = 5 * time.Second       // delay of a run that cannot resume here
	delayLast  = 5 * time.Minute       // likewise, after it could not for many times
)

// delay says for how long a ready run is not tried here any more.
type delay struct {
	until time.Time
	last  time.Duration
}

// share takes ready runs while there are free turns, until ctx ends or the manager is shut down. It hears of what
// other processes write until all watchers have been served.
func (m *Manager) share(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var listening sync.WaitGroup
	defer listening.Wait()
	listening.Go(func() { // ends with ctx, or with the last watcher
		defer cancel()
		select {
		case <-m.ended:
		case <-ctx.Done():
		}
	})
	listening.Go(func() { m.listen(ctx) }) // ends with ctx
	timer := time.NewTimer(sweep)
	defer timer.Stop()
	for m.takeReady(ctx) {
		timer.Reset(sweep - rand.N(sweep/4)) // so that servers that began together do not stay together
		select {
		case <-m.wake:
		case <-m.stirred:
			_ = retry.Sleep(ctx, rand.N(breath)) // for others to be faster, and for more to come
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

// listen hears what processes write to a shared store until ctx ends.
func (m *Manager) listen(ctx context.Context) {
	for {
		err := m.shared.Changes(ctx, m.noteChange)
		if ctx.Err() != nil {
			return
		}
		m.o.Log.WarnContext(ctx, "changes of runs are not heard of, and looked for every 2 s", "error", err)
		_ = retry.Sleep(ctx, sweep)
	}
}

// noteChange is called when a process has written something of a run; "" means all runs.
func (m *Manager) noteChange(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if id == "" {
		for _, f := range m.feeds {
			f.look()
		}
		for id := range m.bells {
			m.toll(id)
		}
	} else if f := m.feeds[id]; f != nil {
		f.look()
	}
	m.toll(id)
	if m.active[id] == nil {
		m.stir()
	}
}

// stir has share look soon.
func (m *Manager) stir() {
	select {
	case m.stirred <- struct{}{}:
	default: // it is about to
	}
}

// bell is what those wait for who wait for a change of a run.
type bell struct {
	rung   chan struct{}
	waited int // by so many; guarded by Manager.mu
}

// toll wakes those who wait for a change of a run. The caller holds m.mu.
func (m *Manager) toll(id string) {
	if b := m.bells[id]; b != nil {
		close(b.rung)
		delete(m.bells, id)
	}
}

// until calls look, and again after each change of a run, until done or an error. Now and then it does so without a change.
func (m *Manager) until(ctx context.Context, id string, look func() (done bool, err error)) error {
	for {
		m.mu.Lock()
		b := m.bells[id]
		if b == nil {
			b = &bell{rung: make(chan struct{})}
			m.bells[id] = b
		}
		b.waited++
		m.mu.Unlock()
		done, err := look()
		if err == nil && !done {
			err = m.await(ctx, b.rung)
		}
		m.mu.Lock()
		if b.waited--; b.waited == 0 && m.bells[id] == b {
			delete(m.bells, id)
		}
		m.mu.Unlock()
		if done || err != nil {
			return err
		}
	}
}

// await waits for a bell, though not for long.
func (m *Manager) await(ctx context.Context, rung <-chan struct{}) error {
	timer := time.NewTimer(sweep)
	defer timer.Stop()
	select {
	case <-rung:
	case <-timer.C:
	case <-m.ended:
		return errClosing()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// takeReady begins to take ready runs, as many as there are free turns. It returns false when the manager is shut down or ctx
// has ended.
func (m *Manager) takeReady(ctx context.Context) bool {
	m.mu.Lock()
	free := m.o.Limit - m.working - len(m.queue)
	limit := free + len(m.putOff) + len(m.taking) + 1 // one more shows whether there are more
	closing := m.closing
	m.mu.Unlock()
	if closing || ctx.Err() != nil {
		return false
	}
	if free <= 0 {
		return true
	}
	ids, err := m.shared.Ready(ctx, limit)
	if err != nil {
		m.o.Log.DebugContext(ctx, "what runs are ready is not known", "error", err)
		return true
	}
	now := m.o.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.putOff, func(_ string, d delay) bool { return now.Sub(d.until) > delayLast }) // it was taken elsewhere
	m.crowded = false
	for _, id := range ids {
		switch {
		case m.closing:
			return false
		case m.taking[id] || now.Before(m.putOff[id].until):
		case m.working+len(m.queue) >= m.o.Limit:
			m.crowded = true
			return true
		default:
			m.taking[id] = true
			m.working++
			m.background.Go(func() { m.take(ctx, id) }) // ends when the run is at work, or does not resume here
		}
	}
	return true
}

// take resumes a ready run, whose turn is reserved.
func (m *Manager) take(ctx context.Context, id string) {
	err := m.resumeReady(ctx, id)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.taking, id)
	if err == nil {
		delete(m.putOff, id)
		return
	}
	m.working--
	m.next()
	m.stir()
	_, held := errors.AsType[*run.LeaseError](err)
	_, over := errors.AsType[*run.EndedError](err)
	if held || over || fault.CodeOf(err) == fault.NotFound || errors.Is(err, run.ErrPassing) || errors.Is(err, ErrClosed) || ctx.Err() != nil {
		return // another server was faster, or it is tried again soon
	}
	d, before := m.putOff[id]
	d.last = min(max(delayFirst, 2*d.last), delayLast)
	d.until = m.o.Now().Add(d.last + rand.N(d.last/4))
	m.putOff[id] = d
	if !before {
		m.o.Log.WarnContext(ctx, "cannot resume a run on this server; will retry", "run_id", id, "error", err, "hint", fault.HintOf(err))
	}
}

// resumeReady resumes a ready run.
func (m *Manager) resumeReady(ctx context.Context, id string) error {
	h, err := m.o.Store.History(ctx, id)
	if err != nil {
		return err
	}
	if h.Info.Held != nil { // before its agent is looked at
		return h.Info.Held
	}
	_, err = m.resume(ctx, run.Resumption{Continuation: run.Continuation{ID: id}, Uncanceled: true}, reserved)
	return err
}

// answerShared is the end of Answer on a shared store.
func (m *Manager) answerShared(ctx context.Context, id string, given Answers) (later bool, err error) {
	info, err := m.o.Store.Info(ctx, id)
	switch {
	case err != nil:
		return false, err
	case info.Status == run.Canceled: // since it was looked at
		return false, canceledError(id)
	case info.Active:
		err := run.AnswerOnRecord(ctx, m.shared, id, given.Texts, given.From)
		return err == nil, err
	}
	r := given.resumption(id)
	_, err = m.resume(ctx, r, turnOf(r))
	if _, taken := errors.AsType[*run.TakenError](err); taken {
		return true, nil
	}
	if _, held := errors.AsType[*run.LeaseError](err); held && info.Gap == nil { // the answers came before that
		return true, nil
	}
	return false, err
}

// waitShared is Wait on a shared store.
func (m *Manager) waitShared(ctx context.Context, id string) (info run.Info, err error) {
	err = m.until(ctx, id, func() (done bool, err error) {
		if err = m.idle(ctx, id); err == nil {
			info, err = m.o.Store.Info(ctx, id)
		}
		return !info.Active && !info.Queued, err
	})
	return info, err
}
