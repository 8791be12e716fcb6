package gemini

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"loki/internal/chat"
	"loki/internal/provider"
	"loki/internal/provider/normalize"
	"loki/internal/provider/wire"
)

// builder turns the documents of a reply into its chunks.
type builder struct {
	emit func(provider.Chunk) error
	req  provider.Request

	calls   []chat.ToolCall
	output  strings.Builder // all that counts as output, for the estimate
	usage   chat.Usage      // the last one told
	finish  string
	blocked *promptFeedback
	said    bool   // something has been emitted
	answers bool   // there has been a candidate
	body    []byte // the last document
}

// begun reports whether the model has said anything.
func (b *builder) begun() bool { return b.said || len(b.calls) > 0 }

// document takes a reply in one piece, or a piece of a stream.
func (b *builder) document(r *generateReply) error {
	if u, ok := usage(r.UsageMetadata); ok {
		b.usage = u
	}
	if f := r.PromptFeedback; f != nil && f.BlockReason != "" && f.BlockReason != "BLOCKED_REASON_UNSPECIFIED" && f.BlockReason != "BLOCK_REASON_UNSPECIFIED" {
		b.blocked = f
	}
	for _, c := range r.Candidates {
		if c == nil || c.Index != 0 {
			continue
		}
		b.answers = true
		if c.FinishReason != "" && c.FinishReason != "FINISH_REASON_UNSPECIFIED" {
			b.finish = c.FinishReason
		}
		if err := b.parts(c.Content.Parts); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) parts(parts []part) error {
	for _, p := range parts {
		signature := cmp.Or(p.GatewaySignature, p.ThoughtSignature)
		var err error
		switch {
		case p.FunctionCall != nil:
			b.call(p.FunctionCall, signature)
		case p.Thought:
			err = b.piece(provider.Chunk{Kind: provider.Reasoning, Text: p.Text, Signature: signature})
		default:
			if p.Text != "" {
				err = b.piece(provider.Chunk{Kind: provider.Text, Text: p.Text})
			}
			if err == nil {
				err = b.piece(provider.Chunk{Kind: provider.Reasoning, Signature: signature})
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// piece emits a chunk that holds anything.
func (b *builder) piece(c provider.Chunk) error {
	if c.Text == "" && c.Signature == "" {
		return nil
	}
	b.said = b.said || c.Text != ""
	b.output.WriteString(c.Text)
	return b.emit(c)
}

// call keeps a call for the end of the reply: those of a reply that breaks off must
// not be run.
func (b *builder) call(f *functionCall, signature string) {
	if f.Name != "" {
		b.calls = append(b.calls, chat.ToolCall{ID: f.ID, Name: f.Name, Arguments: arguments(f.Args), Signature: signature})
	}
}

// arguments returns the arguments of a call as they came, without white space: replies
// in one piece are indented.
func arguments(args json.RawMessage) string {
	var compact bytes.Buffer
	if err := json.Compact(&compact, args); err != nil || compact.String() == "null" {
		return "{}" // a call without
	}
	return strings.ToValidUTF8(compact.String(), "\uFFFD")
}

// end emits the calls and the end of a reply. A stream without a finish reason has
// been cut off.
func (b *builder) end(whole bool) error {
	switch {
	case b.blocked != nil && !b.begun():
		return refused("the prompt was blocked", b.blocked.BlockReason, b.blocked.BlockReasonMessage)
	case !b.answers:
		return wire.BadReply("the reply has no candidate", nil)
	case b.finish == "" && !whole:
		return &provider.Error{Kind: provider.Transient, Msg: "the reply ended before it was complete", Err: io.ErrUnexpectedEOF}
	}
	stop, err := b.stop()
	if err != nil {
		return err
	}
	for _, c := range normalize.Calls(b.calls, b.req.Messages) {
		b.output.WriteString(c.Name + c.Arguments)
		if err := b.emit(provider.Chunk{Kind: provider.ToolCall, ToolCall: c}); err != nil {
			return err
		}
	}
	if b.usage == (chat.Usage{}) {
		b.usage = normalize.EstimatedUsage(b.req, chat.EstimateTokens(b.output.String()))
	}
	body := ""
	if !b.begun() {
		body = wire.Excerpt(b.body)
	}
	return b.emit(provider.Chunk{Kind: provider.End, Stop: stop, Usage: b.usage, Body: body})
}

// stop translates the finish reason.
func (b *builder) stop() (chat.StopReason, error) {
	switch b.finish {
	case "MAX_TOKENS":
		return chat.StopLength, nil
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		if !b.begun() {
			return "", refused("the reply was blocked", b.finish, "")
		}
		return chat.StopFiltered, nil
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL":
		// A slip of the model that it need not make again.
		return "", &provider.Error{Kind: provider.Transient, Msg: fmt.Sprintf("the model made a call that cannot be read (%s)", b.finish)}
	case "MISSING_THOUGHT_SIGNATURE":
		return "", &provider.Error{Kind: provider.Invalid, Msg: "the conversation has a call without the thought_signature that the model insists on"}
	}
	if len(b.calls) > 0 {
		return chat.StopToolCalls, nil
	}
	if b.finish == "STOP" || b.finish == "" {
		return chat.StopEnd, nil
	}
	return chat.StopOther, nil
}

func refused(what, reason, message string) error {
	what += " (" + reason + ")"
	if message != "" {
		what += ": " + message
	}
	return &provider.Error{Kind: provider.Refused, Msg: what}
}

// usage translates what the API tells about tokens, and reports whether it tells any.
func usage(u usageMetadata) (chat.Usage, bool) {
	count := func(n wire.Int) int { return max(int(n), 0) }
	in := count(u.PromptTokenCount) + count(u.ToolUsePromptTokenCount)
	thoughts := count(u.ThoughtsTokenCount)
	told := chat.Usage{
		InputTokens: in, CachedInputTokens: min(count(u.CachedContentTokenCount), in),
		OutputTokens: count(u.CandidatesTokenCount) + thoughts, ReasoningTokens: thoughts,
	}
	return told, told != chat.Usage{}
}
