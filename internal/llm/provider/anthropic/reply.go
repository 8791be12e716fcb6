package anthropic

import (
	"cmp"
	"io"
	"strings"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/toolcall"
)

// decoder turns what a server sends into the chunks of a reply.
type decoder struct {
	client.Reply

	blocks  []*block // in the order in which they began
	calls   toolcall.Assembler
	usage   chat.Usage // as far as it has been reported
	stop    string
	refusal string // what the provider says about a refusal
	body    []byte // what says how the reply ended
}

// block is a content block under way.
type block struct {
	index     int
	typ       string
	closed    bool
	thought   bool // words of thinking have been emitted
	signature strings.Builder
}

// piece is the beginning of a content block, or an addition to one.
type piece struct {
	typ, text, thinking, signature, data, id, name, input string
}

// start begins a block.
func (d *decoder) start(index int, p piece) error {
	blk := &block{index: index, typ: p.typ}
	d.blocks = append(d.blocks, blk)
	switch p.typ {
	case redactedBlock:
		return d.Reasoning("", p.data)
	case callBlock:
		if strings.TrimSpace(p.input) == "null" {
			p.input = ""
		}
		d.call(index, p)
		return nil
	}
	return d.extend(blk, p)
}

// call takes a piece of a call.
func (d *decoder) call(index int, p piece) {
	d.calls.NextEvent()
	d.calls.Add(toolcall.Piece{ID: p.id, Name: p.name, Arguments: p.input, Index: &index})
}

// add takes an addition to the block that has the index and began last. Of what belongs to
// no block the text is worth showing, and a call without its arguments must not be run.
func (d *decoder) add(index int, p piece) error {
	for i := len(d.blocks) - 1; i >= 0; i-- {
		if blk := d.blocks[i]; blk.index == index && !blk.closed {
			return d.extend(blk, p)
		}
	}
	if p.input != "" {
		d.call(index, piece{input: p.input})
	}
	return d.Text(p.text)
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
		d.call(blk.index, p)
	}
	return nil
}

// close ends a block.
func (d *decoder) close(index int) error {
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
	calls := d.Calls(&d.calls)
	if d.stop == refusal && !d.HasText() && len(calls) == 0 {
		return &provider.Error{Kind: provider.Refused, Msg: cmp.Or(d.refusal, "the model refuses to answer")}
	}
	return d.Reply.End(calls, d.stopReason(len(calls) > 0), d.usage, d.body)
}

func (d *decoder) stopReason(calls bool) chat.StopReason {
	switch d.stop {
	case maxTokens, windowExceeded:
		d.Window = d.stop == windowExceeded
		return chat.StopLength
	case refusal:
		return chat.StopFiltered
	}
	if calls {
		return chat.StopToolCalls // whatever it is called: not every server gets it right
	}
	switch d.stop {
	case "", endTurn, stopSequence:
		return chat.StopEnd
	case toolUse:
		return chat.StopToolCalls // although there is none: the caller has to know
	}
	return chat.StopOther // pause_turn among them, which only the provider's own tools lead to
}
