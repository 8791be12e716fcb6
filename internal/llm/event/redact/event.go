package redact

import (
	"context"
	"slices"
	"strings"

	"loki/internal/llm/event"
)

// Emitter returns an emitter that passes events on without secrets. A secret that comes in
// pieces of an answer is found, too: the beginning of one is withheld until what follows
// shows whether it is.
func (s *Secrets) Emitter(next event.Emitter) event.Emitter {
	if s == nil || next == nil {
		return next
	}
	return &emitter{secrets: s, next: next, held: make(map[stream]string)}
}

// emitter is what [Secrets.Emitter] returns. Calls never overlap.
type emitter struct {
	secrets *Secrets
	next    event.Emitter
	held    map[stream]string
}

// stream is where pieces of one text come from.
type stream struct {
	event.Place
	reasoning bool
}

// Emit implements [event.Emitter].
func (e *emitter) Emit(ctx context.Context, ev event.Event) error {
	if e.secrets.table.Load() == nil {
		return e.next.Emit(ctx, ev)
	}
	switch body := ev.Body.(type) {
	case event.Delta:
		return e.pass(ctx, ev, stream{ev.Place(), false}, body.Text)
	case event.Reasoning:
		return e.pass(ctx, ev, stream{ev.Place(), true}, body.Text)
	case event.Retry: // what came is void
		delete(e.held, stream{ev.Place(), true})
		delete(e.held, stream{ev.Place(), false})
	}
	if err := e.release(ctx, ev); err != nil {
		return err
	}
	ev.Body = event.Texts(e.secrets.Text).Body(ev.Body)
	return e.next.Emit(ctx, ev)
}

// pass emits what can be shown of a stream to which ev adds text.
func (e *emitter) pass(ctx context.Context, ev event.Event, from stream, text string) error {
	shown, rest := e.secrets.Piece(e.held[from] + text)
	if e.held[from] = rest; rest == "" {
		delete(e.held, from)
	}
	if shown == "" {
		return nil
	}
	return e.emit(ctx, ev, from, shown)
}

// emit emits a text of a stream, which ends before or at ev.
func (e *emitter) emit(ctx context.Context, ev event.Event, from stream, text string) error {
	ev.Body = event.Delta{Text: text}
	if from.reasoning {
		ev.Body = event.Reasoning{Text: text}
	}
	return e.next.Emit(ctx, ev)
}

// Piece returns what can be shown of a text that continues, and the rest of it, which may be the beginning of a secret.
func (s *Secrets) Piece(text string) (shown, rest string) {
	var t *table
	if s != nil {
		t = s.table.Load()
	}
	if t == nil {
		return text, ""
	}
	var b strings.Builder
	pos := 0
	in := t.search(text)
	for at, f, ok := in.next(0); ok; at, f, ok = in.next(pos) {
		if t.mayGrow(text[at:], f) {
			b.WriteString(text[pos:at])
			return b.String(), text[at:]
		}
		b.WriteString(text[pos:at] + found{form: f}.mark())
		pos = at + len(f.text)
	}
	end := len(text) - t.partialSecret(text[pos:])
	b.WriteString(text[pos:end])
	return b.String(), text[end:]
}

// mayGrow reports whether text, which begins with f, may be the beginning of a longer form, as the first line of a secret of several is.
func (t *table) mayGrow(text string, f form) bool {
	return slices.ContainsFunc(t.forms, func(o form) bool {
		return len(o.text) > len(f.text) && len(o.text) > len(text) && strings.HasPrefix(o.text, text)
	})
}

// partialSecret returns how many bytes at the end of text may be the beginning of a secret.
func (t *table) partialSecret(text string) int {
	longest := 0
	for _, f := range t.forms {
		for n := min(len(f.text)-1, len(text)); n > longest; n-- {
			if strings.HasSuffix(text, f.text[:n]) {
				longest = n
			}
		}
	}
	return longest
}

// release emits the withheld text of the streams of an event's source: it was not the beginning of a secret.
func (e *emitter) release(ctx context.Context, ev event.Event) error {
	for _, reasoning := range []bool{true, false} {
		from := stream{ev.Place(), reasoning}
		text := e.held[from]
		if text == "" {
			continue
		}
		delete(e.held, from)
		if err := e.emit(ctx, ev, from, e.secrets.Text(text)); err != nil {
			return err
		}
	}
	return nil
}
