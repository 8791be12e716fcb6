package openai

import (
	"strings"

	"loki/internal/chat"
	"loki/internal/provider"
	"loki/internal/provider/normalize"
	"loki/internal/provider/wire"
)

// decoder reads a reply in one of the formats.
type decoder interface {
	// document takes a reply in one piece.
	document(doc []byte) error

	// event takes the type and the data of one event of a streamed reply. over means
	// that nothing follows.
	event(typ string, data []byte) (over bool, err error)

	// complete reports whether all that matters has come.
	complete() bool

	// flush emits what has been held back. It has to be called before a failure is
	// reported.
	flush() error

	// end emits the tool calls and the end of a complete reply.
	end() error
}

// builder turns what a decoder has read into the chunks of a reply.
type builder struct {
	emit func(provider.Chunk) error
	req  provider.Request

	think   thinkSplitter
	calls   callAssembler
	details reasoningDetails
	refusal strings.Builder
	output  strings.Builder // all that counts as output, for the estimate
	usage   *wireUsage      // the last one told
	finish  string          // the finish reason, empty until there is one
	said    bool            // something has been emitted
	texted  bool            // text among it
	body    []byte          // the last document of the reply that was more than usage
}

// came notes a document of the reply, to show it should the reply turn out to be empty.
func (b *builder) came(doc []byte, choices bool) {
	if choices || b.body == nil {
		b.body = doc
	}
}

func (b *builder) complete() bool { return b.finish != "" }

func (b *builder) begun() bool { return b.said || len(b.calls.calls) > 0 }

// tell takes a usage that says anything.
func (b *builder) tell(u *wireUsage) {
	if _, ok := u.usage(); ok {
		b.usage = u
	}
}

func (b *builder) pieces(reasoning, text string) error {
	if err := b.piece(provider.Reasoning, reasoning); err != nil {
		return err
	}
	return b.piece(provider.Text, text)
}

func (b *builder) piece(kind provider.ChunkKind, text string) error {
	if text == "" {
		return nil
	}
	b.said, b.texted = true, b.texted || kind == provider.Text
	b.output.WriteString(text)
	return b.emit(provider.Chunk{Kind: kind, Text: text})
}

// flush emits the text that has been held back. It has to be called before the end
// and before a failure is reported.
func (b *builder) flush() error { return b.pieces(b.think.flush()) }

// end emits the tool calls and the end of a complete reply.
func (b *builder) end() error {
	if err := b.flush(); err != nil {
		return err
	}
	if refusal := b.refusal.String(); refusal != "" && len(b.calls.calls) == 0 {
		return &provider.Error{Kind: provider.Refused, Msg: refusal}
	}
	calls := normalize.Calls(b.calls.made(), b.req.Messages)
	stop, err := stopReason(b.finish, len(calls) > 0)
	if err != nil {
		return err
	}
	if signature := b.details.signature(); signature != "" {
		if err := b.emit(provider.Chunk{Kind: provider.Reasoning, Signature: signature}); err != nil {
			return err
		}
	}
	for _, c := range calls {
		b.output.WriteString(c.Name + c.Arguments)
		if err := b.emit(provider.Chunk{Kind: provider.ToolCall, ToolCall: c}); err != nil {
			return err
		}
	}
	body := ""
	if len(calls) == 0 && (!b.texted || stop == chat.StopToolCalls) {
		body = wire.Excerpt(b.body)
	}
	usage, ok := b.usage.usage()
	if !ok {
		usage = normalize.EstimatedUsage(b.req, chat.EstimateTokens(b.output.String()))
	}
	return b.emit(provider.Chunk{Kind: provider.End, Stop: stop, Usage: usage, Body: body})
}

// stopReason translates a finish reason, which may be empty. Reasons that say that
// the server broke off are errors.
func stopReason(finish string, calls bool) (chat.StopReason, error) {
	switch strings.ToLower(finish) {
	case "length", "max_tokens", "model_length", "max_output_tokens", "model_context_window_exceeded":
		return chat.StopLength, nil
	case "content_filter", "sensitive", "safety", "refusal":
		return chat.StopFiltered, nil
	case "error", "network_error", "insufficient_system_resource", "abort", "aborted":
		return "", &provider.Error{Kind: provider.Transient, Msg: "the server broke the reply off: " + finish}
	}
	if calls {
		return chat.StopToolCalls, nil // whatever it is called: several servers say stop
	}
	switch strings.ToLower(finish) {
	case "", "stop", "eos", "eos_token", "end_turn", "stop_sequence", "stop_token", "complete", "completed":
		return chat.StopEnd, nil
	case "tool_calls", "function_call", "tool_use":
		return chat.StopToolCalls, nil // although there is none: the caller has to know
	}
	return chat.StopOther, nil
}
