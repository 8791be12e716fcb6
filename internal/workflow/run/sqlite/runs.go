package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/steps"
	"loki/internal/service/auth"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/record"
)

// Create begins a run.
func (s *Store) Create(_ context.Context, info run.Info, start run.Checkpoint) (run.Journal, error) {
	doc, err := s.seal().About(info)
	if err != nil {
		return nil, fmt.Errorf("recording a run: %w", err)
	}
	first, err := s.seal().Checkpoint(nil, start, nil)
	if err != nil {
		return nil, fmt.Errorf("recording a run: %w", err)
	}
	var subject, key any
	if o := info.Owner; o != nil {
		subject, key = o.Subject, o.KeyID
	}
	var j *journal
	err = s.write("create", true, func(c *conn) error {
		j = newJournal(s)
		now := j.now()
		for n := int64(0); n == 0; { // until there is a name that no run has
			j.name, j.epoch = run.NewID(), 1
			res, err := c.exec("INSERT INTO runs (name, agent, dir, status, started, updated, about, epoch, owner, owner_key) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO NOTHING",
				j.name, info.Agent, info.Dir, string(run.Running), now, now, doc.Data, j.epoch, subject, key)
			if err != nil {
				return err
			}
			if n, err = res.RowsAffected(); err != nil {
				return err
			}
			if j.id, err = res.LastInsertId(); err != nil {
				return err
			}
		}
		j.blobs.run = j.id
		if err := j.blobs.put(c, doc); err != nil {
			return err
		}
		if err := writeCheckpoint(c, &first, &j.blobs, now); err != nil {
			return err
		}
		return j.take(c)
	})
	if err != nil {
		return nil, err
	}
	j.blobs.commit()
	start.Visits = first.Visited
	j.last = record.Snapshot{Checkpoint: start, Places: first.Places}
	return s.start(j), nil
}

func newJournal(s *Store) *journal {
	return &journal{
		store: s, token: newToken(),
		blobs: blobKeeper{known: make(map[record.Hash]int64)},
		steps: make(map[stepKey]stepEntry), questions: make(map[stepKey]bool),
		nextStep: 1, nextBatch: 1,
	}
}

// Open resumes a run.
func (s *Store) Open(_ context.Context, id string, unless ...run.Status) (run.Journal, run.Recovery, error) {
	var j *journal
	var found run.Recovery
	err := s.write("open", false, func(c *conn) (err error) {
		j = newJournal(s)
		if j.id, j.name, err = findRun(c, id); err != nil {
			return err
		}
		if err := s.free(c, j.id, j.name); err != nil {
			return err
		}
		before, _, err := findLease(c, j.id)
		if err != nil {
			return err
		}
		if found, err = j.recover(c); err != nil {
			return err
		}
		if slices.Contains(unless, found.Info.Status) {
			return &run.EndedError{ID: j.name, Status: found.Info.Status}
		}
		if found.Info.Gap != nil {
			return &run.GapError{ID: j.name, Gap: *found.Info.Gap}
		}
		if found.Info.Takeovers, err = j.countTakeover(c, found, before.working); err != nil {
			return err
		}
		if _, err := c.row("UPDATE runs SET status = ?, updated = ?, ending = NULL, epoch = epoch + 1 WHERE id = ? RETURNING epoch",
			[]any{string(run.Running), j.now(), j.id}, &j.epoch); err != nil {
			return err
		}
		return j.take(c)
	})
	if errors.Is(err, errNoFile) {
		err = noRun(id)
	}
	if err != nil {
		return nil, run.Recovery{}, err
	}
	return s.start(j), found, nil
}

// countTakeover notes how many times in a row the run, as it was found, was taken over, and returns that. died says that a process died
// at work on it.
func (j *journal) countTakeover(c *conn, found run.Recovery, died bool) (n int, err error) {
	results := 0
	for _, e := range j.steps {
		if e.done {
			results++
		}
	}
	progress, before := record.Progress(found.Info.Steps, results, len(found.Tasks)), ""
	if _, err := c.row("SELECT progress FROM runs WHERE id = ?", []any{j.id}, &before); err != nil {
		return 0, err
	}
	n = record.Takeovers(found.Info, died, progress != before)
	_, err = c.exec("UPDATE runs SET takeovers = ?, progress = ? WHERE id = ?", n, progress, j.id)
	return n, err
}

// recover reads what a journal needs to resume, and what Open returns.
func (j *journal) recover(c *conn) (run.Recovery, error) {
	j.blobs.run = j.id
	var found run.Recovery
	var err error
	blobs := j.store.readBlobs(c)
	if found.Info, err = j.store.readInfo(c, blobs, j.id); err != nil {
		return found, err
	}
	if !found.Info.Status.Resumable() {
		return found, &run.EndedError{ID: j.name, Status: found.Info.Status}
	}
	found.Info.Active, found.Info.Held = false, nil
	if j.last, err = readCheckpoint(c, blobs, j.id, found.Info.Steps); err != nil {
		return found, err
	}
	found.Last = j.last.Checkpoint
	found.Last.Visits = maps.Clone(found.Last.Visits)
	if found.Tasks, err = readTasks(c, blobs, j.id); err != nil {
		return found, err
	}
	for _, t := range found.Tasks {
		j.tasks = max(j.tasks, t.Step)
	}
	var k stepKey
	var e stepEntry
	err = c.rows("SELECT n, step, node, key, result IS NOT NULL FROM steps WHERE run = ? AND step > ?", []any{j.id, j.last.Step},
		[]any{&e.n, &k.step, &k.node, &k.key, &e.done}, func() error { j.steps[k] = e; return nil })
	if err != nil {
		return found, err
	}
	err = c.rows("SELECT step, node, key FROM questions WHERE run = ? AND NOT answered", []any{j.id},
		[]any{&k.step, &k.node, &k.key}, func() error { j.questions[k] = true; return nil })
	if err != nil {
		return found, err
	}
	if _, err := c.row("SELECT coalesce(max(n), 0) + 1 FROM steps WHERE run = ?", []any{j.id}, &j.nextStep); err != nil {
		return found, err
	}
	if _, err := c.row("SELECT coalesce(max(n), 0) + 1 FROM events WHERE run = ?", []any{j.id}, &j.nextBatch); err != nil {
		return found, err
	}
	j.written, err = eventCount(c, j.id)
	j.events.From(j.written)
	return found, err
}

// findRun returns the run whose id begins with typed.
func findRun(c *conn, typed string) (id int64, name string, err error) {
	prefix, err := run.ParseID(typed)
	if err != nil {
		return 0, "", err
	}
	var names []string
	err = c.rows("SELECT id, name FROM runs WHERE name >= ? AND name < ? ORDER BY name LIMIT 12", []any{prefix, prefix + "~"},
		[]any{&id, &name}, func() error { names = append(names, name); return nil })
	if err != nil {
		return 0, "", err
	}
	name, err = run.PickID(typed, names)
	return id, name, err
}

// noRun returns the error for an id while there are no runs.
func noRun(typed string) error {
	_, err := run.ParseID(typed)
	if err == nil {
		_, err = run.PickID(typed, nil)
	}
	return err
}

// selectRuns reads runs with their lease and last checkpoint. The last column before
// the lease's is the time of the newest steps; the ones that were begun first may be recorded last.
// A run whose checkpoints are gone has none.
const selectRuns = `
	SELECT r.id, r.name, r.agent, r.dir, r.status, r.started, r.updated, r.about, r.ending, r.gap, r.owner, r.owner_key, r.takeovers,
		coalesce(c.step, -1), coalesce(c.at, 0), coalesce(c.doc, x''),
		coalesce((SELECT max(at) FROM (SELECT at FROM steps WHERE run = r.id ORDER BY n DESC LIMIT 64)), 0),
		` + leaseColumns + `
	FROM runs r
	LEFT JOIN checkpoints c ON c.run = r.id AND c.step = (SELECT max(step) FROM checkpoints WHERE run = r.id)
	LEFT JOIN leases l ON l.run = r.id `

// runRow is a row of selectRuns.
type runRow struct {
	id, started, updated, at, stepAt int64

	info               run.Info // as far as it has columns of its own
	status             string
	owner, ownerKey    sql.NullString
	about, ending, gap []byte
	progress           []byte
	lease              lease
}

func (r *runRow) dest() []any {
	return append([]any{
		&r.id, &r.info.ID, &r.info.Agent, &r.info.Dir, &r.status, &r.started, &r.updated, &r.about, &r.ending, &r.gap, &r.owner, &r.ownerKey, &r.info.Takeovers,
		&r.info.Steps, &r.at, &r.progress, &r.stepAt,
	}, r.lease.dest()...)
}

// describe returns what the row says of the run. If a document of it cannot be read, what
// is known without it comes with the error.
func (s *Store) describe(r *runRow, blobs record.Reader) (run.Info, error) {
	info := r.info
	info.Status = run.Status(r.status)
	info.Started, info.Updated = moment(r.started), moment(max(r.updated, r.at, r.stepAt))
	if len(r.lease.token) > 0 && s.active(r.lease) {
		_, until, _ := s.holds(r.lease)
		info.Active, info.Held = true, r.lease.error(info.ID, until)
	}
	if r.owner.Valid {
		info.Owner = &auth.Owner{Subject: r.owner.String, KeyID: r.ownerKey.String}
	}
	info.Gap = s.gap(r.gap)
	err := blobs.Describe(&info, r.about, r.ending, r.progress)
	return info, err
}

// readInfo returns all about a run.
func (s *Store) readInfo(c *conn, blobs record.Reader, id int64) (info run.Info, err error) {
	var r runRow
	ok, err := c.row(selectRuns+"WHERE r.id = ?", []any{id}, r.dest()...)
	if err != nil {
		return run.Info{}, err
	}
	if !ok {
		return run.Info{}, record.ErrDamaged
	}
	if info, err = s.describe(&r, blobs); err != nil {
		if errors.Is(err, record.ErrDamaged) {
			return run.Info{}, damagedRun(s.path, info.ID, err)
		}
		return run.Info{}, err
	}
	if err := addOpenUsage(c, blobs, id, &info); err != nil {
		return run.Info{}, err
	}
	if info.Events, err = eventCount(c, id); err != nil {
		return run.Info{}, err
	}
	record.AddGap(&info, s.readMark(info.ID))
	return info, nil
}

// addOpenUsage adds what the model steps after the last checkpoint used. A step whose result
// has no usage, or is damaged, adds nothing.
func addOpenUsage(c *conn, blobs record.Reader, id int64, info *run.Info) error {
	if info.Status == run.Done {
		return nil
	}
	var result []byte
	return c.rows("SELECT result FROM steps WHERE run = ? AND step > ? AND kind = ? AND result IS NOT NULL",
		[]any{id, info.Steps, string(steps.Model)}, []any{&result}, func() error {
			blobs.AddUsage(info, result)
			return nil
		})
}

// Runs returns the runs that match, newest first.
func (s *Store) Runs(ctx context.Context, q run.Query) (infos []run.Info, err error) {
	var where []string
	var args []any
	if q.Dir != "" {
		where, args = append(where, "r.dir = ?"), append(args, q.Dir)
	}
	if q.Agent != "" {
		where, args = append(where, "r.agent = ?"), append(args, q.Agent)
	}
	if q.Unfinished {
		where, args = append(where, "r.status <> ?"), append(args, string(run.Done))
	}
	if v := q.View; v != nil {
		visible := "r.owner = ?"
		if v.Unowned {
			visible = "(r.owner = ? OR r.owner IS NULL)"
		}
		where, args = append(where, visible), append(args, v.Subject)
	}
	before := len(args)
	if q.Before != "" {
		where, args = append(where, "r.id < ?"), append(args, nil) // known once the store is open
	}
	query := selectRuns
	if len(where) > 0 {
		query += "WHERE " + strings.Join(where, " AND ")
	}
	query += " ORDER BY r.id DESC"
	if q.Limit > 0 {
		query, args = query+" LIMIT ?", append(args, q.Limit)
	}
	err = s.view(ctx, func(c *conn) error {
		if q.Before != "" {
			row, _, err := findRun(c, q.Before)
			if err != nil {
				return err
			}
			args[before] = row
		}
		var r runRow
		return c.rows(query, args, r.dest(), func() error {
			info, err := s.describe(&r, s.readHeads(c))
			if err != nil {
				if !errors.Is(err, record.ErrDamaged) {
					return err
				}
				info.Damaged, info.Steps = true, max(0, info.Steps)
			} else if err := addOpenUsage(c, s.readHeads(c), r.id, &info); err != nil {
				return err
			}
			infos = append(infos, info.Head())
			return nil
		})
	})
	if errors.Is(err, errNoFile) {
		return nil, nil
	}
	for _, name := range s.marks() {
		if i := slices.IndexFunc(infos, func(i run.Info) bool { return i.ID == name }); i >= 0 {
			record.AddGap(&infos[i], s.readMark(name))
		}
	}
	return infos, err
}

// Stamps implements [run.Stamper]. A run that has ended was written last when it ended.
func (s *Store) Stamps(ctx context.Context) (map[string]string, error) {
	const query = `
		SELECT name, status, CASE WHEN status NOT IN ('running', 'suspended') THEN updated ELSE max(updated,
			coalesce((SELECT at FROM checkpoints WHERE run = r.id ORDER BY step DESC LIMIT 1), 0),
			coalesce((SELECT max(at) FROM (SELECT at FROM steps WHERE run = r.id ORDER BY n DESC LIMIT 64)), 0)) END
		FROM runs r`
	stamps := make(map[string]string)
	err := s.view(ctx, func(c *conn) error {
		var name, status string
		var updated int64
		return c.rows(query, nil, []any{&name, &status, &updated}, func() error {
			stamps[name] = run.Stamp(run.Status(status), updated)
			return nil
		})
	})
	if errors.Is(err, errNoFile) {
		err = nil
	}
	return stamps, err
}

// Claim gives a run that has no owner to owner.
func (s *Store) Claim(_ context.Context, id string, owner auth.Owner) (*auth.Owner, error) {
	var subject, key sql.NullString
	err := s.write("claim", false, func(c *conn) error {
		row, _, err := findRun(c, id)
		if err != nil {
			return err
		}
		if _, err := c.exec("UPDATE runs SET owner = ?, owner_key = ? WHERE id = ? AND owner IS NULL", owner.Subject, owner.KeyID, row); err != nil {
			return err
		}
		_, err = c.row("SELECT owner, owner_key FROM runs WHERE id = ?", []any{row}, &subject, &key)
		return err
	})
	if errors.Is(err, errNoFile) {
		err = noRun(id)
	}
	if err != nil {
		return nil, err
	}
	return &auth.Owner{Subject: subject.String, KeyID: key.String}, nil
}

// Checkpoint returns the state after a super-step.
func (s *Store) Checkpoint(ctx context.Context, id string, step int) (run.Checkpoint, error) {
	var found record.Snapshot
	err := s.viewRun(ctx, id, func(c *conn, row int64, name string) error {
		var first, last int
		if ok, err := c.row("SELECT min(step), max(step) FROM checkpoints WHERE run = ?", []any{row}, &first, &last); err != nil || !ok {
			return err
		}
		wanted := step
		switch step {
		case -1:
			wanted = last
		case 0:
			wanted = first
		}
		if wanted < first || wanted > last {
			return fault.New(fault.NotFound, "run %s has no super-step %d: it has come to %d", name, step, last).ThatMisses("step")
		}
		var err error
		found, err = readCheckpoint(c, s.readBlobs(c), row, wanted)
		return err
	})
	return found.Checkpoint, err
}

// Step returns the result of a step on record.
func (s *Store) Step(ctx context.Context, id string, number int) (result []byte, err error) {
	err = s.viewRun(ctx, id, func(c *conn, row int64, name string) error {
		var data []byte
		ok, err := c.row("SELECT result FROM steps WHERE run = ? AND n = ? AND result IS NOT NULL", []any{row, number}, &data)
		if err == nil && !ok {
			err = fault.New(fault.NotFound, "run %s has no result of a step %d", name, number)
		}
		if err == nil {
			result, err = s.readBlobs(c).JSON(data)
		}
		return err
	})
	return result, err
}

// viewRun runs fn in a read transaction, with the run whose id begins with typed.
func (s *Store) viewRun(ctx context.Context, typed string, fn func(c *conn, row int64, name string) error) error {
	err := s.view(ctx, func(c *conn) error {
		row, name, err := findRun(c, typed)
		if err != nil {
			return err
		}
		return fn(c, row, name)
	})
	if errors.Is(err, errNoFile) {
		err = noRun(typed)
	}
	return err
}

// Info returns what describes a run.
func (s *Store) Info(ctx context.Context, id string) (info run.Info, err error) {
	err = s.viewRun(ctx, id, func(c *conn, row int64, _ string) error {
		info, err = s.readInfo(c, s.readBlobs(c), row)
		return err
	})
	return info, err
}

// History returns what is on record of a run.
func (s *Store) History(ctx context.Context, id string) (h run.History, err error) {
	err = s.viewRun(ctx, id, func(c *conn, row int64, _ string) error {
		blobs := s.readBlobs(c)
		if h.Info, err = s.readInfo(c, blobs, row); err != nil {
			return err
		}
		if h.Visits, err = readVisits(c, blobs, row); err != nil {
			return err
		}
		pending, err := readPending(c, blobs, row)
		if err != nil {
			return err
		}
		h.Pending, h.Waiting = run.Split(pending)
		if h.Signals, err = readSignals(c, blobs, row); err != nil {
			return err
		}
		if h.Steps, err = readSteps(c, row); err != nil {
			return err
		}
		events, err := readEvents(c, blobs, row, 0, 0)
		for _, ev := range events {
			h.Events = append(h.Events, ev.JSON)
		}
		return err
	})
	if err != nil {
		return run.History{}, err
	}
	return h, nil
}

// Pending returns the questions that wait.
func (s *Store) Pending(ctx context.Context, id string) (waiting []run.Pending, err error) {
	err = s.viewRun(ctx, id, func(c *conn, row int64, _ string) error {
		pending, err := readPending(c, s.readBlobs(c), row)
		waiting, _ = run.Split(pending)
		return err
	})
	return waiting, err
}

// Answered returns the questions that have their answers.
func (s *Store) Answered(ctx context.Context, id string) (answered []run.Pending, err error) {
	err = s.viewRun(ctx, id, func(c *conn, row int64, _ string) error {
		over, err := readQuestions(c, s.readBlobs(c), row, true)
		answered, _ = run.Split(over)
		return err
	})
	return answered, err
}

// Events returns events on record.
func (s *Store) Events(ctx context.Context, id string, after, limit int) (found []run.EventRecord, err error) {
	err = s.viewRun(ctx, id, func(c *conn, row int64, _ string) error {
		found, err = readEvents(c, s.readBlobs(c), row, max(0, after), limit)
		return err
	})
	return found, err
}

// readVisits returns the visits of the committed super-steps, and of the finished
// tasks of the one under way.
func readVisits(c *conn, blobs record.Reader, id int64) (visits []run.Visit, err error) {
	var data []byte
	err = c.rows("SELECT visits FROM checkpoints WHERE run = ? ORDER BY step", []any{id}, []any{&data}, func() error {
		visits, err = blobs.Visits(visits, data)
		return err
	})
	if err != nil {
		return nil, err
	}
	tasks, err := readTasks(c, blobs, id)
	for _, t := range tasks {
		visits = append(visits, t.Visit)
	}
	return visits, err
}

// readTasks returns the finished tasks of the super-step under way, by node.
func readTasks(c *conn, blobs record.Reader, id int64) (tasks []run.TaskRecord, err error) {
	var step int
	var node string
	var doc, writes []byte
	err = c.rows("SELECT step, node, doc, writes FROM tasks WHERE run = ? ORDER BY step, node", []any{id}, []any{&step, &node, &doc, &writes}, func() error {
		t, err := blobs.Task(step, node, doc, writes)
		if err != nil {
			return err
		}
		tasks = append(tasks, t)
		return nil
	})
	return tasks, err
}

// readPending returns the questions that wait, in the order they were asked.
func readPending(c *conn, blobs record.Reader, id int64) ([]run.Pending, error) {
	return readQuestions(c, blobs, id, false)
}

// readQuestions returns the questions that have their answers, or the ones that wait, and likewise the other waits of the run.
func readQuestions(c *conn, blobs record.Reader, id int64, answered bool) (list []run.Pending, err error) {
	var data []byte
	var key string
	err = c.rows("SELECT key, doc FROM questions WHERE run = ? AND answered = ? ORDER BY n", []any{id, answered}, []any{&key, &data}, func() error {
		p, err := blobs.Pending(key, data)
		if err != nil {
			return err
		}
		list = append(list, p)
		return nil
	})
	return list, err
}

func readSteps(c *conn, id int64) (all []run.StepRecord, err error) {
	var st run.StepRecord
	var kind string
	var at int64
	err = c.rows("SELECT n, step, node, key, kind, name, at, size, result IS NOT NULL FROM steps WHERE run = ? ORDER BY n", []any{id},
		[]any{&st.Number, &st.Step, &st.Node, &st.Key, &kind, &st.Name, &at, &st.Size, &st.Done}, func() error {
			st.Kind, st.At = steps.Kind(kind), moment(at)
			all = append(all, st)
			return nil
		})
	return all, err
}

// Answer answers a pending question.
func (s *Store) Answer(_ context.Context, id, question, text string) error {
	answer, err := json.Marshal(text)
	if err != nil {
		return err
	}
	doc := s.seal().EncodeJSON(answer)
	err = s.write("answer", false, func(c *conn) error {
		row, name, err := findRun(c, id)
		if err != nil {
			return err
		}
		if err := s.free(c, row, name); err != nil {
			return err
		}
		var status string
		if _, err := c.row("SELECT status FROM runs WHERE id = ?", []any{row}, &status); err != nil {
			return err
		}
		if !run.Status(status).Resumable() {
			return &run.EndedError{ID: name, Status: run.Status(status)}
		}
		if g, err := s.gapOf(c, row, name); err != nil {
			return err
		} else if g != nil {
			return &run.GapError{ID: name, Gap: *g}
		}
		var k stepKey
		var answered bool
		ok, err := c.row("SELECT step, node, key, answered FROM questions WHERE run = ? AND id = ?", []any{row, question}, &k.step, &k.node, &k.key, &answered)
		switch {
		case err != nil:
			return err
		case !ok:
			return fault.New(fault.NotFound, "run %s has no question %q", name, question).ThatMisses("question").WithHint("loki --run %s lists the questions that wait", name)
		case answered:
			return fmt.Errorf("question %q of run %s: %w", question, name, run.ErrAnswered)
		}
		keeper := blobKeeper{run: row, known: make(map[record.Hash]int64)}
		if err := keeper.put(c, doc); err != nil {
			return err
		}
		now := s.o.Now().UnixNano()
		if _, err := c.exec(`INSERT INTO steps (run, n, step, node, key, kind, name, at, size, result)
			VALUES (?1, (SELECT coalesce(max(n), 0) + 1 FROM steps WHERE run = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)`,
			row, k.step, k.node, k.key, string(steps.Question), question, now, len(answer), doc.Data); err != nil {
			return err
		}
		if _, err := c.exec("UPDATE questions SET answered = 1 WHERE run = ? AND id = ?", row, question); err != nil {
			return err
		}
		_, err = c.exec("UPDATE runs SET updated = ? WHERE id = ?", now, row)
		return err
	})
	if errors.Is(err, errNoFile) {
		err = noRun(id)
	}
	return err
}
