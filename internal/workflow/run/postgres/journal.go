package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/event"
	"loki/internal/service/postgres"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/record"
)

// journal writes the record of a run while it holds the run's lease.
//
// What the journal itself has written it need not read: where the values of the last checkpoint are, and which
// steps of the super-step under way are on record. Only the holder of the lease changes them. Answers come
// from others too, so that steps of questions are always looked up.
type journal struct {
	store  *Store
	member *postgres.Member
	id     int64 // of the run's row
	name   string
	epoch  int64

	lease context.Context         // ends when the lease is lost, or the journal closed, or the run must be canceled
	lose  context.CancelCauseFunc // ends it
	leave func() bool             // ends the wait for the end of the member
	gone  atomic.Pointer[error]   // why the lease is lost; nil as long as it is not

	// mu is held during a write, and guards what follows.
	mu      sync.Mutex
	closed  bool
	wrote   int64     // number of the last write
	number  int64     // the last that was given to one
	unsure  []attempt // after wrote; one of them at most was committed
	again   int       // super-step of a commit whose caller does not know that it was made; 0 for none
	last    record.Snapshot
	blobs   map[record.Hash]bool // of the run, on record
	steps   map[stepKey]bool     // of super-steps after the last; true if done
	asked   map[stepKey]bool     // the ones that complete questions
	tasks   int                  // the last super-step of which there may be some, see Finished; 0 for none
	written int                  // events on record

	events record.Queue // not written yet
}

// stepKey names a step of the run.
type stepKey struct {
	step      int
	node, key string
}

// attempt is a write that may have been committed.
type attempt struct {
	number int64
	done   func() // notes what has changed
	step   int    // of a commit of a super-step
}

func (s *Store) newJournal(m *postgres.Member) *journal {
	j := &journal{store: s, member: m, epoch: 1, blobs: make(map[record.Hash]bool), steps: make(map[stepKey]bool), asked: make(map[stepKey]bool)}
	j.lease, j.lose = context.WithCancelCause(context.Background())
	return j
}

// ID returns the id of the run.
func (j *journal) ID() string { return j.name }

// Lease returns a context that ends with the lease.
func (j *journal) Lease() context.Context { return j.lease }

// Confirm returns an error if the lease is lost.
func (j *journal) Confirm(ctx context.Context) error {
	if gone := j.gone.Load(); gone != nil {
		return *gone
	}
	if err := context.Cause(j.lease); errors.Is(err, run.ErrClosed) {
		return err
	}
	err := j.member.Confirm(ctx)
	if errors.Is(err, postgres.ErrLost) {
		return j.loseLease(err)
	}
	return j.store.explain(err)
}

// loseLease notes that the lease is lost because of err, and returns the error that says so.
func (j *journal) loseLease(err error) error {
	err = run.As(run.ErrLeaseLost, err)
	j.gone.CompareAndSwap(nil, &err)
	j.lose(err)
	return err
}

// write is what a journal writes at once.
type write struct {
	op    string
	docs  []record.Document // whose blobs are written
	steps int               // how many get a number: the last ones up to made of the run's row in leases
	step  int               // of a commit of a super-step
	quiet bool              // it is no change of the run
	rows  func(b *pgx.Batch)
	done  func() // notes what has changed; nil for nothing
}

// write makes a write, with the events that came before.
func (j *journal) write(ctx context.Context, w write) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return run.ErrClosed
	}
	return j.writeLocked(ctx, w, &j.last)
}

// writeLocked is write for one that holds j.mu. last is the state that events may repeat values of.
func (j *journal) writeLocked(ctx context.Context, w write, last *record.Snapshot) error {
	if gone := j.gone.Load(); gone != nil {
		return *gone
	}
	ctx, cancel := within(ctx)
	defer cancel()
	for {
		if err := j.settle(ctx); err != nil {
			return err
		}
		err := j.try(ctx, w, last)
		refused, ok := errors.AsType[*pgconn.PgError](err)
		if !ok || refused.Code != outOfTurn {
			return err
		}
		// Either the lease is lost, or what settle took for lost came late.
		if err := j.find(ctx); err != nil {
			return err
		}
	}
}

// try makes a write once.
func (j *journal) try(ctx context.Context, w write, last *record.Snapshot) error {
	s := j.store
	events := j.events.Unwritten()
	batch := &pgx.Batch{}
	var at int64
	if !w.quiet || len(events) > 0 {
		at = s.now()
	}
	j.number++
	batch.Queue(`SELECT loki.hold($1, $2, $3, $4, $5, $6)`, j.id, j.epoch, j.wrote, j.number, w.steps, at)
	docs := w.docs
	var doc record.Document
	if len(events) > 0 {
		var err error
		if doc, err = s.seal().Events(events, last); err != nil {
			return err
		}
		docs = append(docs[:len(docs):len(docs)], doc)
	}
	fresh := j.queueBlobs(batch, docs)
	if len(events) > 0 {
		batch.Queue(`INSERT INTO loki.events (run, first, batch) VALUES ($1, $2, $3)`, j.id, j.written+1, doc.Data)
	}
	if w.rows != nil {
		w.rows(batch)
	}
	a := attempt{number: j.number, step: w.step, done: func() {
		for _, h := range fresh {
			j.blobs[h] = true
		}
		j.dropFlushed(len(events))
		if w.done != nil {
			w.done()
		}
	}}
	s.hook(w.op)
	err := s.db.Pool().SendBatch(ctx, batch).Close()
	s.hook(w.op)
	switch {
	case err == nil:
		j.wrote = a.number
		a.done()
		return nil
	case postgres.Unknown(err):
		j.unsure = append(j.unsure, a)
	}
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == outOfTurn {
		return refused
	}
	return s.explain(err)
}

// queueBlobs has the blobs of documents written that the run does not have, and returns their hashes.
func (j *journal) queueBlobs(batch *pgx.Batch, docs []record.Document) (fresh []record.Hash) {
	var hashes, data [][]byte
	seen := make(map[record.Hash]bool)
	for _, d := range docs {
		for _, b := range d.Blobs {
			if j.blobs[b.Hash] || seen[b.Hash] {
				continue
			}
			seen[b.Hash] = true
			fresh, hashes, data = append(fresh, b.Hash), append(hashes, b.Hash[:]), append(data, b.Data)
		}
	}
	if len(fresh) > 0 {
		queueBlobs(batch, j.id, hashes, data)
	}
	return fresh
}

func queueBlobs(batch *pgx.Batch, id int64, hashes, data [][]byte) {
	batch.Queue(`INSERT INTO loki.blobs (run, hash, data) SELECT $1, b.hash, b.data FROM unnest($2::bytea[], $3::bytea[]) AS b (hash, data) ON CONFLICT DO NOTHING`, id, hashes, data)
}

// settle finds out what became of writes whose answers were lost, if there are any.
func (j *journal) settle(ctx context.Context) error {
	if len(j.unsure) == 0 {
		return nil
	}
	return j.find(ctx)
}

// find asks which write was the last one, and whether the lease is still the journal's. A write that was not
// committed by now can still come late: then the next one finds itself out of turn.
func (j *journal) find(ctx context.Context) error {
	s := j.store
	var epoch, writes int64
	var host *string
	var pid *int
	err := s.db.Pool().QueryRow(ctx, `SELECT l.epoch, l.writes, m.host, m.pid FROM loki.leases l LEFT JOIN loki.members m ON m.id = l.member WHERE l.run = $1`, j.id).
		Scan(&epoch, &writes, &host, &pid)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return j.loseLease(fault.New(fault.NotFound, "run %s was deleted while this process was stopped", j.name))
	case err != nil:
		return s.explain(err)
	case epoch != j.epoch && host != nil:
		return j.loseLease(fault.Wrap(fault.Failure, s.heldBy(j.name, *host, *pid, 0), "run %s was taken over", j.name).
			WithHint("loki --run %s shows how far it has come", j.name))
	case epoch != j.epoch:
		return j.loseLease(fault.New(fault.Failure, "run %s was taken over by another process while this one was stopped", j.name).
			WithHint("loki --run %s shows how far it has come", j.name))
	case writes == j.wrote:
		return nil
	}
	for _, a := range j.unsure {
		if a.number == writes {
			j.wrote, j.unsure, j.again = writes, nil, a.step
			a.done()
			return nil
		}
	}
	return j.loseLease(fault.New(fault.Failure, "the record of run %s has a write that this process did not make", j.name))
}

// Working notes that the work begins.
func (j *journal) Working(ctx context.Context) error {
	return j.write(ctx, write{op: "working", quiet: true, rows: func(b *pgx.Batch) {
		b.Queue(`UPDATE loki.leases SET working = true WHERE run = $1`, j.id)
	}})
}

// SetTerms replaces what a client asked for.
func (j *journal) SetTerms(ctx context.Context, info run.Info) error {
	doc, err := j.store.seal().About(info)
	if err != nil {
		return err
	}
	return j.write(ctx, write{op: "terms", docs: []record.Document{doc}, rows: func(b *pgx.Batch) {
		b.Queue(`UPDATE loki.runs SET about = $2 WHERE id = $1`, j.id, doc.Data)
	}})
}

// Finished keeps the result of a task.
func (j *journal) Finished(ctx context.Context, t run.TaskRecord) error {
	doc, writes, err := j.store.seal().Task(t)
	if err != nil {
		return err
	}
	return j.write(ctx, write{op: "finished", docs: []record.Document{doc, writes}, rows: func(b *pgx.Batch) {
		j.tasks = max(j.tasks, t.Step)
		b.Queue(`INSERT INTO loki.tasks (run, step, node, doc, writes) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (run, step, node) DO UPDATE SET doc = excluded.doc, writes = excluded.writes`,
			j.id, t.Step, postgres.Text(t.Result.Node), doc.Data, writes.Data)
		if len(j.asked) > 0 {
			b.Queue(`DELETE FROM loki.questions WHERE run = $1 AND NOT answered AND step = $2 AND node = $3`, j.id, t.Step, postgres.Text(t.Result.Node))
		}
	}})
}

// Commit ends a super-step.
func (j *journal) Commit(ctx context.Context, cp run.Checkpoint, visits []run.Visit) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return run.ErrClosed
	}
	if gone := j.gone.Load(); gone != nil {
		return *gone
	}
	if len(j.unsure) > 0 {
		within, cancel := within(ctx)
		err := j.settle(within)
		cancel()
		if err != nil {
			return err
		}
	}
	if again := j.again; again > 0 {
		if j.again = 0; again == cp.Step {
			return nil
		}
	}
	if cp.Step != j.last.Step+1 {
		return fmt.Errorf("run %s: super-step %d cannot follow super-step %d", j.name, cp.Step, j.last.Step)
	}
	e, err := j.store.seal().Checkpoint(&j.last, cp, visits)
	if err != nil {
		return fmt.Errorf("recording super-step %d: %w", cp.Step, err)
	}
	cp.Visits = j.last.Visits
	after := record.Snapshot{Checkpoint: cp, Places: e.Places} // the events may repeat values of it
	return j.writeLocked(ctx, write{op: "commit", docs: checkpointDocs(&e), step: cp.Step, rows: func(b *pgx.Batch) {
		queueCheckpoint(b, j.id, &e)
		b.Queue(`UPDATE loki.leases SET step = $2 WHERE run = $1`, j.id, cp.Step)
		if j.tasks > 0 {
			b.Queue(`DELETE FROM loki.tasks WHERE run = $1 AND step <= $2`, j.id, cp.Step)
		}
		b.Queue(`DELETE FROM loki.questions WHERE run = $1 AND NOT answered AND step <= $2`, j.id, cp.Step)
	}, done: func() {
		j.last = after
		record.AddVisits(j.last.Visits, e.Visited)
		if j.tasks <= cp.Step {
			j.tasks = 0
		}
		maps.DeleteFunc(j.steps, func(k stepKey, _ bool) bool { return k.step <= cp.Step })
		maps.DeleteFunc(j.asked, func(k stepKey, _ bool) bool { return k.step <= cp.Step })
	}}, &after)
}

// SetState replaces the state of the last checkpoint.
func (j *journal) SetState(ctx context.Context, state graph.State) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return run.ErrClosed
	}
	e, err := j.store.seal().SetState(&j.last, state)
	if err != nil {
		return fmt.Errorf("recording the state of run %s: %w", j.name, err)
	}
	after := j.last
	after.State, after.Places = state, e.Places
	return j.writeLocked(ctx, write{op: "set", docs: checkpointDocs(&e)[2:], rows: func(b *pgx.Batch) { queueChanges(b, j.id, &e) }, done: func() { j.last = after }}, &after)
}

// checkpointDocs returns the documents of a checkpoint.
func checkpointDocs(e *record.Checkpoint) []record.Document {
	docs := []record.Document{e.Doc, e.Visits}
	for _, ch := range e.Changes {
		docs = append(docs, ch.Doc)
	}
	return docs
}

func queueCheckpoint(b *pgx.Batch, id int64, e *record.Checkpoint) {
	b.Queue(`INSERT INTO loki.checkpoints (run, step, doc, visits) VALUES ($1, $2, $3, $4)`, id, e.Step, e.Doc.Data, e.Visits.Data)
	queueChanges(b, id, e)
}

// queueChanges writes what a checkpoint changes of the state, also for one that is on record.
func queueChanges(b *pgx.Batch, id int64, e *record.Checkpoint) {
	if len(e.Changes) == 0 {
		return
	}
	keys, docs := make([][]byte, len(e.Changes)), make([][]byte, len(e.Changes))
	full := make([]int32, len(e.Changes))
	for i, ch := range e.Changes {
		keys[i], full[i], docs[i] = []byte(ch.Key), int32(ch.Full), ch.Doc.Data
	}
	b.Queue(`INSERT INTO loki.state (run, step, key, full_step, doc) SELECT $1, $2, s.key, s.full_step, s.doc FROM unnest($3::bytea[], $4::integer[], $5::bytea[]) AS s (key, full_step, doc)
			ON CONFLICT (run, key, step) DO UPDATE SET full_step = excluded.full_step, doc = excluded.doc`,
		id, e.Step, keys, full, docs)
}

// Asked keeps a question.
func (j *journal) Asked(ctx context.Context, p run.Pending) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return run.ErrClosed
	}
	s := j.store
	reading, cancel := within(ctx)
	defer cancel()
	var answered bool
	var before []byte
	err := s.db.Pool().QueryRow(reading, `SELECT answered, doc FROM loki.questions WHERE run = $1 AND id = $2`, j.id, postgres.Text(p.ID)).Scan(&answered, &before)
	switch {
	case err == nil && answered:
		return fmt.Errorf("question %q of run %s: %w", p.ID, j.name, run.ErrAnswered)
	case err == nil:
		if err := s.view(s.db.Pool()).Decode(reading, j.id, func(r record.Reader) error {
			first, err := r.Pending(p.Key, before)
			p.Asked = first.Asked
			return err
		}); err != nil {
			return s.explainDamage(j.name, err)
		}
	case !errors.Is(err, pgx.ErrNoRows):
		return s.explain(err)
	}
	doc, err := s.seal().Encode(p)
	if err != nil {
		return fmt.Errorf("recording question %q: %w", p.ID, err)
	}
	return j.writeLocked(ctx, write{op: "asked", docs: []record.Document{doc}, rows: func(b *pgx.Batch) {
		b.Queue(`INSERT INTO loki.questions (run, id, n, step, node, key, answered, deadline, doc)
			VALUES ($1, $2, (SELECT coalesce(max(n), 0) + 1 FROM loki.questions WHERE run = $1), $3, $4, $5, false, $6, $7)
			ON CONFLICT (run, id) DO UPDATE SET step = excluded.step, node = excluded.node, key = excluded.key, deadline = excluded.deadline, doc = excluded.doc`,
			j.id, postgres.Text(p.ID), p.Step, postgres.Text(p.Node), postgres.Text(p.Key), nanoseconds(p.Deadline), doc.Data)
	}, done: func() { j.asked[stepKey{p.Step, p.Node, p.Key}] = true }}, &j.last)
}

// End sets the status of the run.
func (j *journal) End(ctx context.Context, e run.Ending) error {
	doc, err := j.store.seal().Ending(e)
	if err != nil {
		return fmt.Errorf("recording the end of run %s: %w", j.name, err)
	}
	return j.write(ctx, write{op: "end", docs: []record.Document{doc}, rows: func(b *pgx.Batch) {
		b.Queue(`UPDATE loki.runs SET status = $2, code = $3, until = $4, ending = $5, due = CASE WHEN $2 <> $6 OR $7 THEN NULL WHEN l.answered THEN 0
				ELSE least($4, (SELECT min(q.deadline) FROM loki.questions q WHERE q.run = $1 AND NOT q.answered AND q.deadline > l.opened)) END
			FROM loki.leases l WHERE id = $1 AND l.run = $1`, j.id, string(e.Status), string(e.Code), nanoseconds(e.Until), doc.Data, string(run.Suspended), e.Breakpoint != "")
		if e.Status == run.Done {
			b.Queue(`DELETE FROM loki.questions WHERE run = $1 AND NOT answered`, j.id)
		}
	}, done: func() { j.store.notify(j.name) }})
}

// Gap notes that a part of the run is not on record. There is no place for the note but the database: without
// that the lease counts as lost, and the run resumes from its record once the database is back.
func (j *journal) Gap(ctx context.Context, g run.Gap) error {
	data, err := j.store.seal().Gap(g)
	if err != nil {
		return err
	}
	var docs []record.Document
	rows := func(b *pgx.Batch) { b.Queue(`UPDATE loki.runs SET gap = $2 WHERE id = $1`, j.id, data) }
	if g.Status != "" {
		doc, err := j.store.seal().Ending(run.Ending{Error: g.Error})
		if err != nil {
			return err
		}
		docs = []record.Document{doc}
		rows = func(b *pgx.Batch) {
			b.Queue(`UPDATE loki.runs SET gap = $2, status = $3, code = '', until = NULL, due = NULL, ending = $4 WHERE id = $1`, j.id, data, string(g.Status), doc.Data)
		}
	}
	err = j.write(ctx, write{op: "gap", docs: docs, rows: rows, done: func() { j.store.notify(j.name) }})
	if errors.Is(err, run.ErrPassing) {
		return j.loseLease(fault.New(fault.Failure, "the database that run %s is recorded in cannot be reached: %v", j.name, err).
			WithHint("once it is back the run resumes from its record: a server does so by itself, else loki --resume %s", j.name))
	}
	return err
}

// Event keeps an event with the next record.
func (j *journal) Event(ev event.Event) int {
	return j.events.Add(j.store.seal(), ev, j.store.o.EventDelay, j.writeSoon)
}

// writeSoon writes the events that no record has taken along. If that fails, the next record
// takes them and says so.
func (j *journal) writeSoon() {
	select {
	case j.store.soon <- struct{}{}:
		defer func() { <-j.store.soon }()
	case <-j.lease.Done():
	}
	if j.events.Due() {
		_ = j.write(context.Background(), write{op: "events", quiet: true})
	}
}

// dropFlushed drops the first n events, which were written.
func (j *journal) dropFlushed(n int) {
	if n == 0 {
		return
	}
	j.written += n
	j.events.Drop(n)
	j.store.notify(j.name)
	if wrote := j.store.o.Wrote; wrote != nil {
		wrote(j.name)
	}
}

// Close writes the events that are left and gives the lease back.
func (j *journal) Close() error {
	j.events.Stop()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil
	}
	s := j.store
	idle := len(j.events.Unwritten()) == 0
	err := j.writeLocked(context.Background(), write{op: "close", quiet: true, rows: func(b *pgx.Batch) {
		b.Queue(`UPDATE loki.leases SET member = NULL WHERE run = $1`, j.id)
		b.Queue(`UPDATE loki.runs SET rested = $2 WHERE id = $1`, j.id, s.now())
	}}, &j.last)
	j.closed = true
	j.leave()
	j.lose(run.ErrClosed)
	s.forget(j.id)
	if err == nil {
		s.notify(j.name)
		return nil
	}
	s.leave(lease{run: j.id, member: j.member.ID(), epoch: j.epoch}) // if it is not another's
	if errors.Is(err, run.ErrLeaseLost) && idle {
		return nil // there was nothing left to write
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

// Lookup returns what is known of a step.
func (t *task) Lookup(ctx context.Context, key string, st steps.Step) (steps.Record, error) {
	j, s := t.j, t.j.store
	j.mu.Lock()
	closed := j.closed
	k := stepKey{t.step, t.node, key}
	done, known := j.steps[k]
	cached := t.step > j.last.Step && st.Kind != steps.Question && !j.asked[k] && len(j.unsure) == 0
	j.mu.Unlock()
	switch {
	case closed:
		return steps.Record{}, run.ErrClosed
	case cached && !known:
		return steps.Record{}, nil
	case cached && !done:
		return steps.Record{Begun: true}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var data []byte
	err := s.db.Pool().QueryRow(ctx, `SELECT result FROM loki.steps WHERE run = $1 AND step = $2 AND node = $3 AND key = $4`, j.id, t.step, postgres.Text(t.node), postgres.Text(key)).Scan(&data)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return steps.Record{}, nil
	case err != nil:
		return steps.Record{}, s.explain(err)
	case data == nil:
		return steps.Record{Begun: true}, nil
	}
	r := steps.Record{Done: true}
	err = s.view(s.db.Pool()).Decode(ctx, j.id, func(docs record.Reader) (err error) {
		r.Result, err = docs.JSON(data)
		return err
	})
	if err != nil {
		return steps.Record{}, s.explainDamage(j.name, err)
	}
	return r, nil
}

// Begin notes that an effect is about to be made.
func (t *task) Begin(ctx context.Context, key string, st steps.Step) error {
	return t.put(ctx, "begin", key, st, 0, nil)
}

// Record keeps the result of a step.
func (t *task) Record(ctx context.Context, key string, st steps.Step, result []byte) error {
	doc := t.j.store.seal().EncodeJSON(result)
	err := t.put(ctx, "record", key, st, len(result), &doc)
	if err != nil || st.Kind != steps.Question {
		return err
	}
	// An answer that came from another process at this moment counts. It was not replaced.
	kept, err := t.Lookup(ctx, key, st)
	if err == nil && kept.Done && !bytes.Equal(kept.Result, result) {
		return fmt.Errorf("step %s of run %s: %w", key, t.j.name, run.ErrAnswered)
	}
	return err
}

// insertStep writes a step, with the number that the run's row in leases has, or the one that it has already.
const insertStep = `INSERT INTO loki.steps (run, n, step, node, key, kind, name, at, size, result) VALUES ($1, (SELECT made FROM loki.leases WHERE run = $1), $2, $3, $4, $5, $6, $7, $8, $9)
	ON CONFLICT (run, step, node, key) DO UPDATE SET kind = excluded.kind, name = excluded.name, at = excluded.at, size = excluded.size, result = excluded.result`

// put writes a step: its result, or nil for one that begins.
func (t *task) put(ctx context.Context, op, key string, st steps.Step, size int, result *record.Document) error {
	j := t.j
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return run.ErrClosed
	}
	k := stepKey{t.step, t.node, key}
	done, known := j.steps[k]
	if done && result == nil {
		return fmt.Errorf("step %s of node %q is done and cannot begin", key, t.node)
	}
	w := write{op: op, steps: 1, done: func() {
		if t.step > j.last.Step {
			j.steps[k] = result != nil
		}
	}}
	if known {
		w.steps = 0
	}
	var data []byte
	if result != nil {
		w.docs, data = []record.Document{*result}, result.Data
	}
	w.rows = func(b *pgx.Batch) {
		when := ` WHERE loki.steps.result IS NULL OR excluded.result IS NOT NULL`
		if st.Kind == steps.Question {
			when = ` WHERE loki.steps.result IS NULL`
		}
		b.Queue(insertStep+when, j.id, t.step, postgres.Text(t.node), postgres.Text(key), string(st.Kind), postgres.Text(st.Name), j.store.now(), size, data)
		if j.asked[k] && result != nil {
			b.Queue(`UPDATE loki.questions SET answered = true WHERE run = $1 AND step = $2 AND node = $3 AND key = $4`, j.id, t.step, postgres.Text(t.node), postgres.Text(key))
		}
	}
	return j.writeLocked(ctx, w, &j.last)
}

// Forget takes a Begin back.
func (t *task) Forget(ctx context.Context, key string) error {
	j := t.j
	return j.write(ctx, write{op: "forget", rows: func(b *pgx.Batch) {
		b.Queue(`DELETE FROM loki.steps WHERE run = $1 AND step = $2 AND node = $3 AND key = $4 AND result IS NULL`, j.id, t.step, postgres.Text(t.node), postgres.Text(key))
	}, done: func() {
		if k := (stepKey{t.step, t.node, key}); !j.steps[k] {
			delete(j.steps, k)
		}
	}})
}
