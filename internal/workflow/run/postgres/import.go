package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"loki/internal/base/fault"
	"loki/internal/service/postgres"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/record"
)

// Import takes over the record of a run from another store. A run of that id that is there already stays as it is: imported is
// false then.
func (s *Store) Import(ctx context.Context, rows record.Rows) (imported bool, err error) {
	if err := s.ready(ctx); err != nil {
		return false, s.explain(err)
	}
	info := rows.Info
	deadlines, due, err := s.deadlines(rows)
	if err != nil {
		return false, err
	}
	var subject, key *string
	if o := info.Owner; o != nil {
		subject, key = new(postgres.Text(o.Subject)), new(postgres.Text(o.KeyID))
	}
	origin := originOf(info)
	err = pgx.BeginFunc(ctx, s.db.Pool(), func(tx pgx.Tx) error {
		var id int64
		err := tx.QueryRow(ctx, `INSERT INTO loki.runs (name, agent, dir, owner, owner_key, served, status, code, until, due, started, rested, about, ending, gap, origin, rank)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) ON CONFLICT (name) DO NOTHING RETURNING id`,
			info.ID, postgres.Text(info.Agent), postgres.Text(info.Dir), subject, key, info.Served, string(info.Status), string(info.Code), nanoseconds(info.Until), due,
			info.Started.UnixNano(), info.Updated.UnixNano(), rows.About, rows.Ending, rows.Gap, origin, info.Rank()).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		imported = true
		made := int64(0)
		for _, t := range rows.Tables {
			columns := append([]string{"run"}, t.Columns...)
			if t.Name == "questions" {
				columns = append(columns, "deadline")
			}
			if t.Name == "steps" {
				t.Rows, made = latest(t.Rows)
			}
			source := pgx.CopyFromSlice(len(t.Rows), func(i int) ([]any, error) {
				row := []any{id}
				for j, v := range t.Rows[i] {
					row = append(row, columnValue(t.Name, t.Columns[j], v))
				}
				if t.Name == "questions" {
					row = append(row, deadlines[i])
				}
				return row, nil
			})
			if _, err := tx.CopyFrom(ctx, pgx.Identifier{"loki", t.Name}, columns, source); err != nil {
				return err
			}
		}
		b := &pgx.Batch{}
		b.Queue(`INSERT INTO loki.leases (run, epoch, opened, writes, made, step, updated) VALUES ($1, 1, $2, 0, $3, $4, $5)`,
			id, info.Updated.UnixNano(), made, info.Steps, info.Updated.UnixNano())
		if len(rows.Hashes) > 0 {
			queueBlobs(b, id, rows.Hashes, rows.Blobs)
		}
		return tx.SendBatch(ctx, b).Close()
	})
	return imported && err == nil, s.explain(err)
}

// columnValue returns a value as its column takes it.
func columnValue(table, column string, v any) any {
	text, ok := v.(string)
	switch {
	case column == "answered":
		return v != int64(0)
	case ok && table == "state":
		return []byte(text)
	case ok:
		return postgres.Text(text)
	}
	return v
}

// latest returns the steps of a run without the repeated ones, and the number of the last one.
func latest(steps [][]any) (kept [][]any, made int64) {
	type key struct{ step, node, key any }
	at := make(map[key]int)
	for _, row := range steps {
		made = max(made, row[0].(int64))
		k := key{row[1], row[2], row[3]}
		i, again := at[k]
		switch result := len(row) - 1; {
		case !again:
			at[k] = len(kept)
			kept = append(kept, row)
		case row[result] != nil || kept[i][result] == nil:
			kept[i] = row
		}
	}
	return kept, made
}

// deadlines returns those of the questions of a run, nil for none, and when it is due: as if it had rested here.
func (s *Store) deadlines(rows record.Rows) (deadlines []*int64, due *int64, err error) {
	texts := make(map[record.Hash]string)
	for i, h := range rows.Hashes {
		texts[record.Hash(h)] = s.reader().Text(string(rows.Blobs[i]))
	}
	docs := s.reader()
	docs.Read = func(h record.Hash) (string, error) {
		text, ok := texts[h]
		if !ok {
			return "", record.ErrDamaged
		}
		return text, nil
	}
	info := rows.Info
	due = nanoseconds(info.Until)
	open, answered := 0, 0
	for _, t := range rows.Tables {
		for _, row := range t.Rows {
			if t.Name != "questions" {
				break
			}
			p, err := docs.Pending("", row[6].([]byte))
			if err != nil {
				return nil, nil, err
			}
			deadline := nanoseconds(p.Deadline)
			deadlines = append(deadlines, deadline)
			if row[5] != int64(0) {
				answered++
				continue
			}
			if open++; deadline != nil && (due == nil || *deadline < *due) {
				due = deadline
			}
		}
	}
	switch {
	case info.Gap != nil || info.Status.Over() || info.Breakpoint != "":
		due = nil
	case info.Status == run.Running, info.Code == fault.Suspended && due == nil && open == 0 && answered > 0:
		due = new(int64(0))
	}
	return deadlines, due, nil
}
