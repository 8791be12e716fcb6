package anthropic

import (
	"cmp"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider/wire"
)

// counts returns what a server reports in our terms.
func (u usage) counts() chat.Usage {
	sane := func(n wire.Int) int { return min(max(0, int(n)), maxCount) }
	read, written, out := sane(u.CacheRead), sane(u.CacheCreation), sane(u.Output)
	return chat.Usage{
		InputTokens:       sane(u.Input) + read + written,
		CachedInputTokens: read,
		CacheWriteTokens:  written,
		OutputTokens:      out,
		ReasoningTokens:   min(sane(u.OutputDetails.Thinking), out),
	}
}

// maxCount bounds a count, so that sums of nonsense stay in range.
const maxCount = 1 << 40

// count takes a usage. Those of a stream are cumulative, but the later ones do not repeat
// everything.
func (d *decoder) count(u chat.Usage) {
	if u.InputTokens > 0 && u.InputTokens >= d.usage.InputTokens {
		d.usage.InputTokens = u.InputTokens
		d.usage.CachedInputTokens = u.CachedInputTokens
		d.usage.CacheWriteTokens = u.CacheWriteTokens
	}
	d.usage.OutputTokens = cmp.Or(u.OutputTokens, d.usage.OutputTokens)
	d.usage.ReasoningTokens = min(cmp.Or(u.ReasoningTokens, d.usage.ReasoningTokens), d.usage.OutputTokens)
}
