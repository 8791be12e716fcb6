package conversation

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"loki/internal/base/fault"
	"loki/internal/base/file/userfile"
	texts "loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/base/value/schema"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
)

// Form is a JSON Schema that an answer must satisfy.
type Form struct {
	name   string // for messages
	schema *schema.Schema
}

// LoadForm reads a JSON Schema from a file. The error is of code NotFound if there is no
// such file, and else of code Usage.
func LoadForm(ctx context.Context, file string) (*Form, error) {
	data, err := userfile.ReadFile(ctx, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "schema %s: there is no such file", file)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Usage, err, "schema %s", file)
	}
	return NewForm(file, texts.TrimMark(data))
}

// NewForm returns the form that data, a JSON Schema, describes. Messages call it name. The error has code Usage.
func NewForm(name string, data []byte) (*Form, error) {
	if line, column, err := value.JSONErrorPlace(data); err != nil {
		return nil, fault.Wrap(fault.Usage, err, "schema %s:%d:%d", name, line, column)
	}
	v, err := value.ParseJSON(data)
	if err != nil {
		return nil, fault.Wrap(fault.Usage, err, "schema %s", name)
	}
	s, err := schema.Compile(v)
	if invalid, ok := errors.AsType[*schema.InvalidError](err); ok {
		line, column := value.JSONPlace(data, invalid.Violations[0].Path)
		return nil, fault.Wrap(fault.Usage, err, "schema %s:%d:%d", name, line, column)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Usage, err, "schema %s", name)
	}
	return &Form{name: name, schema: s}, nil
}

// Source returns the schema as compact JSON.
func (f *Form) Source() string { return string(f.schema.Value().AppendJSON(nil)) }

// hint asks for the form behind a question.
func (f *Form) hint(question chat.Message) chat.Message {
	question.Parts = append(slices.Clone(question.Parts), chat.Part{Type: chat.TextPart, Text: "\n\n" + schema.Hint(f.schema.Value())})
	return question
}

// fit returns the reply to a request with the value in it, as compact JSON, for its text. A
// reply that is not of the form is corrected once.
func (f *Form) fit(ctx context.Context, e *engine.Engine, rc *engine.RequestContext, req engine.Request, reply engine.Reply) (engine.Reply, error) {
	v, reply, err := e.StructuredValue(ctx, rc, req, reply, false)
	switch unfit, ok := errors.AsType[*engine.FormError](err); {
	case ok && unfit.Err != nil:
		return reply, fault.Wrap(fault.Provider, unfit.Err, "even after a correction the answer does not fit the schema %s", f.name)
	case ok:
		return reply, fault.New(fault.Provider, "even after a correction the answer does not fit the schema %s: %v", f.name, unfit)
	case err != nil:
		return reply, err
	}
	return replaceText(reply, string(v.AppendJSON(nil))), nil
}
