package anthropic

import (
	"cmp"

	"loki/internal/chat"
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
