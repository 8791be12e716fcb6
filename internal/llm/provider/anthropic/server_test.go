package anthropic_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/anthropic"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/providertest/wiretest"
)

func contains(r wiretest.Request, word string) bool { return bytes.Contains(r.Body, []byte(word)) }

// server is a scripted server of the API.
type server struct {
	*wiretest.Server
	t testing.TB
}

func newServer(t testing.TB, script ...wiretest.Reply) *server {
	t.Helper()
	return &server{wiretest.New(t, wiretest.Options{Provider: "anthropic"}, script...), t}
}

// client returns a client of the server with a key, unless change says otherwise.
func (s *server) client(change func(*client.Options)) *anthropic.Client {
	s.t.Helper()
	return s.newClient(anthropic.New, change)
}

// vertex returns a client of the server as a place on Vertex AI.
func (s *server) vertex() *anthropic.Client {
	s.t.Helper()
	return s.newClient(anthropic.NewVertex, onVertex)
}

func (s *server) newClient(make func(client.Options) (*anthropic.Client, error), change func(*client.Options)) *anthropic.Client {
	s.t.Helper()
	o := client.Options{Name: "claude", APIBase: s.URL() + "/v1/", APIKey: wiretest.Key("sk-ant-secret")}
	if change != nil {
		change(&o)
	}
	c, err := make(o)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// status answers with a status and the body of an error, and header fields, given as
// names and values in turn.
func status(code int, typ, msg string, fields ...string) wiretest.Reply {
	text, _ := json.Marshal(map[string]any{"type": "error", "error": map[string]any{"type": typ, "message": msg}})
	return wiretest.Status(code, string(text), fields...)
}

// event is one event of a stream; v is its data.
func event(v map[string]any) string {
	data, _ := json.Marshal(v)
	return fmt.Sprintf("event: %s\ndata: %s\n\n", v["type"], data)
}

type object = map[string]any

const usageStart, usageEnd = 11, 7

func begin() string {
	return event(object{"type": "message_start", "message": object{
		"id": "msg_1", "type": "message", "role": "assistant", "content": []any{}, "stop_reason": nil,
		"usage": object{"input_tokens": usageStart, "output_tokens": 1},
	}})
}

func finish(stop string) string {
	return event(object{"type": "message_delta", "delta": object{"stop_reason": stop}, "usage": object{"output_tokens": usageEnd}}) +
		event(object{"type": "message_stop"})
}

func textStart(index int, pieces ...string) []string {
	list := []string{event(object{"type": "content_block_start", "index": index, "content_block": object{"type": "text", "text": ""}})}
	for _, p := range pieces {
		list = append(list, event(object{"type": "content_block_delta", "index": index, "delta": object{"type": "text_delta", "text": p}}))
	}
	return list
}

func stop(index int) string { return event(object{"type": "content_block_stop", "index": index}) }

// whole answers in one piece, with content that ended for a reason.
func whole(reason string, content ...any) wiretest.Reply {
	text, _ := json.Marshal(object{
		"id": "msg_1", "type": "message", "role": "assistant", "content": content, "stop_reason": reason,
		"usage": object{"input_tokens": usageStart, "output_tokens": usageEnd},
	})
	return wiretest.JSON(string(text))
}

// answer answers with text and calls, in the form that was asked for.
func answer(pieces []string, calls ...chat.ToolCall) wiretest.Reply {
	reason := "end_turn"
	content := []any{object{"type": "text", "text": strings.Join(pieces, "")}}
	list := append([]string{begin(), event(object{"type": "ping"})}, textStart(0, pieces...)...)
	list = append(list, stop(0))
	for i, c := range calls {
		reason = "tool_use"
		content = append(content, object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": json.RawMessage(c.Arguments)})
		half := len(c.Arguments) / 2
		list = append(list, callStart(i+1, c.ID, c.Name))
		for _, p := range []string{"", c.Arguments[:half], c.Arguments[half:]} {
			list = append(list, argumentsDelta(i+1, p))
		}
		list = append(list, stop(i+1))
	}
	return wiretest.Either(wiretest.Body("text/event-stream; charset=utf-8", append(list, finish(reason))...), whole(reason, content...))
}

func callStart(index int, id, name string) string {
	return event(object{"type": "content_block_start", "index": index, "content_block": object{"type": "tool_use", "id": id, "name": name, "input": object{}}})
}

func argumentsDelta(index int, piece string) string {
	return event(object{"type": "content_block_delta", "index": index, "delta": object{"type": "input_json_delta", "partial_json": piece}})
}

// cutOffReply answers with a call whose arguments the output limit has cut off.
func cutOffReply(arguments string) wiretest.Reply {
	return wiretest.Either(
		wiretest.Events(begin(), callStart(0, "toolu_a", "del"), argumentsDelta(0, arguments), stop(0), finish("max_tokens")),
		whole("max_tokens", object{"type": "tool_use", "id": "toolu_a", "name": "del", "input": arguments}))
}

// question returns a streamed request.
func question(more ...chat.Message) provider.Request {
	return provider.Request{
		Model: "claude-sonnet-4-5", Stream: true,
		Messages: append([]chat.Message{chat.Text(chat.User, "Question?")}, more...),
	}
}

func collect(t testing.TB, c provider.Chat, req provider.Request) providertest.Reply {
	t.Helper()
	return providertest.Collect(t, c.Chat(t.Context(), req))
}
