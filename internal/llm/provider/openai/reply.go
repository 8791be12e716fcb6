package openai

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"

	"loki/internal/llm/provider/wire"
)

// wireReply is a reply in one piece, or a chunk of a streamed one.
type wireReply struct {
	Choices []wireChoice
	Usage   *wireUsage
	XGroq   struct {
		Usage *wireUsage
		Error wire.Text
	} `json:"x_groq"`
}

type wireChoice struct {
	Index        wire.Int
	Delta        *wireMessage
	Message      *wireMessage
	Text         wire.String // of completions before there were chats
	FinishReason wire.String `json:"finish_reason"`
	Error        json.RawMessage
	Usage        *wireUsage // Moonshot
}

type wireMessage struct {
	Content          content
	ReasoningContent wire.String `json:"reasoning_content"`
	Reasoning        wire.String
	ReasoningDetails json.RawMessage `json:"reasoning_details"` // OpenRouter
	Refusal          wire.String
	ToolCalls        wireCalls     `json:"tool_calls"`
	FunctionCall     *wireFunction `json:"function_call"` // before there were tools
}

// chatReply decodes chat completions.
type chatReply struct {
	builder
	choices bool // there has been a choice
	tools   bool // there has been a call in today's form

	// reasoningField is the name under which reasoning came, empty if none did.
	reasoningField string
}

// Document implements [client.Decoder].
func (r *chatReply) Document(body io.Reader) error {
	doc, err := wholeDocument(body)
	if err == nil {
		err = r.take(doc, true)
	}
	if err != nil {
		return err
	}
	if !r.choices {
		return wire.MissingError("choice", doc)
	}
	return nil
}

// Event implements [client.Decoder]. Events of the type error hold errors, in whatever
// form. Usage may follow the finish reason.
func (r *chatReply) Event(typ string, data []byte) (over bool, err error) {
	switch {
	case string(data) == doneMark:
		return true, nil
	case typ == "error":
		return false, reportedError(data)
	}
	return false, r.take(data, false)
}

// take takes a whole reply, or a chunk of one. The error is the server's or emit's.
func (r *chatReply) take(doc []byte, whole bool) error {
	var w wireReply
	if err := wire.Tolerate(json.Unmarshal(doc, &w)); err != nil || doc[0] != '{' {
		return notAnObject(doc)
	}
	r.keepBody(doc, len(w.Choices) > 0)
	for _, u := range []*wireUsage{w.Usage, w.XGroq.Usage} {
		r.count(u)
	}
	for _, c := range w.Choices {
		if c.Index != 0 {
			continue
		}
		if err := r.choice(c, whole); err != nil {
			return err
		}
	}
	if w.XGroq.Error != "" {
		return wire.Complaint(string(w.XGroq.Error), "", "")
	}
	return wire.ReplyError(doc)
}

func (r *chatReply) choice(c wireChoice, whole bool) error {
	r.choices = true
	r.calls.NextEvent()
	if err := r.Text(string(c.Text)); err != nil {
		return err
	}
	r.count(c.Usage)
	// Some servers send both: beside a delta all of the message so far, and beside
	// a whole message an empty delta.
	if c.Message != nil && (whole || c.Delta == nil && !r.hasBegun()) {
		if err := r.message(c.Message, true); err != nil {
			return err
		}
	} else if c.Delta != nil {
		if err := r.message(c.Delta, false); err != nil {
			return err
		}
	}
	r.finish = cmp.Or(string(c.FinishReason), r.finish)
	return errorMember(c.Error)
}

// errorMember returns the failure that the value of a member "error" reports, nil
// if there is none.
func errorMember(v json.RawMessage) error {
	if len(v) == 0 {
		return nil
	}
	return wire.ReplyError(slices.Concat([]byte(`{"error":`), v, []byte("}")))
}

// message takes a message, or a piece of one.
func (r *chatReply) message(m *wireMessage, whole bool) error {
	words := r.details.add(m.ReasoningDetails, whole)
	reasoning := cmp.Or(string(m.ReasoningContent), string(m.Reasoning), m.Content.reasoning, words)
	switch {
	case m.ReasoningContent != "":
		r.reasoningField = fieldReasoningContent
	case m.Reasoning != "":
		r.reasoningField = fieldReasoning
	}
	if err := r.Reasoning(reasoning, ""); err != nil {
		return err
	}
	if err := r.pieces(r.think.add(m.Content.text)); err != nil {
		return err
	}
	r.refusal.WriteString(string(m.Refusal) + m.Content.refusal)
	for _, c := range m.ToolCalls {
		r.tools = true
		p := c.piece()
		p.Whole = whole
		r.calls.Add(p)
	}
	if m.FunctionCall != nil && !r.tools { // some gateways send both forms of a call
		r.calls.Add(wireCall{Function: m.FunctionCall}.piece())
	}
	return nil
}
