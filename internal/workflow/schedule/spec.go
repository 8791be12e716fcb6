// Package schedule has runs of agents start by themselves, at times that schedules say.
//
// A time at which a schedule is due leads to one run, or to one reason for none, over kills, restarts and servers: the transaction that
// creates the run writes the outcome and the cursor, which is the last time that was considered. States of schedules and outcomes are
// entries of the store of runs, see [run.Entry].
package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/base/value/yamldoc"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/gate"
	"loki/internal/workflow/schedule/calendar"
)

// Doc is a schedule as users write it: in files, in requests, and in the store. Spans are texts such as "10m", times are RFC 3339 or
// wall times.
type Doc struct {
	Agent       string            `json:"agent" doc:"name of an installed agent"`
	Cron        string            `json:"cron,omitempty" doc:"five fields, or @hourly, @daily, @weekly, @monthly, @yearly"`
	Every       string            `json:"every,omitempty" doc:"an interval from 1s to 366d"`
	At          string            `json:"at,omitempty" doc:"one time"`
	Timezone    string            `json:"timezone,omitempty" doc:"such as Europe/Berlin; absent: that of the system"`
	Start       string            `json:"start,omitempty" doc:"not due before; intervals begin there"`
	End         string            `json:"end,omitempty" doc:"not due from then on"`
	Jitter      string            `json:"jitter,omitempty" doc:"start later by up to this span, at most 1h and half of the interval"`
	Grace       string            `json:"grace,omitempty" doc:"a time is missed when it is late by more than this, by default 10m"`
	Blackout    []Blackout        `json:"blackout,omitempty" maxItems:"100" doc:"when nothing starts"`
	Missed      string            `json:"missed,omitempty" enum:"skip,once,all" doc:"what happens at times that were missed, by default once"`
	Paused      bool              `json:"paused,omitempty"`
	MaxParked   *int              `json:"max_parked,omitempty" minimum:"0" doc:"nothing starts while so many runs wait for answers, by default 1; 0: no limit"`
	BudgetMonth *Amount           `json:"budget_month,omitempty" doc:"what all runs of a month may use"`
	Prompt      string            `json:"prompt,omitempty" doc:"{{schedule.time}} and {{schedule.name}} are filled in"`
	Variables   map[string]string `json:"variables,omitempty" doc:"values of the agent's variables"`
	Model       string            `json:"model,omitempty"`
	Budget      *Amount           `json:"budget,omitempty" doc:"what one run may use"`
	Yes         bool              `json:"yes,omitempty" doc:"tools run without asking; denied calls stay denied"`
	gate.Rules
}

// Blackout is a time in which nothing starts.
type Blackout struct {
	Days  []string `json:"days,omitempty" doc:"such as SAT"`
	Dates []string `json:"dates,omitempty" doc:"such as 2026-12-24"`
	From  string   `json:"from,omitempty" doc:"such as 22:00; absent: the whole day"`
	To    string   `json:"to,omitempty" doc:"such as 06:00, on the next day if it is before from"`
}

// Amount bounds what runs use.
type Amount struct {
	USD     float64 `json:"usd,omitempty" minimum:"0" doc:"US dollars for models"`
	Tokens  int     `json:"tokens,omitempty" minimum:"0"`
	Seconds float64 `json:"seconds,omitempty" minimum:"0" maximum:"1000000000" doc:"of work, for one run"`
}

// bounds returns an amount, which may be nil, as a budget.
func (a *Amount) bounds() graph.Budget {
	if a == nil {
		return graph.Budget{}
	}
	return graph.Budget{USD: a.USD, Tokens: a.Tokens, Duration: time.Duration(a.Seconds * float64(time.Second))}
}

// What happens at missed times.
const (
	MissedSkip = "skip"
	MissedOnce = "once"
	MissedAll  = "all"
)

// What happens while the last run has not ended.
const (
	OverlapSkip   = gate.Skip
	OverlapQueue  = gate.Queue
	OverlapCancel = gate.Cancel
	OverlapAllow  = gate.Allow
)

const (
	maxJitter    = time.Hour
	defaultGrace = 10 * time.Minute
)

// Schedule is a schedule that was checked. It is not changed.
type Schedule struct {
	Doc
	Name      string
	Own       string // digest of its agent and itself, if the agent's file has it; empty for others
	times     *calendar.Times
	zone      *time.Location
	jitter    time.Duration
	grace     time.Duration
	blackout  []calendar.Blackout
	maxParked int
}

// FieldError is what is wrong with a field of a schedule.
type FieldError struct {
	Field string
	Err   error
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *FieldError) Unwrap() error { return e.Err }

var validName = text.Regexp(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// CheckName returns an error if a schedule cannot have a name.
func CheckName(name string) error {
	if !validName().MatchString(name) {
		return fault.New(fault.Usage, "%q is not a name: letters, digits, dots, dashes and underscores are expected, 64 at most", name)
	}
	return nil
}

// Check returns the schedule that a document describes. The error is a [*FieldError].
func Check(name string, d Doc) (*Schedule, error) {
	s := &Schedule{Doc: d, Name: name, zone: time.Local, maxParked: 1}
	wrong := func(field, format string, args ...any) (*Schedule, error) {
		return nil, &FieldError{field, fmt.Errorf(format, args...)}
	}
	if d.Agent == "" {
		return wrong("agent", "the name of an agent is expected")
	}
	var given []string
	for _, of := range [][2]string{{"cron", d.Cron}, {"every", d.Every}, {"at", d.At}} {
		if of[1] != "" {
			given = append(given, of[0])
		}
	}
	switch {
	case len(given) == 0:
		return wrong("cron", "one of cron, every and at is expected")
	case len(given) > 1:
		return wrong(given[1], "one of cron, every and at is expected, not both %s", strings.Join(given, " and "))
	}
	if d.Timezone != "" {
		zone, err := time.LoadLocation(d.Timezone)
		if err != nil || d.Timezone == "Local" {
			return wrong("timezone", "%q is not a time zone such as Europe/Berlin", d.Timezone)
		}
		s.zone = zone
	}
	var every time.Duration
	for _, span := range []struct {
		field, text string
		to          *time.Duration
	}{{"every", d.Every, &every}, {"jitter", d.Jitter, &s.jitter}, {"grace", cmp.Or(d.Grace, defaultGrace.String()), &s.grace}} {
		var err error
		if *span.to, err = parseSpan(span.text); err != nil {
			return nil, &FieldError{span.field, err}
		}
	}
	if s.jitter > maxJitter {
		return wrong("jitter", "at most 1h is expected")
	}
	var err error
	s.times, err = calendar.New(calendar.Spec{Cron: d.Cron, At: d.At, Every: every, Start: d.Start, End: d.End, Zone: s.zone})
	if field, ok := errors.AsType[*calendar.SpecError](err); ok {
		return nil, &FieldError{field.Field, field.Err}
	}
	for _, b := range d.Blackout {
		black, err := b.parse()
		if err != nil {
			return nil, &FieldError{"blackout", err}
		}
		s.blackout = append(s.blackout, black)
	}
	for _, word := range []struct {
		field string
		value *string
		words []string
	}{{"missed", &s.Missed, []string{MissedOnce, MissedSkip, MissedAll}}, {"overlap", &s.Overlap, []string{OverlapSkip, OverlapQueue, OverlapCancel, OverlapAllow}}} {
		if *word.value = cmp.Or(*word.value, word.words[0]); !slices.Contains(word.words, *word.value) {
			return wrong(word.field, "%q is none of %s", *word.value, strings.Join(word.words, ", "))
		}
	}
	for _, rule := range wrongRules(d.Rules) {
		return nil, &FieldError{rule.Key, errors.New(rule.Msg)}
	}
	if d.MaxParked != nil {
		s.maxParked = *d.MaxParked
	}
	for field, a := range map[string]*Amount{"budget": d.Budget, "budget_month": d.BudgetMonth} {
		if a != nil && (a.USD < 0 || a.Tokens < 0 || a.Seconds < 0 || a.Seconds > 1e9) {
			return wrong(field, "amounts of 0 or more are expected")
		}
	}
	return s, nil
}

// Calendar returns when the schedule is due, by how much later at most, and when it is not.
func (s *Schedule) Calendar() (times *calendar.Times, jitter time.Duration, blackout []calendar.Blackout) {
	return s.times, s.jitter, s.blackout
}

// CheckDue returns an error if the schedule is not due after now any more. It is a [*FieldError].
func (s *Schedule) CheckDue(now time.Time) error {
	switch {
	case !s.times.After(now).IsZero():
		return nil
	case s.End != "":
		return &FieldError{"end", fmt.Errorf("it is never due: nothing starts between now and %s", s.End)}
	}
	return &FieldError{"at", fmt.Errorf("it is never due: %s is over", s.At)}
}

// parseSpan returns a span such as "90s", "1h30m" or "7d"; 0 for an empty text.
func parseSpan(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n <= 10_000 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	if text == "" {
		return 0, nil
	}
	span, err := time.ParseDuration(text)
	if err != nil || span < 0 {
		return 0, fmt.Errorf("%q is not a span such as 90s, 10m, 1h30m or 7d", text)
	}
	return span, nil
}

// parse returns a blackout as the calendar has it.
func (b Blackout) parse() (black calendar.Blackout, err error) {
	if b.From == "" && b.To == "" && len(b.Days)+len(b.Dates) == 0 {
		return black, errors.New("days, dates, or from and to are expected")
	}
	for _, name := range b.Days {
		day, ok := calendar.Weekday(name)
		if !ok {
			return black, fmt.Errorf("%q is not a day such as SAT", name)
		}
		black.Days = append(black.Days, day)
	}
	for _, date := range b.Dates {
		if _, err := time.Parse(time.DateOnly, date); err != nil {
			return black, fmt.Errorf("%q is not a date such as 2026-12-24", date)
		}
		black.Dates = append(black.Dates, date)
	}
	if (b.From == "") != (b.To == "") {
		return black, errors.New("from and to are expected together")
	}
	if b.From == "" {
		return black, nil
	}
	if black.From, err = clock(b.From); err == nil {
		black.To, err = clock(b.To)
	}
	return black, err
}

// clock returns a time of day since midnight.
func clock(text string) (time.Duration, error) {
	if text == "24:00" {
		return 24 * time.Hour, nil
	}
	at, err := time.Parse("15:04", text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a time of day such as 22:00", text)
	}
	return time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute, nil
}

// Read reads schedules by their names. Mistakes are reported to the document of names. Those of an agent's file are for that agent.
func Read(names *yamldoc.Map, agent string) (all []*Schedule) {
	for e := range names.All() {
		m := e.Node.Map()
		if m == nil {
			continue
		}
		s := readOne(m, e.Key, agent)
		if err := CheckName(e.Key); err != nil {
			e.Node.Errorf("%v", err)
		} else if s != nil {
			all = append(all, s)
		}
	}
	return all
}

// ReadAgent reads the schedules in the file of an agent. Their names begin with that of the agent, so that agents do not share any.
func ReadAgent(file string, src []byte, agent string) ([]*Schedule, *yamldoc.Doc, error) {
	doc, err := yamldoc.Parse(file, src)
	if err != nil {
		return nil, nil, err
	}
	var all []*Schedule
	for _, s := range Read(doc.Root().Map().Map("schedules"), agent) {
		if s.Name = agent + "." + s.Name; CheckName(s.Name) == nil {
			all = append(all, s)
		}
	}
	return all, doc, doc.Err()
}

// readOne reads one schedule, nil if something is wrong with it.
func readOne(m *yamldoc.Map, name, agent string) *Schedule {
	d := Doc{Agent: agent}
	if agent == "" {
		m.Text("agent", &d.Agent)
	}
	for key, field := range map[string]*string{
		"cron": &d.Cron, "every": &d.Every, "at": &d.At, "timezone": &d.Timezone, "start": &d.Start, "end": &d.End, "jitter": &d.Jitter, "grace": &d.Grace,
		"missed": &d.Missed, "prompt": &d.Prompt, "model": &d.Model,
	} {
		m.Text(key, field)
	}
	for key, field := range map[string]*string{"every": &d.Every, "jitter": &d.Jitter, "grace": &d.Grace} {
		if n := m.Get(key); n != nil && (n.Kind() == yamldoc.Int || n.Kind() == yamldoc.Float) { // of seconds, as elsewhere
			*field += "s"
		}
	}
	d.Rules = gate.Read(m)
	rules := wrongRules(d.Rules)
	for _, rule := range rules {
		m.Get(rule.Key).Errorf("%s", rule.Msg)
	}
	m.Bool("paused", &d.Paused)
	if agent == "" { // an agent does not consent to its own calls
		m.Bool("yes", &d.Yes)
	}
	parked := 0
	if m.Uint("max_parked", &parked) {
		d.MaxParked = &parked
	}
	d.BudgetMonth, d.Budget = readAmount(m.Map("budget_month")), readAmount(m.Map("budget"))
	for _, n := range m.List("blackout") {
		b, of := Blackout{}, n.Map()
		of.Texts("days", &b.Days)
		of.Texts("dates", &b.Dates)
		of.Text("from", &b.From)
		of.Text("to", &b.To)
		of.Done()
		d.Blackout = append(d.Blackout, b)
	}
	if sub := m.Map("variables"); sub != nil {
		d.Variables = make(map[string]string)
		for e := range sub.All() {
			if text, ok := e.Node.Text(); ok {
				d.Variables[e.Key] = text
			}
		}
	}
	m.Done()
	s, err := Check(name, d)
	if wrong, ok := errors.AsType[*FieldError](err); ok && !slices.Contains(gate.Keys(), wrong.Field) {
		if n := m.Get(wrong.Field); n != nil {
			n.Errorf("%v", wrong.Err)
		} else {
			m.Node().Errorf("%v", wrong)
		}
	}
	if err != nil || len(rules) > 0 {
		return nil
	}
	return s
}

func wrongRules(r gate.Rules) []*gate.Error {
	return graph.CheckRules(r, "schedule.name", "schedule.time", "agent", "prompt", "variables")
}

func readAmount(m *yamldoc.Map) *Amount {
	if m == nil {
		return nil
	}
	a := &Amount{}
	m.Float("usd", &a.USD)
	m.Uint("tokens", &a.Tokens)
	m.Float("seconds", &a.Seconds)
	m.Done()
	return a
}
