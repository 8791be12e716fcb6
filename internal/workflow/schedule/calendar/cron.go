package calendar

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/adhocore/gronx"

	"loki/internal/base/text"
)

// cron is an expression of five fields, or one of a few words.
type cron struct {
	minutes, hours [60]bool
	day            []string // the fields of gronx, of which only those of days are not "*"
	everyHour      bool     // the field of hours begins with "*": real hours count
}

// words are the expressions with a name.
var words = map[string]string{
	"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *",
}

// fields are the names of the fields, as messages have them.
var fields = [...]string{"minute", "hour", "day of month", "month", "day of week"}

var (
	plainPart   = text.Regexp(`^(\*|\?|\d{1,2}(-\d{1,2})?)(/\d{1,2})?$`)
	dayPart     = text.Regexp(`^(L|\d{1,2}W)$`)
	weekdayPart = text.Regexp(`^[0-7](L|#[1-5])$`)
)

// parseCron reads an expression.
func parseCron(expr string) (*cron, error) {
	expr = strings.TrimSpace(expr)
	if strings.HasPrefix(expr, "@") {
		full, ok := words[strings.ToLower(expr)]
		if !ok {
			return nil, fmt.Errorf("%q is not one of @hourly, @daily, @weekly, @monthly and @yearly", expr)
		}
		expr = full
	}
	written := strings.Fields(expr)
	if len(written) != len(fields) {
		return nil, fmt.Errorf("%d fields where five are expected: minute, hour, day of month, month, day of week", len(written))
	}
	segments, err := gronx.Segments(strings.Join(written, " ")) // with names as numbers, after a field of seconds
	if err != nil {
		return nil, err
	}
	for i, name := range fields {
		if err := checkField(segments[i+1], i); err != nil {
			return nil, fmt.Errorf("%s %q: %w", name, written[i], err)
		}
	}
	c := &cron{everyHour: strings.HasPrefix(written[1], "*"), day: []string{"*", "*", "*", segments[3], segments[4], segments[5]}}
	at := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for n := range 60 {
		c.minutes[n], _ = due(segments[1], 1, at.Add(time.Duration(n)*time.Minute)) // was checked, as the next one was
		if n < 24 {
			c.hours[n], _ = due(segments[2], 2, at.Add(time.Duration(n)*time.Hour))
		}
	}
	return c, nil
}

// due reports whether a field is due at a time.
func due(segment string, pos int, at time.Time) (bool, error) {
	c := gronx.SegmentChecker{}
	c.SetRef(at)
	return c.CheckDue(segment, pos)
}

// checkField returns what is wrong with a field.
func checkField(segment string, i int) error {
	for part := range strings.SplitSeq(segment, ",") {
		special := i == 2 && dayPart().MatchString(part) || i == 4 && weekdayPart().MatchString(part)
		if !special && !plainPart().MatchString(part) {
			return errors.New("not understood")
		}
		// Each value of the field is tried, because gronx finds some mistakes only where no value before them is due.
		at, step := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), []time.Duration{time.Minute, time.Hour, 24 * time.Hour, 28 * 24 * time.Hour, 24 * time.Hour}[i]
		for range 60 {
			if _, err := due(part, i+1, at); err != nil {
				return fmt.Errorf("numbers are from %s", []string{"0 to 59", "0 to 23", "1 to 31", "1 to 12", "0 to 7"}[i])
			}
			at = at.Add(step)
		}
	}
	return nil
}

// next returns the first wall time after one, or at it if incl is true, at which the expression is due; zero if there is none until last. Wall times are in UTC.
func (c *cron) next(after time.Time, incl bool, last time.Time) time.Time {
	w := after.Truncate(time.Minute)
	if w.Before(after) || !incl {
		w = w.Add(time.Minute)
	}
	g := gronx.New()
	for w.Before(last) {
		g.C.SetRef(w)
		if today, err := g.SegmentsDue(c.day); err == nil && today {
			hour, minute, _ := w.Clock()
			for ; hour < 24; hour++ {
				for ; c.hours[hour] && minute < 60; minute++ {
					at := time.Date(w.Year(), w.Month(), w.Day(), hour, minute, 0, 0, time.UTC)
					if !at.Before(last) {
						return time.Time{}
					}
					if c.minutes[minute] {
						return at
					}
				}
				minute = 0
			}
		}
		w = time.Date(w.Year(), w.Month(), w.Day()+1, 0, 0, 0, 0, time.UTC)
	}
	return time.Time{}
}
