package openai

import (
	"encoding/json"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"loki/internal/llm/chat"
)

// responseRequest is the body of a request for a response. The last members can only be had as they are anyway.
type responseRequest struct {
	Common
	Input              inputShape      `json:"input"`
	Instructions       *string         `json:"instructions,omitempty"`
	PreviousResponseID *string         `json:"previous_response_id,omitempty"`
	Reasoning          *reasoningShape `json:"reasoning,omitempty"`
	MaxOutputTokens    *int            `json:"max_output_tokens,omitempty" minimum:"1"`
	Text               *textShape      `json:"text,omitempty"`

	Background     bool            `json:"background,omitempty" enum:"false"`
	Include        []string        `json:"include,omitempty" enum:"reasoning.encrypted_content" nullable:"false" doc:"there is none, so that nothing is included"`
	Truncation     string          `json:"truncation,omitempty" enum:"disabled"`
	ClientMetadata json.RawMessage `json:"client_metadata,omitempty"`
}

type reasoningShape struct {
	Effort          string          `json:"effort,omitempty"`
	Summary         json.RawMessage `json:"summary,omitempty"`
	GenerateSummary json.RawMessage `json:"generate_summary,omitempty"`
}

type textShape struct {
	Format    *formatShape `json:"format,omitempty"`
	Verbosity string       `json:"verbosity,omitempty" enum:"medium"`
}

// inputShape is what is new in the conversation: a text of the user, or items.
type inputShape []itemShape

// UnmarshalJSON implements [json.Unmarshaler].
func (in *inputShape) UnmarshalJSON(data []byte) error {
	return orText(data, (*[]itemShape)(in), func(text string) {
		*in = inputShape{{Role: "user", Content: contentShape{{Type: "text", Text: text}}}}
	})
}

// Schema implements [huma.SchemaProvider].
func (inputShape) Schema(r huma.Registry) *huma.Schema { return textOr[[]itemShape](r) }

// itemShape is an item of the input. Items of answers come back as they are.
type itemShape struct {
	Type      string       `json:"type,omitempty" enum:"message,function_call,function_call_output,reasoning"`
	Role      string       `json:"role,omitempty" enum:"user,assistant,system,developer"`
	Content   contentShape `json:"content,omitempty"`
	CallID    string       `json:"call_id,omitempty"`
	Name      string       `json:"name,omitempty"`
	Arguments string       `json:"arguments,omitempty"`
	Output    contentShape `json:"output,omitempty"`

	ID               json.RawMessage `json:"id,omitempty"`
	Status           json.RawMessage `json:"status,omitempty"`
	Phase            json.RawMessage `json:"phase,omitempty"`
	Summary          json.RawMessage `json:"summary,omitempty"`
	EncryptedContent json.RawMessage `json:"encrypted_content,omitempty"`
	ParsedArguments  json.RawMessage `json:"parsed_arguments,omitempty"`
}

// request returns what a client asks for. What was said before it is not in it.
func (w *responseRequest) request() (*request, error) {
	r, err := w.Common.request()
	if err != nil {
		return nil, err
	}
	if w.Reasoning != nil {
		if err := r.effort(w.Reasoning.Effort, "reasoning.effort"); err != nil {
			return nil, err
		}
	}
	if w.MaxOutputTokens != nil {
		r.MaxOutputTokens = *w.MaxOutputTokens
	}
	if w.Text != nil {
		if err := r.format(w.Text.Format, "text.format"); err != nil {
			return nil, err
		}
	}
	var messages []chat.Message
	if w.Instructions != nil && *w.Instructions != "" {
		messages = append(messages, chat.Text(chat.System, *w.Instructions))
	}
	for i := range w.Input {
		if messages, err = w.Input[i].addTo(messages, element("input", i)); err != nil {
			return nil, err
		}
	}
	r.goesOn = w.PreviousResponseID != nil
	return r, r.take(messages, "input")
}

// addTo adds the item at a place to messages. Reasoning is not sent again.
func (i *itemShape) addTo(messages []chat.Message, at string) ([]chat.Message, error) {
	last := len(messages) - 1
	switch i.Type {
	case "reasoning":
		return messages, nil
	case "function_call":
		if i.CallID == "" || i.Name == "" {
			return nil, invalid(at, "%s: a call has a call_id and a name", at)
		}
		if last < 0 || messages[last].Role != chat.Assistant {
			messages = append(messages, chat.Message{Role: chat.Assistant})
			last++
		}
		messages[last].ToolCalls = append(messages[last].ToolCalls, call(i.CallID, i.Name, i.Arguments))
		return messages, nil
	case "function_call_output":
		if i.CallID == "" {
			return nil, invalid(member(at, "call_id"), "%s does not say which call it answers", at)
		}
		parts, err := i.Output.read(member(at, "output"), chat.ToolRole)
		return append(messages, chat.Message{Role: chat.ToolRole, ToolCallID: i.CallID, Parts: parts}), err
	}
	m := chat.Message{Role: roleOf(i.Role)}
	if m.Role == "" {
		return nil, invalid(member(at, "role"), "%s: a message is of the user, assistant, system or developer", at)
	}
	var err error
	if m.Parts, err = i.Content.read(member(at, "content"), m.Role); err != nil {
		return nil, err
	}
	if len(m.Parts) == 0 && m.Role != chat.Assistant {
		return nil, invalid(member(at, "content"), "%s has no content", at)
	}
	if last >= 0 && m.Role == chat.User && messages[last].Role == chat.User { // one question in several items
		messages[last].Parts = slices.Concat(messages[last].Parts, []chat.Part{{Type: chat.TextPart, Text: "\n\n"}}, m.Parts)
		return messages, nil
	}
	return append(messages, m), nil
}
