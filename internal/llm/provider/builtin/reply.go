package builtin

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
)

// reply is what a model says to one request.
type reply struct {
	blocks []block // in order, without the end
	stop   chat.StopReason
	usage  chat.Usage

	delay      time.Duration // before the first chunk
	chunkDelay time.Duration // before each other chunk

	fail      error // ends the reply instead of its end; nil if the reply is complete
	failAfter int   // how many chunks of a stream come before fail
}

// block is a part of a reply. A stream sends its text in pieces, which are cut as they are sent: a reply costs as much memory
// as its text, however many pieces there are.
type block struct {
	provider.Chunk
	pieces iter.Seq[string] // of Text; nil for one piece
}

// textReply returns a reply of text in the given pieces, cut to the request's limit
// of output tokens.
func textReply(req provider.Request, pieces iter.Seq[string]) reply {
	r := reply{stop: chat.StopEnd}
	left := 4 * req.MaxOutputTokens // quarters of tokens, see chat.EstimateTokens
	var text strings.Builder
	for piece := range pieces {
		if req.MaxOutputTokens > 0 {
			n := fittingLength(piece, &left)
			if n < len(piece) {
				r.stop = chat.StopLength
			}
			piece = piece[:n]
		}
		text.WriteString(piece)
		if r.stop == chat.StopLength {
			break
		}
	}
	if text.Len() > 0 {
		r.blocks = []block{{provider.Chunk{Kind: provider.Text, Text: text.String()}, first(text.Len(), pieces)}}
	}
	r.usage = countUsage(req, r.blocks)
	return r
}

// first returns the pieces of the first n bytes. No piece is empty.
func first(n int, pieces iter.Seq[string]) iter.Seq[string] {
	return func(yield func(string) bool) {
		left := n
		for piece := range pieces {
			piece = piece[:min(left, len(piece))]
			left -= len(piece)
			if piece != "" && !yield(piece) || left == 0 {
				return
			}
		}
	}
}

// fittingLength returns the length in bytes of the start of s that costs at most *left
// quarters of tokens, and takes its cost off.
func fittingLength(s string, left *int) int {
	for i, r := range s {
		cost := 2
		if r < 0x80 {
			cost = 1
		}
		if cost > *left {
			return i
		}
		*left -= cost
	}
	return len(s)
}

// countUsage counts the tokens of req and of its reply. Messages count with their
// text and their calls, declared tools with all they say, images not at all. A reply in many
// pieces counts as one in one piece.
func countUsage(req provider.Request, blocks []block) chat.Usage {
	var u chat.Usage
	for _, m := range req.Messages {
		for _, part := range m.Parts {
			u.InputTokens += chat.EstimateTokens(part.Text)
		}
		for _, c := range m.ToolCalls {
			u.InputTokens += countCall(c)
		}
	}
	for _, t := range req.Tools {
		u.InputTokens += chat.EstimateTokens(t.Name) + chat.EstimateTokens(t.Description) +
			chat.EstimateTokens(string(t.Parameters))
	}
	for _, b := range blocks {
		switch b.Kind {
		case provider.Text:
			u.OutputTokens += chat.EstimateTokens(b.Text)
		case provider.Reasoning:
			n := chat.EstimateTokens(b.Text)
			u.OutputTokens += n
			u.ReasoningTokens += n
		case provider.ToolCall:
			u.OutputTokens += countCall(b.ToolCall)
		}
	}
	return u
}

func countCall(c chat.ToolCall) int {
	return chat.EstimateTokens(c.Name) + chat.EstimateTokens(c.Arguments)
}

// chunks yields the chunks of r, in one piece for each block or as a stream sends them.
func (r reply) chunks(stream bool) iter.Seq[provider.Chunk] {
	return func(yield func(provider.Chunk) bool) {
		for _, b := range r.blocks {
			if !stream || b.pieces == nil {
				if !yield(b.Chunk) {
					return
				}
				continue
			}
			for piece := range b.pieces {
				if !yield(provider.Chunk{Kind: b.Kind, Text: piece}) {
					return
				}
			}
		}
	}
}

// send yields r. A reply in one piece has no delays between its blocks, and if it fails, nothing comes before the error.
func (p *Provider) send(ctx context.Context, req provider.Request, r reply, yield func(provider.Chunk, error) bool) {
	if !req.Stream {
		r.failAfter, r.chunkDelay = 0, 0
	}
	sent := 0
	for c := range r.chunks(req.Stream) {
		if r.fail != nil && sent == r.failAfter {
			break
		}
		if err := p.wait(ctx, req, r.gap(sent)); err != nil {
			yield(provider.Chunk{}, err)
			return
		}
		if !yield(c, nil) {
			return
		}
		sent++
	}
	if r.fail != nil || sent == 0 { // a complete reply ends together with its last chunk
		if err := p.wait(ctx, req, r.gap(sent)); err != nil {
			yield(provider.Chunk{}, err)
			return
		}
	}
	if r.fail != nil {
		yield(provider.Chunk{}, r.fail)
		return
	}
	yield(provider.Chunk{Kind: provider.End, Stop: r.stop, Usage: r.usage}, nil)
}

// gap is the time before chunk i, or before what replaces it.
func (r reply) gap(i int) time.Duration {
	if i == 0 {
		return r.delay
	}
	return r.chunkDelay
}

// wait sleeps for d. The error wraps ctx's.
func (p *Provider) wait(ctx context.Context, req provider.Request, d time.Duration) error {
	err := ctx.Err()
	if err == nil && d > 0 {
		err = p.sleep(ctx, d)
	}
	if err != nil {
		return fmt.Errorf("model %s: %w", req.Model, err)
	}
	return nil
}
