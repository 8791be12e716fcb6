package openai

import (
	"encoding/json"
	"slices"

	"loki/internal/conversation"
	"loki/internal/llm/chat"
)

// request is what a client asks for, in the program's own words.
type request struct {
	Model string // as the client names it

	History []chat.Message // at most one system message, first
	User    chat.Message   // the last message, if the user wrote it; else the zero value

	chat.Sampling
	chat.Constraints
	MaxOutputTokens int // 0 for no limit of the client's

	Tools   []chat.Tool
	OneCall bool               // at most one call of Tools in an answer
	Form    *conversation.Form // nil for any text

	Stream       bool
	IncludeUsage bool // the stream ends with what was used
	Loki         loki

	unread []string // warnings about what was not read of documents

	place  string // the member that History and User come from
	goesOn bool   // what was said before comes from elsewhere, so that results may be those of calls there
}

// loki is the member of requests that clients of OpenAI do not know.
type loki struct {
	RunID     string            `json:"run_id,omitempty" doc:"run of an agent whose question the last user message answers"`
	Detach    bool              `json:"detach,omitempty" doc:"the run of the agent continues when the client leaves"`
	Variables map[string]string `json:"variables,omitempty" doc:"values of the agent's variables"`
}

// effort reads an effort at a place of the request.
func (r *request) effort(text, at string) error {
	if r.Effort = chat.Effort(text); text != "" && !r.Effort.Valid() {
		return invalid(at, "%s must be one of %s", at, chat.EffortNames())
	}
	return nil
}

// form reads the JSON Schema at a place, which the answer must satisfy.
func (r *request) form(name string, schema json.RawMessage, at string) error {
	if len(schema) == 0 {
		return invalid(at, "%s is missing", at)
	}
	f, err := conversation.NewForm(name, schema)
	if err != nil {
		return invalid(at, "%v", err)
	}
	r.Form = f
	return nil
}

// addTool adds a function of the client at a place.
func (r *request) addTool(t chat.Tool, at string) error {
	if t.Name == "" {
		return invalid(member(at, "name"), "%s has no name", at)
	}
	for _, other := range r.Tools {
		if other.Name == t.Name {
			return invalid(member(at, "name"), "two tools are called %q", t.Name)
		}
	}
	if len(t.Parameters) > 0 && t.Parameters[0] != '{' {
		return invalid(member(at, "parameters"), "%s.parameters must be an object", at)
	}
	r.Tools = append(r.Tools, t)
	return nil
}

// choose reads which tools the model may call: none, auto, required, or the function called name.
func (r *request) choose(mode, name, at string) error {
	switch {
	case mode == "none":
		r.Tools = nil // the model is not offered what it must not call
	case mode == "auto" || mode == "":
	case mode == "required" && len(r.Tools) == 0:
		return invalid(at, "%s is required, but there are no tools", at)
	case mode == "required":
		r.Choice = chat.ToolChoice{Required: true}
	case mode != "function":
		return unsupportedError(at, mode)
	default:
		for _, t := range r.Tools {
			if t.Name == name {
				r.Choice = chat.ToolChoice{Required: true, Name: name}
				return nil
			}
		}
		return invalid(at, "%s names %q, which is not one of the tools", at, name)
	}
	return nil
}

// take makes messages the conversation of the request. Their system messages become one, at the
// beginning. Calls without a result, and results without a call, are errors.
func (r *request) take(messages []chat.Message, at string) error {
	r.place = at
	if last := len(messages) - 1; last >= 0 && !slices.ContainsFunc(messages, func(m chat.Message) bool { return m.Role != chat.System }) {
		messages = slices.Clone(messages) // some clients put all into a system message
		messages[last].Role = chat.User
	}
	var system chat.Message
	var rest []chat.Message
	open := make(map[string]string) // names of tools by the ids of calls without a result
	asked := false
	for i, m := range messages {
		place := element(at, i)
		if len(open) > 0 && m.Role != chat.ToolRole && m.Role != chat.System {
			break // reported below
		}
		switch m.Role {
		case chat.System:
			if system.Role == chat.System {
				system.Parts = append(system.Parts, chat.Part{Type: chat.TextPart, Text: "\n\n"})
			}
			system.Role, system.Parts = chat.System, append(system.Parts, m.Parts...)
			continue
		case chat.User:
			asked = true
		case chat.Assistant:
			for _, c := range m.ToolCalls {
				open[c.ID] = c.Name
			}
		case chat.ToolRole:
			name, ok := open[m.ToolCallID]
			if asked = asked || r.goesOn; !ok && !(r.goesOn && len(rest) == countResults(rest)) {
				return invalid(member(place, "tool_call_id"), "no call with the id %q waits for a result", m.ToolCallID)
			}
			delete(open, m.ToolCallID)
			m.ToolName = name
		}
		rest = append(rest, m)
	}
	if len(open) > 0 {
		return invalid(at, "each tool call needs a result, directly behind the message with the call")
	}
	if !asked {
		return invalid(at, "the user says nothing in %s", at)
	}
	if last := len(rest) - 1; rest[last].Role == chat.User {
		r.User, rest = rest[last], rest[:last]
	}
	if system.Role == chat.System && len(system.Parts) > 0 {
		r.History = append(r.History, chat.Text(chat.System, system.Text()))
	}
	r.History = append(r.History, rest...)
	return nil
}

// countResults returns how many messages there are at the beginning that are results of tools.
func countResults(messages []chat.Message) (n int) {
	for n < len(messages) && messages[n].Role == chat.ToolRole {
		n++
	}
	return n
}
