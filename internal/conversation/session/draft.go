package session

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"

	"loki/internal/llm/chat"
)

// Interrupted is the text that replaces an interrupted answer, or ends its partial text.
const Interrupted = "[The answer was interrupted.]"

// Draft is a turn that is being answered. If turns of the session are written at once, as by
// [Session.Append], the question and the rounds of tool calls are kept beside the log:
// should the process die, the next one that acquires the session finds them in it, marked as
// interrupted. A draft belongs to one goroutine and ends with Finish, Interrupt or Discard.
type Draft struct {
	session *Session
	turn    Turn
	file    DraftFile // nil if the session is not to be saved
	created bool      // the session was stored for the draft's sake
}

// NewTurnID returns an id that no other turn has.
func NewTurnID() string { return rand.Text()[:10] }

// Begin records a turn that is about to be answered. Its Reply is empty.
func (s *Session) Begin(ctx context.Context, t Turn) (*Draft, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.ID = cmp.Or(t.ID, NewTurnID())
	d := &Draft{session: s, turn: t}
	if !s.due() {
		return d, nil
	}
	s.noteSources(t.DataURLs)
	ctx = context.WithoutCancel(ctx)
	if err := s.own(ctx); err != nil {
		return d, err
	}
	var err error
	for range 2 { // another process may withdraw what it began
		if !s.stored {
			id := s.id
			if err := s.create(ctx); err != nil {
				return d, err
			}
			d.created = s.id == id // else it became another one
		}
		d.file, err = s.log.NewDraft(ctx)
		if !s.withdrawn(err) {
			break
		}
	}
	if err != nil {
		d.file = nil
		return d, err
	}
	first := turnOp{role: t.Role, user: t.User, draft: t.ID, at: s.now()}
	g, ok := first.group(&s.view.history)
	if !ok {
		return d, nil
	}
	return d, d.write(g)
}

// withdrawn reports whether err says that the session is gone, which another process had
// begun and nothing was said in. It is then one that is not stored yet.
func (s *Session) withdrawn(err error) bool {
	if !errors.Is(err, ErrNotFound) || s.view.offset > 0 || len(s.view.history.live) > 0 {
		return false
	}
	s.stored, s.adopt = false, s.state.Alias != "" && !s.temp
	return true
}

func (d *Draft) write(g group) error {
	if d.file == nil {
		return nil
	}
	data, err := d.session.options.encode(g)
	if err != nil {
		return err
	}
	return d.file.Append(data)
}

// Add notes a finished round: a message with tool calls, and their results.
func (d *Draft) Add(round []chat.Message) error {
	d.turn.Reply = append(d.turn.Reply, round...)
	return d.write(group{mark: mark{Mark: markRound, Messages: len(round), At: d.session.now()}, messages: round})
}

// Rounds reports whether there are finished rounds.
func (d *Draft) Rounds() bool { return len(d.turn.Reply) > 0 }

// Finish records the turn, as [Session.Append] does.
func (d *Draft) Finish(ctx context.Context, reply []chat.Message, usage chat.Usage) error {
	d.turn.Reply, d.turn.Usage = reply, usage
	return d.record(ctx, d.turn, false)
}

// Interrupt records the question, the finished rounds and text, which is what came after
// them, marked as interrupted.
func (d *Draft) Interrupt(ctx context.Context, text string, usage chat.Usage) error {
	t := d.turn
	t.Reply, t.Usage = markInterrupted(t.Reply, text), usage
	return d.record(ctx, t, true)
}

// CutOff returns a reply that was interrupted, marked so.
func CutOff(reply []chat.Message) []chat.Message {
	n := len(reply)
	if n == 0 || reply[n-1].Role != chat.Assistant || len(reply[n-1].ToolCalls) > 0 {
		return markInterrupted(reply, "")
	}
	return markInterrupted(reply[:n-1], reply[n-1].Text())
}

// Uncut returns a reply without the mark of an interruption.
func Uncut(reply []chat.Message) []chat.Message {
	n := len(reply)
	if n == 0 {
		return reply
	}
	end := withoutMark(reply[n-1])
	if reply = slices.Clone(reply[:n-1]); end.Role == chat.Assistant && len(end.ToolCalls) == 0 && end.Text() == "" {
		return reply
	}
	return append(reply, end)
}

// withoutMark returns m without the mark of an interruption at its end.
func withoutMark(m chat.Message) chat.Message {
	text, marked := strings.CutSuffix(m.Text(), Interrupted)
	if m.Role != chat.Assistant || !marked {
		return m
	}
	return chat.Text(chat.Assistant, strings.TrimSuffix(text, "\n\n"))
}

func markInterrupted(rounds []chat.Message, text string) []chat.Message {
	if text = strings.TrimRight(text, " \t\n"); text != "" {
		text += "\n\n"
	}
	return append(slices.Clone(rounds), chat.Text(chat.Assistant, text+Interrupted))
}

func (d *Draft) record(ctx context.Context, t Turn, cut bool) error {
	err := d.session.append(ctx, t, func(o *turnOp) { o.interrupted = cut })
	if d.file == nil {
		return err
	}
	if err != nil {
		return errors.Join(err, d.file.Close()) // what it holds may yet be of use
	}
	return d.file.Remove()
}

// Discard forgets the turn, and the session if it was stored for its sake.
func (d *Draft) Discard(ctx context.Context) error {
	if d.file == nil {
		return nil
	}
	err := d.file.Remove()
	if err != nil || !d.created {
		return err
	}
	s := d.session
	s.mu.Lock()
	defer s.mu.Unlock()
	gone, err := s.log.Withdraw(context.WithoutCancel(ctx), 0)
	if gone {
		s.stored, s.adopt = false, s.state.Alias != "" && !s.temp
	}
	return err
}

// recover records the turns of processes that died while they were answered. The caller
// holds mu.
func (s *Session) recover(ctx context.Context) error {
	files, err := s.log.AbandonedDrafts(ctx)
	for _, f := range files {
		data, readErr := f.Data()
		if readErr != nil {
			err = errors.Join(err, readErr, f.Close())
			continue
		}
		if o, ok := abandonedTurn(data); ok {
			if writeErr := s.commit(ctx, o); writeErr != nil {
				err = errors.Join(err, writeErr, f.Close())
				continue
			}
		}
		err = errors.Join(err, f.Remove())
	}
	return err
}

// abandonedTurn returns the turn that is in the data of a draft; ok is false if the
// process died before even the question was there.
func abandonedTurn(data []byte) (o turnOp, ok bool) {
	groups, _, _, _ := parse(data)
	if len(groups) == 0 || groups[0].Mark != markTurn || len(groups[0].messages) == 0 {
		return turnOp{}, false
	}
	first := groups[0]
	o = turnOp{draft: first.Draft, abandoned: true, interrupted: true, at: first.At}
	last := len(first.messages) - 1
	o.role, o.user = first.messages[:last], first.messages[last]
	for _, g := range groups[1:] {
		if g.Mark == markRound {
			o.reply = append(o.reply, g.messages...)
		}
	}
	o.reply = markInterrupted(o.reply, "")
	return o, true
}
