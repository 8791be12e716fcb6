package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/base/value"
	"loki/internal/llm/engine/governor"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/gate"
)

// Admission says when a run may start while others are at work.
type Admission struct {
	Priority string      // one of package gate; empty for that of its kind, see [Info.Precedence]
	Gates    []gate.Gate // all of them have to let the run through before it works, also when it resumes
}

// Key returns the concurrency key of a run, empty for none. That of a request counts before that of the agent.
func (a Admission) Key() string {
	for _, g := range slices.Backward(a.Gates) {
		if g.Key != "" {
			return g.Key
		}
	}
	return ""
}

// Admit adds the rules of a place, such as "agent/NAME", to those of the run. scope keeps the keys of different users apart. The
// template of the key reads names, or if that is nil the agent, the prompt and the variables of the run. The error has code Usage, and
// a [*gate.Error] in its chain.
func (i *Info) Admit(r gate.Rules, scope, place string, names graph.Lookup) error {
	if names == nil {
		var variables []value.Member
		for name, text := range i.Variables {
			variables = append(variables, value.Member{Name: name, Value: value.Of(text)})
		}
		names = value.ObjectOf(
			value.Member{Name: "agent", Value: value.Of(i.Agent)}, value.Member{Name: "prompt", Value: value.Of(i.Prompt)}, value.Member{Name: "variables", Value: value.ObjectOf(variables...).Value()},
		)
	}
	g, ok, err := r.Gate(scope, place, func(template string) (string, error) {
		key, err := graph.ParseTemplate(template).Strict(names)
		if missing, ok := errors.AsType[*graph.MissingError](err); ok {
			err = fmt.Errorf("there is no value for {{%s}}", missing.Paths[0])
		}
		return key, err
	})
	if err != nil {
		return fault.Wrap(fault.Usage, err, "")
	}
	if ok {
		i.Gates = append(i.Gates[:len(i.Gates):len(i.Gates)], g)
	}
	i.Priority = cmp.Or(r.Priority, i.Priority)
	return nil
}

// Precedence returns the priority of a run.
func (i Info) Precedence() string {
	switch {
	case i.Priority != "":
		return i.Priority
	case i.Kind == ChatRun:
		return gate.High
	case i.Origin != nil && i.Origin.Kind == OfSchedule:
		return gate.Low
	}
	return gate.Normal
}

// Rank returns the priority of a run as a number: that of a run that comes first is higher.
func (i Info) Rank() int { return gate.Rank(i.Precedence()) }

// withPriority returns the context of the calls of a run.
func (i Info) withPriority(ctx context.Context) context.Context {
	rank := governor.Priority(i.Rank())
	if i.Priority != "" {
		return governor.With(ctx, rank)
	}
	if rank == governor.Low {
		return governor.AtMost(ctx, rank)
	}
	return ctx
}

// A gate keeps entries below "gate/NAME/": "slot/N" names the run that works in a place of the limit, or has worked there last;
// "starts" has the times of the last starts; and "line/TIME-ID" is a run that was never let through, the oldest at the end. A slot is taken as
// long as a process holds its run. So it needs no release, and a process that dies frees it, too.
const gatePrefix = "gate/"

// BusyError says that a run is not started because as many runs as its gate allows are at work.
type BusyError struct {
	Gate gate.Gate
	Run  string // one of those at work
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("run %s %s is at work, and overlap is %s", e.Run, e.Gate, gate.Skip)
}

// displacedError is how a run ends as canceled because of another one.
type displacedError struct{ error }

func (e *displacedError) Unwrap() error { return e.error }

// Because says which one, for people who see the run end.
func (e *displacedError) Because() string { return e.Error() }

// replacedError is how a run ends that another one has replaced.
func replacedError(g gate.Gate, by string) error {
	return &displacedError{fault.New(fault.Canceled, "the later run %s %s has replaced this one", by, g)}
}

// note is what the entry of a run in a slot or a line says besides its key.
type note struct {
	Several    bool   `json:"several,omitempty"`     // it waits for several gates
	ReplacedBy string `json:"replaced_by,omitempty"` // id of a later run
	Canceled   bool   `json:"canceled,omitempty"`    // the run, which waits, has to end
}

func noteOf(e Entry) (n note) {
	_ = json.Unmarshal(e.Doc, &n) // this package has written it
	return n
}

// leave writes a note for the run of an entry. ok is false if the entry has changed.
func (n note) leave(ctx context.Context, store Store, e Entry) (ok bool, err error) {
	e.Doc, _ = json.Marshal(n)
	err = store.Put(ctx, e)
	if _, faster := errors.AsType[*ConflictError](err); faster {
		return false, nil
	}
	return err == nil, err
}

// claim adds to a run that is created what its gates have to know of it.
func (i *Info) claim(ctx context.Context, store Store) error {
	var claims []Entry
	for _, g := range i.Gates {
		if g.Overlap == gate.Skip && g.Limit > 0 && g.Debounce == 0 {
			free, taken, err := slots(ctx, store, g, "")
			switch {
			case err != nil:
				return err
			case free.Key == "":
				return fault.Wrap(fault.Limit, &BusyError{g, taken[0].Run}, "the run is not started").WithHint("wait until it has ended, or have runs wait: overlap: %s", gate.Queue)
			case g.Starts == 0:
				free.Run = NewRun
				claims = append(claims, free)
				continue
			}
		}
		place := math.MaxInt64 - time.Now().UnixNano()
		e := Entry{Key: fmt.Sprintf("%s%s/line/%019d-%s", gatePrefix, g.Name, place, NewID()), Run: NewRun}
		if len(i.Gates) > 1 {
			e.Doc, _ = json.Marshal(note{Several: true})
		}
		claims = append(claims, e)
	}
	slices.SortFunc(claims, func(a, b Entry) int { return cmp.Compare(a.Key, b.Key) }) // the same order in all processes
	i.Claims = slices.Concat(i.Claims, claims)
	return nil
}

// slots returns the slot that a run may take, without a key if there is none, and those of other runs at work.
func slots(ctx context.Context, store Store, g gate.Gate, id string) (free Entry, taken []Entry, err error) {
	prefix := gatePrefix + g.Name + "/slot/"
	all, err := store.Entries(ctx, prefix, 0)
	if err != nil {
		return free, nil, err
	}
	there := make(map[string]Entry)
	for _, e := range all {
		works := false
		if e.Run != id {
			if works, _, err = atWork(ctx, store, e.Run); err != nil {
				return free, nil, err
			}
		}
		if there[e.Key] = e; works {
			taken = append(taken, e)
		}
	}
	if len(taken) >= g.Limit {
		return free, taken, nil
	}
	for n := range g.Limit { // one of them is free
		key := fmt.Sprintf("%s%04d", prefix, n)
		if slices.ContainsFunc(taken, func(e Entry) bool { return e.Key == key }) {
			continue
		}
		if e := there[key]; free.Key == "" || id != "" && e.Run == id {
			free = Entry{Key: key, Version: e.Version}
		}
	}
	return free, taken, nil
}

// atWork reports whether a process holds a run, and how the run is: done if it was deleted.
func atWork(ctx context.Context, store Store, id string) (works bool, info Info, err error) {
	info, err = store.Info(ctx, id)
	if fault.CodeOf(err) == fault.NotFound {
		return false, Info{Status: Done}, nil
	}
	return info.Active, info, err
}

// admission is a run before its gates.
type admission struct {
	store  Store
	id     string
	gates  []gate.Gate
	parked bool             // the run was suspended: it waits also for runs that would replace another one
	line   map[string]Entry // its own entries in the lines of its gates, by the names of these; nil before they are known
	waits  string           // what the run waits for
}

const (
	gateLook  = 50 * time.Millisecond // how often the first run of a line looks
	gateSlow  = 2 * time.Second       // how often any run looks at least
	gateAhead = 32                    // so many runs of a line are looked at
	gateWatch = time.Second / 2       // how often a run at work looks whether another one replaces it
)

// through returns once all gates let the run through, and notes that in one moment. tell is called once if the run has to wait.
func (a *admission) through(ctx context.Context, tell func(why string) error) error {
	began := time.Now()
	for told := false; ; {
		entries, wait, err := a.look(ctx)
		if err == nil && wait == 0 {
			if err = a.store.Put(ctx, entries...); err == nil {
				return nil
			}
			if _, faster := errors.AsType[*ConflictError](err); faster {
				wait, err = rand.N(gateLook), nil
			}
		}
		if errors.Is(err, ErrPassing) {
			wait, err = gateWatch, nil
		}
		if err == nil && !told && a.waits != "" {
			told, err = true, tell(a.waits)
		}
		if err == nil {
			err = retry.Sleep(ctx, min(max(wait, time.Since(began)/50), gateSlow))
		}
		if err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
	}
}

// look returns what is written if the run may pass all its gates now, or else when it looks again.
func (a *admission) look(ctx context.Context) (entries []Entry, wait time.Duration, err error) {
	if a.line == nil {
		line := make(map[string]Entry)
		for _, g := range a.gates {
			all, err := a.store.Entries(ctx, gatePrefix+g.Name+"/line/", 0)
			if err != nil {
				return nil, 0, err
			}
			if i := slices.IndexFunc(all, func(e Entry) bool { return e.Run == a.id }); i >= 0 {
				line[g.Name] = all[i]
			}
		}
		a.line = line
	}
	for _, g := range a.gates {
		add, wait, err := a.at(ctx, g)
		if wait > 0 || err != nil {
			return nil, wait, err
		}
		entries = append(entries, add...)
	}
	slices.SortFunc(entries, func(x, y Entry) int { return cmp.Compare(x.Key, y.Key) })
	return entries, 0, nil
}

// at is look for one gate.
func (a *admission) at(ctx context.Context, g gate.Gate) (entries []Entry, wait time.Duration, err error) {
	mine, never := a.line[g.Name]
	wait = gateLook
	if never {
		switch there, err := a.store.Entries(ctx, mine.Key, 1); {
		case err != nil:
			return nil, 0, err
		case len(there) > 0:
			mine = there[0]
		}
		if n := noteOf(mine); n.ReplacedBy != "" {
			return nil, 0, replacedError(g, n.ReplacedBy)
		} else if n.Canceled {
			return nil, 0, errCanceled
		}
		ahead, err := a.ahead(ctx, g, mine)
		if err != nil {
			return nil, 0, err
		}
		if wait *= time.Duration(1 + ahead); ahead > 0 {
			a.waits = fmt.Sprintf("earlier runs %s come first", g)
			return nil, wait, nil
		}
		if quiet := time.Until(mine.At.Add(g.Debounce)); g.Debounce > 0 && quiet > 0 {
			a.waits = fmt.Sprintf("debounce is %s, and a later run %s replaces this one", g.Debounce, g)
			return nil, max(quiet, time.Millisecond), nil
		}
		mine.Gone = true
		entries = append(entries, mine)
	}
	if g.Starts > 0 && never {
		e, wait, err := starts(ctx, a.store, g)
		if wait > 0 || err != nil {
			a.waits = fmt.Sprintf("throttle is %d/%s for runs %s", g.Starts, g.Per, g)
			return nil, wait, err
		}
		entries = append(entries, e)
	}
	if g.Limit == 0 {
		return entries, 0, nil
	}
	free, taken, err := slots(ctx, a.store, g, a.id)
	switch {
	case err != nil:
		return nil, 0, err
	case free.Key != "":
		free.Run = a.id
		return append(entries, free), 0, nil
	case never && g.Overlap == gate.Skip:
		return nil, 0, &displacedError{fault.Wrap(fault.Canceled, &BusyError{g, taken[0].Run}, "")}
	case g.Overlap == gate.Cancel && !never && !a.parked:
		return nil, 0, replacedError(g, taken[0].Run)
	case g.Overlap == gate.Cancel && never:
		err = a.replace(ctx, taken)
	}
	a.waits = fmt.Sprintf("run %s %s is at work", taken[0].Run, g)
	return nil, wait, err
}

// ahead returns how many runs in the line come first. Those that wait for several gates do not count, and neither do those that no process
// holds. If it cancels others, it replaces those ahead. The error says that a newer run has replaced this one.
func (a *admission) ahead(ctx context.Context, g gate.Gate, mine Entry) (n int, err error) {
	passes, limit := g.Debounce > 0 || g.Overlap == gate.Cancel, gateAhead
	if passes {
		limit = 0
	}
	all, err := a.store.Entries(ctx, gatePrefix+g.Name+"/line/", limit) // the oldest first
	if err != nil {
		return 0, err
	}
	for i, e := range all {
		older := e.Key > mine.Key
		if e.Key == mine.Key || !older && g.Debounce == 0 {
			continue
		}
		works, info, err := atWork(ctx, a.store, e.Run)
		switch {
		case err != nil:
			return 0, err
		case !works && info.Status.Over():
			e.Gone = true
			_ = a.store.Put(ctx, e) // or another process has
		case !older && (works || info.Served && info.Status == Running): // a server continues with it
			return 0, replacedError(g, e.Run)
		case older && g.Overlap == gate.Cancel && (len(e.Doc) == 0 || noteOf(e).Several):
			if _, err := (note{ReplacedBy: a.id}).leave(ctx, a.store, e); err != nil {
				return 0, err
			}
		case works && !passes && len(e.Doc) == 0:
			place := slices.IndexFunc(all, func(e Entry) bool { return e.Key == mine.Key })
			if place < 0 {
				place = len(all)
			}
			return max(1, place-i), nil
		}
	}
	return 0, nil
}

// starts returns the entry of the last starts with one more, or when that is possible.
func starts(ctx context.Context, store Store, g gate.Gate) (e Entry, wait time.Duration, err error) {
	e.Key = gatePrefix + g.Name + "/starts"
	there, err := store.Entries(ctx, e.Key, 1)
	if err != nil {
		return e, 0, err
	}
	var times []time.Time
	if len(there) > 0 {
		e = there[0]
		if err := json.Unmarshal(e.Doc, &times); err != nil {
			return e, 0, fmt.Errorf("the entry %s: %w", e.Key, err)
		}
	}
	now := time.Now().UTC()
	if n := len(times) - g.Starts; n >= 0 {
		if wait = times[n].Add(g.Per).Sub(now); wait > 0 {
			return e, min(wait, g.Per), nil
		}
		times = times[n+1:]
	}
	e.Doc, err = json.Marshal(append(times, now))
	return e, 0, err
}

// replace has one of the runs at work canceled, unless one is about to be.
func (a *admission) replace(ctx context.Context, taken []Entry) error {
	first := taken[0]
	for _, e := range taken {
		if len(e.Doc) > 0 {
			return nil
		}
		if e.At.Before(first.At) {
			first = e
		}
	}
	_, err := note{ReplacedBy: a.id}.leave(ctx, a.store, first)
	return err
}

// endWait has the process that holds a run end its wait, and returns once it has. ended is false if the run does not wait, or has worked
// before.
func endWait(ctx context.Context, store Store, info Info) (ended bool, err error) {
	noted := false
	for i := 0; i < len(info.Gates) && !noted; i++ {
		all, err := store.Entries(ctx, gatePrefix+info.Gates[i].Name+"/line/", 0)
		if err != nil {
			return false, err
		}
		if at := slices.IndexFunc(all, func(e Entry) bool { return e.Run == info.ID }); at >= 0 {
			if noted, err = (note{Canceled: true}).leave(ctx, store, all[at]); err != nil {
				return false, err
			}
		}
	}
	for noted && !ended && err == nil {
		if err = retry.Sleep(ctx, gateLook); err == nil {
			noted, info, err = atWork(ctx, store, info.ID) // its process may also die
			ended = info.Status.Over()
		}
	}
	return ended, err
}

// watch cancels the run if another one replaces it, until ctx ends.
func (a *admission) watch(ctx context.Context, cancel context.CancelCauseFunc) {
	for retry.Sleep(ctx, gateWatch) == nil {
		for _, g := range a.gates {
			all, err := a.store.Entries(ctx, gatePrefix+g.Name+"/slot/", 0)
			for _, e := range all {
				if by := noteOf(e).ReplacedBy; err == nil && e.Run == a.id && by != "" {
					cancel(replacedError(g, by))
					return
				}
			}
		}
	}
}

// guard returns the context of a run, and a wait that first waits for its gates. close is called when the run is not at work any more.
func (s *Service) guard(ctx context.Context, store Store, id string, job Job, wait func(context.Context) error, parked bool) (gated context.Context, through func(context.Context) error, end func()) {
	if len(job.Info.Gates) == 0 {
		return ctx, wait, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	watching, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	a := &admission{store: store, id: id, gates: job.Info.Gates, parked: parked}
	through = func(ctx context.Context) error {
		err := a.through(ctx, func(why string) error {
			if s.Enter != nil { // it is shown as queued
				return nil
			}
			return job.Events.Emit(ctx, event.Warning{Text: "the run waits: " + why})
		})
		if err != nil {
			return err
		}
		work.Go(func() { a.watch(watching, cancel) }) // ends with the run
		if wait == nil {
			return nil
		}
		return wait(ctx)
	}
	return ctx, through, func() {
		stop()
		work.Wait()
		cancel(nil)
	}
}

// createGated creates a run, whose gates may be used by other processes at the same time.
func createGated(ctx context.Context, store Store, info Info, start Checkpoint) (Journal, error) {
	for {
		claimed := info
		if err := claimed.claim(ctx, store); err != nil {
			return nil, err
		}
		j, err := store.Create(ctx, claimed, start)
		if c, faster := errors.AsType[*ConflictError](err); !faster || !strings.HasPrefix(c.Key, gatePrefix) {
			return j, err
		}
	}
}
