package openaitest

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider/providertest/wiretest"
)

// call is a request that is answered.
type call struct {
	*wiretest.Call
	model string
	usage bool // the reply is to report the usage
}

// answer makes a reply of a function.
func answer(f func(call)) wiretest.Reply {
	return func(c *wiretest.Call) {
		var wants struct {
			Model         string
			StreamOptions struct {
				IncludeUsage bool `json:"include_usage"`
			} `json:"stream_options"`
		}
		_ = json.Unmarshal(c.Body, &wants) // a body of another form wants nothing
		f(call{c, wants.Model, !c.Streamed() || wants.StreamOptions.IncludeUsage})
	}
}

// event sends one chunk of a streamed reply.
func (c call) event(delta map[string]any, finish string) {
	choice := map[string]any{"index": 0, "delta": delta, "finish_reason": nil}
	if finish != "" {
		choice["finish_reason"] = finish
	}
	c.chunk(map[string]any{"choices": []any{choice}})
}

func (c call) chunk(v map[string]any) {
	v["id"], v["object"], v["model"], v["created"] = "chatcmpl-1", "chat.completion.chunk", c.model, 1700000000
	c.Send("data: " + toJSON(v) + "\n\n")
}

func (c call) startStream() {
	c.W.Header().Set("Content-Type", "text/event-stream")
}

func (c call) sendJSON(v any) {
	c.W.Header().Set("Content-Type", "application/json")
	c.Send(toJSON(v))
}

// Text answers with text: in one piece, or streamed piece by piece.
func Text(pieces ...string) wiretest.Reply {
	return answer(message{pieces: pieces}.reply)
}

// Reasoned answers with reasoning and then text.
func Reasoned(reasoning string, pieces ...string) wiretest.Reply {
	return answer(message{reasoning: reasoning, pieces: pieces}.reply)
}

// ToolCalls answers with text, which may be empty, and then calls. Streamed calls
// have their arguments cut in two.
func ToolCalls(text string, calls ...chat.ToolCall) wiretest.Reply {
	m := message{calls: calls}
	if text != "" {
		m.pieces = []string{text}
	}
	return answer(m.reply)
}

// CutOff answers with a call whose arguments the output limit has cut off.
func CutOff(made chat.ToolCall) wiretest.Reply {
	return answer(message{calls: []chat.ToolCall{made}, cutOff: true}.reply)
}

type message struct {
	reasoning string
	pieces    []string
	calls     []chat.ToolCall
	cutOff    bool // at the output limit
}

func (m message) reply(c call) {
	if c.inResponses() {
		m.respond(c)
		return
	}
	if c.Streamed() {
		m.stream(c)
		return
	}
	msg := map[string]any{"role": "assistant", "content": strings.Join(m.pieces, "")}
	if m.reasoning != "" {
		msg["reasoning_content"] = m.reasoning
	}
	var calls []any
	for _, made := range m.calls {
		calls = append(calls, wireCall(made, made.Arguments))
	}
	if calls != nil {
		msg["tool_calls"] = calls
	}
	c.sendJSON(map[string]any{
		"id": "chatcmpl-1", "object": "chat.completion", "model": c.model,
		"choices": []any{map[string]any{"index": 0, "message": msg, "finish_reason": m.finish()}},
		"usage":   m.usage(),
	})
}

func (m message) stream(c call) {
	c.startStream()
	c.event(map[string]any{"role": "assistant", "content": ""}, "")
	if m.reasoning != "" {
		c.event(map[string]any{"reasoning_content": m.reasoning}, "")
	}
	for _, p := range m.pieces {
		c.event(map[string]any{"content": p}, "")
	}
	for i, made := range m.calls {
		half := len(made.Arguments) / 2
		first := wireCall(made, made.Arguments[:half])
		first["index"] = i
		c.event(map[string]any{"tool_calls": []any{first}}, "")
		rest := map[string]any{"index": i, "function": map[string]any{"arguments": made.Arguments[half:]}}
		c.event(map[string]any{"tool_calls": []any{rest}}, "")
	}
	c.event(map[string]any{}, m.finish())
	if c.usage {
		c.chunk(map[string]any{"choices": []any{}, "usage": m.usage()})
	}
	c.Send("data: [DONE]\n\n")
}

func (m message) finish() string {
	if m.cutOff {
		return "length"
	}
	if len(m.calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

// PromptTokens is the length of the prompt that the server reports for any
// request; the reply has one token per piece and call.
const PromptTokens = 11

func (m message) usage() map[string]any {
	out := max(1, len(m.pieces)+len(m.calls))
	return map[string]any{"prompt_tokens": PromptTokens, "completion_tokens": out, "total_tokens": PromptTokens + out}
}

func wireCall(made chat.ToolCall, arguments string) map[string]any {
	return map[string]any{
		"id": made.ID, "type": "function",
		"function": map[string]any{"name": made.Name, "arguments": arguments},
	}
}

// RateLimit answers with status 429 and asks to wait, in whole seconds rounded up.
func RateLimit(wait time.Duration) wiretest.Reply {
	name, value := wiretest.RetryAfter(wait)
	return wiretest.Status(http.StatusTooManyRequests,
		`{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}`, name, value)
}

// Garbage answers with status 200 and a body that is not a reply.
func Garbage() wiretest.Reply {
	return wiretest.Either(wiretest.Events("data: {\"choices\": [{\n\n"), wiretest.JSON("{\"choices\": [{"))
}

// Drop streams text and then closes the connection in the middle of the reply.
func Drop(pieces ...string) wiretest.Reply { return wiretest.Then(beginning(pieces), wiretest.Drop) }

// Stall streams text and then says nothing more until the client goes away.
func Stall(pieces ...string) wiretest.Reply { return wiretest.Then(beginning(pieces), wiretest.Hang) }

// beginning streams text that is not all of a reply.
func beginning(pieces []string) wiretest.Reply {
	return answer(func(c call) {
		c.startStream()
		for _, p := range pieces {
			if c.inResponses() {
				c.textDelta(p)
				continue
			}
			c.event(map[string]any{"content": p}, "")
		}
	})
}

// Embeddings answers with one vector per text.
func Embeddings(vectors ...[]float32) wiretest.Reply {
	return answer(func(c call) {
		data := []any{}
		for i, v := range vectors {
			data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": v})
		}
		c.sendJSON(map[string]any{
			"object": "list", "model": c.model, "data": data,
			"usage": map[string]any{"prompt_tokens": PromptTokens, "total_tokens": PromptTokens},
		})
	})
}

// Rank is one document of a [Ranking].
type Rank struct {
	Index int     `json:"index"`
	Score float64 `json:"relevance_score"`
}

// Ranking answers with documents, best first.
func Ranking(ranks ...Rank) wiretest.Reply {
	return answer(func(c call) {
		c.sendJSON(map[string]any{"model": c.model, "results": ranks, "usage": map[string]any{"total_tokens": PromptTokens}})
	})
}

func modelList(names []string) wiretest.Reply {
	return answer(func(c call) {
		data := []any{}
		for _, n := range names {
			data = append(data, map[string]any{"id": n, "object": "model", "owned_by": "openaitest"})
		}
		c.sendJSON(map[string]any{"object": "list", "data": data})
	})
}

func toJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // a test passed what JSON cannot hold, such as NaN
	}
	return string(data)
}
