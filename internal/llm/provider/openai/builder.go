package openai

import (
	"bytes"
	"io"
	"strings"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/toolcall"
)

// decoder reads a reply in one of the formats.
type decoder interface {
	client.Decoder

	// flush emits what was withheld. It must be called before a failure is reported.
	flush() error
}

// builder turns what a decoder has read into the chunks of a reply.
type builder struct {
	client.Reply

	think   thinkSplitter
	calls   toolcall.Assembler
	details reasoningDetails
	refusal strings.Builder
	usage   *wireUsage // the last one that says anything
	finish  string     // the finish reason, empty until there is one
	body    []byte     // the last document of the reply that was more than usage
}

// keepBody keeps a document of the reply, to show it should the reply turn out to be empty.
func (b *builder) keepBody(doc []byte, choices bool) {
	if choices || b.body == nil {
		b.body = doc
	}
}

// Complete implements [client.Decoder].
func (b *builder) Complete() bool { return b.finish != "" }

func (b *builder) hasBegun() bool { return b.HasBegun() || b.calls.Any() }

// count takes a usage that says anything.
func (b *builder) count(u *wireUsage) {
	if u.usage().Total() > 0 {
		b.usage = u
	}
}

func (b *builder) pieces(reasoning, text string) error {
	if err := b.Reasoning(reasoning, ""); err != nil {
		return err
	}
	return b.Text(text)
}

// flush emits the text that was withheld.
func (b *builder) flush() error { return b.pieces(b.think.flush()) }

// End implements [client.Decoder].
func (b *builder) End(cut bool) error {
	if cut {
		return io.ErrUnexpectedEOF
	}
	if err := b.flush(); err != nil {
		return err
	}
	if refusal := b.refusal.String(); refusal != "" && !b.calls.Any() {
		return &provider.Error{Kind: provider.Refused, Msg: refusal}
	}
	calls := b.Calls(&b.calls)
	b.Window = strings.EqualFold(b.finish, "model_context_window_exceeded")
	stop, err := stopReason(b.finish, len(calls) > 0)
	if err != nil {
		return err
	}
	if err := b.Reasoning("", b.details.signature()); err != nil {
		return err
	}
	return b.Reply.End(calls, stop, b.usage.usage(), b.body)
}

// wholeDocument reads the JSON of a reply in one piece, without white space around it.
func wholeDocument(body io.Reader) ([]byte, error) {
	doc, err := io.ReadAll(body)
	return bytes.TrimSpace(doc), err
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
