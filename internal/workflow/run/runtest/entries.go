package runtest

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"loki/internal/workflow/run"
)

// entries writes documents beside the runs, and has claims of runs conflict.
func (s *suite) entries() {
	keys := func(prefix string, limit int) (all []string) {
		s.Helper()
		found, err := s.store.Entries(s.Context(), prefix, limit)
		s.ok(err)
		for _, e := range found {
			all = append(all, e.Key+" "+e.Run+" "+string(e.Doc))
		}
		return all
	}
	conflict := func(what string, err error, of string) {
		s.Helper()
		found, ok := errors.AsType[*run.ConflictError](err)
		if !ok || found.Run != of {
			s.Fatalf("%s: %v, want a conflict with %q", what, err, of)
		}
	}
	s.same("none", keys("", 0), []string(nil))
	s.ok(s.store.Put(s.Context(), run.Entry{Key: "a/1", Doc: []byte(`{"n":1}`)}, run.Entry{Key: "a/2", Run: "x"}, run.Entry{Key: "b/ü", Doc: []byte("3")}))
	s.reopen()
	s.same("all", keys("", 0), []string{"b/ü  3", "a/2 x ", `a/1  {"n":1}`})
	s.same("prefix", keys("a/", 1), []string{"a/2 x "})
	conflict("again", s.store.Put(s.Context(), run.Entry{Key: "a/3"}, run.Entry{Key: "a/2"}), "x")
	conflict("not there", s.store.Put(s.Context(), run.Entry{Key: "a/3", Version: 1}), "")
	s.ok(s.store.Put(s.Context(), run.Entry{Key: "a/1", Version: 1, Doc: []byte("2")}))
	conflict("old version", s.store.Put(s.Context(), run.Entry{Key: "a/1", Version: 1}), "")
	s.ok(s.store.Put(s.Context(), run.Entry{Key: "a/2", Version: 1, Gone: true}))
	s.same("changed", keys("a/", 0), []string{"a/1  2"})

	info := sample()
	info.Origin = &run.Origin{Kind: run.OfSchedule, Name: "morning", Due: time.Unix(1e9, 0).UTC(), LateSeconds: 0.5}
	info.Claims = []run.Entry{{Key: run.StartKey("k"), Run: run.NewRun}, {Key: "a/1", Version: 2, Doc: []byte("3")}, {Key: "a/skipped"}}
	j := s.beginWith(info, run.Checkpoint{State: state()})
	id := j.ID()
	s.ok(j.Close())
	s.reopen()
	s.same("claims", keys("", 0), []string{"start/k " + id + " ", "b/ü  3", "a/skipped  ", "a/1  3"})
	s.same("origin", s.info(id).Origin, info.Origin)
	_, err := s.store.Create(s.Context(), info, run.Checkpoint{State: state()})
	conflict("second run", err, id)
	list, err := s.store.Runs(s.Context(), run.Query{Origin: "schedule/morning"})
	s.ok(err)
	if len(list) != 1 || list[0].ID != id || list[0].Origin == nil {
		s.Errorf("the runs of the schedule are %+v", list)
	}
	list, err = s.store.Runs(s.Context(), run.Query{Origin: "schedule/evening"})
	s.ok(err)
	s.same("runs of another", len(list), 0)

	// Of many starts with one key, one makes a run, and the others name it.
	var wg sync.WaitGroup
	var made atomic.Int32
	for range 8 {
		wg.Go(func() {
			info := sample()
			info.Claims = []run.Entry{{Key: run.StartKey("once"), Run: run.NewRun}}
			j, err := s.store.Create(s.Context(), info, run.Checkpoint{State: state()})
			if err == nil {
				made.Add(1)
				err = j.Close()
			} else if c, ok := errors.AsType[*run.ConflictError](err); ok && c.Run != "" {
				err = nil
			}
			if err != nil {
				s.Error(err)
			}
		})
	}
	wg.Wait()
	s.same("runs made", int(made.Load()), 1)

	s.ok(s.store.DropEntries(s.Context(), "start/", time.Now().Add(-time.Hour)))
	s.same("kept", len(keys("start/", 0)), 2)
	s.ok(s.store.DropEntries(s.Context(), "start/", time.Now().Add(time.Hour)))
	s.same("dropped", keys("start/", 0), []string(nil))
}
