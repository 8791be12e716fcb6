package anthropic

import (
	"cmp"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"loki/internal/chat"
	"loki/internal/provider"
	"loki/internal/provider/normalize"
	"loki/internal/provider/wire"
)

// builder turns what a server sends into the chunks of a reply.
type builder struct {
	emit func(provider.Chunk) error
	req  provider.Request

	limit  int      // the output limit that was sent, in tokens
	blocks []*block // in the order in which they began
	spoken bool     // text has been emitted

	usage   chat.Usage // as far as it has been told
	output  int        // estimate of what has been emitted, in tokens
	stop    sdk.StopReason
	refusal string // what the provider says about a refusal
	body    []byte // what says how the reply ended
}

// block is a content block under way.
type block struct {
	index     int64
	typ       string
	closed    bool
	thought   bool // words of thinking have been emitted
	signature strings.Builder

	id, name  string
	input     string // arguments that came with the start
	arguments strings.Builder
}

// piece is the beginning of a content block, or an addition to one.
type piece struct {
	typ, text, thinking, signature, data, id, name, input string
}

// The types of content blocks that make up a reply. Those of the provider's own tools,
// which a patch can switch on, are not for us.
const (
	textBlock     = "text"
	thinkBlock    = "thinking"
	redactedBlock = "redacted_thinking"
	callBlock     = "tool_use"
)

// start begins a block.
func (b *builder) start(index int64, p piece) error {
	blk := &block{index: index, typ: p.typ, id: p.id, name: p.name}
	b.blocks = append(b.blocks, blk)
	switch p.typ {
	case redactedBlock:
		if p.data == "" {
			return nil
		}
		return b.emit(provider.Chunk{Kind: provider.Reasoning, Signature: p.data})
	case callBlock:
		blk.input, p.input = p.input, ""
	}
	return b.extend(blk, p)
}

// add takes an addition to the block that has the index and began last. What belongs to
// no block is passed over, except for text, which is worth showing.
func (b *builder) add(index int64, p piece) error {
	for i := len(b.blocks) - 1; i >= 0; i-- {
		if blk := b.blocks[i]; blk.index == index && !blk.closed {
			return b.extend(blk, p)
		}
	}
	return b.extend(&block{typ: textBlock}, piece{text: p.text})
}

func (b *builder) extend(blk *block, p piece) error {
	switch blk.typ {
	case textBlock:
		return b.text(p.text)
	case thinkBlock:
		blk.signature.WriteString(p.signature)
		if p.thinking == "" {
			return nil
		}
		blk.thought = true
		b.output += chat.EstimateTokens(p.thinking)
		return b.emit(provider.Chunk{Kind: provider.Reasoning, Text: p.thinking})
	case callBlock:
		blk.arguments.WriteString(p.input)
	}
	return nil
}

func (b *builder) text(text string) error {
	if text == "" {
		return nil
	}
	b.spoken = true
	b.output += chat.EstimateTokens(text)
	return b.emit(provider.Chunk{Kind: provider.Text, Text: text})
}

// close ends a block.
func (b *builder) close(index int64) error {
	for i := len(b.blocks) - 1; i >= 0; i-- {
		blk := b.blocks[i]
		if blk.index != index || blk.closed {
			continue
		}
		blk.closed = true
		if blk.typ == thinkBlock && blk.signature.Len() > 0 {
			return b.emit(provider.Chunk{Kind: provider.Reasoning, Signature: signatureOf(blk.thought, blk.signature.String())})
		}
		return nil
	}
	return nil
}

// end emits the tool calls and the end of a complete reply.
func (b *builder) end() error {
	calls := b.calls()
	if b.stop == sdk.StopReasonRefusal && !b.spoken && len(calls) == 0 {
		return &provider.Error{Kind: provider.Refused, Msg: cmp.Or(b.refusal, "the model refuses to answer")}
	}
	for _, c := range calls {
		b.output += chat.EstimateTokens(c.Name + c.Arguments)
		if err := b.emit(provider.Chunk{Kind: provider.ToolCall, ToolCall: c}); err != nil {
			return err
		}
	}
	stop, body := b.stopReason(len(calls) > 0), ""
	if len(calls) == 0 && (!b.spoken || stop == chat.StopToolCalls) {
		body = wire.Excerpt(b.body)
	}
	usage := b.usage
	if usage.Total() == 0 {
		usage = normalize.EstimatedUsage(b.req, b.output)
	}
	return b.emit(provider.Chunk{Kind: provider.End, Stop: stop, Usage: usage, Limit: b.limit, Body: body})
}

func (b *builder) stopReason(calls bool) chat.StopReason {
	switch b.stop {
	case sdk.StopReasonMaxTokens, sdk.StopReasonModelContextWindowExceeded:
		return chat.StopLength
	case sdk.StopReasonRefusal:
		return chat.StopFiltered
	}
	if calls {
		return chat.StopToolCalls // whatever it is called: not every server gets it right
	}
	switch b.stop {
	case "", sdk.StopReasonEndTurn, sdk.StopReasonStopSequence:
		return chat.StopEnd
	case sdk.StopReasonToolUse:
		return chat.StopToolCalls // although there is none: the caller has to know
	}
	return chat.StopOther // pause_turn among them, which only the provider's own tools lead to
}
