package postgres_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"loki/internal/conversation/session"
	sessions "loki/internal/conversation/session/postgres"
	"loki/internal/conversation/session/sessiontest"
	"loki/internal/llm/chat"
	"loki/internal/service/postgres"
	"loki/internal/service/postgres/postgrestest"
)

// testStore is a store that knows its options.
type testStore struct {
	*sessions.Store
	db      *postgres.DB
	address string
	options session.Options
}

// open returns the store of a process of its own in a database.
func open(t testing.TB, address string, o session.Options) testStore {
	t.Helper()
	db, err := postgres.Open(address, postgres.Options{Timing: postgres.Timing{Beat: 100 * time.Millisecond, Dead: 3 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return testStore{sessions.New(db, o), db, address, o}
}

func TestStore(t *testing.T) {
	sessiontest.Run(t,
		func(t *testing.T, o session.Options) session.Store { return open(t, postgrestest.Database(t), o) },
		func(t *testing.T, s session.Store) session.Store {
			return open(t, s.(testStore).address, s.(testStore).options)
		})
}

// texts returns what was said in the session called "a".
func texts(t *testing.T, s testStore) (list []string) {
	t.Helper()
	for _, m := range a(t, s).Messages() {
		list = append(list, m.Text())
	}
	return list
}

// a returns the session called "a".
func a(t *testing.T, st testStore) *session.Session {
	t.Helper()
	s, err := st.OpenOrCreate(t.Context(), "", "a", func() (session.Settings, error) { return session.Settings{}, nil })
	if err == nil {
		err = s.Refresh(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func begin(t *testing.T, s *session.Session, text string) *session.Draft {
	t.Helper()
	d, err := s.Begin(t.Context(), session.Turn{User: chat.Text(chat.User, text)})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDraftOfADeadProcess(t *testing.T) {
	first := open(t, postgrestest.Database(t), session.Options{})
	d := begin(t, a(t, first), "one")
	for _, text := range []string{"round 1", "round 2"} {
		if err := d.Add([]chat.Message{chat.Text(chat.Assistant, text)}); err != nil {
			t.Fatal(err)
		}
	}
	second := open(t, first.address, session.Options{})
	if got := texts(t, second); len(got) > 0 {
		t.Fatalf("of a live process: %q", got)
	}
	id := a(t, second).ID()
	if busy, err := second.Busy(t.Context(), "", id); !busy || err != nil {
		t.Errorf("busy %v, %v", busy, err)
	}
	first.db.Close()
	if busy, err := second.Busy(t.Context(), "", id); busy || err != nil {
		t.Errorf("of a dead process: busy %v, %v", busy, err)
	}
	want := []string{"one", "round 1", "round 2", session.Interrupted}
	for _, st := range []testStore{second, open(t, first.address, session.Options{})} {
		if got := texts(t, st); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestDiscardedDraftTakesItsSessionAlong(t *testing.T) {
	first := open(t, postgrestest.Database(t), session.Options{})
	other := open(t, first.address, session.Options{})
	d := begin(t, a(t, first), "one")
	b := a(t, other)
	if !b.Stored() {
		t.Error("the session is not stored")
	}
	if err := d.Discard(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list, err := other.List(t.Context(), ""); err != nil || len(list) > 0 {
		t.Errorf("it is still there: %v, %v", list, err)
	}
	if err := begin(t, b, "two").Finish(t.Context(), []chat.Message{chat.Text(chat.Assistant, "2")}, chat.Usage{}); err != nil {
		t.Fatal(err)
	}
	if err := begin(t, a(t, first), "three").Discard(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := texts(t, first), []string{"two", "2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestUnnamedSessionsAreRemoved(t *testing.T) {
	st := open(t, postgrestest.Database(t), session.Options{})
	for range 3 {
		s := st.Temp("", session.Settings{})
		s.KeepUnnamed()
		if err := s.Append(t.Context(), sessiontest.Turn(1)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := st.Create(t.Context(), "", "", session.Settings{}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		limits session.Limits
		left   int
	}{
		{session.Limits{Sessions: 4, Bytes: 1 << 20}, 4},
		{session.Limits{Sessions: 2, Bytes: 1 << 20}, 2},
		{session.Limits{Sessions: 9, Bytes: 1 << 20, Since: time.Now().Add(time.Hour)}, 1},
	} {
		if err := st.RemoveUnnamed(t.Context(), "", tt.limits); err != nil {
			t.Fatal(err)
		}
		if list, err := st.List(t.Context(), ""); err != nil || len(list) != tt.left {
			t.Errorf("%d are left, want %d, %v", len(list), tt.left, err)
		}
	}
}

// TestAwayDatabase restarts the server while a session is used.
func TestAwayDatabase(t *testing.T) {
	server := postgrestest.Start(t)
	st := open(t, server.Database(t), session.Options{})
	s := a(t, st)
	d := begin(t, s, "one")
	server.Restart(t)
	if err := d.Finish(t.Context(), []chat.Message{chat.Text(chat.Assistant, "1")}, chat.Usage{}); err != nil {
		t.Fatal(err)
	}
	if err := st.Probe(t.Context()); err != nil {
		t.Errorf("probe: %v", err)
	}
	server.Stop(t)
	if st.Probe(t.Context()) == nil {
		t.Error("a database that is down can be written to")
	}
	done := make(chan error, 1)
	go func() {
		done <- s.Append(context.WithoutCancel(t.Context()), session.Turn{User: chat.Text(chat.User, "two")})
	}()
	server.Restart(t)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got, want := texts(t, open(t, st.address, session.Options{})), []string{"one", "1", "two"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// BenchmarkAppend adds turns to sessions of two lengths, in KB.
func BenchmarkAppend(b *testing.B) {
	for _, length := range []int{1, 4096} {
		b.Run(strconv.Itoa(length), func(b *testing.B) {
			st := open(b, postgrestest.Database(b), session.Options{})
			s, err := st.Create(b.Context(), "", "a", session.Settings{})
			if err != nil {
				b.Fatal(err)
			}
			for range length {
				if err := s.Append(b.Context(), session.Turn{User: chat.Text(chat.User, strings.Repeat("x", 900))}); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if err := s.Append(b.Context(), sessiontest.Turn(1)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
