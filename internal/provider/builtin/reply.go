package builtin

import (
	"context"
	"fmt"
	"time"

	"loki/internal/chat"
	"loki/internal/provider"
)

// reply is what a model says to one request.
type reply struct {
	chunks []provider.Chunk // in order, without the end, as a stream sends them
	stop   chat.StopReason
	usage  chat.Usage

	delay      time.Duration // before the first chunk
	chunkDelay time.Duration // before each other chunk

	fail      error // ends the reply instead of its end; nil if the reply is complete
	failAfter int   // how many chunks of a stream come before fail
}

// textReply returns a reply of text in the given pieces, cut to the request's limit
// of output tokens.
func textReply(req provider.Request, pieces []string) reply {
	r := reply{stop: chat.StopEnd}
	left := 4 * req.MaxOutputTokens // quarters of tokens, see chat.EstimateTokens
	for _, piece := range pieces {
		if req.MaxOutputTokens > 0 {
			n := fitting(piece, &left)
			if n < len(piece) {
				r.stop = chat.StopLength
			}
			piece = piece[:n]
		}
		if piece != "" {
			r.chunks = append(r.chunks, provider.Chunk{Kind: provider.Text, Text: piece})
		}
		if r.stop == chat.StopLength {
			break
		}
	}
	r.usage = countUsage(req, r.chunks)
	return r
}

// fitting returns the length in bytes of the start of s that costs at most *left
// quarters of tokens, and takes its cost off.
func fitting(s string, left *int) int {
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
// text and their calls, declared tools with all they say, images not at all.
func countUsage(req provider.Request, chunks []provider.Chunk) chat.Usage {
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
	// Rounding each chunk up would count a reply in many chunks as longer.
	for _, c := range mergeChunks(chunks) {
		switch c.Kind {
		case provider.Text:
			u.OutputTokens += chat.EstimateTokens(c.Text)
		case provider.Reasoning:
			n := chat.EstimateTokens(c.Text)
			u.OutputTokens += n
			u.ReasoningTokens += n
		case provider.ToolCall:
			u.OutputTokens += countCall(c.ToolCall)
		}
	}
	return u
}

func countCall(c chat.ToolCall) int {
	return chat.EstimateTokens(c.Name) + chat.EstimateTokens(c.Arguments)
}

// mergeChunks returns chunks with neighbors of one kind put together.
func mergeChunks(chunks []provider.Chunk) []provider.Chunk {
	var out []provider.Chunk
	for i := 0; i < len(chunks); {
		c := chunks[i]
		n := i + 1
		if c.Kind != provider.ToolCall {
			text := []byte(c.Text)
			for ; n < len(chunks) && chunks[n].Kind == c.Kind; n++ {
				text = append(text, chunks[n].Text...)
			}
			c.Text = string(text)
		}
		out = append(out, c)
		i = n
	}
	return out
}

// send yields r. A reply in one piece has neighboring chunks put together and no
// delays between them, and if it fails, nothing comes before the error.
func (p *Provider) send(ctx context.Context, req provider.Request, r reply, yield func(provider.Chunk, error) bool) {
	if !req.Stream {
		r.chunks, r.failAfter, r.chunkDelay = mergeChunks(r.chunks), 0, 0
	}
	if r.fail != nil {
		r.chunks = r.chunks[:min(r.failAfter, len(r.chunks))]
	}
	for i, c := range r.chunks {
		if err := p.wait(ctx, req, r.gap(i)); err != nil {
			yield(provider.Chunk{}, err)
			return
		}
		if !yield(c, nil) {
			return
		}
	}
	if r.fail != nil || len(r.chunks) == 0 { // a complete reply ends together with its last chunk
		if err := p.wait(ctx, req, r.gap(len(r.chunks))); err != nil {
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

// gap is the time before chunk i, or before what stands in its place.
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
