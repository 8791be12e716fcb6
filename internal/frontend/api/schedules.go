package api

import (
	"time"

	"loki/internal/workflow/schedule"
)

// Schedule is a schedule in a list.
type Schedule struct {
	Name  string        `json:"name"`
	Agent string        `json:"agent"`
	When  string        `json:"when" doc:"cron, every or at, as it was written"`
	State string        `json:"state" enum:"on,off,paused,ended,invalid" doc:"off: an agent has it, and it was not switched on as it is now. ended: it is never due again. invalid: see error"`
	Next  *time.Time    `json:"next,omitempty" doc:"when it starts the next run; absent if it does not"`
	Last  *ScheduleTime `json:"last,omitempty" doc:"outcome of the last due time; absent if it was not due yet"`
	Error string        `json:"error,omitempty"`

	Stored bool `json:"stored,omitempty" doc:"it is in no file, and can be deleted"`
}

// ScheduleDetail is a schedule as it was written, with its state.
type ScheduleDetail struct {
	Schedule
	Definition schedule.Doc `json:"definition"`
}

// ScheduleRequest is a new schedule.
type ScheduleRequest struct {
	Name string `json:"name" minLength:"1" maxLength:"64" doc:"letters, digits, dots, dashes and underscores"`
	schedule.Doc
}

// ScheduleTime is what a time at which a schedule was due led to.
type ScheduleTime struct {
	Due         time.Time `json:"due"`
	Outcome     string    `json:"outcome" enum:"fired,skipped"`
	RunID       string    `json:"run_id,omitempty"`
	Reason      string    `json:"reason,omitempty" enum:"missed,overlap,parked,budget,blackout,paused,invalid" doc:"for no run"`
	Count       int       `json:"count,omitempty" doc:"so many times up to this one were skipped; absent for one"`
	LateSeconds float64   `json:"late_seconds,omitempty" doc:"how long after the time the run started"`
	Error       string    `json:"error,omitempty" doc:"of a schedule that is not valid"`
}

// PlannedTime is a time at which a schedule will be due, or was.
type PlannedTime struct {
	Name    string    `json:"name"`
	Due     time.Time `json:"due"`
	Local   string    `json:"local" doc:"the time in the zone of the schedule"`
	Skipped string    `json:"skipped,omitempty" doc:"why nothing starts, as far as it is known: paused or blackout"`
}

// SchedulePlan is what schedules do in a time.
type SchedulePlan struct {
	Schedules []Schedule    `json:"schedules" nullable:"false"`
	Plan      []PlannedTime `json:"plan" nullable:"false" doc:"in order, 10,000 at most"`
}

// FiredRun is a run that a schedule started.
type FiredRun struct {
	Name   string    `json:"name"`
	Due    time.Time `json:"due"`
	RunID  string    `json:"run_id"`
	Status string    `json:"status"`
}

// SkippedTime is a time that started no run.
type SkippedTime struct {
	Name   string    `json:"name"`
	Due    time.Time `json:"due"`
	Reason string    `json:"reason"`
}

// ResumedRun is a run that was resumed.
type ResumedRun struct {
	RunID  string `json:"run_id"`
	Status string `json:"status"`
}

// DueWork is what was due.
type DueWork struct {
	Fired   []FiredRun    `json:"fired" nullable:"false"`
	Skipped []SkippedTime `json:"skipped" nullable:"false"`
	Resumed []ResumedRun  `json:"resumed" nullable:"false"`
}
