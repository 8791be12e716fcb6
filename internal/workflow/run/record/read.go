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

// Info returns what describes a run.
func (s Reads) Info(ctx context.Context, id string) (info run.Info, err error) {
	err = s.view(ctx, id, func(ctx context.Context, v View, row int64, _ string) error {
		info, err = v.Info(ctx, row)
		return err
	})
	return info, err
}

// History returns what is on record of a run.
func (s Reads) History(ctx context.Context, id string) (h run.History, err error) {
	err = s.view(ctx, id, func(ctx context.Context, v View, row int64, _ string) error {
		h = run.History{}
		if h.Info, err = v.Info(ctx, row); err != nil {
			return err
		}
		if h.Visits, err = Visits(ctx, v, row); err != nil {
			return err
		}
		pending, err := Questions(ctx, v, row, false)
		if err != nil {
			return err
		}
		h.Pending, h.Waiting = run.Split(pending)
		if h.Signals, err = Signals(ctx, v, row); err != nil {
			return err
		}
		if h.Steps, err = Steps(ctx, v, row); err != nil {
			return err
		}
		events, err := v.Events(ctx, row, 0, 0)
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
func (s Reads) Pending(ctx context.Context, id string) (waiting []run.Pending, err error) {
	waiting, _, err = s.questions(ctx, id, false)
	return waiting, err
}

// Waits returns what a run waits for besides answers.
func (s Reads) Waits(ctx context.Context, id string) (waits []run.Pending, err error) {
	_, waits, err = s.questions(ctx, id, false)
	return waits, err
}

// Answered returns the questions that have their answers.
func (s Reads) Answered(ctx context.Context, id string) (answered []run.Pending, err error) {
	answered, _, err = s.questions(ctx, id, true)
	return answered, err
}

func (s Reads) questions(ctx context.Context, id string, answered bool) (questions, others []run.Pending, err error) {
	err = s.view(ctx, id, func(ctx context.Context, v View, row int64, _ string) error {
		list, err := Questions(ctx, v, row, answered)
		questions, others = run.Split(list)
		return err
	})
	return questions, others, err
}

// Signals returns the signals of a run in the order in which they came.
func (s Reads) Signals(ctx context.Context, id string) (signals []run.Signal, err error) {
	err = s.view(ctx, id, func(ctx context.Context, v View, row int64, _ string) error {
		signals, err = Signals(ctx, v, row)
		return err
	})
	return signals, err
}

// Events returns events on record.
func (s Reads) Events(ctx context.Context, id string, after, limit int) (found []run.EventRecord, err error) {
	err = s.view(ctx, id, func(ctx context.Context, v View, row int64, _ string) error {
		found, err = v.Events(ctx, row, max(0, after), limit)
		return err
	})
	return found, err
}

// Step returns the result of a step on record.
func (s Reads) Step(ctx context.Context, id string, number int) (result []byte, err error) {
	err = s.view(ctx, id, func(ctx context.Context, v View, row int64, name string) error {
		var data, found []byte
		err := v.Each(ctx, `SELECT result FROM loki.steps WHERE run = $1 AND n = $2 AND result IS NOT NULL`, []any{row, number}, []any{&data}, func() error {
			found = data
			return nil
		})
		if err == nil && found == nil {
			err = fault.New(fault.NotFound, "run %s has no result of a step %d", name, number)
		}
		if err != nil {
			return err
		}
		return v.Decode(ctx, row, func(r Reader) error {
			result, err = r.JSON(found)
			return err
		})
	})
	return result, err
}

// Checkpoint returns the state after a super-step: 0 is the first on record, -1 the last.
func (s Reads) Checkpoint(ctx context.Context, id string, step int) (run.Checkpoint, error) {
	var found Snapshot
	err := s.view(ctx, id, func(ctx context.Context, v View, row int64, name string) error {
		var first, last int
		err := v.Each(ctx, `SELECT coalesce(min(step), -1), coalesce(max(step), -1) FROM loki.checkpoints WHERE run = $1`, []any{row}, []any{&first, &last}, func() error { return nil })
		if err != nil {
			return err
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
			return ErrDamaged
		case wanted < first || wanted > last:
			return fault.New(fault.NotFound, "run %s has no super-step %d: it has come to %d", name, step, last).ThatMisses("step")
		}
		found, err = v.Checkpoint(ctx, row, wanted)
		return err
	})
	return found.Checkpoint, err
}

// Visits returns the visits of the committed super-steps, and of the finished tasks of the one in progress.
func Visits(ctx context.Context, db DB, id int64) (visits []run.Visit, err error) {
	var doc []byte
	var docs [][]byte
	err = db.Each(ctx, `SELECT visits FROM loki.checkpoints WHERE run = $1 ORDER BY step`, []any{id}, []any{&doc}, func() error {
		docs = append(docs, doc)
		doc = nil
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := db.Decode(ctx, id, func(r Reader) error {
		visits = nil
		for _, doc := range docs {
			if visits, err = r.Visits(visits, doc); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	tasks, err := Tasks(ctx, db, id)
	for _, t := range tasks {
		visits = append(visits, t.Visit)
	}
	return visits, err
}

// Tasks returns the finished tasks of the super-step in progress, by node.
func Tasks(ctx context.Context, db DB, id int64) (tasks []run.TaskRecord, err error) {
	type row struct {
		step        int
		node        string
		doc, writes []byte
	}
	var t row
	var found []row
	err = db.Each(ctx, `SELECT step, node, doc, writes FROM loki.tasks WHERE run = $1`, []any{id}, []any{&t.step, &t.node, &t.doc, &t.writes}, func() error {
		found = append(found, t)
		t = row{}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b row) int { return cmp.Or(cmp.Compare(a.step, b.step), cmp.Compare(a.node, b.node)) })
	err = db.Decode(ctx, id, func(r Reader) error {
		tasks = nil
		for _, t := range found {
			task, err := r.Task(t.step, db.Text(t.node), t.doc, t.writes)
			if err != nil {
				return err
			}
			tasks = append(tasks, task)
		}
		return nil
	})
	return tasks, err
}

// Questions returns the questions that have their answers, or the ones that wait, in the order in which they were asked, and likewise the
// other waits of the run.
func Questions(ctx context.Context, db DB, id int64, answered bool) (list []run.Pending, err error) {
	type row struct {
		key string
		doc []byte
	}
	var q row
	var found []row
	err = db.Each(ctx, `SELECT key, doc FROM loki.questions WHERE run = $1 AND answered = $2 ORDER BY n`, []any{id, answered}, []any{&q.key, &q.doc}, func() error {
		found = append(found, q)
		q = row{}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = db.Decode(ctx, id, func(r Reader) error {
		list = nil
		for _, q := range found {
			p, err := r.Pending(db.Text(q.key), q.doc)
			if err != nil {
				return err
			}
			list = append(list, p)
		}
		return nil
	})
	return list, err
}

// Signals returns the signals of a run in the order in which they came.
func Signals(ctx context.Context, db DB, id int64) (signals []run.Signal, err error) {
	type row struct {
		number    int
		name, key string
		at        int64
		doc       []byte
		taken     sql.NullString
	}
	var s row
	var found []row
	err = db.Each(ctx, `SELECT n, name, at, doc, taken, key FROM loki.signals WHERE run = $1 ORDER BY n`, []any{id},
		[]any{&s.number, &s.name, &s.at, &s.doc, &s.taken, &s.key}, func() error {
			found = append(found, s)
			s = row{}
			return nil
		})
	if err != nil {
		return nil, err
	}
	err = db.Decode(ctx, id, func(r Reader) error {
		signals = nil
		for _, s := range found {
			text, err := r.JSON(s.doc)
			if err != nil {
				return err
			}
			signals = append(signals, run.Signal{Number: s.number, Name: db.Text(s.name), Value: text, At: moment(s.at), Taken: db.Text(s.taken.String), Key: db.Text(s.key)})
		}
		return nil
	})
	return signals, err
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
