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

	"loki/internal/event"
	"loki/internal/fault"
	"loki/internal/run"
	"loki/internal/steps"
)

// clock is a time that tests set.
type clock struct{ ns atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ns.Store(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) now() time.Time          { return time.Unix(0, c.ns.Load()) }
func (c *clock) advance(d time.Duration) { c.ns.Add(int64(d)) }

// elsewhere is a process on another machine.
func elsewhere(pid int) *Owner { return &Owner{Host: "elsewhere", Machine: "m", PID: pid, Born: "1"} }

func record(j run.Journal, key string) error {
	return j.Task(1, "a").Record(context.Background(), key, steps.Step{Kind: steps.Tool}, []byte(`1`))
}

// two returns two stores over one file, of processes on different machines, and the
// journal of a run that the first one holds.
func two(t *testing.T) (c *clock, first, second *Store, j run.Journal) {
	c = newClock()
	path := filepath.Join(t.TempDir(), "runs.db")
	// The goroutine that prolongs leases goes by the real time and does not come to it.
	first = open(t, path, Options{Now: c.now, Owner: elsewhere(1), LeaseTime: time.Hour})
	other := elsewhere(2)
	other.Machine = "another"
	second = open(t, path, Options{Now: c.now, Owner: other, LeaseTime: time.Hour})
	j, err := first.Create(t.Context(), run.Info{}, run.Checkpoint{})
	if err != nil {
		t.Fatal(err)
	}
	return c, first, second, j
}

func TestLeaseExpires(t *testing.T) {
	c, _, second, j := two(t)
	c.advance(time.Hour - time.Second)
	_, _, err := second.Open(t.Context(), j.ID())
	held, ok := errors.AsType[*run.LeaseError](err)
	if !ok || held.Owner != "process 1 on elsewhere" || !held.Until.Equal(c.now().Add(time.Second)) {
		t.Fatalf("open before the lease has run out: %v", err)
	}
	c.advance(time.Second)
	k, _, err := second.Open(t.Context(), j.ID())
	if err != nil {
		t.Fatalf("open after the lease has run out: %v", err)
	}

	// The first one wakes up, and may not write any more.
	err = record(j, "late")
	if held, ok := errors.AsType[*run.LeaseError](err); !ok || held.Owner != "process 2 on elsewhere" {
		t.Errorf("write without the lease: %v", err)
	}
	if err := j.Commit(t.Context(), run.Checkpoint{Step: 1}, nil); err == nil {
		t.Error("commit without the lease")
	}
	if err := j.Close(); err != nil {
		t.Errorf("close without the lease: %v", err)
	}
	if err := record(k, "mine"); err != nil {
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

func TestLeaseTakenAndLeft(t *testing.T) {
	c, _, second, j := two(t)
	c.advance(time.Hour)
	k, _, err := second.Open(t.Context(), j.ID())
	if err == nil {
		err = k.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := record(j, "late"); fault.CodeOf(err) != fault.Failure || fault.HintOf(err) == "" || !errors.Is(err, run.ErrLeaseLost) {
		t.Errorf("write to a run that went on elsewhere: %v", err)
	}
	if err := second.Delete(t.Context(), j.ID()); err != nil {
		t.Fatal(err)
	}
	if err := record(j, "later"); fault.CodeOf(err) != fault.NotFound || !errors.Is(err, run.ErrLeaseLost) {
		t.Errorf("write to a run that was deleted: %v", err)
	}
	j.Event(event.Event{Body: event.Warning{Text: "too late"}})
	if err := j.Close(); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("close with something left to write to a run that was deleted: %v", err)
	}
}

// TestLeaseOfSleeper checks that a process whose lease ran out goes on if nobody took
// it, as when the computer slept.
func TestLeaseOfSleeper(t *testing.T) {
	c, _, second, j := two(t)
	c.advance(10 * time.Hour)
	if err := record(j, "k"); err != nil {
		t.Fatalf("write after a long sleep: %v", err)
	}
	if _, _, err := second.Open(t.Context(), j.ID()); err == nil {
		t.Error("the write did not take the lease again")
	}
}

func TestLeaseOfDeadProcess(t *testing.T) {
	self := thisProcess()
	for _, tt := range []struct {
		name  string
		owner Owner
		free  bool
	}{
		{"alive", *self, false},
		{"another_start_time", Owner{Host: self.Host, Machine: self.Machine, PID: self.PID, Born: "0"}, true},
		{"unknown_start_time", Owner{Host: self.Host, Machine: self.Machine, PID: self.PID}, false},
		{"no_such_process", Owner{Host: self.Host, Machine: self.Machine, PID: 1 << 30, Born: "0"}, true},
		{"on_another_machine", Owner{Host: self.Host, Machine: "another", PID: 1 << 30, Born: "0"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "another_start_time" && self.Born == "" {
				t.Skip("the system does not tell when processes were started")
			}
			path := filepath.Join(t.TempDir(), "runs.db")
			s := open(t, path, Options{Owner: &tt.owner})
			j := create(t, s, run.Checkpoint{}.State)
			other := open(t, path, Options{})
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

func TestThisProcess(t *testing.T) {
	self := thisProcess()
	if self.PID != os.Getpid() || self.Host == "" || self.gone(self.Machine) {
		t.Errorf("this process is %+v", self)
	}
}

// TestLeaseIsProlonged lets an hour pass in which nothing is written.
func TestLeaseIsProlonged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	synctest.Test(t, func(t *testing.T) {
		var prolonged atomic.Int32
		s, err := Open(path, Options{Owner: elsewhere(1), Hook: func(op string, _ int) {
			if op == "prolong" {
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
		if n < 2*350 {
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
