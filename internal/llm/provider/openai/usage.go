package openai

import (
	"loki/internal/llm/chat"
	"loki/internal/llm/provider/wire"
)

// wireUsage is what servers report about tokens, under the names of all dialects.
type wireUsage struct {
	PromptTokens     wire.Int `json:"prompt_tokens"`
	CompletionTokens wire.Int `json:"completion_tokens"`
	TotalTokens      wire.Int `json:"total_tokens"`
	PromptDetails    struct {
		CachedTokens     wire.Int `json:"cached_tokens"`
		CacheWriteTokens wire.Int `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		ReasoningTokens wire.Int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	CacheHitTokens wire.Int `json:"prompt_cache_hit_tokens"` // DeepSeek
	CachedTokens   wire.Int `json:"cached_tokens"`           // Moonshot
}

// usage returns u in our terms.
func (u *wireUsage) usage() chat.Usage {
	if u == nil {
		return chat.Usage{}
	}
	atLeast0 := func(n wire.Int) int { return max(0, int(n)) }
	in, out := atLeast0(u.PromptTokens), atLeast0(u.CompletionTokens)
	reasoning := atLeast0(u.CompletionDetails.ReasoningTokens)
	// Some servers, xAI and Gemini among them, count reasoning only in the total.
	if rest := int(u.TotalTokens) - in - out; in > 0 && rest > 0 && (reasoning == 0 || reasoning == rest) {
		out += rest
		reasoning = rest
	}
	cached := max(atLeast0(u.PromptDetails.CachedTokens), atLeast0(u.CacheHitTokens), atLeast0(u.CachedTokens))
	return chat.Usage{
		InputTokens: in, CachedInputTokens: min(cached, in), CacheWriteTokens: min(atLeast0(u.PromptDetails.CacheWriteTokens), in),
		OutputTokens: out, ReasoningTokens: min(reasoning, out),
	}
}

// total returns the tokens of a call that writes nothing, 0 if the server does not report
// them.
func (u *wireUsage) total() int {
	if u == nil {
		return 0
	}
	return max(int(u.PromptTokens), int(u.TotalTokens))
}

// responseUsage is what servers report about tokens in the responses format.
type responseUsage struct {
	InputTokens  wire.Int `json:"input_tokens"`
	OutputTokens wire.Int `json:"output_tokens"`
	InputDetails struct {
		CachedTokens     wire.Int `json:"cached_tokens"`
		CacheWriteTokens wire.Int `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	OutputDetails struct {
		ReasoningTokens wire.Int `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

// inChat returns u under the names of chat completions.
func (u *responseUsage) inChat() *wireUsage {
	if u == nil {
		return nil
	}
	w := &wireUsage{PromptTokens: u.InputTokens, CompletionTokens: u.OutputTokens}
	w.PromptDetails.CachedTokens = u.InputDetails.CachedTokens
	w.PromptDetails.CacheWriteTokens = u.InputDetails.CacheWriteTokens
	w.CompletionDetails.ReasoningTokens = u.OutputDetails.ReasoningTokens
	return w
}
