package alert

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/base/value"
	"loki/internal/service/auth"
	"loki/internal/workflow/graph/expr"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/spending"
	"loki/internal/workflow/run/webhook"
	"loki/internal/workflow/schedule/trigger"
)

// Every is how often a service looks.
const Every = 15 * time.Second

const (
	overlap  = time.Minute      // how far before the last look what happened is looked for
	forget   = 10 * time.Minute // after which what does not hold any more is forgotten
	mostSent = 100              // alerts that are listed
	stateKey = "alert/state"    // of the entry with the state
)

// Options configure a Service. All but Limited and Now are required.
type Options struct {
	Rules []*Rule
	Store run.Store
	Post  func(id string, n webhook.Notice, hooks ...webhook.Hook) error // that of a [webhook.Desk]
	// Spent returns how much of each limit on what runs use together is used. Nil means none.
	Spent func(ctx context.Context) ([]spending.Spent, error)
	// Limited returns the models whose provider refuses calls now. Nil means none.
	Limited func(ctx context.Context) ([]string, error)
	Address string // of the server for users, a URL without a path; "" for no links
	Log     *slog.Logger
	Now     func() time.Time // nil means time.Now
}

// Service looks for what alerts are about. Several services, also of several processes, may share a store.
type Service struct{ o Options }

// New returns a service.
func New(o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Service{o}
}

// state is what all services of a store know.
type state struct {
	Since   time.Time         `json:"since"`   // of the first look
	Checked time.Time         `json:"checked"` // the last one
	Seen    map[string]seen   `json:"seen"`    // by rule, kind and occurrence
	Things  map[string]*thing `json:"things"`  // by rule, kind and thing
	Sent    []Sent            `json:"sent"`    // the oldest first
}

// seen is an occurrence.
type seen struct {
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	Told  bool      `json:"told,omitempty"`
}

// thing is what has alerts with a time between them.
type thing struct {
	Sent  time.Time `json:"sent,omitzero"`
	Count int       `json:"count"` // occurrences since then
	Last  Alert     `json:"last"`
}

// Sent is an alert that was sent, or is about to be.
type Sent struct {
	ID string    `json:"id"`
	At time.Time `json:"at"`
	Alert
	Posted bool `json:"posted,omitempty"`
}

// occurrence is something that an alert is about.
type occurrence struct {
	kind    Kind
	id      string // unique for its kind
	thing   string
	info    run.Info // zero if it is about no run
	reason  string
	age     time.Duration // how long it has been so
	percent int
}

// Run looks until ctx ends.
func (s *Service) Run(ctx context.Context) {
	for {
		if err := s.Check(ctx); err != nil && ctx.Err() == nil {
			s.o.Log.Warn("alerts cannot be checked", "error", err)
		}
		if retry.Sleep(ctx, Every) != nil {
			return
		}
	}
}

// read returns the state, and its entry.
func (s *Service) read(ctx context.Context) (st state, e run.Entry, err error) {
	found, err := s.o.Store.Entries(ctx, stateKey, 1)
	if len(found) > 0 && err == nil {
		e = found[0]
		err = json.Unmarshal(e.Doc, &st)
	}
	if st.Seen == nil {
		st.Seen, st.Things = make(map[string]seen), make(map[string]*thing)
	}
	return st, e, err
}

// List returns the last alerts, the newest first.
func (s *Service) List(ctx context.Context) ([]Sent, error) {
	st, _, err := s.read(ctx)
	slices.Reverse(st.Sent)
	return st.Sent, err
}

// Check looks once, unless another service did so just now, and posts what there is.
func (s *Service) Check(ctx context.Context) error {
	if len(s.o.Rules) == 0 {
		return nil
	}
	st, e, err := s.read(ctx)
	if err != nil {
		return err
	}
	now := s.o.Now().UTC()
	if passed := now.Sub(st.Checked); passed >= 0 && passed < Every-time.Second {
		return nil
	}
	if err := s.post(&st); err != nil { // what a service left that was killed
		return err
	}
	if st.Since.IsZero() {
		st.Since = now
	}
	if err := s.look(ctx, &st, now); err != nil {
		return err
	}
	maps.DeleteFunc(st.Seen, func(_ string, o seen) bool { return o.Last.Before(st.Checked.Add(-forget)) })
	st.Checked = now
	s.due(&st, now)
	doc, err := json.Marshal(st)
	if err != nil {
		return err
	}
	err = s.o.Store.Put(ctx, run.Entry{Key: stateKey, Version: e.Version, Doc: doc})
	if _, faster := errors.AsType[*run.ConflictError](err); faster {
		return nil
	}
	if err != nil {
		return err
	}
	return s.post(&st)
}

// post posts the alerts that are not known to be posted. Posting one again has no effect.
func (s *Service) post(st *state) error {
	for i, a := range st.Sent {
		j := slices.IndexFunc(s.o.Rules, func(r *Rule) bool { return r.Name == a.Rule })
		if a.Posted || j < 0 {
			continue
		}
		if err := s.o.Post(a.ID, s.o.Rules[j].notice(a.Alert, a.At), s.o.Rules[j].To...); err != nil {
			return err
		}
		st.Sent[i].Posted = true
	}
	return nil
}

// due makes the alerts whose time has come.
func (s *Service) due(st *state, now time.Time) {
	maps.DeleteFunc(st.Things, func(_ string, t *thing) bool { return t.Count == 0 && now.Sub(t.Sent) > 30*24*time.Hour })
	for _, r := range s.o.Rules {
		for _, key := range slices.Sorted(maps.Keys(st.Things)) {
			t := st.Things[key]
			if t.Last.Rule != r.Name || t.Count == 0 || now.Sub(t.Sent) < r.Every {
				continue
			}
			sum := sha256.Sum256([]byte(key + "\n" + strconv.FormatInt(now.UnixNano(), 36)))
			t.Last.Count = t.Count
			st.Sent = append(st.Sent, Sent{ID: "alert-" + hex.EncodeToString(sum[:8]), At: now, Alert: t.Last})
			t.Sent, t.Count = now, 0
		}
	}
	st.Sent = st.Sent[max(0, len(st.Sent)-mostSent):]
}

// look finds what the rules are about, and counts it.
func (s *Service) look(ctx context.Context, st *state, now time.Time) error {
	since := st.Since
	if last := st.Checked.Add(-overlap); last.After(since) {
		since = last
	}
	all, err := s.runs(ctx, since, now)
	for kind, find := range map[Kind]func(context.Context, time.Time) ([]occurrence, error){Missed: s.missedTimes, DeadLetter: s.dead, Limited: s.limitedModels, Budget: s.limits} {
		if err == nil && s.wants(kind) > 0 {
			var more []occurrence
			more, err = find(ctx, since)
			all = append(all, more...)
		}
	}
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b occurrence) int { return strings.Compare(a.id, b.id) })
	for _, r := range s.o.Rules {
		for _, c := range r.On {
			for _, o := range all {
				if o.kind == c.Kind && o.percent >= c.Percent && r.includes(o, now) {
					s.count(st, r, c, o, now)
				}
			}
		}
	}
	return nil
}

// wants returns how many rules are about a kind.
func (s *Service) wants(kind Kind) (n int) {
	for _, r := range s.o.Rules {
		if slices.ContainsFunc(r.On, func(c Condition) bool { return c.Kind == kind }) {
			n++
		}
	}
	return n
}

// count counts an occurrence of a condition, once.
func (s *Service) count(st *state, r *Rule, c Condition, o occurrence, now time.Time) {
	key := strings.Join([]string{r.Name, string(o.kind), o.id}, "\n")
	is, known := st.Seen[key]
	if !known {
		is.First = now
	}
	if is.Last = now; o.kind == Limited {
		o.age = now.Sub(is.First)
	}
	if is.Told || o.age < c.After {
		st.Seen[key] = is
		return
	}
	is.Told = true
	st.Seen[key] = is
	a := Alert{Rule: r.Name, Kind: o.kind, Agent: o.info.Agent, Run: o.info.ID, Thing: o.thing, Reason: o.reason}
	if c.After > 0 {
		a.Reason += " for " + strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(c.After.String())
	}
	if a.Run != "" && s.o.Address != "" {
		a.Link = s.o.Address + "/#/runs/" + a.Run
	}
	of := strings.Join([]string{r.Name, string(o.kind), o.thing, o.info.Agent}, "\n")
	t := st.Things[of]
	if t == nil {
		t = new(thing)
		st.Things[of] = t
	}
	t.Count++
	t.Last = a
}

// includes reports whether the rule is about an occurrence.
func (r *Rule) includes(o occurrence, now time.Time) bool {
	if r.Where == nil {
		return true
	}
	i := o.info
	l := lookup{
		"id": value.Of(i.ID), "agent": value.Of(i.Agent), "kind": value.Of(string(i.Kind)), "status": value.Of(string(i.Status)), "code": value.Of(string(i.Code)),
		"age": value.Of(now.Sub(i.Started).Seconds()), "cost": value.Of(i.Usage.Cost), "tokens": value.Of(i.Usage.Total()), "failures": value.Of(i.Failures), "model": value.Of(i.Model),
	}
	if i.Kind == run.GraphRun && i.ID != "" {
		l["kind"] = value.Of("graph")
	}
	if i.Owner != nil {
		l["subject"] = value.Of(i.Owner.Subject)
	}
	if i.Origin != nil {
		l[i.Origin.Kind] = value.Of(i.Origin.Name)
	}
	switch o.kind {
	case Missed:
		l["schedule"] = value.Of(strings.TrimPrefix(o.thing, "schedule "))
	case DeadLetter:
		l["trigger"] = value.Of(strings.TrimPrefix(o.thing, "trigger "))
	}
	ok, err := r.Where.BoolWith(l, expr.Env{Now: now})
	return ok && err == nil
}

// runs returns what there is about runs.
func (s *Service) runs(ctx context.Context, since, now time.Time) (all []occurrence, err error) {
	if s.wants(Failed)+s.wants(Waiting)+s.wants(Stuck)+s.wants(Budget) == 0 {
		return nil, nil
	}
	stamper, ok := s.o.Store.(run.Stamper)
	if !ok {
		return nil, nil
	}
	stamps, err := stamper.Stamps(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Sorted(maps.Keys(stamps)) {
		at, word, _ := strings.Cut(stamps[id], " ")
		nanos, _ := strconv.ParseInt(at, 36, 64)
		updated, status := time.Unix(0, nanos), run.Status(word)
		recent := !updated.Before(since)
		if status == run.Canceled || status.Over() && !recent || status == run.Suspended && !recent && s.wants(Waiting) == 0 {
			continue
		}
		more, err := s.about(ctx, id, updated, recent, now)
		if err != nil && fault.CodeOf(err) != fault.NotFound { // it was deleted meanwhile
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// about returns what there is about a run.
func (s *Service) about(ctx context.Context, id string, updated time.Time, recent bool, now time.Time) (all []occurrence, err error) {
	info, err := s.o.Store.Info(ctx, id)
	if err != nil || info.Damaged {
		return nil, err
	}
	switch info.Status {
	case run.Failed:
		if recent {
			all = append(all, occurrence{kind: Failed, id: stampID(id, updated), info: info, reason: fmt.Sprintf("failed (%s)", info.Code)})
		}
	case run.Suspended:
		waiting, err := s.o.Store.Pending(ctx, id)
		if err != nil {
			return nil, err
		}
		for _, p := range waiting {
			all = append(all, occurrence{kind: Waiting, id: stampID(id+" "+p.ID, p.Asked), info: info, reason: "waits for an answer", age: now.Sub(p.Asked)})
		}
	case run.Running:
		if info.Active {
			all = append(all, occurrence{kind: Stuck, id: stampID(id, updated), info: info, reason: "is at work without an event", age: now.Sub(updated)})
		}
	}
	if t := info.Terms; t != nil {
		used := 0.0
		if t.Budget.USD > 0 {
			used = info.Usage.Cost / t.Budget.USD
		}
		if t.Budget.Tokens > 0 {
			used = max(used, float64(info.Usage.Total())/float64(t.Budget.Tokens))
		}
		percent := int(used * 100)
		all = append(all, occurrence{kind: Budget, id: id, info: info, reason: fmt.Sprintf("has used %d %% of its budget", percent), percent: percent})
	}
	return all, nil
}

// stampID returns an id of what was so at a time.
func stampID(id string, at time.Time) string { return id + " " + strconv.FormatInt(at.UnixNano(), 36) }

// missedTimes returns the times that schedules have missed.
func (s *Service) missedTimes(ctx context.Context, since time.Time) (all []occurrence, err error) {
	states, err := s.o.Store.Entries(ctx, "schedule/", 0)
	for _, e := range states {
		prefix := run.StartKey(e.Key + "/")
		firings, err := s.o.Store.Entries(ctx, prefix, 20)
		if err != nil {
			return nil, err
		}
		for _, f := range firings {
			var outcome struct{ Reason string }
			due, numberErr := strconv.ParseInt(strings.TrimPrefix(f.Key, prefix), 10, 64)
			if f.At.Before(since) || json.Unmarshal(f.Doc, &outcome) != nil || outcome.Reason != "missed" || numberErr != nil {
				continue
			}
			all = append(all, occurrence{
				kind: Missed, id: f.Key, thing: "schedule " + strings.TrimPrefix(e.Key, "schedule/"), reason: "did not run at " + time.Unix(due, 0).UTC().Format(time.RFC3339),
			})
		}
	}
	return all, err
}

// dead returns the dead letters of triggers.
func (s *Service) dead(ctx context.Context, since time.Time) (all []occurrence, err error) {
	letters, err := trigger.DeadLetters(ctx, s.o.Store, "")
	for _, d := range letters {
		if !d.At.Before(since) {
			all = append(all, occurrence{kind: DeadLetter, id: d.Trigger + " " + d.ID, thing: "trigger " + d.Trigger, reason: "a delivery started no run, see dead letter " + d.ID})
		}
	}
	return all, err
}

// limits returns the limits on what runs use together.
func (s *Service) limits(ctx context.Context, _ time.Time) (all []occurrence, err error) {
	if s.o.Spent == nil {
		return nil, nil
	}
	list, err := s.o.Spent(ctx)
	for _, l := range list {
		o := occurrence{kind: Budget, id: l.ID, thing: l.Thing, reason: fmt.Sprintf("has used %d %% of the limit of a %s", l.Percent, l.Span), percent: l.Percent}
		if l.Subject != "" {
			o.info.Owner = &auth.Owner{Subject: l.Subject}
		}
		all = append(all, o)
	}
	return all, err
}

// limitedModels returns the models whose provider refuses calls.
func (s *Service) limitedModels(ctx context.Context, _ time.Time) (all []occurrence, err error) {
	if s.o.Limited == nil {
		return nil, nil
	}
	models, err := s.o.Limited(ctx)
	for _, m := range models {
		all = append(all, occurrence{kind: Limited, id: m, thing: "model " + m, reason: "its provider refuses calls"})
	}
	return all, err
}
