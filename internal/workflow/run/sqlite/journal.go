package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"loki/internal/base/fault/steps"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/record"
)

// journal writes the record of a run while it holds the run's lease.
//
// What the journal itself has written it need not read: where the values of the last
// checkpoint are, which steps of the super-step under way are on record, and which
// questions wait. Only the lease's holder changes them.
type journal struct {
	store *Store
	id    int64 // of the run's row
	name  string
	token []byte
	epoch int64

	lease context.Context         // ends when the lease is lost, or the journal closed
	lose  context.CancelCauseFunc // ends it
	alive atomic.Pointer[clocks]  // last sign of life

	// mu is held during a write, and guards what follows. It is taken before the
	// store's.
	mu        sync.Mutex
	closed    bool
	last      record.Snapshot
	blobs     blobKeeper
	steps     map[stepKey]stepEntry // of super-steps after the last
	questions map[stepKey]bool      // open ones
	hasAsked  bool                  // there was one
	tasks     int                   // the last super-step of which there may be some, see Finished; 0 for none
	nextStep  int                   // numbers of the next rows
	nextBatch int
	written   int // events on record

	events record.Queue // not written yet
}

// stepKey names a step of the run.
type stepKey struct {
	step      int
	node, key string
}

// stepEntry says where a step is on record.
type stepEntry struct {
	n    int
	done bool
}

// ID returns the id of the run.
func (j *journal) ID() string { return j.name }

// write runs fn in a transaction in which the lease is held, with the events that came
// before. Only if that is committed, done is called, to note what has changed.
func (j *journal) write(op string, fn func(c *conn) error, done func()) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return run.ErrClosed
	}
	return j.writeLocked(op, fn, done)
}

func (j *journal) writeLocked(op string, fn func(c *conn) error, done func()) error {
	batch := j.events.Unwritten()
	events, err := j.store.seal().Events(batch, &j.last)
	if err != nil {
		return err
	}
	err = j.store.write(op, false, func(c *conn) error {
		j.blobs.rollback() // of a call before, whose transaction failed for the sake of another run
		if err := j.checkWriting(c); err != nil {
			return err
		}
		if len(batch) > 0 {
			if err := j.writeEvents(c, events); err != nil {
				return err
			}
		}
		return fn(c)
	})
	if err != nil {
		j.noteLoss(err)
		return err
	}
	j.blobs.commit()
	j.dropFlushed(batch)
	if done != nil {
		done()
	}
	return nil
}

// noteLoss ends the journal's lease if err says that it is lost.
func (j *journal) noteLoss(err error) {
	if errors.Is(err, run.ErrLeaseLost) {
		j.lose(err)
	}
}

// touch sets the time of the run's last change, for records that do not tell it
// themselves.
func (j *journal) touch(c *conn) error {
	_, err := c.exec("UPDATE runs SET updated = ? WHERE id = ?", j.now(), j.id)
	return err
}

func (j *journal) now() int64 { return j.store.o.Now().UnixNano() }

// Working notes that the work begins.
func (j *journal) Working(context.Context) error {
	return j.write("working", func(c *conn) error {
		_, err := c.exec("UPDATE leases SET working = 1 WHERE run = ?", j.id)
		return err
	}, nil)
}

// SetTerms replaces what a client asked for.
func (j *journal) SetTerms(_ context.Context, info run.Info) error {
	doc, err := j.store.seal().About(info)
	if err != nil {
		return err
	}
	return j.write("terms", func(c *conn) error {
		if err := j.blobs.put(c, doc); err != nil {
			return err
		}
		_, err := c.exec("UPDATE runs SET about = ? WHERE id = ?", doc.Data, j.id)
		return err
	}, nil)
}

// Finished keeps the result of a task.
func (j *journal) Finished(_ context.Context, t run.TaskRecord) error {
	doc, writes, err := j.store.seal().Task(t)
	if err != nil {
		return err
	}
	return j.write("finished", func(c *conn) error {
		if err := j.blobs.put(c, doc, writes); err != nil {
			return err
		}
		j.tasks = max(j.tasks, t.Step)
		if _, err := c.exec("INSERT OR REPLACE INTO tasks (run, step, node, doc, writes) VALUES (?, ?, ?, ?, ?)", j.id, t.Step, t.Result.Node, doc.Data, writes.Data); err != nil {
			return err
		}
		if len(j.questions) > 0 {
			if _, err := c.exec("DELETE FROM questions WHERE run = ? AND NOT answered AND step = ? AND node = ?", j.id, t.Step, t.Result.Node); err != nil {
				return err
			}
		}
		return j.touch(c)
	}, nil)
}

// Commit ends a super-step.
func (j *journal) Commit(_ context.Context, cp run.Checkpoint, visits []run.Visit) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return run.ErrClosed
	}
	if cp.Step != j.last.Step+1 {
		return fmt.Errorf("run %s: super-step %d cannot follow super-step %d", j.name, cp.Step, j.last.Step)
	}
	e, err := j.store.seal().Checkpoint(&j.last, cp, visits)
	if err != nil {
		return fmt.Errorf("recording super-step %d: %w", cp.Step, err)
	}
	// The events may repeat values of this checkpoint.
	before := j.last
	cp.Visits = before.Visits
	j.last = record.Snapshot{Checkpoint: cp, Places: e.Places}
	err = j.writeLocked("commit", func(c *conn) error {
		if err := writeCheckpoint(c, &e, &j.blobs, j.now()); err != nil {
			return err
		}
		if j.tasks > 0 {
			if _, err := c.exec("DELETE FROM tasks WHERE run = ? AND step <= ?", j.id, cp.Step); err != nil {
				return err
			}
		}
		if len(j.questions) == 0 {
			return nil
		}
		_, err := c.exec("DELETE FROM questions WHERE run = ? AND NOT answered AND step <= ?", j.id, cp.Step)
		return err
	}, func() {
		record.AddVisits(j.last.Visits, e.Visited)
		if j.tasks <= cp.Step {
			j.tasks = 0
		}
		maps.DeleteFunc(j.steps, func(k stepKey, _ stepEntry) bool { return k.step <= cp.Step })
		maps.DeleteFunc(j.questions, func(k stepKey, _ bool) bool { return k.step <= cp.Step })
	})
	if err != nil {
		j.last = before
	}
	return err
}

// SetState replaces the state of the last checkpoint.
func (j *journal) SetState(_ context.Context, state graph.State) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return run.ErrClosed
	}
	e, err := j.store.seal().SetState(&j.last, state)
	if err != nil {
		return fmt.Errorf("recording the state of run %s: %w", j.name, err)
	}
	return j.writeLocked("set", func(c *conn) error { return writeChanges(c, &e, &j.blobs) }, func() {
		j.last.State, j.last.Places = state, e.Places
	})
}

// Asked keeps a question.
func (j *journal) Asked(_ context.Context, p run.Pending) error {
	return j.write("asked", func(c *conn) error {
		var answered bool
		var before []byte
		known, err := c.row("SELECT answered, doc FROM questions WHERE run = ? AND id = ?", []any{j.id, p.ID}, &answered, &before)
		if err != nil {
			return err
		}
		if answered {
			return fmt.Errorf("question %q of run %s: %w", p.ID, j.name, run.ErrAnswered)
		}
		if known {
			first, err := j.store.readBlobs(c).Pending(p.Key, before)
			if err != nil {
				return err
			}
			p.Asked = first.Asked
		}
		doc, err := j.store.seal().Encode(p)
		if err != nil {
			return fmt.Errorf("recording question %q: %w", p.ID, err)
		}
		if err := j.blobs.put(c, doc); err != nil {
			return err
		}
		if _, err := c.exec(`
			INSERT INTO questions (run, id, n, step, node, key, answered, doc)
			VALUES (?1, ?2, (SELECT coalesce(max(n), 0) + 1 FROM questions WHERE run = ?1), ?3, ?4, ?5, 0, ?6)
			ON CONFLICT (run, id) DO UPDATE SET step = ?3, node = ?4, key = ?5, doc = ?6`,
			j.id, p.ID, p.Step, p.Node, p.Key, doc.Data); err != nil {
			return err
		}
		return j.touch(c)
	}, func() { j.questions[stepKey{p.Step, p.Node, p.Key}], j.hasAsked = true, true })
}

// End sets the status of the run.
func (j *journal) End(_ context.Context, e run.Ending) error {
	doc, err := j.store.seal().Ending(e)
	if err != nil {
		return fmt.Errorf("recording the end of run %s: %w", j.name, err)
	}
	return j.write("end", func(c *conn) error {
		if err := j.blobs.put(c, doc); err != nil {
			return err
		}
		if _, err := c.exec("UPDATE runs SET status = ?, updated = ?, ending = ? WHERE id = ?", string(e.Status), j.now(), doc.Data, j.id); err != nil {
			return err
		}
		if e.Status != run.Done {
			return nil
		}
		_, err := c.exec("DELETE FROM questions WHERE run = ? AND NOT answered", j.id)
		return err
	}, nil)
}

// Event keeps an event with the next record.
func (j *journal) Event(ev event.Event) int {
	return j.events.Add(j.store.seal(), ev, j.store.o.EventDelay, j.writeSoon)
}

// writeSoon writes the events that no record has taken along. If that fails, the next record
// takes them and says so.
func (j *journal) writeSoon() {
	if j.events.Due() {
		_ = j.write("events", func(*conn) error { return nil }, nil)
	}
}

// Close writes the events that are left and gives the lease back. If the file cannot be written, the lease is given back later.
func (j *journal) Close() error {
	j.events.Stop()
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil
	}
	idle := len(j.events.Unwritten()) == 0
	err := j.writeLocked("close", func(c *conn) error {
		delete(j.store.leased, j.id)
		if _, err := c.exec("DELETE FROM leases WHERE run = ?", j.id); err != nil || idle {
			return err
		}
		return j.touch(c)
	}, nil)
	j.closed = true
	j.mu.Unlock()

	j.lose(run.ErrClosed)
	j.store.forget(j)
	if lost := errors.Is(err, run.ErrLeaseLost); lost && idle {
		return nil // there was nothing left to write or to give back
	} else if err != nil && !lost {
		j.store.leave(j)
	}
	return err
}

// Task returns the record of a task's steps.
func (j *journal) Task(step int, node string) steps.Recorder { return &task{j, step, node} }

// task records the steps of one task.
type task struct {
	j    *journal
	step int
	node string
}

// find returns where the step with key is on record. The caller holds j.mu.
func (t *task) find(key string) (e stepEntry, ok bool, err error) {
	k := stepKey{t.step, t.node, key}
	open := t.j.questions[k] // another process may answer it
	if t.step > t.j.last.Step && !open {
		e, ok = t.j.steps[k]
		return e, ok, nil
	}
	err = t.j.store.view(context.Background(), func(c *conn) error {
		if open {
			if answered, err := t.answered(c, key); err != nil || !answered {
				return err
			}
		}
		ok, err = c.row("SELECT n, result IS NOT NULL FROM steps WHERE run = ? AND step = ? AND node = ? AND key = ?", []any{t.j.id, t.step, t.node, key}, &e.n, &e.done)
		return err
	})
	if open && e.done {
		delete(t.j.questions, k)
		if t.step > t.j.last.Step {
			t.j.steps[k] = e
		}
	}
	return e, ok, err
}

// answered reports whether the question that a step completes has its answer.
func (t *task) answered(c *conn, key string) (answered bool, err error) {
	_, err = c.row("SELECT answered FROM questions WHERE run = ? AND step = ? AND node = ? AND key = ?", []any{t.j.id, t.step, t.node, key}, &answered)
	return answered, err
}

// Lookup returns what is known of a step.
func (t *task) Lookup(ctx context.Context, key string, _ steps.Step) (steps.Record, error) {
	t.j.mu.Lock()
	if t.j.closed {
		t.j.mu.Unlock()
		return steps.Record{}, run.ErrClosed
	}
	e, ok, err := t.find(key)
	t.j.mu.Unlock()
	switch {
	case err != nil || !ok:
		return steps.Record{}, err
	case !e.done:
		return steps.Record{Begun: true}, nil
	}
	r := steps.Record{Done: true}
	err = t.j.store.view(ctx, func(c *conn) error {
		var data []byte
		ok, err := c.row("SELECT result FROM steps WHERE run = ? AND n = ?", []any{t.j.id, e.n}, &data)
		if err != nil {
			return err
		}
		if !ok {
			return record.ErrDamaged
		}
		r.Result, err = t.j.store.readBlobs(c).JSON(data)
		return err
	})
	if err != nil {
		return steps.Record{}, err
	}
	return r, nil
}

// Begin notes that an effect is about to be made.
func (t *task) Begin(_ context.Context, key string, st steps.Step) error {
	return t.change("begin", key, func(c *conn, e stepEntry, known bool) (stepEntry, bool, error) {
		switch {
		case known && e.done:
			return e, known, fmt.Errorf("step %s of node %q is done and cannot begin", key, t.node)
		case known:
			_, err := c.exec("UPDATE steps SET kind = ?, name = ?, at = ? WHERE run = ? AND n = ?", string(st.Kind), st.Name, t.j.now(), t.j.id, e.n)
			return e, known, err
		}
		n, err := t.insert(c, key, st, 0, nil)
		return stepEntry{n: n}, true, err
	})
}

// Forget takes a Begin back.
func (t *task) Forget(_ context.Context, key string) error {
	return t.change("forget", key, func(c *conn, e stepEntry, known bool) (stepEntry, bool, error) {
		if !known || e.done {
			return e, known, nil
		}
		_, err := c.exec("DELETE FROM steps WHERE run = ? AND n = ?", t.j.id, e.n)
		return e, false, err
	})
}

// Record keeps the result of a step.
func (t *task) Record(_ context.Context, key string, st steps.Step, result []byte) error {
	doc := t.j.store.seal().EncodeJSON(result)
	k := stepKey{t.step, t.node, key}
	return t.change("record", key, func(c *conn, e stepEntry, known bool) (stepEntry, bool, error) {
		if err := t.j.blobs.put(c, doc); err != nil {
			return e, known, err
		}
		answered, err := known && e.done && st.Kind == steps.Question, error(nil)
		if t.j.questions[k] && !answered {
			answered, err = t.answered(c, key)
		}
		if err != nil || answered {
			return e, known, cmp.Or(err, fmt.Errorf("step %s of run %s: %w", key, t.j.name, run.ErrAnswered))
		}
		if t.j.questions[k] {
			if _, err := c.exec("UPDATE questions SET answered = 1 WHERE run = ? AND step = ? AND node = ? AND key = ?", t.j.id, t.step, t.node, key); err != nil {
				return e, known, err
			}
		}
		if known {
			_, err := c.exec("UPDATE steps SET kind = ?, name = ?, at = ?, size = ?, result = ? WHERE run = ? AND n = ?",
				string(st.Kind), st.Name, t.j.now(), len(result), doc.Data, t.j.id, e.n)
			return stepEntry{e.n, true}, true, err
		}
		n, err := t.insert(c, key, st, len(result), doc.Data)
		return stepEntry{n, true}, true, err
	})
}

// insert writes a new step and returns its number. Answers that other processes give to a run that has asked have numbers, too.
func (t *task) insert(c *conn, key string, st steps.Step, size int, result []byte) (n int, err error) {
	n = t.j.nextStep
	if t.j.hasAsked {
		if _, err := c.row("SELECT max(?, (SELECT coalesce(max(n), 0) + 1 FROM steps WHERE run = ?))", []any{n, t.j.id}, &n); err != nil {
			return n, err
		}
	}
	_, err = c.exec("INSERT INTO steps (run, n, step, node, key, kind, name, at, size, result) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		t.j.id, n, t.step, t.node, key, string(st.Kind), st.Name, t.j.now(), size, result)
	return n, err
}

// change writes what fn makes of the step's entry; known is false for none.
func (t *task) change(op, key string, fn func(c *conn, e stepEntry, known bool) (stepEntry, bool, error)) error {
	j := t.j
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return run.ErrClosed
	}
	before, known, err := t.find(key)
	if err != nil {
		return err
	}
	var after stepEntry
	var keep bool
	return j.writeLocked(op, func(c *conn) (err error) {
		after, keep, err = fn(c, before, known)
		return err
	}, func() {
		k := stepKey{t.step, t.node, key}
		if !keep {
			delete(j.steps, k)
			return
		}
		if t.step > j.last.Step {
			j.steps[k] = after
		}
		j.nextStep = max(j.nextStep, after.n+1)
		if after.done {
			delete(j.questions, k)
		}
	})
}
