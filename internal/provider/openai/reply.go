package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"loki/internal/chat"
	"loki/internal/provider"
)

// wireReply is a reply in one piece, or a chunk of a streamed one.
type wireReply struct {
	failureSigns
	Choices []wireChoice
	Usage   *wireUsage
	XGroq   struct {
		Usage *wireUsage
		Error looseText
	} `json:"x_groq"`
}

type wireChoice struct {
	Index        looseInt
	Delta        *wireMessage
	Message      *wireMessage
	FinishReason looseString `json:"finish_reason"`
	Error        json.RawMessage
	Usage        *wireUsage // Moonshot
}

type wireMessage struct {
	Content          content
	ReasoningContent looseString `json:"reasoning_content"`
	Reasoning        looseString
	Refusal          looseString
	ToolCalls        []wireCall    `json:"tool_calls"`
	FunctionCall     *wireFunction `json:"function_call"` // before there were tools
}

// builder turns what a server sends into the chunks of a reply.
type builder struct {
	emit func(provider.Chunk) error
	req  provider.Request

	think   thinkSplitter
	calls   callAssembler
	refusal strings.Builder
	output  strings.Builder // all that counts as output, for the estimate
	usage   *wireUsage      // the last one told
	finish  string          // the finish reason, empty until there is one
	said    bool            // something has been emitted
	choices bool            // there has been a choice

	// reasoningField is the name under which reasoning came, empty if none did.
	reasoningField string
}

// document takes a whole reply, or a chunk of one. The error is the server's or
// emit's.
func (b *builder) document(doc []byte, whole bool) error {
	doc = bytes.TrimSpace(doc)
	var r wireReply
	if err := tolerant(json.Unmarshal(doc, &r)); err != nil || doc[0] != '{' {
		if failed := failureWithin(doc); failed != nil {
			return failed
		}
		return badReply("the reply is not a JSON object of the expected form", doc)
	}
	for _, u := range []*wireUsage{r.Usage, r.XGroq.Usage} {
		b.tell(u)
	}
	for _, c := range r.Choices {
		if c.Index != 0 {
			continue
		}
		if err := b.choice(c, whole); err != nil {
			return err
		}
	}
	if r.XGroq.Error != "" {
		return failure{msg: string(r.XGroq.Error)}.asError(0, nil)
	}
	if r.found() {
		return cmp.Or(failureWithin(doc), badReply("the server reports an error of unknown form", doc))
	}
	return nil
}

// badReply returns the error for doc, of which it quotes the beginning.
func badReply(msg string, doc []byte) error {
	if shown := describeBody(doc); shown != "" {
		msg += ": " + shorten(shown, maxPage)
	}
	return &provider.Error{Kind: provider.BadReply, Msg: msg}
}

func (b *builder) tell(u *wireUsage) {
	if _, ok := u.usage(); ok {
		b.usage = u
	}
}

func (b *builder) choice(c wireChoice, whole bool) error {
	b.choices = true
	b.tell(c.Usage)
	// Some servers send both: beside a delta all of the message so far, and beside
	// a whole message an empty delta.
	if c.Message != nil && (whole || c.Delta == nil && !b.begun()) {
		if err := b.message(c.Message, (*callAssembler).addWhole); err != nil {
			return err
		}
	} else if c.Delta != nil {
		if err := b.message(c.Delta, (*callAssembler).add); err != nil {
			return err
		}
	}
	b.finish = cmp.Or(string(c.FinishReason), b.finish)
	if present(c.Error) {
		f, ok := parseErrorMember(c.Error, failure{})
		if !ok {
			f.msg = "the server reports an error: " + shorten(string(c.Error), maxPage)
		}
		return f.asError(f.status, nil)
	}
	return nil
}

func (b *builder) begun() bool { return b.said || len(b.calls.calls) > 0 }

func (b *builder) message(m *wireMessage, add func(*callAssembler, wireCall)) error {
	reasoning := cmp.Or(string(m.ReasoningContent), string(m.Reasoning), m.Content.reasoning)
	switch {
	case m.ReasoningContent != "":
		b.reasoningField = fieldReasoningContent
	case m.Reasoning != "":
		b.reasoningField = fieldReasoning
	}
	if err := b.piece(provider.Reasoning, reasoning); err != nil {
		return err
	}
	if err := b.pieces(b.think.add(m.Content.text)); err != nil {
		return err
	}
	b.refusal.WriteString(string(m.Refusal) + m.Content.refusal)
	for _, c := range m.ToolCalls {
		add(&b.calls, c)
	}
	if m.FunctionCall != nil {
		b.calls.add(wireCall{Function: m.FunctionCall})
	}
	return nil
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
	b.said = true
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
	if refusal := b.refusal.String(); refusal != "" && !b.begun() {
		return &provider.Error{Kind: provider.Refused, Msg: refusal}
	}
	taken, n := idsIn(b.req.Messages)
	calls := b.calls.finish(taken, n)
	stop, err := stopReason(b.finish, len(calls) > 0)
	if err != nil {
		return err
	}
	for _, c := range calls {
		b.output.WriteString(c.Name + c.Arguments)
		if err := b.emit(provider.Chunk{Kind: provider.ToolCall, ToolCall: c}); err != nil {
			return err
		}
	}
	usage, ok := b.usage.usage()
	if !ok {
		usage = chat.Usage{
			InputTokens: estimateInput(b.req), OutputTokens: chat.EstimateTokens(b.output.String()), Estimated: true,
		}
	}
	return b.emit(provider.Chunk{Kind: provider.End, Stop: stop, Usage: usage})
}

// idsIn returns the ids of the tool calls in messages and the number of the calls.
func idsIn(messages []chat.Message) (ids map[string]bool, n int) {
	ids = make(map[string]bool)
	for _, m := range messages {
		for _, c := range m.ToolCalls {
			ids[c.ID] = true
			n++
		}
	}
	return ids, n
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
	case "", "stop", "eos", "eos_token", "end_turn", "stop_sequence", "stop_token", "complete", "completed",
		"tool_calls", "function_call", "tool_use":
		return chat.StopEnd, nil
	}
	return chat.StopOther, nil
}
