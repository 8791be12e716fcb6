package models

import (
	"slices"
	"time"

	"loki/internal/catalog"
	"loki/internal/value"
)

// provider is the JSON form of a provider. It has the members of the YAML form, so
// that every text in it can be read as YAML too.
type provider struct {
	Name   string  `json:"provider"`
	Models []entry `json:"models"`
}

// entry is the JSON form of a model.
type entry struct {
	Name     string `json:"name"`
	Type     string `json:"type,omitempty"` // absent for chat
	RealName string `json:"real_name,omitempty"`

	MaxInputTokens   int      `json:"max_input_tokens,omitempty"`
	MaxOutputTokens  int      `json:"max_output_tokens,omitempty"`
	RequireMaxTokens bool     `json:"require_max_tokens,omitempty"`
	InputPrice       *float64 `json:"input_price,omitempty"`
	OutputPrice      *float64 `json:"output_price,omitempty"`
	CachedInputPrice *float64 `json:"cached_input_price,omitempty"`
	CacheWritePrice  *float64 `json:"cache_write_price,omitempty"`

	SupportsVision          bool     `json:"supports_vision,omitempty"`
	SupportsFunctionCalling bool     `json:"supports_function_calling,omitempty"`
	SupportsReasoning       bool     `json:"supports_reasoning,omitempty"`
	ReasoningLevels         []string `json:"reasoning_levels,omitzero"` // an empty list is not none
	API                     string   `json:"api,omitempty"`
	ToolsAPI                string   `json:"tools_api,omitempty"`
	NoStream                bool     `json:"no_stream,omitempty"`
	NoSystemMessage         bool     `json:"no_system_message,omitempty"`
	SystemPromptPrefix      string   `json:"system_prompt_prefix,omitempty"`

	MaxTokensPerChunk int `json:"max_tokens_per_chunk,omitempty"`
	DefaultChunkSize  int `json:"default_chunk_size,omitempty"`
	MaxBatchSize      int `json:"max_batch_size,omitempty"`

	Hidden     bool   `json:"hidden,omitempty"`
	Retired    string `json:"retired,omitempty"`
	ReplacedBy string `json:"replaced_by,omitempty"`

	Patch     *patch   `json:"patch,omitempty"`
	Fallbacks []string `json:"fallback_models,omitzero"` // an empty list is not none
}

// patch is the JSON form of a request patch. Headers are an object of strings and
// nulls; a value keeps the order of its members.
type patch struct {
	URL     string      `json:"url,omitempty"`
	Body    value.Value `json:"body,omitzero"`
	Headers value.Value `json:"headers,omitzero"`
}

func entryOf(m catalog.Model) entry {
	e := entry{
		Name: m.Name, RealName: m.RealName,
		MaxInputTokens: m.MaxInputTokens, MaxOutputTokens: m.MaxOutputTokens, RequireMaxTokens: m.RequireMaxTokens,
		InputPrice: m.InputPrice, OutputPrice: m.OutputPrice,
		CachedInputPrice: m.CachedInputPrice, CacheWritePrice: m.CacheWritePrice,
		SupportsVision: m.SupportsVision, SupportsFunctionCalling: m.SupportsFunctionCalling, SupportsReasoning: m.SupportsReasoning,
		ReasoningLevels: m.ReasoningLevels, API: m.API, ToolsAPI: m.ToolsAPI,
		NoStream: m.NoStream, NoSystemMessage: m.NoSystemMessage, SystemPromptPrefix: m.SystemPromptPrefix,
		MaxTokensPerChunk: m.MaxTokensPerChunk, DefaultChunkSize: m.DefaultChunkSize, MaxBatchSize: m.MaxBatchSize,
		Hidden: m.Hidden, Retired: m.Retired, ReplacedBy: m.ReplacedBy,
		Patch: patchOf(m.Patch), Fallbacks: m.Fallbacks,
	}
	if m.Type != catalog.Chat {
		e.Type = string(m.Type)
	}
	return e
}

func patchOf(p *catalog.Patch) *patch {
	if p == nil {
		return nil
	}
	e := &patch{URL: p.URL}
	if p.Body != nil {
		e.Body = p.Body.Value()
	}
	var headers []value.Member
	for _, h := range p.Headers {
		m := value.Member{Name: h.Name}
		if h.Value != nil {
			m.Value = value.Of(*h.Value)
		}
		headers = append(headers, m)
	}
	if headers != nil {
		e.Headers = value.ObjectOf(headers...).Value()
	}
	return e
}

func (p provider) models() []catalog.Model {
	models := make([]catalog.Model, len(p.Models))
	for i, e := range p.Models {
		models[i] = e.model()
	}
	return models
}

func (e entry) model() catalog.Model {
	return catalog.Model{
		Name: e.Name, Type: catalog.ParseType(e.Type), RealName: e.RealName,
		MaxInputTokens: e.MaxInputTokens, MaxOutputTokens: e.MaxOutputTokens, RequireMaxTokens: e.RequireMaxTokens,
		InputPrice: e.InputPrice, OutputPrice: e.OutputPrice,
		CachedInputPrice: e.CachedInputPrice, CacheWritePrice: e.CacheWritePrice,
		SupportsVision: e.SupportsVision, SupportsFunctionCalling: e.SupportsFunctionCalling, SupportsReasoning: e.SupportsReasoning,
		ReasoningLevels: e.ReasoningLevels, API: e.API, ToolsAPI: e.ToolsAPI,
		NoStream: e.NoStream, NoSystemMessage: e.NoSystemMessage, SystemPromptPrefix: e.SystemPromptPrefix,
		MaxTokensPerChunk: e.MaxTokensPerChunk, DefaultChunkSize: e.DefaultChunkSize, MaxBatchSize: e.MaxBatchSize,
		Hidden: e.Hidden, Retired: e.Retired, ReplacedBy: e.ReplacedBy,
		Patch: e.Patch.model(), Fallbacks: e.Fallbacks,
	}
}

func (p *patch) model() *catalog.Patch {
	if p == nil {
		return nil
	}
	m := &catalog.Patch{URL: p.URL, Body: p.Body.AsObject()}
	for name, v := range p.Headers.AsObject().All() {
		h := catalog.Header{Name: name}
		if text, ok := v.AsString(); ok {
			h.Value = &text
		}
		m.Headers = append(m.Headers, h)
	}
	return m
}

// sane reports whether e is an entry that [encode] could have written.
func (e entry) sane() bool {
	for _, n := range []int{e.MaxInputTokens, e.MaxOutputTokens, e.MaxTokensPerChunk, e.DefaultChunkSize, e.MaxBatchSize} {
		if n < 0 {
			return false
		}
	}
	for _, price := range []*float64{e.InputPrice, e.OutputPrice, e.CachedInputPrice, e.CacheWritePrice} {
		if price != nil && *price < 0 {
			return false
		}
	}
	switch catalog.Type(e.Type) {
	case "", catalog.Embedding, catalog.Reranker:
	default:
		return false
	}
	for _, level := range e.ReasoningLevels {
		if !slices.Contains(catalog.Levels(), level) {
			return false
		}
	}
	for _, api := range []string{e.API, e.ToolsAPI} {
		if api != "" && api != catalog.ChatCompletionsAPI && api != catalog.ResponsesAPI {
			return false
		}
	}
	if _, err := time.Parse(time.DateOnly, e.Retired); err != nil && e.Retired != "" {
		return false
	}
	return e.Patch == nil || e.Patch.sane()
}

func (p *patch) sane() bool {
	for _, v := range []value.Value{p.Body, p.Headers} {
		if !v.IsNull() && v.AsObject() == nil {
			return false
		}
	}
	for _, v := range p.Headers.AsObject().All() {
		if _, ok := v.AsString(); !ok && !v.IsNull() {
			return false
		}
	}
	return true
}
