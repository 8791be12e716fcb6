package openai

import (
	"cmp"
	"strings"
)

// dialect is what a client has learned about how a server wants a model to be
// asked. The zero value is what most servers take.
type dialect struct {
	noStreamOptions  bool // rejects stream_options
	completionTokens bool // wants max_completion_tokens instead of max_tokens
	shortIDs         bool // wants tool-call ids of nine letters and digits

	reasoning      reasoningMode
	reasoningField string // where reasoning goes; empty means reasoning_content
}

// reasoningMode says on which assistant messages reasoning is sent back.
type reasoningMode int

const (
	reasoningInLoop reasoningMode = iota // on those with tool calls since the last user message
	reasoningNever
	reasoningAlways // on all, as an empty text where there was none
)

// The names under which servers send reasoning and take it back.
const (
	fieldReasoningContent = "reasoning_content"
	fieldReasoning        = "reasoning"
)

// adapt returns the dialect to try next, if a rejection of the request sent names
// something that can be said in another way.
func (d dialect) adapt(status int, rejected []byte, sent chatRequest) (dialect, bool) {
	if status != 400 && status != 422 && status != 500 {
		return d, false
	}
	words := strings.ToLower(string(rejected))
	says := func(s string) bool { return strings.Contains(words, s) }
	switch {
	case sent.StreamOptions != nil && (says("stream_options") || says("include_usage")):
		d.noStreamOptions = true
	case sent.MaxTokens > 0 && says("max_completion_tokens"):
		d.completionTokens = true
	case !d.shortIDs && says("tool call id") && says("length of 9"):
		d.shortIDs = true
	case d.reasoning == reasoningInLoop && says(fieldReasoningContent) && (says("missing") || says("must be passed")):
		d.reasoning = reasoningAlways
		d.reasoningField = fieldReasoningContent
	case d.reasoning != reasoningNever && sent.hasReasoning() && says(fieldReasoning):
		d.reasoning = reasoningNever
	default:
		return d, false
	}
	return d, true
}

func (c *Client) dialect(model string) dialect {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dialects[model]
}

// learn remembers d, which worked, and the name under which reasoning came, beside
// what other requests have learned in the meantime.
func (c *Client) learn(model string, d dialect, reasoningField string) {
	if d.reasoning != reasoningAlways {
		d.reasoningField = cmp.Or(reasoningField, d.reasoningField)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.dialects[model]
	c.dialects[model] = dialect{
		noStreamOptions:  d.noStreamOptions || known.noStreamOptions,
		completionTokens: d.completionTokens || known.completionTokens,
		shortIDs:         d.shortIDs || known.shortIDs,
		reasoning:        cmp.Or(d.reasoning, known.reasoning),
		reasoningField:   cmp.Or(d.reasoningField, known.reasoningField),
	}
}
