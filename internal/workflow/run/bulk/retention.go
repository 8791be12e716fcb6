package bulk

import (
	"context"
	"errors"
	"time"

	"loki/internal/base/value/yamldoc"
	"loki/internal/workflow/run"
)

// Never is the age of a [Retention] that no run has.
const Never = time.Duration(1<<63 - 1)

// Retention says which runs that have ended are forgotten: those that are older than their status allows, but not the newest ones.
type Retention struct {
	Done   time.Duration // age from which done runs are forgotten; [Never] keeps all
	Failed time.Duration // that of failed and canceled ones
	Keep   int           // how many of the newest runs stay, whatever their age
}

// ReadRetention reads the value of retention; the result is nil if m is. Mistakes are reported to the document.
func ReadRetention(m *yamldoc.Map) *Retention {
	if m == nil {
		return nil
	}
	r := &Retention{Done: Never, Failed: Never}
	m.Span("done", &r.Done)
	m.Span("failed", &r.Failed)
	m.Int("keep", &r.Keep, 0, 1_000_000_000)
	m.Done()
	return r
}

// Pick returns the ids of the runs that are forgotten now, of all runs, newest first. It leaves out those for which the filter does
// not hold. waiting is how many more it would be without those that work or wait, which stay.
func (r Retention) Pick(all []run.Info, of *Filter) (ids []string, waiting int, err error) {
	for i, info := range all {
		age := r.Failed
		if info.Status == run.Done {
			age = r.Done
		}
		fits, err := of.Holds(info)
		switch {
		case err != nil:
			return nil, 0, err
		case !fits || i < r.Keep || age == Never || of.now.Sub(info.Updated) < age:
		case info.Active || !info.Status.Over():
			waiting++
		default:
			ids = append(ids, info.ID)
		}
	}
	return ids, waiting, nil
}

// retentionKey is the entry that says when a process has last applied the retention of a store.
const retentionKey = "retention/applied"

// Apply forgets what is outdated in a store and returns the ids, at most once in a time for all processes.
func (r Retention) Apply(ctx context.Context, store run.Store, now time.Time, every time.Duration) ([]string, error) {
	last, err := store.Entries(ctx, retentionKey, 1)
	if err != nil || len(last) > 0 && now.Sub(last[0].At) < every && !last[0].At.After(now) {
		return nil, err
	}
	mark := run.Entry{Key: retentionKey}
	if len(last) > 0 {
		mark.Version = last[0].Version
	}
	if err := store.Put(ctx, mark); err != nil {
		if _, other := errors.AsType[*run.ConflictError](err); other { // which does it now
			return nil, nil
		}
		return nil, err
	}
	all, err := store.Runs(ctx, run.Query{})
	if err != nil {
		return nil, err
	}
	ids, _, err := r.Pick(all, &Filter{now: now})
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return store.Delete(ctx, ids...)
}
