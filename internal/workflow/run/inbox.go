package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/text"
)

// Names of the messages that users send to a turn while it works. On record they are signals.
const (
	Now  = "now"  // after the next tool results, or when the answer is complete
	Next = "next" // when the answer is complete
)

// Limits of the messages that wait.
const (
	maxMessages     = 20
	maxMessageBytes = 64 << 10
)

// Withdrawn is what [Signal].Taken says of a message that was withdrawn.
const Withdrawn = "withdrawn"

// Message is a message of a user to a turn.
type Message struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// Inbox has the messages to the turn of a conversation, or of a plain agent, while it works. Those to a recorded run are on record before
// [Inbox.Send] returns. It may be used from several goroutines.
type Inbox struct {
	store Store  // nil for a turn that is not recorded
	id    string // of the run

	mu     sync.Mutex // held while messages are kept or taken, so that none comes between the last look and the end
	closed bool
	loaded bool     // the record was looked at
	sent   []Signal // as far as this process knows
}

// NewInbox returns the inbox of a run on record.
func NewInbox(store Store, id string) *Inbox { return &Inbox{store: store, id: id} }

type inboxKey struct{}

// WithInbox returns a context for the work of a run with an inbox.
func WithInbox(ctx context.Context, b *Inbox) context.Context {
	return context.WithValue(ctx, inboxKey{}, b)
}

// InboxOf returns the inbox of the run that works with ctx, nil for none.
func InboxOf(ctx context.Context) *Inbox {
	b, _ := ctx.Value(inboxKey{}).(*Inbox)
	return b
}

// Idle is the error of a message to a run that takes none.
func Idle(id string) error {
	return &RefusedError{fault.New(fault.Usage, "%s takes no messages now: it is not answering", strings.TrimSpace("run "+id)).WithHint("ask a new question")}
}

// Send keeps a message. A key that is on record sends nothing again. The error is a [*RefusedError] if the turn has ended, or has too
// many messages.
func (b *Inbox) Send(ctx context.Context, name, said, key string) (Signal, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	waiting, size := 0, len(said)
	for _, s := range b.sent {
		if s.Taken == "" {
			waiting++
			size += len(s.Value)
		}
	}
	switch {
	case b.closed:
		return Signal{}, Idle(b.id)
	case waiting >= maxMessages || size > maxMessageBytes:
		return Signal{}, &RefusedError{fault.New(fault.Usage, "%s wait already, and there is room for %d of %d KiB in all", text.Count(waiting, "message"), maxMessages, maxMessageBytes>>10)}
	}
	value, err := json.Marshal(said)
	if err != nil {
		return Signal{}, err
	}
	s := Signal{Number: len(b.sent) + 1, Name: name, Value: value, At: time.Now(), Key: key}
	if b.store != nil {
		s, err = b.store.Signal(ctx, b.id, name, value, key)
		if _, ended := errors.AsType[*EndedError](err); ended {
			err = Idle(b.id)
		}
		if err != nil {
			return Signal{}, err
		}
	}
	if !slices.ContainsFunc(b.sent, func(other Signal) bool { return other.Number == s.Number }) {
		b.sent = append(b.sent, s)
	}
	return s, nil
}

// WaitingMessages returns the messages that were not taken yet.
func (b *Inbox) WaitingMessages() (waiting []Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.sent {
		if s.Taken == "" {
			waiting = append(waiting, messageOf(s))
		}
	}
	return waiting
}

func messageOf(s Signal) Message {
	m := Message{ID: strconv.Itoa(s.Number)}
	_ = json.Unmarshal(s.Value, &m.Text) // Send has written it
	return m
}

// Withdraw withdraws the message with an id. It reports false if there is none, or it was taken.
func (b *Inbox) Withdraw(ctx context.Context, id string) (m Message, ok bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.load(ctx); err != nil {
		return Message{}, false, err
	}
	i := slices.IndexFunc(b.sent, func(s Signal) bool { return strconv.Itoa(s.Number) == id && s.Taken == "" })
	if i < 0 {
		return Message{}, false, nil
	}
	if ok = true; b.store != nil {
		ok, err = b.store.Withdraw(ctx, b.id, b.sent[i].Number)
	}
	if ok {
		b.sent[i].Taken = Withdrawn
	}
	return messageOf(b.sent[i]), ok, err
}

// Take takes the messages that wait, in the order in which they came, those for now first. Last says that the answer is complete: then it
// takes those for next, too, and if there are none the inbox is closed, until the next Take. The key names the call; messages of a recorded run
// that were taken with it before an interruption are returned again.
func (b *Inbox) Take(ctx context.Context, st steps.Steps, key string, last bool) (taken []Message, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.load(ctx); err != nil {
		return nil, err
	}
	names := []string{Now}
	if last {
		names = append(names, Next)
	}
	for _, name := range names {
		for len(b.sent) > 0 {
			s, ok, err := b.first(ctx, st, name, fmt.Sprintf("%s/%d", key, len(taken)))
			if err != nil {
				return taken, err
			}
			if !ok {
				break
			}
			taken = append(taken, messageOf(s))
		}
	}
	b.closed = last && len(taken) == 0
	return taken, nil
}

// load looks for messages on record: messages from before an interruption, and messages that other servers got.
func (b *Inbox) load(ctx context.Context) error {
	_, shared := b.store.(Shared) // others may have added some
	if b.store == nil || b.loaded && !shared {
		return nil
	}
	sent, err := b.store.Signals(ctx, b.id)
	if err == nil {
		b.sent, b.loaded = sent, true
	}
	return err
}

// first takes the first message with a name.
func (b *Inbox) first(ctx context.Context, st steps.Steps, name, by string) (Signal, bool, error) {
	s, ok := FirstOf(b.sent, name, by, time.Time{})
	if r, recorded := st.Recorder().(WaitRecorder); recorded && b.store != nil {
		var err error
		if s, ok, err = r.Take(ctx, name, st.Key(by), time.Time{}); err != nil || !ok {
			return s, false, err
		}
	}
	if !ok {
		return s, false, nil
	}
	for i := range b.sent {
		if b.sent[i].Number == s.Number {
			b.sent[i].Taken = by
		}
	}
	return s, true, nil
}

// Close ends the inbox: it takes no more messages. With withdraw, messages that were not taken are withdrawn and returned.
func (b *Inbox) Close(ctx context.Context, withdraw bool) (rest []Message) {
	if withdraw {
		for _, m := range b.WaitingMessages() {
			if m, ok, err := b.Withdraw(ctx, m.ID); ok && err == nil {
				rest = append(rest, m)
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return rest
}
