// Package plan holds the plans that models propose in plan mode, and the tool that proposes them.
//
// A plan has a title, a summary and steps. Users read and change it as Markdown, see [Plan.Markdown] and [Parse].
// A [Decision] says what the user answered.
package plan

import (
	"errors"
	"fmt"
	"strings"

	"loki/internal/llm/chat"
	"loki/internal/llm/event"
)

// Plan is what a model wants to do.
type Plan struct {
	Title   string   `json:"title"`
	Summary string   `json:"summary"`
	Steps   []Step   `json:"steps"`
	Open    []string `json:"open,omitempty"` // questions that are not answered yet
}

// Step is a part of a [Plan].
type Step struct {
	Text     string   `json:"text"`
	Files    []string `json:"files,omitempty"`    // that it changes
	Commands []string `json:"commands,omitempty"` // that it runs
}

// Bounds of a plan.
const (
	maxSteps = 50
	maxBytes = 64 << 10 // of its Markdown
)

// clean returns the plan with each text on one line, but for the summary.
func (p Plan) clean() Plan {
	p.Title = line(p.Title)
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(p.Summary), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t")
	}
	p.Summary = strings.TrimSpace(strings.Join(lines, "\n"))
	steps := make([]Step, len(p.Steps))
	for i, s := range p.Steps {
		steps[i] = Step{line(s.Text), texts(s.Files), texts(s.Commands)}
	}
	p.Steps, p.Open = steps, texts(p.Open)
	return p
}

func line(text string) string { return strings.Join(strings.Fields(text), " ") }

// texts returns the texts that are not blank, each on one line.
func texts(list []string) (kept []string) {
	for _, text := range list {
		if text = line(text); text != "" {
			kept = append(kept, text)
		}
	}
	return kept
}

// check returns what is wrong with a plan.
func (p Plan) check() error {
	switch {
	case p.Title == "":
		return errors.New("the plan has no title")
	case len(p.Steps) == 0:
		return errors.New("the plan has no steps")
	case len(p.Steps) > maxSteps:
		return fmt.Errorf("the plan has %d steps; %d are possible", len(p.Steps), maxSteps)
	}
	for i, s := range p.Steps {
		if s.Text == "" {
			return fmt.Errorf("step %d has no text", i+1)
		}
	}
	if n := len(p.Markdown()); n > maxBytes {
		return fmt.Errorf("the plan has %d bytes; %d are possible", n, maxBytes)
	}
	return nil
}

// Event returns the event about a plan in a state of [event.Plan].
func (p Plan) Event(state string) event.Plan {
	e := event.Plan{State: state, Title: p.Title, Summary: p.Summary, Open: p.Open}
	for _, s := range p.Steps {
		e.Steps = append(e.Steps, event.PlanStep(s))
	}
	return e
}

// Decision is what the user has decided about a plan.
type Decision struct {
	Plan     Plan      `json:"plan"` // perhaps changed by the user
	Accepted bool      `json:"accepted"`
	Mode     chat.Mode `json:"mode,omitempty"` // in which the work continues, if it is accepted
	Edited   bool      `json:"edited,omitempty"`
	Reason   string    `json:"reason,omitempty"` // why it is not accepted
}
