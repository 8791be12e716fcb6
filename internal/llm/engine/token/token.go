// Package token counts tokens, the units that models read, write and are paid by.
//
// A [Counter] counts as one model does: exactly with the model's own encoding (byte
// pairs with a rank, "BPE") where that is public, and otherwise with the estimate of
// [chat.EstimateTokens]. Beside the content of messages it counts their framing, the
// tokens that separate one message from the next.
//
// Importing the package costs nothing: an encoding is loaded when a text is first counted
// with it, which takes some tens of milliseconds and ten megabytes. The vocabularies are compressed in the program, 1.6 MB in all.
package token

import (
	"loki/internal/base/fault"
	"loki/internal/llm/chat"
)

// Counter counts tokens as one model does. The zero value estimates, and counts no
// images. Counters are comparable, may be copied and used from several goroutines.
type Counter struct {
	encoding encoding // "" estimates
	image    int      // tokens of one image
}

// Estimate returns the counter for unknown models, which is the zero value.
func Estimate() Counter { return Counter{} }

// Text returns the number of tokens in text, 0 for an empty one.
func (c Counter) Text(text string) int {
	if text == "" {
		return 0
	}
	if c.encoding != "" {
		return c.encoding.count(text)
	}
	return chat.EstimateTokens(text)
}

// Message returns the tokens of a message's content: texts, images and tool calls, but
// not its framing. Reasoning is not counted: it is not sent back, or not paid for.
// With last false a leading block of thoughts in the text of an assistant message is
// left out, see [chat.WithoutThinking], as it is when the message is sent again.
func (c Counter) Message(m chat.Message, last bool) int {
	n := 0
	for i, p := range m.Parts {
		switch {
		case p.Type == chat.ImagePart:
			n += c.image
		case p.Type != chat.TextPart:
		case i == 0 && m.Role == chat.Assistant && !last:
			n += c.Text(chat.WithoutThinking(p.Text))
		default:
			n += c.Text(p.Text)
		}
	}
	for _, call := range m.ToolCalls {
		n += c.Text(call.Name) + c.Text(call.Arguments)
	}
	return n
}

// Framing returns the tokens around the contents of n messages, the last of which is
// of role last.
//
// The encodings' models wrap each message in three tokens and begin the reply with
// three more, as the OpenAI cookbook counts them. The estimate has five between
// messages and five more if a reply is to follow.
func (c Counter) Framing(n int, last chat.Role) int {
	switch {
	case n == 0:
		return 0
	case c.encoding != "":
		return 3*n + 3
	case last == chat.User:
		return 5 * n
	}
	return 5 * (n - 1)
}

// Messages returns the tokens of a list of messages with its framing, 0 for an empty
// list.
func (c Counter) Messages(messages []chat.Message) int {
	n := 0
	for i, m := range messages {
		n += c.Message(m, i == len(messages)-1)
		if i == len(messages)-1 {
			n += c.Framing(len(messages), m.Role)
		}
	}
	return n
}

// Tools returns the tokens of the declarations of tools.
func (c Counter) Tools(tools []chat.Tool) int {
	n := 0
	for _, t := range tools {
		n += c.Text(t.Name) + c.Text(t.Description) + c.Text(string(t.Parameters))
	}
	return n
}

// reserve is the number of tokens that must be left for the beginning of the reply.
const reserve = 2

// Fit returns an error with code Limit if messages are too long for a model that reads
// at most limit tokens. A limit of 0 bounds nothing.
func (c Counter) Fit(messages []chat.Message, limit int) error {
	if limit <= 0 {
		return nil
	}
	if n := c.Messages(messages); n+reserve >= limit {
		return fault.New(fault.Limit, "the conversation has %d tokens, and the model reads at most %d", n, limit).
			WithHint("shorten the input, or begin a new session")
	}
	return nil
}
