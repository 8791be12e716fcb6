package client

import (
	"context"
	"errors"
	"iter"
	"strings"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/normalize"
	"loki/internal/llm/provider/toolcall"
	"loki/internal/llm/provider/wire"
)

// Emit takes a chunk of a reply. Its error ends the request.
type Emit = func(provider.Chunk) error

// errStopped is the error of an [Emit] whose consumer wants no more chunks. Further calls
// of the Emit return it again.
var errStopped = errors.New("the consumer stopped")

// Chat returns the reply that ask emits as the sequence that [provider.Chat] promises.
// ask gets a context of [wire.WithCall] with call.
func (f *Frame) Chat(ctx context.Context, call wire.Call, ask func(context.Context, Emit) error) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		ctx := wire.WithCall(ctx, call)
		err, stopped := ctx.Err(), false
		if err == nil {
			err = ask(ctx, func(chunk provider.Chunk) error {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if stopped = stopped || !yield(chunk, nil); stopped {
					return errStopped
				}
				return nil
			})
		}
		if err != nil && err != errStopped {
			yield(provider.Chunk{}, wire.Failure(ctx, "asking "+f.Name, err))
		}
	}
}

// Reply writes the chunks of one reply. A server's words are emitted as they come, its
// calls and the end when the reply is complete.
type Reply struct {
	Emit    Emit
	Request provider.Request
	Limit   int  // the output limit that was sent, in tokens, if it is another than the request's
	Window  bool // the reply was cut off because the context window is full

	said   bool            // something has been emitted
	texted bool            // text among it
	broken bool            // its calls may lack arguments
	halves [2]string       // of characters at the end of the last text and of the last reasoning
	output strings.Builder // all that counts as output, for the estimate
}

// HasBegun reports whether the model has said anything.
func (r *Reply) HasBegun() bool { return r.said }

// HasText reports whether there has been text.
func (r *Reply) HasText() bool { return r.texted }

// Text emits a piece of the answer unless it is empty.
func (r *Reply) Text(s string) error {
	r.texted = r.texted || s != ""
	return r.piece(provider.Chunk{Kind: provider.Text, Text: joinHalf(&r.halves[0], s, false)})
}

// Reasoning emits a piece of reasoning, and what proves it, unless both are empty.
func (r *Reply) Reasoning(s, signature string) error {
	s = joinHalf(&r.halves[1], s, signature != "")
	return r.piece(provider.Chunk{Kind: provider.Reasoning, Text: s, Signature: chat.CleanJSON(wire.JoinHalves(signature))})
}

// joinHalf returns the text of a piece that follows the half of a character, and keeps a half at its own end unless it is the last.
func joinHalf(half *string, s string, last bool) string {
	s, *half = *half+s, ""
	if !last {
		s, *half = wire.CutHalf(s)
	}
	return wire.JoinHalves(s)
}

func (r *Reply) piece(c provider.Chunk) error {
	if c.Text == "" && c.Signature == "" {
		return nil
	}
	r.said = true
	r.output.WriteString(c.Text)
	return r.Emit(c)
}

// Calls returns the calls of a complete reply as [normalize.Calls] does.
func (r *Reply) Calls(a *toolcall.Assembler) []chat.ToolCall {
	made, broken := a.Calls()
	r.broken = broken
	for i, c := range made {
		made[i].ID, made[i].Name = wire.JoinHalves(c.ID), wire.JoinHalves(c.Name)
		made[i].Arguments = chat.CleanJSON(wire.JoinHalves(c.Arguments))
	}
	return normalize.Calls(made, r.Request.Messages)
}

// End emits calls, which are those of [Reply.Calls], and the end of the reply. A usage
// without tokens is replaced by an estimate. body is the server's last word, which
// explains a reply without text and calls.
func (r *Reply) End(calls []chat.ToolCall, stop chat.StopReason, usage chat.Usage, body []byte) error {
	for kind, half := range r.halves {
		if err := r.piece(provider.Chunk{Kind: provider.Text + provider.ChunkKind(kind), Text: wire.JoinHalves(half)}); err != nil {
			return err
		}
	}
	for _, c := range calls {
		r.output.WriteString(c.Name + c.Arguments)
		if err := r.Emit(provider.Chunk{Kind: provider.ToolCall, ToolCall: c}); err != nil {
			return err
		}
	}
	shown := ""
	if len(calls) == 0 && (!r.texted || stop == chat.StopToolCalls) {
		shown = wire.JoinHalves(wire.Excerpt(body))
	}
	if usage.Total() == 0 {
		usage = normalize.EstimatedUsage(r.Request, chat.EstimateTokens(r.output.String()))
	}
	return r.Emit(provider.Chunk{Kind: provider.End, Stop: stop, Usage: usage, Limit: r.Limit, Window: r.Window, Broken: r.broken, Body: shown})
}
