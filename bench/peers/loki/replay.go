package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"loki/internal/workflow/run/sqlite"
)

// replay measures what SQLite itself takes for the rows that cases leave in Loki's store: they
// are inserted through the same driver with the same settings, in as many transactions as
// Loki made, by one goroutine, with prepared statements.
type replay struct {
	recordings map[string]recording // by case and number of runs
}

// recording is what runs have left in a store.
type recording struct {
	schema       []string
	rows         []tableRow // in the order of the runs' progress
	transactions int
}

type tableRow struct {
	insert string // the statement
	values []any
	number int // of the row in its table among those of its run, from 1
}

// measure returns how long the rows of runs of a case take. Making them is not counted.
func (p *replay) measure(ctx context.Context, name string, b bench, runs int) (time.Duration, error) {
	dir, err := os.MkdirTemp("", "loki-bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	key := fmt.Sprintf("%s %d", name, runs)
	r, ok := p.recordings[key]
	if !ok {
		if r, err = makeRecording(ctx, filepath.Join(dir, "runs.db"), b, runs); err != nil {
			return 0, err
		}
		p.recordings[key] = r
	}
	return r.play(ctx, filepath.Join(dir, "replay.db"))
}

func makeRecording(ctx context.Context, path string, b bench, runs int) (r recording, err error) {
	store, err := sqlite.Open(path, sqlite.Options{Hook: func(_ string, n int) { r.transactions = n / 2 }})
	if err != nil {
		return r, err
	}
	for range runs {
		if err := b.run(ctx, runner{store}); err != nil {
			return r, errors.Join(err, store.Close())
		}
	}
	if err := store.Close(); err != nil {
		return r, err
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return r, err
	}
	defer db.Close()
	tables, err := read(ctx, db, "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
	if err != nil {
		return r, err
	}
	for _, t := range tables {
		r.schema = append(r.schema, t[1].(string))
		rows, err := read(ctx, db, fmt.Sprintf("SELECT * FROM %s", t[0]))
		if err != nil {
			return r, err
		}
		count := make(map[any]int) // rows of a run, which the first column names
		for _, values := range rows {
			count[values[0]]++
			statement := fmt.Sprintf("INSERT INTO %s VALUES (?%s)", t[0], strings.Repeat(", ?", len(values)-1))
			r.rows = append(r.rows, tableRow{statement, values, count[values[0]]})
		}
	}
	slices.SortStableFunc(r.rows, func(a, b tableRow) int { return cmp.Compare(a.number, b.number) })
	return r, nil
}

// read returns the rows of a query.
func read(ctx context.Context, db *sql.DB, query string) (all [][]any, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		values, dest := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			dest[i] = &values[i]
		}
		if err := rows.Scan(dest...); err != nil {
			return nil, err
		}
		all = append(all, values)
	}
	return all, rows.Err()
}

// play inserts the rows into a new file and returns how long that takes.
func (r recording) play(ctx context.Context, path string) (time.Duration, error) {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	c, err := db.Conn(ctx)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	settings := []string{
		"PRAGMA auto_vacuum = INCREMENTAL", "PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL",
		"PRAGMA wal_autocheckpoint = 4000", "PRAGMA journal_size_limit = 16777216",
	}
	for _, statement := range append(settings, r.schema...) {
		if _, err := c.ExecContext(ctx, statement); err != nil {
			return 0, err
		}
	}
	prepared := make(map[string]*sql.Stmt)
	exec := func(statement string, values ...any) error {
		s := prepared[statement]
		if s == nil {
			if s, err = c.PrepareContext(ctx, statement); err != nil {
				return err
			}
			prepared[statement] = s
		}
		_, err := s.ExecContext(ctx, values...)
		return err
	}
	begin := time.Now()
	each := (len(r.rows) + r.transactions - 1) / r.transactions
	for rows := range slices.Chunk(r.rows, each) {
		if err := exec("BEGIN IMMEDIATE"); err != nil {
			return 0, err
		}
		for _, row := range rows {
			if err := exec(row.insert, row.values...); err != nil {
				return 0, err
			}
		}
		if err := exec("COMMIT"); err != nil {
			return 0, err
		}
	}
	return time.Since(begin), nil
}
