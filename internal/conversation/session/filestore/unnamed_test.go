package filestore_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

// TestRecord: a recorded turn is a session without a name, which continues, and old ones go by themselves, but for one in
// which a question is being answered.
func TestRecord(t *testing.T) {
	now := time.Now()
	o := filestore.Options{Dir: filepath.Join(t.TempDir(), "sessions"), NoSync: true}
	o.Now = func() time.Time { return now }
	st := open(t, o)
	ctx := t.Context()
	limits := session.Limits{Sessions: 1, Bytes: 1 << 20}
	id, err := st.Record(ctx, "", session.Settings{RoleName: "kind"}, sessiontest.Turn(1), limits)
	if err != nil {
		t.Fatal(err)
	}
	s, err := st.Open(ctx, "", id)
	if err != nil || len(s.Messages()) == 0 || s.Settings().RoleName != "kind" || s.Alias() != "" || s.CreationTime().IsZero() || s.Usage() != sessiontest.Turn(1).Usage {
		t.Fatalf("%+v, %v", s, err)
	}
	d, err := s.Begin(ctx, sessiontest.Turn(2))
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(25 * time.Hour)
	second, err := st.Record(ctx, "", session.Settings{}, sessiontest.Turn(3), limits)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := st.List(ctx, ""); err != nil || len(list) != 2 {
		t.Errorf("while a question is answered: %v, %v", list, err)
	}
	if err := d.Finish(ctx, sessiontest.Turn(2).Reply, sessiontest.Turn(2).Usage); err != nil {
		t.Fatal(err)
	}
	aged := 0
	err = filepath.WalkDir(o.Dir, func(path string, _ fs.DirEntry, err error) error { // file systems have times of some milliseconds
		if err != nil || !strings.Contains(path, string(second)) {
			return err
		}
		aged++
		return os.Chtimes(path, time.Time{}, time.Now().Add(-time.Minute))
	})
	if err != nil || aged == 0 {
		t.Fatalf("%d files of the second one, %v", aged, err)
	}
	if err := st.RemoveUnnamed(ctx, "", limits); err != nil {
		t.Fatal(err)
	}
	if list, err := st.List(ctx, ""); err != nil || len(list) != 1 || list[0].ID != id {
		t.Errorf("one stays, the last used: %v, %v; the other is %s", list, err, second)
	}
	if _, err := st.Record(ctx, "", session.Settings{}, session.Turn{}, limits); err == nil {
		t.Error("nothing was recorded")
	}
}

func TestLimits(t *testing.T) {
	at := func(day int) time.Time { return time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC) }
	list := []session.Meta{
		{ID: "named", Alias: "a", Size: 100, Modified: at(1)}, {ID: "9", Size: 10, Modified: at(9)}, {ID: "8", Size: 20, Modified: at(8)}, {ID: "7", Size: 1, Modified: at(7)},
	}
	for name, tt := range map[string]struct {
		limits session.Limits
		want   string
	}{
		"all":      {session.Limits{Sessions: 3, Bytes: 31}, ""},
		"sessions": {session.Limits{Sessions: 1, Bytes: 31}, "87"},
		"bytes":    {session.Limits{Sessions: 3, Bytes: 30}, "7"},
		"since":    {session.Limits{Sessions: 3, Bytes: 31, Since: at(7)}, "7"},
		"none":     {session.Limits{}, "987"},
	} {
		got := ""
		for _, m := range tt.limits.Beyond(list) {
			got += string(m.ID)
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	if latest, more := session.Latest(list, 2); len(latest) != 3 || more != 1 || latest[2].ID != "8" {
		t.Errorf("%v and %d more", latest, more)
	}
	if latest, more := session.Latest(list[:1], 0); len(latest) != 1 || more != 0 {
		t.Errorf("%v and %d more", latest, more)
	}
}

func BenchmarkRecord(b *testing.B) {
	st := open(b, filestore.Options{Dir: b.TempDir()})
	limits := session.Limits{Sessions: 1000, Bytes: 256 << 20, Since: time.Now().Add(-time.Hour)}
	for b.Loop() {
		if _, err := st.Record(b.Context(), "", session.Settings{}, sessiontest.Turn(1), limits); err != nil {
			b.Fatal(err)
		}
	}
}
