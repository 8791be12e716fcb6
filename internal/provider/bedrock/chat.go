package bedrock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"loki/internal/provider"
	"loki/internal/provider/wire"
)

// Chat implements [provider.Chat].
func (c *Client) Chat(ctx context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		err := c.chat(ctx, req, func(chunk provider.Chunk) error {
			if ctx.Err() != nil {
				return failure(ctx, c.reading(), ctx.Err())
			}
			if !yield(chunk, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && err != errStopped {
			yield(provider.Chunk{}, err)
		}
	}
}

// errStopped says that the consumer of a reply wants no more of it.
var errStopped = errors.New("the consumer stopped")

func (c *Client) asking() string  { return "asking " + c.name }
func (c *Client) reading() string { return "reading the reply of " + c.name }

func (c *Client) chat(ctx context.Context, req provider.Request, emit func(provider.Chunk) error) error {
	m := wire.Lookup(c.model, req.Model)
	if req.Effort != "" {
		for _, path := range [][]string{{"thinking"}, {"output_config", "effort"}} {
			m.Patch = m.Patch.Without(append([]string{"additionalModelRequestFields"}, path...)...)
		}
	}
	f := familyOf(m.RealName, req.Model)
	known := c.dialect(m.RealName)
	for d := known; ; {
		conv, err := newConversation(req, f, m.Efforts, d.of(m))
		if err != nil {
			return err
		}
		a, err := c.source.resolve(ctx)
		if err != nil {
			return err
		}
		call := wire.Call{API: wire.ChatCompletions, Model: req.Model, Patch: m.Patch}
		b := newBuilder(req, func(chunk provider.Chunk) error {
			if text := conv.note(req, f); text != "" && !conv.noted {
				if err := emit(provider.Chunk{Kind: provider.Note, Text: text}); err != nil {
					return err
				}
			}
			conv.noted = true
			return emit(chunk)
		})
		err = c.ask(ctx, a, call, req.Stream, m.RealName, conv, b)
		e, ok := errors.AsType[*provider.Error](err)
		if !ok || e.Kind != provider.Invalid || conv.noted {
			if err == nil && d != known {
				c.learn(m.RealName, d)
			}
			return err
		}
		if d, ok = d.adapt(e.Msg, conv); !ok { // each adaptation can be made once, so this ends
			return err
		}
	}
}

// ask asks for the reply as a stream, or in one piece. A stream that turns out to be a
// document is read as what it is.
func (c *Client) ask(ctx context.Context, a access, call wire.Call, stream bool, model string, conv conversation, b *builder) error {
	whole := c.options(a, call, false)
	if stream {
		err := c.stream(ctx, model, conv, b, c.options(a, call, true))
		r, ok := errors.AsType[*wholeReply](err)
		if !ok {
			return err
		}
		whole = r.asWhole(whole)
	}
	return c.converse(ctx, model, conv, b, whole)
}

// converse asks for the reply in one piece.
func (c *Client) converse(ctx context.Context, model string, conv conversation, b *builder, o func(*bedrockruntime.Options)) error {
	out, err := c.sdk.Converse(ctx, &bedrockruntime.ConverseInput{
		ModelId: &model, System: conv.system, Messages: conv.messages, InferenceConfig: &conv.inference,
		ToolConfig: conv.tools, AdditionalModelRequestFields: conv.fields, OutputConfig: conv.output,
	}, o)
	if err != nil {
		return failure(ctx, c.asking(), err)
	}
	message, ok := out.Output.(*types.ConverseOutputMemberMessage)
	if !ok {
		return &provider.Error{Kind: provider.BadReply, Msg: c.asking() + ": the reply holds no message"}
	}
	b.stop, b.usage = out.StopReason, out.Usage
	if err := b.whole(message.Value); err != nil {
		return err
	}
	return b.finish()
}

// stream asks for the reply piece by piece.
func (c *Client) stream(ctx context.Context, model string, conv conversation, b *builder, o func(*bedrockruntime.Options)) error {
	out, err := c.sdk.ConverseStream(ctx, &bedrockruntime.ConverseStreamInput{
		ModelId: &model, System: conv.system, Messages: conv.messages, InferenceConfig: &conv.inference,
		ToolConfig: conv.tools, AdditionalModelRequestFields: conv.fields, OutputConfig: conv.output,
	}, o)
	if r, ok := errors.AsType[*wholeReply](err); ok {
		return r
	}
	if err != nil {
		return failure(ctx, c.asking(), err)
	}
	s := out.GetStream()
	complete := false
	defer func() { release(s, complete) }()
	for event := range s.Events() {
		if err := b.event(event); err != nil {
			return err
		}
		if b.stop != "" && b.usage != nil {
			complete = true
			return b.finish()
		}
	}
	if err := s.Err(); err != nil && (b.stop == "" || ctx.Err() != nil) {
		return failure(ctx, c.reading(), err)
	}
	if b.stop == "" {
		// The SDK reports the end of the connection as the end of the stream.
		return failure(ctx, c.reading(), io.ErrUnexpectedEOF)
	}
	return b.finish()
}

// event takes one event of a stream. Those of unknown kinds are passed over.
func (b *builder) event(e types.ConverseStreamOutput) error {
	switch e := e.(type) {
	case *types.ConverseStreamOutputMemberContentBlockStart:
		b.begin(e.Value)
	case *types.ConverseStreamOutputMemberContentBlockDelta:
		return b.delta(e.Value)
	case *types.ConverseStreamOutputMemberContentBlockStop:
		return b.end(e.Value.ContentBlockIndex)
	case *types.ConverseStreamOutputMemberMessageStop:
		b.stop = e.Value.StopReason
		if b.stop == "" {
			b.stop = types.StopReasonEndTurn
		}
	case *types.ConverseStreamOutputMemberMetadata:
		b.usage = e.Value.Usage
	}
	return nil
}

// endGrace is how long a server may take to end a stream that has said all. Only
// then can the connection be used again.
const endGrace = 100 * time.Millisecond

// release ends a stream, at once unless it is complete, and waits for the goroutines
// of the SDK that read it.
func release(s *bedrockruntime.ConverseStreamEventStream, complete bool) {
	if complete {
		timer := time.AfterFunc(endGrace, func() { _ = s.Close() })
		defer timer.Stop()
	} else {
		_ = s.Close() // nobody wants to know how it ended
	}
	for range s.Events() { // ends with the stream
	}
	_ = s.Close()
}

// inputText returns the input of a call as JSON text, "" for none.
func inputText(d document.Interface) string {
	if d == nil {
		return ""
	}
	text, err := d.MarshalSmithyDocument()
	if err != nil || string(text) == "null" {
		return ""
	}
	return unescaped(text)
}

// unescaped returns JSON text without the escapes for HTML that package json adds.
func unescaped(text []byte) string {
	var v any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return string(text)
	}
	if plain, err := wire.Encode(v); err == nil {
		text = plain
	}
	return string(text)
}
