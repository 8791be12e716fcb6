package sqlite

import (
	"context"
	"strings"

	"loki/internal/workflow/run/record"
)

// Export returns all that is on record of a run. The record stays as it is.
func (s *Store) Export(ctx context.Context, id string) (rows record.Rows, err error) {
	err = s.viewRun(ctx, id, func(c *conn, row int64, name string) error {
		if rows.Info, err = s.readInfo(c, s.readBlobs(c), row); err != nil {
			return err
		}
		if _, err := c.row("SELECT about, ending FROM runs WHERE id = ?", []any{row}, &rows.About, &rows.Ending); err != nil {
			return err
		}
		if gap := rows.Info.Gap; gap != nil {
			if rows.Gap, err = s.seal().Gap(*gap); err != nil {
				return err
			}
		}
		for _, t := range record.Tables() {
			if t.Rows, err = exportTable(c, t, row); err != nil {
				return err
			}
			rows.Tables = append(rows.Tables, t)
		}
		var hash []byte
		err := c.rows("SELECT b.hash FROM uses u JOIN blobs b ON b.id = u.blob WHERE u.run = ?", []any{row}, []any{&hash}, func() error {
			rows.Hashes = append(rows.Hashes, hash)
			hash = nil
			return nil
		})
		for _, h := range rows.Hashes {
			if err != nil {
				return err
			}
			var text string
			text, err = readBlob(c, record.Hash(h))
			rows.Blobs = append(rows.Blobs, []byte(text))
		}
		return err
	})
	return rows, err
}

// exportTable returns the rows of a run in a table, with the numbers of events that older versions did not count.
func exportTable(c *conn, t record.Table, run int64) (rows [][]any, err error) {
	columns := strings.ReplaceAll(strings.Join(t.Columns, ", "), "full_step", "full")
	order := "1"
	if t.Name == "events" {
		order = "n"
	}
	values, dest := make([]any, len(t.Columns)), make([]any, len(t.Columns))
	for i := range values {
		dest[i] = &values[i]
	}
	next := 1
	err = c.rows("SELECT "+columns+" FROM "+t.Name+" WHERE run = ? ORDER BY "+order, []any{run}, dest, func() error {
		row := append([]any{}, values...)
		if t.Name == "events" {
			size, err := record.BatchSize(row[1].([]byte))
			if err != nil {
				return err
			}
			row[0] = int64(next)
			next += size
		}
		rows = append(rows, row)
		return nil
	})
	return rows, err
}
