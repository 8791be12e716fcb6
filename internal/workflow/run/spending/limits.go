// Package spending counts what the runs of the servers of a store use, by days, and bounds what they may use in a day or a month.
//
// A limit has a counter for each of those that it bounds and each period: an entry of the store with what is used, and the calls at work with
// what they have reserved. So all servers of a store share it, as the calls of a run share its budget. Days and months are those of UTC.
package spending

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"loki/internal/base/value/yamldoc"
	"loki/internal/service/auth"
	"loki/internal/workflow/graph"
)

// The names of limits.
const (
	SubjectDay   = "subject_day"
	KeyDay       = "key_day"
	SubjectMonth = "subject_month"
	TotalDay     = "total_day"
)

// names are those of all limits, in the order in which calls reserve.
var names = []string{SubjectDay, KeyDay, SubjectMonth, TotalDay}

// Limits are limits by name. One that is not set bounds nothing.
type Limits map[string]graph.Budget

// Read reads the value of spending; the result is nil if m is. Mistakes are reported to the document.
func Read(m *yamldoc.Map) Limits {
	if m == nil {
		return nil
	}
	l := make(Limits)
	m.Only(names...)
	for _, name := range names {
		section := m.Map(name)
		if section == nil {
			continue
		}
		var b graph.Budget
		if section.Float("usd", &b.USD) && b.USD <= 0 {
			section.Get("usd").Errorf("an amount above 0 is expected")
		}
		section.Int("tokens", &b.Tokens, 1, 1e15)
		if !section.Has("usd") && !section.Has("tokens") {
			m.Get(name).Errorf("a limit has usd, tokens or both")
		}
		section.Done()
		l[name] = b
	}
	m.Done()
	return l
}

// account is whom a limit bounds in a period.
type account struct {
	name   string // of the limit
	limit  graph.Budget
	who    string // subject or id of the key; "" for all
	period string // such as 2026-12-01 or 2026-12
	until  time.Time
}

// key returns the key of the counter.
func (a account) key() string { return counterKey(a.name, a.period) + url.PathEscape(a.who) + "/" }

func counterKey(name, period string) string { return "spending/" + name + "/" + period + "/" }

// thing says what the limit is that of, for people.
func (a account) thing() string {
	kind, _, _ := strings.Cut(a.name, "_")
	if a.who == "" {
		return "all runs"
	}
	return kind + " " + a.who
}

// span says for how long the limit is.
func (a account) span() string {
	if a.name == SubjectMonth {
		return "month"
	}
	return "day"
}

// String returns the limit, for people.
func (a account) String() string {
	var amounts []string
	if a.limit.USD > 0 {
		amounts = append(amounts, fmt.Sprintf("%g US dollars", a.limit.USD))
	}
	if a.limit.Tokens > 0 {
		amounts = append(amounts, fmt.Sprintf("%d tokens", a.limit.Tokens))
	}
	return fmt.Sprintf("%s a %s for %s", strings.Join(amounts, " or "), a.span(), a.thing())
}

// account returns whom a limit bounds now.
func (l Limits) account(name, who string, now time.Time) account {
	now = now.UTC()
	a := account{name: name, limit: l[name], who: who, period: now.Format(time.DateOnly)}
	a.until = time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, time.UTC)
	if name == SubjectMonth {
		a.period, a.until = now.Format("2006-01"), time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC)
	}
	return a
}

// of returns whom the limits bound now by what an owner uses; nil is no owner.
func (l Limits) of(owner *auth.Owner, now time.Time) (list []account) {
	for _, name := range names {
		who := ""
		switch {
		case l[name] == graph.Budget{} || owner == nil && name != TotalDay:
			continue
		case name == KeyDay:
			who = owner.KeyID
		case name != TotalDay:
			who = owner.Subject
		}
		if who != "" || name == TotalDay {
			list = append(list, l.account(name, who, now))
		}
	}
	return slices.Clip(list)
}
