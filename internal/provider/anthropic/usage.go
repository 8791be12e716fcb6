package anthropic

import (
	"cmp"

	"loki/internal/chat"
)

// counts returns what a server reports in our terms: its input tokens are those that were
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
