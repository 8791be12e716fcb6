package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/process/identity"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// clock is a time that tests set, by the wall and by the live clocks of all systems.
type clock struct{ wall, live atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.wall.Store(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC).UnixNano())
	c.live.Store(int64(100 * time.Hour))
	return c
}

func (c *clock) now() time.Time       { return time.Unix(0, c.wall.Load()) }
func (c *clock) since() time.Duration { return time.Duration(c.live.Load()) }

// jump sets the clock on the wall forward.
func (c *clock) jump(d time.Duration) { c.wall.Add(int64(d)) }

// advance lets time pass.
func (c *clock) advance(d time.Duration) {
	c.wall.Add(int64(d))
	c.live.Add(int64(d))
}

// elsewhere is a process on another machine.
func elsewhere(pid int) *identity.Process {
	return &identity.Process{Host: "elsewhere", Boot: "its boot", Machine: "m", PID: pid, Born: "1"}
}

// inContainer is a process that the others cannot see, on the same system as elsewhere.
func inContainer(pid int) *identity.Process {
	return &identity.Process{Host: "container", Boot: "its boot", Machine: "c", PID: pid, Born: "1"}
}

func recordStep(j run.Journal, key string) error {
	return j.Task(1, "a").Record(context.Background(), key, steps.Step{Kind: steps.Tool}, []byte(`1`))
}

// two returns two stores over one file, of processes that cannot see each other, and the
// journal of a run that the first one holds. The second one belongs to other.
func two(t *testing.T, other *identity.Process) (c *clock, second *Store, j run.Journal) {
	c = newClock()
	path := filepath.Join(t.TempDir(), "runs.db")
	// The goroutine that gives signs of life goes by the real time and does not come to it.
	first := open(t, path, Options{Now: c.now, Live: c.since, Owner: elsewhere(1), LeaseTime: time.Hour})
	second = open(t, path, Options{Now: c.now, Live: c.since, Owner: other, LeaseTime: time.Hour, Hook: func(string, int) {}})
	j, err := first.Create(t.Context(), run.Info{}, run.Checkpoint{})
	if err != nil {
		t.Fatal(err)
	}
	return c, second, j
}

// afar is a process on a third machine.
func afar() *identity.Process {
	return &identity.Process{Host: "afar", Boot: "boot", Machine: "another", PID: 2, Born: "1"}
}

// checkHeld checks that a run cannot be opened, and when it can be.
func checkHeld(t *testing.T, s *Store, j run.Journal, until time.Time) {
	t.Helper()
	_, _, err := s.Open(t.Context(), j.ID())
	e, ok := errors.AsType[*run.LeaseError](err)
	if !ok || e.Owner != "process 1 on elsewhere" || !e.Until.Equal(until) {
		t.Fatalf("open of a run that is held until %v: %+v", until, err)
	}
}

func TestLeaseInAnotherContainer(t *testing.T) {
	c, second, j := two(t, inContainer(2))
	checkHeld(t, second, j, c.now().Add(time.Hour))
	c.advance(time.Hour - time.Second)
	checkHeld(t, second, j, c.now().Add(time.Second))
	c.jump(24 * time.Hour) // nothing to do with it
	checkHeld(t, second, j, c.now().Add(time.Second))
	c.advance(time.Second)
	if infos, err := second.Runs(t.Context(), run.Query{}); err != nil || infos[0].Active || infos[0].Held != nil {
		t.Errorf("listed as %+v, %v", infos, err)
	}
	k, _, err := second.Open(t.Context(), j.ID())
	if err != nil {
		t.Fatalf("open after the lease has run out: %v", err)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
}

func TestSignOfLife(t *testing.T) {
	for name, other := range map[string]*identity.Process{"container": inContainer(2), "machine": afar()} {
		t.Run(name, func(t *testing.T) {
			c, second, j := two(t, other)
			checkHeld(t, second, j, c.now().Add(time.Hour))
			c.advance(time.Hour - time.Second)
			if err := j.Confirm(t.Context()); err != nil { // after nearly an hour it looks
				t.Fatal(err)
			}
			c.advance(time.Second)
			until := c.now().Add(time.Hour)
			if name == "container" {
				until = until.Add(-time.Second) // its clock is known
			}
			checkHeld(t, second, j, until)
		})
	}
}

// TestLeaseExpires has a process on a machine of whose clocks nothing is known.
func TestLeaseExpires(t *testing.T) {
	for name, other := range map[string]*identity.Process{"known_start": afar(), "unknown_start": {Host: "afar", Machine: "another", PID: 2, Born: "1"}} {
		t.Run(name, func(t *testing.T) { checkLeaseExpires(t, other) })
	}
}

func checkLeaseExpires(t *testing.T, other *identity.Process) {
	c, second, j := two(t, other)
	for _, tt := range []struct {
		jump   time.Duration
		active bool
	}{{time.Hour - 1, true}, {1, false}} { // in all for as long as the lease lasts by the wall
		c.jump(tt.jump)
		if infos, err := second.Runs(t.Context(), run.Query{}); err != nil || infos[0].Active != tt.active {
			t.Errorf("listed as active: %v, want %v, %v", !tt.active, tt.active, err)
		}
	}
	c.jump(1000 * time.Hour)
	if infos, err := second.Runs(t.Context(), run.Query{}); err != nil || infos[0].Active {
		t.Errorf("listed as active long after its lease: %v", err)
	}
	checkHeld(t, second, j, c.now().Add(time.Hour)) // from now on it is watched
	if infos, err := second.Runs(t.Context(), run.Query{}); err != nil || !infos[0].Active {
		t.Errorf("listed as free while it cannot be opened: %v", err)
	}
	c.jump(1000 * time.Hour)
	c.advance(time.Hour - time.Second)
	checkHeld(t, second, j, c.now().Add(time.Second))
	c.advance(time.Second)
	k, _, err := second.Open(t.Context(), j.ID())
	if err != nil {
		t.Fatalf("open after the lease has run out: %v", err)
	}

	// The first one wakes up, and may not write any more.
	err = recordStep(j, "late")
	if held, ok := errors.AsType[*run.LeaseError](err); !ok || held.Owner != "process 2 on afar" || !errors.Is(err, run.ErrLeaseLost) {
		t.Errorf("write without the lease: %v", err)
	}
	if err := j.Commit(t.Context(), run.Checkpoint{Step: 1}, nil); err == nil {
		t.Error("commit without the lease")
	}
	if err := j.Close(); err != nil {
		t.Errorf("close without the lease: %v", err)
	}
	if err := recordStep(k, "mine"); err != nil {
		t.Errorf("the second process lost the lease too: %v", err)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	h, err := second.History(t.Context(), j.ID())
	if err != nil || len(h.Steps) != 1 || h.Steps[0].Key != "mine" || h.Info.Steps != 0 {
		t.Errorf("history %+v, %v", h, err)
	}
}

// TestWatchersOfUnknownStarts has two systems that watch a lease and cannot say which start of
// theirs it is: neither takes the watch of the other for its own.
func TestWatchersOfUnknownStarts(t *testing.T) {
	c, second, j := two(t, &identity.Process{Host: "afar", Machine: "another", PID: 2, Born: "1"})
	third := open(t, second.path, Options{
		Now: c.now, Live: func() time.Duration { return c.since() + 240*time.Hour }, LeaseTime: time.Hour,
		Owner: &identity.Process{Host: "farther", Machine: "a third", PID: 3, Born: "1"},
	})
	checkHeld(t, second, j, c.now().Add(time.Hour))
	checkHeld(t, third, j, c.now().Add(time.Hour))
}

func TestLeaseTakenAndLeft(t *testing.T) {
	c, second, j := two(t, inContainer(2))
	c.advance(time.Hour)
	k, _, err := second.Open(t.Context(), j.ID())
	if err == nil {
		err = errors.Join(k.End(t.Context(), run.Ending{Status: run.Done}), k.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := recordStep(j, "late"); fault.CodeOf(err) != fault.Failure || fault.HintOf(err) == "" || !errors.Is(err, run.ErrLeaseLost) {
		t.Errorf("write to a run that went on elsewhere: %v", err)
	}
	if deleted, err := second.Delete(t.Context(), j.ID()); err != nil || len(deleted) != 1 {
		t.Fatal(deleted, err)
	}
	if err := recordStep(j, "later"); fault.CodeOf(err) != fault.NotFound || !errors.Is(err, run.ErrLeaseLost) {
		t.Errorf("write to a run that was deleted: %v", err)
	}
	j.Event(event.Event{Body: event.Warning{Text: "too late"}})
	if err := j.Close(); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("close with something left to write to a run that was deleted: %v", err)
	}
}

// TestLeaseOfSleeper checks that a process whose lease ran out goes on if no other took
// it, as when the computer slept, and has it again at once.
func TestLeaseOfSleeper(t *testing.T) {
	c, second, j := two(t, inContainer(2))
	c.advance(10 * time.Hour)
	if err := j.Confirm(t.Context()); err != nil {
		t.Fatalf("after a long sleep: %v", err)
	}
	checkHeld(t, second, j, c.now().Add(time.Hour))
	if err := recordStep(j, "k"); err != nil {
		t.Fatalf("write after a long sleep: %v", err)
	}
}

// TestConfirm checks that a process which was stopped finds that it lost its lease before
// it does anything, and that looking costs nothing for one that was not.
func TestConfirm(t *testing.T) {
	for _, slept := range []bool{false, true} {
		c, second, j := two(t, inContainer(2))
		if slept { // the live clocks stand still meanwhile, but not that of the other system
			c.jump(10 * time.Hour)
			second.o.Live = func() time.Duration { return c.since() + time.Hour }
		} else {
			c.advance(time.Hour)
		}
		k, _, err := second.Open(t.Context(), j.ID())
		if err != nil {
			t.Fatal(err)
		}
		if err := context.Cause(j.Lease()); err != nil {
			t.Errorf("without a look the lease is known to be lost: %v", err)
		}
		if err := j.Confirm(t.Context()); !errors.Is(err, run.ErrLeaseLost) {
			t.Errorf("slept: %v: the first look after the stop: %v", slept, err)
		}
		if err := context.Cause(j.Lease()); !errors.Is(err, run.ErrLeaseLost) {
			t.Errorf("slept: %v: the lease ends with %v", slept, err)
		}
		before := second.hooked
		for range 100 {
			if err := k.Confirm(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if second.hooked != before {
			t.Error("a process that was not stopped looks for its lease all the time")
		}
		for _, tt := range []struct {
			after time.Duration
			looks bool
		}{{time.Hour/2 - 1, false}, {1, true}, {0, false}, {time.Hour/2 - 1, false}} { // after half of the lease
			before := second.hooked
			c.advance(tt.after)
			if err := k.Confirm(t.Context()); err != nil || tt.looks != (second.hooked != before) {
				t.Errorf("%s later: looks %v, want %v, %v", tt.after, second.hooked != before, tt.looks, err)
			}
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestLeaseOfDeadProcess(t *testing.T) {
	self := identity.Self()
	for _, tt := range []struct {
		name  string
		owner identity.Process
		free  bool
	}{
		{"alive", *self, false}, // whatever the clocks say
		{"another_start_time", identity.Process{Host: self.Host, Machine: self.Machine, PID: self.PID, Born: "0"}, true},
		{"unknown_start_time", identity.Process{Host: self.Host, Machine: self.Machine, PID: self.PID}, false},
		{"no_such_process", identity.Process{Host: self.Host, Machine: self.Machine, PID: 1 << 30, Born: "0"}, true},
		{"on_another_machine", identity.Process{Host: self.Host, Machine: "another", PID: 1 << 30, Born: "0"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "another_start_time" && self.Born == "" {
				t.Skip("the system does not tell when processes were started")
			}
			path := filepath.Join(t.TempDir(), "runs.db")
			s := open(t, path, Options{Owner: &tt.owner})
			j := create(t, s, run.Checkpoint{}.State)
			o := Options{}
			if tt.name == "alive" {
				o.Now = func() time.Time { return time.Now().Add(1000 * time.Hour) }
				o.Live = func() time.Duration { return identity.LiveClock() + 1000*time.Hour }
			}
			other := open(t, path, o)
			infos, err := other.Runs(t.Context(), run.Query{})
			if err != nil || infos[0].Active == tt.free {
				t.Errorf("active: %v, %v", infos[0].Active, err)
			}
			k, _, err := other.Open(t.Context(), j.ID())
			if (err == nil) != tt.free {
				t.Fatalf("open: %v", err)
			}
			if err == nil {
				err = k.Close()
			}
			if _, ok := errors.AsType[*run.LeaseError](err); err != nil && !ok {
				t.Error(err)
			}
		})
	}
}

// TestLeaseFromBeforeRestart has a lease of this computer's name that ended before the system
// was started.
func TestLeaseFromBeforeRestart(t *testing.T) {
	self := identity.Self()
	if self.Boot == "" || identity.BootTime().IsZero() {
		t.Skip("when the system was started is not known")
	}
	long := time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name       string
		host, boot string
		began      time.Time
		opener     *identity.Process
		free       bool
	}{
		{"restarted", self.Host, "an earlier start", long, nil, true},
		{"clock_says_later", self.Host, "an earlier start", time.Now(), nil, false},
		{"another_computer", "elsewhere", "an earlier start", long, nil, false},
		{"unknown_start", self.Host, "", long, nil, false},
		{"unknown_start_here", self.Host, "an earlier start", long, &identity.Process{Host: self.Host, Machine: "m", PID: 2}, false},
		{"opener_of_another_start", self.Host, "an earlier start", long, &identity.Process{Host: self.Host, Boot: "another", Machine: "m", PID: 2}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "runs.db")
			owner := &identity.Process{Host: tt.host, Boot: tt.boot, Machine: "as it was", PID: 1, Born: "1"}
			first := open(t, path, Options{Owner: owner, Now: func() time.Time { return tt.began }, Live: func() time.Duration { return 0 }})
			j := create(t, first, run.Checkpoint{}.State)
			second := open(t, path, Options{Owner: tt.opener})
			k, _, err := second.Open(t.Context(), j.ID())
			if (err == nil) != tt.free {
				t.Errorf("open: %v", err)
			}
			if k != nil {
				if err := k.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestThisProcess(t *testing.T) {
	self := identity.Self()
	host, err := os.Hostname()
	if err != nil {
		host = "this computer"
	}
	if self.PID != os.Getpid() || self.Host != host || self.Life(self.Machine) == identity.Dead {
		t.Errorf("this process is %+v", self)
	}
}

// TestLeaseIsProlonged lets an hour pass in which nothing is written.
func TestLeaseIsProlonged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	synctest.Test(t, func(t *testing.T) {
		var prolonged atomic.Int32
		s, err := Open(path, Options{Owner: elsewhere(1), Hook: func(op string, _ int) {
			if op == "beat" {
				prolonged.Add(1)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		j, err := s.Create(context.Background(), run.Info{}, run.Checkpoint{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		other, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := other.Open(context.Background(), j.ID()); err == nil {
			t.Error("the lease ran out while its journal was open")
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
		n := prolonged.Load()
		if n < 2*350 || n > 2*361 { // every ten seconds, with two calls each
			t.Errorf("the lease was prolonged %d times in an hour", n/2)
		}
		time.Sleep(time.Hour)
		if prolonged.Load() != n {
			t.Error("the lease of a closed journal was prolonged")
		}
		if err := errors.Join(s.Close(), other.Close()); err != nil {
			t.Error(err)
		}
	})
}

// TestLeave ends runs in a process that cannot write the file then: it does not hold them any more as soon as it can, or has closed its store.
func TestLeave(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	s := open(t, path, Options{LeaseTime: time.Second})
	writes := func(allowed string) {
		t.Helper()
		s.writing.Lock()
		defer s.writing.Unlock()
		if _, err := s.writer.c.ExecContext(t.Context(), "PRAGMA query_only = "+allowed); err != nil {
			t.Fatal(err)
		}
	}
	active := func(at *Store, id string) bool {
		t.Helper()
		info, err := at.Info(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return info.Active
	}
	other := open(t, path, Options{})
	later, last := create(t, s, graph.State{}), create(t, s, graph.State{})
	writes("1")
	if err := later.Close(); err == nil || !active(other, later.ID()) {
		t.Errorf("closed without a write: %v", err)
	}
	writes("0")
	for end := time.Now().Add(time.Minute); active(other, later.ID()); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the lease is not given back")
		}
	}
	if !active(other, last.ID()) {
		t.Error("the lease of the other run is gone, too")
	}
	writes("1")
	_ = last.Close()
	_ = s.Close()
	for _, id := range []string{later.ID(), last.ID()} {
		j, _, err := other.Open(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if !active(other, id) {
			t.Errorf("run %s is opened and not active", id)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
}
