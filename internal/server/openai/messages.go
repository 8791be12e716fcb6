package openai

import (
	"cmp"
	"encoding/json"
	"strings"

	"loki/internal/chat"
)

// message is one of the messages of a chat completion. The members without a use here are those that
// clients send back with an answer.
type message struct {
	Role             string          `json:"role"`
	Content          json.RawMessage `json:"content"`
	Refusal          string          `json:"refusal"`
	ReasoningContent string          `json:"reasoning_content"`
	ToolCalls        json.RawMessage `json:"tool_calls"`
	ToolCallID       string          `json:"tool_call_id"`

	Name         json.RawMessage `json:"name"`
	Annotations  json.RawMessage `json:"annotations"`
	Parsed       json.RawMessage `json:"parsed"`
	Audio        json.RawMessage `json:"audio"`
	FunctionCall json.RawMessage `json:"function_call"`
}

// readMessages reads the conversation of a chat completion into r.
func readMessages(m json.RawMessage, r *request) error {
	elements, err := list(m, "messages")
	if err != nil {
		return err
	}
	if len(elements) == 0 {
		return invalid("messages", "messages is empty")
	}
	var messages []chat.Message
	for i, e := range elements {
		var w message
		at := element("messages", i)
		if err := decode(e, at, &w); err != nil {
			return err
		}
		m, err := w.read(at)
		if err != nil {
			return err
		}
		messages = append(messages, m)
	}
	return r.take(messages, "messages")
}

// read returns the message at a place.
func (w message) read(at string) (m chat.Message, err error) {
	switch {
	case !absent(w.Audio):
		return m, unsupported(member(at, "audio"), "audio")
	case !absent(w.FunctionCall):
		return m, unsupported(member(at, "function_call"), "the form before tool_calls")
	}
	switch m.Role = chat.Role(w.Role); w.Role {
	case "system", "user", "assistant":
	case "developer":
		m.Role = chat.System
	case "tool":
		if m.ToolCallID = w.ToolCallID; m.ToolCallID == "" {
			return m, invalid(member(at, "tool_call_id"), "%s does not say which call it answers", at)
		}
	case "":
		return m, invalid(member(at, "role"), "%s has no role", at)
	default:
		return m, unsupported(member(at, "role"), "the role "+w.Role)
	}
	if m.Role == chat.Assistant {
		if w.ReasoningContent != "" {
			m.Parts = append(m.Parts, chat.Part{Type: chat.ReasoningPart, Text: w.ReasoningContent})
		}
		if m.ToolCalls, err = readCalls(w.ToolCalls, member(at, "tool_calls")); err != nil {
			return m, err
		}
	} else if !absent(w.ToolCalls) && compact(w.ToolCalls) != "[]" {
		return m, invalid(member(at, "tool_calls"), "only an assistant message has tool_calls")
	}
	parts, err := readContent(w.Content, member(at, "content"), m.Role)
	if err != nil {
		return m, err
	}
	m.Parts = append(m.Parts, parts...)
	if w.Refusal != "" {
		m.Parts = append(m.Parts, chat.Part{Type: chat.TextPart, Text: w.Refusal})
	}
	if len(m.Parts) == 0 && len(m.ToolCalls) == 0 && m.Role != chat.ToolRole && m.Role != chat.Assistant {
		return m, invalid(member(at, "content"), "%s has no content", at)
	}
	return m, nil
}

func readCalls(m json.RawMessage, at string) ([]chat.ToolCall, error) {
	if absent(m) {
		return nil, nil
	}
	elements, err := list(m, at)
	if err != nil {
		return nil, err
	}
	var calls []chat.ToolCall
	for i, e := range elements {
		place := element(at, i)
		var c struct {
			ID       string          `json:"id"`
			Type     string          `json:"type"`
			Index    json.RawMessage `json:"index"`
			Function struct {
				Name            string          `json:"name"`
				Arguments       string          `json:"arguments"`
				ParsedArguments json.RawMessage `json:"parsed_arguments"`
			} `json:"function"`
		}
		if err := decode(e, place, &c); err != nil {
			return nil, err
		}
		switch {
		case c.Type != "function" && c.Type != "":
			return nil, unsupported(member(place, "type"), "a call of type "+c.Type)
		case c.ID == "":
			return nil, invalid(member(place, "id"), "%s has no id", place)
		case c.Function.Name == "":
			return nil, invalid(member(place, "function.name"), "%s names no function", place)
		}
		calls = append(calls, call(c.ID, c.Function.Name, c.Function.Arguments))
	}
	return calls, nil
}

// call returns a call as the model made it.
func call(id, name, arguments string) chat.ToolCall {
	if arguments == "" {
		arguments = "{}"
	}
	return chat.ToolCall{ID: id, Name: name, Arguments: arguments}
}

// readContent reads the content of a message: nothing, a text, or a list of parts.
func readContent(m json.RawMessage, at string, role chat.Role) ([]chat.Part, error) {
	if absent(m) {
		return nil, nil
	}
	if text, ok := isString(m); ok {
		if text == "" {
			return nil, nil
		}
		return []chat.Part{{Type: chat.TextPart, Text: text}}, nil
	}
	elements, err := list(m, at)
	if err != nil {
		return nil, invalid(at, "%s has to be a text or a list of parts", at)
	}
	var parts []chat.Part
	for i, e := range elements {
		var p struct {
			Type       string          `json:"type"`
			Text       string          `json:"text"`
			Refusal    string          `json:"refusal"`
			ImageURL   json.RawMessage `json:"image_url"`
			InputAudio json.RawMessage `json:"input_audio"`
			File       struct {
				Data string          `json:"file_data"`
				Name string          `json:"filename"`
				ID   json.RawMessage `json:"file_id"`
			} `json:"file"`
		}
		place := element(at, i)
		if err := decode(e, place, &p); err != nil {
			return nil, err
		}
		switch {
		case p.Type == "text":
			parts = append(parts, chat.Part{Type: chat.TextPart, Text: p.Text})
		case p.Type == "refusal" && role == chat.Assistant:
			parts = append(parts, chat.Part{Type: chat.TextPart, Text: p.Refusal})
		case p.Type == "image_url" && role == chat.User:
			image, err := readImage(p.ImageURL, member(place, "image_url"))
			if err != nil {
				return nil, err
			}
			parts = append(parts, image)
		case p.Type == "file" && role == chat.User:
			file, err := readFile(p.File.Name, p.File.Data, "", member(place, "file"))
			if err != nil {
				return nil, err
			}
			parts = append(parts, file)
		default:
			return nil, unsupported(member(place, "type"), "a part of type "+p.Type+" in a message of the "+string(role))
		}
	}
	return parts, nil
}

// readFile reads a file at a place: what is in it, or where it is.
func readFile(name, data, url, at string) (chat.Part, error) {
	name = cmp.Or(name, "file")
	switch {
	case data == "" && (strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://")):
		return chat.Part{Type: filePart, Text: name, URL: url}, nil
	case data == "" && url != "":
		return chat.Part{}, invalid(member(at, "file_url"), "%s.file_url has to be an https: URL", at)
	case data == "":
		return chat.Part{}, unsupported(at, "a file without file_data")
	case !strings.HasPrefix(data, "data:"):
		data = "data:;base64," + data
	case !strings.Contains(data, ";base64,"):
		return chat.Part{}, invalid(member(at, "file_data"), "%s.file_data has to be data:TYPE;base64,DATA", at)
	}
	return chat.Part{Type: filePart, Text: name, URL: data}, nil
}

// readImage reads the address of a picture at a place. The model decides how closely it looks.
func readImage(m json.RawMessage, at string) (chat.Part, error) {
	var image struct {
		URL    string          `json:"url"`
		Detail json.RawMessage `json:"detail"`
	}
	if text, ok := isString(m); ok {
		image.URL = text
	} else {
		if err := decode(m, at, &image); err != nil {
			return chat.Part{}, err
		}
		at = member(at, "url")
	}
	switch scheme, rest, _ := strings.Cut(image.URL, ":"); scheme {
	case "https", "http":
	case "data":
		if media, _, ok := strings.Cut(rest, ";base64,"); !ok || !strings.HasPrefix(media, "image/") {
			return chat.Part{}, invalid(at, "%s has to be data:image/TYPE;base64,DATA", at)
		}
	default:
		return chat.Part{}, invalid(at, "%s has to be a data: or an https: URL", at)
	}
	return chat.Part{Type: chat.ImagePart, URL: image.URL}, nil
}
