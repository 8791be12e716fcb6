package trigger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/workflow/run"
	"loki/internal/workflow/schedule/trigger/watch"
)

// Options configure New. All but Secret and Now are required.
type Options struct {
	Triggers []*Trigger
	Entries  run.Entries
	// Secret returns a secret of a trigger, which may refer to others, as it is. Nil has none, so that no signature is valid.
	Secret func(t *Trigger, text string) (string, error)
	// Begin starts a run and returns its id. A [*run.ConflictError] says that there is one with its key.
	Begin func(ctx context.Context, t *Trigger, s Start, b run.Beginning) (id string, err error)
	// Check returns an error if a trigger cannot start its agent like this.
	Check func(t *Trigger, s Start) error
	// Queued returns how many runs of a trigger wait for their turn.
	Queued func(ctx context.Context, t *Trigger) (int, error)
	Now    func() time.Time // nil means time.Now
}

// Service starts the runs of triggers. Its methods may be called from several goroutines.
type Service struct {
	o       Options
	secrets map[string][]string // by the name of the trigger
	meters  map[string]*Meter   // likewise

	mu      sync.Mutex
	dropped time.Time // when old keys and dead letters were dropped last; guarded by mu
}

// How long ids of deliveries and dead letters are kept.
const (
	keyAge    = 7 * 24 * time.Hour
	deadAge   = 30 * 24 * time.Hour
	dropEvery = time.Hour
)

// New returns a service. The error says which secret is not there.
func New(o Options) (*Service, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Service{o: o, secrets: make(map[string][]string), meters: make(map[string]*Meter)}
	for _, t := range o.Triggers {
		if s.meters[t.Name] = new(Meter); t.Webhook == nil || o.Secret == nil {
			continue
		}
		for _, text := range t.Webhook.Secrets {
			secret, err := o.Secret(t, text)
			if err == nil && secret == "" {
				err = fault.New(fault.Config, "triggers.%s.webhook.secret is empty", t.Name)
			}
			if err != nil {
				return nil, err
			}
			s.secrets[t.Name] = append(s.secrets[t.Name], secret)
		}
	}
	return s, nil
}

// Find returns the trigger with a name, nil if there is none.
func Find(all []*Trigger, name string) *Trigger {
	if i := slices.IndexFunc(all, func(t *Trigger) bool { return t.Name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// Webhook returns the webhook with a name, nil if there is none.
func (s *Service) Webhook(name string) *Webhook {
	if t := Find(s.o.Triggers, name); t != nil {
		return t.Webhook
	}
	return nil
}

// Result is what a delivery has led to. Without a run it was ignored.
type Result struct {
	RunID     string
	Duplicate bool // the run was started before
}

// TooOftenError says that a trigger gets more requests than its rate allows.
type TooOftenError struct{ After time.Duration }

func (e *TooOftenError) Error() string { return "too many requests" }

// BodyError says that the body of a request cannot be read.
type BodyError struct{ Err error }

func (e *BodyError) Error() string { return e.Err.Error() }

// DeadError says that a delivery started no run and is a dead letter now.
type DeadError struct {
	ID   string
	Err  error
	Full bool // too many runs of the trigger wait
}

func (e *DeadError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *DeadError) Unwrap() error { return e.Err }

// Accept starts the run of a request to the webhook with a name. local says that it comes from a program of this machine. The
// error is [ErrSignature], a [*TooOftenError], a [*BodyError], a [*DeadError], or one of the store.
func (s *Service) Accept(ctx context.Context, name string, r Request, local bool) (Result, error) {
	t := Find(s.o.Triggers, name)
	if t == nil || t.Webhook == nil || t.Webhook.Verify == None && !local {
		return Result{}, ErrSignature
	}
	now := s.o.Now()
	if err := t.Webhook.Check(r, s.secrets[name], now); err != nil {
		return Result{}, err
	}
	if wait, ok := s.meters[name].Take(t.Webhook.Rate, now); !ok {
		return Result{}, &TooOftenError{wait}
	}
	d, err := r.Delivery(t.Webhook)
	if err != nil {
		return Result{}, &BodyError{err}
	}
	return s.start(ctx, t, d, Dead{Delivery: t.Webhook.ID(r, d), Request: t.Webhook.WithoutSignature(r)})
}

// StartFiles starts the runs of files that a trigger watches.
func (s *Service) StartFiles(ctx context.Context, t *Trigger, files []watch.File) error {
	batches := [][]watch.File{files}
	if t.Watch.Each {
		batches = slices.Collect(slices.Chunk(files, 1))
	}
	for _, batch := range batches {
		list, hash := make([]value.Value, len(batch)), sha256.New()
		for i, f := range batch {
			list[i] = value.ObjectOf(
				value.Member{Name: "path", Value: value.Of(f.Path)}, value.Member{Name: "change", Value: value.Of(f.Change)}, value.Member{Name: "size", Value: value.Of(f.Size)},
			).Value()
			fmt.Fprintf(hash, "%q %d %d\n", f.Path, f.Size, f.Time)
		}
		all := value.ListOf(list...).Value()
		_, err := s.start(ctx, t, Delivery{FilesKey: all}, Dead{Delivery: hex.EncodeToString(hash.Sum(nil)), Files: all})
		if _, dead := errors.AsType[*DeadError](err); err != nil && !dead {
			return err
		}
	}
	return nil
}

// start starts the run of a delivery, or makes a dead letter of it.
func (s *Service) start(ctx context.Context, t *Trigger, d Delivery, letter Dead) (Result, error) {
	if err := s.drop(ctx); err != nil {
		return Result{}, err
	}
	result, full, err := s.begin(ctx, t, d, letter.Delivery)
	if err == nil {
		return result, nil
	}
	if passes(ctx, err) {
		return result, err
	}
	sum := sha256.Sum256([]byte(t.Name + "\n" + letter.Delivery))
	letter.ID, letter.Trigger, letter.At, letter.Reason = hex.EncodeToString(sum[:5]), t.Name, s.o.Now().UTC(), err.Error()
	doc, jsonErr := json.Marshal(letter)
	if jsonErr != nil {
		return result, jsonErr
	}
	putErr := s.o.Entries.Put(ctx, run.Entry{Key: deadKey(t.Name, letter.ID), Doc: doc})
	if _, known := errors.AsType[*run.ConflictError](putErr); putErr != nil && !known { // the delivery came again
		return result, errors.Join(err, putErr)
	}
	return result, &DeadError{ID: letter.ID, Err: err, Full: full}
}

// passes reports whether an error is not about the delivery or its agent: it may come again.
func passes(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, run.ErrPassing) || fault.CodeOf(err) == fault.Failure
}

// begin starts the run of a delivery.
func (s *Service) begin(ctx context.Context, t *Trigger, d Delivery, id string) (result Result, full bool, err error) {
	start, ok, err := t.Start(d, chat.NewBoundary(), s.o.Now())
	if err != nil || !ok {
		return Result{}, false, invalid(err)
	}
	key := run.StartKey("trigger/" + t.Name + "/" + id)
	known, ok, err := s.entry(ctx, key)
	if ok {
		return Result{RunID: known.Run, Duplicate: true}, false, nil
	}
	if err == nil {
		err = s.o.Check(t, start)
	}
	if err != nil {
		return Result{}, false, err
	}
	n, err := s.o.Queued(ctx, t)
	if err == nil && n >= t.MaxQueued {
		full, err = true, fault.New(fault.Limit, "%d runs of the trigger wait for their turn", n)
	}
	if err != nil {
		return Result{}, full, err
	}
	result.RunID, err = s.o.Begin(ctx, t, start, run.Beginning{
		Origin: &run.Origin{Kind: run.OfTrigger, Name: t.Name, Outside: true}, Claims: []run.Entry{{Key: key, Run: run.NewRun}},
	})
	if conflict, again := errors.AsType[*run.ConflictError](err); again {
		return Result{RunID: conflict.Run, Duplicate: true}, false, nil
	}
	if _, busy := errors.AsType[*run.BusyError](err); busy { // the trigger says that it is skipped then
		return Result{}, false, nil
	}
	return result, false, err
}

// entry returns the entry with a key.
func (s *Service) entry(ctx context.Context, key string) (e run.Entry, ok bool, err error) {
	found, err := s.o.Entries.Entries(ctx, key, 0) // others may begin with the key
	i := slices.IndexFunc(found, func(e run.Entry) bool { return e.Key == key })
	if i < 0 {
		return e, false, err
	}
	return found[i], true, err
}

// invalid is the error of a delivery that its trigger cannot map; nil for none.
func invalid(err error) error {
	if err == nil {
		return nil
	}
	return fault.Wrap(fault.Config, err, "")
}

// drop drops keys and dead letters that are too old, now and then.
func (s *Service) drop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.o.Now()
	if now.Sub(s.dropped).Abs() < dropEvery {
		return nil
	}
	err := s.o.Entries.DropEntries(ctx, run.StartKey("trigger/"), now.Add(-keyAge))
	if err == nil {
		err = s.o.Entries.DropEntries(ctx, deadKey("", ""), now.Add(-deadAge))
	}
	if err == nil {
		s.dropped = now
	}
	return err
}

// Dead is a dead letter: a delivery that was signed, was not ignored, and started no run.
type Dead struct {
	ID       string      `json:"id"`
	Trigger  string      `json:"trigger"`
	Delivery string      `json:"delivery"` // its id
	At       time.Time   `json:"at"`
	Reason   string      `json:"reason"`
	Request  Request     `json:"request,omitzero"` // without its signature; zero for one of files
	Files    value.Value `json:"files,omitzero"`
}

// IsZero reports whether there is no request.
func (r Request) IsZero() bool { return r.Header == nil && r.Query == nil && r.Body == nil }

// deadKey returns the key of a dead letter, or what keys of several begin with.
func deadKey(trigger, id string) string {
	if trigger == "" {
		return "dead/"
	}
	return "dead/" + trigger + "/" + id
}

// DeadLetters returns the dead letters of a trigger, "" for all, the newest first.
func DeadLetters(ctx context.Context, entries run.Entries, trigger string) ([]Dead, error) {
	found, err := entries.Entries(ctx, deadKey(trigger, ""), 0)
	if err != nil {
		return nil, err
	}
	list := make([]Dead, len(found))
	for i, e := range found {
		if err := json.Unmarshal(e.Doc, &list[i]); err != nil {
			return nil, fmt.Errorf("the dead letter %s: %w", e.Key, err)
		}
	}
	slices.SortStableFunc(list, func(a, b Dead) int { return b.At.Compare(a.At) })
	return list, nil
}

// Retry starts the run of a dead letter of a trigger, "" for any, and forgets the letter.
func (s *Service) Retry(ctx context.Context, trigger, id string) (Result, error) {
	all, err := DeadLetters(ctx, s.o.Entries, trigger)
	if err != nil {
		return Result{}, err
	}
	i := slices.IndexFunc(all, func(d Dead) bool { return d.ID == id })
	if i < 0 {
		return Result{}, fault.New(fault.NotFound, "there is no dead letter %q", id).ThatMisses("dead_letter").WithHint("list them: loki --dead-letters")
	}
	letter := all[i]
	t := Find(s.o.Triggers, letter.Trigger)
	if t == nil {
		return Result{}, fault.New(fault.Config, "the configuration has no trigger %q any more", letter.Trigger)
	}
	d := Delivery{FilesKey: letter.Files}
	if t.Webhook != nil {
		if d, err = letter.Request.Delivery(t.Webhook); err != nil {
			return Result{}, invalid(err)
		}
	}
	result, _, err := s.begin(ctx, t, d, letter.Delivery)
	if err != nil {
		return result, err
	}
	e, ok, err := s.entry(ctx, deadKey(letter.Trigger, id))
	if ok {
		err = s.o.Entries.Put(ctx, run.Entry{Key: e.Key, Version: e.Version, Gone: true})
	}
	if _, faster := errors.AsType[*run.ConflictError](err); faster {
		err = nil
	}
	return result, err
}

// Triggers returns the triggers.
func (s *Service) Triggers() []*Trigger { return s.o.Triggers }
