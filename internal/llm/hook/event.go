package hook

import (
	"encoding/json"

	"loki/internal/llm/chat"
)

// Event is what a hook reads on its standard input. Members that do not apply are left out.
type Event struct {
	Kind Kind   `json:"kind"`
	Hook string `json:"hook"` // name of the hook that reads it
	// ID names the call, request, session or question within its run. The events before and after have the same.
	ID string `json:"id,omitempty"`

	Run     string `json:"run,omitempty"`     // id, of work that has one
	Session string `json:"session,omitempty"` // name
	Agent   string `json:"agent,omitempty"`   // name
	AgentID string `json:"agent_id,omitempty"`
	Depth   int    `json:"depth,omitempty"` // 1 for children of what the user started, ...
	Node    string `json:"node,omitempty"`  // of a graph

	Tool     *ToolCall  `json:"tool,omitempty"`     // of BeforeTool and AfterTool
	Model    *ModelCall `json:"model,omitempty"`    // of BeforeModel and AfterModel
	Question *Asked     `json:"question,omitempty"` // of Question
}

// ToolCall is a call of a tool in an [Event].
type ToolCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"` // an object
	// Result is the text for the model, of AfterTool.
	Result *string `json:"result,omitempty"`
	Failed bool    `json:"failed,omitempty"` // the result reports a failure
}

// ModelCall is a request to a model in an [Event].
type ModelCall struct {
	ID       string    `json:"id"`                 // client:model
	Turn     int       `json:"turn"`               // request of the same question, from 1
	Tools    []string  `json:"tools,omitempty"`    // names of the ones that are offered
	Messages []Message `json:"messages,omitempty"` // all of the request, of BeforeModel
	// Reply, Stop and Usage are of AfterModel.
	Reply *Message        `json:"reply,omitempty"`
	Stop  chat.StopReason `json:"stop,omitempty"`
	Usage *chat.Usage     `json:"usage,omitempty"`
}

// Message is a message in an [Event]. It has neither images nor what the model thought.
type Message struct {
	Role   chat.Role `json:"role"`
	Text   string    `json:"text,omitempty"`
	Images int       `json:"images,omitempty"` // how many it has
	Tool   string    `json:"tool,omitempty"`   // whose result it is
	Calls  []Called  `json:"calls,omitempty"`
}

// Called is a call that a message of a model asks for.
type Called struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // as the model wrote them
}

// Messages returns messages as events have them.
func Messages(list ...chat.Message) []Message {
	sent := make([]Message, len(list))
	for i, m := range list {
		sent[i] = Message{Role: m.Role, Text: m.Text(), Tool: m.ToolName}
		for _, p := range m.Parts {
			if p.Type == chat.ImagePart {
				sent[i].Images++
			}
		}
		for _, c := range m.ToolCalls {
			sent[i].Calls = append(sent[i].Calls, Called{c.Name, c.Arguments})
		}
	}
	return sent
}

// Asked is a question to the user in an [Event].
type Asked struct {
	Text    string   `json:"text"`
	Options []string `json:"options,omitempty"`
	Consent bool     `json:"consent,omitempty"` // whether something may be done
}

// subject returns what patterns of the hooks are compared with, see [Hook.Match].
func (e *Event) subject() string {
	switch {
	case e.Tool != nil:
		return e.Tool.Name
	case e.Model != nil:
		return e.Model.ID
	}
	return e.Agent
}
