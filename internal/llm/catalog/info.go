package catalog

// Info is a model in machine output. Its JSON form is documented and stable: members
// may be added, none is renamed or removed. Unknown members are left out.
type Info struct {
	ID       string `json:"id"`
	Client   string `json:"client"`
	Name     string `json:"name"`
	Type     Type   `json:"type"`
	RealName string `json:"real_name,omitempty"` // the provider's name of it, if it differs

	MaxInputTokens  int `json:"max_input_tokens,omitempty"`
	MaxOutputTokens int `json:"max_output_tokens,omitempty"`

	// Prices are US dollars for a million tokens.
	InputPrice       *float64 `json:"input_price,omitempty"`
	OutputPrice      *float64 `json:"output_price,omitempty"`
	CachedInputPrice *float64 `json:"cached_input_price,omitempty"`
	CacheWritePrice  *float64 `json:"cache_write_price,omitempty"`

	Tools     bool `json:"tools"`
	Vision    bool `json:"vision"`
	Reasoning bool `json:"reasoning"`

	ReasoningLevels []string `json:"reasoning_levels,omitempty"` // efforts the provider takes, ascending

	// Embedding models.
	MaxTokensPerChunk int `json:"max_tokens_per_chunk,omitempty"`
	DefaultChunkSize  int `json:"default_chunk_size,omitempty"`
	MaxBatchSize      int `json:"max_batch_size,omitempty"`

	Fallbacks []string `json:"fallback_models,omitempty"`
}

// Info returns what machine output says about m.
func (m Model) Info() Info {
	info := Info{
		ID: m.ID(), Client: m.Client, Name: m.Name, Type: m.Type,
		MaxInputTokens: m.MaxInputTokens, MaxOutputTokens: m.MaxOutputTokens,
		InputPrice: m.InputPrice, OutputPrice: m.OutputPrice,
		CachedInputPrice: m.CachedInputPrice, CacheWritePrice: m.CacheWritePrice,
		Tools: m.SupportsFunctionCalling, Vision: m.SupportsVision, Reasoning: m.SupportsReasoning, ReasoningLevels: m.ReasoningLevels,
		MaxTokensPerChunk: m.MaxTokensPerChunk, DefaultChunkSize: m.DefaultChunkSize, MaxBatchSize: m.MaxBatchSize,
		Fallbacks: m.Fallbacks,
	}
	if name := m.APIName(); name != m.Name {
		info.RealName = name
	}
	return info
}
