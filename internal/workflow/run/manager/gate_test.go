package manager_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/base/fault"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/gate"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
)

// crowd is a manager whose runs work for a second, and notes how they did.
type crowd struct {
	*host
	mu      sync.Mutex
	working int
	most    int      // at work at the same time
	began   []string // prompts
	at      []time.Duration
}

// withCrowd calls test with a crowd, in a bubble in which time passes at once.
func withCrowd(t *testing.T, limit int, test func(t *testing.T, c *crowd)) {
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{}
		start := time.Now()
		do := func(prompt string) func(ctx context.Context, _ *run.Frame) error {
			return func(ctx context.Context, _ *run.Frame) error {
				c.mu.Lock()
				c.began, c.at = append(c.began, prompt), append(c.at, time.Since(start))
				c.working++
				c.most = max(c.most, c.working)
				c.mu.Unlock()
				defer func() {
					c.mu.Lock()
					c.working--
					c.mu.Unlock()
				}()
				select {
				case <-time.After(time.Second):
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
		}
		work := make(map[string]func(context.Context, *run.Frame) error)
		for _, prompt := range strings.Split("abcdefghijkl", "") {
			work[prompt] = do(prompt)
		}
		c.host = hostOn(t, memstore.New(nil), limit, work)
		test(t, c)
		c.Shutdown(t.Context())
	})
}

// start starts a run with rules, and lets a moment pass.
func (c *crowd) start(prompt string, rules ...gate.Rules) (id string, err error) {
	job := c.job(prompt)
	for _, r := range rules {
		if g, ok, err := r.Gate("", "agent/x", nil); err != nil {
			c.t.Fatal(err)
		} else if ok {
			job.Info.Gates = append(job.Info.Gates, g)
		}
		job.Info.Priority = r.Priority
	}
	id, err = c.Start(c.t.Context(), job)
	time.Sleep(time.Microsecond)
	return id, err
}

func (c *crowd) must(prompt string, rules ...gate.Rules) string {
	c.t.Helper()
	id, err := c.start(prompt, rules...)
	if err != nil {
		c.t.Fatal(err)
	}
	return id
}

// expect checks how runs ended, in their order as "STATUS STATUS", and which of them worked, in what order.
func (c *crowd) expect(statuses, began string, ids ...string) {
	c.t.Helper()
	var got []string
	for _, id := range ids {
		info, err := c.Wait(c.t.Context(), id)
		if err != nil {
			c.t.Fatal(err)
		}
		got = append(got, string(info.Status))
	}
	if strings.Join(got, " ") != statuses || strings.Join(c.began, "") != began {
		c.t.Errorf("the runs are %v, and %v worked, at %v", got, c.began, c.at)
	}
}

func TestGateQueues(t *testing.T) {
	withCrowd(t, 8, func(_ *testing.T, c *crowd) {
		one, other := gate.Rules{Key: "k"}, gate.Rules{Key: "other"}
		ids := []string{c.must("a", one), c.must("b", one), c.must("c", one), c.must("d", other), c.must("e")}
		c.expect("done done done done done", "adebc", ids...)
		if c.most != 3 || c.at[3] < time.Second || c.at[4] < 2*time.Second || c.at[4] > 4*time.Second {
			t.Errorf("%d at work at once, began at %v", c.most, c.at)
		}
		if found := c.Active(); len(found) > 0 {
			t.Errorf("at work: %v", found)
		}
	})
}

func TestGateLimit(t *testing.T) {
	withCrowd(t, 8, func(t *testing.T, c *crowd) {
		var ids []string
		for _, prompt := range strings.Split("abcdef", "") {
			ids = append(ids, c.must(prompt, gate.Rules{Limit: 2}))
		}
		c.expect("done done done done done done", "abcdef", ids...)
		if c.most != 2 || c.at[5] < 2*time.Second {
			t.Errorf("%d at work at once, began at %v", c.most, c.at)
		}
	})
}

func TestGateSkips(t *testing.T) {
	withCrowd(t, 8, func(t *testing.T, c *crowd) {
		skip := gate.Rules{Key: "k", Overlap: gate.Skip}
		first := c.must("a", skip)
		_, err := c.start("b", skip)
		busy, ok := errors.AsType[*run.BusyError](err)
		if !ok || busy.Run != first || fault.CodeOf(err) != fault.Limit {
			t.Errorf("a second start: %v", err)
		}
		c.expect("done", "a", first)
		c.expect("done", "ac", c.must("c", skip))
		if infos, _ := c.store.Runs(t.Context(), run.Query{}); len(infos) != 2 {
			t.Errorf("%d runs are on record", len(infos))
		}
	})
}

func TestGateCancels(t *testing.T) {
	withCrowd(t, 8, func(_ *testing.T, c *crowd) {
		latest := gate.Rules{Key: "k", Overlap: gate.Cancel}
		ids := []string{c.must("a", latest)}
		time.Sleep(100 * time.Millisecond)
		ids = append(ids, c.must("b", latest), c.must("c", latest))
		c.expect("canceled canceled done", "ac", ids...)
	})
}

// TestGateCancelsQueue has runs of both kinds wait: a run that cancels others replaces those before it, and none after it.
func TestGateCancelsQueue(t *testing.T) {
	withCrowd(t, 8, func(t *testing.T, c *crowd) {
		one, two, latest := gate.Rules{Key: "k"}, gate.Rules{Limit: 9}, gate.Rules{Key: "k", Overlap: gate.Cancel}
		ids := []string{c.must("a", one), c.must("b", one), c.must("c", two, one), c.must("d", latest), c.must("e", one)}
		c.expect("canceled canceled canceled done done", "ade", ids...)
		for _, id := range ids[:3] {
			info, err := c.store.Info(t.Context(), id)
			if want := fmt.Sprintf("the later run %s with the key \"k\" has replaced this one", ids[3]); err != nil || info.Error != want {
				t.Errorf("%v %q", err, info.Error)
			}
		}
	})
}

func TestGateAllows(t *testing.T) {
	withCrowd(t, 8, func(_ *testing.T, c *crowd) {
		all := gate.Rules{Key: "k", Overlap: gate.Allow}
		c.expect("done done", "ab", c.must("a", all), c.must("b", all))
		if c.most != 2 {
			t.Errorf("%d at work at once", c.most)
		}
	})
}

func TestGateThrottles(t *testing.T) {
	withCrowd(t, 12, func(t *testing.T, c *crowd) {
		var ids []string
		for _, prompt := range strings.Split("abcdefg", "") {
			ids = append(ids, c.must(prompt, gate.Rules{Throttle: "3/1m"}))
		}
		c.expect("done done done done done done done", "abcdefg", ids...)
		for i := range c.at[:4] {
			if c.at[i+3]-c.at[i] < time.Minute || c.at[i+3]-c.at[i] > 90*time.Second {
				t.Errorf("more than 3 starts in a minute: %v", c.at)
			}
		}
	})
}

// TestGateThrottlesAndSkips has runs that wait for the throttle, and are not started while another one is at work.
func TestGateThrottlesAndSkips(t *testing.T) {
	withCrowd(t, 12, func(t *testing.T, c *crowd) {
		rules := gate.Rules{Key: "k", Overlap: gate.Skip, Throttle: "2/1m"}
		ids := []string{c.must("a", rules)}
		if _, err := c.start("x", rules); !errors.As(err, new(*run.BusyError)) {
			t.Errorf("a start while another one is at work: %v", err)
		}
		time.Sleep(2 * time.Second)
		ids = append(ids, c.must("b", rules))
		time.Sleep(2 * time.Second)
		ids = append(ids, c.must("c", rules), c.must("d", rules))
		c.expect("done done done done", "abcd", ids...)
		for i := range 2 {
			if wait := c.at[i+2] - c.at[i]; wait < time.Minute || wait > 90*time.Second || c.most > 1 {
				t.Errorf("%d at work at once, more than 2 starts in a minute: %v", c.most, c.at)
			}
		}
	})
}

func TestGateDebounces(t *testing.T) {
	withCrowd(t, 12, func(t *testing.T, c *crowd) {
		rules, start := gate.Rules{Debounce: "30s"}, time.Now()
		var ids []string
		for _, prompt := range strings.Split("abc", "") {
			ids = append(ids, c.must(prompt, rules))
			time.Sleep(20 * time.Second)
		}
		c.expect("canceled canceled done", "c", ids...)
		if c.at[0] < 70*time.Second || time.Since(start) > 90*time.Second {
			t.Errorf("it began at %v", c.at)
		}
		info, err := c.store.Info(t.Context(), ids[0])
		if want := fmt.Sprintf("the later run %s of the same agent, schedule or trigger has replaced this one", ids[1]); err != nil || info.Error != want {
			t.Errorf("%v %q", err, info.Error)
		}
	})
}

// TestGateSeveral has runs that need two gates: they are let through both in one moment, and keep nobody waiting before.
func TestGateSeveral(t *testing.T) {
	withCrowd(t, 8, func(_ *testing.T, c *crowd) {
		agent, x, y := gate.Rules{Limit: 2}, gate.Rules{Key: "x"}, gate.Rules{Key: "y"}
		ids := []string{c.must("a", agent, x), c.must("b", agent, x), c.must("c", agent, y), c.must("d", y, agent)}
		for _, id := range ids {
			c.ended(id)
		}
		if len(c.began) != 4 || c.most != 2 || !slices.Equal(c.began[:2], []string{"a", "c"}) {
			t.Errorf("%d at work at once: %v at %v", c.most, c.began, c.at)
		}
	})
}

// TestGateSurvives interrupts a server: runs that wait are let through later, in their order, and one that was at work goes on.
func TestGateSurvives(t *testing.T) {
	withCrowd(t, 8, func(t *testing.T, c *crowd) {
		one := gate.Rules{Key: "k"}
		ids := []string{c.must("a", one), c.must("b", one), c.must("c", one)}
		now, cancel := context.WithCancel(t.Context())
		cancel()
		c.Shutdown(now)
		for _, id := range ids {
			if info, err := c.store.Info(t.Context(), id); err != nil || info.State() != "interrupted" || info.Key() != "k" {
				t.Errorf("%v: %v", info.State(), err)
			}
		}
		c.host = hostOn(t, c.store, 8, c.work)
		if err := c.ResumeOnStart(t.Context()); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, c.must("d", one))
		c.expect("done done done done", "aabcd", ids...)
		if c.most != 1 {
			t.Errorf("%d at work at once", c.most)
		}
	})
}

func TestGateCanBeCanceled(t *testing.T) {
	withCrowd(t, 8, func(t *testing.T, c *crowd) {
		one := gate.Rules{Key: "k"}
		first, second := c.must("a", one), c.must("b", one)
		if err := c.Cancel(t.Context(), second); err != nil {
			t.Fatal(err)
		}
		c.expect("done canceled done", "ac", first, second, c.must("c", one))
	})
}

// TestGateCanceledElsewhere cancels runs from another process than theirs: one that waits, and one at work.
func TestGateCanceledElsewhere(t *testing.T) {
	withCrowd(t, 8, func(t *testing.T, c *crowd) {
		one := gate.Rules{Key: "k"}
		ids := []string{c.must("a", one), c.must("b", one), c.must("c", one, gate.Rules{Limit: 9}), c.must("d", one)}
		command := &run.Service{Open: func(graph.Durability) (run.Store, error) { return shared{c.store}, nil }}
		other := hostOn(t, c.store, 8, nil)
		if err := errors.Join(command.Cancel(t.Context(), ids[1]), other.Cancel(t.Context(), ids[2])); err != nil {
			t.Fatal(err)
		}
		if _, held := errors.AsType[*run.LeaseError](command.Cancel(t.Context(), ids[0])); !held {
			t.Error("a run at work elsewhere was canceled")
		}
		c.expect("done canceled canceled done", "ad", ids...)
		other.Shutdown(t.Context())
	})
}

func TestPriorityInQueue(t *testing.T) {
	withCrowd(t, 1, func(_ *testing.T, c *crowd) {
		low, normal, high := gate.Rules{Priority: gate.Low}, gate.Rules{Priority: gate.Normal}, gate.Rules{Priority: gate.High}
		ids := []string{c.must("a", low), c.must("b", low), c.must("c", normal), c.must("d", high), c.must("e", normal), c.must("f")}
		c.expect("done done done done done done", "adfceb", ids...)
	})
}
