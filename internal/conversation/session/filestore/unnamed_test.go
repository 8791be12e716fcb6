package filestore_test

import (
	"path/filepath"
	"testing"
	"time"

	"loki/internal/conversation/session"
	"loki/internal/conversation/session/filestore"
	"loki/internal/conversation/session/sessiontest"
)

func TestRemoveUnnamed(t *testing.T) {
	st := open(t, filestore.Options{Dir: filepath.Join(t.TempDir(), "sessions"), NoSync: true})
	ctx := t.Context()
	unnamed := func() session.ID {
		s := st.Temp("", session.Settings{SaveSession: new(true)})
		s.KeepUnnamed()
		if err := s.Append(ctx, sessiontest.Turn(1)); err != nil {
			t.Fatal(err)
		}
		if !s.Stored() || s.Alias() != "" || s.Name() != session.TempName {
			t.Fatalf("stored %v, alias %q, name %q", s.Stored(), s.Alias(), s.Name())
		}
		return s.ID()
	}
	first, named := unnamed(), unnamed()
	if err := st.Rename(ctx, "", named, "kept"); err != nil {
		t.Fatal(err)
	}
	other, err := st.Create(ctx, "", "", session.Settings{}) // not one that may go
	if err != nil {
		t.Fatal(err)
	}
	again := open(t, st.options)
	s, err := again.Open(ctx, "", first)
	if err != nil || !s.Temporary() || s.Dirty() {
		t.Fatalf("opened again: %v, %v", s, err)
	}
	s.Attend(true)
	if err := s.Append(ctx, sessiontest.Turn(2)); err != nil || s.Dirty() {
		t.Errorf("its next turn is not kept: dirty %v, %v", s.Dirty(), err)
	}

	within := session.Limits{Sessions: 2, Bytes: 1 << 20, Since: time.Now().Add(-time.Hour)}
	if err := st.RemoveUnnamed(ctx, "", within); err != nil {
		t.Fatal(err)
	}
	if list, err := st.List(ctx, ""); err != nil || len(list) != 3 {
		t.Errorf("%v, %v", list, err)
	}
	within.Sessions = 0
	if err := st.RemoveUnnamed(ctx, "", within); err != nil {
		t.Fatal(err)
	}
	list, err := again.List(ctx, "")
	if err != nil || len(list) != 2 || list[0].ID != named || list[1].ID != other.ID() {
		t.Errorf("%v, %v", list, err)
	}
}

func TestBusy(t *testing.T) {
	st := open(t, filestore.Options{Dir: t.TempDir(), NoSync: true})
	ctx := t.Context()
	s := mustOpen(t, st, "", "a")
	d, err := s.Begin(ctx, sessiontest.Turn(1))
	if err != nil {
		t.Fatal(err)
	}
	if busy, err := open(t, st.options).Busy(t.Context(), "", s.ID()); !busy || err != nil {
		t.Errorf("while a question is answered: %v, %v", busy, err)
	}
	if err := d.Finish(ctx, sessiontest.Turn(1).Reply, sessiontest.Turn(1).Usage); err != nil {
		t.Fatal(err)
	}
	if busy, err := open(t, st.options).Busy(t.Context(), "", s.ID()); busy || err != nil {
		t.Errorf("afterwards: %v, %v", busy, err)
	}
}
