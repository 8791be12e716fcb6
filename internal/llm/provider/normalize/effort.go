package normalize

import "loki/internal/llm/provider"

// ThinkingBudget returns how many tokens a model may think with an effort, 0 for an effort that
// asks for no thinking.
func ThinkingBudget(e provider.Effort) int {
	return map[provider.Effort]int{
		provider.MinimalEffort: 1024, provider.LowEffort: 4096, provider.MediumEffort: 16000, provider.HighEffort: 32000,
		provider.XHighEffort: 40000, provider.MaxEffort: 48000,
	}[e]
}
