package openai

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"loki/internal/llm/provider"
	"loki/internal/llm/provider/toolcall"
	"loki/internal/llm/provider/wire"
)

// responseReply decodes responses. A reply is a list of items, which are messages,
// blocks of reasoning and calls of functions. A stream sends the items piece by
// piece, then each of them whole, and at its end the list; what has come is not taken again.
type responseReply struct {
	builder

	items    []*item // of which something has come
	anything bool    // there has been an item

	paragraph *place // the last of the block of reasoning under way
	proof     proof  // of the reasoning right before the next item, empty if there is none
}

// item is a message, its refusal, or a block of reasoning. It is known by its id, in a stream also by its index, and
// in the list at the end, where ids and indexes may differ, by what it says.
type item struct {
	typ, id   string
	index     int
	said      strings.Builder // what has come of its text
	encrypted string
	done      bool
	listed    bool // the list at the end has it
}

// place is a part of a reply.
type place struct {
	item  *item
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
	Arguments wire.Arguments
}

type outputPart struct {
	Type    wire.String
	Text    wire.String
	Refusal wire.String
}

// responseEvent is an event of a stream.
type responseEvent struct {
	Type         wire.String
	ItemID       wire.String `json:"item_id"`
	CallID       wire.String `json:"call_id"` // DeepSeek, in place of the item's
	Name         wire.String
	Arguments    wire.Arguments
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
		return wire.MissingError("output", doc)
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
	index := int(ev.OutputIndex)
	r.calls.NextEvent()
	of := func(typ string) *item { return r.item(typ, outputItem{ID: ev.ItemID}, &index) }
	r.keepBody(data, ev.Item != nil || ev.Response != nil)
	switch typ = cmp.Or(string(ev.Type), typ); typ {
	case "response.output_text.delta":
		return false, r.answer(of("message"), string(ev.Delta))
	case "response.refusal.delta":
		r.refuse(of("refusal"), string(ev.Delta))
	case "response.reasoning_summary_text.delta":
		return false, r.takeReasoning(place{of("reasoning"), "summary", int(ev.SummaryIndex)}, string(ev.Delta))
	case "response.reasoning_text.delta":
		return false, r.takeReasoning(place{of("reasoning"), "content", int(ev.ContentIndex)}, string(ev.Delta))
	case "response.function_call_arguments.delta":
		r.calls.Add(toolcall.Piece{Key: string(ev.ItemID), ID: string(ev.CallID), Arguments: string(ev.Delta), Index: &index})
	case "response.function_call_arguments.done":
		r.calls.Add(toolcall.Piece{Key: string(ev.ItemID), ID: string(ev.CallID), Name: string(ev.Name), Arguments: string(ev.Arguments), Index: &index, Whole: true})
	case "response.output_item.added":
		if ev.Item != nil && ev.Item.Type == "function_call" {
			r.call(ev.Item, toolcall.Piece{Index: &index})
		}
	case "response.output_item.done":
		if ev.Item != nil {
			return false, r.output(ev.Item, &index)
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
		if err := r.output(&w.Output[i], nil); err != nil {
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

// output takes an item that is done. index is nil for one of the list at the end.
func (r *responseReply) output(out *outputItem, index *int) error {
	r.anything = true
	switch out.Type {
	case "message":
		return r.messageItem(*out, index)
	case "reasoning":
		return r.reasoningItem(*out, index)
	case "function_call":
		p := toolcall.Piece{Index: index, Whole: true, Again: index == nil}
		if r.proof.ID != "" {
			p.Signature = proof{ID: r.proof.ID}.String()
		}
		r.call(out, p)
	}
	return nil
}

// call takes a call. p is what its item does not say.
func (r *responseReply) call(out *outputItem, p toolcall.Piece) {
	p.Key, p.ID, p.Name, p.Arguments = string(out.ID), string(out.CallID), string(out.Name), string(out.Arguments)
	r.calls.Add(p)
}

// item returns the item that out is, or is a piece of, a new one if nothing of it has come. index is nil for the list
// at the end.
func (r *responseReply) item(typ string, out outputItem, index *int) *item {
	text, id := out.text(typ), string(out.ID)
	same := func(it *item) bool {
		switch {
		case it.typ != typ:
			return false
		case id != "" && it.id == id:
			return true
		case index != nil:
			return it.index == *index && !it.done
		}
		said := it.said.String()
		return !it.listed && (it.encrypted == "" || it.encrypted == string(out.Encrypted)) && strings.HasPrefix(text, said) && (said != "" || text == "")
	}
	at := slices.IndexFunc(r.items, same)
	if at < 0 {
		at = len(r.items)
		r.items = append(r.items, &item{typ: typ, id: id, index: -1})
		if index != nil {
			r.items[at].index = *index
		}
	}
	r.items[at].listed = index == nil
	return r.items[at]
}

// text returns what an item of a type says.
func (o outputItem) text(typ string) string {
	var b strings.Builder
	for _, p := range slices.Concat(o.Summary, o.Content) {
		if typ == "refusal" {
			b.WriteString(string(p.Refusal))
		} else {
			b.WriteString(string(p.Text))
		}
	}
	return b.String()
}

// rest returns what of the text of an item has not come yet.
func (it *item) rest(text string) string {
	rest, ok := strings.CutPrefix(text, it.said.String())
	if !ok {
		return ""
	}
	return rest
}

func (r *responseReply) messageItem(out outputItem, index *int) error {
	r.proof = proof{}
	if text := out.text("refusal"); text != "" {
		it := r.item("refusal", out, index)
		r.refuse(it, it.rest(text))
		it.done = true
	}
	it := r.item("message", out, index)
	err := r.answer(it, it.rest(out.text("message")))
	it.done = true
	return err
}

// reasoningItem ends a block of reasoning, which the signature proves.
func (r *responseReply) reasoningItem(out outputItem, index *int) error {
	it := r.item("reasoning", out, index)
	if it.done {
		return nil
	}
	it.done, it.encrypted = true, string(out.Encrypted)
	if it.said.Len() == 0 {
		for i, p := range out.Summary {
			if err := r.takeReasoning(place{it, "summary", i}, string(p.Text)); err != nil {
				return err
			}
		}
		for i, p := range out.Content {
			if err := r.takeReasoning(place{it, "content", i}, string(p.Text)); err != nil {
				return err
			}
		}
	}
	if out.Encrypted == "" {
		return nil
	}
	if err := r.flush(); err != nil {
		return err
	}
	r.proof = proof{ID: string(out.ID), Encrypted: string(out.Encrypted)}
	r.paragraph = nil
	return r.Reasoning("", r.proof.String())
}

// takeText takes a piece of the text of an item.
func (r *responseReply) takeText(it *item, text string) {
	it.said.WriteString(text)
	r.anything = true
	r.proof = proof{}
}

func (r *responseReply) refuse(it *item, text string) {
	r.takeText(it, text)
	r.refusal.WriteString(text)
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
func (r *responseReply) answer(it *item, text string) error {
	if text == "" {
		return nil
	}
	r.takeText(it, text)
	r.paragraph = nil
	return r.pieces(r.think.add(text))
}

// takeReasoning takes a piece of the paragraph of reasoning at p.
func (r *responseReply) takeReasoning(p place, text string) error {
	if text == "" {
		return nil
	}
	r.takeText(p.item, text)
	if err := r.flush(); err != nil {
		return err
	}
	return r.Reasoning(follows(&r.paragraph, p)+text, "")
}
