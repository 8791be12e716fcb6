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

	"loki/internal/base/value"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/normalize"
	"loki/internal/llm/provider/wire"
)

// Chat implements [provider.Chat].
func (c *Client) Chat(ctx context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	return c.frame.Tools.Chat(ctx, req, toolDialect(familyOf(c.frame.Model(req.Model).RealName, req.Model)), c.chat)
}

func (c *Client) chat(ctx context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	m := c.frame.Model(req.Model)
	if req.Effort != "" {
		for _, path := range [][]string{{"thinking"}, {"output_config", "effort"}} {
			m.Patch = m.Patch.Without(append([]string{"additionalModelRequestFields"}, path...)...)
		}
	}
	f := familyOf(m.RealName, req.Model)
	call := wire.Call{API: wire.ChatCompletions, Model: req.Model, Patch: m.Patch}
	unpatched := wire.Call{API: call.API, Model: call.Model} // patches are applied before requests are signed
	return c.frame.Chat(ctx, unpatched, func(ctx context.Context, emit client.Emit) error {
		return c.dialects.Ask(m.RealName, req, emit, func(req provider.Request, d dialect) (client.Attempt[dialect], error) {
			conv, err := newConversation(req, f, m.Efforts, d.of(m))
			if err != nil {
				return client.Attempt[dialect]{}, err
			}
			return client.Attempt[dialect]{
				Notes: normalize.Lacks{Seed: true, Penalties: true}.Notes(conv.notes(req, f), req),
				Send: func(emit client.Emit) error {
					a, err := c.source.resolve(ctx)
					if err != nil {
						return err
					}
					return c.ask(ctx, a, call, req.Stream, m.RealName, conv, newDecoder(req, emit))
				},
				Adapt: func(err error) (dialect, bool) {
					words, ok := client.Complaint(err)
					if !ok {
						return d, false
					}
					return d.adapt(words, conv)
				},
			}, nil
		})
	})
}

func (c *Client) askText() string  { return "asking " + c.frame.Name }
func (c *Client) readText() string { return "reading the reply of " + c.frame.Name }

// ask asks for the reply as a stream, or in one piece. A stream that turns out to be a
// document is read as what it is.
func (c *Client) ask(ctx context.Context, a access, call wire.Call, stream bool, model string, conv conversation, d *decoder) error {
	whole := c.options(a, call, false)
	if stream {
		err := c.stream(ctx, model, conv, d, c.options(a, call, true))
		r, ok := errors.AsType[*wholeReply](err)
		if !ok {
			return err
		}
		whole = r.asWhole(whole)
	}
	return c.converse(ctx, model, conv, d, whole)
}

// converse asks for the reply in one piece.
func (c *Client) converse(ctx context.Context, model string, conv conversation, d *decoder, o func(*bedrockruntime.Options)) error {
	out, err := c.sdk.Converse(ctx, &bedrockruntime.ConverseInput{
		ModelId: &model, System: conv.system, Messages: conv.messages, InferenceConfig: &conv.inference,
		ToolConfig: conv.tools, AdditionalModelRequestFields: conv.fields, OutputConfig: conv.output,
	}, o)
	if err != nil {
		return failure(ctx, c.askText(), err)
	}
	message, ok := out.Output.(*types.ConverseOutputMemberMessage)
	if !ok {
		return &provider.Error{Kind: provider.BadReply, Msg: c.askText() + ": the reply holds no message"}
	}
	d.stop, d.usage = out.StopReason, out.Usage
	if err := d.whole(message.Value); err != nil {
		return err
	}
	return d.finish()
}

// stream asks for the reply piece by piece.
func (c *Client) stream(ctx context.Context, model string, conv conversation, d *decoder, o func(*bedrockruntime.Options)) error {
	out, err := c.sdk.ConverseStream(ctx, &bedrockruntime.ConverseStreamInput{
		ModelId: &model, System: conv.system, Messages: conv.messages, InferenceConfig: &conv.inference,
		ToolConfig: conv.tools, AdditionalModelRequestFields: conv.fields, OutputConfig: conv.output,
	}, o)
	if r, ok := errors.AsType[*wholeReply](err); ok {
		return r
	}
	if err != nil {
		return failure(ctx, c.askText(), err)
	}
	s := out.GetStream()
	complete := false
	defer func() { release(s, complete) }()
	for event := range s.Events() {
		if err := d.event(event); err != nil {
			return err
		}
		if d.stop != "" && d.usage != nil {
			complete = true
			return d.finish()
		}
	}
	if err := s.Err(); err != nil && (d.stop == "" || ctx.Err() != nil) {
		return failure(ctx, c.readText(), err)
	}
	if d.stop == "" {
		// The SDK reports the end of the connection as the end of the stream.
		return failure(ctx, c.readText(), io.ErrUnexpectedEOF)
	}
	return d.finish()
}

// event takes one event of a stream. Those of unknown kinds are skipped.
func (d *decoder) event(e types.ConverseStreamOutput) error {
	switch e := e.(type) {
	case *types.ConverseStreamOutputMemberContentBlockStart:
		d.begin(e.Value)
	case *types.ConverseStreamOutputMemberContentBlockDelta:
		return d.delta(e.Value)
	case *types.ConverseStreamOutputMemberContentBlockStop:
		return d.end(e.Value.ContentBlockIndex)
	case *types.ConverseStreamOutputMemberMessageStop:
		d.stop = e.Value.StopReason
		if d.stop == "" {
			d.stop = types.StopReasonEndTurn
		}
	case *types.ConverseStreamOutputMemberMetadata:
		d.usage = e.Value.Usage
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
		_ = s.Close() // how it ended does not matter
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
	return withoutEscapes(text)
}

// withoutEscapes returns JSON text without the escapes for HTML that package json adds.
func withoutEscapes(text []byte) string {
	var v any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return string(text)
	}
	if plain, err := value.Marshal(v); err == nil {
		text = plain
	}
	return string(text)
}
