// Package doctor examines an installation: the configuration, and whether what it names works. It changes nothing.
//
// # Terms
//
// A check is one line of the report. A probe does the work of one check or more; all probes work at the same time, and each has a limit
// of its own.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"loki/internal/app"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/llm/provider/local"
)

// Status is the result of a check.
type Status string

// The results, the best first.
const (
	OK   Status = "ok"
	Skip Status = "skip" // there is nothing to check, or it cannot be checked
	Warn Status = "warn" // it works with limits
	Fail Status = "fail"
)

// Check is one line of a report.
type Check struct {
	ID     string `json:"id"`
	Status Status `json:"status"`
	Detail string `json:"detail"`
	Hint   string `json:"hint"`
	MS     int64  `json:"ms"`
}

// Report is the result of all checks.
type Report struct {
	OK      bool    `json:"ok"` // no check failed
	Version string  `json:"version"`
	Checks  []Check `json:"checks"`
}

// Options configure [Run].
type Options struct {
	Environ []string // of the process, as from os.Environ
	Ask     bool     // ask the default model a short question, which uses tokens
	// Editor returns the words of the command that opens the user's editor.
	Editor func(*app.App) ([]string, error)
}

// The limits of probes. Servers get less time than the whole, since they must also end within it.
const (
	listLimit  = 5 * time.Second
	startLimit = 8 * time.Second
	localLimit = 10 * time.Second
)

// grace is how long a probe may take to notice that its time is over.
const grace = time.Second

// probe is work that has a limit.
type probe struct {
	id    string
	limit time.Duration
	late  Status // of the check if the limit passes; "" is Fail
	do    func(ctx context.Context) []Check
}

// Run examines the installation that the environment names.
func Run(ctx context.Context, o Options) Report {
	began := time.Now()
	a, err := app.New(app.Options{Environ: o.Environ})
	config := Check{ID: "config"}
	if err != nil {
		config.set(Fail, err.Error(), fault.HintOf(err))
		if a, _ = app.New(app.Options{Environ: o.Environ, Unconfigured: true}); a == nil {
			return report([]Check{config})
		}
	} else if len(a.Config.Clients) == 0 {
		servers := slices.DeleteFunc(local.Find(ctx, nil, local.DefaultProbes(a.Env.Get("OLLAMA_HOST"))), func(s local.Server) bool { return len(s.Models) == 0 })
		if served, err := app.New(app.Options{Environ: o.Environ, Servers: servers}); err == nil && len(servers) > 0 {
			a = served
		}
	}
	a.Look()
	e := exam{app: a, opts: o, broken: config.Status == Fail}
	if !e.broken {
		e.config(&config)
	}
	config.MS = time.Since(began).Milliseconds()
	checks := append([]Check{config}, e.run(ctx, e.probes())...)
	if err := a.Close(); err != nil {
		checks = append(checks, Check{ID: "end", Status: Warn, Detail: err.Error()})
	}
	for i := range checks {
		checks[i].Detail, checks[i].Hint = a.Hide(checks[i].Detail), a.Hide(checks[i].Hint)
	}
	return report(checks)
}

func report(checks []Check) Report {
	return Report{OK: !slices.ContainsFunc(checks, func(c Check) bool { return c.Status == Fail }), Version: app.Version, Checks: checks}
}

// exam is one examination.
type exam struct {
	app    *app.App
	opts   Options
	broken bool // the configuration cannot be read, and the app has none
}

// run does the probes at the same time and returns their checks in the order of the probes.
func (e exam) run(ctx context.Context, probes []probe) (all []Check) {
	results := make([]chan []Check, len(probes))
	for i, p := range probes {
		results[i] = make(chan []Check, 1)
		go func() { results[i] <- p.run(ctx) }() // ends with its limit
	}
	for _, r := range results {
		all = append(all, <-r...)
	}
	return all
}

// run does a probe within its limit. A probe that does not notice its end, as on a file system that hangs, is left alone.
func (p probe) run(ctx context.Context) []Check {
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	done := make(chan []Check, 1)
	go func() { done <- p.do(limited) }()
	var checks []Check
	select {
	case checks = <-done:
	case <-limited.Done():
		select {
		case checks = <-done:
		case <-time.After(grace):
		}
	}
	if limited.Err() != nil && (checks == nil || checks[0].Status == Fail) {
		c := Check{ID: p.id}
		c.set(cmp.Or(p.late, Fail), fmt.Sprintf("no result within %s", p.limit), "")
		if ctx.Err() != nil {
			c.set(Skip, "interrupted", "")
		}
		checks = []Check{c}
	}
	for i := range checks {
		checks[i].MS = cmp.Or(checks[i].MS, time.Since(began).Milliseconds())
	}
	return checks
}

// set sets the result of a check.
func (c *Check) set(s Status, detail, hint string) { c.Status, c.Detail, c.Hint = s, detail, hint }

// report makes the check a warning about problems, if there are any.
func (c *Check) report(problems []string, hint string) {
	if len(problems) > 0 {
		c.set(Warn, strings.Join(problems, "\n"), hint)
	}
}

// of returns a probe with one check.
func of(id string, limit time.Duration, do func(ctx context.Context, c *Check)) probe {
	return probe{id: id, limit: limit, do: func(ctx context.Context) []Check {
		c := Check{ID: id, Status: OK}
		do(ctx, &c)
		return []Check{c}
	}}
}

// failed sets the result for an error, and reports whether there is one.
func (c *Check) failed(err error) bool {
	if err != nil {
		c.set(Fail, err.Error(), fault.HintOf(err))
	}
	return err != nil
}

// Text returns the report for people: a line for each check with the rest of its detail and its hint below.
func (r Report) Text() string {
	var b strings.Builder
	width, counts := 0, make(map[Status]int)
	for _, c := range r.Checks {
		width = max(width, len(text.Visible(c.ID)))
		counts[c.Status]++
	}
	for _, c := range r.Checks {
		indent := strings.Repeat(" ", width+8)
		lines := strings.ReplaceAll(strings.TrimSpace(text.Printable(c.Detail)), "\n", "\n"+indent)
		fmt.Fprintf(&b, "%-4s  %-*s  %s\n", c.Status, width, text.Visible(c.ID), lines)
		if c.Hint != "" {
			fmt.Fprintf(&b, "%shint: %s\n", indent, strings.ReplaceAll(strings.TrimSpace(text.Printable(c.Hint)), "\n", "\n"+indent))
		}
	}
	fmt.Fprintf(&b, "\n%s: %d ok, %d warn, %d fail, %d skip\n", text.Count(len(r.Checks), "check"), counts[OK], counts[Warn], counts[Fail], counts[Skip])
	return b.String()
}

// Failures returns how many checks failed or, if it is strict, warned.
func (r Report) Failures(strict bool) (n int) {
	for _, c := range r.Checks {
		if c.Status == Fail || strict && c.Status == Warn {
			n++
		}
	}
	return n
}
