// Package geminitest has the replies of a server that speaks the format of the Gemini API,
// for package wiretest.
package geminitest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider/providertest/wiretest"
)

// New starts a server that records its requests as those of gemini, see [wiretest.New].
func New(t testing.TB, script ...wiretest.Reply) *wiretest.Server {
	t.Helper()
	return wiretest.New(t, wiretest.Options{Provider: "gemini"}, script...)
}

// RateLimit asks to wait.
func RateLimit(wait time.Duration) wiretest.Reply {
	return wiretest.Status(http.StatusTooManyRequests, fmt.Sprintf(`{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED",
		"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"%ds"}]}}`, int(wait.Seconds())))
}

const usage = `"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":5,"totalTokenCount":12}`

// Document returns a reply document of parts, which are JSON; finish may be empty.
func Document(finish string, parts ...string) string {
	candidate := `{"content":{"role":"model","parts":[` + strings.Join(parts, ",") + `]}`
	if finish != "" {
		candidate += `,"finishReason":"` + finish + `"`
	}
	return `{"candidates":[` + candidate + `,"index":0}],` + usage + `,"modelVersion":"test"}`
}

// TextPart returns a part of text.
func TextPart(text string) string {
	quoted, _ := json.Marshal(text) // a string can always be written
	return `{"text":` + string(quoted) + `}`
}

// Stream answers with the documents of a stream, or, where the request is for a reply
// in one piece, with whole.
func Stream(whole string, documents ...string) wiretest.Reply {
	events := make([]string, len(documents))
	for i, d := range documents {
		events[i] = "data: " + d + "\r\n\r\n"
	}
	return wiretest.Either(wiretest.Events(events...), wiretest.JSON(whole))
}

// Text answers with pieces of text.
func Text(pieces ...string) wiretest.Reply {
	documents := textDocuments(pieces)
	documents = append(documents, Document("STOP", TextPart("")))
	return Stream(Document("STOP", TextPart(strings.Join(pieces, ""))), documents...)
}

func textDocuments(pieces []string) []string {
	documents := make([]string, len(pieces))
	for i, p := range pieces {
		documents[i] = Document("", TextPart(p))
	}
	return documents
}

// ToolCalls answers with calls, without their ids.
func ToolCalls(calls ...chat.ToolCall) wiretest.Reply {
	parts := make([]string, len(calls))
	for i, c := range calls {
		parts[i] = fmt.Sprintf(`{"functionCall":{"name":%q,"args":%s}}`, c.Name, c.Arguments)
	}
	return Stream(Document("STOP", parts...), Document("", parts...), Document("STOP", TextPart("")))
}

// CutOff answers with a call and says that the output limit was reached. Arguments are
// always whole JSON in this API.
func CutOff(call chat.ToolCall) wiretest.Reply {
	part := fmt.Sprintf(`{"functionCall":{"name":%q,"args":%s}}`, call.Name, call.Arguments)
	return Stream(Document("MAX_TOKENS", part), Document("", part), Document("MAX_TOKENS", TextPart("")))
}

// Drop sends pieces of text and then closes the connection in the middle of a reply.
func Drop(pieces ...string) wiretest.Reply {
	return wiretest.Then(Stream("", textDocuments(pieces)...), func(c *wiretest.Call) { c.Send(`data: {"candidates": [{"content"`) }, wiretest.Drop)
}

// Stall sends pieces of text and then nothing more until the client goes.
func Stall(pieces ...string) wiretest.Reply {
	return wiretest.Then(Stream("", textDocuments(pieces)...), wiretest.Hang)
}
