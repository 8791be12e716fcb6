package catalog

import "loki/internal/llm/chat"

// perMillion is the number of tokens that prices are for.
const perMillion = 1e6

// Cost returns the price of u in US dollars. Input that was read from the provider's
// cache or written to it counts at its own price if that is known, and at the input
// price otherwise.
//
// Known is false if a price of something that u counts is unknown; usd is then what
// the rest costs.
func (m Model) Cost(u chat.Usage) (usd float64, known bool) {
	cached := clamp(u.CachedInputTokens, u.InputTokens)
	written := clamp(u.CacheWriteTokens, u.InputTokens-cached)
	known = true
	for _, part := range []struct {
		tokens int
		price  *float64
	}{
		{u.InputTokens - cached - written, m.InputPrice},
		{cached, either(m.CachedInputPrice, m.InputPrice)},
		{written, either(m.CacheWritePrice, m.InputPrice)},
		{u.OutputTokens, m.OutputPrice},
	} {
		switch {
		case part.tokens <= 0:
		case part.price == nil:
			known = false
		default:
			usd += float64(part.tokens) * *part.price
		}
	}
	return usd / perMillion, known
}

// clamp keeps a part of a count between nothing and the whole: servers have been seen
// to report more cached tokens than tokens.
func clamp(part, whole int) int { return max(0, min(part, whole)) }

func either(price, otherwise *float64) *float64 {
	if price != nil {
		return price
	}
	return otherwise
}
