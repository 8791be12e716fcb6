package event

import (
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"time"

	"loki/internal/base/value"
)

// kind is what the program knows of a type of event beside its fields.
type kind struct {
	name      string
	transient bool
	parse     func(data []byte, d durations) (Body, error)
	texts     func(Body, Texts) Body // nil for a type without texts
}

// kinds returns the table with a row for each type of event. Besides it, a type needs its struct and its name in event.go.
var kinds = sync.OnceValue(func() map[string]kind {
	return table(
		row(nil, func(b *Started, f Texts) { f.in(&b.Prompt); b.State = f.members(b.State) }),
		row[ModelCall](nil, nil),
		row(nil, (*Request).mapTexts),
		transient(row(nil, func(b *Delta, f Texts) { f.in(&b.Text) })),
		transient(row(nil, func(b *Reasoning, f Texts) { f.in(&b.Text) })),
		row(nil, func(b *Reply, f Texts) { f.in(&b.Text) }),
		row(nil, func(b *ToolCall, f Texts) { f.in(&b.ID, &b.Name, &b.Arguments) }),
		row(nil, func(b *ToolResult, f Texts) { f.in(&b.ID, &b.Name, &b.Text, &b.Arguments, &b.OriginalArguments) }),
		transient(row(nil, func(b *ToolOutput, f Texts) { f.in(&b.Name, &b.Text) })),
		row[StepStarted](nil, nil),
		row[StepFinished](nil, nil),
		row[NodeStarted](nil, nil),
		row(func(b *NodeFinished) spans { return spans{took: &b.Duration} }, func(b *NodeFinished, f Texts) { f.in(&b.Error); b.Edges = f.list(b.Edges) }),
		transient(row(nil, func(b *MapProgress, f Texts) { b.FailedItems = f.list(b.FailedItems) })),
		row(nil, func(b *StateUpdated, f Texts) { b.Values = f.members(b.Values) }),
		row(nil, func(b *Question, f Texts) {
			f.in(&b.Text)
			b.Options = f.list(b.Options)
			if b.Default != nil {
				text := f(*b.Default)
				b.Default = &text
			}
		}),
		row(nil, func(b *Answer, f Texts) { f.in(&b.Text) }),
		row[Waiting](nil, nil),
		row(nil, func(b *Undoing, f Texts) { f.in(&b.Error) }),
		row(nil, func(b *Signal, f Texts) { b.Value = f.Value(b.Value) }),
		row(func(b *Retry) spans { return spans{wait: &b.Wait} }, func(b *Retry, f Texts) { f.in(&b.Error) }),
		transient(row[Limited](nil, nil)),
		row[CompressionStarted](nil, nil),
		row(nil, func(b *CompressionFinished, f Texts) { f.in(&b.Recap, &b.Error) }),
		row(nil, func(b *SessionNamed, f Texts) { f.in(&b.Title) }),
		row[ServersStarting](nil, nil),
		row[ServersStarted](nil, nil),
		row(nil, func(b *Warning, f Texts) { f.in(&b.Text) }),
		row[AgentWaits](nil, nil),
		row(nil, func(b *TodoUpdated, f Texts) {
			f.in(&b.Goal)
			b.Todos = slices.Clone(b.Todos)
			for i := range b.Todos {
				f.in(&b.Todos[i].Desc)
			}
		}),
		row[AutoContinue](nil, nil),
		row[Instructions](nil, nil),
		row[SkillLoaded](nil, nil),
		row(nil, func(b *JobStarted, f Texts) { f.in(&b.Command) }),
		row(nil, func(b *JobEnded, f Texts) { f.in(&b.Command, &b.Notice) }),
		row(nil, func(b *Memory, f Texts) {
			b.Facts = slices.Clone(b.Facts)
			for i := range b.Facts {
				f.in(&b.Facts[i].Title)
			}
		}),
		row(nil, func(b *Plan, f Texts) {
			f.in(&b.Title, &b.Summary, &b.Reason)
			b.Open, b.Steps = f.list(b.Open), slices.Clone(b.Steps)
			for i := range b.Steps {
				s := &b.Steps[i]
				f.in(&s.Text)
				s.Files, s.Commands = f.list(s.Files), f.list(s.Commands)
			}
		}),
		row(nil, func(b *MessageSent, f Texts) { f.in(&b.Text) }),
		row(nil, func(b *Steered, f Texts) { f.in(&b.Text) }),
		row(nil, func(b *TaskUpdated, f Texts) { f.in(&b.Subject) }),
		row(nil, func(b *Escalation, f Texts) { f.in(&b.Text); b.Options = f.list(b.Options) }),
		row(nil, func(b *EscalationAnswered, f Texts) { f.in(&b.Text) }),
		row[IndexStarted](nil, nil),
		transient(row(func(b *IndexProgress) spans { return spans{took: &b.Elapsed, left: &b.Left} }, func(b *IndexProgress, f Texts) { f.in(&b.Document) })),
		row(func(b *IndexFinished) spans { return spans{took: &b.Duration} }, func(b *IndexFinished, f Texts) { f.in(&b.Error); b.PassedOver = f.list(b.PassedOver) }),
		row(func(b *Retrieved) spans { return spans{took: &b.Duration} }, func(b *Retrieved, f Texts) {
			f.in(&b.Query)
			b.Sources = slices.Clone(b.Sources)
			for i := range b.Sources {
				f.in(&b.Sources[i].Path)
			}
		}),
		row(func(b *Finished) spans { return spans{took: &b.Duration} }, func(b *Finished, f Texts) { f.in(&b.Output, &b.Error) }),
	)
})

// row returns the row of a type. spansOf returns where its durations are, texts changes its texts in place and replaces its slices;
// each is nil for none.
func row[B Body](spansOf func(*B) spans, texts func(*B, Texts)) kind {
	var zero B
	k := kind{name: zero.Type(), parse: func(data []byte, d durations) (Body, error) {
		var b B
		err := json.Unmarshal(data, &b)
		if spansOf != nil {
			d.set(spansOf(&b))
		}
		return b, err
	}}
	if texts != nil {
		k.texts = func(body Body, f Texts) Body { b := body.(B); texts(&b, f); return b }
	}
	return k
}

// transient marks the row of a type of which there are many and which a slow reader may drop.
func transient(k kind) kind {
	k.transient = true
	return k
}

func table(rows ...kind) map[string]kind {
	t := make(map[string]kind, len(rows))
	for _, k := range rows {
		t[k.name] = k
	}
	return t
}

// IsTransient reports whether b is a piece of a text or the progress of some work. A slow reader may drop it, because a later event has all of
// the text or the result. Neither records nor logs have it.
func IsTransient(b Body) bool { return kinds()[b.Type()].transient }

// spans is where a body has durations, nil for those it does not have.
type spans struct{ took, wait, left *time.Duration }

// durations are those of an event in JSON, in seconds.
type durations struct {
	Took float64 `json:"seconds"`
	Wait float64 `json:"wait_seconds"`
	Left float64 `json:"left_seconds"`
}

// marshal returns body as an object with the durations as its last members, in seconds with six decimals at most. No time left is not a member.
func (s spans) marshal(body any) ([]byte, error) {
	data, err := value.Marshal(body)
	if err != nil {
		return nil, err
	}
	data = data[:len(data)-1]
	for _, m := range []struct {
		name string
		d    *time.Duration
	}{{`,"seconds":`, s.took}, {`,"wait_seconds":`, s.wait}, {`,"left_seconds":`, s.left}} {
		if m.d != nil && (m.d != s.left || m.d.Microseconds() != 0) {
			data = strconv.AppendFloat(append(data, m.name...), float64(m.d.Microseconds())/1e6, 'f', -1, 64)
		}
	}
	return append(data, '}'), nil
}

func (d durations) set(s spans) {
	seconds := []float64{d.Took, d.Wait, d.Left}
	for i, to := range []*time.Duration{s.took, s.wait, s.left} {
		if to != nil {
			*to = time.Duration(seconds[i] * float64(time.Second)).Round(time.Microsecond)
		}
	}
}

// Texts changes a text, such as to hide secrets in it.
type Texts func(string) string

// Body returns b with the texts of the user, models and tools changed. What b refers to stays as it is.
func (f Texts) Body(b Body) Body {
	if k := kinds()[b.Type()]; k.texts != nil {
		return k.texts(b, f)
	}
	return b
}

// Value returns v with all texts and names of members changed.
func (f Texts) Value(v value.Value) value.Value {
	if text, ok := v.AsString(); ok {
		if changed := f(text); changed != text {
			return value.Of(changed)
		}
		return v
	}
	if list, ok := v.AsList(); ok {
		items := make([]value.Value, 0, list.Len())
		for _, item := range list.All() {
			items = append(items, f.Value(item))
		}
		return value.ListOf(items...).Value()
	}
	o := v.AsObject()
	if o == nil {
		return v
	}
	members := make([]value.Member, 0, o.Len())
	for name, member := range o.All() {
		members = append(members, value.Member{Name: f(name), Value: f.Value(member)})
	}
	return value.ObjectOf(members...).Value()
}

func (f Texts) in(texts ...*string) {
	for _, text := range texts {
		*text = f(*text)
	}
}

func (f Texts) list(texts []string) []string {
	texts = slices.Clone(texts)
	for i := range texts {
		f.in(&texts[i])
	}
	return texts
}

func (f Texts) members(list []value.Member) []value.Member {
	list = slices.Clone(list)
	for i, m := range list {
		list[i] = value.Member{Name: f(m.Name), Value: f.Value(m.Value)}
	}
	return list
}

// raw changes a text of JSON. nil stays nil.
func (f Texts) raw(text json.RawMessage) json.RawMessage {
	if text == nil {
		return nil
	}
	return json.RawMessage(f(string(text)))
}

func (b *Request) mapTexts(f Texts) {
	b.Tools, b.Messages, b.Schema = slices.Clone(b.Tools), slices.Clone(b.Messages), f.raw(b.Schema)
	for i := range b.Tools {
		t := &b.Tools[i]
		t.Description, t.Parameters = f(t.Description), f.raw(t.Parameters)
	}
	for i := range b.Messages {
		m := &b.Messages[i]
		m.Parts, m.ToolCalls = slices.Clone(m.Parts), slices.Clone(m.ToolCalls)
		for k := range m.Parts {
			f.in(&m.Parts[k].Text, &m.Parts[k].URL)
		}
		for k := range m.ToolCalls {
			f.in(&m.ToolCalls[k].Name, &m.ToolCalls[k].Arguments)
		}
		f.in(&m.ToolName)
	}
}
