// Package postgres is what all users of a PostgreSQL database share: a pool of connections that opens when it
// is needed, errors in words for people, the versions of the tables, news for those who listen, and the
// membership of this process among the processes that share the database.
//
// All tables are in the schema loki. A part, such as the runs or the sessions, has its own tables and its
// own version, see [DB.Migrate].
//
// A process that takes leases is a member, see [Member]: a row that it renews every 5 s. Leases name the
// row, so that one heartbeat keeps all leases of a process, and the end of the row ends them all.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"loki/internal/base/fault"
)

// Connections of one process: those of the pool, one that listens, and one that says that the process
// lives. Three servers stay far below the 100 that PostgreSQL allows by default.
const poolSize = 10

// Options configure a database. The zero Options are usable.
type Options struct {
	Setting string // what holds the address, for errors, such as "store"; empty means "the address"
	Timing  Timing
}

// DB is a database that several processes use together. Its methods may be called from several
// goroutines. Nothing connects before it is needed.
type DB struct {
	pool    *pgxpool.Pool
	setting string
	timing  atomic.Pointer[Timing]

	migrating gate
	migrated  map[string]bool // parts whose tables are known to be there

	joining gate
	member  *Member      // the last one; nil for none
	buried  atomic.Int64 // when [DB.BuryAtTimes] looked for dead members last, in ns since 1970

	news news
	hear hearing
}

// Config parses an address such as postgres://USER:PASSWORD@HOST:5432/DATABASE?sslmode=require, with all
// that libpq allows there and in its environment variables. setting is what holds the address. An address
// that is wrong is an error with code Config that does not quote it.
func Config(address, setting string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(address)
	if err != nil { // which may quote parts of the address
		return nil, fault.New(fault.Config, "%s is not the address of a PostgreSQL database", setting).
			WithHint("write postgres://USER:PASSWORD@HOST:5432/DATABASE, with percent-encoding for special characters")
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = 10 * time.Second
	}
	config.ConnConfig.RuntimeParams["application_name"] = "loki"
	return config, nil
}

// Open returns the database at an address, see [Config], without connecting to it. The pool has 10
// connections at most, unless the address sets pool_max_conns.
func Open(address string, o Options) (*DB, error) {
	if o.Setting == "" {
		o.Setting = "the address"
	}
	config, err := Config(address, o.Setting)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(address, "pool_max_conns") {
		config.MaxConns = poolSize
	}
	config.MaxConnIdleTime = 5 * time.Minute
	pool, err := pgxpool.NewWithConfig(context.Background(), config) // which does not connect
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "%s cannot be used", o.Setting)
	}
	db := &DB{pool: pool, setting: o.Setting, migrating: make(gate, 1), joining: make(gate, 1), migrated: make(map[string]bool)}
	db.timing.Store(new(o.Timing.orDefaults()))
	db.news.init(db)
	db.hear.init(db)
	return db, nil
}

// Pool returns the connections. Errors of their use are to be given to [DB.Explain].
func (db *DB) Pool() *pgxpool.Pool { return db.pool }

// Dead is how long a member may give no sign of life, see [Timing].
func (db *DB) Dead() time.Duration { return db.timing.Load().Dead }

// errSilent is the cause of the end of a context of [DB.Within].
var errSilent = errors.New("the database gives no answer")

// Within returns a context for a call of the database, which ends at the latest after the time that calls wait, see [Timing].
func (db *DB) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, db.timing.Load().Wait, errSilent)
}

// gate is a mutex that callers wait for no longer than their context. It has room for one element.
type gate chan struct{}

func (g gate) enter(ctx context.Context) error {
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g gate) leave() { <-g }

// Close sends the news that wait, ends the membership of the process, with all leases that it still has,
// and closes the connections. It waits for connections that are in use.
func (db *DB) Close() {
	db.news.close()
	db.hear.close()
	db.joining <- struct{}{}
	defer db.joining.leave()
	if db.member != nil {
		db.member.leave()
	}
	db.pool.Close()
}

// connect opens a connection beside the pool.
func (db *DB) connect(ctx context.Context) (*pgx.Conn, error) {
	return pgx.ConnectConfig(ctx, db.pool.Config().ConnConfig)
}

// hangUp closes a connection.
func hangUp(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// Explain adds to an error of the database what it is about and what can be done. Errors that have a code of
// package fault already, and those of a context that ended, are returned as they are.
func (db *DB) Explain(err error) error {
	c, setting := db.pool.Config().ConnConfig, db.setting
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) && !Passing(err) {
		return err
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	if Passing(err) {
		err = &away{err}
	}
	failed := fault.Wrap(fault.Failure, err, "the database %s at %s", c.Database, c.Host)
	refused, _ := errors.AsType[*pgconn.PgError](err)
	code := ""
	if refused != nil {
		code = refused.Code
	}
	switch {
	case code == "28P01" || code == "28000":
		failed.Code = fault.Config
		return failed.WithHint("check the user and the password in %s", setting)
	case code == "3D000":
		failed.Code = fault.Config
		return failed.WithHint("create the database: createdb %s", c.Database)
	case code == "42501":
		return failed.WithHint("grant the role %s what it needs: GRANT CREATE ON DATABASE %s TO %s", c.User, c.Database, c.User)
	case code == "53100":
		return failed.WithHint("free some space on the disk of the server; what is recorded is kept")
	case code == "53300":
		return failed.WithHint("raise max_connections of the server, or set a smaller pool_max_conns in %s", setting)
	case errors.As(err, new(*pgconn.ConnectError)) || broken(err):
		return failed.WithHint("check that the server is running and that %s is right", setting)
	}
	return failed
}

// ErrAway is in the chain of an explained error that was [Passing], so that the same may work later.
var ErrAway = errors.New("the database cannot be used now")

// away is an error that is an [ErrAway].
type away struct{ error }

func (e *away) Unwrap() error        { return e.error }
func (e *away) Is(target error) bool { return target == ErrAway }

// Passing reports whether the cause of an error may be over soon: the server restarts, or cannot be reached,
// or others were in the way. What was written may have been committed nevertheless, see [Unknown].
func Passing(err error) bool {
	if err == nil {
		return false
	}
	if pgconn.SafeToRetry(err) || errors.Is(err, ErrAway) {
		return true
	}
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch refused.Code {
		case "40001", "40P01", "55P03", // others were in the way
			"57014",                   // a statement took too long
			"57P01", "57P02", "57P03", // the server stops, or starts
			"25006", // the server is not the first of its cluster any more
			"53300", "53200":
			return true
		}
		return strings.HasPrefix(refused.Code, "08")
	}
	return errors.As(err, new(*pgconn.ConnectError)) || broken(err)
}

// Unknown reports whether the server did not say what became of a transaction: its answer was lost with the
// connection, or took too long.
func Unknown(err error) bool {
	if err == nil || pgconn.SafeToRetry(err) || errors.As(err, new(*pgconn.ConnectError)) {
		return false
	}
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return refused.Severity == "FATAL" || refused.Severity == "PANIC"
	}
	return broken(err)
}

// quote marks a text that is stored as a quoted one.
const quote = "\x01"

// Text returns text as a column of type text can hold it, which [Original] takes back: one that is not UTF-8,
// or has zero bytes, is quoted.
func Text(text string) string {
	if utf8.ValidString(text) && !strings.Contains(text, "\x00") && !strings.HasPrefix(text, quote) {
		return text
	}
	return quote + strconv.Quote(text)
}

// Original is the opposite of [Text].
func Original(text string) string {
	if quoted, ok := strings.CutPrefix(text, quote); ok {
		if unquoted, err := strconv.Unquote(quoted); err == nil {
			return unquoted
		}
	}
	return text
}

// Migrate makes the tables of a part, or brings them up to date. steps has the statements that lead from each
// version to the next, beginning with none; one that was released does not change any more, and leaves
// processes that know fewer able to work, while they are replaced. Several processes may call it at once.
// After the first success it costs nothing. The table of members, which leases refer to, is made too. Tables of a newer version are an error with code Usage.
func (db *DB) Migrate(ctx context.Context, part string, steps ...string) error {
	ctx, cancel := db.Within(ctx)
	defer cancel()
	if err := db.migrating.enter(ctx); err != nil {
		return db.Explain(err)
	}
	defer db.migrating.leave()
	if err := db.migrate(ctx, "members", membersTable); err != nil {
		return err
	}
	return db.migrate(ctx, part, steps)
}

// migrate is Migrate for one that holds db.migrating.
func (db *DB) migrate(ctx context.Context, part string, steps []string) error {
	if db.migrated[part] {
		return nil
	}
	version, err := db.version(ctx, part)
	if err == nil && version < len(steps) {
		version, err = db.upgrade(ctx, part, steps)
	}
	if err == nil && version > len(steps) {
		err = fault.New(fault.Usage, "the %s in the database %s have format %d, and this version of Loki knows %d", part, db.pool.Config().ConnConfig.Database, version, len(steps)).
			WithHint("use a newer version of Loki")
	}
	if err != nil {
		return db.Explain(err)
	}
	db.migrated[part] = true
	return nil
}

// version returns the version of a part, 0 for one that has no tables.
func (db *DB) version(ctx context.Context, part string) (version int, err error) {
	err = db.pool.QueryRow(ctx, `SELECT version FROM loki.versions WHERE part = $1`, part).Scan(&version)
	refused, _ := errors.AsType[*pgconn.PgError](err)
	if errors.Is(err, pgx.ErrNoRows) || refused != nil && (refused.Code == "42P01" || refused.Code == "3F000") { // undefined table, or schema
		return 0, nil
	}
	return version, err
}

// lockNumber is the number of the advisory lock for changes of tables: "loki".
const lockNumber = 0x6c6f6b69

// upgrade makes the steps that a part lacks, and returns its version.
func (db *DB) upgrade(ctx context.Context, part string, steps []string) (version int, err error) {
	err = pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error {
		exec := func(statements string) error {
			_, err := tx.Conn().PgConn().Exec(ctx, statements).ReadAll()
			return err
		}
		if err := exec(fmt.Sprintf(`SELECT pg_advisory_xact_lock(%d);
			CREATE SCHEMA IF NOT EXISTS loki;
			CREATE TABLE IF NOT EXISTS loki.versions (part text PRIMARY KEY, version integer NOT NULL, at timestamptz NOT NULL)`, lockNumber)); err != nil {
			return err
		}
		err := tx.QueryRow(ctx, `SELECT coalesce((SELECT version FROM loki.versions WHERE part = $1), 0)`, part).Scan(&version)
		if err != nil || version >= len(steps) {
			return err // another process has just done so
		}
		for i, step := range steps[version:] {
			if err := exec(step); err != nil {
				return fmt.Errorf("making format %d of the %s: %w", version+i+1, part, err)
			}
		}
		version = len(steps)
		_, err = tx.Exec(ctx, `INSERT INTO loki.versions VALUES ($1, $2, now()) ON CONFLICT (part) DO UPDATE SET version = excluded.version, at = now()`, part, version)
		return err
	})
	return version, err
}
