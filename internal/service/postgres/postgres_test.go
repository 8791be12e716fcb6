package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"loki/internal/base/fault"
	"loki/internal/base/process/identity"
	"loki/internal/service/postgres"
	"loki/internal/service/postgres/postgrestest"
)

// quick is the timing of tests.
var quick = postgres.Timing{Beat: 100 * time.Millisecond, Dead: 3 * time.Second, Patience: 6 * time.Second}

func open(t testing.TB, address string) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(address, postgres.Options{Setting: "store", Timing: quick})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

func TestOpenAddresses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"postgres://u:secret@:port/x", "http://x", "host=x port=y"} {
		_, err := postgres.Open(address, postgres.Options{Setting: "store"})
		if fault.CodeOf(err) != fault.Config || fault.HintOf(err) == "" {
			t.Errorf("%s: %v", address, err)
		}
	}
	db := open(t, "postgres://u:secret@127.0.0.1:1/x?connect_timeout=1")
	err := db.Migrate(t.Context(), "things", "CREATE TABLE loki.things ()")
	if !postgres.Passing(err) || postgres.Unknown(err) || fault.HintOf(err) == "" {
		t.Errorf("no server: %v, hint %q", err, fault.HintOf(err))
	}
}

// notSent is an error of a statement that was not sent.
type notSent struct{ error }

func (notSent) SafeToRetry() bool { return true }

// TestPassing: what was not sent can be tried again, whatever the reason, and so can what the network or a server that restarts is to
// blame for. What the server refused cannot.
func TestPassing(t *testing.T) {
	db := open(t, "postgres://u:secret@127.0.0.1:1/x")
	for _, tt := range []struct {
		name    string
		err     error
		passing bool
	}{
		{"nothing", nil, false},
		{"not_sent", notSent{errors.New("conn closed")}, true},
		{"not_sent_within", fmt.Errorf("reading: %w", notSent{errors.New("conn closed")}), true},
		{"not_sent_after_a_refusal", notSent{&pgconn.PgError{Code: "28000"}}, true},
		{"lost", io.ErrUnexpectedEOF, true},
		{"late", context.DeadlineExceeded, true},
		{"restarts", &pgconn.PgError{Code: "57P01", Severity: "FATAL"}, true},
		{"refused", &pgconn.PgError{Code: "23505"}, false},
		{"no_rights", &pgconn.PgError{Code: "42501"}, false},
		{"canceled", context.Canceled, false},
		{"else", errors.New("boom"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := db.Explain(tt.err)
			if postgres.Passing(tt.err) != tt.passing || postgres.Passing(err) != tt.passing || errors.Is(err, postgres.ErrAway) != tt.passing {
				t.Errorf("passing %t, explained %v: passing %t, away %t", postgres.Passing(tt.err), err, postgres.Passing(err), errors.Is(err, postgres.ErrAway))
			}
		})
	}
}

// TestAway stops the server below the calls of a part, and of a member.
func TestAway(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	db := open(t, server.Database(t))
	part := postgres.Part{DB: db, Name: "things", Steps: []string{"CREATE TABLE loki.things (a integer)"}}
	if _, err := part.Exec(t.Context(), "INSERT INTO loki.things VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	if _, err := part.Exec(t.Context(), "INSERT INTO loki.nothing VALUES (1)"); err == nil || errors.Is(err, postgres.ErrAway) {
		t.Errorf("a wrong statement: %v", err)
	}
	server.Stop(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // shorter than a part waits
	defer cancel()
	var n int
	_, collectErr := postgres.Collect(ctx, &part, pgx.RowTo[int], "SELECT a FROM loki.things")
	_, execErr := part.Exec(ctx, "INSERT INTO loki.things VALUES (2)")
	_, memberErr := db.Member(t.Context())
	for name, err := range map[string]error{
		"scan": part.Scan(ctx, []any{&n}, "SELECT a FROM loki.things"), "collect": collectErr, "exec": execErr, "member": memberErr,
		"transact": part.Transact(ctx, func(context.Context, pgx.Tx) error { return nil }, func(context.Context, pgx.Tx) error { return nil }),
	} {
		if !errors.Is(err, postgres.ErrAway) || fault.HintOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	server.Restart(t)
	if err := part.Scan(t.Context(), []any{&n}, "SELECT a FROM loki.things"); err != nil || n != 1 {
		t.Errorf("it is back: %d, %v", n, err)
	}
}

// TestSilent has a database that does not answer: another session locks the tables. Each call waits for a bounded time, also one that
// waits for another call.
func TestSilent(t *testing.T) {
	t.Parallel()
	address := postgrestest.Database(t)
	timing := quick
	timing.Wait = 200 * time.Millisecond
	db, err := postgres.Open(address, postgres.Options{Setting: "store", Timing: timing})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	part := postgres.Part{DB: db, Name: "things", Steps: []string{"CREATE TABLE loki.things (a integer)"}}
	for { // a busy database takes longer
		if _, err = part.Exec(t.Context(), "INSERT INTO loki.things VALUES (1)"); !errors.Is(err, postgres.ErrAway) {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	locks, err := open(t, address).Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := locks.Exec(t.Context(), "LOCK TABLE loki.things, loki.members, loki.versions"); err != nil {
		t.Fatal(err)
	}
	change := func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO loki.things VALUES (2)")
		return err
	}
	none := func(context.Context, pgx.Tx) error { return nil }
	member := func() error { _, err := db.Member(t.Context()); return err }
	other := postgres.Part{DB: db, Name: "others", Steps: []string{"CREATE TABLE loki.others ()"}}
	var calls sync.WaitGroup
	for name, call := range map[string]func() error{
		"exec": func() error { _, err := part.Exec(t.Context(), "DELETE FROM loki.things WHERE a = 0"); return err }, "change": func() error { return db.Explain(part.Transact(t.Context(), none, change)) },
		"prepare": func() error { return part.Transact(t.Context(), change, none) }, "member": member, "member_too": member,
		"migrate": func() error { return other.Try(t.Context(), func(context.Context) error { return nil }) },
	} {
		calls.Go(func() {
			if err := call(); !errors.Is(err, postgres.ErrAway) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	calls.Wait() // before the locks are gone
	if err := locks.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	var n int
	until(t, "it answers again", func() bool {
		return part.Scan(t.Context(), []any{&n}, "SELECT count(*) FROM loki.things") == nil && member() == nil
	})
	if n != 1 {
		t.Errorf("%d things", n)
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	address := postgrestest.Database(t)
	steps := []string{"CREATE TABLE loki.things (a integer); INSERT INTO loki.things VALUES (1)", "ALTER TABLE loki.things ADD b integer DEFAULT 2"}
	old := open(t, address)
	if err := old.Migrate(t.Context(), "things", steps[:1]...); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 { // at once
		all.Go(func() {
			if err := open(t, address).Migrate(t.Context(), "things", steps...); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	var a, b int
	if err := old.Pool().QueryRow(t.Context(), "SELECT a, b FROM loki.things").Scan(&a, &b); err != nil || a != 1 || b != 2 {
		t.Errorf("%d, %d, %v", a, b, err)
	}
	err := open(t, address).Migrate(t.Context(), "things", steps[:1]...)
	if fault.CodeOf(err) != fault.Usage || fault.HintOf(err) == "" {
		t.Errorf("a newer format: %v", err)
	}
	broken := open(t, address)
	if err := broken.Migrate(t.Context(), "things", append(steps, "CREATE TABLE loki.more (); SELECT 1 / 0")...); err == nil {
		t.Error("a step that fails is no error")
	}
	if err := broken.Migrate(t.Context(), "things", append(steps, "CREATE TABLE loki.more ()")...); err != nil {
		t.Errorf("after a step that failed: %v", err)
	}
}

// TestMembers has three members: one that lives, one whose process is gone, and one that others took for dead.
func TestMembers(t *testing.T) {
	t.Parallel()
	address := postgrestest.Database(t)
	db := open(t, address)
	a, b := join(t, db), join(t, open(t, address))
	if a.ID() == b.ID() {
		t.Fatal("two members are one")
	}
	exec := func(query string, args ...any) {
		t.Helper()
		if _, err := db.Pool().Exec(t.Context(), query, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec("INSERT INTO loki.members (host, pid, seen) VALUES ('gone', 1, clock_timestamp())")
	until(t, "a member that gives no sign of life is removed", func() bool {
		var there bool
		if err := db.Pool().QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM loki.members WHERE host = 'gone')").Scan(&there); err != nil {
			t.Fatal(err)
		}
		return !there
	})
	exec("DELETE FROM loki.members WHERE id = $1", b.ID())
	wait(t, b.LostContext())
	if err := context.Cause(b.LostContext()); !errors.Is(err, postgres.ErrLost) {
		t.Error(err)
	}
	if err := b.Confirm(t.Context()); !errors.Is(err, postgres.ErrLost) {
		t.Error(err)
	}
	if err := a.Confirm(t.Context()); err != nil {
		t.Error(err)
	}
	exec("DELETE FROM loki.members WHERE id = $1", a.ID())
	wait(t, a.LostContext())
	if again := join(t, db); again.ID() == a.ID() || again.Confirm(t.Context()) != nil {
		t.Error("a member that was lost came back")
	}
}

// TestBury removes the rows of processes that have ended on this machine at once.
func TestBury(t *testing.T) {
	t.Parallel()
	db := open(t, postgrestest.Database(t))
	self := identity.Self()
	m := join(t, db)
	for _, p := range []identity.Process{
		{Host: "ended", Machine: self.Machine, PID: 1 << 30, Born: "1"},
		{Host: "ended", Machine: self.Machine, PID: self.PID, Born: "of an earlier process"},
		{Host: "lives", Machine: self.Machine, PID: self.PID, Born: self.Born},
		{Host: "lives", Machine: "another", PID: 1 << 30, Born: "1"},
	} {
		if _, err := db.Pool().Exec(t.Context(), "INSERT INTO loki.members (host, pid, seen, machine, born) VALUES ($1, $2, clock_timestamp(), $3, $4)", p.Host, p.PID, p.Machine, p.Born); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Bury(t.Context(), db.Pool()); err != nil {
		t.Fatal(err)
	}
	var ended, left int
	if err := db.Pool().QueryRow(t.Context(), "SELECT count(*) FILTER (WHERE host = 'ended'), count(*) FROM loki.members").Scan(&ended, &left); err != nil || ended > 0 || left != 3 {
		t.Errorf("%d of %d rows are of processes that have ended, %v", ended, left, err)
	}
	if err := m.Confirm(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestListen(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	address := server.Database(t)
	listening, speaking := open(t, address), open(t, address)
	heard := make(chan string, 1000)
	var done sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	done.Go(func() {
		if err := listening.Listen(ctx, "runs", func(name string) { heard <- name }); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	expect := func(want string) {
		t.Helper()
		for {
			select {
			case got := <-heard:
				if got == want {
					return
				}
			case <-time.After(30 * time.Second):
				t.Fatalf("%q was not heard of", want)
			}
		}
	}
	expect("")
	speaking.Notify("others", "x")
	speaking.Notify("runs", "a")
	expect("a")
	listening.Notify("runs", "own")
	expect("own")
	server.Stop(t)
	speaking.Notify("runs", "meanwhile")
	server.Restart(t)
	expect("") // stands in for "meanwhile" if that was sent before the listener was connected
	speaking.Notify("runs", "after")
	expect("after")
	for range 3000 {
		speaking.Notify("runs", "a-long-name-of-which-there-are-many")
	}
	expect("a-long-name-of-which-there-are-many")
	speaking.Notify("runs", "last")
	speaking.Close()
	expect("last")
	cancel()
	done.Wait()
}

// TestRestart has members live through a restart of the server, and be in doubt without it.
func TestRestart(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	address := server.Database(t)
	a, b := join(t, open(t, address)), join(t, open(t, address))
	server.Stop(t)
	until(t, "a member is in doubt", func() bool { return a.Confirm(t.Context()) != nil })
	if err := a.Confirm(t.Context()); !postgres.Passing(err) || errors.Is(err, postgres.ErrLost) {
		t.Errorf("without the server: %v", err)
	}
	server.Restart(t)
	for _, m := range []*postgres.Member{a, b} {
		if err := m.Confirm(t.Context()); err != nil {
			t.Errorf("after a restart: %v", err)
		}
	}
	server.Stop(t)
	wait(t, a.LostContext())
	if err := context.Cause(a.LostContext()); !errors.Is(err, postgres.ErrLost) {
		t.Error(err)
	}
}

// until returns once a condition holds.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	end := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("it does not come to it that %s", what)
		}
	}
}

func join(t testing.TB, db *postgres.DB) *postgres.Member {
	t.Helper()
	m, err := db.Member(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func wait(t testing.TB, ctx context.Context) {
	t.Helper()
	select {
	case <-ctx.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("it does not end")
	}
}

// TestDeadAfter has the database say after what time a member is dead.
func TestDeadAfter(t *testing.T) {
	t.Parallel()
	address := postgrestest.Database(t)
	db := open(t, address)
	if _, err := db.Pool().Exec(t.Context(), "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET loki.dead_after = ''90s''', current_database()); END $$"); err != nil {
		t.Fatal(err)
	}
	other := open(t, address)
	if _, err := other.Member(t.Context()); err != nil || other.Dead() != 90*time.Second {
		t.Errorf("dead after %v, %v", other.Dead(), err)
	}
}
