// Package bulk selects runs by a condition, and works on many of them.
package bulk

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/workflow/graph/expr"
	"loki/internal/workflow/graph/gate"
	"loki/internal/workflow/run"
)

// Filter is a condition about a run, in the language of package expr. Its keys are those of fields.
type Filter struct {
	condition *expr.Expr // nil for all runs
	now       time.Time
}

// fields are what a condition may name. A text that a run does not have is empty.
var fields = map[string]func(i run.Info, now time.Time) value.Value{
	"id":       func(i run.Info, _ time.Time) value.Value { return value.Of(i.ID) },
	"agent":    func(i run.Info, _ time.Time) value.Value { return value.Of(i.Agent) },
	"kind":     func(i run.Info, _ time.Time) value.Value { return value.Of(cmp.Or(string(i.Kind), "graph")) },
	"status":   func(i run.Info, _ time.Time) value.Value { return value.Of(i.State()) },
	"code":     func(i run.Info, _ time.Time) value.Value { return value.Of(string(i.Code)) },
	"age":      func(i run.Info, now time.Time) value.Value { return value.Of(now.Sub(i.Updated).Seconds()) },
	"cost":     func(i run.Info, _ time.Time) value.Value { return value.Of(i.Usage.Cost) },
	"tokens":   func(i run.Info, _ time.Time) value.Value { return value.Of(i.Usage.Total()) },
	"failures": func(i run.Info, _ time.Time) value.Value { return value.Of(i.Failures) },
	"model":    func(i run.Info, _ time.Time) value.Value { return value.Of(i.Model) },
	"subject": func(i run.Info, _ time.Time) value.Value {
		if i.Owner == nil {
			return value.Of("")
		}
		return value.Of(i.Owner.Subject)
	},
	"api_key": func(i run.Info, _ time.Time) value.Value {
		if i.Owner == nil {
			return value.Of("")
		}
		return value.Of(i.Owner.KeyID)
	},
	"key":      func(i run.Info, _ time.Time) value.Value { return value.Of(i.Key()) },
	"priority": func(i run.Info, _ time.Time) value.Value { return value.Of(i.Precedence()) },
	"schedule": func(i run.Info, _ time.Time) value.Value { return value.Of(originOf(i, run.OfSchedule)) },
	"trigger":  func(i run.Info, _ time.Time) value.Value { return value.Of(originOf(i, run.OfTrigger)) },
}

// originOf returns the name of what started a run, "" if that is of another kind.
func originOf(i run.Info, kind string) string {
	if i.Origin == nil || i.Origin.Kind != kind {
		return ""
	}
	return i.Origin.Name
}

// statuses are what the status of a run in a condition can be.
var statuses = []string{"running", "suspended", "canceled", "failed", "done", "interrupted", "unrecorded", "damaged"}

// types returns what is known of a field.
func types(name string) (expr.Type, bool) {
	field := fields[name]
	if field == nil {
		return expr.Type{}, false
	}
	t := expr.Type{Kinds: expr.Text}
	switch v := field(run.Info{}, time.Time{}); {
	case v.Kind() != value.Of("").Kind():
		t.Kinds = expr.Number
	case name == "status":
		for _, s := range statuses {
			t.Enum = append(t.Enum, value.Of(s))
		}
	case name == "priority":
		t.Enum = []value.Value{value.Of(gate.High), value.Of(gate.Normal), value.Of(gate.Low)}
	case name == "kind":
		t.Enum = []value.Value{value.Of("graph"), value.Of(string(run.AgentRun)), value.Of(string(run.ChatRun))}
	}
	return t, true
}

// ParseFilter reads a condition, which may be empty: then it holds for all runs. now is the time by which ages are measured.
func ParseFilter(source string, now time.Time) (*Filter, error) {
	f := &Filter{now: now}
	if source == "" {
		return f, nil
	}
	e, err := expr.Parse(source)
	if err != nil {
		return nil, fault.New(fault.Usage, "the condition %s: %v", source, err).WithHint("%s", hint())
	}
	if problems := e.Check(types, expr.Bool); len(problems) > 0 {
		p := problems[0]
		msg := p.Msg
		if p.Undefined != "" {
			msg = "runs have no " + p.Undefined
		}
		return nil, fault.New(fault.Usage, "the condition %s: %s (at character %d)", source, msg, p.Offset+1).WithHint("%s", hint())
	}
	f.condition = e
	return f, nil
}

func hint() string {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	return `a condition such as 'status == "failed" && age > 3600' about ` + strings.Join(names, ", ")
}

// lookup finds the fields of a run.
type lookup struct {
	run.Info
	now time.Time
}

// Get implements [expr.Lookup].
func (l lookup) Get(name string) (value.Value, bool) {
	if field := fields[name]; field != nil {
		return field(l.Info, l.now), true
	}
	return value.Value{}, false
}

// Holds reports whether the condition holds for a run.
func (f *Filter) Holds(i run.Info) (bool, error) {
	if f.condition == nil {
		return true, nil
	}
	ok, err := f.condition.Bool(lookup{i, f.now})
	if err != nil {
		return false, fault.Wrap(fault.Usage, err, "run %s", i.ID)
	}
	return ok, nil
}

// Select returns the runs of a query for which the condition and fits hold, newest first, and at most limit of them; 0 means all. A
// nil fits holds for all.
func (f *Filter) Select(ctx context.Context, store run.Store, q run.Query, limit int, fits func(run.Info) bool) ([]run.Info, error) {
	infos, err := store.Runs(ctx, q)
	if err != nil {
		return nil, err
	}
	var found []run.Info
	for _, i := range infos {
		ok, err := f.Holds(i)
		if err != nil {
			return nil, err
		}
		if ok && (fits == nil || fits(i)) {
			found = append(found, i)
		}
		if limit > 0 && len(found) == limit {
			break
		}
	}
	return found, ctx.Err()
}

// Result is how the work on a run ended.
type Result struct {
	ID     string
	Status string // of the run
	Err    error  // nil if it worked
}

// Each calls do for each run, so many at once, and report with each result, one at a time. It returns how many failed. Runs that were not
// begun when ctx ends are left out.
func Each(ctx context.Context, infos []run.Info, atOnce int, do func(ctx context.Context, i run.Info) (status string, err error), report func(Result) error) (failed int, err error) {
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	var working sync.WaitGroup
	var mu sync.Mutex // guards what is returned
	places := make(chan struct{}, max(1, atOnce))
	for _, i := range infos {
		select {
		case places <- struct{}{}:
		case <-stop.Done():
		}
		if stop.Err() != nil {
			break
		}
		working.Go(func() { // is waited for below
			defer func() { <-places }()
			status, doErr := do(ctx, i)
			mu.Lock()
			defer mu.Unlock()
			if doErr != nil {
				failed++
			}
			if reportErr := report(Result{i.ID, status, doErr}); reportErr != nil {
				err = errors.Join(err, reportErr)
				cancel()
			}
		})
	}
	working.Wait()
	return failed, cmp.Or(err, ctx.Err())
}
