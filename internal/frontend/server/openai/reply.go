package openai

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"time"

	"loki/internal/base/value"
	"loki/internal/frontend/server/stream"
	"loki/internal/llm/chat"
)

// completion is the body of a chat completion, and of a chunk of one that is streamed.
type completion struct {
	ID      string   `json:"id"`
	Object  string   `json:"object" enum:"chat.completion,chat.completion.chunk"`
	Created int64    `json:"created" doc:"seconds since 1970"`
	Model   string   `json:"model" doc:"as the request names it"`
	Choices []choice `json:"choices" nullable:"false"`
	Usage   *usage   `json:"usage,omitempty"`
	Loki    *said    `json:"loki,omitempty"`
}

type choice struct {
	Index        int           `json:"index"`
	Message      *replyMessage `json:"message,omitempty"`
	Delta        *delta        `json:"delta,omitempty" doc:"in streams"`
	FinishReason *string       `json:"finish_reason" enum:"stop,length,tool_calls,content_filter"`
	Logprobs     *string       `json:"logprobs" doc:"always null"`
}

// replyMessage is the message of an answer.
type replyMessage struct {
	Role      string      `json:"role" enum:"assistant"`
	Content   *string     `json:"content" doc:"null if the model wrote no text"`
	Refusal   *string     `json:"refusal" doc:"always null"`
	ToolCalls []replyCall `json:"tool_calls,omitempty"`
}

// delta is a piece of a message.
type delta struct {
	Role             string      `json:"role,omitempty"`
	Content          *string     `json:"content,omitempty"`
	ReasoningContent string      `json:"reasoning_content,omitempty"`
	ToolCalls        []replyCall `json:"tool_calls,omitempty"`
}

type replyCall struct {
	Index    *int          `json:"index,omitempty" doc:"in streams"`
	ID       string        `json:"id"`
	Type     string        `json:"type" enum:"function"`
	Function replyFunction `json:"function"`
}

type replyFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// usage counts tokens.
type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`

	PromptDetails     promptDetails     `json:"prompt_tokens_details"`
	CompletionDetails completionDetails `json:"completion_tokens_details"`
}

type promptDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

type completionDetails struct {
	ReasoningTokens int `json:"reasoning_tokens"`
}

func usageOf(u chat.Usage) *usage {
	return &usage{
		PromptTokens: u.InputTokens, CompletionTokens: u.OutputTokens, TotalTokens: u.Total(),
		PromptDetails: promptDetails{u.CachedInputTokens}, CompletionDetails: completionDetails{u.ReasoningTokens},
	}
}

// newID returns an id with a prefix.
func newID(prefix string) string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return prefix + hex.EncodeToString(b[:])
}

// finishReason returns why an answer ended as OpenAI calls it.
func finishReason(s chat.StopReason) *string {
	switch s {
	case chat.StopLength, chat.StopToolCalls, chat.StopFiltered:
	default:
		s = chat.StopEnd
	}
	return new(string(s))
}

// newCompletion returns the answer in one piece.
func newCompletion(r *request, a answer) *completion {
	m := &replyMessage{Role: string(chat.Assistant), ToolCalls: replyCalls(a.Calls, false)}
	if a.Text != "" || len(a.Calls) == 0 {
		m.Content = &a.Text
	}
	return &completion{
		ID: newID("chatcmpl-"), Object: "chat.completion", Created: time.Now().Unix(), Model: r.Model,
		Choices: []choice{{Message: m, FinishReason: finishReason(a.Stop)}}, Usage: usageOf(a.Usage), Loki: &a.Loki,
	}
}

// replyCalls returns calls as they are answered, in a stream with their places.
func replyCalls(calls []chat.ToolCall, streamed bool) []replyCall {
	var list []replyCall
	for i, c := range calls {
		rc := replyCall{ID: c.ID, Type: "function", Function: replyFunction{c.Name, c.Arguments}}
		if streamed {
			rc.Index = new(i)
		}
		list = append(list, rc)
	}
	return list
}

// chunks writes a chat completion as a stream. It is a [listener].
type chunks struct {
	w    *stream.Writer
	head completion // what all chunks begin with
	open bool       // the role has been sent
}

func newChunks(w *stream.Writer, r *request) *chunks {
	return &chunks{w: w, head: completion{ID: newID("chatcmpl-"), Object: "chat.completion.chunk", Created: time.Now().Unix(), Model: r.Model}}
}

func (c *chunks) text(ctx context.Context, piece string) error {
	return c.delta(ctx, delta{Content: &piece})
}

func (c *chunks) reasoning(ctx context.Context, piece string) error {
	return c.delta(ctx, delta{ReasoningContent: piece})
}

// began sends a chunk without text that names the run.
func (c *chunks) began(ctx context.Context, s said) error {
	first := c.head
	c.open, first.Loki = true, &s
	first.Choices = []choice{{Delta: &delta{Role: string(chat.Assistant), Content: new("")}}}
	return c.send(ctx, first)
}

// delta sends a piece of the message. The first one has the role.
func (c *chunks) delta(ctx context.Context, m delta) error {
	if !c.open {
		c.open = true
		m.Role = string(chat.Assistant)
	}
	chunk := c.head
	chunk.Choices = []choice{{Delta: &m}}
	return c.send(ctx, chunk)
}

// finish ends the stream.
func (c *chunks) finish(ctx context.Context, a answer, includeUsage bool) error {
	if len(a.Calls) > 0 || !c.open {
		if err := c.delta(ctx, delta{ToolCalls: replyCalls(a.Calls, true)}); err != nil {
			return err
		}
	}
	last := c.head
	last.Choices, last.Loki = []choice{{Delta: &delta{}, FinishReason: finishReason(a.Stop)}}, &a.Loki
	if err := c.send(ctx, last); err != nil {
		return err
	}
	if includeUsage {
		counted := c.head
		counted.Choices, counted.Usage = []choice{}, usageOf(a.Usage)
		if err := c.send(ctx, counted); err != nil {
			return err
		}
	}
	return c.w.Send(ctx, stream.Event{Data: []byte("[DONE]")})
}

func (c *chunks) send(ctx context.Context, chunk completion) error {
	data, err := value.Marshal(chunk)
	if err != nil {
		return err
	}
	return c.w.Send(ctx, stream.Event{Data: data})
}
