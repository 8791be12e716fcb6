package anthropic

import (
	"cmp"
	"encoding/json"
	"io"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"loki/internal/provider/wire"
)

// Document implements [client.Decoder].
func (d *decoder) Document(body io.Reader) error {
	data, err := io.ReadAll(body)
	switch {
	case err != nil:
		return err
	case len(data) == 0:
		return io.ErrUnexpectedEOF
	case !json.Valid(data):
		return wire.BadReply("the reply is not JSON", data)
	}
	var m sdk.Message
	if err := json.Unmarshal(data, &m); err != nil || !m.JSON.Content.Valid() {
		if err := wire.ReplyError(data); err != nil {
			return err
		}
		return wire.Lacking("content", data)
	}
	d.count(counts(m.Usage.InputTokens, m.Usage.CacheReadInputTokens, m.Usage.CacheCreationInputTokens, m.Usage.OutputTokens, m.Usage.OutputTokensDetails.ThinkingTokens))
	d.stop, d.refusal, d.body = m.StopReason, m.StopDetails.Explanation, data
	for i, c := range m.Content {
		index := int64(i)
		if err := d.start(index, piece{
			typ: c.Type, text: c.Text, thinking: c.Thinking, signature: c.Signature, data: c.Data,
			id: c.ID, name: c.Name, input: withoutQuotes(string(c.Input)),
		}); err != nil {
			return err
		}
		if err := d.close(index); err != nil {
			return err
		}
	}
	return nil
}

// withoutQuotes returns the arguments of a call, which some servers send as a text.
func withoutQuotes(input string) string {
	return cmp.Or(wire.Unquote([]byte(input)), input)
}

// Complete implements [client.Decoder]: only the event message_stop completes a reply.
func (d *decoder) Complete() bool { return false }

// Event implements [client.Decoder]. The type that the data gives counts, since some
// servers send nothing but data; events of unknown types are passed over.
func (d *decoder) Event(typ string, data []byte) (over bool, err error) {
	if typ == "error" {
		if err := wire.ReplyError(data); err != nil {
			return false, err
		}
		return false, wire.Complaint(string(data), "", "")
	}
	if string(data) == "[DONE]" {
		return false, nil
	}
	var e sdk.MessageStreamEventUnion
	if data[0] != '{' || !json.Valid(data) || json.Unmarshal(data, &e) != nil {
		return false, wire.BadReply("an event of the reply is not a JSON object", data)
	}
	switch e.Type {
	case "message_start":
		u := e.Message.Usage
		d.count(counts(u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens, u.OutputTokens, u.OutputTokensDetails.ThinkingTokens))
	case "content_block_start":
		c := e.ContentBlock
		return false, d.start(e.Index, piece{
			typ: c.Type, text: c.Text, thinking: c.Thinking, signature: c.Signature, data: c.Data,
			id: c.ID, name: c.Name, input: withoutQuotes(c.JSON.Input.Raw()),
		})
	case "content_block_delta":
		p := e.Delta
		return false, d.add(e.Index, piece{text: p.Text, thinking: p.Thinking, signature: p.Signature, input: p.PartialJSON})
	case "content_block_stop":
		return false, d.close(e.Index)
	case "message_delta":
		u := e.Usage
		d.count(counts(u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens, u.OutputTokens, u.OutputTokensDetails.ThinkingTokens))
		if e.Delta.StopReason != "" {
			d.stop, d.refusal, d.body = e.Delta.StopReason, e.Delta.StopDetails.Explanation, data
		}
	case "message_stop":
		return true, nil
	case "ping":
	default:
		return false, wire.ReplyError(data)
	}
	return false, nil
}
