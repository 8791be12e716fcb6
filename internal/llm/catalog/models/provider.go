package models

import (
	"slices"
	"time"

	"loki/internal/llm/catalog"
)

// provider is a provider and its models, as JSON has them.
type provider struct {
	Name   string          `json:"provider"`
	Models []catalog.Model `json:"models"`
}

// models returns the models with the types that JSON leaves out.
func (p provider) models() []catalog.Model {
	models := make([]catalog.Model, len(p.Models))
	for i, m := range p.Models {
		m.Type = catalog.ParseType(string(m.Type))
		models[i] = m
	}
	return models
}

// sane reports whether m is an entry that [encode] could have written.
func sane(m catalog.Model) bool {
	for _, n := range []int{m.MaxInputTokens, m.MaxOutputTokens, m.MaxTokensPerChunk, m.DefaultChunkSize, m.MaxBatchSize} {
		if n < 0 {
			return false
		}
	}
	for _, price := range []*float64{m.InputPrice, m.OutputPrice, m.CachedInputPrice, m.CacheWritePrice} {
		if price != nil && *price < 0 {
			return false
		}
	}
	switch m.Type {
	case "", catalog.Embedding, catalog.Reranker:
	default:
		return false
	}
	for _, level := range m.ReasoningLevels {
		if !slices.Contains(catalog.Levels(), level) {
			return false
		}
	}
	for _, api := range []string{m.API, m.ToolsAPI} {
		if api != "" && api != catalog.ChatCompletionsAPI && api != catalog.ResponsesAPI {
			return false
		}
	}
	_, err := time.Parse(time.DateOnly, m.Retired)
	return err == nil || m.Retired == ""
}
