package app

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"

	"loki/internal/chat"
	"loki/internal/engine"
	"loki/internal/fault"
	"loki/internal/provider"
	"loki/internal/schema"
	"loki/internal/value"
)

// Form is a JSON Schema that an answer has to satisfy.
type Form struct {
	name   string // for messages
	source value.Value
	schema *schema.Schema
}

// LoadForm reads a JSON Schema from a file. The error is of code NotFound if there is no
// such file, and else of code Usage.
func LoadForm(file string) (*Form, error) {
	failed := func(err error) (*Form, error) { return nil, fault.Wrap(fault.Usage, err, "schema %s", file) }
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "schema %s: there is no such file", file)
	}
	if err != nil {
		return failed(err)
	}
	if line, column, err := value.JSONErrorPlace(data); err != nil {
		return nil, fault.Wrap(fault.Usage, err, "schema %s:%d:%d", file, line, column)
	}
	v, err := value.ParseJSON(data)
	if err != nil {
		return failed(err)
	}
	s, err := schema.Compile(v)
	if invalid, ok := errors.AsType[*schema.InvalidError](err); ok {
		line, column := value.JSONPlace(data, invalid.Violations[0].Path)
		return nil, fault.Wrap(fault.Usage, err, "schema %s:%d:%d", file, line, column)
	}
	if err != nil {
		return failed(err)
	}
	return &Form{name: file, source: v, schema: s}, nil
}

// Source returns the schema as compact JSON.
func (f *Form) Source() string { return string(f.source.AppendJSON(nil)) }

// format returns the form as providers take it.
func (f *Form) format() *provider.Format { return &provider.Format{Schema: f.source} }

// hint asks for the form behind a question.
func (f *Form) hint(question chat.Message) chat.Message {
	question.Parts = append(slices.Clone(question.Parts), chat.Part{Type: chat.TextPart, Text: "\n\n" + schema.Hint(f.source)})
	return question
}

// ask makes the request, and another one to correct what is not of the form. The text of
// the reply is the value as compact JSON.
func (f *Form) ask(ctx context.Context, e *engine.Engine, rc *engine.RequestContext, req engine.Request) (engine.Reply, error) {
	reply, err := e.Run(ctx, rc, req)
	if err != nil {
		return reply, err
	}
	text, violations, err := f.check(reply.Text)
	if err == nil && len(violations) == 0 {
		return replaceText(reply, text), nil
	}
	system, user := schema.RepairPrompt(f.source, req.Messages[len(req.Messages)-1].Text(), reply.Text, violations)
	repaired, err := e.Run(ctx, rc, engine.Request{Messages: []chat.Message{chat.Text(chat.System, system), chat.Text(chat.User, user)}, Whole: true, Format: f.format()})
	repaired.Usage = repaired.Usage.Add(reply.Usage)
	if err != nil {
		return repaired, err
	}
	text, violations, err = f.check(repaired.Text)
	switch {
	case err != nil:
		return repaired, fault.Wrap(fault.Provider, err, "even after a correction the answer is not what %s asks for", f.name)
	case len(violations) > 0:
		return repaired, fault.New(fault.Provider, "even after a correction the answer is not what %s asks for: %s", f.name, schema.List(violations, "; "))
	}
	repaired.Messages = reply.Messages // the correction is not part of the conversation
	return replaceText(repaired, text), nil
}

// check returns the JSON in a reply. The error says that there is none.
func (f *Form) check(reply string) (text string, violations []schema.Violation, err error) {
	v, violations, err := f.schema.Read(reply)
	return string(v.AppendJSON(nil)), violations, err
}
