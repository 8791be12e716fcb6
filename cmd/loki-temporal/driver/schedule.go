package driver

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/workflow/run"
	"loki/internal/workflow/schedule"
	"loki/internal/workflow/schedule/calendar"
)

// schedulePrefix begins the ids of schedules on a server.
const schedulePrefix = "schedule/"

// What a server does about times at which it did not work.
const (
	catchUpSkip = 10 * time.Second // the least that servers take
	catchUpOnce = 365 * 24 * time.Hour
	catchUpAll  = 7 * 24 * time.Hour
)

// overlaps are the policies of servers by the words of schedules.
var overlaps = map[string]enums.ScheduleOverlapPolicy{
	schedule.OverlapSkip:   enums.SCHEDULE_OVERLAP_POLICY_SKIP,
	schedule.OverlapQueue:  enums.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE,
	schedule.OverlapCancel: enums.SCHEDULE_OVERLAP_POLICY_CANCEL_OTHER,
	schedule.OverlapAllow:  enums.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL,
}

var (
	special = text.Regexp(`[LW#]`)
	word    = text.Regexp(`(?i)[a-z]{3}`)
)

// Translate returns a schedule as Temporal has it. The error says what Temporal cannot do, and why.
func Translate(s *schedule.Schedule) (client.Schedule, error) {
	refuse := func(field, why string) (client.Schedule, error) {
		return client.Schedule{}, fault.New(fault.Usage, "schedule %s: %s: %s", s.Name, field, why).
			WithHint("change it in the configuration, or have loki itself start its runs: loki --serve")
	}
	one, other := s.Fill(time.Unix(0, 0)), s.Fill(time.Unix(1e9, 0))
	switch once := s.Overlap == schedule.OverlapSkip || s.Overlap == schedule.OverlapQueue; {
	case one.Prompt != other.Prompt || !maps.Equal(one.Variables, other.Variables):
		return refuse("prompt", "{{schedule.time}} cannot be filled in, because a server starts all runs with the same input")
	case s.Timezone == "" && (s.Every == "" || len(s.Blackout) > 0):
		return refuse("timezone", "it is needed, because the server may be in another one")
	case special().MatchString(withoutNames(s.Cron)):
		return refuse("cron", "a server does not know L, W and #")
	case s.Key != "" || s.Limit > 0 || s.Throttle != "" || s.Debounce != "" || s.Priority != "":
		return refuse("concurrency_key", "Temporal does not support concurrency_key, concurrency_limit, throttle, debounce and priority")
	case s.MaxParked != nil && *s.MaxParked > 0:
		return refuse("max_parked", "a server does not know which runs wait for an answer; with overlap: skip a run that waits keeps further ones from starting")
	case s.BudgetMonth != nil:
		return refuse("budget_month", "a server does not add up what runs used")
	case s.Budget != nil:
		return refuse("budget", "runs on Temporal have the budget of their graph: set settings.budget there")
	case s.Grace != "":
		return refuse("grace", "a server decides by missed alone")
	case s.Missed == schedule.MissedOnce && !once:
		return refuse("missed", "once needs overlap: skip or queue, because a server starts a run for each time that it missed; skip goes with each overlap")
	case s.Missed == schedule.MissedAll && s.Overlap != schedule.OverlapAllow:
		return refuse("missed", "all needs overlap: allow, because a server starts the runs of all times that it missed at once")
	}
	times, jitter, blackout := s.Calendar()
	every, start, end := times.Interval()
	if every%time.Second != 0 {
		return refuse("every", "whole seconds are needed")
	}
	t := client.Schedule{
		Spec:   &client.ScheduleSpec{TimeZoneName: s.Timezone, StartAt: start, Jitter: jitter},
		Policy: &client.SchedulePolicies{Overlap: overlaps[s.Overlap], CatchupWindow: map[string]time.Duration{schedule.MissedSkip: catchUpSkip, schedule.MissedOnce: catchUpOnce, schedule.MissedAll: catchUpAll}[s.Missed]},
		State:  &client.ScheduleState{Paused: s.Paused},
	}
	if !end.IsZero() {
		t.Spec.EndAt = end.Add(-time.Nanosecond) // which is inclusive
	}
	for _, b := range blackout {
		t.Spec.Skip = append(t.Spec.Skip, skips(b)...)
	}
	switch {
	case every > 0:
		of := client.ScheduleIntervalSpec{Every: every}
		if !start.IsZero() {
			of.Offset = time.Duration(start.UnixNano() % int64(every))
		}
		t.Spec.Intervals = []client.ScheduleIntervalSpec{of}
	case s.Cron != "":
		t.Spec.CronExpressions = crons(s.Cron)
	default:
		zone, err := time.LoadLocation(s.Timezone)
		if err != nil {
			return refuse("timezone", err.Error())
		}
		at := times.After(time.Time{}).In(zone)
		day := date(at)
		day.Hour, day.Minute, day.Second = only(at.Hour()), only(at.Minute()), only(at.Second())
		t.Spec.Calendars = []client.ScheduleCalendarSpec{day}
		t.State.LimitedActions, t.State.RemainingActions = true, 1
	}
	return t, nil
}

// withoutNames removes the names of months and days, which have letters that are special elsewhere, from an expression.
func withoutNames(cron string) string {
	if strings.HasPrefix(cron, "@") {
		return ""
	}
	return word().ReplaceAllString(cron, "0")
}

// crons returns an expression as servers understand it: if it names days of the month and of the week, either is enough here, and there an
// expression for each has to say so.
func crons(expr string) []string {
	fields := strings.Fields(strings.ReplaceAll(expr, "?", "*"))
	if len(fields) != 5 || strings.HasPrefix(fields[2], "*") || strings.HasPrefix(fields[4], "*") {
		return []string{strings.Join(fields, " ")}
	}
	days, weekdays := slices.Clone(fields), slices.Clone(fields)
	days[4], weekdays[2] = "*", "*"
	return []string{strings.Join(days, " "), strings.Join(weekdays, " ")}
}

func only(n int) []client.ScheduleRange { return between(n, n) }

func between(first, last int) []client.ScheduleRange {
	return []client.ScheduleRange{{Start: first, End: last, Step: 1}}
}

// date returns the whole day of a time, without its time of day.
func date(t time.Time) client.ScheduleCalendarSpec {
	return client.ScheduleCalendarSpec{Year: only(t.Year()), Month: only(int(t.Month())), DayOfMonth: only(t.Day())}
}

// skips returns a blackout as times to be skipped.
func skips(b calendar.Blackout) (all []client.ScheduleCalendarSpec) {
	const day = 24 * time.Hour
	switch {
	case b.From == b.To:
		return ofClock(days(b, 0), 0, day)
	case b.From < b.To:
		return ofClock(days(b, 0), b.From, b.To)
	}
	return append(ofClock(days(b, 0), b.From, day), ofClock(days(b, 1), 0, b.To)...)
}

// days returns the days on which a blackout begins, or those after them.
func days(b calendar.Blackout, later int) (all []client.ScheduleCalendarSpec) {
	if len(b.Dates) > 0 {
		for _, name := range b.Dates {
			at, err := time.Parse(time.DateOnly, name) // was checked
			if err == nil && (len(b.Days) == 0 || slices.Contains(b.Days, at.Weekday())) {
				all = append(all, date(at.AddDate(0, 0, later)))
			}
		}
		return all
	}
	var of client.ScheduleCalendarSpec
	for _, weekday := range b.Days {
		of.DayOfWeek = append(of.DayOfWeek, only((int(weekday)+later)%7)...)
	}
	return []client.ScheduleCalendarSpec{of}
}

// ofClock returns the minutes of days from a time of day, inclusive, to another: those of the first hour, of whole hours, and of the last hour.
func ofClock(days []client.ScheduleCalendarSpec, from, to time.Duration) (all []client.ScheduleCalendarSpec) {
	first, last := int(from/time.Minute), int(to/time.Minute)-1
	for _, day := range days {
		add := func(hours, minutes []client.ScheduleRange) {
			day.Hour, day.Minute, day.Second = hours, minutes, between(0, 59)
			all = append(all, day)
		}
		for at := first; at <= last; {
			hour, until := at/60, min(last, at/60*60+59)
			if whole := (last + 1) / 60; at%60 == 0 && whole > hour {
				add(between(hour, whole-1), between(0, 59))
				at = whole * 60
				continue
			}
			add(only(hour), between(at%60, until%60))
			at = until + 1
		}
	}
	return all
}

// PutSchedule has the server start runs, as job describes them, at the times of a schedule, in place of what it did before under this name.
func (r *Runs) PutSchedule(ctx context.Context, s *schedule.Schedule, job run.Job) error {
	t, err := Translate(s)
	if err != nil {
		return err
	}
	job.Info.Beginning = run.Beginning{Origin: &run.Origin{Kind: run.OfSchedule, Name: s.Name}}
	data, err := r.input(job, Terms{Yes: s.Yes})
	if err != nil {
		return err
	}
	t.Action = &client.ScheduleWorkflowAction{
		ID: s.Name, Workflow: WorkflowName, Args: []any{data}, TaskQueue: r.Queue, StaticSummary: "agent " + job.Info.Agent,
	}
	id := schedulePrefix + s.Name
	_, err = r.Client.ScheduleClient().Create(ctx, client.ScheduleOptions{
		ID: id, Spec: *t.Spec, Action: t.Action, Overlap: t.Policy.Overlap, CatchupWindow: t.Policy.CatchupWindow, Paused: t.State.Paused, RemainingActions: t.State.RemainingActions,
	})
	if errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		err = r.Client.ScheduleClient().GetHandle(ctx, id).Update(ctx, client.ScheduleUpdateOptions{
			DoUpdate: func(client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
				return &client.ScheduleUpdate{Schedule: &t}, nil
			},
		})
	}
	return explainSchedule(s.Name, err)
}

// Scheduled is a schedule on a server.
type Scheduled struct {
	Name   string    `json:"name"`
	Paused bool      `json:"paused,omitempty"`
	Next   time.Time `json:"next,omitzero"`
	Last   string    `json:"last,omitempty"` // id of the run that began last
}

// Schedules returns the schedules of Loki that the server has, by their names.
func (r *Runs) Schedules(ctx context.Context) ([]Scheduled, error) {
	list, err := r.Client.ScheduleClient().List(ctx, client.ScheduleListOptions{})
	all := []Scheduled{}
	for err == nil && list.HasNext() {
		var e *client.ScheduleListEntry
		if e, err = list.Next(); err != nil {
			break
		}
		name, ok := strings.CutPrefix(e.ID, schedulePrefix)
		if !ok || e.WorkflowType.Name != WorkflowName {
			continue
		}
		s := Scheduled{Name: name, Paused: e.Paused}
		if len(e.NextActionTimes) > 0 {
			s.Next = e.NextActionTimes[0]
		}
		if n := len(e.RecentActions); n > 0 && e.RecentActions[n-1].StartWorkflowResult != nil {
			s.Last = e.RecentActions[n-1].StartWorkflowResult.WorkflowID
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Scheduled) int { return strings.Compare(a.Name, b.Name) })
	if err != nil {
		return nil, fault.Wrap(fault.Failure, err, "listing schedules")
	}
	return all, nil
}

// PauseSchedule has a schedule start no runs, or start them again.
func (r *Runs) PauseSchedule(ctx context.Context, name string, paused bool) error {
	h := r.Client.ScheduleClient().GetHandle(ctx, schedulePrefix+name)
	if paused {
		return explainSchedule(name, h.Pause(ctx, client.SchedulePauseOptions{}))
	}
	return explainSchedule(name, h.Unpause(ctx, client.ScheduleUnpauseOptions{}))
}

// DeleteSchedule removes a schedule. Its runs stay.
func (r *Runs) DeleteSchedule(ctx context.Context, name string) error {
	return explainSchedule(name, r.Client.ScheduleClient().GetHandle(ctx, schedulePrefix+name).Delete(ctx))
}

func explainSchedule(name string, err error) error {
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return fault.Wrap(fault.NotFound, err, "the server has no schedule %s", name).WithHint("see those that it has: loki-temporal --schedules")
	}
	if err != nil && fault.CodeOf(err) == fault.Failure {
		return fault.Wrap(fault.Failure, err, "schedule %s", name)
	}
	return err
}

// input returns what the workflow of a new run of a graph agent begins with.
func (r *Runs) input(job run.Job, t Terms) (json.RawMessage, error) {
	if job.Info.Kind != run.GraphRun {
		return nil, fault.New(fault.Usage, "agent %s is not a graph: only graph agents run on Temporal", job.Info.Agent).
			WithHint("run it with: loki -a %s", job.Info.Agent)
	}
	if err := job.CheckStart(); err != nil {
		return nil, err
	}
	return r.seal(Start{Info: job.Info, Terms: t, Heartbeat: r.Heartbeat, Point: Point{Last: job.Start}})
}

// seal returns the input of a workflow.
func (r *Runs) seal(s Start) (json.RawMessage, error) {
	data, err := json.Marshal(s)
	if err == nil {
		data = []byte(r.App.Seal(string(data)))
		err = checkSize("what the run begins with", len(data))
	}
	return data, err
}
