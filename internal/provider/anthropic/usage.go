package anthropic

import (
	"cmp"

	"loki/internal/chat"
	"loki/internal/provider"
)

// counts returns what a server tells in our terms: its input tokens are those that were
// neither read from the cache nor written to it.
func counts(input, read, written, output, thinking int64) chat.Usage {
	sane := func(n int64) int { return int(min(max(0, n), maxCount)) }
	out := sane(output)
	return chat.Usage{
		InputTokens:       sane(input) + sane(read) + sane(written),
		CachedInputTokens: sane(read),
		CacheWriteTokens:  sane(written),
		OutputTokens:      out,
		ReasoningTokens:   min(sane(thinking), out),
	}
}

// maxCount bounds a count, so that sums of nonsense stay in range.
const maxCount = 1 << 40

// tell takes a usage. Those of a stream are cumulative, but the later ones do not tell
// everything again.
func (b *builder) tell(u chat.Usage) {
	if u.InputTokens > 0 && u.InputTokens >= b.usage.InputTokens {
		b.usage.InputTokens = u.InputTokens
		b.usage.CachedInputTokens = u.CachedInputTokens
		b.usage.CacheWriteTokens = u.CacheWriteTokens
	}
	b.usage.OutputTokens = cmp.Or(u.OutputTokens, b.usage.OutputTokens)
	b.usage.ReasoningTokens = min(cmp.Or(u.ReasoningTokens, b.usage.ReasoningTokens), b.usage.OutputTokens)
}

// messageTokens is what a message costs beside its text.
const messageTokens = 5

// estimateInput estimates the tokens of a request. Images are not counted.
func estimateInput(req provider.Request) int {
	n := 0
	for _, m := range req.Messages {
		n += messageTokens + chat.EstimateTokens(m.Text())
		for _, c := range m.ToolCalls {
			n += chat.EstimateTokens(c.Name + c.Arguments)
		}
	}
	for _, t := range req.Tools {
		n += chat.EstimateTokens(t.Name + t.Description + string(t.Parameters))
	}
	return n
}
