package bedrock

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"loki/internal/chat"
	"loki/internal/provider"
	"loki/internal/provider/normalize"
)

// builder turns the blocks of a reply into its chunks. Streamed replies come in
// pieces of blocks, which may be interleaved.
type builder struct {
	emit func(provider.Chunk) error
	req  provider.Request

	open  map[int32]*block // the blocks that have begun and not ended
	calls []chat.ToolCall  // as the model made them
	wrote strings.Builder  // all that counts as output, for the estimate
	stop  types.StopReason // empty until there is one
	usage *types.TokenUsage
}

// block is what has to be kept of a block until its end.
type block struct {
	call      *chat.ToolCall
	arguments strings.Builder
	signature strings.Builder
	redacted  []byte
}

func newBuilder(req provider.Request, emit func(provider.Chunk) error) *builder {
	return &builder{emit: emit, req: req, open: make(map[int32]*block)}
}

// at returns the open block with the index i, which begins if there is none.
func (b *builder) at(i *int32) *block {
	n := aws.ToInt32(i)
	if b.open[n] == nil {
		b.open[n] = new(block)
	}
	return b.open[n]
}

// begin opens a block of a stream. Only calls announce themselves.
func (b *builder) begin(e types.ContentBlockStartEvent) {
	if start, ok := e.Start.(*types.ContentBlockStartMemberToolUse); ok && start.Value.Type != types.ToolUseTypeServerToolUse {
		b.at(e.ContentBlockIndex).call = &chat.ToolCall{ID: aws.ToString(start.Value.ToolUseId), Name: aws.ToString(start.Value.Name)}
	}
}

// delta takes a piece of a block.
func (b *builder) delta(e types.ContentBlockDeltaEvent) error {
	in := b.at(e.ContentBlockIndex)
	switch d := e.Delta.(type) {
	case *types.ContentBlockDeltaMemberText:
		return b.text(d.Value)
	case *types.ContentBlockDeltaMemberToolUse:
		in.arguments.WriteString(aws.ToString(d.Value.Input))
	case *types.ContentBlockDeltaMemberReasoningContent:
		switch r := d.Value.(type) {
		case *types.ReasoningContentBlockDeltaMemberText:
			return b.reasoning(r.Value)
		case *types.ReasoningContentBlockDeltaMemberSignature:
			in.signature.WriteString(r.Value)
		case *types.ReasoningContentBlockDeltaMemberRedactedContent:
			in.redacted = append(in.redacted, r.Value...)
		}
	}
	return nil
}

// end closes a block.
func (b *builder) end(i *int32) error {
	n := aws.ToInt32(i)
	in := b.open[n]
	delete(b.open, n)
	switch {
	case in == nil:
	case in.call != nil:
		in.call.Arguments = in.arguments.String()
		b.calls = append(b.calls, *in.call)
	case in.redacted != nil:
		return b.emit(provider.Chunk{Kind: provider.Reasoning, Signature: redacted(in.redacted)})
	case in.signature.Len() > 0:
		return b.emit(provider.Chunk{Kind: provider.Reasoning, Signature: signed(in.signature.String())})
	}
	return nil
}

// endAll closes what the server left open, in the order in which it began.
func (b *builder) endAll() error {
	for len(b.open) > 0 {
		first := int32(-1)
		for i := range b.open {
			if first < 0 || i < first {
				first = i
			}
		}
		if err := b.end(&first); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) text(s string) error {
	if s == "" {
		return nil
	}
	b.wrote.WriteString(s)
	return b.emit(provider.Chunk{Kind: provider.Text, Text: s})
}

func (b *builder) reasoning(s string) error {
	if s == "" {
		return nil
	}
	b.wrote.WriteString(s)
	return b.emit(provider.Chunk{Kind: provider.Reasoning, Text: s})
}

// whole takes the message of a reply in one piece.
func (b *builder) whole(m types.Message) error {
	for i, content := range m.Content {
		if i > 0 && content == m.Content[i-1] {
			continue // the SDK repeats a block in the place of one that it does not know
		}
		index := aws.Int32(int32(i))
		var err error
		switch c := content.(type) {
		case *types.ContentBlockMemberText:
			err = b.text(c.Value)
		case *types.ContentBlockMemberCitationsContent:
			for _, g := range c.Value.Content {
				if text, ok := g.(*types.CitationGeneratedContentMemberText); ok && err == nil {
					err = b.text(text.Value)
				}
			}
		case *types.ContentBlockMemberReasoningContent:
			switch r := c.Value.(type) {
			case *types.ReasoningContentBlockMemberReasoningText:
				b.at(index).signature.WriteString(aws.ToString(r.Value.Signature))
				err = b.reasoning(aws.ToString(r.Value.Text))
			case *types.ReasoningContentBlockMemberRedactedContent:
				b.at(index).redacted = r.Value
			}
		case *types.ContentBlockMemberToolUse:
			if c.Value.Type == types.ToolUseTypeServerToolUse {
				continue
			}
			in := b.at(index)
			in.call = &chat.ToolCall{ID: aws.ToString(c.Value.ToolUseId), Name: aws.ToString(c.Value.Name)}
			in.arguments.WriteString(inputText(c.Value.Input))
		}
		if err != nil {
			return err
		}
		if err := b.end(index); err != nil {
			return err
		}
	}
	return nil
}

// finish emits the tool calls and the end of a complete reply.
func (b *builder) finish() error {
	if err := b.endAll(); err != nil {
		return err
	}
	calls := normalize.Calls(b.calls, b.req.Messages)
	for _, c := range calls {
		b.wrote.WriteString(c.Name + c.Arguments)
		if err := b.emit(provider.Chunk{Kind: provider.ToolCall, ToolCall: c}); err != nil {
			return err
		}
	}
	return b.emit(provider.Chunk{Kind: provider.End, Stop: stopReason(b.stop, len(calls) > 0), Usage: b.tokens()})
}

// tokens returns the usage in our terms. Bedrock counts what it read from and wrote
// to the cache beside the input.
func (b *builder) tokens() chat.Usage {
	u := b.usage
	if u == nil {
		u = new(types.TokenUsage)
	}
	count := func(n *int32) int { return max(0, int(aws.ToInt32(n))) }
	read, written := count(u.CacheReadInputTokens), count(u.CacheWriteInputTokens)
	usage := chat.Usage{
		InputTokens: count(u.InputTokens) + read + written, CachedInputTokens: read, CacheWriteTokens: written,
		OutputTokens: count(u.OutputTokens),
	}
	if usage.Total() == 0 {
		return normalize.EstimatedUsage(b.req, chat.EstimateTokens(b.wrote.String()))
	}
	return usage
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
