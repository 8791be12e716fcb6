package redact

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"loki/internal/base/value"
	"loki/internal/llm/event"
)

// Value returns v with marks in place of the secrets in its texts and names.
func (s *Secrets) Value(v value.Value) value.Value {
	if s == nil || s.table.Load() == nil {
		return v
	}
	return s.value(v)
}

func (s *Secrets) value(v value.Value) value.Value {
	if text, ok := v.AsString(); ok {
		if shown := s.Text(text); shown != text {
			return value.Of(shown)
		}
		return v
	}
	if list, ok := v.AsList(); ok {
		items := make([]value.Value, 0, list.Len())
		for _, item := range list.All() {
			items = append(items, s.value(item))
		}
		return value.ListOf(items...).Value()
	}
	o := v.AsObject()
	if o == nil {
		return v
	}
	members := make([]value.Member, 0, o.Len())
	for name, member := range o.All() {
		members = append(members, value.Member{Name: s.Text(name), Value: s.value(member)})
	}
	return value.ObjectOf(members...).Value()
}

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
	run, agentID, node string
	step, item         int
	reasoning          bool
}

func streamOf(src event.Source, reasoning bool) stream {
	st := stream{src.Run, src.AgentID, src.Node, src.Step, -1, reasoning}
	if src.Item != nil {
		st.item = *src.Item
	}
	return st
}

// Emit implements [event.Emitter].
func (e *emitter) Emit(ctx context.Context, ev event.Event) error {
	t := e.secrets.table.Load()
	if t == nil {
		return e.next.Emit(ctx, ev)
	}
	switch body := ev.Body.(type) {
	case event.Delta:
		if body.Text = e.piece(t, streamOf(ev.Source, false), body.Text); body.Text == "" {
			return nil
		}
		ev.Body = body
		return e.next.Emit(ctx, ev)
	case event.Reasoning:
		if body.Text = e.piece(t, streamOf(ev.Source, true), body.Text); body.Text == "" {
			return nil
		}
		ev.Body = body
		return e.next.Emit(ctx, ev)
	case event.Retry: // what came is void
		delete(e.held, streamOf(ev.Source, true))
		delete(e.held, streamOf(ev.Source, false))
	}
	if err := e.release(ctx, ev); err != nil {
		return err
	}
	ev.Body = e.secrets.body(ev.Body)
	return e.next.Emit(ctx, ev)
}

// piece returns what can be shown of a stream to which text was added.
func (e *emitter) piece(t *table, from stream, text string) string {
	text = e.held[from] + text
	delete(e.held, from)
	var b strings.Builder
	pos := 0
	in := t.search(text)
	for at, f, ok := in.next(0); ok; at, f, ok = in.next(pos) {
		if t.mayGrow(text[at:], f) {
			b.WriteString(text[pos:at])
			e.held[from] = text[at:]
			return b.String()
		}
		b.WriteString(text[pos:at] + found{form: f}.mark())
		pos = at + len(f.text)
	}
	rest := text[pos:]
	if n := t.begun(rest); n > 0 {
		e.held[from] = rest[len(rest)-n:]
		rest = rest[:len(rest)-n]
	}
	b.WriteString(rest)
	return b.String()
}

// mayGrow reports whether text, which begins with f, may be the beginning of a longer form, as the first line of a secret of several is.
func (t *table) mayGrow(text string, f form) bool {
	return slices.ContainsFunc(t.forms, func(o form) bool {
		return len(o.text) > len(f.text) && len(o.text) > len(text) && strings.HasPrefix(o.text, text)
	})
}

// begun returns how many bytes at the end of text may be the beginning of a secret.
func (t *table) begun(text string) int {
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
		from := streamOf(ev.Source, reasoning)
		text := e.held[from]
		if text == "" {
			continue
		}
		delete(e.held, from)
		text, held := e.secrets.Text(text), ev
		held.Body = event.Delta{Text: text}
		if reasoning {
			held.Body = event.Reasoning{Text: text}
		}
		if err := e.next.Emit(ctx, held); err != nil {
			return err
		}
	}
	return nil
}

// body returns what happened without secrets.
func (s *Secrets) body(b event.Body) event.Body {
	switch b := b.(type) {
	case event.Request:
		return s.request(b)
	case event.Reply:
		b.Text = s.Text(b.Text)
		return b
	case event.ToolCall:
		b.ID, b.Name, b.Arguments = s.Text(b.ID), s.Text(b.Name), s.Text(b.Arguments)
		return b
	case event.ToolResult:
		b.ID, b.Name, b.Text = s.Text(b.ID), s.Text(b.Name), s.Text(b.Text)
		return b
	case event.ToolOutput:
		b.Name, b.Text = s.Text(b.Name), s.Text(b.Text)
		return b
	case event.MapProgress:
		b.FailedItems = s.texts(b.FailedItems)
		return b
	case event.NodeFinished:
		b.Error, b.Edges = s.Text(b.Error), s.texts(b.Edges)
		return b
	case event.StateUpdated:
		b.Values = s.members(b.Values)
		return b
	case event.Question:
		b.Text = s.Text(b.Text)
		b.Options = s.texts(b.Options)
		if b.Default != nil {
			text := s.Text(*b.Default)
			b.Default = &text
		}
		return b
	case event.Signal:
		b.Value = s.value(b.Value)
		return b
	case event.Answer:
		b.Text = s.Text(b.Text)
		return b
	case event.Retry:
		b.Error = s.Text(b.Error)
		return b
	case event.Undoing:
		b.Error = s.Text(b.Error)
		return b
	case event.Warning:
		b.Text = s.Text(b.Text)
		return b
	case event.CompressionFinished:
		b.Recap, b.Error = s.Text(b.Recap), s.Text(b.Error)
		return b
	case event.SessionNamed:
		b.Title = s.Text(b.Title)
		return b
	case event.IndexProgress:
		b.Document = s.Text(b.Document)
		return b
	case event.IndexFinished:
		b.Error, b.PassedOver = s.Text(b.Error), slices.Clone(b.PassedOver)
		for i, path := range b.PassedOver {
			b.PassedOver[i] = s.Text(path)
		}
		return b
	case event.Retrieved:
		b.Query, b.Sources = s.Text(b.Query), slices.Clone(b.Sources)
		for i, p := range b.Sources {
			b.Sources[i].Path = s.Text(p.Path)
		}
		return b
	case event.Started:
		b.Prompt, b.State = s.Text(b.Prompt), s.members(b.State)
		return b
	case event.TodoUpdated:
		b.Goal, b.Todos = s.Text(b.Goal), slices.Clone(b.Todos)
		for i, todo := range b.Todos {
			b.Todos[i].Desc = s.Text(todo.Desc)
		}
		return b
	case event.MessageSent:
		b.Text = s.Text(b.Text)
		return b
	case event.TaskUpdated:
		b.Subject = s.Text(b.Subject)
		return b
	case event.Escalation:
		b.Text, b.Options = s.Text(b.Text), s.texts(b.Options)
		return b
	case event.EscalationAnswered:
		b.Text = s.Text(b.Text)
		return b
	case event.Finished:
		b.Output, b.Error = s.Text(b.Output), s.Text(b.Error)
		return b
	}
	return b
}

// texts returns a list of texts without secrets.
func (s *Secrets) texts(list []string) []string {
	list = slices.Clone(list)
	for i, text := range list {
		list[i] = s.Text(text)
	}
	return list
}

// request returns what a dry run would send without secrets. The originals stay as they are.
func (s *Secrets) request(b event.Request) event.Request {
	b.Tools = slices.Clone(b.Tools)
	for i, t := range b.Tools {
		b.Tools[i].Description, b.Tools[i].Parameters = s.Text(t.Description), s.raw(t.Parameters)
	}
	b.Messages = slices.Clone(b.Messages)
	for i, m := range b.Messages {
		m.Parts, m.ToolCalls = slices.Clone(m.Parts), slices.Clone(m.ToolCalls)
		for k, part := range m.Parts {
			m.Parts[k].Text, m.Parts[k].URL = s.Text(part.Text), s.Text(part.URL)
		}
		for k, call := range m.ToolCalls {
			m.ToolCalls[k].Name, m.ToolCalls[k].Arguments = s.Text(call.Name), s.Text(call.Arguments)
		}
		m.ToolName = s.Text(m.ToolName)
		b.Messages[i] = m
	}
	b.Schema = s.raw(b.Schema)
	return b
}

// raw returns a JSON text without secrets, nil for nil.
func (s *Secrets) raw(text json.RawMessage) json.RawMessage {
	if text == nil {
		return nil
	}
	return json.RawMessage(s.Text(string(text)))
}

// members returns members with redacted names and values.
func (s *Secrets) members(list []value.Member) []value.Member {
	list = slices.Clone(list)
	for i, m := range list {
		list[i] = value.Member{Name: s.Text(m.Name), Value: s.value(m.Value)}
	}
	return list
}
