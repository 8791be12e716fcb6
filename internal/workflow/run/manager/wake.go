package manager

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"loki/internal/base/fault"
	"loki/internal/workflow/run"
)

// recheck is how long after a failure in passing, and how often at least, Wake looks at the clock: it may be set, and
// stands still while the machine sleeps.
const recheck = time.Minute

// rested is a run that came to rest, for Wake.
type rested struct {
	answered []string // questions that were answered while it was at work
	left     bool     // by an earlier process
	freed    bool     // from the limit that it was suspended for
}

// alarm is when a run resumes by itself.
type alarm struct {
	id string
	at time.Time
	rested
}

// Wake resumes suspended runs when their time has come, until ctx ends or the manager is shut down: when the deadline
// of a question is over, the provider that a run waits for should be back, the time of a wait has come or its signal is
// there, or all is answered while the run was at work. It resumes runs that rest from now on, and the ones that
// ResumeOnStart found. Runs that are due resume in the order of their times, each once the runs before it have their
// turn. On a shared store it takes the runs that are ready while it has free turns. It is called once.
func (m *Manager) Wake(ctx context.Context) {
	if m.shared != nil {
		m.share(ctx)
		return
	}
	w := waker{Manager: m, due: make(map[string]alarm), past: make(map[string]time.Time)}
	timer := time.NewTimer(recheck)
	defer timer.Stop()
	for {
		m.mu.Lock()
		closing, full, resting := m.closing, len(m.queue) > 0, m.resting
		m.resting = nil
		m.mu.Unlock()
		if closing || ctx.Err() != nil {
			return
		}
		for id, r := range resting {
			w.set(ctx, id, r)
		}
		wait := recheck
		if next, ok := w.next(); ok {
			wait = min(wait, next.at.Sub(m.o.Now()))
			if wait <= 0 && !full {
				w.resume(ctx, next)
				continue
			}
		}
		if wait <= 0 {
			wait = recheck // there is no room: the run that makes room rings
		}
		timer.Reset(wait)
		select {
		case <-m.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

// rest notes that a run is not at work any more, for Wake. The caller holds m.mu.
func (m *Manager) rest(id string, r rested) {
	if m.resting == nil {
		m.resting = make(map[string]rested)
	}
	if m.shared == nil { // which knows by itself when the run resumes
		m.resting[id] = r
	}
	m.ring()
}

// ring has Wake look again.
func (m *Manager) ring() {
	select {
	case m.wake <- struct{}{}:
	default: // it is about to
	}
}

// waker is what Wake knows.
type waker struct {
	*Manager
	due  map[string]alarm     // by id
	past map[string]time.Time // the last time at which a run was resumed: no time before it wakes it again
}

// next returns the alarm that comes first.
func (w *waker) next() (first alarm, ok bool) {
	for _, a := range w.due {
		if !ok || cmp.Or(a.at.Compare(first.at), cmp.Compare(a.id, first.id)) < 0 {
			first, ok = a, true
		}
	}
	return first, ok
}

// set looks at a run that rests, and notes when it resumes by itself.
func (w *waker) set(ctx context.Context, id string, r rested) {
	delete(w.due, id)
	at, err := w.alarm(ctx, id, r)
	if err != nil {
		at = w.o.Now().Add(recheck)
	}
	if !at.IsZero() {
		w.due[id] = alarm{id, at, r}
	}
}

// alarm returns when a run resumes by itself, zero for never.
func (w *waker) alarm(ctx context.Context, id string, r rested) (at time.Time, err error) {
	info, err := w.o.Store.Info(ctx, id)
	if fault.CodeOf(err) == fault.NotFound || err == nil && info.Status != run.Suspended {
		delete(w.past, id)
		return time.Time{}, nil
	}
	if err != nil || info.Gap != nil || info.Breakpoint != "" || !info.Served && len(r.answered) == 0 {
		return time.Time{}, err
	}
	waiting, err := w.o.Store.Pending(ctx, id)
	if err != nil {
		return time.Time{}, err
	}
	waits, err := w.o.Store.Waits(ctx, id)
	if err != nil {
		return time.Time{}, err
	}
	unheard, err := run.Unheard(ctx, w.o.Store, id) // another process answered while it came to rest
	if err != nil {
		return time.Time{}, err
	}
	if len(r.answered)+len(unheard) > 0 || r.freed || r.left && len(waiting)+len(waits) == 0 && info.Code == fault.Suspended && info.Until.IsZero() {
		return info.Updated, nil
	}
	sooner := func(t time.Time) {
		if !t.IsZero() && t.After(w.past[id]) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	sooner(info.Until)
	for _, p := range append(waiting, waits...) {
		sooner(p.Deadline)
	}
	if !slices.ContainsFunc(waits, func(p run.Pending) bool { return p.Wait == run.ForSignal }) {
		return at, nil
	}
	// A signal is given to the store, perhaps by another process, which does not ring.
	sooner(w.o.Now().Add(recheck))
	signals, err := w.o.Store.Signals(ctx, id)
	if slices.ContainsFunc(waits, func(p run.Pending) bool { return p.Arrived(signals, time.Time{}) }) {
		return info.Updated, err
	}
	return at, err
}

// ResumeDue resumes the runs that Wake and ResumeOnStart would resume now, as far as wanted reports true of them, and returns their ids. One that cannot resume
// here is logged and left as it is. It is for a process that ends when nothing is at work.
func (m *Manager) ResumeDue(ctx context.Context, wanted func(id string) bool) (resumed []string, err error) {
	due, err := m.dueNow(ctx)
	for _, id := range due {
		if !wanted(id) {
			continue
		}
		_, err := m.resume(ctx, run.Resumption{Continuation: run.Continuation{ID: id}, Uncanceled: true}, waits)
		if err == nil {
			resumed = append(resumed, id)
		} else if _, held := errors.AsType[*run.LeaseError](err); !held && ctx.Err() == nil {
			m.o.Log.WarnContext(ctx, "cannot resume a run whose time has come", "run_id", id, "error", err, "hint", fault.HintOf(err))
		}
	}
	return resumed, err
}

// Free resumes the runs that were suspended because nothing was left of what all runs of a subject may use, as far as may returns nil for
// them now.
func (m *Manager) Free(ctx context.Context, may func(run.Info) error) error {
	infos, err := m.o.Store.Runs(ctx, run.Query{Unfinished: true})
	for _, info := range slices.Backward(infos) { // newest first
		if !info.Served || info.Active || info.Damaged || !info.Spent() || may(info) != nil {
			continue
		}
		if m.shared == nil {
			m.mu.Lock()
			m.rest(info.ID, rested{freed: true})
			m.mu.Unlock()
			continue
		}
		_, err := m.resume(ctx, run.Resumption{Continuation: run.Continuation{ID: info.ID}, Uncanceled: true}, shares)
		if _, held := errors.AsType[*run.LeaseError](err); err != nil && !held && ctx.Err() == nil {
			m.o.Log.WarnContext(ctx, "cannot resume a run whose limit was raised", "run_id", info.ID, "error", err, "hint", fault.HintOf(err))
		}
	}
	return err
}

// maxDue is how many runs of a shared store are resumed at once.
const maxDue = 1000

// dueNow returns the runs that no process holds and that can work now.
func (m *Manager) dueNow(ctx context.Context) (ids []string, err error) {
	if m.shared != nil {
		return m.shared.Ready(ctx, maxDue)
	}
	infos, err := m.o.Store.Runs(ctx, run.Query{Unfinished: true})
	w := waker{Manager: m}
	for _, info := range slices.Backward(infos) { // newest first
		switch {
		case !info.Served || info.Active || info.Damaged:
		case info.Status == run.Running:
			ids = append(ids, info.ID)
		case info.Status == run.Suspended:
			at, err := w.alarm(ctx, info.ID, rested{left: true})
			if err != nil {
				return ids, err
			}
			if !at.IsZero() && !at.After(m.o.Now()) {
				ids = append(ids, info.ID)
			}
		}
	}
	return ids, err
}

// resume resumes a run whose time has come.
func (w *waker) resume(ctx context.Context, a alarm) {
	w.set(ctx, a.id, a.rested) // it may have been resumed or answered elsewhere
	now, ok := w.due[a.id]
	if !ok || now.at.After(a.at) {
		return
	}
	delete(w.due, a.id)
	_, err := w.Resume(ctx, run.Resumption{Continuation: run.Continuation{ID: a.id}, Answered: a.answered, Uncanceled: true})
	held, ended := new(run.LeaseError), new(run.EndedError)
	switch {
	case err == nil:
		w.past[a.id] = a.at
	case ctx.Err() != nil || errors.Is(err, ErrClosed) || errors.As(err, &ended): // or it was canceled meanwhile
	case errors.As(err, &held): // another process resumes it, and may leave it suspended again
		a.at, a.left = w.o.Now().Add(recheck), false
		w.due[a.id] = a
	default:
		w.o.Log.WarnContext(ctx, "cannot resume a run whose time has come", "run_id", a.id, "error", err, "hint", fault.HintOf(err))
	}
}
