package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"loki/internal/base/fault/steps"
	"loki/internal/base/value"
	"loki/internal/service/auth"
	"loki/internal/service/postgres"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/record"
)

// querier is a transaction or the pool.
type querier interface {
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}

// view reads what is on record. Blobs are read together: documents are decoded without them first, to find
// which they need.
type view struct {
	q     querier
	s     *Store
	head  int // bytes that are read of each blob; 0 for all
	blobs map[blobKey]blob
}

// blob is what was read of one.
type blob struct {
	text    string
	damaged bool // or it is not there
}

type blobKey struct {
	run  int64
	hash record.Hash
}

func (s *Store) view(q querier) *view { return &view{q: q, s: s, blobs: make(map[blobKey]blob)} }

// decode calls fn with what reads documents, and again after blobs that it needs were read. of sets which run
// the documents after it belong to.
func (v *view) decode(ctx context.Context, fn func(r record.Reader, of func(run int64)) error) error {
	for {
		var run int64
		var missing []blobKey
		r := v.s.reader()
		r.Read = func(h record.Hash) (string, error) {
			key := blobKey{run, h}
			b, ok := v.blobs[key]
			switch {
			case !ok:
				missing = append(missing, key)
			case b.damaged:
				return "", record.ErrDamaged
			}
			return b.text, nil
		}
		err := fn(r, func(id int64) { run = id })
		if len(missing) == 0 {
			return err
		}
		if err := v.load(ctx, missing); err != nil {
			return err
		}
	}
}

// Decode implements [record.DB].
func (v *view) Decode(ctx context.Context, run int64, fn func(r record.Reader) error) error {
	return v.decode(ctx, func(r record.Reader, of func(int64)) error {
		of(run)
		return fn(r)
	})
}

// Each implements [record.DB].
func (v *view) Each(ctx context.Context, query string, args, dest []any, fn func() error) error {
	return each(ctx, v.q, query, args, dest, fn)
}

// each calls fn for every row of the result, once its columns are in dest.
func each(ctx context.Context, q querier, query string, args, dest []any, fn func() error) error {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	_, err = pgx.ForEachRow(rows, dest, fn)
	return err
}

// Text implements [record.DB].
func (v *view) Text(text string) string { return postgres.Original(text) }

// load reads blobs.
func (v *view) load(ctx context.Context, keys []blobKey) error {
	runs, hashes := make([]int64, len(keys)), make([][]byte, len(keys))
	for i, k := range keys {
		v.blobs[k] = blob{damaged: true} // unless it is found
		runs[i], hashes[i] = k.run, k.hash[:]
	}
	column, args := "b.data", []any{runs, hashes}
	if v.head > 0 {
		column, args = "substr(b.data, 1, $3)", append(args, v.head)
	}
	var run int64
	var hash, data []byte
	query := `SELECT b.run, b.hash, ` + column + ` FROM unnest($1::bigint[], $2::bytea[]) AS k (run, hash) JOIN loki.blobs b ON b.run = k.run AND b.hash = k.hash`
	return v.Each(ctx, query, args, []any{&run, &hash, &data}, func() error {
		if h := record.Hash(hash); v.head > 0 || record.HashOf(data) == h {
			v.blobs[blobKey{run, h}] = blob{text: v.s.reader().Text(string(data))}
		}
		return nil
	})
}

// reads calls fn in a transaction that sees one moment, with the run whose id begins with typed, see [record.NewReads].
func (s *Store) reads(ctx context.Context, typed string, fn func(ctx context.Context, v record.View, id int64, name string) error) error {
	var name string
	err := s.transaction(ctx, oneMoment, func(ctx context.Context, tx pgx.Tx) (err error) {
		var id int64
		if id, name, err = find(ctx, tx, typed); err != nil {
			return err
		}
		return fn(ctx, s.view(tx), id, name)
	})
	return s.explainDamage(name, err)
}

var oneMoment = pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}

// Stamps implements [run.Stamper].
func (s *Store) Stamps(ctx context.Context) (map[string]string, error) {
	stamps := make(map[string]string)
	err := s.transaction(ctx, oneMoment, func(ctx context.Context, tx pgx.Tx) error {
		var name string
		var status run.Status
		var updated int64
		return each(ctx, tx, `SELECT r.name, r.status, l.updated FROM loki.runs r JOIN loki.leases l ON l.run = r.id`, nil, []any{&name, &status, &updated}, func() error {
			stamps[name] = run.Stamp(status, updated)
			return nil
		})
	})
	return stamps, err
}

// selectRuns reads runs with their lease and last checkpoint.
const selectRuns = `
	SELECT r.id, r.name, r.agent, r.dir, r.owner, r.owner_key, r.status, r.started, l.updated, l.step, l.takeovers, r.about, r.ending, r.gap, coalesce(c.doc, ''),
		m.host, m.pid, ` + postgres.Silence + `
	FROM loki.runs r JOIN loki.leases l ON l.run = r.id
	LEFT JOIN loki.checkpoints c ON c.run = r.id AND c.step = l.step
	LEFT JOIN loki.members m ON m.id = l.member `

// runRow is a row of selectRuns.
type runRow struct {
	id, started, updated        int64
	info                        run.Info // as far as it has columns of its own
	owner, key, host            sql.NullString
	pid                         sql.NullInt32
	silent                      sql.NullFloat64
	about, ending, gap, lastDoc []byte
}

func (v *view) rows(ctx context.Context, query string, args ...any) ([]runRow, error) {
	return record.Collect(ctx, v, query, args, func(r *runRow) []any {
		return []any{
			&r.id, &r.info.ID, &r.info.Agent, &r.info.Dir, &r.owner, &r.key, &r.info.Status, &r.started, &r.updated, &r.info.Steps, &r.info.Takeovers, &r.about, &r.ending, &r.gap, &r.lastDoc,
			&r.host, &r.pid, &r.silent,
		}
	})
}

// describe returns what a row says of a run. If a document of it cannot be read, what is known without it comes
// with the error.
func (s *Store) describe(r *runRow, docs record.Reader) (run.Info, error) {
	info := r.info
	info.Agent, info.Dir = postgres.Original(info.Agent), postgres.Original(info.Dir)
	info.Started, info.Updated = moment(r.started), moment(r.updated)
	if r.host.Valid {
		info.Active, info.Held = true, s.heldBy(info.ID, r.host.String, int(r.pid.Int32), r.silent.Float64)
	}
	if r.owner.Valid {
		info.Owner = &auth.Owner{Subject: postgres.Original(r.owner.String), KeyID: postgres.Original(r.key.String)}
	}
	info.Gap = docs.Gap(r.gap)
	err := docs.Describe(&info, r.about, r.ending, r.lastDoc)
	info.Queued = info.Served && info.Status == run.Running && !info.Active && info.Gap == nil
	return info, err
}

// openUsage returns the results of the model steps after the last super-steps of resumed runs.
func (v *view) openUsage(ctx context.Context, runs []runRow) (map[int64][][]byte, error) {
	var ids []int64
	var last []int32
	for _, r := range runs {
		if r.info.Status != run.Done {
			ids, last = append(ids, r.id), append(last, int32(r.info.Steps))
		}
	}
	found := make(map[int64][][]byte)
	if len(ids) == 0 {
		return found, nil
	}
	var id int64
	var result []byte
	err := v.Each(ctx, `SELECT s.run, s.result FROM unnest($1::bigint[], $2::integer[]) AS k (run, step)
		JOIN loki.steps s ON s.run = k.run AND s.step > k.step WHERE s.kind = $3 AND s.result IS NOT NULL`, []any{ids, last, string(steps.Model)}, []any{&id, &result}, func() error {
		found[id] = append(found[id], result)
		result = nil
		return nil
	})
	return found, err
}

// Info implements [record.View].
func (v *view) Info(ctx context.Context, id int64) (info run.Info, err error) {
	found, err := v.rows(ctx, selectRuns+"WHERE r.id = $1", id)
	if err != nil || len(found) == 0 {
		return info, errors.Join(err, ifEmpty(found))
	}
	used, err := v.openUsage(ctx, found)
	if err != nil {
		return info, err
	}
	if err := v.Decode(ctx, id, func(r record.Reader) error {
		if info, err = v.s.describe(&found[0], r); err != nil {
			return err
		}
		for _, result := range used[id] {
			r.AddUsage(&info, result)
		}
		return nil
	}); err != nil {
		return run.Info{}, err
	}
	info.Events, err = v.eventCount(ctx, id)
	return info, err
}

// ifEmpty is the error of a run without its rows.
func ifEmpty[T any](rows []T) error {
	if len(rows) == 0 {
		return record.ErrDamaged
	}
	return nil
}

// eventCount returns how many events of a run are on record.
func (v *view) eventCount(ctx context.Context, id int64) (int, error) {
	var first int
	var batch []byte
	err := v.q.QueryRow(ctx, `SELECT first, batch FROM loki.events WHERE run = $1 ORDER BY first DESC LIMIT 1`, id).Scan(&first, &batch)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	size, err := record.BatchSize(batch)
	return first - 1 + size, err
}

// Runs returns the runs that match, newest first.
func (s *Store) Runs(ctx context.Context, q run.Query) (infos []run.Info, err error) {
	where, args := record.Where(q, postgres.Text)
	err = s.transaction(ctx, oneMoment, func(ctx context.Context, tx pgx.Tx) error {
		if q.Before != "" {
			id, _, err := find(ctx, tx, q.Before)
			if err != nil {
				return err
			}
			args = append(args, id)
			where = append(where, fmt.Sprintf("(r.started, r.id) < (SELECT started, id FROM loki.runs WHERE id = $%d)", len(args)))
		}
		query := selectRuns
		if len(where) > 0 {
			query += "WHERE " + strings.Join(where, " AND ")
		}
		query += " ORDER BY r.started DESC, r.id DESC"
		if q.Limit > 0 {
			query += fmt.Sprintf(" LIMIT %d", q.Limit)
		}
		v := s.view(tx)
		v.head = run.HeadSize
		found, err := v.rows(ctx, query, args...)
		if err != nil {
			return err
		}
		used, err := v.openUsage(ctx, found)
		if err != nil {
			return err
		}
		return v.decode(ctx, func(r record.Reader, of func(int64)) error {
			infos = nil
			for _, row := range found {
				of(row.id)
				info, err := s.describe(&row, r)
				if err != nil {
					info.Damaged = true
				}
				for _, result := range used[row.id] {
					r.AddUsage(&info, result)
				}
				infos = append(infos, info.Head())
			}
			return nil
		})
	})
	return infos, err
}

// Checkpoint implements [record.View].
func (v *view) Checkpoint(ctx context.Context, id int64, step int) (s record.Snapshot, err error) {
	docs, err := record.Collect(ctx, v, `SELECT doc FROM loki.checkpoints WHERE run = $1 AND step <= $2 ORDER BY step`, []any{id, step},
		func(doc *[]byte) []any { return []any{doc} })
	if err != nil {
		return s, err
	}
	values, err := v.state(ctx, id, `WITH RECURSIVE keys (key) AS (
			(SELECT key FROM loki.state WHERE run = $1 ORDER BY key LIMIT 1)
			UNION ALL
			SELECT (SELECT s.key FROM loki.state s WHERE s.run = $1 AND s.key > keys.key ORDER BY s.key LIMIT 1) FROM keys WHERE keys.key IS NOT NULL
		)
		SELECT s.key, s.full_step, last.step, s.doc FROM keys
		CROSS JOIN LATERAL (SELECT * FROM loki.state s WHERE s.run = $1 AND s.key = keys.key AND s.step <= $2 ORDER BY s.step DESC LIMIT 1) AS last
		JOIN loki.state s ON s.run = $1 AND s.key = keys.key AND s.step BETWEEN last.full_step AND last.step
		WHERE last.doc IS NOT NULL ORDER BY s.key, s.step`, step)
	if err != nil {
		return s, err
	}
	err = v.Decode(ctx, id, func(r record.Reader) error {
		s = record.Snapshot{Checkpoint: run.Checkpoint{Step: step, Position: run.Position{Visits: make(map[string]int)}}, Places: make(map[string]record.Place)}
		for _, doc := range docs {
			if err := s.Advance(r, doc); err != nil {
				return err
			}
		}
		var members []value.Member
		for where, docs := range values {
			whole, err := r.Whole(docs)
			if err != nil {
				return err
			}
			name := r.Text(where.Key)
			s.Places[name] = where
			members = append(members, value.Member{Name: name, Value: whole})
		}
		s.State = graph.NewState(value.ObjectOf(members...))
		return nil
	})
	return s, err
}

// state returns the documents of values by their places. query returns key, first and last step, and a document.
func (v *view) state(ctx context.Context, id int64, query string, args ...any) (map[record.Place][][]byte, error) {
	values := make(map[record.Place][][]byte)
	var key, doc []byte
	var where record.Place
	err := v.Each(ctx, query, append([]any{id}, args...), []any{&key, &where.Full, &where.At, &doc}, func() error {
		where.Key = string(key)
		values[where] = append(values[where], doc)
		doc = nil
		return nil
	})
	return values, err
}

// Events implements [record.View].
func (v *view) Events(ctx context.Context, id int64, after, limit int) (found []run.EventRecord, err error) {
	most := sql.NullInt64{Int64: int64(limit) + 1, Valid: limit > 0} // batches: each has at least one event
	type batchRow struct {
		First int
		Batch []byte
	}
	batches, err := record.Collect(ctx, v, `SELECT first, batch FROM loki.events WHERE run = $1
		AND first >= coalesce((SELECT first FROM loki.events WHERE run = $1 AND first <= $2 ORDER BY first DESC LIMIT 1), 0) ORDER BY first LIMIT $3`,
		[]any{id, after + 1, most}, func(b *batchRow) []any { return []any{&b.First, &b.Batch} })
	if err != nil {
		return nil, err
	}
	// Events may repeat values of the state.
	values := make(map[record.Place][][]byte)
	for {
		var missing []record.Place
		err := v.Decode(ctx, id, func(r record.Reader) (err error) {
			found = nil
			for _, b := range batches {
				found, err = r.Batch(found, b.Batch, b.First, after, limit, func(where record.Place) (value.Value, error) {
					docs, ok := values[where]
					if !ok {
						missing = append(missing, where)
						return value.Value{}, nil
					}
					return r.Whole(docs)
				})
				if err != nil || limit > 0 && len(found) == limit {
					return err
				}
			}
			return nil
		})
		if err != nil || len(missing) == 0 {
			return found, err
		}
		var keys [][]byte
		var full, at []int32
		for _, where := range missing {
			values[where] = nil // damaged, unless it is found
			keys, full, at = append(keys, []byte(where.Key)), append(full, int32(where.Full)), append(at, int32(where.At))
		}
		more, err := v.state(ctx, id, `SELECT k.key, k.full_step, k.step, s.doc FROM (SELECT DISTINCT * FROM unnest($2::bytea[], $3::integer[], $4::integer[]) AS k (key, full_step, step)) AS k
			JOIN loki.state s ON s.run = $1 AND s.key = k.key AND s.step BETWEEN k.full_step AND k.step ORDER BY k.key, k.full_step, k.step, s.step`, keys, full, at)
		if err != nil {
			return nil, err
		}
		for where, docs := range more {
			values[where] = docs
		}
	}
}
