package openai

import (
	"errors"
	"strings"

	"loki/internal/llm/provider/normalize"
	"loki/internal/llm/provider/wire"
)

// dialect is what a client has learned about how a server wants a model to be
// asked. The zero value is what most servers take.
type dialect struct {
	noStreamOptions  bool // rejects stream_options
	completionTokens bool // wants max_completion_tokens instead of max_tokens
	shortIDs         bool // wants tool-call ids of nine letters and digits

	noEffort   bool // rejects the effort
	instead    insteadOf
	tools      toolsMode
	noSampling bool // rejects temperature and top_p
	noCacheKey bool // rejects prompt_cache_key
	noForm     bool // rejects a form of the reply

	noConstraints bool // rejects stop, seed or the penalties

	wantsSignatures bool // rejects calls without a signature
	noSignatures    bool // rejects the signatures of the conversation

	noSummary   bool // rejects summaries of reasoning
	noEncrypted bool // has no encrypted reasoning
	noReplay    bool // rejects the reasoning that is sent back

	reasoning      reasoningMode
	reasoningField string // where reasoning goes; empty means reasoning_content
}

// toolsMode says how a model that reasons is asked with tools.
type toolsMode int

const (
	toolsAnywhere     toolsMode = iota
	inResponsesFormat           // only in the responses format
	withoutReasoning            // the server has no such format: the model does not reason
)

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

// adapt returns the dialect to try next, if err is the rejection of the request sent and
// names something that can be said in another way.
func (d dialect) adapt(err error, sent attempt) (dialect, bool) {
	r, ok := errors.AsType[*wire.Rejection](err)
	if !ok {
		return d, false
	}
	switch r.Err.Status {
	case 400, 422, 500:
		return sent.payload.adapt(strings.ToLower(string(r.Body)), d)
	case 404, 405, 501:
		if sent.routed { // the format was not the user's choice
			d.tools = withoutReasoning
			return d, true
		}
	}
	return d, false
}

// refusesSampling reports whether a rejection says that the model takes no temperature or
// no top_p, and not that a value is wrong.
func refusesSampling(words string) bool {
	says := func(s string) bool { return strings.Contains(words, s) }
	return (says("temperature") || says("top_p")) &&
		(says("unsupported") || says("not support") || says("deprecated") || says("not permitted") || says("not allowed"))
}

// adapt implements [payload].
func (r chatRequest) adapt(words string, d dialect) (dialect, bool) {
	says := func(s string) bool { return strings.Contains(words, s) }
	switch {
	case r.StreamOptions != nil && (says("stream_options") || says("include_usage")):
		d.noStreamOptions = true
	case r.MaxTokens > 0 && says("max_completion_tokens"):
		d.completionTokens = true
	case !d.shortIDs && says("tool call id") && says("length of 9"):
		d.shortIDs = true
	case len(r.Tools) > 0 && d.tools != withoutReasoning && says("reasoning_effort") && (says("function tools") || says("v1/responses")):
		if d.tools == inResponsesFormat { // and the request came here all the same
			d.tools = withoutReasoning
		} else {
			d.tools = inResponsesFormat
		}
	case r.ReasoningEffort != "" && (says("reasoning_effort") || says("does not support thinking")): // the latter is Ollama's
		d = d.withoutEffort(r.ReasoningEffort, words)
	case r.Format != nil && normalize.RefusesFormat(words):
		d.noForm = true
	case says("thought_signature") || says("thought signature"):
		switch {
		case says("missing") && r.calls() && !d.wantsSignatures && !d.noSignatures:
			d.wantsSignatures = true
		case r.signed():
			d.noSignatures = true
		default:
			return d, false
		}
	case says("reasoning_details") && r.signed():
		d.noSignatures = true
	case r.CacheKey != "" && says("prompt_cache_key"):
		d.noCacheKey = true
	case (r.Temperature != nil || r.TopP != nil) && refusesSampling(words):
		d.noSampling = true
	case (len(r.Stop) > 0 && says("'stop'") || r.Seed != nil && says("seed") || r.penalizes() && says("penalt")) && (says("unsupported") || says("not support")):
		d.noConstraints = true
	case d.reasoning == reasoningInLoop && says(fieldReasoningContent) && (says("missing") || says("must be passed")):
		d.reasoning = reasoningAlways
		d.reasoningField = fieldReasoningContent
	case d.reasoning != reasoningNever && r.hasReasoning() && says(fieldReasoning):
		d.reasoning = reasoningNever
	default:
		return d, false
	}
	return d, true
}

func (r chatRequest) penalizes() bool { return r.FrequencyPenalty != 0 || r.PresencePenalty != 0 }

// withoutConversation returns d without what concerns one conversation: that its signatures and its
// reasoning could not be sent back.
func (d dialect) withoutConversation() dialect {
	d.noSignatures, d.noReplay = false, false
	return d
}

// learnField remembers the name under which the reasoning of a model came, "" for none.
func (c *Client) learnField(model, name string) {
	known := c.dialects.Of(model)
	if next := known; name != "" && next.reasoning != reasoningAlways {
		next.reasoningField = name
		c.dialects.Learn(model, known, next)
	}
}
