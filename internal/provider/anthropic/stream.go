package anthropic

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"loki/internal/provider"
	"loki/internal/provider/sse"
	"loki/internal/provider/wire"
)

// maxShown is how much is read of a body that is no reply, in bytes.
const maxShown = 64 << 10

const byteOrderMark = "\uFEFF"

// readReply reads a reply of either form: proxies answer in the one that was not asked
// for, and content types are often wrong.
func readReply(resp *http.Response, b *builder) error {
	r := bufio.NewReader(resp.Body)
	first, err := firstByte(r)
	switch {
	case err == io.EOF:
		return io.ErrUnexpectedEOF
	case err != nil:
		return err
	case first == '{':
		err = readDocument(r, b)
	case startsStream(r):
		err = readEvents(r, b)
	default:
		data, _ := io.ReadAll(io.LimitReader(r, maxShown))
		return wire.BadReply("the reply is neither a JSON object nor an event stream", data)
	}
	if err == nil {
		wire.Drain(resp.Body)
	}
	return err
}

// firstByte returns the first byte of a body that is neither white space nor part of a
// byte order mark, without taking it.
func firstByte(r *bufio.Reader) (byte, error) {
	for {
		first, err := r.Peek(1)
		if err != nil {
			return 0, err
		}
		n := 1
		switch {
		case first[0] == byteOrderMark[0]:
			mark, _ := r.Peek(len(byteOrderMark))
			if string(mark) != byteOrderMark {
				return first[0], nil
			}
			n = len(byteOrderMark)
		case strings.IndexByte(space, first[0]) < 0:
			return first[0], nil
		}
		_, _ = r.Discard(n) // it has been peeked
	}
}

// startsStream reports whether a body begins with a field of an event or a comment.
func startsStream(r *bufio.Reader) bool {
	for _, field := range []string{":", "id:", "data:", "event:", "retry:"} {
		if start, _ := r.Peek(len(field)); string(start) == field {
			return true
		}
	}
	return false
}

// readDocument reads a reply in one piece.
func readDocument(r io.Reader, b *builder) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if !json.Valid(data) {
		return wire.BadReply("the reply is not JSON", data)
	}
	var m sdk.Message
	if err := json.Unmarshal(data, &m); err != nil || !m.JSON.Content.Valid() {
		if err := wire.ReplyError(data); err != nil {
			return err
		}
		return wire.Lacking("content", data)
	}
	b.tell(counts(m.Usage.InputTokens, m.Usage.CacheReadInputTokens, m.Usage.CacheCreationInputTokens, m.Usage.OutputTokens, m.Usage.OutputTokensDetails.ThinkingTokens))
	b.stop, b.refusal, b.body = m.StopReason, m.StopDetails.Explanation, data
	for i, c := range m.Content {
		index := int64(i)
		if err := b.start(index, piece{
			typ: c.Type, text: c.Text, thinking: c.Thinking, signature: c.Signature, data: c.Data,
			id: c.ID, name: c.Name, input: unquoted(string(c.Input)),
		}); err != nil {
			return err
		}
		if err := b.close(index); err != nil {
			return err
		}
	}
	return b.end()
}

// unquoted returns the arguments of a call, which some servers send as a text.
func unquoted(input string) string {
	return cmp.Or(wire.Unquote([]byte(input)), input)
}

// readEvents reads a streamed reply.
func readEvents(r io.Reader, b *builder) error {
	for ev, err := range sse.Decode(r, 0) {
		if errors.Is(err, sse.ErrTooLarge) {
			return &provider.Error{Kind: provider.BadReply, Msg: err.Error()}
		}
		if err != nil {
			return err
		}
		done, err := b.event(ev.Type, bytes.TrimSpace([]byte(ev.Data)))
		if err != nil {
			return err
		}
		if done {
			return b.end()
		}
	}
	return io.ErrUnexpectedEOF
}

// event takes the data of one event and reports whether it is the last. The type that
// the data gives counts, since some servers send nothing but data; events of unknown
// types are passed over.
func (b *builder) event(typ string, data []byte) (done bool, err error) {
	if typ == "error" {
		if err := wire.ReplyError(data); err != nil {
			return false, err
		}
		return false, wire.Complaint(string(data), "", "")
	}
	if len(data) == 0 || string(data) == "[DONE]" {
		return false, nil
	}
	var e sdk.MessageStreamEventUnion
	if data[0] != '{' || !json.Valid(data) || json.Unmarshal(data, &e) != nil {
		return false, wire.BadReply("an event of the reply is not a JSON object", data)
	}
	switch e.Type {
	case "message_start":
		u := e.Message.Usage
		b.tell(counts(u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens, u.OutputTokens, u.OutputTokensDetails.ThinkingTokens))
	case "content_block_start":
		c := e.ContentBlock
		return false, b.start(e.Index, piece{
			typ: c.Type, text: c.Text, thinking: c.Thinking, signature: c.Signature, data: c.Data,
			id: c.ID, name: c.Name, input: unquoted(c.JSON.Input.Raw()),
		})
	case "content_block_delta":
		d := e.Delta
		return false, b.add(e.Index, piece{text: d.Text, thinking: d.Thinking, signature: d.Signature, input: d.PartialJSON})
	case "content_block_stop":
		return false, b.close(e.Index)
	case "message_delta":
		u := e.Usage
		b.tell(counts(u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens, u.OutputTokens, u.OutputTokensDetails.ThinkingTokens))
		if e.Delta.StopReason != "" {
			b.stop, b.refusal, b.body = e.Delta.StopReason, e.Delta.StopDetails.Explanation, data
		}
	case "message_stop":
		return true, nil
	case "ping":
	default:
		return false, wire.ReplyError(data)
	}
	return false, nil
}
