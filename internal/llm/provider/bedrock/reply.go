package bedrock

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/toolcall"
)

// decoder turns the blocks of a reply into its chunks. Streamed replies come in
// pieces of blocks, which may be interleaved.
type decoder struct {
	client.Reply

	open  map[int32]*block // the blocks that have begun and not ended
	calls toolcall.Assembler
	stop  types.StopReason // empty until there is one
	usage *types.TokenUsage
}

// block is what must be kept of a block until its end.
type block struct {
	foreign   bool // a call of a tool that the server runs
	signature strings.Builder
	redacted  []byte
}

func newDecoder(req provider.Request, emit client.Emit) *decoder {
	return &decoder{Reply: client.Reply{Emit: emit, Request: req}, open: make(map[int32]*block)}
}

// at returns the open block with the index i, which begins if there is none.
func (d *decoder) at(i *int32) *block {
	n := aws.ToInt32(i)
	if d.open[n] == nil {
		d.open[n] = new(block)
	}
	return d.open[n]
}

// begin opens a block of a stream. Only calls announce themselves.
func (d *decoder) begin(e types.ContentBlockStartEvent) {
	start, ok := e.Start.(*types.ContentBlockStartMemberToolUse)
	switch {
	case !ok:
	case start.Value.Type == types.ToolUseTypeServerToolUse:
		d.at(e.ContentBlockIndex).foreign = true
	default:
		d.call(e.ContentBlockIndex, toolcall.Piece{ID: aws.ToString(start.Value.ToolUseId), Name: aws.ToString(start.Value.Name)})
	}
}

// call takes a piece of the call that is the block with the index i.
func (d *decoder) call(i *int32, p toolcall.Piece) {
	index := int(aws.ToInt32(i))
	p.Index = &index
	d.calls.NextEvent()
	d.calls.Add(p)
}

// delta takes a piece of a block.
func (d *decoder) delta(e types.ContentBlockDeltaEvent) error {
	in := d.at(e.ContentBlockIndex)
	switch p := e.Delta.(type) {
	case *types.ContentBlockDeltaMemberText:
		return d.Text(p.Value)
	case *types.ContentBlockDeltaMemberToolUse:
		if in.foreign {
			return nil
		}
		d.call(e.ContentBlockIndex, toolcall.Piece{Arguments: aws.ToString(p.Value.Input)})
	case *types.ContentBlockDeltaMemberReasoningContent:
		switch r := p.Value.(type) {
		case *types.ReasoningContentBlockDeltaMemberText:
			return d.Reasoning(r.Value, "")
		case *types.ReasoningContentBlockDeltaMemberSignature:
			in.signature.WriteString(r.Value)
		case *types.ReasoningContentBlockDeltaMemberRedactedContent:
			in.redacted = append(in.redacted, r.Value...)
		}
	}
	return nil
}

// end closes a block.
func (d *decoder) end(i *int32) error {
	n := aws.ToInt32(i)
	in := d.open[n]
	delete(d.open, n)
	switch {
	case in == nil:
	case in.redacted != nil:
		return d.Reasoning("", redactedSignature(in.redacted))
	case in.signature.Len() > 0:
		return d.Reasoning("", ownSignature(in.signature.String()))
	}
	return nil
}

// endAll closes what the server left open, in the order in which it began.
func (d *decoder) endAll() error {
	for len(d.open) > 0 {
		first := int32(-1)
		for i := range d.open {
			if first < 0 || i < first {
				first = i
			}
		}
		if err := d.end(&first); err != nil {
			return err
		}
	}
	return nil
}

// whole takes the message of a reply in one piece.
func (d *decoder) whole(m types.Message) error {
	for i, content := range m.Content {
		if i > 0 && content == m.Content[i-1] {
			continue // the SDK repeats a block in the place of one that it does not know
		}
		index := aws.Int32(int32(i))
		var err error
		switch c := content.(type) {
		case *types.ContentBlockMemberText:
			err = d.Text(c.Value)
		case *types.ContentBlockMemberCitationsContent:
			for _, g := range c.Value.Content {
				if text, ok := g.(*types.CitationGeneratedContentMemberText); ok && err == nil {
					err = d.Text(text.Value)
				}
			}
		case *types.ContentBlockMemberReasoningContent:
			switch r := c.Value.(type) {
			case *types.ReasoningContentBlockMemberReasoningText:
				d.at(index).signature.WriteString(aws.ToString(r.Value.Signature))
				err = d.Reasoning(aws.ToString(r.Value.Text), "")
			case *types.ReasoningContentBlockMemberRedactedContent:
				d.at(index).redacted = r.Value
			}
		case *types.ContentBlockMemberToolUse:
			if c.Value.Type == types.ToolUseTypeServerToolUse {
				continue
			}
			d.call(index, toolcall.Piece{
				ID: aws.ToString(c.Value.ToolUseId), Name: aws.ToString(c.Value.Name), Arguments: inputText(c.Value.Input), Whole: true,
			})
		}
		if err != nil {
			return err
		}
		if err := d.end(index); err != nil {
			return err
		}
	}
	return nil
}

// finish emits the tool calls and the end of a complete reply.
func (d *decoder) finish() error {
	if err := d.endAll(); err != nil {
		return err
	}
	calls := d.Calls(&d.calls)
	d.Window = d.stop == types.StopReasonModelContextWindowExceeded
	return d.End(calls, stopReason(d.stop, len(calls) > 0), d.tokens(), nil)
}

// tokens returns the usage in our terms. Bedrock counts what it read from and wrote
// to the cache beside the input.
func (d *decoder) tokens() chat.Usage {
	u := d.usage
	if u == nil {
		u = new(types.TokenUsage)
	}
	count := func(n *int32) int { return max(0, int(aws.ToInt32(n))) }
	read, written := count(u.CacheReadInputTokens), count(u.CacheWriteInputTokens)
	return chat.Usage{
		InputTokens: count(u.InputTokens) + read + written, CachedInputTokens: read, CacheWriteTokens: written,
		OutputTokens: count(u.OutputTokens),
	}
}

func stopReason(r types.StopReason, calls bool) chat.StopReason {
	switch r {
	case types.StopReasonMaxTokens, types.StopReasonModelContextWindowExceeded:
		return chat.StopLength
	case types.StopReasonContentFiltered, types.StopReasonGuardrailIntervened:
		return chat.StopFiltered
	}
	if calls {
		return chat.StopToolCalls // some models say end_turn all the same
	}
	switch r {
	case types.StopReasonEndTurn, types.StopReasonStopSequence, "":
		return chat.StopEnd
	case types.StopReasonToolUse:
		return chat.StopToolCalls // although there is none: the caller has to know
	}
	return chat.StopOther
}
