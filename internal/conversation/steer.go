package conversation

import (
	"context"
	"fmt"
	"sync"

	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
)

// steering is what the user sends to the turn that is being answered.
type steering struct {
	mu    sync.Mutex
	inbox *run.Inbox    // of that turn; nil for none
	rest  []run.Message // that an answer did not use which ended early
}

func (s *steering) set(b *run.Inbox, rest []run.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inbox, s.rest = b, append(s.rest, rest...)
}

func (s *steering) current() *run.Inbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inbox
}

// Steer sends a text to the turn that is being answered: the model reads it after the next tool results, or else it is the next question of
// the turn. It may be called while another goroutine asks. The error is a [*run.RefusedError] if nothing is answered that takes a message.
func (c *Conversation) Steer(ctx context.Context, text string) error {
	b := c.steering.current()
	if b == nil {
		return run.Idle("")
	}
	_, err := b.Send(ctx, run.Now, text, "")
	return err
}

// UnreadSteering returns what the model has not read yet of what was sent with [Conversation.Steer]. It may be called like that.
func (c *Conversation) UnreadSteering() (texts []string) {
	if b := c.steering.current(); b != nil {
		for _, m := range b.WaitingMessages() {
			texts = append(texts, m.Text)
		}
	}
	return texts
}

// Unsteer takes back what was sent last, unless the model has read it; "" for nothing. It may be called like [Conversation.Steer].
func (c *Conversation) Unsteer(ctx context.Context) string {
	b := c.steering.current()
	if b == nil {
		return ""
	}
	if waiting := b.WaitingMessages(); len(waiting) > 0 {
		if m, ok, err := b.Withdraw(ctx, waiting[len(waiting)-1].ID); ok && err == nil {
			return m.Text
		}
	}
	return ""
}

// Unsaid returns, once, what was sent to answers that ended before the model read it.
func (c *Conversation) Unsaid() (texts []string) {
	c.steering.mu.Lock()
	defer c.steering.mu.Unlock()
	for _, m := range c.steering.rest {
		texts = append(texts, m.Text)
	}
	c.steering.rest = nil
	return texts
}

// listen lets users send messages to the turn until stop is called with its error. A user who is there gets back what was not used; what was sent
// to a server stays on record and is used when the run resumes.
func (t *turn) listen(ctx context.Context) (stop func(err error)) {
	c := t.c
	if t.child || c.options.Member != nil || t.q.Aside || t.form != nil || t.q.Code || t.q.Command || c.values.dryRun {
		return func(error) {}
	}
	b := run.InboxOf(ctx)
	if b == nil {
		b = new(run.Inbox)
	}
	t.req.Said = func(ctx context.Context, st steps.Steps, turn int, last bool) ([]chat.Message, error) {
		return t.hear(ctx, b, st, turn, last)
	}
	c.steering.set(b, nil)
	return func(err error) {
		rest := b.Close(context.WithoutCancel(ctx), err != nil && c.options.Interactive)
		c.steering.set(nil, rest)
	}
}

// hear returns what was sent since the model was called for a turn of a request. It is on record before it is used. In a turn that is resumed, what
// the model read before the interruption is read at the same place.
func (t *turn) hear(ctx context.Context, b *run.Inbox, st steps.Steps, turn int, last bool) ([]chat.Message, error) {
	key := fmt.Sprintf("said/%d", turn)
	heard, found, err := steps.ReadNote[[]run.Message](ctx, st, key)
	if err == nil && !found && !t.replays(ctx, st, turn+1) {
		heard, err = b.Take(ctx, st, key, last)
		if err == nil && len(heard) > 0 {
			err = steps.WriteNote(ctx, st, key, heard)
		}
	}
	var said []chat.Message
	for _, m := range heard {
		message := chat.Text(chat.User, m.Text)
		message.Steer = true
		said = append(said, message)
		if err == nil {
			err = t.rc.Events.Emit(ctx, event.Steered{ID: m.ID, Text: m.Text})
		}
	}
	return said, err
}

// replays reports whether the call of a model for a turn of a request is on record.
func (t *turn) replays(ctx context.Context, st steps.Steps, turn int) bool {
	if t.resumed == nil || !st.Recording() {
		return false
	}
	key := engine.ModelKey(turn)
	known, err := st.Recorder().Lookup(ctx, st.Key(key), steps.Step{Kind: steps.Model, Key: key})
	return err == nil && known.Done
}
