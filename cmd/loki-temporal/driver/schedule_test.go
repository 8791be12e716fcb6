package driver_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"loki/cmd/loki-temporal/driver"
	"loki/internal/base/fault"
	"loki/internal/workflow/graph/gate"
	"loki/internal/workflow/schedule"
)

func checked(t *testing.T, d schedule.Doc) *schedule.Schedule {
	t.Helper()
	d.Agent = "a"
	s, err := schedule.Check("s", d)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPolicies(t *testing.T) {
	for _, tt := range []struct {
		overlap, missed string
		want            enums.ScheduleOverlapPolicy
		window          time.Duration
	}{
		{"", "", enums.SCHEDULE_OVERLAP_POLICY_SKIP, 365 * 24 * time.Hour},
		{"queue", "once", enums.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE, 365 * 24 * time.Hour},
		{"cancel", "skip", enums.SCHEDULE_OVERLAP_POLICY_CANCEL_OTHER, 10 * time.Second},
		{"allow", "all", enums.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL, 7 * 24 * time.Hour},
	} {
		got, err := driver.Translate(checked(t, schedule.Doc{Every: "1h", Rules: gate.Rules{Overlap: tt.overlap}, Missed: tt.missed, Paused: true}))
		if err != nil || got.Policy.Overlap != tt.want || got.Policy.CatchupWindow != tt.window || !got.State.Paused {
			t.Errorf("%s, %s: %+v, %v", tt.overlap, tt.missed, got.Policy, err)
		}
	}
}

func TestTimes(t *testing.T) {
	translate := func(d schedule.Doc) *client.ScheduleSpec {
		t.Helper()
		got, err := driver.Translate(checked(t, d))
		if err != nil {
			t.Fatal(err)
		}
		return got.Spec
	}
	of := translate(schedule.Doc{Every: "1h", Start: "2026-12-01T00:20:00Z", End: "2027-01-01T00:00:00Z", Jitter: "5m"})
	if i := of.Intervals[0]; i.Every != time.Hour || i.Offset != 20*time.Minute || of.StartAt.Minute() != 20 || of.EndAt.Year() != 2026 || of.Jitter != 5*time.Minute {
		t.Errorf("%+v", of)
	}
	for cron, want := range map[string][]string{
		"30 2 * * MON-FRI": {"30 2 * * MON-FRI"},
		"0 9 1 * MON":      {"0 9 1 * *", "0 9 * * MON"}, // either
		"0 9 ? JUL 1":      {"0 9 * JUL 1"},
		"@daily":           {"@daily"},
	} {
		if of := translate(schedule.Doc{Cron: cron, Timezone: "Europe/Berlin"}); !slices.Equal(of.CronExpressions, want) || of.TimeZoneName != "Europe/Berlin" {
			t.Errorf("%s: %+v", cron, of)
		}
	}
	got, err := driver.Translate(checked(t, schedule.Doc{At: "2030-05-06T07:08:09Z", Timezone: "Asia/Tokyo"}))
	if err != nil || got.State.RemainingActions != 1 || !got.State.LimitedActions || !matches(got.Spec.Calendars, time.Date(2030, 5, 6, 16, 8, 9, 0, time.UTC)) {
		t.Errorf("%+v, %v", got.Spec, err)
	}
}

// matches reports whether a wall time is in one of the specs, as servers compare them.
func matches(all []client.ScheduleCalendarSpec, at time.Time) bool {
	in := func(ranges []client.ScheduleRange, n int, empty bool) bool {
		return len(ranges) == 0 && empty || slices.ContainsFunc(ranges, func(r client.ScheduleRange) bool {
			return n >= r.Start && n <= r.End && (n-r.Start)%max(1, r.Step) == 0
		})
	}
	return slices.ContainsFunc(all, func(c client.ScheduleCalendarSpec) bool {
		return in(c.Year, at.Year(), true) && in(c.Month, int(at.Month()), true) && in(c.DayOfMonth, at.Day(), true) && in(c.DayOfWeek, int(at.Weekday()), true) &&
			in(c.Hour, at.Hour(), at.Hour() == 0) && in(c.Minute, at.Minute(), at.Minute() == 0) && in(c.Second, at.Second(), at.Second() == 0)
	})
}

// TestBlackouts compares, minute by minute, what a server skips with what is in the blackout here.
func TestBlackouts(t *testing.T) {
	for _, b := range []schedule.Blackout{
		{Days: []string{"SAT", "SUN"}},
		{From: "22:00", To: "06:00"},
		{From: "09:15", To: "17:45"},
		{From: "09:15", To: "09:45"},
		{From: "09:00", To: "24:00", Days: []string{"MON"}},
		{From: "22:30", To: "06:10", Days: []string{"SAT"}},
		{Dates: []string{"2026-12-24", "2026-12-31"}},
		{From: "20:00", To: "02:00", Dates: []string{"2026-12-31"}},
		{Dates: []string{"2026-12-24", "2026-12-26"}, Days: []string{"SAT"}},
	} {
		s := checked(t, schedule.Doc{Every: "1m", Timezone: "UTC", Blackout: []schedule.Blackout{b}})
		got, err := driver.Translate(s)
		if err != nil {
			t.Fatal(err)
		}
		_, _, blackout := s.Calendar()
		covered := 0
		for at := time.Date(2026, 12, 19, 0, 0, 30, 0, time.UTC); at.Year() == 2026 || at.Day() < 3; at = at.Add(time.Minute) {
			want := blackout[0].Covers(at, time.UTC)
			if matches(got.Spec.Skip, at) != want {
				t.Fatalf("%+v at %s: want %v of %+v", b, at, want, got.Spec.Skip)
			}
			if want {
				covered++
			}
		}
		if covered == 0 {
			t.Errorf("%+v covers nothing", b)
		}
	}
}

func TestRefusedSchedules(t *testing.T) {
	for want, d := range map[string]schedule.Doc{
		"prompt: {{schedule.time}} cannot be filled in":           {Every: "1h", Prompt: "it is {{ schedule.time }}"},
		"timezone: it is needed":                                  {Cron: "0 9 * * *"},
		"cron: a server does not know L, W and #":                 {Cron: "0 9 L * *", Timezone: "UTC"},
		"max_parked: a server does not know":                      {Every: "1h", MaxParked: new(2)},
		"budget_month: a server does not add up":                  {Every: "1h", BudgetMonth: &schedule.Amount{USD: 1}},
		"budget: runs on Temporal have the budget of their graph": {Every: "1h", Budget: &schedule.Amount{USD: 1}},
		"grace: a server decides by missed alone":                 {Every: "1h", Grace: "5m"},
		"missed: once needs overlap: skip or queue":               {Every: "1h", Rules: gate.Rules{Overlap: "cancel"}},
		"concurrency_key: Temporal does not support":              {Every: "1h", Rules: gate.Rules{Key: "k"}},
		"missed: all needs overlap: allow":                        {Every: "1h", Missed: "all"},
		"every: whole seconds are needed":                         {Every: "1500ms"},
	} {
		_, err := driver.Translate(checked(t, d))
		if err == nil || !strings.HasPrefix(err.Error(), "schedule s: "+want) || fault.CodeOf(err) != fault.Usage || fault.HintOf(err) == "" {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := driver.Translate(checked(t, schedule.Doc{Every: "1h", Prompt: "this is {{schedule.name}}", MaxParked: new(0)})); err != nil {
		t.Error(err)
	}
}
