package calendar_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"loki/internal/base/text/sample"
	"loki/internal/workflow/schedule/calendar"
)

// zones change their clocks by an hour, by half an hour, at midnight, twice a year around Ramadan, by a day, or never.
var zones = []string{
	"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Africa/Casablanca",
	"Asia/Kolkata", "Pacific/Apia", "Africa/Cairo", "America/Sao_Paulo", "Asia/Tehran", "Pacific/Chatham",
}

// day is what the oracle knows of a day.
type day struct {
	month, of, last int // of: of the month
	week            time.Weekday
}

// expression is one, and what it means.
type expression struct {
	cron           string
	minutes, hours []int // nil means all
	day            func(d day) bool
	real           bool // real hours count
}

func upTo(n, from, step int) (all []int) {
	for ; from <= n; from += step {
		all = append(all, from)
	}
	return all
}

func always(day) bool { return true }

func weekday(d day) bool { return d.week >= 1 && d.week <= 5 }

func dayOf(n ...int) func(day) bool { return func(d day) bool { return slices.Contains(n, d.of) } }

func weekOf(n ...time.Weekday) func(day) bool {
	return func(d day) bool { return slices.Contains(n, d.week) }
}

func inMonth(f func(day) bool, n ...int) func(day) bool {
	return func(d day) bool { return slices.Contains(n, d.month) && f(d) }
}

func either(f, g func(day) bool) func(day) bool { return func(d day) bool { return f(d) || g(d) } }

// nearest is the working day of the month nearest to a day.
func nearest(n int) func(day) bool {
	return func(d day) bool {
		if !weekday(d) || n > d.last {
			return false
		}
		week := func(of int) int { return ((int(d.week)+of-d.of)%7 + 7) % 7 }
		want := n
		switch {
		case week(n) == 6 && n > 1:
			want = n - 1
		case week(n) == 6:
			want = n + 2
		case week(n) == 0 && n < d.last:
			want = n + 1
		case week(n) == 0:
			want = n - 2
		}
		return d.of == want
	}
}

var expressions = []expression{
	{"* * * * *", nil, nil, always, true},
	{"*/5 * * * *", upTo(59, 0, 5), nil, always, true},
	{"0 * * * *", []int{0}, nil, always, true},
	{"@hourly", []int{0}, nil, always, true},
	{"30 * * * *", []int{30}, nil, always, true},
	{"15 */2 * * *", []int{15}, upTo(23, 0, 2), always, true},
	{"15 */6 * * MON-FRI", []int{15}, upTo(23, 0, 6), weekday, true},
	{"30 2 * * *", []int{30}, []int{2}, always, false},
	{"30 1 * * *", []int{30}, []int{1}, always, false},
	{"0 3 * * *", []int{0}, []int{3}, always, false},
	{"0 0 * * *", []int{0}, []int{0}, always, false},
	{"@daily", []int{0}, []int{0}, always, false},
	{"30 0 * * *", []int{30}, []int{0}, always, false},
	{"59 23 * * *", []int{59}, []int{23}, always, false},
	{"0 7 * * 1-5", []int{0}, []int{7}, weekday, false},
	{"0 7 * * mon-fri", []int{0}, []int{7}, weekday, false},
	{"*/10 1-3 * * *", upTo(59, 0, 10), []int{1, 2, 3}, always, false},
	{"0,30 0-23 * * *", []int{0, 30}, nil, always, false},
	{"*/20 0-6/2 * * SUN", upTo(59, 0, 20), []int{0, 2, 4, 6}, weekOf(0), false},
	{"5 4 * * 7", []int{5}, []int{4}, weekOf(0), false},
	{"5 4 * * 0,6", []int{5}, []int{4}, weekOf(0, 6), false},
	{"@weekly", []int{0}, []int{0}, weekOf(0), false},
	{"@monthly", []int{0}, []int{0}, dayOf(1), false},
	{"@yearly", []int{0}, []int{0}, inMonth(dayOf(1), 1), false},
	{"0 12 1,15 * *", []int{0}, []int{12}, dayOf(1, 15), false},
	{"0 12 13 * FRI", []int{0}, []int{12}, either(dayOf(13), weekOf(5)), false},
	{"0 12 31 * *", []int{0}, []int{12}, dayOf(31), false},
	{"0 12 29 2 *", []int{0}, []int{12}, inMonth(dayOf(29), 2), false},
	{"0 12 L * *", []int{0}, []int{12}, func(d day) bool { return d.of == d.last }, false},
	{"0 12 L 2 *", []int{0}, []int{12}, inMonth(func(d day) bool { return d.of == d.last }, 2), false},
	{"0 12 15W * *", []int{0}, []int{12}, nearest(15), false},
	{"0 12 1W * *", []int{0}, []int{12}, nearest(1), false},
	{"0 12 31W * *", []int{0}, []int{12}, nearest(31), false},
	{"30 2 * * 0#2", []int{30}, []int{2}, func(d day) bool { return d.week == 0 && d.of > 7 && d.of <= 14 }, false},
	{"30 2 * * SUN#1", []int{30}, []int{2}, func(d day) bool { return d.week == 0 && d.of <= 7 }, false},
	{"0 9 * * 5L", []int{0}, []int{9}, func(d day) bool { return d.week == 5 && d.of > d.last-7 }, false},
	{"0 0 * 3,10 *", []int{0}, []int{0}, inMonth(always, 3, 10), false},
	{"30 2 * JAN-MAR,OCT SUN", []int{30}, []int{2}, inMonth(weekOf(0), 1, 2, 3, 10), false},
	{"7-37/10 2,3 1-7 * *", []int{7, 17, 27, 37}, []int{2, 3}, dayOf(1, 2, 3, 4, 5, 6, 7), false},
	{"45 23 1-31/7 */3 *", []int{45}, []int{23}, inMonth(dayOf(1, 8, 15, 22, 29), 1, 4, 7, 10), false},
}

// oracle calls each with every due time from one to another, which it finds minute by minute.
func (e expression) oracle(zone *time.Location, from, to time.Time, each func(time.Time)) {
	var minutes [60]bool
	var hours [24]bool
	for n := range 60 {
		minutes[n] = e.minutes == nil || slices.Contains(e.minutes, n)
		if n < 24 {
			hours[n] = e.hours == nil || slices.Contains(e.hours, n)
		}
	}
	offsetAt := func(t time.Time) int64 { _, offset := t.In(zone).Zone(); return int64(offset / 60) }
	var today day
	number, fits := int64(-1), false
	matches := func(wall int64) bool { // minutes since 1970 by the clocks
		if wall/1440 != number {
			number = wall / 1440
			t := time.Unix(number*86400, 0).UTC()
			today = day{int(t.Month()), t.Day(), time.Date(t.Year(), t.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day(), t.Weekday()}
			fits = e.day(today)
		}
		return fits && minutes[wall%60] && hours[wall/60%24]
	}
	shown := int64(0) // the latest wall time so far
	hour, offset := int64(-1), int64(0)
	for m := from.Unix()/60 - 1440; m < to.Unix()/60; m++ {
		at := time.Unix(m*60, 0)
		if m/15 != hour { // clocks change at quarters of hours
			hour, offset = m/15, offsetAt(at)
		}
		wall := m + offset
		hit := matches(wall)
		if !e.real {
			hit = hit && wall > shown
			for w := shown + 1; shown > 0 && w < wall && !hit; w++ { // which the clocks left out
				hit = matches(w)
			}
		}
		shown = max(shown, wall)
		if hit && !at.Before(from) {
			each(at)
		}
	}
}

// TestOracle compares due times of ten years with those that are found minute by minute.
func TestOracle(t *testing.T) {
	from := time.Date(2007, 1, 1, 0, 0, 0, 0, time.UTC)
	for z, name := range zones {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			t.Parallel()
			zone, err := time.LoadLocation(name)
			if err != nil {
				t.Fatal(err)
			}
			begin, end := from, from.AddDate(10, 0, 0)
			if !sample.Full() { // two years, which leave out other expressions in each zone
				begin = from.AddDate(4, 6, 0)
				end = begin.AddDate(2, 0, 0)
			}
			compared := 0
			for n, e := range expressions {
				if (n+z)%sample.Step(4) != 0 {
					continue
				}
				times, err := calendar.New(calendar.Spec{Cron: e.cron, Zone: zone})
				if err != nil {
					t.Fatal(e.cron, err)
				}
				at, wrong := begin.Add(-time.Second), 0
				e.oracle(zone, begin, end, func(want time.Time) {
					if wrong > 0 {
						return
					}
					compared++
					if at = times.After(at); !at.Equal(want) {
						t.Errorf("%s is due at %v, want %v", e.cron, at.In(zone), want.In(zone))
						wrong++
					}
				})
			}
			if compared == 0 {
				t.Error("nothing was compared")
			}
		})
	}
}

// TestClocksChange has the rules at the changes of clocks in Berlin.
func TestClocksChange(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, cron, from, want string }{
		{"does_not_exist", "30 2 * * *", "2026-03-28T12:00:00+01:00", "2026-03-29T03:00:00+02:00 2026-03-30T02:30:00+02:00"},
		{"once_after_the_gap", "0,30 2,3 * * *", "2026-03-29T00:00:00+01:00", "2026-03-29T03:00:00+02:00 2026-03-29T03:30:00+02:00"},
		{"exists_twice", "30 2 * * *", "2026-10-24T12:00:00+02:00", "2026-10-25T02:30:00+02:00 2026-10-26T02:30:00+01:00"},
		{"real_hours_forward", "0 * * * *", "2026-03-29T01:30:00+01:00", "2026-03-29T03:00:00+02:00 2026-03-29T04:00:00+02:00"},
		{"real_hours_back", "0 * * * *", "2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00 2026-10-25T03:00:00+01:00"},
		{"between_the_two", "15 2 * * *", "2026-10-25T02:05:00+01:00", "2026-10-26T02:15:00+01:00 2026-10-27T02:15:00+01:00"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			times, err := calendar.New(calendar.Spec{Cron: tt.cron, Zone: zone})
			if err != nil {
				t.Fatal(err)
			}
			at, _ := time.Parse(time.RFC3339, tt.from)
			for want := range strings.FieldsSeq(tt.want) {
				if at = times.After(at); at.In(zone).Format(time.RFC3339) != want {
					t.Errorf("due at %s, want %s", at.In(zone).Format(time.RFC3339), want)
				}
			}
		})
	}
}

func TestOtherTimes(t *testing.T) {
	at := func(text string) time.Time {
		t.Helper()
		parsed, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name     string
		spec     calendar.Spec
		from, to string // "" for never
	}{
		{"every_from_1970", calendar.Spec{Every: 90 * time.Minute}, "2026-01-01T00:10:00Z", "2026-01-01T01:30:00Z"},
		{"every_from_start", calendar.Spec{Every: 90 * time.Minute, Start: "2026-01-01T00:07:00Z"}, "2026-01-01T00:10:00Z", "2026-01-01T01:37:00Z"},
		{"every_before_start", calendar.Spec{Every: time.Hour, Start: "2026-01-01T00:07:00Z"}, "2025-01-01T00:00:00Z", "2026-01-01T00:07:00Z"},
		{"at_wall", calendar.Spec{At: "2026-07-01 07:00"}, "2026-01-01T00:00:00Z", "2026-07-01T11:00:00Z"},
		{"at_in_gap", calendar.Spec{At: "2026-03-08 02:30"}, "2026-01-01T00:00:00Z", "2026-03-08T07:00:00Z"},
		{"at_over", calendar.Spec{At: "2026-07-01T07:00:00Z"}, "2026-07-01T07:00:00Z", ""},
		{"start_counts", calendar.Spec{Cron: "0 7 * * *", Start: "2026-07-01 07:00"}, "2026-01-01T00:00:00Z", "2026-07-01T11:00:00Z"},
		{"end_does_not", calendar.Spec{Cron: "0 7 * * *", End: "2026-07-01 07:00"}, "2026-06-30T12:00:00Z", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.spec.Zone = zone
			times, err := calendar.New(tt.spec)
			if err != nil {
				t.Fatal(err)
			}
			next, text := times.After(at(tt.from)), ""
			if !next.IsZero() {
				text = next.Format(time.RFC3339)
			}
			if text != tt.to {
				t.Errorf("due at %s, want %s", text, tt.to)
			}
		})
	}
}

// TestRefused has expressions that are not read, with the field that is wrong.
func TestRefused(t *testing.T) {
	for cron, says := range map[string]string{
		"0 0 7 * * *": "6 fields", "0 7 * * * 2026": "6 fields", "* * * *": "4 fields", "": "every",
		"@always": "@hourly", "@5minutes": "@hourly", "@annually": "@hourly", "@reboot": "@hourly",
		"H 7 * * *": `minute "H"`, "60 * * * *": `minute "60"`, "0 24 * * *": `hour "24"`, "0 0 0 * *": `day of month "0"`, "0 0 32 * *": `day of month "32"`,
		"0 0 * 13 *": `month "13"`, "0 0 * * 8": `day of week "8"`, "0 0 * * MONDAY": `day of week "MONDAY"`, "0 5-1 * * *": `hour "5-1"`, "*/0 * * * *": `minute "*/0"`,
		"0 L * * *": `hour "L"`, "0 0 * * 1#6": `day of week "1#6"`, "0 0 LW * *": `day of month "LW"`, "1,,2 * * * *": `minute "1,,2"`, "0 0 1/2/3 * *": `day of month "1/2/3"`,
		"0 0 31 2 *": "never due", "0 0 30 FEB ?": "never due", "0 0 5,99 * *": `day of month "5,99"`, "- * * * *": `minute "-"`,
	} {
		_, err := calendar.New(calendar.Spec{Cron: cron, Zone: time.UTC})
		if refused, ok := errors.AsType[*calendar.SpecError](err); !ok || !strings.Contains(refused.Error(), says) {
			t.Errorf("%q: %v, want %q", cron, err, says)
		}
	}
}

func TestBlackout(t *testing.T) {
	night := calendar.Blackout{Days: []time.Weekday{time.Saturday}, From: 22 * time.Hour, To: 6 * time.Hour}
	eve := calendar.Blackout{Dates: []string{"2026-12-24"}}
	lunch := calendar.Blackout{From: 12 * time.Hour, To: 13 * time.Hour}
	for _, tt := range []struct {
		b    calendar.Blackout
		at   string
		want bool
	}{
		{night, "2026-12-05 21:59", false},
		{night, "2026-12-05 22:00", true},
		{night, "2026-12-06 05:59", true},
		{night, "2026-12-06 06:00", false},
		{night, "2026-12-06 23:00", false},
		{eve, "2026-12-24 00:00", true},
		{eve, "2026-12-24 23:59", true},
		{eve, "2026-12-25 00:00", false},
		{lunch, "2026-12-01 12:30", true},
		{lunch, "2026-12-01 13:00", false},
	} {
		at, _ := time.Parse("2006-01-02 15:04", tt.at)
		if got := tt.b.Covers(at, time.UTC); got != tt.want {
			t.Errorf("%+v covers %s: %v", tt.b, tt.at, got)
		}
	}
}

// TestDelay: a jitter is the same everywhere, stays below its bounds and differs between times.
func TestDelay(t *testing.T) {
	times, err := calendar.New(calendar.Spec{Cron: "*/10 * * * *", Zone: time.UTC})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[time.Duration]bool)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 100 {
		at = times.After(at)
		d := times.Delay("a", at, time.Hour)
		if d < 0 || d > 5*time.Minute || d != times.Delay("a", at, time.Hour) {
			t.Fatal(at, d)
		}
		seen[d] = true
	}
	if len(seen) < 90 || times.Delay("a", at, 0) != 0 {
		t.Errorf("%d of 100 delays differ", len(seen))
	}
}

// FuzzCron: no expression panics or takes long, and times only go forward.
func FuzzCron(f *testing.F) {
	for _, e := range expressions {
		f.Add(e.cron)
	}
	f.Add("0 0 99W * *")
	f.Add("*/99 * * * 7-7/7")
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, cron string) {
		times, err := calendar.New(calendar.Spec{Cron: cron, Zone: zone, Every: time.Second})
		if err != nil {
			return
		}
		at := time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC)
		for range 3 {
			next := times.After(at)
			if next.IsZero() {
				return
			}
			if !next.After(at) {
				t.Fatalf("%q is due at %v after %v", cron, next, at)
			}
			at = next
		}
	})
}

func TestWeekday(t *testing.T) {
	for name, want := range map[string]int{"SUN": 0, "mon": 1, "Sat": 6, "UNM": -1, "S": -1, "": -1, "SUNDAY": -1} {
		day, ok := calendar.Weekday(name)
		if ok != (want >= 0) || ok && int(day) != want {
			t.Errorf("%s: %v %v", name, day, ok)
		}
	}
}
