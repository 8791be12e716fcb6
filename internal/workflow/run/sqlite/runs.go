package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/service/auth"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/record"
)

// Create begins a run. Of many calls at the same time, those beyond maxCreating wait before they take memory. Meanwhile the runs that have
// begun write, too, and end, so that few are in the middle of their work only because the file is busy.
func (s *Store) Create(_ context.Context, info run.Info, start run.Checkpoint) (run.Journal, error) {
	s.creating <- struct{}{} // waits for writes of others, never for runs
	defer func() { <-s.creating }()
	doc, err := s.seal().About(info)
	if err != nil {
		return nil, fmt.Errorf("recording a run: %w", err)
	}
	first, err := s.seal().Checkpoint(nil, start, nil)
	if err != nil {
		return nil, fmt.Errorf("recording a run: %w", err)
	}
	var subject, key, origin any
	if o := info.Owner; o != nil {
		subject, key = o.Subject, o.KeyID
	}
	if info.Origin != nil {
		origin = info.Origin.String()
	}
	var j *journal
	err = s.write("create", true, func(c *conn) error {
		j = newJournal(s)
		now := j.now()
		for n := int64(0); n == 0; { // until there is a name that no run has
			j.name, j.epoch = run.NewID(), 1
			res, err := c.exec("INSERT INTO runs (name, agent, dir, status, started, updated, about, epoch, owner, owner_key, origin) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO NOTHING",
				j.name, info.Agent, info.Dir, string(run.Running), now, now, doc.Data, j.epoch, subject, key, origin)
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
		if err := s.putEntries(c, info.ClaimsOf(j.name)); err != nil {
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
	err := s.writeRun("open", id, func(c *conn, row int64, name string) error {
		j = newJournal(s)
		j.id, j.name = row, name
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
	found, last, err := record.Recover(context.Background(), j.store.on(c), j.id)
	if err != nil {
		return found, err
	}
	j.last = last
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
		[]any{&k.step, &k.node, &k.key}, func() error { j.questions[k], j.hasAsked = true, true; return nil })
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
	where, args := record.Where(q, func(text string) string { return text })
	before := len(args)
	if q.Before != "" {
		where, args = append(where, fmt.Sprintf("r.id < $%d", before+1)), append(args, nil) // known once the store is open
	}
	query := selectRuns
	if len(where) > 0 {
		query += "WHERE " + strings.Join(where, " AND ")
	}
	query += " ORDER BY r.id DESC"
	if q.Limit > 0 {
		query += fmt.Sprintf(" LIMIT %d", q.Limit)
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
		return c.rows(dialect.Replace(query), args, r.dest(), func() error {
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
	err := s.writeRun("claim", id, func(c *conn, row int64, _ string) error {
		if _, err := c.exec("UPDATE runs SET owner = ?, owner_key = ? WHERE id = ? AND owner IS NULL", owner.Subject, owner.KeyID, row); err != nil {
			return err
		}
		_, err := c.row("SELECT owner, owner_key FROM runs WHERE id = ?", []any{row}, &subject, &key)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &auth.Owner{Subject: subject.String, KeyID: key.String}, nil
}

// view reads on one connection, in a transaction.
type view struct {
	*conn
	store *Store
	blobs record.Reader
}

// dialect turns a query that PostgreSQL understands into one for SQLite.
var dialect = strings.NewReplacer("$", "?", " loki.", " ")

func (s *Store) on(c *conn) view { return view{conn: c, store: s, blobs: s.readBlobs(c)} }

// Each implements [record.DB].
func (v view) Each(_ context.Context, query string, args, dest []any, fn func() error) error {
	return v.rows(dialect.Replace(query), args, dest, fn)
}

// Decode implements [record.DB].
func (v view) Decode(_ context.Context, _ int64, fn func(record.Reader) error) error {
	return fn(v.blobs)
}

// Text implements [record.DB].
func (v view) Text(text string) string { return text }

// Info implements [record.View].
func (v view) Info(_ context.Context, id int64) (run.Info, error) {
	return v.store.readInfo(v.conn, v.blobs, id)
}

// Checkpoint implements [record.View].
func (v view) Checkpoint(_ context.Context, id int64, step int) (record.Snapshot, error) {
	return readCheckpoint(v.conn, v.blobs, id, step)
}

// Events implements [record.View].
func (v view) Events(_ context.Context, id int64, after, limit int) ([]run.EventRecord, error) {
	return readEvents(v.conn, v.blobs, id, after, limit)
}

// reads is what the methods of [record.Reads] read with.
func (s *Store) reads(ctx context.Context, id string, fn func(ctx context.Context, v record.View, run int64, name string) error) error {
	return s.viewRun(ctx, id, func(c *conn, row int64, name string) error { return fn(ctx, s.on(c), row, name) })
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

// writeRun makes a write to the run whose id begins with typed, which other processes may hold.
func (s *Store) writeRun(op, typed string, fn func(c *conn, row int64, name string) error) error {
	err := s.write(op, false, func(c *conn) error {
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

// Answer answers a pending question.
func (s *Store) Answer(_ context.Context, id, question string, reply run.Reply) error {
	answer, err := json.Marshal(reply)
	if err != nil {
		return err
	}
	doc := s.seal().EncodeJSON(answer)
	return s.writeRun("answer", id, func(c *conn, row int64, name string) error {
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
}
