package conversation

import (
	"math"
	"strings"

	"loki/internal/conversation/session"
	"loki/internal/llm/chat"
)

// State is what is in force in a conversation: for prompts, lists of commands and completion.
type State struct {
	Model             string // id, client:model
	Client, ModelName string // its parts
	MaxInputTokens    int    // of the model; 0 if unknown
	MaxOutputTokens   int    // that was set for the model; 0 if none was
	Temperature, TopP *float64
	Role              string        // name; in a session that of the session; "" for none
	Session           *SessionState // nil for none
	Knowledge         string        // name of the knowledge base that the user named, or of the agent's; "" for none
	Agent             string        // name; "" for none
	Graph             bool          // the agent is a graph
	DryRun            bool
	Stream            bool // replies are shown as they come
	Save              bool // turns outside of sessions are kept in a file
	Highlight         bool
	Mode              chat.Mode
	AutoContinue      bool // the model continues by itself while its todo list has open items
}

// SessionState is what is known of the session of a conversation.
type SessionState struct {
	Name         string // "temp" for a temporary one
	Title        string // what Loki called it; "" if it has not
	Temporary    bool
	Unnamed      bool // it is kept without a name, and left without a question
	Empty        bool // it has no messages
	Dirty        bool // it has changes that were not saved
	Tokens       int
	Percent      float64 // of the model's input limit, with two decimals; 0 if that is unknown
	UserMessages int
}

// State returns what is in force.
func (c *Conversation) State() State {
	s := c.Settings()
	limit := c.outputLimit(s.Model)
	if c.service.ModelID != nil {
		s.Model = c.service.ModelID(s.Model)
	}
	st := State{
		Model: s.Model, MaxInputTokens: c.inputLimit(s.Model), MaxOutputTokens: limit,
		Temperature: s.Temperature, TopP: s.TopP, Role: c.Role(), Knowledge: c.Knowledge(), Agent: c.agentName(),
		DryRun: c.values.dryRun, Stream: !c.values.noStream, Save: c.values.save, Highlight: c.values.highlight, AutoContinue: c.todo().Enabled, Mode: c.Mode(),
	}
	st.Client, st.ModelName, _ = strings.Cut(s.Model, ":")
	if c.agent != nil {
		st.Graph = c.agent.Job != nil
		if st.Knowledge == "" && len(c.agent.InForce.Documents) > 0 {
			st.Knowledge = c.agent.Name
		}
	}
	if c.session != nil {
		st.Session = stateOf(c.session, st.MaxInputTokens)
		st.Session.Unnamed = c.passes()
	}
	return st
}

// stateOf returns what is known of a session whose model takes limit tokens; 0 means unknown.
func stateOf(s *session.Session, limit int) *SessionState {
	st := &SessionState{
		Name: s.Name(), Title: s.Title(), Temporary: s.Temporary(), Empty: s.Empty(), Dirty: s.Dirty(),
		Tokens: s.Tokens(), UserMessages: s.UserMessages(),
	}
	if limit > 0 {
		st.Percent = math.Round(float64(st.Tokens)*10_000/float64(limit)) / 100
	}
	return st
}

// inputLimit returns how many tokens the model called by this id takes; 0 means unknown.
func (c *Conversation) inputLimit(id string) int {
	if c.service.InputLimit == nil {
		return 0
	}
	return c.service.InputLimit(id)
}

// agentName returns the name of the agent in force, "" for none.
func (c *Conversation) agentName() string {
	if c.agent == nil {
		return ""
	}
	return c.agent.Name
}
