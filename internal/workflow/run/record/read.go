package record

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/workflow/run"
)

// DB reads the tables of a store of runs as they are at one moment. A query has placeholders $1, $2 and so on, and the tables are in the
// schema loki.
type DB interface {
	// Each calls fn for every row of the result, once its columns are in dest.
	Each(ctx context.Context, query string, args, dest []any, fn func() error) error
	// Decode calls fn with what reads the documents of a run. If fn needs blobs that have to be read first, it is called again.
	Decode(ctx context.Context, run int64, fn func(Reader) error) error
	// Text returns the text of a column as it was before it was stored.
	Text(text string) string
}

// View is a [DB] and what each store reads in its own way.
type View interface {
	DB
	// Info returns everything about a run.
	Info(ctx context.Context, run int64) (run.Info, error)
	// Checkpoint returns the state after a super-step that the run has.
	Checkpoint(ctx context.Context, run int64, step int) (Snapshot, error)
	// Events returns the events after the one with a number, at most limit of them; 0 means no limit.
	Events(ctx context.Context, run int64, after, limit int) ([]run.EventRecord, error)
}

// Reads are the methods of a store that read one run. Several goroutines may use it.
type Reads struct {
	view func(ctx context.Context, id string, fn func(ctx context.Context, v View, run int64, name string) error) error
}

// NewReads returns the methods over view, which calls fn with the run whose id begins with id, perhaps more than once.
func NewReads(view func(ctx context.Context, id string, fn func(ctx context.Context, v View, run int64, name string) error) error) Reads {
	return Reads{view: view}
}

// read returns what fn reads of a run.
func read[T any](ctx context.Context, s Reads, id string, fn func(ctx context.Context, v View, run int64, name string) (T, error)) (found T, err error) {
	err = s.view(ctx, id, func(ctx context.Context, v View, run int64, name string) error {
		found, err = fn(ctx, v, run, name)
		return err
	})
	return found, err
}

// Info returns what describes a run.
func (s Reads) Info(ctx context.Context, id string) (run.Info, error) {
	return read(ctx, s, id, func(ctx context.Context, v View, row int64, _ string) (run.Info, error) { return v.Info(ctx, row) })
}

// History returns what is on record of a run.
func (s Reads) History(ctx context.Context, id string) (run.History, error) {
	h, err := read(ctx, s, id, func(ctx context.Context, v View, row int64, _ string) (h run.History, err error) {
		if h.Info, err = v.Info(ctx, row); err != nil {
			return h, err
		}
		if h.Visits, err = Visits(ctx, v, row); err != nil {
			return h, err
		}
		pending, err := Questions(ctx, v, row, false)
		if err != nil {
			return h, err
		}
		h.Pending, h.Waiting = run.Split(pending)
		if h.Signals, err = Signals(ctx, v, row); err != nil {
			return h, err
		}
		if h.Steps, err = Steps(ctx, v, row); err != nil {
			return h, err
		}
		events, err := v.Events(ctx, row, 0, 0)
		for _, ev := range events {
			h.Events = append(h.Events, ev.JSON)
		}
		return h, err
	})
	if err != nil {
		return run.History{}, err
	}
	return h, nil
}

// Pending returns the questions that wait.
func (s Reads) Pending(ctx context.Context, id string) ([]run.Pending, error) {
	questions, _, err := s.questions(ctx, id, false)
	return questions, err
}

// Waits returns what a run waits for besides answers.
func (s Reads) Waits(ctx context.Context, id string) ([]run.Pending, error) {
	_, others, err := s.questions(ctx, id, false)
	return others, err
}

// Answered returns the questions that have their answers.
func (s Reads) Answered(ctx context.Context, id string) ([]run.Pending, error) {
	questions, _, err := s.questions(ctx, id, true)
	return questions, err
}

func (s Reads) questions(ctx context.Context, id string, answered bool) (questions, others []run.Pending, err error) {
	list, err := read(ctx, s, id, func(ctx context.Context, v View, row int64, _ string) ([]run.Pending, error) {
		return Questions(ctx, v, row, answered)
	})
	questions, others = run.Split(list)
	return questions, others, err
}

// Signals returns the signals of a run in the order in which they came.
func (s Reads) Signals(ctx context.Context, id string) ([]run.Signal, error) {
	return read(ctx, s, id, func(ctx context.Context, v View, row int64, _ string) ([]run.Signal, error) {
		return Signals(ctx, v, row)
	})
}

// Events returns events on record.
func (s Reads) Events(ctx context.Context, id string, after, limit int) ([]run.EventRecord, error) {
	return read(ctx, s, id, func(ctx context.Context, v View, row int64, _ string) ([]run.EventRecord, error) {
		return v.Events(ctx, row, max(0, after), limit)
	})
}

// Step returns the result of a step on record.
func (s Reads) Step(ctx context.Context, id string, number int) ([]byte, error) {
	return read(ctx, s, id, func(ctx context.Context, v View, row int64, name string) ([]byte, error) {
		const query = `SELECT result FROM loki.steps WHERE run = $1 AND n = $2 AND result IS NOT NULL`
		found, err := decode(ctx, v, row, query, []any{row, number}, func(data *[]byte) []any { return []any{data} }, Reader.JSON)
		if err == nil && len(found) == 0 {
			return nil, fault.New(fault.NotFound, "run %s has no result of a step %d", name, number)
		}
		if err != nil {
			return nil, err
		}
		return found[0], nil
	})
}

// Checkpoint returns the state after a super-step: 0 is the first on record, -1 the last.
func (s Reads) Checkpoint(ctx context.Context, id string, step int) (run.Checkpoint, error) {
	found, err := read(ctx, s, id, func(ctx context.Context, v View, row int64, name string) (found Snapshot, err error) {
		var first, last int
		err = v.Each(ctx, `SELECT coalesce(min(step), -1), coalesce(max(step), -1) FROM loki.checkpoints WHERE run = $1`, []any{row}, []any{&first, &last}, func() error { return nil })
		if err != nil {
			return found, err
		}
		wanted := step
		switch step {
		case -1:
			wanted = last
		case 0:
			wanted = first
		}
		switch {
		case last < 0:
			return found, ErrDamaged
		case wanted < first || wanted > last:
			return found, fault.New(fault.NotFound, "run %s has no super-step %d: it has come to %d", name, step, last).ThatMisses("step")
		}
		return v.Checkpoint(ctx, row, wanted)
	})
	return found.Checkpoint, err
}

// Collect returns the rows of a query. dest returns where the columns of one go.
func Collect[R any](ctx context.Context, db DB, query string, args []any, dest func(row *R) []any) (rows []R, err error) {
	var row, empty R
	err = db.Each(ctx, query, args, dest(&row), func() error {
		rows = append(rows, row)
		row = empty
		return nil
	})
	return rows, err
}

// decode returns what the rows of a query about a run mean.
func decode[R, T any](ctx context.Context, db DB, id int64, query string, args []any, dest func(row *R) []any, meaning func(Reader, R) (T, error)) (all []T, err error) {
	rows, err := Collect(ctx, db, query, args, dest)
	if err != nil {
		return nil, err
	}
	err = db.Decode(ctx, id, func(r Reader) error {
		all = nil
		for _, row := range rows {
			one, err := meaning(r, row)
			if err != nil {
				return err
			}
			all = append(all, one)
		}
		return nil
	})
	return all, err
}

// Visits returns the visits of the committed super-steps, and of the finished tasks of the one in progress.
func Visits(ctx context.Context, db DB, id int64) ([]run.Visit, error) {
	const query = `SELECT visits FROM loki.checkpoints WHERE run = $1 ORDER BY step`
	bySteps, err := decode(ctx, db, id, query, []any{id}, func(doc *[]byte) []any { return []any{doc} }, Reader.Visits)
	if err != nil {
		return nil, err
	}
	visits := slices.Concat(bySteps...)
	tasks, err := Tasks(ctx, db, id)
	for _, t := range tasks {
		visits = append(visits, t.Visit)
	}
	return visits, err
}

// Tasks returns the finished tasks of the super-step in progress, by node.
func Tasks(ctx context.Context, db DB, id int64) ([]run.TaskRecord, error) {
	type row struct {
		step        int
		node        string
		doc, writes []byte
	}
	tasks, err := decode(ctx, db, id, `SELECT step, node, doc, writes FROM loki.tasks WHERE run = $1`, []any{id},
		func(t *row) []any { return []any{&t.step, &t.node, &t.doc, &t.writes} },
		func(r Reader, t row) (run.TaskRecord, error) { return r.Task(t.step, db.Text(t.node), t.doc, t.writes) })
	slices.SortFunc(tasks, func(a, b run.TaskRecord) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Result.Node, b.Result.Node))
	})
	return tasks, err
}

// Questions returns the questions that have their answers, or the ones that wait, in the order in which they were asked, and likewise the
// other waits of the run.
func Questions(ctx context.Context, db DB, id int64, answered bool) ([]run.Pending, error) {
	type row struct {
		key string
		doc []byte
	}
	return decode(ctx, db, id, `SELECT key, doc FROM loki.questions WHERE run = $1 AND answered = $2 ORDER BY n`, []any{id, answered},
		func(q *row) []any { return []any{&q.key, &q.doc} },
		func(r Reader, q row) (run.Pending, error) { return r.Pending(db.Text(q.key), q.doc) })
}

// Signals returns the signals of a run in the order in which they came.
func Signals(ctx context.Context, db DB, id int64) ([]run.Signal, error) {
	type row struct {
		run.Signal
		at    int64
		doc   []byte
		taken sql.NullString
	}
	return decode(ctx, db, id, `SELECT n, name, at, doc, taken, key FROM loki.signals WHERE run = $1 ORDER BY n`, []any{id},
		func(s *row) []any { return []any{&s.Number, &s.Name, &s.at, &s.doc, &s.taken, &s.Key} },
		func(r Reader, s row) (run.Signal, error) {
			text, err := r.JSON(s.doc)
			return run.Signal{Number: s.Number, Name: db.Text(s.Name), Value: text, At: moment(s.at), Taken: db.Text(s.taken.String), Key: db.Text(s.Key)}, err
		})
}

// Steps returns the steps of a run, without their results.
func Steps(ctx context.Context, db DB, id int64) (all []run.StepRecord, err error) {
	var st run.StepRecord
	var kind string
	var at int64
	err = db.Each(ctx, `SELECT n, step, node, key, kind, name, at, size, result IS NOT NULL FROM loki.steps WHERE run = $1 ORDER BY n`, []any{id},
		[]any{&st.Number, &st.Step, &st.Node, &st.Key, &kind, &st.Name, &at, &st.Size, &st.Done}, func() error {
			s := st
			s.Kind, s.At, s.Node, s.Key, s.Name = steps.Kind(kind), moment(at), db.Text(st.Node), db.Text(st.Key), db.Text(st.Name)
			all = append(all, s)
			return nil
		})
	return all, err
}

// Entries returns the entries that a query selects: their keys, versions, times, runs and documents.
func Entries(ctx context.Context, db DB, r Reader, query string, args ...any) ([]run.Entry, error) {
	type row struct {
		run.Entry
		at int64
	}
	rows, err := Collect(ctx, db, query, args, func(e *row) []any { return []any{&e.Key, &e.Version, &e.at, &e.Run, &e.Doc} })
	entries := make([]run.Entry, len(rows))
	for i, e := range rows {
		e.Key, e.At = db.Text(e.Key), moment(e.at)
		if e.Doc = []byte(r.Text(string(e.Doc))); len(e.Doc) == 0 {
			e.Doc = nil
		}
		entries[i] = e.Entry
	}
	return entries, err
}

// Where returns the conditions of a query for the runs that match q, but for Before and Limit, and their arguments. The table of runs is
// called r. store returns the text of a column as the store has it.
func Where(q run.Query, store func(text string) string) (conditions []string, args []any) {
	add := func(condition, arg string) {
		args = append(args, arg)
		conditions = append(conditions, fmt.Sprintf(condition, len(args)))
	}
	if q.Dir != "" {
		add("r.dir = $%d", store(q.Dir))
	}
	if q.Agent != "" {
		add("r.agent = $%d", store(q.Agent))
	}
	if q.Unfinished {
		add("r.status <> $%d", string(run.Done))
	}
	if q.Origin != "" {
		add("r.origin = $%d", store(q.Origin))
	}
	switch v := q.View; {
	case v == nil:
	case v.Unowned:
		add("(r.owner = $%d OR r.owner IS NULL)", store(v.Subject))
	default:
		add("r.owner = $%d", store(v.Subject))
	}
	return conditions, args
}

// moment returns the time that a store has as nanoseconds.
func moment(n int64) time.Time { return time.Unix(0, n).UTC() }
