package governor

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/base/file/atomicfile"
	"loki/internal/llm/provider"
)

// sharing returns a governor that shares its limits in dir, as one of several processes does.
func sharing(t testing.TB, dir string) *Governor {
	g := new(Governor)
	g.ShareIn(dir)
	t.Cleanup(g.Close)
	return g
}

func sharedOptions() Options {
	o := options()
	o.Account = func() string { return "account" }
	return o
}

// TestProcesses: four processes get what the provider takes, in equal shares.
func TestProcesses(t *testing.T) {
	dir := t.TempDir()
	s := &server{most: 4, took: 40 * time.Millisecond, after: 50 * time.Millisecond} // with real files and a real clock
	var wg sync.WaitGroup
	var mu sync.Mutex
	var all []time.Duration
	begin := time.Now()
	for range 4 {
		p := sharing(t, dir).Chat(s, sharedOptions())
		wg.Go(func() {
			if failed := fanOut(t.Context(), t, p, 30, 8); failed > 0 {
				t.Errorf("%d failed", failed)
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, time.Since(begin))
		})
	}
	wg.Wait()
	t.Logf("%d refused, the processes took %v", s.refusals, all)
	if s.peak > 4 || s.refusals > 12 || all[0] < all[3]/2 {
		t.Errorf("%d at once, %d refused, the processes took %v", s.peak, s.refusals, all)
	}
}

// TestKilledProcess: the calls of a process that was killed do not count any more after a second.
func TestKilledProcess(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		o := sharedOptions()
		o.Limits.Concurrency = 2
		killed := sharing(t, dir)
		s := &server{most: 2, took: time.Hour}
		p := killed.Chat(s, o)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { _, _ = ask(t.Context(), p, "m") })
		}
		synctest.Wait()
		killed.process.leave() // as if it were dead: nobody has the lock of its file
		begin := time.Now()
		if _, err := ask(t.Context(), sharing(t, dir).Chat(&server{most: 2}, o), "m"); err != nil || time.Since(begin) > time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		wg.Wait()
	})
}

// TestLostChange: a call whose end could not be written does not count any more with the next change.
func TestLostChange(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		g := sharing(t, dir)
		s := &server{most: 1, took: time.Second}
		p := g.Chat(s, sharedOptions())
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = ask(t.Context(), p, "m") })
		synctest.Wait()
		if list := listed(t, sharing(t, dir)); len(list) != 1 || list[0].AtWork != 1 {
			t.Errorf("%+v", list)
		}
		other, err := atomicfile.OpenLocked(t.Context(), filepath.Join(dir, "account.json"))
		if err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := ask(t.Context(), p, "m"); err != nil {
			t.Error(err)
		}
		if list := listed(t, sharing(t, dir)); len(list) != 1 || list[0].AtWork != 0 || list[0].Calls != 2 {
			t.Errorf("%+v", list)
		}
	})
}

// TestSweep: the files of processes that were killed do not stay.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	living := sharing(t, dir)
	living.process.join()
	for _, name := range []string{"old.lock", "new.lock"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := time.Now().Add(-time.Hour)
	for _, name := range []string{"old.lock", living.process.id + ".lock"} {
		if err := os.Chtimes(filepath.Join(dir, name), before, before); err != nil {
			t.Fatal(err)
		}
	}
	sharing(t, dir).process.join()
	for name, want := range map[string]bool{"old.lock": false, "new.lock": true, living.process.id + ".lock": true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLearnedOnce: a process begins with what another one learned, and the file has no secret and is nobody else's.
func TestLearnedOnce(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &server{most: 6, took: 600 * time.Millisecond, after: time.Second}
		fanOut(t.Context(), t, sharing(t, dir).Chat(s, sharedOptions()), 60, 8)
		before := s.refusals
		begin := time.Now()
		fanOut(t.Context(), t, sharing(t, dir).Chat(s, sharedOptions()), 6, 8)
		if s.refusals != before || time.Since(begin) > 700*time.Millisecond {
			t.Errorf("%d refused, %v", s.refusals-before, time.Since(begin))
		}
	})
	info, err := os.Stat(filepath.Join(dir, "account.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestList: what is known of the limits of all processes can be seen, and forgotten.
func TestList(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		g := sharing(t, dir)
		_, err := ask(t.Context(), g.Chat(&server{after: 2 * time.Hour}, sharedOptions()), "m")
		if provider.KindOf(err) != provider.RateLimited {
			t.Fatal(err)
		}
		other := sharing(t, dir)
		list := listed(t, other)
		if len(list) != 1 || list[0].Client != "st" || list[0].Model != "m" || list[0].Refused != 1 || list[0].Concurrency != 1 || list[0].AtWork != 0 || time.Until(list[0].PausedUntil) < time.Hour {
			t.Errorf("%+v", list)
		}
		if n, err := other.Reset(t.Context(), "another"); n != 0 || err != nil {
			t.Error(n, err)
		}
		if n, err := other.Reset(t.Context(), "st"); n != 1 || err != nil {
			t.Error(n, err)
		}
		if text, err := ask(t.Context(), other.Chat(&server{most: 1}, sharedOptions()), "m"); text != "fine" || err != nil {
			t.Error(text, err)
		}
		if list := listed(t, new(Governor)); len(list) != 0 {
			t.Errorf("%+v", list)
		}
	})
}

// TestUnusableDirectory: without the files a process has limits of its own.
func TestUnusableDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := ask(t.Context(), sharing(t, dir).Chat(&server{most: 1}, sharedOptions()), "m"); err != nil || text != "fine" {
		t.Error(text, err)
	}
	dir = t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "account.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	if text, err := ask(t.Context(), sharing(t, dir).Chat(&server{most: 1}, sharedOptions()), "m"); err != nil || text != "fine" {
		t.Error(text, err)
	}
}

// TestClockSetBack: a pause of minutes does not become one of hours by a clock that is set back.
func TestClockSetBack(t *testing.T) {
	now := time.Unix(1.8e9, 0)
	s := state{LastRefusal: now.Add(5 * time.Hour), Paused: now.Add(5*time.Hour + 6*time.Minute)}
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if s := readState(data, now); !s.Paused.Equal(now.Add(6*time.Minute)) || !s.LastRefusal.Equal(now) {
		t.Errorf("%+v", s)
	}
}

// FuzzState: whatever is in the file, calls begin within a bound.
func FuzzState(f *testing.F) {
	f.Add([]byte(`{"at_once":-3,"refused":true,"probe_at":"9999-01-01T00:00:00Z","paused":"9999-01-01T00:00:00Z","shares":{"a":null,"b":{"held":-1}},"buckets":{"requests":null,"tokens":{"limit":1,"rate":1e-300,"at":"2026-01-01T00:00:00Z"}}}`))
	f.Add([]byte(`{"at_once":1,"step":9223372036854775807,"probe":9223372036854775807,"in_a_row":9223372036854775807}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		now := time.Unix(1.8e9, 0)
		s := readState(data, now)
		clear(s.Shares) // whose processes are dead
		since := now
		for range 200 {
			call, why, wait := s.admit(now, "p", DefaultLimits(), amount{1, 1}, since)
			if call == nil {
				if wait <= 0 {
					t.Fatalf("%s: a call waits %v", why, wait)
				}
				now = now.Add(min(wait, longGuess))
				if now.Sub(since) > 5*time.Minute {
					t.Fatalf("%s: a call waits %v", why, now.Sub(since))
				}
				continue
			}
			since = now
			s.endSucceeded(now, "p", call, amount{1, 1})
		}
		if _, err := json.Marshal(s); err != nil {
			t.Fatal(err)
		}
	})
}

var _ provider.Chat = (*server)(nil)

// listed returns what is known of all limits.
func listed(t testing.TB, g *Governor) []Status {
	t.Helper()
	list, err := g.List(t.Context())
	if err != nil {
		t.Error(err)
	}
	return list
}
