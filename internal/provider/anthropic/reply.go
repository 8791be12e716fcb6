package anthropic

import (
	"cmp"
	"io"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"loki/internal/chat"
	"loki/internal/provider"
	"loki/internal/provider/client"
)

// decoder turns what a server sends into the chunks of a reply.
type decoder struct {
	client.Reply

	blocks  []*block   // in the order in which they began
	usage   chat.Usage // as far as it has been reported
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
func (d *decoder) start(index int64, p piece) error {
	blk := &block{index: index, typ: p.typ, id: p.id, name: p.name}
	d.blocks = append(d.blocks, blk)
	switch p.typ {
	case redactedBlock:
		return d.Reasoning("", p.data)
	case callBlock:
		blk.input, p.input = p.input, ""
	}
	return d.extend(blk, p)
}

// add takes an addition to the block that has the index and began last. What belongs to
// no block is passed over, except for text, which is worth showing.
func (d *decoder) add(index int64, p piece) error {
	for i := len(d.blocks) - 1; i >= 0; i-- {
		if blk := d.blocks[i]; blk.index == index && !blk.closed {
			return d.extend(blk, p)
		}
	}
	return d.extend(&block{typ: textBlock}, piece{text: p.text})
}

func (d *decoder) extend(blk *block, p piece) error {
	switch blk.typ {
	case textBlock:
		return d.Text(p.text)
	case thinkBlock:
		blk.signature.WriteString(p.signature)
		blk.thought = blk.thought || p.thinking != ""
		return d.Reasoning(p.thinking, "")
	case callBlock:
		blk.arguments.WriteString(p.input)
	}
	return nil
}

// close ends a block.
func (d *decoder) close(index int64) error {
	for i := len(d.blocks) - 1; i >= 0; i-- {
		blk := d.blocks[i]
		if blk.index != index || blk.closed {
			continue
		}
		blk.closed = true
		if blk.typ == thinkBlock && blk.signature.Len() > 0 {
			return d.Reasoning("", signatureOf(blk.thought, blk.signature.String()))
		}
		return nil
	}
	return nil
}

// End implements [client.Decoder].
func (d *decoder) End(cut bool) error {
	if cut {
		return io.ErrUnexpectedEOF
	}
	calls := d.Calls(d.toolCalls())
	if d.stop == sdk.StopReasonRefusal && !d.HasText() && len(calls) == 0 {
		return &provider.Error{Kind: provider.Refused, Msg: cmp.Or(d.refusal, "the model refuses to answer")}
	}
	return d.Reply.End(calls, d.stopReason(len(calls) > 0), d.usage, d.body)
}

func (d *decoder) stopReason(calls bool) chat.StopReason {
	switch d.stop {
	case sdk.StopReasonMaxTokens, sdk.StopReasonModelContextWindowExceeded:
		return chat.StopLength
	case sdk.StopReasonRefusal:
		return chat.StopFiltered
	}
	if calls {
		return chat.StopToolCalls // whatever it is called: not every server gets it right
	}
	switch d.stop {
	case "", sdk.StopReasonEndTurn, sdk.StopReasonStopSequence:
		return chat.StopEnd
	case sdk.StopReasonToolUse:
		return chat.StopToolCalls // although there is none: the caller has to know
	}
	return chat.StopOther // pause_turn among them, which only the provider's own tools lead to
}
