package wire

import (
	"strings"

	"loki/internal/llm/provider"
)

// The wordings by which failures are distinguished, in lower case. They
// are matched against message, type and code together. Servers change statuses
// and codes more often than these words.
var (
	// A conversation that is too long.
	overflowWords = []string{
		"context_length_exceeded", "exceed_context_size", "model_max_prompt_tokens_exceeded", "tokens_limit_reached",
		"maximum context length",     // OpenAI, Azure, DeepSeek, vLLM, SGLang, OpenRouter, Mistral
		"maximum model length",       // vLLM
		"max_model_len",              // vLLM
		"context window",             // OpenAI, MiniMax
		"available context size",     // llama.cpp
		"the context length",         // LM Studio, Ollama
		"model's context length",     // SGLang
		"exceed context limit",       // Anthropic behind a gateway
		"prompt is too long",         // Anthropic
		"prompt too long",            // Ollama
		"prompt tokens too long",     // Qianfan
		"prompt exceeds max length",  // Zhipu
		"maximum prompt length",      // xAI
		"prompt token count of",      // Copilot
		"maximum allowed input",      // Poolside
		"input token count",          // Gemini
		"input is too long",          // Bedrock
		"range of input length",      // Qwen
		"exceeded model token limit", // Moonshot
		"reduce the length of",       // Groq, vLLM
		"too many tokens: total",     // Cohere
		"`max_new_tokens` must be",   // TGI, Together
		"request too large for",      // OpenAI, Groq: over the tokens per minute at once, so waiting does not help
		"request body too large",     // GitHub
	}

	// A key without rights or an account without money.
	authenticationWords = []string{
		"invalid_api_key", "incorrect api key", "invalid api key", "api key not valid", "api_key_invalid",
		"authentication_error", "insufficient_quota", "insufficient balance", "billing_not_active",
		"billing_hard_limit_reached", "exceeded_current_quota_error", "credit_balance_exhausted", "monthly usage limit", "login fail",
	}

	// Content that the provider does not want to see or to write.
	refusalWords = []string{
		"content_filter", "responsibleaipolicyviolation", "content_policy_violation", "content management policy",
		"data_inspection_failed", "requires moderation", "was flagged", "flagged as",
	}

	// A server in trouble.
	transientWords = []string{"overloaded", "server_error", "service_unavailable", "timeout", "api_error"}

	// Too many requests.
	rateWords = []string{"rate_limit", "rate limit", "too_many_requests", "resource_exhausted"}

	// A request that is wrong.
	invalidWords = []string{"invalid_request", "invalid_argument", "invalid params", "model_not_found", "not_found_error", "badrequest", "invalid_prompt", "invalid_image", "invalid_base64_image", "unsupported_image", "image_parse_error"}
)

// classify sorts a failure. status is 0 for a failure inside a reply.
func classify(status int, f failure) provider.ErrorKind {
	said := func(words []string) bool {
		return containsAny(strings.ToLower(f.msg+" "+f.typ+" "+f.code), words)
	}
	if status == 413 || status != 401 && said(overflowWords) {
		return provider.ContextOverflow
	}
	switch {
	case status == 401 || status == 402:
		return provider.Authentication
	case said(authenticationWords):
		return provider.Authentication
	case status == 429:
		return provider.RateLimited
	case status < 429 && said(refusalWords):
		return provider.Refused
	case status == 403:
		return provider.Authentication
	case status == 408, status == 409, status == 425, status >= 500 && status != 501 && status != 505:
		return provider.Transient
	case status != 0:
		return provider.Invalid
	case said(rateWords):
		return provider.RateLimited
	case said(transientWords):
		return provider.Transient
	case said(invalidWords):
		return provider.Invalid
	}
	return provider.Transient
}

func containsAny(s string, words []string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}
