package spending

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"loki/internal/llm/chat"
	"loki/internal/workflow/run"
)

// origin says whose calls are counted together, on a day.
type origin struct{ day, subject, key, agent, schedule string }

// used is what calls used.
type used struct {
	Calls int
	Usage chat.Usage
}

// row is a part of an entry of usage, which is that of a day and a subject.
type row struct {
	Key      string     `json:"key,omitempty"`
	Agent    string     `json:"agent,omitempty"`
	Schedule string     `json:"schedule,omitempty"`
	Calls    int        `json:"calls"`
	Usage    chat.Usage `json:"usage"`
}

const usageKey = "usage/"

// count counts a call that used something.
func (s *Service) count(i run.Info, u chat.Usage) {
	if u == (chat.Usage{}) {
		return
	}
	o := origin{day: s.now().UTC().Format(time.DateOnly), agent: i.Agent}
	if i.Owner != nil {
		o.subject, o.key = i.Owner.Subject, i.Owner.KeyID
	}
	if i.Origin != nil && i.Origin.Kind == run.OfSchedule {
		o.schedule = i.Origin.Name
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.unsaved[o]
	s.unsaved[o] = used{n.Calls + 1, n.Usage.Add(u)}
}

// flush writes what was used. What cannot be written is written by a later call.
func (s *Service) flush(ctx context.Context) (err error) {
	s.mu.Lock()
	unsaved := s.unsaved
	s.unsaved = make(map[origin]used)
	s.mu.Unlock()
	for o, n := range unsaved {
		if err == nil {
			err = change(ctx, s.store, usageKey+o.day+"/"+url.PathEscape(o.subject)+"/", func(rows *[]row, _ bool) (bool, error) {
				i := slices.IndexFunc(*rows, func(r row) bool { return r.Key == o.key && r.Agent == o.agent && r.Schedule == o.schedule })
				if i < 0 {
					i, *rows = len(*rows), append(*rows, row{Key: o.key, Agent: o.agent, Schedule: o.schedule})
				}
				r := &(*rows)[i]
				r.Calls, r.Usage = r.Calls+n.Calls, r.Usage.Add(n.Usage)
				return true, nil
			})
		}
		if err != nil {
			s.mu.Lock()
			more := s.unsaved[o]
			s.unsaved[o] = used{more.Calls + n.Calls, more.Usage.Add(n.Usage)}
			s.mu.Unlock()
		}
	}
	return err
}

// rows calls do with each part of the usage on record whose day begins with a text.
func (s *Service) rows(ctx context.Context, days string, do func(day, subject string, r row)) error {
	found, err := s.store.Entries(ctx, usageKey+days, 0)
	for _, e := range found {
		day, rest, _ := strings.Cut(strings.TrimPrefix(e.Key, usageKey), "/")
		subject, err := url.PathUnescape(strings.TrimSuffix(rest, "/"))
		var rows []row
		if err == nil {
			err = json.Unmarshal(e.Doc, &rows)
		}
		if err != nil {
			return fmt.Errorf("entry %s: %w", e.Key, err)
		}
		for _, r := range rows {
			do(day, subject, r)
		}
	}
	return err
}

// usageOf returns what is on record of an account.
func (s *Service) usageOf(ctx context.Context, a account) (sum chat.Usage, err error) {
	err = s.rows(ctx, a.period, func(_, subject string, r row) {
		if a.name == TotalDay || a.name == KeyDay && a.who == r.Key || a.name != KeyDay && a.who == subject {
			sum = sum.Add(r.Usage)
		}
	})
	return sum, err
}

// Sum is what was used together.
type Sum struct {
	Name  string // of the subject, key, agent or schedule; "" for calls without one
	Calls int
	Usage chat.Usage
}

// Usage adds up what was used on the days from one to another, both included, by "subject", "key", "agent" or "schedule". The result is in the order of names. A subject that is not nil leaves out the
// calls of others.
func (s *Service) Usage(ctx context.Context, by string, from, until time.Time, of *string) (list []Sum, err error) {
	if err := s.flush(ctx); err != nil {
		return nil, err
	}
	first, last := from.UTC().Format(time.DateOnly), until.UTC().Format(time.DateOnly)
	sums := make(map[string]Sum)
	err = s.rows(ctx, "", func(day, subject string, r row) {
		if day < first || day > last || of != nil && subject != *of {
			return
		}
		name := map[string]string{"subject": subject, "key": r.Key, "agent": r.Agent, "schedule": r.Schedule}[by]
		n := sums[name]
		sums[name] = Sum{name, n.Calls + r.Calls, n.Usage.Add(r.Usage)}
	})
	for _, n := range sums {
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b Sum) int { return cmp.Compare(a.Name, b.Name) })
	return list, err
}
