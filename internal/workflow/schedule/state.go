package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"loki/internal/base/fault"
	"loki/internal/service/auth"
	"loki/internal/workflow/run"
)

// Service has the schedules of files, and the ones in the store. Its fields are not changed. Several processes may work with one
// store.
type Service struct {
	Store run.Store
	// Configured returns the schedules of files. Required.
	Configured func(ctx context.Context) ([]*Schedule, error)

	// Job returns the job of a run that a schedule starts, which belongs to owner; nil for none. Its error means that the schedule is not valid any more.
	Job func(ctx context.Context, s *Schedule, owner *auth.Owner) (run.Job, error)
	// Start starts a run in the background and returns its id, as [manager.Manager.Start] does. Cancel ends one.
	Start  func(ctx context.Context, job run.Job) (id string, err error)
	Cancel func(ctx context.Context, id string) error

	Log *slog.Logger
	Now func() time.Time
}

// state is what the store keeps of a schedule, as the document of an entry. The run of the entry is the last one that it started.
type state struct {
	Doc     *Doc        `json:"doc,omitempty"`    // of a schedule that the store keeps; nil for one of a file
	Owner   *auth.Owner `json:"owner,omitempty"`  // of that one's runs
	When    string      `json:"when,omitempty"`   // what decides when it is due, for which Cursor holds
	Cursor  time.Time   `json:"cursor,omitzero"`  // the last time that was considered
	Waiting time.Time   `json:"waiting,omitzero"` // a time that waits for the end of the last run
	Paused  *bool       `json:"paused,omitempty"` // replaces that of the document
	On      string      `json:"on,omitempty"`     // the Own of an agent's schedule that the user switched on
}

// stateKey begins the keys of states.
const stateKey = "schedule/"

// firingKey returns the key of the outcome at a time.
func firingKey(name string, due time.Time) string {
	return fmt.Sprintf("%s%010d", firingsKey(name), due.Unix())
}

// firingsKey begins the keys of outcomes of a schedule.
func firingsKey(name string) string { return run.StartKey(stateKey + name + "/") }

// Kept is a schedule with its state.
type Kept struct {
	*Schedule
	Err   error // why the document that the store keeps is not valid any more; nil if it is
	state state
	entry run.Entry // Version 0 for none
}

// The states of schedules.
const (
	On      = "on"
	Off     = "off" // an agent has it, and the user has not switched it on as it is now
	Paused  = "paused"
	Ended   = "ended" // it is never due again
	Invalid = "invalid"
)

// State returns how the schedule is.
func (k *Kept) State() string {
	paused := k.Paused
	if k.state.Paused != nil {
		paused = *k.state.Paused
	}
	switch {
	case k.Err != nil:
		return Invalid
	case k.Own != "" && k.Own != k.state.On:
		return Off
	case paused:
		return Paused
	case k.times.After(k.cursor(time.Time{})).IsZero():
		return Ended
	}
	return On
}

// Stored reports whether the store keeps the schedule, and not a file.
func (k *Kept) Stored() bool { return k.state.Doc != nil }

// Owner returns who owns its runs, nil for the user of the command line.
func (k *Kept) Owner() *auth.Owner { return k.state.Owner }

// cursor returns the last time that was considered: now if the schedule is new, or means other times than before.
func (k *Kept) cursor(now time.Time) time.Time {
	if k.state.When != k.when() && now.After(k.state.Cursor) {
		return now
	}
	return k.state.Cursor
}

// when returns what decides when a schedule is due.
func (s *Schedule) when() string {
	return strings.Join([]string{s.Cron, s.Every, s.At, s.zone.String(), s.Start, s.End}, "|")
}

// write returns the entry that replaces the stored state. id is that of the last run, [run.NewRun] of the one that is created with it.
func (k *Kept) write(id string) run.Entry {
	doc, _ := json.Marshal(k.state) // texts and times
	return run.Entry{Key: stateKey + k.Name, Version: k.entry.Version, Run: id, Doc: doc}
}

// List returns all schedules, by their names.
func (s *Service) List(ctx context.Context) ([]*Kept, error) {
	configured, err := s.Configured(ctx)
	if err != nil {
		return nil, err
	}
	entries, err := s.Store.Entries(ctx, stateKey, 0)
	if err != nil {
		return nil, err
	}
	all := make(map[string]*Kept)
	for _, e := range entries {
		k := &Kept{entry: e, Schedule: &Schedule{Name: strings.TrimPrefix(e.Key, stateKey), zone: time.Local}}
		k.Err = json.Unmarshal(e.Doc, &k.state)
		if d := k.state.Doc; d != nil && k.Err == nil {
			var checked *Schedule
			if checked, k.Err = Check(k.Name, *d); k.Err == nil {
				k.Schedule = checked
			} else {
				k.Doc = *d
			}
		}
		all[k.Name] = k
	}
	for _, c := range configured {
		k := all[c.Name]
		if k == nil {
			k = &Kept{}
			all[c.Name] = k
		}
		k.Schedule, k.Err, k.state.Doc = c, nil, nil
	}
	var list []*Kept
	for _, k := range all {
		if k.Stored() || k.Err != nil || slices.Contains(configured, k.Schedule) { // others were in a file
			list = append(list, k)
		}
	}
	slices.SortFunc(list, func(a, b *Kept) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// Find returns a schedule.
func (s *Service) Find(ctx context.Context, name string) (*Kept, error) {
	all, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(k *Kept) bool { return k.Name == name })
	if i < 0 {
		return nil, fault.New(fault.NotFound, "there is no schedule %q", name).ThatMisses("schedule").WithHint("loki --schedules lists the schedules")
	}
	return all[i], nil
}

// TakenError says that there is a schedule with the name.
type TakenError struct{ Name string }

func (e *TakenError) Error() string { return fmt.Sprintf("there is a schedule %q already", e.Name) }

// Add has the store keep a new schedule. If its name is taken the error is a [*TakenError].
func (s *Service) Add(ctx context.Context, c *Schedule, owner *auth.Owner) error {
	if _, err := s.Find(ctx, c.Name); fault.CodeOf(err) != fault.NotFound {
		if err == nil {
			err = &TakenError{c.Name}
		}
		return err
	}
	k := &Kept{Schedule: c, state: state{Doc: &c.Doc, Owner: owner, When: c.when(), Cursor: s.Now().UTC()}}
	if old, err := s.Store.Entries(ctx, stateKey+c.Name, 0); err != nil {
		return err
	} else if i := slices.IndexFunc(old, func(e run.Entry) bool { return e.Key == stateKey+c.Name }); i >= 0 { // of a file that had it
		k.entry = old[i]
	}
	err := s.Store.Put(ctx, k.write(""))
	if _, taken := errors.AsType[*run.ConflictError](err); taken {
		return &TakenError{c.Name}
	}
	return err
}

// Delete deletes a schedule that the store keeps. Its history stays.
func (s *Service) Delete(ctx context.Context, name string) error {
	return s.change(ctx, name, func(k *Kept) (run.Entry, error) {
		if !k.Stored() {
			return run.Entry{}, fault.New(fault.Usage, "schedule %s is in a file and cannot be deleted here", name).
				WithHint("take it out of the file, or pause it: loki --schedule-pause %s", name)
		}
		e := k.write("")
		e.Gone = true
		return e, nil
	})
}

// Pause has a schedule skip its times, or ends that.
func (s *Service) Pause(ctx context.Context, name string, paused bool) error {
	return s.change(ctx, name, func(k *Kept) (run.Entry, error) {
		k.catchUp(s.Now())
		k.state.Paused = &paused
		return k.write(k.entry.Run), nil
	})
}

// SwitchOn switches on a schedule of an agent's file, as it is now.
func (s *Service) SwitchOn(ctx context.Context, name string) error {
	return s.change(ctx, name, func(k *Kept) (run.Entry, error) {
		if k.Own == "" {
			return run.Entry{}, fault.New(fault.Usage, "schedule %s is not that of an agent's file, so it is on", name)
		}
		if k.state.On != k.Own {
			k.state.When, k.state.Cursor = k.when(), s.Now().UTC()
		}
		k.state.On = k.Own
		return k.write(k.entry.Run), nil
	})
}

// catchUp begins the state of a schedule that is new, or means other times than before.
func (k *Kept) catchUp(now time.Time) {
	if when := k.when(); k.state.When != when {
		k.state.Cursor, k.state.Waiting, k.state.When = k.cursor(now.UTC()), time.Time{}, when
	}
}

// change writes what fn makes of a schedule, again if another process was faster.
func (s *Service) change(ctx context.Context, name string, fn func(k *Kept) (run.Entry, error)) error {
	for {
		k, err := s.Find(ctx, name)
		if err != nil {
			return err
		}
		e, err := fn(k)
		if err != nil {
			return err
		}
		err = s.Store.Put(ctx, e)
		if _, faster := errors.AsType[*run.ConflictError](err); !faster {
			return err
		}
	}
}

// Outcome is what a time at which a schedule was due led to.
type Outcome struct {
	Name   string    `json:"-"`
	Due    time.Time `json:"-"`
	Run    string    `json:"-"`                // that it started; empty for none
	At     time.Time `json:"-"`                // when that was decided
	Reason string    `json:"reason,omitempty"` // for no run
	Count  int       `json:"count,omitempty"`  // so many times up to Due have this outcome; 0 for one
	Error  string    `json:"error,omitempty"`  // of an invalid schedule

	LateSeconds float64 `json:"late_seconds,omitempty"`

	byHand string // makes the key of one that a user started unlike all others; else empty
}

// The reasons for no run.
const (
	ForMissed   = "missed"
	ForOverlap  = "overlap"
	ForParked   = "parked"
	ForBudget   = "budget"
	ForBlackout = "blackout"
	ForPaused   = "paused"
	ForInvalid  = "invalid"
)

// entry returns the entry of an outcome.
func (o Outcome) entry() run.Entry {
	doc, _ := json.Marshal(o) // texts and numbers
	return run.Entry{Key: firingKey(o.Name, o.Due) + o.byHand, Run: o.Run, Doc: doc}
}

// keepOutcomes is how long the history is kept.
const keepOutcomes = 90 * 24 * time.Hour

// History returns the outcomes of a schedule, newest first, at most limit; 0 means all. The schedule may be gone, and one that
// never was has none.
func (s *Service) History(ctx context.Context, name string, limit int) ([]Outcome, error) {
	entries, err := s.Store.Entries(ctx, firingsKey(name), limit)
	if err != nil {
		return nil, err
	}
	list := make([]Outcome, len(entries))
	for i, e := range entries {
		o := &list[i]
		_ = json.Unmarshal(e.Doc, o) // what cannot be read is left out
		var seconds int64
		_, _ = fmt.Sscanf(strings.TrimPrefix(e.Key, firingsKey(name)), "%d", &seconds) // likewise
		o.Name, o.Due, o.Run, o.At = name, time.Unix(seconds, 0).UTC(), e.Run, e.At
	}
	return list, nil
}

// Time is a time at which a schedule is due.
type Time struct {
	Name    string
	Due     time.Time // with the time zone of the schedule
	Skipped string    // the reason, as far as it is known; empty for a run
}

// maxPlan is how many times a plan has at most.
const maxPlan = 10_000

// Plan returns the times from one to another at which schedules are due, in order, and the schedules. Schedules that are over or off have none.
func (s *Service) Plan(ctx context.Context, from, to time.Time) (times []Time, all []*Kept, err error) {
	if all, err = s.List(ctx); err != nil {
		return nil, nil, err
	}
	for _, k := range all {
		state := k.State()
		if state == Invalid || state == Off {
			continue
		}
		own := 0
		for due := k.times.After(from.Add(-1)); !due.IsZero() && due.Before(to) && own < maxPlan; due = k.times.After(due) {
			t := Time{Name: k.Name, Due: due.In(k.zone)}
			switch {
			case state == Paused:
				t.Skipped = ForPaused
			case k.blackedOut(due):
				t.Skipped = ForBlackout
			}
			times = append(times, t)
			own++
		}
	}
	slices.SortStableFunc(times, func(a, b Time) int { return a.Due.Compare(b.Due) })
	return times[:min(maxPlan, len(times))], all, nil
}

// Next returns the next time at which a schedule starts a run after one, jitter included; zero for none.
func (k *Kept) Next(now time.Time) time.Time {
	if state := k.State(); state == Invalid || state == Off || state == Paused {
		return time.Time{}
	}
	if k.state.Cursor.After(now) { // the clock was set back
		now = k.state.Cursor
	}
	due := k.times.After(now)
	for n := 0; !due.IsZero() && k.blackedOut(due) && n < maxPlan; n++ {
		due = k.times.After(due)
	}
	if due.IsZero() {
		return due
	}
	return due.Add(k.times.Delay(k.Name, due, k.jitter)).In(k.zone)
}

// Last returns the id of the last run, empty for none.
func (k *Kept) Last() string { return k.entry.Run }

// blackedOut reports whether nothing starts at a time.
func (s *Schedule) blackedOut(due time.Time) bool {
	for _, b := range s.blackout {
		if b.Covers(due, s.zone) {
			return true
		}
	}
	return false
}
