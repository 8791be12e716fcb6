package api

// Usage is what the calls of a subject, a key, an agent or a schedule used.
type Usage struct {
	Name              string  `json:"name" doc:"of the subject, key, agent or schedule; empty for calls without one"`
	Calls             int     `json:"calls" doc:"of models"`
	InputTokens       int     `json:"input_tokens"`
	CachedInputTokens int     `json:"cached_input_tokens"`
	OutputTokens      int     `json:"output_tokens"`
	ReasoningTokens   int     `json:"reasoning_tokens"`
	CostUSD           float64 `json:"cost_usd" doc:"of the calls whose price is known"`
	CostUnknown       bool    `json:"cost_unknown,omitempty" doc:"the price of a call is not known"`
}
