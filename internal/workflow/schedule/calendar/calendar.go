// Package calendar says when something is due: by a cron expression, at intervals or once, in a time zone, outside of blackouts.
//
// A wall time is what clocks of a zone show. Where clocks are set forward some wall times do not exist, and where they are set back some
// exist twice. An expression whose field of hours begins with "*" means real hours: what does not exist is left out, and what exists
// twice counts twice. All other wall times are due once: one that does not exist at the first instant after the gap, one that exists twice
// at its first.
package calendar

import (
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // for systems without a database of zones
)

// horizon is how far ahead a time is looked for: an expression that is not due by then never is.
const horizon = 10 * 366 * 24 * time.Hour

// Bounds of intervals.
const (
	MinEvery = time.Second
	MaxEvery = 366 * 24 * time.Hour
)

// Times are the times at which something is due. Its fields are not changed once it is made.
type Times struct {
	zone       *time.Location
	cron       *cron
	every      time.Duration
	at         time.Time
	start, end time.Time // zero for none; end is exclusive
}

// Spec says when something is due, as users write it. One of Cron, Every and At is set.
type Spec struct {
	Cron, At   string // At and the bounds: RFC 3339, or a wall time such as "2026-12-24 07:00"
	Every      time.Duration
	Start, End string
	Zone       *time.Location
}

// SpecError is an error of a field of a [Spec].
type SpecError struct {
	Field string // such as "cron"
	Err   error
}

func (e *SpecError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *SpecError) Unwrap() error { return e.Err }

// New returns the times that a spec means. The error is a [*SpecError]. Times that are over are no error.
func New(s Spec) (*Times, error) {
	t := &Times{zone: s.Zone, every: s.Every}
	var err error
	if t.start, err = t.instant(s.Start); err != nil {
		return nil, &SpecError{"start", err}
	}
	if t.end, err = t.instant(s.End); err != nil {
		return nil, &SpecError{"end", err}
	}
	switch {
	case s.Cron != "":
		if t.cron, err = parseCron(s.Cron); err != nil {
			return nil, &SpecError{"cron", err}
		}
		first := t.cron.next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), true, time.Date(2034, 1, 2, 0, 0, 0, 0, time.UTC))
		if first.IsZero() {
			return nil, &SpecError{"cron", errors.New("it is never due in 10 years")}
		}
	case s.At != "":
		if t.at, err = t.instant(s.At); err != nil {
			return nil, &SpecError{"at", err}
		}
	case s.Every < MinEvery || s.Every > MaxEvery:
		return nil, &SpecError{"every", errors.New("an interval from 1s to 366d is expected")}
	}
	return t, nil
}

// wallLayouts are the forms of wall times.
var wallLayouts = []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly}

// instant returns the instant that a text means, zero for an empty one.
func (t *Times) instant(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	for _, layout := range wallLayouts {
		if wall, err := time.Parse(layout, text); err == nil {
			return instantOf(wall, t.zone), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time such as 2026-12-24T07:00:00+01:00 or 2026-12-24 07:00", text)
}

// wallOf returns the wall time of an instant, in UTC.
func wallOf(t time.Time, zone *time.Location) time.Time {
	_, offset := t.In(zone).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// instantOf returns the first instant of a wall time, in UTC: that after the gap if it does not exist.
func instantOf(wall time.Time, zone *time.Location) time.Time {
	t := wall.Add(-16 * time.Hour).In(zone) // no zone is farther from UTC
	for {
		_, offset := t.Zone()
		start, end := t.ZoneBounds()
		at := wall.Add(-time.Duration(offset) * time.Second)
		switch {
		case !start.IsZero() && at.Before(start):
			return start.UTC()
		case end.IsZero() || at.Before(end):
			return at.UTC()
		}
		t = end
	}
}

// Interval returns the interval and the bounds of the times; each may be zero.
func (t *Times) Interval() (every time.Duration, start, end time.Time) {
	return t.every, t.start, t.end
}

// After returns the first time after another at which it is due, in UTC; zero if it is never due again.
func (t *Times) After(after time.Time) time.Time {
	if before := t.start.Add(-1); !t.start.IsZero() && after.Before(before) {
		after = before
	}
	var next time.Time
	switch {
	case t.cron != nil && t.cron.everyHour:
		next = t.nextReal(after)
	case t.cron != nil:
		next = t.nextWall(after)
	case t.every > 0:
		next = t.nextInterval(after)
	case t.at.After(after):
		next = t.at.UTC()
	}
	if !t.end.IsZero() && !next.Before(t.end) {
		return time.Time{}
	}
	return next
}

// nextReal returns the first instant after another whose wall time is due.
func (t *Times) nextReal(after time.Time) time.Time {
	incl, last := false, wallOf(after, t.zone).Add(horizon)
	for at := after.In(t.zone); ; incl = true {
		_, offset := at.Zone()
		_, end := at.ZoneBounds()
		until := last
		if !end.IsZero() { // the walk ends where the clocks change
			until = end.UTC().Add(time.Duration(offset) * time.Second)
		}
		wall := t.cron.next(wallOf(at, t.zone), incl, until)
		if !wall.IsZero() {
			return wall.Add(-time.Duration(offset) * time.Second)
		}
		if end.IsZero() || until.After(last) {
			return time.Time{}
		}
		at = end
	}
}

// nextWall returns the first instant after another that a due wall time means.
func (t *Times) nextWall(after time.Time) time.Time {
	wall := wallOf(after, t.zone)
	for last := wall.Add(horizon); ; {
		if wall = t.cron.next(wall, false, last); wall.IsZero() {
			return wall
		}
		if at := instantOf(wall, t.zone); at.After(after) {
			return at
		}
	}
}

// nextInterval returns the first whole number of intervals after the start, or after 1970.
func (t *Times) nextInterval(after time.Time) time.Time {
	from := t.start
	if from.IsZero() {
		from = time.Unix(0, 0)
	}
	past := after.Sub(from)
	if past < 0 {
		return from.UTC()
	}
	return from.Add((past/t.every + 1) * t.every).UTC()
}

// Delay returns by how much a time is later because of a jitter, by hash: the same everywhere. It is at most the jitter, and half of the time until the next.
func (t *Times) Delay(name string, due time.Time, jitter time.Duration) time.Duration {
	if jitter <= 0 {
		return 0
	}
	if next := t.After(due); !next.IsZero() {
		jitter = min(jitter, next.Sub(due)/2)
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%d", name, due.Unix())
	return time.Duration(h.Sum64() % uint64(jitter+1))
}

// Blackout is a time in which nothing is due. Each of its fields that is set must hold.
type Blackout struct {
	Days     []time.Weekday
	Dates    []string      // such as 2026-12-24
	From, To time.Duration // since midnight. Of one that ends before it begins, the end is on the next day; both 0 mean the whole day
}

// Covers reports whether an instant is in the blackout, by the clocks of a zone.
func (b Blackout) Covers(at time.Time, zone *time.Location) bool {
	wall := wallOf(at, zone)
	day := wall.Truncate(24 * time.Hour)
	clock := wall.Sub(day)
	switch {
	case b.From == b.To:
		return b.on(day)
	case b.From < b.To:
		return b.on(day) && clock >= b.From && clock < b.To
	}
	return b.on(day) && clock >= b.From || b.on(day.AddDate(0, 0, -1)) && clock < b.To
}

// on reports whether the blackout begins on a day.
func (b Blackout) on(day time.Time) bool {
	return (len(b.Days) == 0 || slices.Contains(b.Days, day.Weekday())) && (len(b.Dates) == 0 || slices.Contains(b.Dates, day.Format(time.DateOnly)))
}

// weekdays are the names of days.
const weekdays = "SUNMONTUEWEDTHUFRISAT"

// Weekday returns the day with a name of three letters.
func Weekday(name string) (day time.Weekday, ok bool) {
	i := strings.Index(weekdays, strings.ToUpper(name))
	return time.Weekday(i / 3), len(name) == 3 && i >= 0 && i%3 == 0
}
