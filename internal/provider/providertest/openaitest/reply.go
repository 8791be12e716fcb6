package openaitest

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"time"

	"loki/internal/chat"
)

// Reply answers one request. The functions of this package make the usual ones;
// a test may write its own.
type Reply func(c *Call)

// Call is a request that a [Reply] answers.
type Call struct {
	W      http.ResponseWriter
	R      *http.Request
	Body   []byte
	Model  string
	Stream bool // the reply is to come as server-sent events
	Usage  bool // the reply is to tell the usage

	closing <-chan struct{} // closed when the server stops
}

// Wait blocks until the client has gone away.
func (c *Call) Wait() {
	select {
	case <-c.R.Context().Done():
	case <-c.closing:
	}
}

// Send writes text and flushes it.
func (c *Call) Send(text string) {
	_, _ = io.WriteString(c.W, text) // the client may be gone, which is what some tests are about
	_ = http.NewResponseController(c.W).Flush()
}

// event sends one chunk of a streamed reply.
func (c *Call) event(delta map[string]any, finish string) {
	choice := map[string]any{"index": 0, "delta": delta, "finish_reason": nil}
	if finish != "" {
		choice["finish_reason"] = finish
	}
	c.chunk(map[string]any{"choices": []any{choice}})
}

func (c *Call) chunk(v map[string]any) {
	v["id"], v["object"], v["model"], v["created"] = "chatcmpl-1", "chat.completion.chunk", c.Model, 1700000000
	c.Send("data: " + toJSON(v) + "\n\n")
}

func (c *Call) startStream() {
	c.W.Header().Set("Content-Type", "text/event-stream")
}

func (c *Call) sendJSON(v any) {
	c.W.Header().Set("Content-Type", "application/json")
	c.Send(toJSON(v))
}

// Text answers with text: in one piece, or streamed piece by piece.
func Text(pieces ...string) Reply {
	return message{pieces: pieces}.reply
}

// Reasoned answers with reasoning and then text.
func Reasoned(reasoning string, pieces ...string) Reply {
	return message{reasoning: reasoning, pieces: pieces}.reply
}

// ToolCalls answers with text, which may be empty, and then calls. Streamed calls
// have their arguments cut in two.
func ToolCalls(text string, calls ...chat.ToolCall) Reply {
	m := message{calls: calls}
	if text != "" {
		m.pieces = []string{text}
	}
	return m.reply
}

// CutOff answers with a call whose arguments the output limit has cut off.
func CutOff(call chat.ToolCall) Reply {
	return message{calls: []chat.ToolCall{call}, cutOff: true}.reply
}

type message struct {
	reasoning string
	pieces    []string
	calls     []chat.ToolCall
	cutOff    bool // at the output limit
}

func (m message) reply(c *Call) {
	if c.inResponses() {
		m.respond(c)
		return
	}
	if c.Stream {
		m.stream(c)
		return
	}
	msg := map[string]any{"role": "assistant", "content": strings.Join(m.pieces, "")}
	if m.reasoning != "" {
		msg["reasoning_content"] = m.reasoning
	}
	var calls []any
	for _, call := range m.calls {
		calls = append(calls, wireCall(call, call.Arguments))
	}
	if calls != nil {
		msg["tool_calls"] = calls
	}
	c.sendJSON(map[string]any{
		"id": "chatcmpl-1", "object": "chat.completion", "model": c.Model,
		"choices": []any{map[string]any{"index": 0, "message": msg, "finish_reason": m.finish()}},
		"usage":   m.usage(),
	})
}

func (m message) stream(c *Call) {
	c.startStream()
	c.event(map[string]any{"role": "assistant", "content": ""}, "")
	if m.reasoning != "" {
		c.event(map[string]any{"reasoning_content": m.reasoning}, "")
	}
	for _, p := range m.pieces {
		c.event(map[string]any{"content": p}, "")
	}
	for i, call := range m.calls {
		half := len(call.Arguments) / 2
		first := wireCall(call, call.Arguments[:half])
		first["index"] = i
		c.event(map[string]any{"tool_calls": []any{first}}, "")
		rest := map[string]any{"index": i, "function": map[string]any{"arguments": call.Arguments[half:]}}
		c.event(map[string]any{"tool_calls": []any{rest}}, "")
	}
	c.event(map[string]any{}, m.finish())
	if c.Usage {
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

func wireCall(call chat.ToolCall, arguments string) map[string]any {
	return map[string]any{
		"id": call.ID, "type": "function",
		"function": map[string]any{"name": call.Name, "arguments": arguments},
	}
}

// Raw answers with status 200 and body, written and flushed piece by piece.
func Raw(contentType string, body ...string) Reply {
	return func(c *Call) {
		c.W.Header().Set("Content-Type", contentType)
		for _, piece := range body {
			c.Send(piece)
		}
	}
}

// Status answers with an HTTP status, a body and header fields, given as names and
// values in turn. A body is JSON unless the fields say otherwise.
func Status(code int, body string, fields ...string) Reply {
	return func(c *Call) {
		c.W.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(fields); i += 2 {
			c.W.Header().Set(fields[i], fields[i+1])
		}
		c.W.WriteHeader(code)
		c.Send(body)
	}
}

// RateLimit answers with status 429 and asks to wait, in whole seconds rounded up.
func RateLimit(wait time.Duration) Reply {
	return Status(http.StatusTooManyRequests,
		`{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}`,
		"Retry-After", fmt.Sprint(int(math.Ceil(wait.Seconds()))))
}

// Garbage answers with status 200 and a body that is no reply.
func Garbage() Reply {
	return func(c *Call) {
		if c.Stream {
			Raw("text/event-stream", "data: {\"choices\": [{\n\n")(c)
			return
		}
		Raw("application/json", "{\"choices\": [{")(c)
	}
}

// Drop streams text and then closes the connection in the middle of the reply.
func Drop(pieces ...string) Reply {
	return func(c *Call) {
		c.startText(pieces)
		c.cut()
	}
}

// Cut gives the reply and then cuts the connection, so that the reply lacks the
// end that HTTP asks for.
func Cut(r Reply) Reply {
	return func(c *Call) {
		r(c)
		c.cut()
	}
}

func (c *Call) cut() {
	panic(http.ErrAbortHandler) // the documented way, see http.Handler
}

// Stall streams text and then says nothing more until the client goes away.
func Stall(pieces ...string) Reply {
	return func(c *Call) {
		c.startText(pieces)
		c.Wait()
	}
}

func (c *Call) startText(pieces []string) {
	c.startStream()
	for _, p := range pieces {
		if c.inResponses() {
			c.textDelta(p)
			continue
		}
		c.event(map[string]any{"content": p}, "")
	}
}

// Hang takes the request and says nothing until the client goes away.
func Hang() Reply { return (*Call).Wait }

// After gives the reply once ready is closed, or none if the client goes away
// before that.
func After(ready <-chan struct{}, r Reply) Reply {
	return func(c *Call) {
		select {
		case <-ready:
			r(c)
		case <-c.R.Context().Done():
		case <-c.closing:
		}
	}
}

// Embeddings answers with one vector per text.
func Embeddings(vectors ...[]float32) Reply {
	return func(c *Call) {
		data := []any{}
		for i, v := range vectors {
			data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": v})
		}
		c.sendJSON(map[string]any{
			"object": "list", "model": c.Model, "data": data,
			"usage": map[string]any{"prompt_tokens": PromptTokens, "total_tokens": PromptTokens},
		})
	}
}

// Rank is one document of a [Ranking].
type Rank struct {
	Index int     `json:"index"`
	Score float64 `json:"relevance_score"`
}

// Ranking answers with documents, best first.
func Ranking(ranks ...Rank) Reply {
	return func(c *Call) {
		c.sendJSON(map[string]any{"model": c.Model, "results": ranks, "usage": map[string]any{"total_tokens": PromptTokens}})
	}
}

func modelList(names []string) Reply {
	return func(c *Call) {
		data := []any{}
		for _, n := range names {
			data = append(data, map[string]any{"id": n, "object": "model", "owned_by": "openaitest"})
		}
		c.sendJSON(map[string]any{"object": "list", "data": data})
	}
}

func toJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // a test passed what JSON cannot hold, such as NaN
	}
	return string(data)
}
