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

// Alert is an alert that was sent, or is about to be.
type Alert struct {
	ID      string    `json:"id"`
	At      time.Time `json:"at"`
	Rule    string    `json:"rule" doc:"name of the alert in the configuration"`
	Kind    string    `json:"kind"`
	Agent   string    `json:"agent,omitempty"`
	RunID   string    `json:"run_id,omitempty"`
	Thing   string    `json:"thing,omitempty" doc:"what it is about beside runs"`
	Reason  string    `json:"reason"`
	Count   int       `json:"count" doc:"how often it happened since the last alert"`
	Notices []Notice  `json:"notices,omitempty" doc:"its deliveries"`
}
