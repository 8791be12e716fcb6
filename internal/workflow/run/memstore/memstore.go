// Package memstore keeps the journals of runs in memory.
//
// It is a complete [run.Store] for tests and for runs that need not outlive their
// process. Everything given to it is kept as it is, without a copy of its values:
// those are immutable.
package memstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/event"
	"loki/internal/service/auth"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	docs "loki/internal/workflow/run/record"
)

// Store is a [run.Store] in memory.
type Store struct {
	now func() time.Time

	mu      sync.Mutex // guards everything below, the records and the journals
	runs    []*record  // in order of creation
	entries map[string]run.Entry
}

var (
	_ run.Store   = (*Store)(nil)
	_ run.Journal = (*journal)(nil)
)

// New returns an empty store. A nil now means time.Now.
func New(now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return &Store{now: now, entries: make(map[string]run.Entry)}
}

// record is all that is known of a run.
type record struct {
	info        run.Info
	checkpoints []run.Checkpoint
	visits      []run.Visit
	tasks       []run.TaskRecord
	steps       []*stepRecord
	counter     int // number of the last step
	questions   []*question
	signals     []run.Signal // in order
	events      []event.Event
	holder      *journal // who has the lease; nil if no journal has it
	epoch       int      // of the last lease
	died        bool     // who had the lease last has died at work
	progress    string   // when that was so for the last time
}

type stepRecord struct {
	run.StepRecord
	result []byte
}

type question struct {
	run.Pending
	answered bool
}

func (r *record) last() *run.Checkpoint { return &r.checkpoints[len(r.checkpoints)-1] }

// currentInfo returns the info of the run as of now.
func (r *record) currentInfo() run.Info {
	info, last := r.info, r.last()
	info.Steps, info.Usage, info.Failures = last.Step, last.Usage, last.Failures
	for _, s := range r.steps {
		var used run.Used
		if s.Kind == steps.Model && s.Step > last.Step && info.Status != run.Done && json.Unmarshal(s.result, &used) == nil {
			info.Usage = info.Usage.Add(used.Usage)
		}
	}
	info.Active, info.Events = r.holder != nil, len(r.events)
	if info.Active {
		info.Held = r.leaseError()
	}
	info.Variables = maps.Clone(info.Variables)
	info.Definition, info.Question = slices.Clone(info.Definition), slices.Clone(info.Question)
	return info
}

// checkLease returns an error if a journal holds the lease.
func (r *record) checkLease() error {
	if r.holder == nil {
		return nil
	}
	return r.leaseError()
}

func (r *record) leaseError() *run.LeaseError {
	return &run.LeaseError{ID: r.info.ID, Owner: "this process"}
}

// idle returns an error if the run cannot resume: a journal holds its lease, it has
// ended, or a part of it is not on record.
func (r *record) idle() error {
	if err := r.checkLease(); err != nil {
		return err
	}
	return r.answerable()
}

// answerable returns an error if no question of the run can be answered: it has ended, or a part of it is not on record.
func (r *record) answerable() error {
	if !r.info.Status.Resumable() {
		return &run.EndedError{ID: r.info.ID, Status: r.info.Status}
	}
	if r.info.Gap != nil {
		return &run.GapError{ID: r.info.ID, Gap: *r.info.Gap}
	}
	return nil
}

// come returns how far the run has come.
func (r *record) come() string {
	last, results := r.last().Step, 0
	for _, s := range r.steps {
		if s.Step > last && s.Done {
			results++
		}
	}
	return docs.Progress(last, results, len(r.tasks))
}

// lend gives the lease of the run to a new journal, with the next epoch.
func (r *record) lend(s *Store) *journal {
	r.epoch++
	r.holder = &journal{store: s, run: r, epoch: r.epoch}
	r.holder.lease, r.holder.end = context.WithCancelCause(context.Background())
	return r.holder
}

func (r *record) step(step int, node, key string) *stepRecord {
	for _, s := range r.steps {
		if s.Step == step && s.Node == node && s.Key == key {
			return s
		}
	}
	return nil
}

// enter returns the step's record, which it makes if there is none.
func (r *record) enter(step int, node, key string) *stepRecord {
	if s := r.step(step, node, key); s != nil {
		return s
	}
	r.counter++
	s := &stepRecord{StepRecord: run.StepRecord{Number: r.counter, Step: step, Node: node, Key: key}}
	r.steps = append(r.steps, s)
	return s
}

// finish keeps a step's result and ends the question that waits for it.
func (r *record) finish(at time.Time, step int, node, key string, st steps.Step, result []byte) {
	s := r.enter(step, node, key)
	s.Kind, s.Name, s.Done, s.At, s.Size = st.Kind, st.Name, true, at, len(result)
	s.result = slices.Clone(result)
	for _, q := range r.questions {
		if q.Step == step && q.Node == node && q.Key == key {
			q.answered = true
		}
	}
}

// answered reports whether the question that a step completes has its answer.
func (r *record) answered(step int, node, key string) bool {
	return slices.ContainsFunc(r.questions, func(q *question) bool {
		return q.answered && q.Step == step && q.Node == node && q.Key == key
	})
}

// find returns the run whose id begins with typed.
func (s *Store) find(typed string) (*record, error) {
	prefix, err := run.ParseID(typed)
	if err != nil {
		return nil, err
	}
	var ids []string
	var found *record
	for _, r := range s.runs {
		if strings.HasPrefix(r.info.ID, prefix) {
			ids, found = append(ids, r.info.ID), r
		}
	}
	if _, err := run.PickID(typed, ids); err != nil {
		return nil, err
	}
	return found, nil
}

// with calls fn with the run whose id begins with typed.
func with[T any](s *Store, typed string, fn func(r *record) (T, error)) (T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.find(typed)
	if err != nil {
		var none T
		return none, err
	}
	return fn(r)
}

// Create begins a run.
func (s *Store) Create(_ context.Context, info run.Info, start run.Checkpoint) (run.Journal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	info.ID = run.NewID()
	for slices.ContainsFunc(s.runs, func(r *record) bool { return r.info.ID == info.ID }) {
		info.ID = run.NewID()
	}
	if err := s.put(info.ClaimsOf(info.ID)); err != nil {
		return nil, err
	}
	info.Claims = nil
	info.Status, info.Started, info.Updated = run.Running, now, now
	info.Output, info.Error, info.Code, info.Until, info.Breakpoint, info.Undone = "", "", "", time.Time{}, "", nil
	info.Held, info.Gap, info.Damaged, info.Takeovers = nil, nil, false, 0
	r := &record{info: info, checkpoints: []run.Checkpoint{start}}
	r.info = r.currentInfo() // with copies of the caller's maps
	s.runs = append(s.runs, r)
	return r.lend(s), nil
}

// Open resumes a run.
func (s *Store) Open(_ context.Context, id string, unless ...run.Status) (run.Journal, run.Recovery, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.find(id)
	if err == nil {
		err = r.idle()
	}
	if err == nil && slices.Contains(unless, r.info.Status) {
		err = &run.EndedError{ID: r.info.ID, Status: r.info.Status}
	}
	if err != nil {
		return nil, run.Recovery{}, err
	}
	progress := r.come()
	r.info.Takeovers = docs.Takeovers(r.info, r.died, progress != r.progress)
	if r.died {
		r.died, r.progress = false, progress
	}
	found := run.Recovery{Info: r.currentInfo(), Last: *r.last(), Tasks: slices.Clone(r.tasks)}
	j := r.lend(s)
	r.info.Status, r.info.Error, r.info.Code, r.info.Until, r.info.Breakpoint, r.info.Undone = run.Running, "", "", time.Time{}, "", nil
	r.info.Updated = s.now()
	return j, found, nil
}

// Orphan takes the lease of a run from its journal without a word to that, as when the
// journal's process gives no sign of life. It is for tests.
func (s *Store) Orphan(id string) error {
	_, err := with(s, id, func(r *record) (any, error) {
		if r.holder != nil {
			r.died, r.holder = r.holder.working, nil
		}
		return nil, nil
	})
	return err
}

// AcceptGap makes a run with a gap one that can be opened.
func (s *Store) AcceptGap(_ context.Context, id string) error {
	_, err := with(s, id, func(r *record) (_ any, err error) {
		if err = r.checkLease(); err == nil {
			r.info.Gap = nil
		}
		return nil, err
	})
	return err
}

// Claim gives a run that has no owner to owner.
func (s *Store) Claim(_ context.Context, id string, owner auth.Owner) (*auth.Owner, error) {
	return with(s, id, func(r *record) (*auth.Owner, error) {
		if r.info.Owner == nil {
			r.info.Owner = &owner
		}
		has := *r.info.Owner
		return &has, nil
	})
}

// Runs returns the runs that match, newest first.
func (s *Store) Runs(_ context.Context, q run.Query) ([]run.Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var infos []run.Info
	runs := s.runs
	if q.Before != "" {
		before, err := s.find(q.Before)
		if err != nil {
			return nil, err
		}
		runs = runs[:slices.Index(runs, before)]
	}
	for _, r := range slices.Backward(runs) {
		if q.Limit > 0 && len(infos) == q.Limit {
			break
		}
		if (q.Dir == "" || q.Dir == r.info.Dir) && (q.Agent == "" || q.Agent == r.info.Agent) &&
			(!q.Unfinished || r.info.Status != run.Done) && (q.Origin == "" || q.Origin == r.info.Origin.String()) && q.View.Includes(r.info.Owner) {
			infos = append(infos, r.currentInfo().Head())
		}
	}
	return infos, nil
}

// Info returns what describes a run.
func (s *Store) Info(_ context.Context, id string) (run.Info, error) {
	return with(s, id, func(r *record) (run.Info, error) { return r.currentInfo(), nil })
}

// History returns what is on record of a run.
func (s *Store) History(_ context.Context, id string) (run.History, error) {
	return with(s, id, func(r *record) (run.History, error) {
		h := run.History{Info: r.currentInfo(), Visits: slices.Clone(r.visits), Signals: slices.Clone(r.signals)}
		for _, t := range r.tasks {
			h.Visits = append(h.Visits, t.Visit)
		}
		h.Pending, h.Waiting = run.Split(r.listQuestions(false))
		events, err := r.eventsAfter(0, 0)
		if err != nil {
			return run.History{}, err
		}
		for _, ev := range events {
			h.Events = append(h.Events, ev.JSON)
		}
		for _, st := range r.steps {
			h.Steps = append(h.Steps, st.StepRecord)
		}
		return h, nil
	})
}

// Pending returns the questions that wait.
func (s *Store) Pending(_ context.Context, id string) ([]run.Pending, error) {
	questions, _, err := s.questions(id, false)
	return questions, err
}

// Waits returns what a run waits for besides answers.
func (s *Store) Waits(_ context.Context, id string) ([]run.Pending, error) {
	_, others, err := s.questions(id, false)
	return others, err
}

// Signal keeps a signal.
func (s *Store) Signal(_ context.Context, id, name string, value []byte, key string) (run.Signal, error) {
	return with(s, id, func(r *record) (run.Signal, error) {
		if i := slices.IndexFunc(r.signals, func(s run.Signal) bool { return key != "" && s.Key == key }); i >= 0 {
			return r.signals[i], nil
		}
		if !r.info.Status.Resumable() {
			return run.Signal{}, &run.EndedError{ID: r.info.ID, Status: r.info.Status}
		}
		r.info.Updated = s.now()
		r.signals = append(r.signals, run.Signal{Number: len(r.signals) + 1, Name: name, Value: slices.Clone(value), At: r.info.Updated, Key: key})
		return r.signals[len(r.signals)-1], nil
	})
}

// Withdraw withdraws a signal.
func (s *Store) Withdraw(_ context.Context, id string, number int) (bool, error) {
	return with(s, id, func(r *record) (bool, error) {
		if number < 1 || number > len(r.signals) || r.signals[number-1].Taken != "" {
			return false, nil
		}
		r.signals[number-1].Taken = run.Withdrawn
		return true, nil
	})
}

// Signals returns the signals of a run.
func (s *Store) Signals(_ context.Context, id string) ([]run.Signal, error) {
	return with(s, id, func(r *record) ([]run.Signal, error) { return slices.Clone(r.signals), nil })
}

// Answered returns the questions that have their answers.
func (s *Store) Answered(_ context.Context, id string) ([]run.Pending, error) {
	questions, _, err := s.questions(id, true)
	return questions, err
}

func (s *Store) questions(id string, answered bool) (questions, others []run.Pending, err error) {
	list, err := with(s, id, func(r *record) ([]run.Pending, error) { return r.listQuestions(answered), nil })
	questions, others = run.Split(list)
	return questions, others, err
}

// listQuestions returns the questions that have their answers, or the ones that wait, and likewise the other waits of the run.
func (r *record) listQuestions(answered bool) (list []run.Pending) {
	for _, q := range r.questions {
		if q.answered == answered {
			list = append(list, q.Pending)
		}
	}
	return list
}

// Events returns events on record.
func (s *Store) Events(_ context.Context, id string, after, limit int) ([]run.EventRecord, error) {
	return with(s, id, func(r *record) ([]run.EventRecord, error) { return r.eventsAfter(after, limit) })
}

func (r *record) eventsAfter(after, limit int) (found []run.EventRecord, err error) {
	for i := max(0, after); i < len(r.events) && (limit <= 0 || len(found) < limit); i++ {
		text, err := r.events[i].MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("event %s of run %s: %w", r.events[i].Body.Type(), r.info.ID, err)
		}
		found = append(found, run.EventRecord{Number: i + 1, JSON: text})
	}
	return found, nil
}

// Step returns the result of a step on record.
func (s *Store) Step(_ context.Context, id string, number int) ([]byte, error) {
	return with(s, id, func(r *record) ([]byte, error) {
		i := slices.IndexFunc(r.steps, func(st *stepRecord) bool { return st.Number == number && st.Done })
		if i < 0 {
			return nil, fault.New(fault.NotFound, "run %s has no result of a step %d", r.info.ID, number)
		}
		return slices.Clone(r.steps[i].result), nil
	})
}

// Checkpoint returns the state after a super-step.
func (s *Store) Checkpoint(_ context.Context, id string, step int) (run.Checkpoint, error) {
	return with(s, id, func(r *record) (run.Checkpoint, error) {
		switch step {
		case -1:
			return *r.last(), nil
		case 0:
			return r.checkpoints[0], nil
		}
		first := r.checkpoints[0].Step
		if step < first || step > r.last().Step {
			return run.Checkpoint{}, fault.New(fault.NotFound, "run %s has no super-step %d: it has come to %d", r.info.ID, step, r.last().Step)
		}
		return r.checkpoints[step-first], nil
	})
}

// Answer answers a pending question.
func (s *Store) Answer(_ context.Context, id, questionID string, reply run.Reply) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.find(id)
	if err == nil {
		err = r.answerable()
	}
	if err != nil {
		return err
	}
	i := slices.IndexFunc(r.questions, func(q *question) bool { return q.ID == questionID })
	if i < 0 {
		return fault.New(fault.NotFound, "run %s has no question %q", r.info.ID, questionID)
	}
	q := r.questions[i]
	if q.answered {
		return fmt.Errorf("question %q of run %s: %w", questionID, r.info.ID, run.ErrAnswered)
	}
	answer, err := json.Marshal(reply)
	if err != nil {
		return err
	}
	r.info.Updated = s.now()
	r.finish(r.info.Updated, q.Step, q.Node, q.Key, steps.Step{Kind: steps.Question, Name: q.ID}, answer)
	return nil
}

// Delete forgets runs that neither work nor wait.
func (s *Store) Delete(_ context.Context, ids ...string) (deleted []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs = slices.DeleteFunc(s.runs, func(r *record) bool {
		gone := r.holder == nil && r.info.Status.Over() && slices.Contains(ids, r.info.ID)
		if gone {
			deleted = append(deleted, r.info.ID)
		}
		return gone
	})
	return deleted, nil
}

// Close ends all leases.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs {
		if r.holder != nil {
			r.holder.close()
		}
	}
	return nil
}

// journal writes to a record while it is the record's holder.
type journal struct {
	store  *Store
	run    *record
	epoch  int
	events []event.Event // not yet kept
	closed bool

	working bool // see Working

	lease context.Context
	end   context.CancelCauseFunc // of lease
}

// ID returns the id of the run.
func (j *journal) ID() string { return j.run.info.ID }

// write changes the record and keeps the events that came before, unless change
// fails; then nothing is changed.
func (j *journal) write(change func(at time.Time) error) error {
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	if err := j.check(); err != nil {
		return err
	}
	at := j.store.now()
	if err := change(at); err != nil {
		return err
	}
	j.run.info.Updated = at
	j.flush()
	return nil
}

// check returns an error unless the journal holds the lease of its epoch. The caller
// holds the store's lock.
func (j *journal) check() error {
	switch {
	case j.closed:
		return run.ErrClosed
	case j.epoch != j.run.epoch || j.run.holder != j:
		err := fmt.Errorf("run %s: %w", j.run.info.ID, run.ErrLeaseLost)
		j.end(err)
		return err
	}
	return nil
}

// close gives the lease back. The caller holds the store's lock.
func (j *journal) close() {
	if j.run.holder == j {
		j.run.holder = nil
	}
	j.closed = true
	j.end(run.ErrClosed)
}

// Lease returns a context that ends with the lease.
func (j *journal) Lease() context.Context { return j.lease }

// Confirm returns an error if the lease is lost.
func (j *journal) Confirm(context.Context) error {
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	return j.check()
}

// Working notes that the work begins.
func (j *journal) Working(context.Context) error {
	return j.write(func(time.Time) error {
		j.working = true
		return nil
	})
}

// SetTerms replaces what a client asked for.
func (j *journal) SetTerms(_ context.Context, info run.Info) error {
	return j.write(func(time.Time) error {
		j.run.info.Terms = info.Terms
		return nil
	})
}

// Gap notes that a part of the run is not on record.
func (j *journal) Gap(_ context.Context, g run.Gap) error {
	return j.write(func(time.Time) error {
		g.Nodes = maps.Clone(g.Nodes)
		j.run.info.Gap = &g
		if g.Status != "" {
			j.run.info.Status, j.run.info.Error = g.Status, g.Error
		}
		return nil
	})
}

func (j *journal) flush() {
	j.run.events = append(j.run.events, j.events...)
	j.events = nil
}

// Finished keeps the result of a task.
func (j *journal) Finished(_ context.Context, t run.TaskRecord) error {
	return j.write(func(time.Time) error {
		tasks := slices.DeleteFunc(j.run.tasks, func(o run.TaskRecord) bool {
			return o.Step == t.Step && o.Result.Node == t.Result.Node
		})
		j.run.tasks = append(tasks, t)
		slices.SortFunc(j.run.tasks, func(a, b run.TaskRecord) int {
			return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Result.Node, b.Result.Node))
		})
		j.run.questions = slices.DeleteFunc(j.run.questions, func(q *question) bool { return !q.answered && q.Step == t.Step && q.Node == t.Result.Node })
		return nil
	})
}

// Commit ends a super-step.
func (j *journal) Commit(_ context.Context, c run.Checkpoint, visits []run.Visit) error {
	return j.write(func(time.Time) error {
		if last := j.run.last().Step; c.Step != last+1 {
			return fmt.Errorf("run %s: super-step %d cannot follow super-step %d", j.ID(), c.Step, last)
		}
		c.Visits = maps.Clone(c.Visits)
		j.run.checkpoints = append(j.run.checkpoints, c)
		j.run.visits = append(j.run.visits, visits...)
		j.run.tasks = slices.DeleteFunc(j.run.tasks, func(t run.TaskRecord) bool { return t.Step <= c.Step })
		j.run.questions = slices.DeleteFunc(j.run.questions, func(q *question) bool { return !q.answered && q.Step <= c.Step })
		return nil
	})
}

// SetState replaces the state of the last checkpoint.
func (j *journal) SetState(_ context.Context, state graph.State) error {
	return j.write(func(time.Time) error {
		j.run.last().State = state
		return nil
	})
}

// Asked keeps a question.
func (j *journal) Asked(_ context.Context, p run.Pending) error {
	return j.write(func(time.Time) error {
		i := slices.IndexFunc(j.run.questions, func(q *question) bool { return q.ID == p.ID })
		if i < 0 {
			j.run.questions = append(j.run.questions, &question{Pending: p})
			return nil
		}
		if j.run.questions[i].answered {
			return fmt.Errorf("question %q of run %s: %w", p.ID, j.ID(), run.ErrAnswered)
		}
		p.Asked = j.run.questions[i].Asked
		j.run.questions[i].Pending = p
		return nil
	})
}

// Take takes a signal.
func (j *journal) Take(_ context.Context, name, by string, before time.Time) (s run.Signal, ok bool, err error) {
	err = j.write(func(time.Time) error {
		if s, ok = run.FirstOf(j.run.signals, name, by, before); ok {
			s.Taken = by
			j.run.signals[s.Number-1].Taken = by
		}
		return nil
	})
	return s, ok, err
}

// Event keeps an event with the next record.
func (j *journal) Event(ev event.Event) int {
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	j.events = append(j.events, ev)
	return len(j.run.events) + len(j.events)
}

// End sets the status of the run.
func (j *journal) End(_ context.Context, e run.Ending) error {
	return j.write(func(time.Time) error {
		i := &j.run.info
		i.Status, i.Output, i.Error, i.Code, i.Until, i.Breakpoint, i.Undone = e.Status, e.Output, e.Error, e.Code, e.Until.UTC(), e.Breakpoint, e.Undone
		if e.Status == run.Done {
			j.run.questions = slices.DeleteFunc(j.run.questions, func(q *question) bool { return !q.answered })
		}
		return nil
	})
}

// Close gives the lease back.
func (j *journal) Close() error {
	err := j.write(func(time.Time) error { return nil })
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	j.close()
	if errors.Is(err, run.ErrClosed) || errors.Is(err, run.ErrLeaseLost) {
		return nil // there is nothing to give back
	}
	return err
}

// Task returns the record of a task's steps.
func (j *journal) Task(step int, node string) steps.Recorder {
	return &task{j: j, step: step, node: node}
}

// task records the steps of one task.
type task struct {
	j    *journal
	step int
	node string
}

// Lookup returns what is known of a step.
func (t *task) Lookup(_ context.Context, key string, _ steps.Step) (steps.Record, error) {
	t.j.store.mu.Lock()
	defer t.j.store.mu.Unlock()
	if err := t.j.check(); err != nil {
		return steps.Record{}, err
	}
	s := t.j.run.step(t.step, t.node, key)
	switch {
	case s == nil:
		return steps.Record{}, nil
	case s.Done:
		return steps.Record{Done: true, Result: slices.Clone(s.result)}, nil
	}
	return steps.Record{Begun: true}, nil
}

// Begin notes that an effect is about to be made.
func (t *task) Begin(_ context.Context, key string, st steps.Step) error {
	return t.j.write(func(at time.Time) error {
		s := t.j.run.enter(t.step, t.node, key)
		if s.Done {
			return fmt.Errorf("step %s of node %q is done and cannot begin", key, t.node)
		}
		s.Kind, s.Name, s.At = st.Kind, st.Name, at
		return nil
	})
}

// Forget takes a Begin back.
func (t *task) Forget(_ context.Context, key string) error {
	return t.j.write(func(time.Time) error {
		s := t.j.run.step(t.step, t.node, key)
		if s != nil && !s.Done {
			t.j.run.steps = slices.DeleteFunc(t.j.run.steps, func(o *stepRecord) bool { return o == s })
		}
		return nil
	})
}

// Record keeps the result of a step.
func (t *task) Record(_ context.Context, key string, st steps.Step, result []byte) error {
	return t.j.write(func(at time.Time) error {
		if t.j.run.answered(t.step, t.node, key) {
			return fmt.Errorf("step %s of run %s: %w", key, t.j.ID(), run.ErrAnswered)
		}
		t.j.run.finish(at, t.step, t.node, key, st, result)
		return nil
	})
}
