package openai

import (
	"cmp"
	"encoding/json"
	"io"
	"strings"

	"loki/internal/provider"
	"loki/internal/provider/wire"
)

// responseReply decodes responses. A reply is a list of items, which are messages,
// blocks of reasoning and calls of functions. A stream sends the items piece by
// piece, and then each of them whole; what has come in pieces is not taken again.
type responseReply struct {
	builder

	taken    map[int]bool // the items that are done, by index
	pieced   map[int]bool // the items of which pieces have come
	anything bool         // there has been an item

	paragraph *place // the last of the block of reasoning under way
	proof     proof  // of the reasoning right before the next item, empty if there is none
}

// place is a part of a reply.
type place struct {
	item  int
	field string // which list of the item's texts; empty for the item
	index int    // in the list
}

// wireResponse is a reply in one piece.
type wireResponse struct {
	Status     wire.String
	Error      json.RawMessage
	Incomplete struct{ Reason wire.String } `json:"incomplete_details"`
	Output     []outputItem
	Usage      *responseUsage
}

type outputItem struct {
	Type      wire.String
	ID        wire.String
	Content   []outputPart // message, reasoning
	Summary   []outputPart // reasoning
	Encrypted wire.String  `json:"encrypted_content"`
	CallID    wire.String  `json:"call_id"`
	Name      wire.String
	Arguments arguments
}

type outputPart struct {
	Type    wire.String
	Text    wire.String
	Refusal wire.String
}

// responseEvent is an event of a stream.
type responseEvent struct {
	Type         wire.String
	OutputIndex  wire.Int `json:"output_index"`
	ContentIndex wire.Int `json:"content_index"`
	SummaryIndex wire.Int `json:"summary_index"`
	Delta        wire.String
	Item         *outputItem
	Response     *wireResponse
}

// Document implements [client.Decoder].
func (r *responseReply) Document(body io.Reader) error {
	doc, err := wholeDocument(body)
	if err != nil {
		return err
	}
	var w wireResponse
	if err := wire.Tolerate(json.Unmarshal(doc, &w)); err != nil || doc[0] != '{' {
		return notAnObject(doc)
	}
	r.keepBody(doc, true)
	if err := r.response(&w); err != nil {
		return err
	}
	if !r.anything && r.finish == "" {
		return wire.Lacking("output", doc)
	}
	return nil
}

// Event implements [client.Decoder].
func (r *responseReply) Event(typ string, data []byte) (over bool, err error) {
	if string(data) == doneMark {
		return true, nil
	}
	var ev responseEvent
	if err := wire.Tolerate(json.Unmarshal(data, &ev)); err != nil || data[0] != '{' {
		if typ == "error" {
			return false, reportedError(data)
		}
		return false, notAnObject(data)
	}
	item := int(ev.OutputIndex)
	r.keepBody(data, ev.Item != nil || ev.Response != nil)
	switch typ = cmp.Or(string(ev.Type), typ); typ {
	case "response.output_text.delta":
		return false, r.answer(item, string(ev.Delta))
	case "response.refusal.delta":
		r.started(item)
		r.refusal.WriteString(string(ev.Delta))
	case "response.reasoning_summary_text.delta":
		return false, r.thought(place{item, "summary", int(ev.SummaryIndex)}, string(ev.Delta))
	case "response.reasoning_text.delta":
		return false, r.thought(place{item, "content", int(ev.ContentIndex)}, string(ev.Delta))
	case "response.output_item.done":
		if ev.Item != nil {
			return false, r.item(item, ev.Item)
		}
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		if ev.Response == nil {
			ev.Response = &wireResponse{}
		}
		ev.Response.Status = cmp.Or(ev.Response.Status, wire.String(strings.TrimPrefix(typ, "response.")))
		return true, r.response(ev.Response)
	case "error":
		return false, reportedError(data)
	case "message": // an event without a type
		return false, wire.ReplyError(data)
	}
	return false, nil
}

// response takes a reply as a whole: its items that have not come yet, its usage
// and how it ended.
func (r *responseReply) response(w *wireResponse) error {
	for i := range w.Output {
		if err := r.item(i, &w.Output[i]); err != nil {
			return err
		}
	}
	r.count(w.Usage.inChat())
	if err := errorMember(w.Error); err != nil {
		return err
	}
	switch status := strings.ToLower(string(w.Status)); status {
	case "completed":
		r.finish = "stop"
	case "incomplete":
		r.finish = cmp.Or(string(w.Incomplete.Reason), "incomplete")
	case "": // not all servers report it
		if r.anything {
			r.finish = "stop"
		}
	default:
		return &provider.Error{Kind: provider.Transient, Msg: "the server broke the reply off: " + status}
	}
	return nil
}

// item takes an item that is done.
func (r *responseReply) item(index int, item *outputItem) error {
	if r.taken == nil {
		r.taken = make(map[int]bool)
	}
	if r.taken[index] {
		return nil
	}
	r.taken[index], r.anything = true, true
	switch item.Type {
	case "message":
		return r.messageItem(index, item)
	case "reasoning":
		return r.reasoningItem(index, item)
	case "function_call":
		call := wireCall{ID: cmp.Or(item.CallID, item.ID), Function: &wireFunction{Name: item.Name, Arguments: item.Arguments}}
		r.calls.addWhole(call)
		if r.proof.ID != "" {
			r.calls.calls[len(r.calls.calls)-1].signature = proof{ID: r.proof.ID}.String()
		}
	}
	return nil
}

func (r *responseReply) messageItem(index int, item *outputItem) error {
	r.proof = proof{}
	if r.pieced[index] {
		return nil
	}
	for _, p := range item.Content {
		r.refusal.WriteString(string(p.Refusal))
		if err := r.answer(index, string(p.Text)); err != nil {
			return err
		}
	}
	return nil
}

// reasoningItem ends a block of reasoning, which the signature proves.
func (r *responseReply) reasoningItem(index int, item *outputItem) error {
	if !r.pieced[index] {
		for i, p := range item.Summary {
			if err := r.thought(place{index, "summary", i}, string(p.Text)); err != nil {
				return err
			}
		}
		for i, p := range item.Content {
			if err := r.thought(place{index, "content", i}, string(p.Text)); err != nil {
				return err
			}
		}
	}
	if item.Encrypted == "" {
		return nil
	}
	if err := r.flush(); err != nil {
		return err
	}
	r.proof = proof{ID: string(item.ID), Encrypted: string(item.Encrypted)}
	r.paragraph = nil
	return r.Reasoning("", r.proof.String())
}

// started notes that pieces of an item come.
func (r *responseReply) started(item int) {
	if r.pieced == nil {
		r.pieced = make(map[int]bool)
	}
	r.pieced[item], r.anything = true, true
	r.proof = proof{}
}

// follows sets *last to p and returns what stands between the two: nothing before
// the first part and inside of one, else a blank line.
func follows(last **place, p place) string {
	apart := *last != nil && **last != p
	*last = &p
	if apart {
		return "\n\n"
	}
	return ""
}

// answer takes a piece of a message. Texts follow on each other as they come, also those of
// several messages.
func (r *responseReply) answer(item int, text string) error {
	if text == "" {
		return nil
	}
	r.started(item)
	r.paragraph = nil
	return r.pieces(r.think.add(text))
}

// thought takes a piece of the paragraph of reasoning at p.
func (r *responseReply) thought(p place, text string) error {
	if text == "" {
		return nil
	}
	r.started(p.item)
	if err := r.flush(); err != nil {
		return err
	}
	return r.Reasoning(follows(&r.paragraph, p)+text, "")
}
