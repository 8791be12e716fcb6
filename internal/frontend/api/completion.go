package api

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"loki/internal/llm/chat"
)

// CompletionRequest asks a model, a role or an agent.
type CompletionRequest struct {
	Prompt Prompt       `json:"prompt"`
	Model  string       `json:"model,omitempty" maxLength:"256" doc:"client:model; absent for that of the agent, the role, the session or the configuration"`
	Role   string       `json:"role,omitempty" maxLength:"256"`
	Agent  string       `json:"agent,omitempty" maxLength:"256" doc:"name of an agent"`
	RAG    string       `json:"rag,omitempty" maxLength:"256" doc:"name of the knowledge base to answer from"`
	Stream bool         `json:"stream,omitempty" doc:"answer with server-sent events, as the header Accept: text/event-stream does"`
	Files  []PromptFile `json:"files,omitempty" maxItems:"100" doc:"documents and pictures for the model" nullable:"false"`

	Temperature     *float64 `json:"temperature,omitempty" minimum:"0" maximum:"2"`
	TopP            *float64 `json:"top_p,omitempty" minimum:"0" maximum:"1"`
	Effort          string   `json:"effort,omitempty" enum:"none,minimal,low,medium,high,xhigh,max" doc:"how much a model that reasons thinks"`
	Mode            string   `json:"mode,omitempty" enum:"ask,plan" doc:"what tools may change: ask, or nothing until a plan is accepted"`
	MaxOutputTokens int      `json:"max_output_tokens,omitempty" minimum:"1" doc:"of each reply of the model"`

	AutoContinue *bool             `json:"auto_continue,omitempty" doc:"lets the model continue while its todo list has open items"`
	Variables    map[string]string `json:"variables,omitempty" doc:"values of the agent's variables"`
	Schema       map[string]any    `json:"schema,omitempty" doc:"JSON Schema of the answer, which then is in parsed"`
	Detach       bool              `json:"detach,omitempty" doc:"the run of a graph agent continues when the client leaves"`
}

// Prompt is what a user says: a text, or parts.
type Prompt struct {
	Text  string
	Parts []PromptPart // nil for a text
}

// PromptPart is a part of a prompt.
type PromptPart struct {
	Type     string       `json:"type" enum:"text,image_url,file"`
	Text     string       `json:"text,omitempty"`
	ImageURL *PromptImage `json:"image_url,omitempty"`
	File     *PromptFile  `json:"file,omitempty"`
}

// PromptImage is where a picture is.
type PromptImage struct {
	URL string `json:"url" minLength:"1" doc:"an https: or a data: URL"`
}

// PromptFile is a document or a picture: at a path of the server, at an address, or sent along.
type PromptFile struct {
	Path          string `json:"path,omitempty" doc:"below one of api.files.roots"`
	URL           string `json:"url,omitempty" doc:"http: or https:, not of a private network"`
	Name          string `json:"name,omitempty" maxLength:"256" doc:"of what is sent along"`
	ContentBase64 string `json:"content_base64,omitempty" contentEncoding:"base64"`
	MediaType     string `json:"media_type,omitempty" maxLength:"256" doc:"of what is sent along; absent for that of the extension"`
}

// Schema implements huma.SchemaProvider.
func (Prompt) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{
		Description: "what the user says: a text, or parts",
		OneOf: []*huma.Schema{
			{Type: huma.TypeString, MinLength: new(1)},
			{Type: huma.TypeArray, MinItems: new(1), MaxItems: new(1000), Items: r.Schema(reflect.TypeFor[PromptPart](), true, "")},
		},
	}
}

// UnmarshalJSON reads either form.
func (p *Prompt) UnmarshalJSON(data []byte) error {
	*p = Prompt{}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		return json.Unmarshal(data, &p.Parts)
	}
	return json.Unmarshal(data, &p.Text)
}

// MarshalJSON writes the form that p has.
func (p Prompt) MarshalJSON() ([]byte, error) {
	if p.Parts != nil {
		return json.Marshal(p.Parts)
	}
	return json.Marshal(p.Text)
}

// Completion is an answer.
type Completion struct {
	RequestID     string           `json:"request_id"`
	SessionID     *string          `json:"session_id" doc:"null outside of sessions"`
	FinalMessage  string           `json:"final_message" doc:"the answer"`
	ToolCalls     []CompletionCall `json:"tool_calls" nullable:"false" doc:"in their order"`
	Turns         int              `json:"turns" doc:"calls of the model"`
	Compressed    bool             `json:"compressed" doc:"the session was compressed"`
	AutoContinued int              `json:"auto_continued" doc:"how often the model was asked to continue"`
	Usage         TokenUsage       `json:"usage"`
	Model         string           `json:"model,omitempty" doc:"that answered; absent for a graph agent"`
	FinishReason  string           `json:"finish_reason" doc:"question: the answer to a question is awaited" enum:"stop,length,tool_calls,content_filter,other,question"`
	RunID         string           `json:"run_id,omitempty" doc:"of the run on record, if there is one"`
	Parsed        any              `json:"parsed,omitempty" doc:"the answer as JSON, if a schema asked for it"`
	Question      *OpenQuestion    `json:"question,omitempty" doc:"what the run waits for; POST /v1/runs/{id}/answers answers it"`
	Warnings      []string         `json:"warnings,omitempty"`
}

// CompletionCall is a call of a tool with its result. Result and IsError are nil if it was not made: it waits for consent, say.
type CompletionCall struct {
	ID      string  `json:"id"`
	Name    string  `json:"name"`
	Args    string  `json:"args" doc:"JSON, as the tool gets it"`
	Result  *string `json:"result,omitempty" doc:"absent if the call was not made, such as while it waits for consent"`
	IsError *bool   `json:"is_error,omitempty" doc:"absent if the call was not made"`
}

// OpenQuestion is a question that waits for its answer.
type OpenQuestion struct {
	ID      string   `json:"id"`
	Text    string   `json:"text"`
	Options []string `json:"options,omitempty"`
	Default *string  `json:"default,omitempty"`
}

// TokenUsage counts tokens.
type TokenUsage struct {
	InputTokens       int      `json:"input_tokens"`
	OutputTokens      int      `json:"output_tokens"`
	CachedInputTokens int      `json:"cached_input_tokens" doc:"part of input_tokens"`
	ReasoningTokens   int      `json:"reasoning_tokens" doc:"part of output_tokens"`
	CostUSD           *float64 `json:"cost_usd" doc:"null if prices are not known"`
	Estimated         bool     `json:"estimated" doc:"a provider did not report the usage of at least one call"`
}

// NewTokenUsage returns u as clients get it.
func NewTokenUsage(u chat.Usage) TokenUsage {
	used := TokenUsage{
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CachedInputTokens: u.CachedInputTokens, ReasoningTokens: u.ReasoningTokens, Estimated: u.Estimated,
	}
	if !u.CostUnknown {
		used.CostUSD = &u.Cost
	}
	return used
}

// CompletionStarted is the first event of a stream.
type CompletionStarted struct {
	RequestID string  `json:"request_id"`
	SessionID *string `json:"session_id"`
	RunID     string  `json:"run_id,omitempty"`
	Model     string  `json:"model,omitempty"`
}

// CompletionFinished is the last event of a stream.
type CompletionFinished struct {
	Outcome CompletionOutcome `json:"outcome"`
}

// CompletionOutcome is [Completion] at the end of a stream, whose events have the calls of tools.
type CompletionOutcome struct {
	FinalMessage  string        `json:"final_message"`
	ToolCalls     int           `json:"tool_calls"`
	Turns         int           `json:"turns"`
	Compressed    bool          `json:"compressed"`
	AutoContinued int           `json:"auto_continued"`
	Usage         TokenUsage    `json:"usage"`
	Model         string        `json:"model,omitempty"`
	FinishReason  string        `json:"finish_reason"`
	RunID         string        `json:"run_id,omitempty"`
	Parsed        any           `json:"parsed,omitempty"`
	Question      *OpenQuestion `json:"question,omitempty"`
}
