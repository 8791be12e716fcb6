package manager

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"loki/internal/base/fault"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
)

const (
	pageSize   = 256     // events that a watcher reads at once
	windowSize = 1024    // frames that watchers share
	windowByte = 1 << 20 // bytes of them
	maxPages   = 2       // watchers that read the store at the same time

	pollFirst = 250 * time.Millisecond // how often the record of another process is looked at
	pollLast  = 2 * time.Second        // likewise, when nothing has happened for a while
)

// Frame is what a watcher of a run gets: an event on record, or a piece such as a part of a reply.
type Frame struct {
	Number int    // of the event, from 1; 0 for a piece
	Type   string // of the event
	Data   []byte // JSON in the form of machine output; shared, not to be changed
}

// feed is what the watchers of a run share: the newest frames, and one reader of the store, the
// goroutine of read. The reader alone changes last, over and err.
type feed struct {
	m      *Manager
	id     string
	ctx    context.Context // ends with the last watcher
	cancel context.CancelFunc
	dirty  chan struct{} // holds a token when the reader has to look

	watchers int // guarded by Manager.mu

	mu      sync.Mutex
	changed chan struct{} // closed, and replaced, with every change of what follows
	frames  []Frame       // the newest ones; appended to and cut at the front only
	base    int           // place of frames[0] among all that there were
	size    int           // of frames, in bytes
	first   int           // number of the last event before frames
	last    int           // number of the last event in frames, or first
	pieces  []piece       // that wait for the event before them to be on record
	over    bool          // there is nothing more
	err     error         // why, if the run is not over
}

// piece is a frame that comes after an event.
type piece struct {
	after int
	frame Frame
}

// Follow passes the events of a run after a number to e, until the run is over or waits for an answer. The error is
// that of the run, or of e.
func (m *Manager) Follow(ctx context.Context, id string, after int, e event.Emitter) error {
	for frame, err := range m.Watch(ctx, id, after) {
		if err != nil {
			return err
		}
		ev, err := event.Parse(frame.Data)
		if errors.Is(err, event.ErrUnknownType) {
			continue
		}
		if err == nil {
			err = e.Emit(ctx, ev)
		}
		if err != nil {
			return err
		}
		if end, ok := ev.Body.(event.Finished); ok && ev.Depth == 0 && ev.Node == "" {
			if end.Error == "" {
				return nil
			}
			return fault.New(fault.Code(end.Code), "%s", end.Error)
		}
	}
	info, err := m.Wait(ctx, id)
	if err == nil && (info.Status != run.Done || info.Error != "") {
		err = fault.New(info.Code, "%s", info.Error)
	}
	return err
}

// Watch returns the frames of a run: the events on record after the one with the number after, in
// order, without a gap, and then what comes. It ends when the run is over: done, failed or canceled.
// A run that is suspended, interrupted or at work in another process is waited for. Pieces come only
// from this process, and only while the watcher keeps up; what they are parts of comes as an event later.
// The error is that of ctx or of the store, or has [ErrClosed] in its chain.
func (m *Manager) Watch(ctx context.Context, id string, after int) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		for frames, err := range m.WatchBatches(ctx, id, after) {
			if err != nil {
				yield(Frame{}, err)
				return
			}
			for _, f := range frames {
				if !yield(f, nil) {
					return
				}
			}
		}
	}
}

// WatchBatches is Watch for a caller who can use at once all frames that are there. They are shared, and
// there is at least one.
func (m *Manager) WatchBatches(ctx context.Context, id string, after int) iter.Seq2[[]Frame, error] {
	return func(yield func([]Frame, error) bool) {
		if err := m.watch(ctx, id, after, func(frames []Frame) bool { return yield(frames, nil) }); err != nil {
			yield(nil, err)
		}
	}
}

// watch is WatchBatches. It returns nil once yield has returned false.
func (m *Manager) watch(ctx context.Context, id string, after int, yield func([]Frame) bool) error {
	f, err := m.join(ctx, id, after)
	if err != nil {
		return err
	}
	defer m.part(f)
	for w := (watcher{number: after, place: -1}); ; {
		frames, changed, behind := f.next(&w)
		if behind {
			if frames, err = m.page(ctx, id, w.number); err != nil {
				return err
			}
		}
		for _, frame := range frames {
			w.number = max(w.number, frame.Number)
		}
		if len(frames) > 0 && !yield(frames) {
			return nil
		}
		switch {
		case len(frames) > 0:
		case changed == nil:
			return f.err // which does not change any more
		default:
			select {
			case <-changed:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}

// watcher is how far a watcher of a feed has come.
type watcher struct {
	number int // of the last event
	place  int // of the next frame among all of the feed; -1 if the watcher is elsewhere
}

// next returns the frames that a watcher has not seen. If there are none, changed is closed when that
// changes, or is nil if there will be none. A watcher that is behind has to read the store.
func (f *feed) next(w *watcher) (frames []Frame, changed <-chan struct{}, behind bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.place < f.base {
		if w.place = -1; w.number < f.first {
			return nil, f.changed, true
		}
		w.place = f.base
	}
	frames = f.frames[w.place-f.base : len(f.frames) : len(f.frames)]
	w.place += len(frames)
	// The store may have shown the watcher more than the feed had then.
	for i, frame := range slices.Backward(frames) {
		if frame.Number > 0 && frame.Number <= w.number {
			frames = frames[i+1:]
			break
		}
	}
	if len(frames) == 0 && f.over {
		return nil, nil, false
	}
	return frames, f.changed, false
}

// page returns events on record after the one with a number.
func (m *Manager) page(ctx context.Context, id string, after int) ([]Frame, error) {
	select {
	case m.pages <- struct{}{}:
		defer func() { <-m.pages }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return m.read(ctx, id, after)
}

// read returns up to pageSize events on record after the one with a number.
func (m *Manager) read(ctx context.Context, id string, after int) ([]Frame, error) {
	events, err := m.o.Store.Events(ctx, id, after, pageSize)
	frames := make([]Frame, len(events))
	for i, ev := range events {
		frames[i] = Frame{ev.Number, typeOf(ev.JSON), ev.JSON}
	}
	return frames, err
}

// typeOf returns the type of an event in the form of machine output, which begins with it.
func typeOf(text []byte) string {
	rest, _ := bytes.CutPrefix(text, []byte(`{"type":"`))
	name, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(name)
}

// join returns the feed of a run for one more watcher, who has seen the events up to a number.
func (m *Manager) join(ctx context.Context, id string, after int) (*feed, error) {
	info, err := m.o.Store.Info(ctx, id)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.feeds[id]
	if f == nil {
		select {
		case <-m.ended:
			return nil, errClosing()
		default:
		}
		f = &feed{m: m, id: id, dirty: make(chan struct{}, 1), changed: make(chan struct{}), first: info.Events}
		if f.first-after < windowSize/2 {
			f.first = min(max(0, after), f.first)
		}
		f.last = f.first
		f.ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
		m.feeds[id] = f
		m.background.Go(func() { f.follow() }) // ends when the last watcher has parted, or the feed is over
		f.look()
	}
	f.watchers++
	return f, nil
}

// part notes that a watcher is gone.
func (m *Manager) part(f *feed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f.watchers--; f.watchers == 0 {
		f.cancel()
		if m.feeds[f.id] == f {
			delete(m.feeds, f.id)
		}
	}
}

// look has the reader look at the record.
func (f *feed) look() {
	select {
	case f.dirty <- struct{}{}:
	default: // it is about to
	}
}

// Wrote is called when events of a run came to be on record.
func (m *Manager) Wrote(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.feeds[id]; f != nil {
		f.look()
	}
	m.toll(id)
}

// follow takes what is recorded into the feed, until the run is over or has no watchers.
func (f *feed) follow() {
	pause := pollFirst
	if f.m.shared != nil {
		pause = pollLast // the store says what it changes
	}
	for {
		grown, over, err := f.take()
		if f.ctx.Err() != nil {
			return
		}
		if over || err != nil {
			f.end(err)
			return
		}
		var poll <-chan time.Time
		var timer *time.Timer
		if !f.m.atWork(f.id) { // another process may resume it
			if pause = min(2*pause, pollLast); grown && f.m.shared == nil {
				pause = pollFirst
			}
			timer = time.NewTimer(pause)
			poll = timer.C
		}
		select {
		case <-f.dirty:
		case <-poll:
		case <-f.m.ended:
			_, over, err := f.take() // what came to be on record before
			if err == nil && !over {
				err = errClosing()
			}
			f.end(err)
			return
		case <-f.ctx.Done():
		}
		if timer != nil {
			timer.Stop()
		}
	}
}

// take reads what is new on record. grown says that there was something; over that there will be nothing
// more.
func (f *feed) take() (grown, over bool, err error) {
	// Whether the run is over is asked before the events are read: those of its end come first.
	working := f.m.atWork(f.id)
	if !working {
		info, err := f.m.o.Store.Info(f.ctx, f.id)
		if err != nil {
			return false, false, err
		}
		over = info.Status.Over() && !info.Active
	}
	for {
		frames, err := f.m.read(f.ctx, f.id, f.last)
		if err != nil || len(frames) == 0 {
			return grown, over, err
		}
		f.add(frames)
		grown = true
		if len(frames) < pageSize {
			return grown, over, nil
		}
	}
}

// add appends events, each after the pieces that came before it.
func (f *feed) add(events []Frame) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, ev := range events {
		f.addPieces(ev.Number)
		f.push(ev)
		f.last = ev.Number
	}
	f.addPieces(f.last + 1)
	f.change()
}

// addPieces appends the pieces that come before the event with a number. The caller holds f.mu.
func (f *feed) addPieces(before int) {
	for len(f.pieces) > 0 && f.pieces[0].after < before {
		f.push(f.pieces[0].frame)
		f.pieces = f.pieces[1:]
	}
}

// push appends a frame, and drops the oldest ones if there are too many. The caller holds f.mu.
func (f *feed) push(frame Frame) {
	f.frames = append(f.frames, frame)
	for f.size += len(frame.Data); len(f.frames) > windowSize || f.size > windowByte && len(f.frames) > 1; {
		old := f.frames[0]
		f.frames = f.frames[1:] // watchers may still read what it was in
		f.base++
		f.size -= len(old.Data)
		f.first = max(f.first, old.Number)
	}
}

// change wakes the watchers. The caller holds f.mu.
func (f *feed) change() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// end says that there is nothing more.
func (f *feed) end(err error) {
	f.m.mu.Lock()
	if f.m.feeds[f.id] == f {
		delete(f.m.feeds, f.id) // who comes later, such as after the run was resumed, begins anew
	}
	f.m.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over, f.err = true, err
	f.change()
}

// atWork reports whether a run is at work in this process.
func (m *Manager) atWork(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.active[id] != nil
}

// Emit gives watchers the pieces among the events of runs, in their place among those on record. It is the
// [event.Emitter] for runs that others begin in this process; those of the manager have it.
func (m *Manager) Emit(_ context.Context, ev event.Event) error {
	if ev.Run == "" {
		return nil
	}
	m.mu.Lock()
	a, f := m.active[ev.Run], m.feeds[ev.Run]
	if a != nil && ev.Number > 0 {
		a.number = ev.Number
	}
	after := 0
	if a != nil {
		after = a.number
	}
	m.mu.Unlock()
	if a == nil || f == nil || ev.Number > 0 {
		return nil
	}
	text, err := ev.MarshalJSON()
	if err != nil {
		return nil // a piece may be missed
	}
	f.piece(piece{after, Frame{Type: ev.Body.Type(), Data: text}})
	return nil
}

// piece adds a piece, now or when the event before it is on record.
func (f *feed) piece(p piece) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.over || len(f.pieces) >= windowSize:
	case p.after <= f.last && len(f.pieces) == 0:
		f.push(p.frame)
		f.change()
	default:
		f.pieces = append(f.pieces, p)
	}
}
