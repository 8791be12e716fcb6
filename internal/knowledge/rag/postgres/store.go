// Package postgres keeps knowledge bases in a PostgreSQL database with the extension pgvector, for
// knowledge bases that outgrow one machine or are shared by several.
//
// A *generation* is one state of a knowledge base: a build makes a new one, and each reader holds
// the one that was in use when it came. Generations of one *series* share the files that are the
// same in them: a file is in those from the one that it was born in up to the one that it died in,
// exclusively. A generation that no reader holds goes with the next build that is committed.
//
// Builders and readers hold advisory locks of the server, which end with their connections.
package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"loki/internal/base/fault"
	"loki/internal/knowledge/rag"
	database "loki/internal/service/postgres"
)

// Store is the place of one knowledge base. Its methods may be called from several goroutines.
type Store struct {
	config *pgxpool.Config
	schema string
	name   string
}

// New returns the place of the knowledge base called name in the database at address, such as
// postgres://USER:PASSWORD@HOST:5432/DATABASE?sslmode=require, with all that libpq allows there and
// in its environment variables. The tables are in the schema loki_rag, or in the first one of a
// search_path in the address. New does not connect. An address that is wrong is an error with code
// Config.
func New(address, name string) (*Store, error) {
	config, err := database.Config(address, "rag_store")
	if err != nil {
		return nil, err
	}
	s := &Store{config: config, schema: "loki_rag", name: name}
	if path := config.ConnConfig.RuntimeParams["search_path"]; path != "" {
		first, _, _ := strings.Cut(path, ",")
		s.schema = strings.Trim(first, ` "`)
	}
	return s, nil
}

// tables makes all tables. A series has the number of its first generation. Files that were
// written together, or small segments that were joined, are a segment, with one row for each of its
// tokens; files and segments have their numbers from next_file.
const tables = `
CREATE TABLE IF NOT EXISTS bases (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name text NOT NULL UNIQUE,
	version integer NOT NULL,
	current bigint, -- generation
	next_file bigint NOT NULL DEFAULT 1,
	builder text
);
CREATE TABLE IF NOT EXISTS generations (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	base bigint NOT NULL REFERENCES bases,
	series bigint NOT NULL,
	settings jsonb NOT NULL,
	dimensions integer NOT NULL,
	files bigint NOT NULL DEFAULT 0,
	chunks bigint NOT NULL DEFAULT 0,
	tokens bigint NOT NULL DEFAULT 0,
	built timestamptz -- NULL until the build is committed
);
CREATE INDEX IF NOT EXISTS generations_base ON generations (base);
CREATE TABLE IF NOT EXISTS files (
	series bigint, id bigint, path text NOT NULL, hash text NOT NULL, source text NOT NULL, chunks integer NOT NULL, tokens bigint NOT NULL,
	segment bigint NOT NULL, born bigint NOT NULL, died bigint,
	PRIMARY KEY (series, id)
);
CREATE INDEX IF NOT EXISTS files_path ON files (series, path);
CREATE INDEX IF NOT EXISTS files_segment ON files (series, segment);
CREATE TABLE IF NOT EXISTS chunks (
	series bigint, file bigint, seq integer, heading text NOT NULL, text text NOT NULL,
	first_line integer NOT NULL, last_line integer NOT NULL, digest bytea NOT NULL, vector vector NOT NULL,
	PRIMARY KEY (series, file, seq)
);
CREATE INDEX IF NOT EXISTS chunks_digest ON chunks (series, digest);
CREATE TABLE IF NOT EXISTS postings (
	series bigint, token text, segment bigint,
	files bigint[] NOT NULL, seqs integer[] NOT NULL, frequencies integer[] NOT NULL,
	lengths integer[] NOT NULL, -- of the chunks, in tokens
	PRIMARY KEY (series, token, segment)
);
CREATE INDEX IF NOT EXISTS postings_segment ON postings (series, segment);
CREATE TABLE IF NOT EXISTS remembered ( -- chunks of files that a build does not have yet
	generation bigint, digest bytea, vector vector NOT NULL,
	PRIMARY KEY (generation, digest)
);`

const version = 2

// connect opens a connection. The caller closes it.
func (s *Store) connect(ctx context.Context) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, s.config.ConnConfig.Copy())
	if err != nil {
		return nil, s.explain(err)
	}
	if err := s.choose(ctx, conn); err != nil {
		hangUp(conn)
		return nil, s.explain(err)
	}
	return conn, nil
}

// choose makes the names of tables those of the schema, and finds pgvector in whichever schema it is.
func (s *Store) choose(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `SELECT set_config('search_path', concat_ws(', ', $1::text, current_setting('search_path'),
		(SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector')), false)`,
		pgx.Identifier{s.schema}.Sanitize())
	return err
}

func hangUp(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	conn.Close(ctx)
}

// explain adds to err what it is about. A table that does not exist is a [fs.ErrNotExist].
func (s *Store) explain(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) && !errors.As(err, new(*pgconn.ConnectError)) {
		return err
	}
	if already, ok := errors.AsType[*fault.Error](err); ok {
		return already
	}
	c := s.config.ConnConfig
	failed := fault.Wrap(fault.Failure, err, "knowledge base %s in the database %s at %s", s.name, c.Database, c.Host)
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &refused) && (refused.Code == "42P01" || refused.Code == "3F000"): // undefined table, or schema
		return fmt.Errorf("knowledge base %s: %w", s.name, fs.ErrNotExist)
	case errors.As(err, &refused) && refused.Code == "42501":
		return failed.WithHint("grant the role %s what it needs on the schema %s", c.User, s.schema)
	case errors.As(err, new(*pgconn.ConnectError)):
		return failed.WithHint("check that the server is running and that the address in rag_store is right")
	}
	return failed
}

// Names returns the names of all knowledge bases in the database, ascending.
func (s *Store) Names(ctx context.Context) ([]string, error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer hangUp(conn)
	names, err := collect(ctx, conn, pgx.RowTo[string], `SELECT name FROM bases WHERE current IS NOT NULL ORDER BY name COLLATE "C"`)
	return names, s.absent(err)
}

// absent is explain for an error that is none if there are no tables.
func (s *Store) absent(err error) error {
	if err = s.explain(err); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// prepare makes the tables that do not exist.
func (s *Store) prepare(ctx context.Context, conn *pgx.Conn) error {
	var done bool
	if err := conn.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, pgx.Identifier{s.schema, "remembered"}.Sanitize()).Scan(&done); err != nil || done {
		return err
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, s.key("tables")); err != nil {
			return err
		}
		var vectors bool
		if err := tx.QueryRow(ctx, `SELECT to_regtype('vector') IS NOT NULL`).Scan(&vectors); err != nil {
			return err
		}
		if !vectors {
			if _, err := tx.Exec(ctx, `CREATE EXTENSION IF NOT EXISTS vector SCHEMA public`); err != nil {
				return fault.Wrap(fault.Failure, err, "the database %s has no pgvector", s.config.ConnConfig.Database).
					WithHint("install pgvector on the server, and have an administrator run CREATE EXTENSION vector in the database")
			}
			if err := s.choose(ctx, conn); err != nil {
				return err
			}
		}
		for _, statements := range []string{`CREATE SCHEMA IF NOT EXISTS ` + pgx.Identifier{s.schema}.Sanitize(), tables} {
			if _, err := tx.Conn().PgConn().Exec(ctx, statements).ReadAll(); err != nil {
				return err
			}
		}
		return nil
	})
}

// key returns the number of an advisory lock.
func (s *Store) key(what string) int64 {
	h := fnv.New64a()
	h.Write([]byte("loki/rag " + s.schema + " " + what))
	return int64(h.Sum64())
}

func (s *Store) generationOf(generation int64) int64 {
	return s.key("generation " + strconv.FormatInt(generation, 10))
}

// tryLock is a query for the lock $1, which fails also if this session has it: a pooler may have
// several clients share one.
func tryLock(function string) string {
	return `SELECT CASE WHEN EXISTS (
		SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND classid::bigint << 32 | objid::bigint = $1
	) THEN false ELSE ` + function + `($1) END`
}

// base is a row of the table bases.
type base struct {
	id, current, next int64
}

// lock opens a connection that holds the lock of builders, until it is closed.
func (s *Store) lock(ctx context.Context) (*pgx.Conn, base, error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, base{}, err
	}
	b, err := s.lockOn(ctx, conn)
	if err != nil {
		hangUp(conn)
		return nil, base{}, s.explain(err)
	}
	return conn, b, nil
}

func (s *Store) lockOn(ctx context.Context, conn *pgx.Conn) (base, error) {
	if err := s.prepare(ctx, conn); err != nil {
		return base{}, err
	}
	var free bool
	if err := conn.QueryRow(ctx, tryLock("pg_try_advisory_lock"), s.key("build "+s.name)).Scan(&free); err != nil {
		return base{}, err
	}
	if !free {
		var builder string
		if err := conn.QueryRow(ctx, `SELECT coalesce((SELECT builder FROM bases WHERE name = $1), 'another process')`, s.name).Scan(&builder); err != nil {
			return base{}, err
		}
		return base{}, fault.New(fault.Usage, "%s is building the knowledge base %s", builder, s.name).WithHint("try again when it is done")
	}
	host, _ := os.Hostname()
	var b base
	var v int
	err := conn.QueryRow(ctx, `INSERT INTO bases (name, version, builder) VALUES ($1, $2, $3)
		ON CONFLICT (name) DO UPDATE SET builder = excluded.builder RETURNING id, coalesce(current, 0), next_file, version`,
		s.name, version, fmt.Sprintf("process %d on %s", os.Getpid(), host)).Scan(&b.id, &b.current, &b.next, &v)
	if err == nil {
		err = checkVersion(v)
	}
	return b, err
}

func checkVersion(v int) error {
	if v == version {
		return nil
	}
	hint := "use a newer version of Loki"
	if v < version {
		hint = "drop the schema of the knowledge bases, and build them again"
	}
	return fault.New(fault.Usage, "the knowledge base has format %d, this version of Loki knows %d", v, version).WithHint("%s", hint)
}

// unlock closes a connection of lock.
func (s *Store) unlock(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	// A pooler does not close the session. Without an answer the lock is gone with the connection.
	_, _ = conn.Exec(ctx, `SELECT pg_advisory_unlock($1)`, s.key("build "+s.name))
	conn.Close(ctx)
}

// Configure implements [rag.Store].
func (s *Store) Configure(ctx context.Context, set rag.Settings) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer hangUp(conn)
	return s.explain(pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var id int64
		var was rag.Settings
		err := tx.QueryRow(ctx, `SELECT g.id, g.settings FROM bases b JOIN generations g ON g.id = b.current WHERE b.name = $1 FOR UPDATE OF g`, s.name).Scan(&id, &was)
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("knowledge base %s: %w", s.name, fs.ErrNotExist)
		}
		if err != nil {
			return err
		}
		if !set.SameChunks(was) {
			return errors.New("these settings need a build")
		}
		set.Documents = was.Documents
		_, err = tx.Exec(ctx, `UPDATE generations SET settings = $2 WHERE id = $1`, id, encode(set))
		return err
	}))
}

// Delete implements [rag.Store]. Searches that are under way find nothing anymore.
func (s *Store) Delete(ctx context.Context) error {
	conn, b, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer s.unlock(conn)
	return s.explain(pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		return run(ctx, tx, []any{b.id},
			`DELETE FROM postings WHERE series IN (SELECT series FROM generations WHERE base = $1)`,
			`DELETE FROM chunks WHERE series IN (SELECT series FROM generations WHERE base = $1)`,
			`DELETE FROM files WHERE series IN (SELECT series FROM generations WHERE base = $1)`,
			`DELETE FROM remembered WHERE generation IN (SELECT id FROM generations WHERE base = $1)`,
			`DELETE FROM generations WHERE base = $1`,
			`DELETE FROM bases WHERE id = $1`)
	}))
}

// querier is a connection, several of them, or a transaction.
type querier interface {
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
}

// collect reads the rows of a query.
func collect[T any](ctx context.Context, db querier, read pgx.RowToFunc[T], query string, args ...any) ([]T, error) {
	rows, _ := db.Query(ctx, query, args...) // the error is that of rows, too
	return pgx.CollectRows(rows, read)
}

// run executes statements with the same arguments.
func run(ctx context.Context, tx pgx.Tx, args []any, statements ...string) error {
	for _, statement := range statements {
		if _, err := tx.Exec(ctx, statement, args...); err != nil {
			return err
		}
	}
	return nil
}

// encode returns settings for a column.
func encode(set rag.Settings) string {
	b, _ := json.Marshal(set) // which has no values that cannot be
	return string(b)
}
