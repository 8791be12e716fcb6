package normalize

import (
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
)

// messageTokens is what a message costs beside its text.
const messageTokens = 5

// EstimatedUsage returns the usage of a reply whose server reports none: an estimate of the
// request, without its images, and the output, in tokens, that the caller has estimated.
func EstimatedUsage(req provider.Request, output int) chat.Usage {
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
	return chat.Usage{InputTokens: n, OutputTokens: output, Estimated: true}
}

// InputUsage returns the usage of a call that reads texts and writes nothing: the tokens
// that the server reports, or an estimate if it reports none, which is 0 or less.
func InputUsage(reported int, texts ...string) chat.Usage {
	if reported > 0 {
		return chat.Usage{InputTokens: reported}
	}
	n := 0
	for _, t := range texts {
		n += chat.EstimateTokens(t)
	}
	return chat.Usage{InputTokens: n, Estimated: true}
}
