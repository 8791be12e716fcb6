package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/llm/chat"
	"loki/internal/workflow/graph/gate"
	"loki/internal/workflow/run"
)

// Bounds of times that were missed.
const (
	maxMissed    = 100                // of which runs start
	maxMissedAge = 7 * 24 * time.Hour // likewise
	pollEvery    = time.Second        // how often changes of schedules are looked for
)

// Run starts runs when they are due, until ctx ends.
func (s *Service) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var swept time.Time
	wrong := ""
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		_, next, err := s.Tick(ctx)
		if err == nil {
			wrong = ""
		} else if ctx.Err() == nil && err.Error() != wrong { // once, and not every second
			wrong = err.Error()
			s.Log.WarnContext(ctx, "schedules were not looked at; will retry", "error", err, "hint", fault.HintOf(err))
		}
		now := s.Now()
		if now.Sub(swept).Abs() > time.Hour {
			swept = now
			if err := s.Store.DropEntries(ctx, run.StartKey(stateKey), now.Add(-keepOutcomes)); err != nil {
				s.Log.DebugContext(ctx, "the history of schedules was not made shorter", "error", err)
			}
		}
		wait := pollEvery
		if !next.IsZero() {
			wait = min(wait, max(next.Sub(now), time.Millisecond))
		}
		timer.Reset(wait)
	}
}

// Tick decides what is due now, and returns the outcomes and when the next time is, zero for none. An error of one schedule does not
// keep others from their runs.
func (s *Service) Tick(ctx context.Context) (outcomes []Outcome, next time.Time, err error) {
	all, err := s.List(ctx)
	if err != nil {
		return nil, next, err
	}
	var errs []error
	for _, k := range all {
		if state := k.State(); state == Invalid || state == Off {
			continue
		}
		list, at, err := s.advance(ctx, k)
		outcomes = append(outcomes, list...)
		errs = append(errs, err)
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return outcomes, next, errors.Join(errs...)
}

// advance decides what a schedule is due for.
func (s *Service) advance(ctx context.Context, k *Kept) (outcomes []Outcome, next time.Time, err error) {
	now := s.Now().UTC()
	if k.state.When != k.when() {
		k.catchUp(now)
		if err := s.put(ctx, k, k.write(k.entry.Run)); err != nil {
			return nil, now, ignoreConflict(err)
		}
	}
	due, next := k.due(now)
	if len(due) == 0 {
		return nil, next, nil
	}
	f := &firing{Service: s, k: k, now: now}
	err = f.decide(ctx, due)
	for _, o := range f.outcomes {
		s.Log.InfoContext(ctx, "a schedule was due", "schedule", o.Name, "due", o.Due, "run_id", o.Run, "reason", o.Reason, "late_seconds", o.LateSeconds, "error", o.Error)
	}
	if f.waits {
		next = now.Add(pollEvery)
	}
	return f.outcomes, next, ignoreConflict(err)
}

// ignoreConflict returns err, or nil if it says that another process was faster.
func ignoreConflict(err error) error {
	if _, faster := errors.AsType[*run.ConflictError](err); faster {
		return nil
	}
	return err
}

// put writes entries, of which one is the state.
func (s *Service) put(ctx context.Context, k *Kept, entries ...run.Entry) error {
	err := s.Store.Put(ctx, entries...)
	if err == nil {
		k.entry.Version++
	}
	return err
}

// dueTime is a time at which a schedule is due.
type dueTime struct {
	time.Time
	late   time.Duration // since it should have started, jitter included
	reason string        // for no run; empty if it may start one
	count  int           // of this one and those before it, if they are too many to list; else 0
}

// due returns the times after the cursor that have come, and when the next one comes, zero for never. Of very many, the oldest are one.
func (k *Kept) due(now time.Time) (list []dueTime, next time.Time) {
	older := 0
	for at := k.times.After(k.state.Cursor); !at.IsZero(); at = k.times.After(at) {
		start := at.Add(k.times.Delay(k.Name, at, k.jitter))
		if start.After(now) {
			next = start
			break
		}
		list = append(list, dueTime{Time: at, late: now.Sub(start)})
		if len(list) > 3*maxMissed {
			list = slices.Delete(list, 0, maxMissed)
			older += maxMissed
		}
	}
	if older > 0 {
		list[0].count = older + 1
	}
	return list, next
}

// judge sets the reasons of times that start nothing, whatever runs do.
func (k *Kept) judge(due []dueTime, paused bool) {
	candidates := 0 // that would start a run
	for i := len(due) - 1; i >= 0; i-- {
		d := &due[i]
		waited := d.Equal(k.state.Waiting)
		missed := candidates > 0 || d.late > k.grace && !waited
		switch {
		case paused:
			d.reason = ForPaused
		case d.count == 0 && k.blackedOut(d.Time):
			d.reason = ForBlackout
		case waited && candidates > 0 && k.Missed != MissedAll:
			d.reason = ForOverlap
		case d.count > 0, missed && k.Missed == MissedSkip, candidates > 0 && k.Missed == MissedOnce,
			missed && k.Missed == MissedAll && (candidates >= maxMissed || d.late > maxMissedAge):
			d.reason = ForMissed
		default:
			candidates++
		}
	}
}

// firing is one look at what a schedule is due for.
type firing struct {
	*Service
	k        *Kept
	now      time.Time
	outcomes []Outcome
	waits    bool // a time waits for the end of the last run

	pending []Outcome // of times that start nothing, not written yet
}

// decide decides about the times at which the schedule is due, in their order.
func (f *firing) decide(ctx context.Context, due []dueTime) error {
	k := f.k
	k.judge(due, k.State() == Paused)
	for i, d := range due {
		o := Outcome{Name: k.Name, Due: d.Time, At: f.now, Reason: d.reason, Count: d.count, LateSeconds: d.late.Round(time.Millisecond).Seconds()}
		if o.Reason == "" {
			catchingUp := k.Missed == MissedAll && (i < len(due)-1 || d.late > k.grace)
			var err error
			if o.Reason, err = f.reason(ctx, catchingUp); err != nil {
				return err
			}
			if f.waits {
				return f.flush(ctx, d.Time)
			}
		}
		var job run.Job
		if o.Reason == "" {
			var err error
			if job, err = f.Job(ctx, k.Fill(d.Time), k.Owner()); err != nil {
				if errors.Is(err, run.ErrPassing) || ctx.Err() != nil {
					return err
				}
				o.Reason, o.Error = ForInvalid, err.Error()
			}
		}
		k.state.Cursor = d.Time
		if k.state.Waiting.Equal(d.Time) {
			k.state.Waiting = time.Time{}
		}
		if o.Reason != "" {
			o.LateSeconds = 0
			f.pending = append(f.pending, o)
			continue
		}
		err := f.start(ctx, job, o)
		if _, busy := errors.AsType[*run.BusyError](err); busy {
			o.Reason, o.LateSeconds = ForOverlap, 0
			f.pending, err = append(f.pending, o), nil
		}
		if err != nil {
			return err
		}
	}
	return f.flush(ctx, k.state.Waiting)
}

// flush writes the outcomes of times that started nothing, and which time waits.
func (f *firing) flush(ctx context.Context, waiting time.Time) error {
	if len(f.pending) == 0 && waiting.Equal(f.k.state.Waiting) {
		return nil
	}
	f.k.state.Waiting = waiting
	err := f.put(ctx, f.k, f.claims(f.k.entry.Run)...)
	if f.known(err) { // by a schedule of this name that is gone: its keys stay
		err = f.put(ctx, f.k, f.k.write(f.k.entry.Run))
		f.pending = nil
	}
	if err == nil {
		f.outcomes, f.pending = append(f.outcomes, f.pending...), nil
	}
	return err
}

// known reports whether err says that the outcome at a time is on record already.
func (f *firing) known(err error) bool {
	c, ok := errors.AsType[*run.ConflictError](err)
	return ok && c.Key != stateKey+f.k.Name
}

// claims returns the entries to write: the state with a run, and outcomes.
func (f *firing) claims(id string) []run.Entry {
	entries := []run.Entry{f.k.write(id)}
	for _, o := range f.pending {
		entries = append(entries, o.entry())
	}
	return entries
}

// start starts the run of a time.
func (f *firing) start(ctx context.Context, job run.Job, o Outcome) error {
	o.Run = run.NewRun
	job.Info.Beginning = run.Beginning{
		Origin: &run.Origin{Kind: run.OfSchedule, Name: o.Name, Due: o.Due.UTC(), LateSeconds: o.LateSeconds},
		Claims: append(f.claims(run.NewRun), o.entry()),
	}
	id, err := f.Start(ctx, job)
	if f.known(err) {
		return f.put(ctx, f.k, f.k.write(f.k.entry.Run))
	}
	if _, spent := errors.AsType[*run.SpentError](err); spent {
		o.Run, o.Reason, o.LateSeconds = "", ForBudget, 0
		f.pending = append(f.pending, o)
		return nil
	}
	if err != nil {
		return err
	}
	f.k.entry.Version++
	f.k.entry.Run, o.Run = id, id
	f.outcomes, f.pending = append(append(f.outcomes, f.pending...), o), nil
	return nil
}

// reason returns why no run may start now, or has the time wait.
func (f *firing) reason(ctx context.Context, catchingUp bool) (reason string, err error) {
	k := f.k
	origin := (&run.Origin{Kind: run.OfSchedule, Name: k.Name}).String()
	if k.maxParked > 0 {
		parked := 0
		infos, err := f.Store.Runs(ctx, run.Query{Origin: origin, Unfinished: true, Limit: 1000})
		if err != nil {
			return "", err
		}
		for _, info := range infos {
			if asks, err := f.waitsForAnswer(ctx, info); err != nil {
				return "", err
			} else if asks {
				parked++
			}
		}
		if parked >= k.maxParked {
			return ForParked, nil
		}
	}
	if limit := k.BudgetMonth; limit != nil {
		used, err := f.monthUsage(ctx, origin)
		if err != nil {
			return "", err
		}
		if limit.USD > 0 && used.Cost >= limit.USD || limit.Tokens > 0 && used.Total() >= limit.Tokens {
			return ForBudget, nil
		}
	}
	if k.Overlap == OverlapAllow || k.entry.Run == "" {
		return "", nil
	}
	last, err := f.Store.Info(ctx, k.entry.Run)
	if fault.CodeOf(err) == fault.NotFound || err == nil && (last.Status.Over() || last.Gap != nil) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if asks, err := f.waitsForAnswer(ctx, last); asks || err != nil {
		return "", err
	}
	switch {
	case k.Overlap == OverlapCancel:
		if err := f.Cancel(ctx, last.ID); err != nil {
			if _, over := errors.AsType[*run.EndedError](err); !over {
				return ForOverlap, nil // it belongs to another process
			}
		}
		return "", nil
	case k.Overlap == OverlapQueue || catchingUp:
		f.waits = true
		return "", nil
	}
	if last.Spent() {
		return ForBudget, nil
	}
	return ForOverlap, nil
}

// waitsForAnswer reports whether a run waits for answers.
func (f *firing) waitsForAnswer(ctx context.Context, info run.Info) (bool, error) {
	if info.Status != run.Suspended {
		return false, nil
	}
	waiting, err := f.Store.Pending(ctx, info.ID)
	if fault.CodeOf(err) == fault.NotFound {
		err = nil
	}
	return len(waiting) > 0, err
}

// monthUsage returns what the runs of this month have used.
func (f *firing) monthUsage(ctx context.Context, origin string) (used chat.Usage, err error) {
	now := f.now.In(f.k.zone)
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, f.k.zone)
	infos, err := f.Store.Runs(ctx, run.Query{Origin: origin})
	for _, info := range infos {
		if !info.Started.Before(month) {
			used = used.Add(info.Usage)
		}
	}
	return used, err
}

var placeholder = text.Regexp(`\{\{\s*schedule\.(time|name)\s*\}\}`)

// Fill returns the schedule with its texts as they are at a time.
func (s *Schedule) Fill(due time.Time) *Schedule {
	fill := func(in string) string {
		return placeholder().ReplaceAllStringFunc(in, func(found string) string {
			if strings.Contains(found, "name") {
				return s.Name
			}
			return due.In(s.zone).Format(time.RFC3339)
		})
	}
	filled := *s
	filled.Key = fill(s.Key)
	filled.Prompt, filled.Variables = fill(s.Prompt), make(map[string]string, len(s.Variables))
	for name, text := range s.Variables {
		filled.Variables[name] = fill(text)
	}
	return &filled
}

// FireNow starts a run of a schedule at once, whatever its times and other runs, and returns its outcome.
func (s *Service) FireNow(ctx context.Context, name string) (Outcome, error) {
	k, err := s.Find(ctx, name)
	if err != nil {
		return Outcome{}, err
	}
	if state := k.State(); state == Invalid || state == Off {
		return Outcome{}, fault.New(fault.Usage, "schedule %s is %s", name, state).WithHint("loki --schedules shows the state of schedules")
	}
	now := s.Now().UTC()
	k.catchUp(now)
	job, err := s.Job(ctx, k.Fill(now), k.Owner())
	if err != nil {
		return Outcome{}, err
	}
	f := &firing{Service: s, k: k, now: now}
	err = f.start(ctx, job, Outcome{Name: name, Due: now.Truncate(time.Second), At: now, byHand: fmt.Sprintf("-%09d", now.Nanosecond())})
	if _, faster := errors.AsType[*run.ConflictError](err); faster || err == nil && len(f.outcomes) == 0 {
		return Outcome{}, fault.New(fault.Failure, "another process has just changed schedule %s", name).WithHint("try again: loki --schedule-now %s", name)
	}
	if err != nil {
		return Outcome{}, err
	}
	return f.outcomes[0], nil
}

// StartRules returns the rules by which a run of the schedule starts.
func (s *Schedule) StartRules() gate.Rules {
	r := s.Rules
	r.Overlap = cmp.Or(r.Overlap, OverlapSkip)
	return r
}

// Terms returns what a run of the schedule is begun with beside its agent.
func (s *Schedule) Terms() run.Terms { return run.Terms{Yes: s.Yes, Budget: s.Budget.bounds()} }
