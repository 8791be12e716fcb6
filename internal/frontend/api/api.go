// Package api holds the bodies that the server's REST API exchanges, as plain structs for the
// server, its clients and tests.
//
// A member without omitempty is required in a request and always there in an answer. The other
// tags, such as doc and maximum, are those of huma: they become the OpenAPI document, and what
// they forbid is refused before an endpoint sees it.
package api

import "time"

// CommandLine is the User-Agent of Loki's own command line. Hints to it name commands and flags, where those to
// others name endpoints and members.
const CommandLine = "loki"

// Error is the body of every answer that is an error, except on the OpenAI-compatible endpoints.
type Error struct {
	Error ErrorBody `json:"error"`
}

// ErrorBody says what failed.
type ErrorBody struct {
	Code      string `json:"code" doc:"stable, for programs" example:"not_found"`
	Message   string `json:"message" doc:"what failed, for people"`
	Hint      string `json:"hint,omitempty" doc:"what to do next"`
	RequestID string `json:"request_id" doc:"of the request, as in the header X-Request-Id"`
}

// OpenAIError is the body of an error on the OpenAI-compatible endpoints.
type OpenAIError struct {
	Error OpenAIErrorBody `json:"error"`
}

// OpenAIErrorBody says what failed as clients of OpenAI expect it.
type OpenAIErrorBody struct {
	Message string  `json:"message"`
	Type    string  `json:"type" doc:"kind of the error" example:"invalid_request_error"`
	Param   *string `json:"param" doc:"the member of the request that is wrong"`
	Code    string  `json:"code" doc:"as on the other endpoints"`
}

// List is one page of a list, newest or first in the alphabet first.
type List[T any] struct {
	Object     string `json:"object" enum:"list"`
	Data       []T    `json:"data" nullable:"false"`
	NextCursor string `json:"next_cursor,omitempty" doc:"value of the parameter cursor for the next page; absent on the last one"`
}

// NewList returns a page. A nil data is an empty one.
func NewList[T any](data []T, next string) *List[T] {
	if data == nil {
		data = []T{}
	}
	return &List[T]{Object: "list", Data: data, NextCursor: next}
}

// Check says who the caller is.
type Check struct {
	Subject string   `json:"subject" doc:"whom the key belongs to; anonymous where the server asks for no key"`
	KeyID   string   `json:"key_id,omitempty" doc:"id of the key"`
	Scopes  []string `json:"scopes" nullable:"false" doc:"what the key allows"`
}

// Info describes the server.
type Info struct {
	Name         string    `json:"name" enum:"loki"`
	Version      string    `json:"version"`
	DefaultModel string    `json:"default_model,omitempty" doc:"answers requests that name none"`
	Auth         string    `json:"auth" doc:"how callers are known" enum:"disabled,static_keys,jwt"`
	Memory       string    `json:"memory" doc:"what models may do with what is remembered" enum:"off,read,propose,write"`
	Limits       Limits    `json:"limits"`
	StartedAt    time.Time `json:"started_at"`
}

// Limits are those of the server.
type Limits struct {
	MaxBodyBytes          int64 `json:"max_body_bytes"`
	MaxConcurrentRequests int   `json:"max_concurrent_requests"`
	PerSubjectConcurrency int   `json:"per_subject_concurrency"`
	RequestTimeoutSeconds int   `json:"request_timeout_seconds"`
}

// Model is a model, role or agent that completions may name. Its first four members are those of
// OpenAI.
type Model struct {
	ID      string `json:"id" doc:"client:model, role:NAME or agent:NAME"`
	Object  string `json:"object" enum:"model"`
	Created int64  `json:"created" doc:"always 0: it is not known"`
	OwnedBy string `json:"owned_by" doc:"the client, or loki"`

	Kind            string   `json:"kind" enum:"chat,embedding,reranker,role,agent"`
	Default         bool     `json:"default,omitempty" doc:"answers requests that name none"`
	Description     string   `json:"description,omitempty"`
	MaxInputTokens  int      `json:"max_input_tokens,omitempty"`
	MaxOutputTokens int      `json:"max_output_tokens,omitempty"`
	InputPrice      *float64 `json:"input_price,omitempty" doc:"US dollars for a million tokens; absent if it is not known"`
	OutputPrice     *float64 `json:"output_price,omitempty" doc:"US dollars for a million tokens; absent if it is not known"`
	Vision          bool     `json:"supports_vision,omitempty"`
	Tools           bool     `json:"supports_function_calling,omitempty"`
	Reasoning       bool     `json:"supports_reasoning,omitempty"`
}

// Agent is an agent in the list.
type Agent struct {
	Name        string `json:"name"`
	Kind        string `json:"kind" enum:"plain,graph,unknown" doc:"unknown if its files cannot be read"`
	Version     string `json:"version,omitempty"`
	Description string `json:"description,omitempty"`
}

// Role is a role in the list.
type Role struct {
	Name        string `json:"name"`
	Model       string `json:"model,omitempty" doc:"that the role asks for"`
	Description string `json:"description,omitempty" doc:"beginning of its prompt"`
}

// RAG is a knowledge base in the list.
type RAG struct {
	Name string `json:"name"`
}

// RAGDetail describes a knowledge base and its documents.
type RAGDetail struct {
	Name    string    `json:"name"`
	Model   string    `json:"embedding_model"`
	Built   string    `json:"built" doc:"when it was built last" format:"date-time"`
	Chunks  int       `json:"chunks"`
	Bytes   int       `json:"bytes" doc:"of its file"`
	Sources []string  `json:"document_paths" nullable:"false" doc:"where its documents come from"`
	Files   []RAGFile `json:"files" nullable:"false" doc:"its documents"`
}

// RAGFile is a document of a knowledge base.
type RAGFile struct {
	Path   string `json:"path"`
	Chunks int    `json:"num_chunks"`
	Unread string `json:"not_read,omitempty" doc:"parts that were not read"`
}

// RAGQuery is a search in a knowledge base.
type RAGQuery struct {
	Query string `json:"query" minLength:"1"`
}

// RAGPassage is a passage that was found.
type RAGPassage struct {
	Source  string  `json:"source" doc:"document and place, as answers name it"`
	Heading string  `json:"heading,omitempty"`
	Text    string  `json:"text"`
	Score   float64 `json:"score" doc:"orders the passages of one search, and means nothing beside that"`
}

// Code is a text in a programming language.
type Code struct {
	Language string `json:"language" maxLength:"64" doc:"name or file extension, as after the fence of a block in Markdown"`
	Text     string `json:"text" doc:"of more than 128 KiB the rest has no kinds"`
}

// Token is a part of [Code].
type Token struct {
	Text string `json:"text"`
	Kind string `json:"kind,omitempty" doc:"scopes of TextMate themes, such as keyword.control; absent for plain text"`
}

// Health says whether the server works.
type Health struct {
	Status string `json:"status" enum:"ok,unavailable"`
	Reason string `json:"reason,omitempty" doc:"why it does not"`
}
