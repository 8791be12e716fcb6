package openai

import (
	"cmp"
	"encoding/json"
	"strings"

	"loki/internal/knowledge/input"
	"loki/internal/llm/chat"
)

// messageShape is one of the messages of a chat completion. The members without a use here are the ones
// that clients send back with an answer.
type messageShape struct {
	Role             string       `json:"role" enum:"system,developer,user,assistant,tool"`
	Content          contentShape `json:"content,omitempty"`
	Refusal          string       `json:"refusal,omitempty"`
	ReasoningContent string       `json:"reasoning_content,omitempty"`
	ToolCalls        []callShape  `json:"tool_calls,omitempty" nullable:"false"`
	ToolCallID       string       `json:"tool_call_id,omitempty"`

	Name        json.RawMessage `json:"name,omitempty"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
	Parsed      json.RawMessage `json:"parsed,omitempty"`
}

// callShape is a call that a model made.
type callShape struct {
	ID       string          `json:"id" minLength:"1"`
	Type     string          `json:"type,omitempty" enum:"function"`
	Index    json.RawMessage `json:"index,omitempty"`
	Function calledShape     `json:"function"`
}

type calledShape struct {
	Name            string          `json:"name" minLength:"1"`
	Arguments       string          `json:"arguments,omitempty"`
	ParsedArguments json.RawMessage `json:"parsed_arguments,omitempty"`
}

// read returns the message at a place.
func (w *messageShape) read(at string) (m chat.Message, err error) {
	m.Role, m.ToolCallID = roleOf(w.Role), w.ToolCallID
	switch {
	case m.Role == chat.ToolRole && m.ToolCallID == "":
		return m, invalid(member(at, "tool_call_id"), "%s does not say which call it answers", at)
	case m.Role != chat.Assistant && len(w.ToolCalls) > 0:
		return m, invalid(member(at, "tool_calls"), "only an assistant message has tool_calls")
	}
	if m.Role == chat.Assistant && w.ReasoningContent != "" {
		m.Parts = append(m.Parts, chat.Part{Type: chat.ReasoningPart, Text: w.ReasoningContent})
	}
	for _, c := range w.ToolCalls {
		m.ToolCalls = append(m.ToolCalls, call(c.ID, c.Function.Name, c.Function.Arguments))
	}
	parts, err := w.Content.read(member(at, "content"), m.Role)
	if err != nil {
		return m, err
	}
	m.Parts = append(m.Parts, parts...)
	if w.Refusal != "" {
		m.Parts = append(m.Parts, chat.Part{Type: chat.TextPart, Text: w.Refusal})
	}
	if len(m.Parts) == 0 && (m.Role == chat.System || m.Role == chat.User) {
		return m, invalid(member(at, "content"), "%s has no content", at)
	}
	return m, nil
}

// roleOf returns the role that a request names.
func roleOf(name string) chat.Role {
	if name == "developer" {
		return chat.System
	}
	return chat.Role(name)
}

// call returns a call as the model made it.
func call(id, name, arguments string) chat.ToolCall {
	return chat.ToolCall{ID: id, Name: name, Arguments: cmp.Or(arguments, "{}")}
}

// readFile reads a file at a place: what is in it, or where it is.
func readFile(name, data, url, at string) (chat.Part, error) {
	name = cmp.Or(name, "file")
	switch {
	case data == "" && (strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://")):
		return chat.Part{Type: filePart, Text: name, URL: url}, nil
	case data == "" && url != "":
		return chat.Part{}, invalid(member(at, "file_url"), "%s.file_url must be an https: URL", at)
	case data == "":
		return chat.Part{}, unsupportedError(at, "a file without file_data")
	case !strings.HasPrefix(data, "data:"):
		data = "data:;base64," + data
	case !strings.Contains(data, ";base64,"):
		return chat.Part{}, invalid(member(at, "file_data"), "%s.file_data must be data:TYPE;base64,DATA", at)
	}
	return chat.Part{Type: filePart, Text: name, URL: data}, nil
}

// readImage reads the address of a picture at a place.
func readImage(image *imageShape, at string) (chat.Part, error) {
	if image == nil {
		return chat.Part{}, invalid(at, "%s is missing", at)
	}
	switch scheme, rest, _ := strings.Cut(image.URL, ":"); scheme {
	case "https", "http":
	case "data":
		if media, _, ok := strings.Cut(rest, ";base64,"); !ok || !strings.HasPrefix(media, "image/") {
			return chat.Part{}, invalid(at, "%s must be data:image/TYPE;base64,DATA", at)
		}
	default:
		return chat.Part{}, invalid(at, "%s must be a data: or an https: URL", at)
	}
	return chat.Part{Type: chat.ImagePart, URL: input.PictureURL(image.URL)}, nil
}
