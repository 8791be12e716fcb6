package cassette

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/value"
	"loki/internal/llm/provider"
	"loki/internal/tool/builtin/patch"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
)

// Player plays a cassette. It may be used from several goroutines.
type Player struct {
	Cassette *Cassette

	source   string // the file, or the run, for messages
	marks    Marks
	scripted map[team]bool

	mu   sync.Mutex
	runs int
	used map[Place]bool
}

// NewPlayer returns what plays a cassette. source names it for messages.
func NewPlayer(c *Cassette, source string, marks Marks) *Player {
	return &Player{Cassette: c, source: source, marks: marks, scripted: scriptedTeams(c.Entries), used: make(map[Place]bool)}
}

// Store returns a store in memory whose runs answer from the cassette.
func (p *Player) Store() run.Store { return &playedStore{memstore.New(nil), p} }

// UnusedSteps returns the steps that were recorded and not made. Consent is left out, and so are the steps of child agents
// that are not run again.
func (p *Player) UnusedSteps() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var unused []string
	for _, e := range p.Cassette.Entries {
		if made(e.Kind) && !p.used[e.Place] && !isConsent(e.Key) && !p.ofScripted(e.Place) {
			unused = append(unused, e.String())
		}
	}
	return unused
}

// ofScripted reports whether a place is that of a child whose work is not done again.
func (p *Player) ofScripted(place Place) bool {
	for t := range p.scripted {
		if t.run == place.Run && t.step == place.Step && t.node == place.Node && strings.HasPrefix(place.Key, t.key+"agents/") {
			return true
		}
	}
	return false
}

// MismatchError says that a run did something else than its cassette holds.
type MismatchError struct {
	Place   Place
	Message string
	Diff    string // from the recorded request to the made one
}

func (e *MismatchError) Error() string {
	text := fmt.Sprintf("%s: %s", e.Place, e.Message)
	if e.Diff != "" {
		text += "\n--- recorded\n+++ made\n" + strings.TrimRight(e.Diff, "\n")
	}
	return text
}

type playedStore struct {
	run.Store
	p *Player
}

// Create begins a run.
func (s *playedStore) Create(ctx context.Context, info run.Info, start run.Checkpoint) (run.Journal, error) {
	j, err := s.Store.Create(ctx, info, start)
	if err != nil {
		return nil, err
	}
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.p.runs++
	return &playedJournal{j, s.p, s.p.marks.with(info), s.p.runs}, nil
}

type playedJournal struct {
	run.Journal
	p     *Player
	marks Marks
	run   int
}

// Task returns the record of a task's steps.
func (j *playedJournal) Task(step int, node string) steps.Recorder {
	return &playedTask{j.Journal.Task(step, node), j.p, j.marks, Place{Run: j.run, Step: step, Node: node}}
}

type playedTask struct {
	steps.Recorder
	p     *Player
	marks Marks
	place Place
}

// Lookup returns the recorded result of a step. One that reaches the outside world and is not in the cassette, or
// is another one there, ends the run.
func (t *playedTask) Lookup(ctx context.Context, key string, s steps.Step) (steps.Record, error) {
	if !kept(key, s) {
		return t.Recorder.Lookup(ctx, key, s)
	}
	place := t.place
	place.Key = key
	if of, ok := teamOf(place); ok && !t.p.scripted[of] {
		return t.Recorder.Lookup(ctx, key, s)
	}
	e := t.p.Cassette.find(place)
	if e == nil && s.Kind == steps.Question && isConsent(key) {
		return steps.Record{Done: true, Result: []byte(`""`)}, nil
	}
	if e == nil && !made(s.Kind) {
		return t.Recorder.Lookup(ctx, key, s)
	}
	if made(s.Kind) { // others are read under several kinds
		if err := t.compare(e, place, s); err != nil {
			return steps.Record{}, &run.StopError{Err: err}
		}
	}
	t.p.mu.Lock()
	t.p.used[place] = true
	t.p.mu.Unlock()
	if e.Failure != nil {
		return steps.Record{Failure: e.Failure.err()}, nil
	}
	return steps.Record{Done: true, Result: t.marks.show(e.Reply).AppendJSON(nil)}, nil
}

// compare returns an error if a step is not what the entry has of it.
func (t *playedTask) compare(e *Entry, place Place, s steps.Step) error {
	p := t.p
	var sent value.Value
	if s.Request != nil {
		request, err := asValue(s.Request())
		if err != nil {
			return err
		}
		sent = t.marks.hide(request)
	}
	now := &Entry{Place: place, Kind: s.Kind, Name: t.marks.hideText(s.Name), Request: sent}
	if e == nil {
		diff, _ := patch.Diff("", now.text())
		return p.fault(&MismatchError{place, fmt.Sprintf("this %s was not recorded", what(s.Kind)), diff})
	}
	same := e.Kind == now.Kind && (e.Name == now.Name || s.Kind != steps.Tool && s.Kind != steps.Script)
	if same && (e.Request.IsNull() || value.Equal(withoutDates(e.Request), withoutDates(now.Request))) {
		return nil
	}
	where := p.source
	if e.Line > 0 {
		where = fmt.Sprintf("%s:%d", where, e.Line)
	}
	recorded := *e
	recorded.Request, now.Request = withoutDates(e.Request), withoutDates(now.Request)
	diff, _ := patch.Diff(recorded.text(), now.text())
	return p.fault(&MismatchError{place, fmt.Sprintf("this %s is not the one that was recorded at %s", what(s.Kind), where), diff})
}

// what names a step of a kind.
func what(k steps.Kind) string {
	switch k {
	case steps.Model, steps.Tool:
		return "call of a " + string(k)
	case steps.Script:
		return "run of a script"
	case steps.Retrieval:
		return "search in a knowledge base"
	}
	return string(k)
}

// text returns a step as the file has it, without its reply.
func (e *Entry) text() string {
	var w writer
	w.member(0, "kind", value.Of(string(e.Kind)))
	w.member(0, "name", value.Of(e.Name))
	if !e.Request.IsNull() {
		w.member(0, "request", expandJSON(e.Request))
	}
	return w.String()
}

func (p *Player) fault(err *MismatchError) error {
	return fault.Wrap(fault.Failure, err, "the run is not that of %s", p.source).
		WithHint("if the change is intended, record it again: with --record FILE, or with --test PATH --update")
}

// IsMismatch reports whether the text of an error, which another process may have reported, is that of a run that is
// not the recorded one.
func IsMismatch(text string) bool { return strings.Contains(text, "the run is not that of ") }

// err returns the failure as an error like the one that was recorded.
func (f *Failure) err() error {
	if f.Kind != "" {
		return fault.Wrap(fault.Code(f.Code), &provider.Error{Kind: provider.ErrorKind(f.Kind), Msg: f.Message}, "").WithHint("%s", f.Hint)
	}
	return fault.New(fault.Code(f.Code), "%s", f.Message).WithHint("%s", f.Hint)
}
