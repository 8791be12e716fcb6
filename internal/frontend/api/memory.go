package api

import "time"

// Fact is something that is remembered for later conversations, or a proposal of a model.
type Fact struct {
	ID       string     `json:"id"`
	Scope    string     `json:"scope" enum:"user,workspace,agent" doc:"where it holds: in all conversations, or in those of a workspace or an agent"`
	Of       string     `json:"of,omitempty" doc:"the workspace or the agent"`
	Title    string     `json:"title"`
	Text     string     `json:"text" doc:"of a proposal to forget a fact: the reason"`
	Tags     []string   `json:"tags,omitempty"`
	By       string     `json:"by" doc:"user or model"`
	Tainted  bool       `json:"tainted,omitempty" doc:"the model that wrote it had read what others wrote"`
	Pinned   bool       `json:"pinned,omitempty" doc:"it comes with each question"`
	Created  time.Time  `json:"created"`
	Updated  time.Time  `json:"updated"`
	Expires  *time.Time `json:"expires,omitempty"`
	Proposed bool       `json:"proposed,omitempty" doc:"it does not count before it is accepted"`
	Changes  string     `json:"changes,omitempty" doc:"id of the fact that the proposal changes or forgets"`
	Forgets  bool       `json:"forgets,omitempty"`
	Version  string     `json:"version" doc:"another one after each change"`
}

// FactRequest adds a fact.
type FactRequest struct {
	Text    string   `json:"text" minLength:"1" maxLength:"8000" doc:"at most 2000 characters"`
	Title   string   `json:"title,omitempty" maxLength:"400" doc:"absent for the first line of the text"`
	Tags    []string `json:"tags,omitempty" maxItems:"10" nullable:"false"`
	Agent   string   `json:"agent,omitempty" maxLength:"256" doc:"the agent for which it holds; absent for all conversations"`
	Pinned  bool     `json:"pinned,omitempty"`
	Expires string   `json:"expires,omitempty" maxLength:"40" doc:"a day, or a time as in RFC 3339"`
}

// FactChange changes a fact. What is absent stays.
type FactChange struct {
	Text    *string  `json:"text,omitempty" minLength:"1" maxLength:"8000"`
	Title   *string  `json:"title,omitempty" maxLength:"400"`
	Tags    []string `json:"tags,omitempty" maxItems:"10" nullable:"false"`
	Pinned  *bool    `json:"pinned,omitempty"`
	Expires *string  `json:"expires,omitempty" maxLength:"40" doc:"empty for never"`
	Version string   `json:"version,omitempty" maxLength:"64" doc:"of the fact as it was read: a fact that has changed since is not changed (409)"`
}
