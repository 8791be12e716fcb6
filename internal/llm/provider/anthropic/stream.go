package anthropic

import (
	"encoding/json"
	"io"

	"loki/internal/llm/provider/wire"
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
	var m reply
	if wire.Tolerate(json.Unmarshal(data, &m)) != nil || m.Content == nil {
		if err := wire.ReplyError(data); err != nil {
			return err
		}
		return wire.MissingError("content", data)
	}
	d.count(m.Usage.counts())
	d.stop, d.refusal, d.body = string(m.StopReason), string(m.StopDetails.Explanation), data
	for i, c := range m.Content {
		if err := d.start(i, c.piece()); err != nil {
			return err
		}
		if err := d.close(i); err != nil {
			return err
		}
	}
	return nil
}

// Complete implements [client.Decoder]. Some gateways leave message_stop out, which says no more than the reason.
func (d *decoder) Complete() bool { return d.stop != "" }

// Event implements [client.Decoder]. The type that the data gives counts, since some
// servers send nothing but data; events of unknown types are skipped.
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
	var e event
	if data[0] != '{' || wire.Tolerate(json.Unmarshal(data, &e)) != nil {
		return false, wire.BadReply("an event of the reply is not a JSON object", data)
	}
	switch e.Type {
	case "message_start":
		d.count(e.Message.Usage.counts())
	case "content_block_start":
		return false, d.start(int(e.Index), e.ContentBlock.piece())
	case "content_block_delta":
		p := e.Delta
		return false, d.add(int(e.Index), piece{text: string(p.Text), thinking: string(p.Thinking), signature: string(p.Signature), input: string(p.PartialJSON)})
	case "content_block_stop":
		return false, d.close(int(e.Index))
	case "message_delta":
		d.count(e.Usage.counts())
		if e.Delta.StopReason != "" {
			d.stop, d.refusal, d.body = string(e.Delta.StopReason), string(e.Delta.StopDetails.Explanation), data
		}
	case "message_stop":
		return true, nil
	case "ping":
	default:
		return false, wire.ReplyError(data)
	}
	return false, nil
}
