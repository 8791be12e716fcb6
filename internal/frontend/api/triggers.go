package api

import "time"

// Delivered is what a delivery to a trigger has led to.
type Delivered struct {
	RunID     string `json:"run_id,omitempty" doc:"of the run that it started"`
	Duplicate bool   `json:"duplicate,omitempty" doc:"the run was started before, by the same delivery"`
	Ignored   bool   `json:"ignored,omitempty" doc:"the trigger does not want it"`
}

// DeadLetter is a delivery that started no run.
type DeadLetter struct {
	ID       string    `json:"id"`
	Trigger  string    `json:"trigger"`
	Delivery string    `json:"delivery" doc:"id of the delivery"`
	At       time.Time `json:"at"`
	Reason   string    `json:"reason"`
}
