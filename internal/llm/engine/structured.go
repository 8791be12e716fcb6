package engine

import (
	"context"

	"loki/internal/base/value"
	"loki/internal/base/value/schema"
	"loki/internal/llm/chat"
)

// FormError says that a reply was not of the form of its request, not even after it was
// corrected.
type FormError struct {
	Err        error              // why the last reply is not JSON; nil if it is
	Violations []schema.Violation // of the schema, by a reply that is JSON
	Last       string             // text of the last reply
}

func (e *FormError) Error() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	return schema.List(e.Violations, "; ")
}

// Unwrap returns Err.
func (e *FormError) Unwrap() error { return e.Err }

// StructuredValue returns the JSON value in reply, the answer to req, that satisfies req.Form.
// If there is none the model of req is asked to correct the reply, once. If extract is set,
// it is first asked to turn the text of the reply into the form, and the correction is one
// of what it made. The steps of these requests are recorded below extract and repair.
//
// The reply that is returned is the last one, with the usage of all of them; its messages
// are those of the first, because the corrections are not part of the conversation. The
// error is a [*FormError] if no reply was of the form.
func (e *Engine) StructuredValue(ctx context.Context, rc *RequestContext, req Request, reply Reply, extract bool) (value.Value, Reply, error) {
	messages, text := reply.Messages, req.Messages[len(req.Messages)-1].Text()
	v, violations, err := req.Form.Read(reply.Text)
	if extract && (err != nil || violations != nil) {
		text = reply.Text
		system, user := schema.ExtractPrompt(req.Form.Value(), text)
		if reply, err = e.form(ctx, rc, req, "extract", system, user, reply.Usage); err != nil {
			return v, reply, err
		}
		v, violations, err = req.Form.Read(reply.Text)
	}
	if err != nil || violations != nil {
		system, user := schema.RepairPrompt(req.Form.Value(), text, reply.Text, violations)
		if reply, err = e.form(ctx, rc, req, "repair", system, user, reply.Usage); err != nil {
			return v, reply, err
		}
		v, violations, err = req.Form.Read(reply.Text)
	}
	if err != nil || violations != nil {
		return v, reply, &FormError{Err: err, Violations: violations, Last: reply.Text}
	}
	reply.Messages = messages
	return v, reply, nil
}

// form asks the model of req for a reply of its form. The steps are recorded below name. The
// usage of the reply includes used.
func (e *Engine) form(ctx context.Context, rc *RequestContext, req Request, name, system, user string, used chat.Usage) (Reply, error) {
	apart := *rc
	apart.Steps = rc.Steps.At(name)
	reply, err := e.Run(ctx, &apart, Request{
		Messages: []chat.Message{chat.Text(chat.System, system), chat.Text(chat.User, user)},
		Model:    req.Model, Node: req.Node, Form: req.Form, Whole: true,
	})
	reply.Usage = used.Add(reply.Usage)
	return reply, err
}
