package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
)

// querier is a database or a connection to it.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// scan reads a row. A value of another kind than that of dest is damage.
func scan(rows *sql.Rows, dest ...any) error {
	if err := rows.Scan(dest...); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	return nil
}

// scanRow reads the first of rows; ok is false if there is none.
func scanRow(rows *sql.Rows, dest ...any) (ok bool, err error) {
	defer rows.Close()
	if !rows.Next() {
		return false, rows.Err()
	}
	if err := scan(rows, dest...); err != nil {
		return false, err
	}
	return true, rows.Close()
}

// eachRow does something for each row of a query, once it is in dest.
func eachRow(ctx context.Context, db querier, do func() error, query string, args []any, dest ...any) error {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows, dest...); err != nil {
			return err
		}
		if err := do(); err != nil {
			return err
		}
	}
	return rows.Err()
}

// readRow reads a row that must exist.
func readRow(ctx context.Context, db querier, query string, dest ...any) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	ok, err := scanRow(rows, dest...)
	if err == nil && !ok {
		err = errDamaged
	}
	return err
}

// statements are prepared once for a database or a connection, which takes longer than a search by key.
type statements struct {
	on interface {
		PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	}
	mu       sync.Mutex
	prepared map[string]*sql.Stmt
}

func (s *statements) get(query string) (*sql.Stmt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stmt := s.prepared[query]; stmt != nil {
		return stmt, nil
	}
	stmt, err := s.on.PrepareContext(context.Background(), query)
	if err == nil {
		if s.prepared == nil {
			s.prepared = make(map[string]*sql.Stmt)
		}
		s.prepared[query] = stmt
	}
	return stmt, err
}

// row reads one row; ok is false if there is none.
func (s *statements) row(ctx context.Context, query string, args []any, dest ...any) (ok bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	stmt, err := s.get(query)
	if err != nil {
		return false, err
	}
	// The query is short, and one that can be canceled takes a goroutine.
	rows, err := stmt.QueryContext(context.WithoutCancel(ctx), args...)
	if err != nil {
		return false, err
	}
	return scanRow(rows, dest...)
}

func (s *statements) close() (err error) {
	for _, stmt := range s.prepared {
		err = errors.Join(err, stmt.Close())
	}
	return err
}
