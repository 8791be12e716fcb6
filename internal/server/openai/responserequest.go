package openai

import (
	"encoding/json"
	"slices"
	"strings"

	"loki/internal/chat"
)

// responseRequest is the body of a request for a response.
type responseRequest struct {
	Model              string          `json:"model"`
	Input              json.RawMessage `json:"input"`
	Instructions       *string         `json:"instructions"`
	PreviousResponseID *string         `json:"previous_response_id"`
	sampling
	Reasoning         json.RawMessage `json:"reasoning"`
	MaxOutputTokens   *int            `json:"max_output_tokens"`
	Tools             json.RawMessage `json:"tools"`
	ToolChoice        json.RawMessage `json:"tool_choice"`
	ParallelToolCalls *bool           `json:"parallel_tool_calls"`
	Text              json.RawMessage `json:"text"`
	Stream            *bool           `json:"stream"`
	Loki              json.RawMessage `json:"loki"`

	// What can only be had as it is anyway.
	Background   json.RawMessage `json:"background"`
	Conversation json.RawMessage `json:"conversation"`
	Include      []string        `json:"include"`
	MaxToolCalls json.RawMessage `json:"max_tool_calls"`
	Prompt       json.RawMessage `json:"prompt"`
	TopLogprobs  json.RawMessage `json:"top_logprobs"`
	Truncation   json.RawMessage `json:"truncation"`

	StreamOptions  json.RawMessage `json:"stream_options"`
	ClientMetadata json.RawMessage `json:"client_metadata"`
	bookkeeping
}

// parseResponse reads the body of a request for a response. What was said before it is not in r.
func parseResponse(body []byte) (*request, *responseRequest, error) {
	w := new(responseRequest)
	if err := decode(body, "", w); err != nil {
		return nil, nil, err
	}
	r := &request{Model: w.Model, Stream: w.Stream != nil && *w.Stream}
	r.Temperature, r.TopP = w.Temperature, w.TopP
	r.OneCall = w.ParallelToolCalls != nil && !*w.ParallelToolCalls
	for _, step := range []func() error{
		func() error { return needs("model", w.Model != "") },
		func() error { return needs("input", !absent(w.Input)) },
		w.refuse,
		w.check,
		func() error { return w.readReasoning(r) },
		func() error { return r.limit(w.MaxOutputTokens, "max_output_tokens") },
		func() error { return w.readTools(r) },
		func() error { return w.readChoice(r) },
		func() error { return w.readText(r) },
		func() error { return readLoki(w.Loki, r) },
		func() error { return w.readInput(r) },
	} {
		if err := step(); err != nil {
			return nil, nil, err
		}
	}
	return r, w, nil
}

// refuse returns the error of members that ask for what cannot be had.
func (w *responseRequest) refuse() error {
	err := refuse([]fixed{
		{"background", w.Background, []string{"false"}, "work in the background"},
		{"conversation", w.Conversation, nil, "a conversation beside previous_response_id"},
		{"max_tool_calls", w.MaxToolCalls, nil, "a limit of calls"},
		{"prompt", w.Prompt, nil, "a stored prompt"},
		{"top_logprobs", w.TopLogprobs, []string{"0"}, "probabilities"},
		{"truncation", w.Truncation, []string{`"disabled"`}, "leaving out what was said before"},
	})
	if err != nil {
		return err
	}
	for _, name := range w.Include {
		if name != "reasoning.encrypted_content" { // which is not there, so that nothing is included
			return unsupported("include", name)
		}
	}
	return nil
}

func (w *responseRequest) readReasoning(r *request) error {
	if absent(w.Reasoning) {
		return nil
	}
	var reasoning struct {
		Effort          string          `json:"effort"`
		Summary         json.RawMessage `json:"summary"`
		GenerateSummary json.RawMessage `json:"generate_summary"`
	}
	if err := decode(w.Reasoning, "reasoning", &reasoning); err != nil {
		return err
	}
	return r.effort(reasoning.Effort, "reasoning.effort")
}

func (w *responseRequest) readTools(r *request) error {
	if absent(w.Tools) {
		return nil
	}
	elements, err := list(w.Tools, "tools")
	if err != nil {
		return err
	}
	for i, e := range elements {
		at := element("tools", i)
		var kind struct{ Type string }
		if json.Unmarshal(e, &kind) == nil && kind.Type != "function" {
			return unsupported(member(at, "type"), "a tool of type "+kind.Type)
		}
		var t struct {
			Type string `json:"type"`
			chat.Tool
			Strict json.RawMessage `json:"strict"`
		}
		if err := decode(e, at, &t); err != nil {
			return err
		}
		if err := r.addTool(t.Tool, at); err != nil {
			return err
		}
	}
	return nil
}

func (w *responseRequest) readChoice(r *request) error {
	if absent(w.ToolChoice) {
		return nil
	}
	if mode, ok := isString(w.ToolChoice); ok {
		return r.choose(mode, "", "tool_choice")
	}
	var choice struct {
		Type string `json:"type"`
		Name string `json:"name"`
	}
	if err := decode(w.ToolChoice, "tool_choice", &choice); err != nil {
		return err
	}
	return r.choose(choice.Type, choice.Name, "tool_choice")
}

func (w *responseRequest) readText(r *request) error {
	if absent(w.Text) {
		return nil
	}
	var text struct {
		Format    json.RawMessage `json:"format"`
		Verbosity json.RawMessage `json:"verbosity"`
	}
	if err := decode(w.Text, "text", &text); err != nil {
		return err
	}
	if !absent(text.Verbosity) && string(text.Verbosity) != `"medium"` {
		return unsupported("text.verbosity", "another verbosity")
	}
	if absent(text.Format) {
		return nil
	}
	var f struct {
		Type string `json:"type"`
		namedSchema
	}
	if err := decode(text.Format, "text.format", &f); err != nil {
		return err
	}
	return r.format(f.Type, f.namedSchema, "text.format")
}

// readInput reads what is new in the conversation into r: a text of the user, or a list of items.
func (w *responseRequest) readInput(r *request) error {
	var messages []chat.Message
	if text, ok := isString(w.Input); ok {
		messages = []chat.Message{chat.Text(chat.User, text)}
	} else {
		elements, err := list(w.Input, "input")
		if err != nil {
			return invalid("input", "input has to be a text or a list of items")
		}
		for i, e := range elements {
			if messages, err = addItem(messages, e, element("input", i)); err != nil {
				return err
			}
		}
	}
	if w.Instructions != nil && *w.Instructions != "" {
		messages = append([]chat.Message{chat.Text(chat.System, *w.Instructions)}, messages...)
	}
	r.goesOn = w.PreviousResponseID != nil
	return r.take(messages, "input")
}

// inputItem is an item of the input. Items of answers come back as they are.
type inputItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`

	ID               json.RawMessage `json:"id"`
	Status           json.RawMessage `json:"status"`
	Phase            json.RawMessage `json:"phase"`
	Summary          json.RawMessage `json:"summary"`
	EncryptedContent json.RawMessage `json:"encrypted_content"`
	ParsedArguments  json.RawMessage `json:"parsed_arguments"`
}

// addItem adds the item at a place to messages. Reasoning is not sent again.
func addItem(messages []chat.Message, item json.RawMessage, at string) ([]chat.Message, error) {
	var i inputItem
	if err := decode(item, at, &i); err != nil {
		return nil, err
	}
	last := len(messages) - 1
	switch i.Type {
	case "", "message":
		m := chat.Message{Role: chat.Role(i.Role)}
		switch i.Role {
		case "developer":
			m.Role = chat.System
		case "system", "user", "assistant":
		default:
			return nil, invalid(member(at, "role"), "%s: a message is of the user, assistant, system or developer", at)
		}
		var err error
		if m.Parts, err = readItemContent(i.Content, member(at, "content"), m.Role); err != nil {
			return nil, err
		}
		if last >= 0 && m.Role == chat.User && messages[last].Role == chat.User { // one question in several items
			messages[last].Parts = slices.Concat(messages[last].Parts, []chat.Part{{Type: chat.TextPart, Text: "\n\n"}}, m.Parts)
			return messages, nil
		}
		return append(messages, m), nil
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
		parts, err := readItemContent(i.Output, member(at, "output"), chat.ToolRole)
		if err != nil {
			return nil, err
		}
		return append(messages, chat.Message{Role: chat.ToolRole, ToolCallID: i.CallID, Parts: parts}), nil
	case "reasoning":
		return messages, nil
	}
	return nil, unsupported(member(at, "type"), "an item of type "+i.Type)
}

// readItemContent reads the content of an item: a text, or a list of parts.
func readItemContent(m json.RawMessage, at string, role chat.Role) ([]chat.Part, error) {
	if absent(m) {
		return nil, invalid(at, "%s is missing", at)
	}
	if text, ok := isString(m); ok {
		return []chat.Part{{Type: chat.TextPart, Text: text}}, nil
	}
	elements, err := list(m, at)
	if err != nil {
		return nil, invalid(at, "%s has to be a text or a list of parts", at)
	}
	var parts []chat.Part
	for i, e := range elements {
		place := element(at, i)
		var p struct {
			Type        string          `json:"type"`
			Text        string          `json:"text"`
			Refusal     string          `json:"refusal"`
			ImageURL    json.RawMessage `json:"image_url"`
			Detail      json.RawMessage `json:"detail"`
			FileID      json.RawMessage `json:"file_id"`
			FileData    string          `json:"file_data"`
			FileURL     string          `json:"file_url"`
			Filename    string          `json:"filename"`
			InputAudio  json.RawMessage `json:"input_audio"`
			Annotations json.RawMessage `json:"annotations"`
			Logprobs    json.RawMessage `json:"logprobs"`
			Parsed      json.RawMessage `json:"parsed"`
		}
		if err := decode(e, place, &p); err != nil {
			return nil, err
		}
		switch {
		case p.Type == "input_text" || p.Type == "output_text" || p.Type == "text":
			parts = append(parts, chat.Part{Type: chat.TextPart, Text: p.Text})
		case p.Type == "refusal":
			parts = append(parts, chat.Part{Type: chat.TextPart, Text: p.Refusal})
		case p.Type == "input_image" && role != chat.Assistant && role != chat.System && absent(p.FileID):
			image, err := readImage(p.ImageURL, member(place, "image_url"))
			if err != nil {
				return nil, err
			}
			parts = append(parts, image)
		case p.Type == "input_file" && role != chat.Assistant && role != chat.System && absent(p.FileID):
			file, err := readFile(p.Filename, p.FileData, p.FileURL, place)
			if err != nil {
				return nil, err
			}
			parts = append(parts, file)
		default:
			return nil, unsupported(member(place, "type"), strings.TrimSpace("a part of type "+p.Type))
		}
	}
	return parts, nil
}
