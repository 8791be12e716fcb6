package acpserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"loki/internal/agent/harness/acp"
	"loki/internal/base/ask"
	"loki/internal/base/text"
	"loki/internal/llm/event"
)

// The fields of a form.
const (
	formAnswer = "answer"
	formOther  = "other" // a text instead of an option
)

// capabilities returns what the client can do.
func (s *server) capabilities() acp.ClientCapabilities {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client.ClientCapabilities
}

// Via returns how the answers of the client come.
func (*sess) Via() event.Via { return event.ViaACP }

// Ask implements [ask.Asker]. The client is asked.
func (s *sess) Ask(ctx context.Context, q ask.Question) (string, error) {
	s.mu.Lock()
	live := s.live
	s.mu.Unlock()
	forms := s.server.capabilities().Elicitation.Form != nil
	switch {
	case !live || q.Kind == ask.Secret:
		return "", ask.ErrUnavailable
	case q.Consent && len(q.Options) > 0, len(q.Options) > 0 && q.Kind != ask.Multi && !forms:
		return s.permission(ctx, q)
	case forms:
		return s.elicit(ctx, q)
	}
	return "", ask.ErrUnavailable
}

// permission asks with a request for permission, which shows the call that the question is about.
func (s *sess) permission(ctx context.Context, q ask.Question) (string, error) {
	r := acp.PermissionRequest{SessionID: s.id, ToolCall: s.view.callOf(q), Options: optionsOf(q)}
	r.ToolCall.Content = append(slices.Clone(r.ToolCall.Content), textContent(q.Text))
	var answered acp.PermissionResponse
	if err := s.server.conn.Call(ctx, acp.RequestPermission, r, &answered); err != nil {
		return "", askError(ctx, err)
	}
	if answered.Outcome.Outcome != "selected" {
		return refusal(ctx, q)
	}
	i, err := strconv.Atoi(answered.Outcome.OptionID)
	if err != nil || i < 0 || i >= len(q.Options) {
		return "", fmt.Errorf("the editor chose an unknown option %q", text.OneLine(answered.Outcome.OptionID, 40))
	}
	return q.Options[i], nil
}

// refusal returns what holds for a question that the user did not answer: a refusal, or else the default.
func refusal(ctx context.Context, q ask.Question) (string, error) {
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case q.Consent && slices.Contains(q.Options, "no"):
		return "no", nil
	case q.HasDefault && !q.Consent:
		return q.Default, nil
	}
	return "", ask.ErrUnavailable
}

// askError returns the error of a question that the client did not answer.
func askError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, refused := errors.AsType[*acp.Error](err); refused { // it cannot ask
		return fmt.Errorf("%w: %w", ask.ErrUnavailable, err)
	}
	return err
}

// optionsOf returns the options of a question, whose ids are their places. What holds for an agent or edits arguments is not offered: the client shows
// neither what an agent may do nor arguments to edit.
func optionsOf(q ask.Question) (list []acp.PermissionOption) {
	always := false
	for i, option := range q.Options {
		kind := acp.AllowOnce
		switch {
		case !q.Consent:
		case option == "no" || q.Affirms != "" && option != q.Affirms:
			kind = acp.RejectOnce
		case strings.HasPrefix(option, "always for this session") || strings.HasPrefix(option, "always for this run"):
			if kind = acp.AllowAlways; always {
				continue
			}
			always = true
		case strings.HasPrefix(option, "always"), option == "edit the arguments":
			continue
		}
		list = append(list, acp.PermissionOption{OptionID: strconv.Itoa(i), Name: option, Kind: kind})
	}
	return list
}

// callOf returns the call that a question is about: the one of the same place in the last reply of who asks. Other questions have a call of their own.
func (v *view) callOf(q ask.Question) acp.ToolCall {
	v.mu.Lock()
	defer v.mu.Unlock()
	if q.Call != nil {
		asked := v.s.describe(q.Call.Tool, v.s.app.Hide(q.Call.Arguments))
		asked.ToolCallID, asked.Status = v.id("question-"+q.ID), acp.Pending
		if known := v.findID(scopeOf(q.Child, q.Node, q.Item), q.Call.ID); known != nil {
			asked.ToolCallID = known.ToolCallID
		}
		return asked
	}
	if m := callPlace().FindStringSubmatch(q.ID); m != nil {
		place, _ := strconv.Atoi(m[1])
		if c := v.find(scopeOf(q.Child, q.Node, q.Item), func(c *call) bool { return c.place == place }); c != nil {
			asked := c.ToolCall
			asked.Status = acp.Pending
			return asked
		}
	}
	return acp.ToolCall{ToolCallID: v.id("question-" + q.ID), Title: text.OneLine(q.Text, titleWidth), ToolKind: "other", Status: acp.Pending}
}

// callPlace finds the place of a call in the id of a question or the key of a call: chat/1.2, tool/1/2/call.
var callPlace = text.Regexp(`\d+[./](\d+)(?:/[a-z][a-z/0-9]*)?$`)

// elicit asks with a form, again if the answer does not fit.
func (s *sess) elicit(ctx context.Context, q ask.Question) (string, error) {
	r := acp.ElicitationRequest{SessionID: s.id, Mode: acp.ElicitationForm, Message: q.Text, RequestedSchema: form(q)}
	for {
		var answered acp.ElicitationResponse
		if err := s.server.conn.Call(ctx, acp.ElicitationCreate, r, &answered); err != nil {
			return "", askError(ctx, err)
		}
		if answered.Action != "accept" {
			return refusal(ctx, q)
		}
		answer, err := q.Match(lineOf(answered.Content))
		if err == nil {
			return answer, nil
		}
		r.Message = q.Text + "\n\n" + err.Error()
	}
}

// form returns the form of a question.
func form(q ask.Question) *acp.ElicitationSchema {
	answer := acp.Property{Type: "string", Title: "Answer"}
	f := &acp.ElicitationSchema{Type: "object", Properties: make(map[string]acp.Property), Required: []string{formAnswer}}
	switch {
	case q.Kind == ask.Multi:
		answer = acp.Property{Type: "array", Title: "Answers", Items: &acp.Items{Type: "string", Enum: q.Options}}
	case len(q.Options) > 0:
		if answer.Enum = q.Options; q.Kind == ask.Choice {
			f.Properties[formOther], f.Required = acp.Property{Type: "string", Title: "Something else"}, nil
		}
	}
	if q.HasDefault && q.Kind != ask.Multi && (len(q.Options) == 0 || slices.Contains(q.Options, q.Default)) {
		answer.Default = q.Default
	}
	f.Properties[formAnswer] = answer
	return f
}

// lineOf returns what was filled in as a line.
func lineOf(content map[string]any) string {
	if other, _ := content[formOther].(string); other != "" {
		return other
	}
	switch v := content[formAnswer].(type) {
	case string:
		return v
	case []any:
		chosen := []string{}
		for _, one := range v {
			text, _ := one.(string)
			chosen = append(chosen, text)
		}
		return ask.JoinAnswers(chosen)
	}
	return ""
}
