package session

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"loki/internal/llm/chat"
	"loki/internal/llm/engine/token"
	"loki/internal/service/auth"
)

// Options are what all stores need to make sessions. The zero value is usable.
type Options struct {
	// Counter returns how the tokens of a model, given by its id, are counted. nil
	// means that they are estimated.
	Counter func(model string) token.Counter

	// Now returns the time; nil means time.Now.
	Now func() time.Time

	// Warn gets damage that does not prevent the use of a session, such as a [*Damage].
	// It must not use the session. nil drops warnings.
	Warn func(ctx context.Context, err error)

	// Hide returns a text, JSON or not, as it may be stored: without secrets. It is called
	// from several goroutines. nil stores texts as they are.
	Hide func(text string) string
}

// hide returns text as it may be stored.
func (o Options) hide(text string) string {
	if o.Hide == nil {
		return text
	}
	return o.Hide(text)
}

// encode returns the lines of g as they are stored.
func (o Options) encode(g group) ([]byte, error) {
	var data bytes.Buffer
	if err := g.encode(&data); err != nil {
		return nil, err
	}
	if o.Hide == nil {
		return data.Bytes(), nil
	}
	return []byte(o.Hide(data.String())), nil
}

// Session is a conversation and its settings. Its methods may be called from several
// goroutines.
type Session struct {
	options Options
	scope   Scope
	turn    chan struct{} // holds one token while the session is acquired

	mu       sync.Mutex // guards everything below; held while the log is written
	log      Log
	id       ID
	stored   bool
	temp     bool     // the user has not named it
	adopt    bool     // become the stored session of the same alias, if there is one by then
	state    State    // as it is now
	base     Settings // as they were when the state was last read or written
	stale    bool     // the state must be written
	forget   bool     // when it is, the data URLs and texts that are stored go
	view     view     // the log as far as it was read or written, and then what is pending
	pending  []entry  // in the history of view, but not in the log yet
	dirty    bool
	attended bool // a user decides about unsaved changes
	settled  settled
	held     *held       // not nil while changes wait for Save
	force    bool        // save whatever the settings say
	unkept   bool        // save nothing whatever is said
	partial  bool        // the log lacks what was said while unkept was set
	naming   bool        // a title is being made
	claim    *auth.Owner // owns the session from the next change on, if it has no owner
}

// view is what a log adds up to.
type view struct {
	history history
	offset  int64 // how much of the log that is
}

// entry is a change that is not in the log yet.
type entry struct {
	op    op
	group group
}

// New returns a session that is not stored yet. If another one has its alias when it is stored, it
// becomes that one. New is for stores.
func New(scope Scope, id ID, log Log, o Options, st State) *Session {
	s := newSession(scope, id, log, o)
	st.Created = s.options.Now().UTC().Truncate(time.Second)
	st.Settings = st.Settings.clone()
	s.setState(st)
	s.adopt = st.Alias != ""
	return s
}

// NewTemp returns a session like [New], which the user has not named. It gets an alias
// when it is stored. NewTemp is for stores.
func NewTemp(scope Scope, id ID, log Log, o Options, initial Settings) *Session {
	s := New(scope, id, log, o, State{Settings: initial})
	s.temp = true
	return s
}

// Load returns a stored session. It is for stores.
func Load(ctx context.Context, scope Scope, id ID, log Log, o Options) (*Session, error) {
	st, data, err := log.Load(ctx)
	if err != nil {
		return nil, err
	}
	s := newSession(scope, id, log, o)
	s.stored = true
	s.setState(st)
	s.temp = s.unnamed()
	s.read(ctx, &s.view, data)
	return s, nil
}

func newSession(scope Scope, id ID, log Log, o Options) *Session {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Counter == nil {
		o.Counter = func(string) token.Counter { return token.Estimate() }
	}
	if o.Warn == nil {
		o.Warn = func(context.Context, error) {}
	}
	return &Session{options: o, scope: scope, id: id, log: log, turn: make(chan struct{}, 1)}
}

func (s *Session) setState(st State) {
	s.state, s.base = st, st.Settings.clone()
	s.stale, s.forget = false, false
	s.count()
}

// count sees to it that tokens are counted as the current model does, once they are.
func (s *Session) count() {
	if c := s.options.Counter(s.state.Settings.Model); c != s.view.history.counter {
		s.view.history.recount(c)
	}
}

// read adds the complete groups in data, which follow those of v, to v. It returns the
// torn rest, if there is one.
func (s *Session) read(ctx context.Context, v *view, data []byte) (torn *Damage) {
	groups, used, why, damages := parse(data)
	for _, d := range damages {
		d.ID = s.id
		d.Offset += v.offset
		s.options.Warn(ctx, d)
	}
	for _, g := range groups {
		v.history.apply(g)
	}
	v.offset += int64(used)
	if used == len(data) {
		return nil
	}
	return &Damage{ID: s.id, Offset: v.offset, Size: int64(len(data) - used), Cut: true, Why: why}
}

// Acquire waits until no other goroutine is within a turn of the session, and then
// reads what other processes have added to it. The caller has the session to itself
// until it calls release, which it may do more than once. Acquire is for
// conversations; other methods do not wait for it.
func (s *Session) Acquire(ctx context.Context) (release func(), err error) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	release = sync.OnceFunc(func() { <-s.turn })
	if err := s.Refresh(ctx); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// Refresh looks for what other processes have added to the session, or have left behind
// when they died, see [Draft]. [Session.Acquire] and everything that writes do so too.
func (s *Session) Refresh(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stored || len(s.pending) > 0 {
		return nil // what others added goes in front of what is pending when that is written
	}
	data, err := s.log.Tail(ctx, s.view.offset)
	if s.withdrawn(err) {
		return nil
	}
	if err != nil {
		return err
	}
	before := s.view.offset
	if s.read(ctx, &s.view, data); s.view.offset > before {
		s.noteForeignWrite()
	}
	if s.unkept {
		return nil
	}
	if err := s.recover(ctx); err != nil {
		s.options.Warn(ctx, fmt.Errorf("session %s: a question that was interrupted is not in it yet: %w", s.name(), err))
	}
	return nil
}

// ID returns what identifies the session. It changes at most once: when the session is
// first stored and another process has stored one of the same alias meanwhile, this
// one becomes that one.
func (s *Session) ID() ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// Scope returns whose session it is.
func (s *Session) Scope() Scope { return s.scope }

// Alias returns the alias, "" without one (yet).
func (s *Session) Alias() Alias {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Alias
}

// Name returns what people call the session: [TempName] if it is temporary, otherwise
// its alias, or its id if it has none.
func (s *Session) Name() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.name()
}

func (s *Session) name() string {
	switch {
	case s.temp:
		return TempName
	case s.state.Alias == "":
		return string(s.id)
	}
	return string(s.state.Alias)
}

// Temporary reports whether the session was begun without a name and has been given
// none. It may be stored nevertheless, under an alias made from the time. Opened
// again, it is a session like any other.
func (s *Session) Temporary() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.temp
}

// Stored reports whether the session is in its store.
func (s *Session) Stored() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stored
}

// CreationTime returns when the session began; the zero time if that is not known.
func (s *Session) CreationTime() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Created
}

// Settings returns a copy of the settings.
func (s *Session) Settings() Settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Settings.clone()
}

// Set changes settings. If that makes a difference the session is dirty.
func (s *Session) Set(change func(*Settings)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirty = s.set(change) || s.dirty
}

// Sync changes settings that follow from elsewhere, such as the variables of an agent.
// It does not make the session dirty; the change is stored along with the next one
// that does.
func (s *Session) Sync(change func(*Settings)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(change)
}

// KeepPlan keeps an accepted plan, in Markdown, and the mode that follows it, as Sync does.
func (s *Session) KeepPlan(markdown string, mode chat.Mode) {
	s.Sync(func(set *Settings) { set.Plan, set.Mode = s.options.hide(markdown), mode })
}

// KeepTodo keeps the todo list of the model, in JSON, as Sync does.
func (s *Session) KeepTodo(list string) {
	s.Sync(func(set *Settings) { set.Todo = s.options.hide(list) })
}

func (s *Session) set(change func(*Settings)) (changed bool) {
	next := s.state.Settings.clone()
	change(&next)
	next = next.clone() // change may have kept what it put in
	if next.Equal(s.state.Settings) {
		return false
	}
	s.state.Settings = next
	s.stale = true
	s.count()
	return true
}

// Messages returns the live messages. The list is the caller's, what is in it is not
// to be changed.
func (s *Session) Messages() []chat.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view.history.messages()
}

// CompactedMessages returns the messages that compactions have replaced, oldest first.
func (s *Session) CompactedMessages() []chat.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clip(s.view.history.compacted)
}

// Empty reports whether there are no live messages.
func (s *Session) Empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.view.history.live) == 0
}

// Tokens returns what the live messages count. It takes the same time however many
// there are.
func (s *Session) Tokens() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view.history.tokens()
}

// Usage returns what the model calls of the session used: those of all turns and
// compactions, whether or not their messages still count. What older versions recorded
// has no usage.
func (s *Session) Usage() chat.Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view.history.usage
}

// Glance returns the text of the first question and the number of turns, those too that
// compactions have replaced.
func (s *Session) Glance() (first string, turns int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &s.view.history
	return glance(append(slices.Clip(h.compacted), h.live[h.lead:]...))
}

// UserMessages returns how many live messages are the user's, examples of the role included.
func (s *Session) UserMessages() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, m := range s.view.history.live {
		if m.Question() {
			n++
		}
	}
	return n
}

// DataURLs returns where the images in the messages came from, see [State].
func (s *Session) DataURLs() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.state.DataURLs)
}

// Request returns the messages to send for in, see [Request].
func (s *Session) Request(in Input) []chat.Message {
	return Request(s.Messages(), in)
}
