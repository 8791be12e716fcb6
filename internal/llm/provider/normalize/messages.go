package normalize

import (
	"encoding/json"

	"loki/internal/llm/chat"
)

// Part is a part of a message's content in the formats of OpenAI and Cohere.
type Part struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitempty"`
	Thinking string    `json:"thinking,omitempty"` // Cohere
	ImageURL *ImageURL `json:"image_url,omitempty"`
}

// ImageURL is where an image is.
type ImageURL struct {
	URL string `json:"url"`
}

// Tool declares a tool in these formats.
type Tool struct {
	Type     string          `json:"type"`
	Function ToolDeclaration `json:"function"`
}

// ToolDeclaration describes a tool to a model.
type ToolDeclaration struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

// FunctionTool declares t.
func FunctionTool(t chat.Tool) Tool {
	return Tool{"function", ToolDeclaration{t.Name, t.Description, t.Parameters}}
}

// Function is the tool that a call names, with its arguments.
type Function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// FunctionOf returns the function of a past call.
func FunctionOf(c chat.ToolCall) Function {
	return Function{Name: c.Name, Arguments: string(Arguments(c.Arguments))}
}

// Messages translates a conversation into the messages of these formats. assistant translates
// a message of the assistant and reports false to leave it out; inLoop is true after the last
// message of the user, last for the last message. other returns a message with a content that
// is a string or a []Part; callID is that of a tool's result. Images of tools follow their
// results as a message of the user, since a result has none in these formats.
func Messages[M any](messages []chat.Message, assistant func(m chat.Message, inLoop, last bool) (M, bool), other func(role chat.Role, content any, callID string) M) []M {
	out := make([]M, 0, len(messages))
	loop := 0
	for i, m := range messages {
		if m.Role == chat.User {
			loop = i + 1
		}
	}
	var images []Part // that the tools of the current round returned
	for i, m := range messages {
		if m.Role != chat.ToolRole && images != nil {
			out = append(out, other(chat.User, images, ""))
			images = nil
		}
		switch m.Role {
		case chat.Assistant:
			if s, ok := assistant(m, i >= loop, i == len(messages)-1); ok {
				out = append(out, s)
			}
		case chat.ToolRole:
			out = append(out, other(m.Role, m.Text(), m.ToolCallID))
			images = append(images, ToolImages(m, textPart, imagePart)...)
		case chat.User:
			out = append(out, other(m.Role, Content(m, textPart, imagePart), ""))
		default:
			out = append(out, other(m.Role, m.Text(), ""))
		}
	}
	if images != nil {
		out = append(out, other(chat.User, images, ""))
	}
	return out
}

func textPart(text string) Part { return Part{Type: "text", Text: text} }

func imagePart(url string) Part { return Part{Type: "image_url", ImageURL: &ImageURL{url}} }
