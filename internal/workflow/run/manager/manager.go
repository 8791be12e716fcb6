// Package manager has the runs that belong to a process and not to the one who asked for them: the
// runs of a server.
//
// A run is at work here from the moment it is on record until it is over, suspended or interrupted.
// A queued run is at work and waits for its turn. A watcher gets the events of a run, wherever it is at
// work, as frames: those on record, which have numbers, and pieces, which have none and are not kept.
//
// On a [run.Shared] store the managers of several servers are one service. A run without a turn is at work nowhere:
// it is ready, and the first manager with a free turn takes it.
package manager

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"loki/internal/base/fault"
	"loki/internal/llm/event"
	"loki/internal/service/auth"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// DefaultLimit is how many runs work at the same time.
const DefaultLimit = 8

// Options configure a Manager.
type Options struct {
	// Runs returns the verbs of runs. Their store has to write events soon, and to call
	// [Manager.Wrote]. Required.
	Runs func() *run.Service
	// Store is where the runs are on record. The caller closes it once the manager was shut down. If it is a
	// [run.Shared], so is that of Runs. Required.
	Store run.Store
	// Events returns the scope of work whose events go to an emitter. Required.
	Events func(e event.Emitter) event.Scope
	// Also gets all events of the runs that the manager begins, such as to log them; nil for nothing.
	Also event.Emitter

	// Entered is called with the id of a run that is on record and enters, also if it is given back at once, and the context of
	// the caller who begins or resumes it; nil for nothing.
	Entered func(ctx context.Context, id string)

	// Began is called with the id of a run before its work begins or resumes, and Rested when the run is
	// not at work any more; nil for nothing.
	Began  func(ctx context.Context, id string)
	Rested func(id string)

	Limit int          // runs that work at the same time; 0 means DefaultLimit
	Log   *slog.Logger // for what no caller waits for; nil means none
	Now   func() time.Time
}

// Manager begins, resumes and ends runs, all in the background. Its methods may be
// called from several goroutines. Ids are full ones.
type Manager struct {
	o      Options
	events event.Scope
	shared run.Shared // Options.Store if it is one, else nil

	mu      sync.Mutex
	active  map[string]*activity // runs at work in this process
	feeds   map[string]*feed     // of runs that are watched
	queue   []*activity          // the ones that wait for their turn, in order of their priority and of time
	working int                  // runs that have their turn
	coming  map[string]int       // how many requests to resume a run here have not entered yet, by its id
	closing bool                 // no run begins any more
	resting map[string]rested    // runs that Wake has not seen since they came to rest
	ended   chan struct{}        // closed once nothing is watched any more
	wake    chan struct{}        // holds a token when Wake has to look

	bells map[string]*bell // of runs for whose change a caller waits, by id; guarded by mu

	// Of a shared store; guarded by mu, but for stirred.
	crowded bool             // runs that are ready wait for a turn, so that a new one is behind them
	taking  map[string]bool  // ready runs that are being opened here; each has its turn
	putOff  map[string]delay // ready runs that could not resume here
	stirred chan struct{}    // holds a token when a run may have become ready

	background sync.WaitGroup // all goroutines of the manager
	pages      chan struct{}  // holds a token for every watcher that reads the store
}

// activity is a run at work.
type activity struct {
	id      string
	journal run.Journal
	begun   time.Time
	cancel  context.CancelCauseFunc
	turn    chan struct{} // closed when a queued run may work; nil for one that needs no turn
	over    chan struct{} // closed when the run is not at work any more
	back    bool          // it has no turn here, and is given back to the store
	rank    int           // its priority
	gated   bool          // it waits for its gates before it waits for its turn
	queued  bool          // guarded by Manager.mu, as is what follows
	holding bool          // it has its turn
	number  int           // of the last event that was emitted with one

	inbox *run.Inbox

	answered []string // questions that were answered since it is at work; guarded by Manager.mu
}

// Activity is a run at work, for people to see.
type Activity struct {
	ID     string
	Since  time.Time
	Queued bool // it waits for its turn
}

// New returns a manager without runs.
func New(o Options) *Manager {
	o.Limit = cmp.Or(max(0, o.Limit), DefaultLimit)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	m := &Manager{
		o: o, active: make(map[string]*activity), coming: make(map[string]int), feeds: make(map[string]*feed),
		ended: make(chan struct{}), wake: make(chan struct{}, 1), pages: make(chan struct{}, maxPages),
		taking: make(map[string]bool), putOff: make(map[string]delay), bells: make(map[string]*bell), stirred: make(chan struct{}, 1),
	}
	m.shared, _ = o.Store.(run.Shared)
	m.events = o.Events(event.Tee(event.Func(m.Emit), o.Also))
	return m
}

// Store returns where the runs are on record.
func (m *Manager) Store() run.Store { return m.o.Store }

// Events returns the scope for jobs that are begun with Start: its events reach the watchers of the
// run and the log.
func (m *Manager) Events() event.Scope { return m.events }

// ErrClosed is in the chain of errors of a manager that is shut down.
var ErrClosed = errors.New("the server is shutting down")

// errClosing is the failure of what comes too late.
func errClosing() error {
	return fault.Wrap(fault.Failure, ErrClosed, "").WithHint("try again when it is back")
}

// Start begins a run, whose events have to go to [Manager.Events], and returns its id once it is on
// record. It continues if ctx ends after that; the values of ctx stay with it. A job without a record gets one: what
// works by itself is found on record, or not at all.
func (m *Manager) Start(ctx context.Context, job run.Job) (id string, err error) {
	if job.Durability == graph.DurabilityOff || job.Durability == "" {
		job.Durability = graph.DurabilityProcess
	}
	return m.begin(ctx, shares, func(ctx context.Context, s *run.Service) error {
		_, err := s.Start(ctx, job)
		return err
	})
}

// Resume resumes a run and returns once its record is open: the answers in r are kept by then.
// r.ID is required; the manager fills in where events go. A run that cannot resume in its present
// state is a [*run.RefusedError].
func (m *Manager) Resume(ctx context.Context, r run.Resumption) (id string, err error) {
	id, err = m.resume(ctx, r, turnOf(r))
	if _, held := errors.AsType[*run.LeaseError](err); held { // who holds it is not for clients
		err = &run.RefusedError{Err: fault.New(fault.Usage, "run %s is at work", r.ID).WithHint("see how far it has come: loki --run %s", r.ID)}
	}
	return id, err
}

// turnOf returns how a run that must resume gets its turn.
func turnOf(r run.Resumption) turn {
	if r.Force || r.Here || r.Yes || r.NoStream || r.Model != "" || len(r.Answered) > 0 { // which is not on record
		return waits
	}
	return shares
}

// resume is Resume for a run that comes to its turn as how says.
func (m *Manager) resume(ctx context.Context, r run.Resumption, how turn) (id string, err error) {
	r.Events, r.Wait = m.events, nil
	defer m.expect(r.ID)()
	id, err = m.begin(ctx, how, func(ctx context.Context, s *run.Service) error {
		_, err := s.Resume(ctx, r)
		return err
	})
	return id, refusalReason(err)
}

// expect notes that a run is about to resume here, until the returned function is called.
func (m *Manager) expect(id string) (come func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.coming[id]++
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.coming[id]--; m.coming[id] == 0 {
			delete(m.coming, id)
		}
		m.toll(id)
	}
}

// refusalReason returns why a run on record does not resume.
func refusalReason(err error) error {
	switch fault.CodeOf(err) {
	case fault.Config, fault.Failure:
		if !errors.Is(err, ErrClosed) && !errors.Is(err, run.ErrPassing) {
			return &run.RefusedError{Err: err}
		}
	}
	return err
}

// Fork begins a new run from an old one's record and returns its id.
func (m *Manager) Fork(ctx context.Context, f run.Fork) (id string, err error) {
	f.Events = m.events
	id, err = m.begin(ctx, shares, func(ctx context.Context, s *run.Service) error {
		_, err := s.Fork(ctx, f)
		return err
	})
	return id, refusalReason(err)
}

// Answers are answers of one who answers.
type Answers struct {
	Texts  map[string]string // by the ids of the questions
	Who    string            // the subject; empty for one who may answer everything
	Groups []string          // of Who
	From   run.Reply         // how the answers came, and from whom; the text is left out
	Force  bool              // the run resumes although its agent has changed, or its session has continued
}

// Answer answers questions that wait, and resumes the run. While the run is at work, here or in another process, later
// is true: the answers are on record, and Wake resumes a run of here once it rests. A question that is for others
// to answer is a [*run.NotAssignedError].
func (m *Manager) Answer(ctx context.Context, id string, given Answers) (later bool, err error) {
	answers := given.Texts
	if err := m.MayAnswer(ctx, id, given.Who, answers, given.Groups...); err != nil {
		return false, err
	}
	h, err := m.o.Store.History(ctx, id)
	if err == nil && (!h.Info.Status.Over() || h.Info.Status == run.Done) {
		err = h.Waits(ctx, m.o.Store, answers)
	}
	if err != nil {
		return false, err
	}
	if h.Info.Status == run.Canceled {
		return false, canceledError(id)
	}
	if m.shared != nil {
		return m.answerShared(ctx, id, given)
	}
	m.mu.Lock()
	a := m.active[id]
	m.mu.Unlock()
	if a != nil && h.Info.Status == run.Running {
		err := m.answerAtWork(ctx, a, given)
		return err == nil, err
	}
	if a != nil { // it comes to rest at this moment
		if err := m.idle(ctx, id); err != nil {
			return false, err
		}
	}
	info, err := m.o.Store.Info(ctx, id)
	switch {
	case err != nil:
		return false, err
	case info.Status == run.Canceled: // since it was looked at
		return false, canceledError(id)
	case info.Active: // in another process, such as that of a command
		if err := run.AnswerOnRecord(ctx, m.o.Store, id, answers, given.From); err != nil {
			return false, err
		}
		if info, err = m.o.Store.Info(ctx, id); err != nil || info.Active || info.Status != run.Suspended {
			return err == nil, err
		}
		given.Texts = nil // it came to rest meanwhile, perhaps without having seen them
		_, err := m.resume(ctx, given.resumption(id), shares)
		_, held := errors.AsType[*run.LeaseError](err)
		_, over := errors.AsType[*run.EndedError](err)
		if held || over { // it has
			return true, nil
		}
		return false, err
	}
	_, err = m.Resume(ctx, given.resumption(id))
	_, taken := errors.AsType[*run.TakenError](err)
	if taken {
		err = nil
	}
	return taken, err
}

// resumption returns how a run resumes with the answers.
func (a Answers) resumption(id string) run.Resumption {
	return run.Resumption{Continuation: run.Continuation{ID: id, Force: a.Force}, Answers: a.Texts, Uncanceled: true, Via: a.From.Via, By: a.From.By}
}

// answerAtWork records answers of a run at work.
func (m *Manager) answerAtWork(ctx context.Context, a *activity, given Answers) error {
	if err := run.AnswerOnRecord(ctx, m.o.Store, a.id, given.Texts, given.From); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	a.answered = slices.AppendSeq(a.answered, maps.Keys(given.Texts))
	if m.active[a.id] != a {
		m.rest(a.id, rested{answered: a.answered})
	}
	return nil
}

// canceledError is the failure of an answer to a run that was canceled, which resumes only on request.
func canceledError(id string) error {
	return &run.RefusedError{Err: fault.New(fault.Usage, "run %s was canceled, which closed its questions", id).
		WithHint("resume it first: loki --resume %s", id)}
}

// MayAnswer returns a [*run.NotAssignedError] if a question is for subjects other than who to answer: one of answers
// or, if that is nil, one of the waiting ones. who and groups are as [Manager.Answer] has them.
func (m *Manager) MayAnswer(ctx context.Context, id, who string, answers map[string]string, groups ...string) error {
	if who == "" {
		return nil
	}
	subject := auth.Identity{Subject: who, Groups: groups}
	waiting, err := m.o.Store.Pending(ctx, id)
	for _, p := range waiting {
		if _, answered := answers[p.ID]; (answered || answers == nil) && len(p.Assignees) > 0 && !subject.IsOneOf(p.Assignees) {
			return &run.NotAssignedError{Question: p.ID, Assignees: p.Assignees}
		}
	}
	return err
}

// turn is how a run comes to its turn.
type turn int

const (
	needless turn = iota // it needs none
	waits                // it waits here
	shares               // on a shared store it has it at once, or is given back; otherwise it waits here
	reserved             // it has it already
)

// begin calls do in the background and returns when the run has entered, or do has failed before. A run that is given back
// has done so.
func (m *Manager) begin(ctx context.Context, how turn, do func(context.Context, *run.Service) error) (string, error) {
	background, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	release := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	entered, failed := make(chan string, 1), make(chan error, 1)
	s := *m.o.Runs()
	s.Recorded = true
	s.Enter = func(ctx context.Context, j run.Journal, info run.Info) (context.Context, func(context.Context) error, func()) {
		release()
		a, ctx := m.enter(ctx, j, info, how)
		if !a.back {
			entered <- j.ID()
		}
		return ctx, func(ctx context.Context) error { return m.wait(ctx, a) }, func() {
			if m.leave(a); a.back {
				entered <- j.ID()
			}
		}
	}
	m.mu.Lock()
	if m.closing {
		m.mu.Unlock()
		cancel(nil)
		return "", errClosing()
	}
	m.background.Go(func() { // ends with the run
		defer cancel(nil)
		defer release()
		failed <- do(background, &s)
	})
	m.mu.Unlock()
	select {
	case id := <-entered:
		return id, nil
	case err := <-failed:
		select {
		case id := <-entered: // and it is over already
			return id, nil
		default:
			return "", err
		}
	}
}

// Enter is the [run.Service.Enter] of runs that others begin in this process, such as turns of
// conversations: they can be watched and canceled, and need no turn.
func (m *Manager) Enter(ctx context.Context, j run.Journal, info run.Info) (entered context.Context, wait func(context.Context) error, leave func()) {
	a, ctx := m.enter(ctx, j, info, needless)
	return ctx, nil, func() { m.leave(a) }
}

// enter notes a run that is at work from now on.
func (m *Manager) enter(ctx context.Context, j run.Journal, info run.Info, how turn) (*activity, context.Context) {
	a := &activity{id: j.ID(), rank: info.Rank(), gated: len(info.Gates) > 0 && how != needless, journal: j, begun: m.o.Now(), turn: make(chan struct{}), over: make(chan struct{})}
	ctx, a.cancel = context.WithCancelCause(ctx)
	a.inbox = run.NewInbox(m.o.Store, a.id)
	ctx = run.WithInbox(ctx, a.inbox)
	if m.o.Entered != nil {
		m.o.Entered(ctx, a.id)
	}
	m.seat(a, how)
	if m.o.Began != nil && !a.back {
		m.o.Began(ctx, a.id)
	}
	return a, ctx
}

// seat gives a run its turn, queues it, or has it given back.
func (m *Manager) seat(a *activity, how turn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.active[a.id] = a
	switch {
	case a.gated:
		if a.queued = true; how == reserved { // another run may have that turn meanwhile
			m.working--
			m.next()
		}
	case how == reserved:
		a.holding = true
		close(a.turn)
	case how == shares && m.shared != nil && (m.crowded || len(m.queue) > 0 || m.working >= m.o.Limit):
		a.back, a.queued, m.crowded = true, true, true
	case how != needless:
		m.line(a)
	}
	if m.closing || a.back {
		a.cancel(run.ErrInterrupted)
	}
}

// line puts a run into the queue, behind those that come first. The caller holds m.mu.
func (m *Manager) line(a *activity) {
	a.queued = true
	i := slices.IndexFunc(m.queue, func(q *activity) bool { return q.rank < a.rank })
	if i < 0 {
		i = len(m.queue)
	}
	m.queue = slices.Insert(m.queue, i, a)
	m.next()
}

// next gives turns to the runs that wait for them. The caller holds m.mu.
func (m *Manager) next() {
	for len(m.queue) > 0 && m.working < m.o.Limit && !m.closing {
		a := m.queue[0]
		m.queue = m.queue[1:]
		m.working++
		a.queued, a.holding = false, true
		close(a.turn)
	}
}

// wait returns when it is the run's turn, and notes that.
func (m *Manager) wait(ctx context.Context, a *activity) error {
	if a.gated { // and was let through
		m.mu.Lock()
		m.line(a)
		m.mu.Unlock()
	}
	select {
	case <-a.turn:
		if err := a.journal.Working(ctx); err != nil { // costs no more than a takeover that is not counted
			m.o.Log.DebugContext(ctx, "it could not be noted that a run works", "run_id", a.id, "error", err)
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leave notes that a run is not at work any more.
func (m *Manager) leave(a *activity) {
	a.cancel(nil)
	if m.o.Rested != nil && !a.back {
		defer m.o.Rested(a.id)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.active[a.id] == a {
		delete(m.active, a.id)
	}
	if a.holding {
		m.working--
	}
	m.queue = slices.DeleteFunc(m.queue, func(q *activity) bool { return q == a })
	m.next()
	m.rest(a.id, rested{answered: a.answered})
	close(a.over)
	if f := m.feeds[a.id]; f != nil {
		f.look()
	}
}

// idle returns once a run is not at work in this process, or ctx ends.
func (m *Manager) idle(ctx context.Context, id string) error {
	for {
		m.mu.Lock()
		a := m.active[id]
		m.mu.Unlock()
		if a == nil {
			return nil
		}
		select {
		case <-a.over:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Wait returns what is on record of a run once it is not at work in this process: it is over, it is
// suspended, or it was interrupted. On a shared store it is not at work in any process, and does not wait for its
// turn.
func (m *Manager) Wait(ctx context.Context, id string) (run.Info, error) {
	if m.shared != nil {
		return m.waitShared(ctx, id)
	}
	if err := m.idle(ctx, id); err != nil {
		return run.Info{}, err
	}
	return m.o.Store.Info(ctx, id)
}

// Active returns the runs at work in this process, oldest first.
func (m *Manager) Active() []Activity {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]Activity, 0, len(m.active))
	for _, a := range m.active {
		all = append(all, Activity{ID: a.id, Since: a.begun, Queued: a.queued})
	}
	slices.SortFunc(all, func(a, b Activity) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID)) })
	return all
}

// Cancel ends a run as canceled, and returns once that is on record: after that it runs again only if a caller resumes it. A run that
// waits is canceled as well. One that is over, also one that came to its end before it could be canceled, is a [*run.EndedError]. One
// of another process is canceled there if the store is shared; otherwise it is a [*run.LeaseError]. What the run did is undone.
func (m *Manager) Cancel(ctx context.Context, id string) error { return m.cancel(ctx, id, false) }

// Stop is Cancel for a run for whose end its caller does not wait any more: what it did is not undone, so that it can be resumed.
func (m *Manager) Stop(ctx context.Context, id string) error { return m.cancel(ctx, id, true) }

func (m *Manager) cancel(ctx context.Context, id string, keep bool) error {
	asked := false
	return m.until(ctx, id, func() (done bool, err error) {
		if here, err := m.cancelHere(ctx, id, keep); err != nil {
			return false, err
		} else if here {
			asked = true
		}
		info, err := m.o.Store.Info(ctx, id)
		switch {
		case err != nil:
			return false, err
		case info.Active && m.shared != nil:
			here, err := m.shared.Cancel(ctx, id, keep)
			asked = asked || here
			return false, err
		case info.Status == run.Canceled && asked:
			return true, nil
		case info.Status.Over():
			return false, &run.EndedError{ID: id, Status: info.Status}
		}
		if !keep {
			if undone, err := m.undo(ctx, info); undone || err != nil {
				asked = true
				return false, err
			}
		}
		err = m.end(ctx, info)
		if _, held := errors.AsType[*run.LeaseError](err); held && (m.shared != nil || m.here(id)) || errors.Is(err, run.ErrLeaseLost) { // it was taken in between
			return false, nil
		}
		return err == nil, err
	})
}

// undo has a run that rests undo what it did, because it is canceled, and returns once that is over. ok is false if there is nothing to
// undo, or the run cannot resume.
func (m *Manager) undo(ctx context.Context, info run.Info) (ok bool, err error) {
	if info.Kind != run.GraphRun || info.Gap != nil || info.Terms != nil && info.Terms.NoCompensate {
		return false, nil
	}
	if last, err := m.o.Store.Checkpoint(ctx, info.ID, -1); err != nil || len(last.Effects) == 0 {
		return false, err
	}
	r := run.Resumption{Continuation: run.Continuation{ID: info.ID}, Uncanceled: true, Canceled: true}
	if _, err := m.resume(ctx, r, waits); err != nil {
		m.o.Log.Warn("a run that is canceled cannot undo what it did", "run_id", info.ID, "error", err)
		return false, nil
	}
	return true, m.idle(ctx, info.ID)
}

// here reports whether a run is at work in this process, or is about to resume.
func (m *Manager) here(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.active[id] != nil || m.coming[id] > 0
}

// cancelHere cancels a run that is at work in this process, and waits until it is not. Otherwise asked is false.
func (m *Manager) cancelHere(ctx context.Context, id string, keep bool) (asked bool, err error) {
	m.mu.Lock()
	a := m.active[id]
	m.mu.Unlock()
	if a == nil {
		return false, nil
	}
	a.cancel(run.CancelCause(keep))
	return true, m.idle(ctx, id)
}

// end ends a run as canceled that no process holds. Otherwise the error is a [*run.LeaseError].
func (m *Manager) end(ctx context.Context, info run.Info) error {
	if err := run.EndCanceled(ctx, m.o.Store, info, m.o.Now()); err != nil {
		return err
	}
	m.Wrote(info.ID)
	if m.o.Rested != nil {
		m.o.Rested(info.ID)
	}
	return nil
}

// ResumeOnStart resumes, in their order, the runs that the process before this one left at work:
// runs of a server, not those of the command line, that are running on record while no process holds
// them. One that cannot resume is logged and left as it is. Suspended runs are left to Wake, and so are all if the
// store is shared.
func (m *Manager) ResumeOnStart(ctx context.Context) error {
	if m.shared != nil {
		return nil
	}
	infos, err := m.o.Store.Runs(ctx, run.Query{Unfinished: true})
	if err != nil {
		return err
	}
	for _, info := range slices.Backward(infos) { // newest first
		if !info.Served || info.Active || info.Damaged {
			continue
		}
		if info.Status == run.Suspended {
			m.mu.Lock()
			m.rest(info.ID, rested{left: true})
			m.mu.Unlock()
		}
		if info.Status != run.Running {
			continue
		}
		if _, err := m.Resume(ctx, run.Resumption{Continuation: run.Continuation{ID: info.ID}, Uncanceled: true}); err != nil {
			if ctx.Err() != nil || errors.Is(err, ErrClosed) {
				return err
			}
			m.o.Log.WarnContext(ctx, "cannot resume an interrupted run", "run_id", info.ID, "agent", info.Agent, "error", err, "hint", fault.HintOf(err))
		}
	}
	return nil
}

// patience is how long runs that are interrupted may take to end: their children have to be killed.
const patience = 4 * time.Second

// Shutdown begins no run any more, interrupts queued runs, and waits for runs at work. When ctx
// ends, they are interrupted too. What was interrupted stays running on record, so that ResumeOnStart of
// the next process resumes it, or another server takes it. Watchers are served until the runs have come to rest. Runs that do not end
// although they are interrupted are logged and given up after some seconds: the process should end then.
func (m *Manager) Shutdown(ctx context.Context) {
	m.mu.Lock()
	first := !m.closing
	m.closing = true
	m.ring()
	for _, a := range m.active {
		if a.queued {
			a.cancel(run.ErrInterrupted)
		}
	}
	m.mu.Unlock()
	end, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	interrupt := context.AfterFunc(ctx, func() {
		time.AfterFunc(patience, giveUp)
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, a := range m.active {
			a.cancel(run.ErrInterrupted)
		}
	})
	defer interrupt()
	for _, a := range m.Active() {
		if m.idle(end, a.ID) != nil {
			m.o.Log.Warn("an interrupted run did not end in time", "run_id", a.ID)
		}
	}
	if first {
		close(m.ended)
	}
	done := make(chan struct{})
	go func() { // ends with the last run, or the process
		m.background.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-end.Done():
	}
}
