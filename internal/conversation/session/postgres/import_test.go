package postgres_test

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"loki/internal/conversation/session"
	"loki/internal/conversation/session/filestore"
	"loki/internal/conversation/session/sessiontest"
	"loki/internal/llm/chat"
	"loki/internal/service/auth"
	"loki/internal/service/postgres/postgrestest"
)

// TestImport copies sessions from files.
func TestImport(t *testing.T) {
	ctx := t.Context()
	dir := filepath.Join(t.TempDir(), "sessions")
	files, err := filestore.New(filestore.Options{Dir: dir, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	old, err := files.Create(ctx, "", "a", session.Settings{Settings: chat.Settings{Model: "m"}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := old.Append(ctx, sessiontest.Turn(i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := files.Claim(ctx, "", old.ID(), auth.Owner{Subject: "ada"}); err != nil {
		t.Fatal(err)
	}
	begin(t, old, "and then?")
	unnamed := files.Temp("", session.Settings{})
	unnamed.KeepUnnamed()
	if err := unnamed.Append(ctx, sessiontest.Turn(9)); err != nil {
		t.Fatal(err)
	}

	to := open(t, postgrestest.Database(t), session.Options{})
	want, err := files.List(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range want {
		c, err := files.Export(ctx, "", m)
		if err != nil {
			t.Fatal(err)
		}
		for _, first := range []bool{true, false} {
			if imported, err := to.Import(ctx, "", c); imported != first || err != nil {
				t.Errorf("imported %v, %v", imported, err)
			}
		}
		if c.State.Alias != "" {
			c.ID = session.NewID()
			if _, err := to.Import(ctx, "", c); !errors.Is(err, session.ErrAliasInUse) {
				t.Errorf("a second one of its name: %v", err)
			}
		}
	}
	got, err := to.List(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	times := cmp.Comparer(func(a, b time.Time) bool { return a.Sub(b).Abs() < time.Millisecond })
	if diff := cmp.Diff(want, got, times); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	s, err := to.Open(ctx, "", old.ID())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(old.Messages(), s.Messages()); diff != "" || s.Settings().Model != "m" {
		t.Errorf("settings %+v, messages (-want +got):\n%s", s.Settings(), diff)
	}
	if texts := texts(t, to); !slices.Contains(texts, "and then?") || texts[len(texts)-1] != session.Interrupted {
		t.Errorf("the question that was being answered: %q", texts)
	}
}
