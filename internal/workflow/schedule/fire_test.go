package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"loki/internal/base/fault"
	"loki/internal/llm/chat"
	"loki/internal/service/auth"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/gate"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
	"loki/internal/workflow/schedule"
)

// bench is a service over a store in memory, with a clock that the test sets.
type bench struct {
	*schedule.Service
	t          *testing.T
	now        time.Time
	configured []*schedule.Schedule
	journals   map[string]run.Journal // of runs at work
	refuse     error                  // of Job
}

func newBench(t *testing.T, now string, docs map[string]schedule.Doc) *bench {
	t.Helper()
	b := &bench{t: t, journals: make(map[string]run.Journal)}
	b.set(now)
	for name, d := range docs {
		b.configure(name, d)
	}
	clock := func() time.Time { return b.now }
	store := memstore.New(clock)
	b.Service = &schedule.Service{
		Store: store, Now: clock, Log: slog.New(slog.DiscardHandler), Configured: func(context.Context) ([]*schedule.Schedule, error) { return b.configured, nil },
		Job: func(_ context.Context, s *schedule.Schedule, _ *auth.Owner) (run.Job, error) {
			return run.Job{Info: run.Info{Agent: s.Agent, Prompt: s.Prompt}}, b.refuse
		},
		Start: func(ctx context.Context, job run.Job) (string, error) {
			j, err := store.Create(ctx, job.Info, run.Checkpoint{State: graph.State{}})
			if err != nil {
				return "", err
			}
			b.journals[j.ID()] = j
			return j.ID(), nil
		},
		Cancel: func(_ context.Context, id string) error {
			b.end(id, run.Ending{Status: run.Canceled})
			return nil
		},
	}
	return b
}

func (b *bench) configure(name string, d schedule.Doc) {
	b.t.Helper()
	if d.Agent == "" {
		d.Agent = "x"
	}
	if d.Timezone == "" {
		d.Timezone = "UTC"
	}
	s, err := schedule.Check(name, d)
	if err != nil {
		b.t.Fatal(err)
	}
	b.configured = append(b.configured, s)
}

func (b *bench) set(now string) {
	b.t.Helper()
	var err error
	if b.now, err = time.Parse("2006-01-02 15:04:05", now); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) end(id string, e run.Ending) {
	b.t.Helper()
	j := b.journals[id]
	delete(b.journals, id)
	if err := errors.Join(j.End(b.t.Context(), e), j.Close()); err != nil {
		b.t.Fatal(err)
	}
}

// endAll ends all runs.
func (b *bench) endAll() {
	b.t.Helper()
	for id := range b.journals {
		b.end(id, run.Ending{Status: run.Done})
	}
}

// tick returns what happens at a time: "NAME DAY HH:MM fired" or a reason.
func (b *bench) tick(now string) string {
	b.t.Helper()
	b.set(now)
	outcomes, _, err := b.Tick(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	var all []string
	for _, o := range outcomes {
		what := o.Reason
		if what == "" {
			what = "fired"
		}
		if o.Count > 1 {
			what += fmt.Sprintf(" %d times", o.Count)
		}
		all = append(all, o.Due.Format("02 15:04")+" "+what)
	}
	return strings.Join(all, ", ")
}

func (b *bench) want(now, want string) {
	b.t.Helper()
	if got := b.tick(now); got != want {
		b.t.Errorf("at %s: %s\nwant %s", now, got, want)
	}
}

// TestFires: a schedule begins when it is first seen, and each time leads to one run.
func TestFires(t *testing.T) {
	b := newBench(t, "2026-12-01 06:00:00", map[string]schedule.Doc{"a": {Cron: "0 7 * * *", Prompt: "{{schedule.name}} at {{ schedule.time }}: {{other}}"}})
	b.want("2026-12-01 06:59:59", "")
	b.want("2026-12-01 07:00:00", "01 07:00 fired")
	b.want("2026-12-01 07:00:01", "")
	for id := range b.journals {
		info, err := b.Store.Info(t.Context(), id)
		if err != nil || info.Prompt != "a at 2026-12-01T07:00:00Z: {{other}}" || info.Origin.String() != "schedule/a" || !info.Origin.Due.Equal(b.now.Add(-time.Second)) {
			t.Errorf("%+v %+v %v", info, info.Origin, err)
		}
	}
	b.endAll()
	b.want("2026-12-02 07:00:02", "02 07:00 fired")
	// A clock that is set back repeats nothing.
	b.endAll()
	b.want("2026-12-02 06:30:00", "")
	if k, err := b.Find(t.Context(), "a"); err != nil || k.Next(b.now).Day() != 3 {
		t.Errorf("the next time is %v, %v", k.Next(b.now), err)
	}
	b.want("2026-12-02 07:00:00", "")
	b.want("2026-12-03 07:00:00", "03 07:00 fired")
	history, err := b.History(t.Context(), "a", 2)
	if err != nil || len(history) != 2 || history[0].Due.Day() != 3 || history[0].Run == "" || history[1].LateSeconds != 2 {
		t.Errorf("%+v %v", history, err)
	}
}

// TestMissed: three days off lead to no run, one, or three.
func TestMissed(t *testing.T) {
	for missed, want := range map[string]string{
		schedule.MissedSkip: "02 07:00 missed, 03 07:00 missed, 04 07:00 missed",
		schedule.MissedOnce: "02 07:00 missed, 03 07:00 missed, 04 07:00 fired",
	} {
		b := newBench(t, "2026-12-01 12:00:00", map[string]schedule.Doc{"a": {Cron: "0 7 * * *", Missed: missed}})
		b.tick("2026-12-01 12:00:00")
		b.want("2026-12-04 12:00:00", want)
		b.want("2026-12-04 12:00:01", "")
		b.endAll()
		b.want("2026-12-05 07:10:00", "05 07:00 fired") // not over the grace
	}
	b := newBench(t, "2026-12-01 12:00:00", map[string]schedule.Doc{"a": {Cron: "0 7 * * *", Missed: schedule.MissedAll}})
	b.tick("2026-12-01 12:00:00")
	b.want("2026-12-04 12:00:00", "02 07:00 fired") // one after the other
	b.want("2026-12-04 12:00:01", "")
	b.endAll()
	b.want("2026-12-04 12:00:02", "03 07:00 fired")
	b.endAll()
	b.want("2026-12-04 12:00:03", "04 07:00 fired")
	b.endAll()
	b.want("2026-12-04 12:00:04", "")
	// Nine days off: those of the last seven count.
	b.tick("2026-12-04 12:00:05")
	if got := b.tick("2026-12-13 12:00:00"); !strings.HasPrefix(got, "05 07:00 missed, 06 07:00 missed, 07 07:00 fired") {
		t.Error(got)
	}
	// On time beats those that were missed.
	b = newBench(t, "2026-12-01 12:00:00", map[string]schedule.Doc{"a": {Cron: "0 7 * * *"}})
	b.tick("2026-12-01 12:00:00")
	b.want("2026-12-04 07:00:05", "02 07:00 missed, 03 07:00 missed, 04 07:00 fired")
}

// TestManyMissed: of very many missed times the oldest are one entry of the history.
func TestManyMissed(t *testing.T) {
	b := newBench(t, "2026-12-01 00:00:00", map[string]schedule.Doc{"a": {Every: "1s"}})
	b.tick("2026-12-01 00:00:00")
	b.set("2026-12-04 00:00:00")
	outcomes, _, err := b.Tick(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	times, runs := 0, 0
	for _, o := range outcomes {
		times += max(1, o.Count)
		if o.Run != "" {
			runs++
		}
	}
	if times != 3*86400 || runs != 1 || len(outcomes) > 301 {
		t.Errorf("%d times, %d runs, %d entries", times, runs, len(outcomes))
	}
	all := newBench(t, "2026-12-01 00:00:00", map[string]schedule.Doc{"a": {Every: "1m", Missed: schedule.MissedAll, Rules: gate.Rules{Overlap: schedule.OverlapAllow}}})
	all.tick("2026-12-01 00:00:00")
	all.tick("2026-12-02 00:00:30")
	if len(all.journals) != 100 {
		t.Errorf("%d runs", len(all.journals))
	}
}

func TestOverlap(t *testing.T) {
	doc := func(overlap string) map[string]schedule.Doc {
		return map[string]schedule.Doc{"a": {Every: "1m", Rules: gate.Rules{Overlap: overlap}}}
	}
	b := newBench(t, "2026-12-01 00:00:00", doc(schedule.OverlapSkip))
	b.tick("2026-12-01 00:00:00")
	b.want("2026-12-01 00:01:00", "01 00:01 fired")
	b.want("2026-12-01 00:02:00", "01 00:02 overlap")
	b.endAll()
	b.want("2026-12-01 00:02:01", "")
	b.want("2026-12-01 00:03:00", "01 00:03 fired")

	b = newBench(t, "2026-12-01 00:00:00", doc(schedule.OverlapAllow))
	b.tick("2026-12-01 00:00:00")
	b.want("2026-12-01 00:01:00", "01 00:01 fired")
	b.want("2026-12-01 00:02:00", "01 00:02 fired")

	b = newBench(t, "2026-12-01 00:00:00", doc(schedule.OverlapCancel))
	b.tick("2026-12-01 00:00:00")
	b.want("2026-12-01 00:01:00", "01 00:01 fired")
	b.want("2026-12-01 00:02:00", "01 00:02 fired")
	if len(b.journals) != 1 {
		t.Errorf("%d runs are at work", len(b.journals))
	}

	b = newBench(t, "2026-12-01 00:00:00", doc(schedule.OverlapQueue))
	b.tick("2026-12-01 00:00:00")
	b.want("2026-12-01 00:01:00", "01 00:01 fired")
	b.want("2026-12-01 00:02:00", "") // it waits
	b.want("2026-12-01 00:02:30", "")
	b.want("2026-12-01 00:03:00", "01 00:02 overlap") // the newest waits
	b.endAll()
	b.want("2026-12-01 00:03:20", "01 00:03 fired")
	b.endAll()
	b.want("2026-12-01 00:04:00", "01 00:04 fired")

	// What waits is not missed, however late it is.
	b = newBench(t, "2026-12-01 00:00:00", map[string]schedule.Doc{"a": {Every: "1h", Rules: gate.Rules{Overlap: schedule.OverlapQueue}, Missed: schedule.MissedSkip}})
	b.tick("2026-12-01 00:00:00")
	b.want("2026-12-01 01:00:00", "01 01:00 fired")
	b.want("2026-12-01 02:00:00", "")
	b.endAll()
	b.want("2026-12-01 02:40:00", "01 02:00 fired")
}

// TestParked: nobody is asked again while a run waits for an answer, and such a run does not count as an overlap.
func TestParked(t *testing.T) {
	two := 2
	b := newBench(t, "2026-12-01 00:00:00", map[string]schedule.Doc{"a": {Every: "1m"}, "b": {Every: "1m", MaxParked: &two}})
	b.tick("2026-12-01 00:00:00")
	park := func() {
		for id, j := range b.journals {
			if err := j.Asked(t.Context(), run.Pending{ID: "q", Node: "n", Key: "k", Text: "Go?"}); err != nil {
				t.Fatal(err)
			}
			b.end(id, run.Ending{Status: run.Suspended})
		}
	}
	b.want("2026-12-01 00:01:00", "01 00:01 fired, 01 00:01 fired")
	park()
	b.want("2026-12-01 00:02:00", "01 00:02 parked, 01 00:02 fired")
	park()
	b.want("2026-12-01 00:03:00", "01 00:03 parked, 01 00:03 parked")
	infos, err := b.Store.Runs(t.Context(), run.Query{Origin: "schedule/a"})
	if err != nil || len(infos) != 1 {
		t.Fatal(len(infos), err)
	}
	if err := b.Store.Answer(t.Context(), infos[0].ID, "q", run.Reply{Text: "yes"}); err != nil {
		t.Fatal(err)
	}
	b.want("2026-12-01 00:04:00", "01 00:04 overlap, 01 00:04 parked") // it has its answer, and continues soon
}

func TestBudgetMonth(t *testing.T) {
	b := newBench(t, "2026-12-30 12:00:00", map[string]schedule.Doc{"a": {Cron: "0 7 * * *", BudgetMonth: &schedule.Amount{USD: 1}}})
	b.tick("2026-12-30 12:00:00")
	b.want("2026-12-31 07:00:00", "31 07:00 fired")
	for id, j := range b.journals {
		if err := j.Commit(t.Context(), run.Checkpoint{Step: 1, Position: run.Position{Done: true, Usage: chat.Usage{Cost: 1.5}}}, nil); err != nil {
			t.Fatal(err)
		}
		b.end(id, run.Ending{Status: run.Done})
	}
	b.configure("b", schedule.Doc{Cron: "30 7 * * *"})
	b.tick("2026-12-31 07:20:00")
	b.want("2026-12-31 07:30:00", "31 07:30 fired") // another schedule has its own
	b.configured[0], b.configured = b.configured[1], b.configured[:1]
	b.endAll()
	b.configure("a", schedule.Doc{Cron: "0 8 * * *", BudgetMonth: &schedule.Amount{USD: 1}})
	b.tick("2026-12-31 07:40:00")
	b.want("2026-12-31 08:00:00", "31 08:00 budget")
	b.want("2027-01-01 08:00:00", "01 08:00 fired, 01 07:30 fired")
}

// TestLimitReached: while the last run waits for a limit of spending, times are skipped for the budget.
func TestLimitReached(t *testing.T) {
	for want, e := range map[string]run.Ending{
		"budget":  {Status: run.Suspended, Code: fault.Limit, Until: time.Date(2026, 12, 2, 0, 0, 0, 0, time.UTC)},
		"overlap": {Status: run.Suspended, Code: fault.Limit}, // for a budget of its own
	} {
		b := newBench(t, "2026-12-01 06:30:00", map[string]schedule.Doc{"a": {Cron: "0 * * * *"}})
		b.want("2026-12-01 06:30:00", "")
		b.want("2026-12-01 07:00:00", "01 07:00 fired")
		for id := range b.journals {
			b.end(id, e)
		}
		b.want("2026-12-01 08:00:00", "01 08:00 "+want)
	}
}

func TestBlackoutAndPause(t *testing.T) {
	b := newBench(t, "2026-12-23 12:00:00", map[string]schedule.Doc{"a": {Cron: "0 7 * * *", Blackout: []schedule.Blackout{{Dates: []string{"2026-12-24"}}}}})
	b.tick("2026-12-23 12:00:00")
	b.want("2026-12-24 07:00:00", "24 07:00 blackout")
	b.want("2026-12-25 07:00:00", "25 07:00 fired")
	b.endAll()
	if err := b.Pause(t.Context(), "a", true); err != nil {
		t.Fatal(err)
	}
	b.want("2026-12-26 07:00:00", "26 07:00 paused")
	if err := b.Pause(t.Context(), "a", false); err != nil {
		t.Fatal(err)
	}
	b.want("2026-12-26 07:00:01", "")
	b.want("2026-12-27 07:00:00", "27 07:00 fired")
}

// TestInvalid: a schedule whose agent is gone says so in its history, and others work.
func TestInvalid(t *testing.T) {
	b := newBench(t, "2026-12-01 00:00:00", map[string]schedule.Doc{"a": {Every: "1m"}})
	b.tick("2026-12-01 00:00:00")
	b.refuse = errors.New("no agent")
	b.want("2026-12-01 00:01:00", "01 00:01 invalid")
	history, err := b.History(t.Context(), "a", 0)
	if err != nil || len(history) != 1 || history[0].Error != "no agent" {
		t.Errorf("%+v %v", history, err)
	}
	b.refuse = fmt.Errorf("later: %w", run.ErrPassing)
	b.set("2026-12-01 00:02:00")
	if outcomes, _, err := b.Tick(t.Context()); err == nil || len(outcomes) != 0 {
		t.Errorf("%v %v", outcomes, err)
	}
	b.refuse = nil
	b.want("2026-12-01 00:02:30", "01 00:02 fired")
}

// TestJitter starts later by the same delay everywhere, and records the time without it.
func TestJitter(t *testing.T) {
	b := newBench(t, "2026-12-01 06:00:00", map[string]schedule.Doc{"a": {Cron: "0 7 * * *", Jitter: "1h"}})
	b.tick("2026-12-01 06:00:00")
	b.set("2026-12-01 07:00:00")
	_, next, err := b.Tick(t.Context())
	if err != nil || !next.After(b.now) || next.After(b.now.Add(time.Hour)) {
		t.Fatal(next, err)
	}
	b.want(next.Add(-time.Second).Format(time.DateTime), "")
	b.want(next.Add(time.Second).Format(time.DateTime), "01 07:00 fired")
}

// TestChanged: a schedule that means other times begins now, and a name that is used again keeps its keys.
func TestChanged(t *testing.T) {
	b := newBench(t, "2026-12-01 06:00:00", nil)
	add := func(cron string) {
		t.Helper()
		s, err := schedule.Check("a", schedule.Doc{Agent: "x", Cron: cron, Timezone: "UTC"})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Add(t.Context(), s, nil); err != nil {
			t.Fatal(err)
		}
	}
	add("0 7 * * *")
	s, _ := schedule.Check("a", schedule.Doc{Agent: "x", Every: "1h"})
	if err := b.Add(t.Context(), s, nil); err == nil {
		t.Error("a taken name was given again")
	}
	b.want("2026-12-01 07:00:00", "01 07:00 fired")
	b.endAll()
	if err := b.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	b.want("2026-12-01 07:00:30", "")
	b.set("2026-12-01 06:59:00")
	add("0 7 * * *")
	b.want("2026-12-01 07:00:40", "")
	b.want("2026-12-02 07:00:00", "02 07:00 fired")
	b.endAll()
	if err := b.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	b.configure("a", schedule.Doc{Cron: "0 6 * * *"})
	b.want("2026-12-03 12:00:00", "") // 06:00 of that day is over
	b.want("2026-12-04 06:00:00", "04 06:00 fired")
	if err := b.Delete(t.Context(), "a"); err == nil {
		t.Error("a schedule of a file was deleted")
	}
}

// TestTwo: of two processes that look at the same moment, one starts the run.
func TestTwo(t *testing.T) {
	b := newBench(t, "2026-12-01 00:00:00", map[string]schedule.Doc{"a": {Every: "1m", Rules: gate.Rules{Overlap: schedule.OverlapAllow}}})
	b.tick("2026-12-01 00:00:00")
	other := *b.Service
	fired := 0
	b.Job = func(ctx context.Context, s *schedule.Schedule, owner *auth.Owner) (run.Job, error) { // the other one is faster
		if outcomes, _, err := other.Tick(ctx); err != nil {
			t.Error(err)
		} else {
			fired += len(outcomes)
		}
		return run.Job{Info: run.Info{Agent: s.Agent}}, nil
	}
	b.set("2026-12-01 00:01:00")
	outcomes, _, err := b.Tick(t.Context())
	if err != nil || len(outcomes) != 0 || fired != 1 || len(b.journals) != 1 {
		t.Errorf("%v %v, the other fired %d, %d runs", outcomes, err, fired, len(b.journals))
	}
}

func TestFireNow(t *testing.T) {
	b := newBench(t, "2026-12-01 00:00:00", map[string]schedule.Doc{"a": {Every: "1h"}})
	o, err := b.FireNow(t.Context(), "a")
	if err != nil || o.Run == "" {
		t.Fatal(o, err)
	}
	b.now = b.now.Add(time.Millisecond)
	if _, err := b.FireNow(t.Context(), "a"); err != nil {
		t.Error("twice in a second", err)
	}
	if history, err := b.History(t.Context(), "a", 0); err != nil || len(history) != 2 || !history[0].Due.Equal(b.now.Truncate(time.Second)) {
		t.Errorf("%+v %v", history, err)
	}
	if _, err := b.FireNow(t.Context(), "b"); err == nil {
		t.Error("an unknown one")
	}
	b.want("2026-12-01 01:00:00", "01 01:00 overlap")
}

func TestPlan(t *testing.T) {
	b := newBench(t, "2026-12-01 00:00:00", map[string]schedule.Doc{
		"a": {Cron: "0 7 * * *", Timezone: "Europe/Berlin"}, "b": {Cron: "30 6 * * WED", Blackout: []schedule.Blackout{{Days: []string{"WED"}}}},
	})
	times, all, err := b.Plan(t.Context(), b.now, b.now.AddDate(0, 0, 2))
	var got []string
	for _, at := range times {
		got = append(got, at.Name+" "+at.Due.Format("02 15:04 -07")+" "+at.Skipped)
	}
	want := "a 01 07:00 +01 , a 02 07:00 +01 , b 02 06:30 +00 blackout"
	if strings.Join(got, ", ") != want || err != nil || len(all) != 2 {
		t.Errorf("%s, %v", strings.Join(got, ", "), err)
	}
}
