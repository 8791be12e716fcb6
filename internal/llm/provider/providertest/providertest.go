// Package providertest is the suite that every implementation of [provider.Chat]
// passes.
//
// A scenario is a situation at the far end of the provider: it answers, it asks to
// slow down, it drops the line. The test of a provider says with a [Case] how each
// scenario is brought about, with a scripted server or a scripted model, and [Run]
// checks that the provider turns it into what the contract promises. [Collect]
// checks the rules of a single reply and serves other tests as well.
//
// # Transcripts
//
// A transcript is a text file that holds what passes between a provider and its
// server, so that the bytes can be compared with the documentation of the API, or
// with what was seen on a real line. [Play] serves one. It begins with whose API it
// is and which; lines with # are comments:
//
//	# One question, streamed.
//	provider: openai
//	api: chat_completions
//
// Exchanges follow. Lines with > are method and target of the request, and header
// fields that it has to have; after them comes the body, which is compared as JSON.
// Lines with < are status and header fields of the response; after them comes its
// body, byte by byte, up to the next line with > or the end of the file:
//
//	> POST /v1/chat/completions
//	> Authorization: Bearer sk-test
//	{"model": "m", "messages": [...], "stream": true}
//
//	< 200
//	< Content-Type: text/event-stream
//	data: {"choices": [...]}
//
//	data: [DONE]
//
// Three lines are not header fields: "< @chunk 7" sends the body in pieces of seven
// bytes, "< @base64" says that it is written in base64, and "< @cut" breaks the
// connection after it.
//
// If LOKI_WIRE_OUT names a directory, every request is written there as
// <provider>-<n>.json, an object of api, url and body, for programs that check it
// against other descriptions of the API.
package providertest

import (
	"context"
	"slices"
	"testing"
	"time"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
)

// Scenario names a situation at the far end. Streamed requests and requests for
// the reply in one piece meet the same situation.
type Scenario string

// The scenarios. A far end in one of them answers any number of requests, also at
// the same time, always in the same way.
const (
	TextReply     Scenario = "text_reply"      // answers Subject.Text and is done
	ToolCallReply Scenario = "tool_call_reply" // makes the calls Subject.ToolCalls
	CutOffCall    Scenario = "cut_off_call"    // begins one call with the arguments Subject.CutOff and reaches the output limit
	RateLimited   Scenario = "rate_limited"    // declines and asks to wait Subject.RetryAfter
	DropMidStream Scenario = "drop_mid_stream" // sends Subject.Text and then loses the connection
	Garbage       Scenario = "garbage"         // answers what no reply looks like
	Hang          Scenario = "hang"            // takes the request and never says anything
	Stall         Scenario = "stall"           // sends Subject.Text and then never anything more
)

// Scenarios returns all scenarios.
func Scenarios() []Scenario {
	return []Scenario{TextReply, ToolCallReply, CutOffCall, RateLimited, DropMidStream, Garbage, Hang, Stall}
}

// Subject is a provider whose far end is in one scenario.
type Subject struct {
	Chat provider.Chat

	// Request brings the scenario about. The suite sets Stream and, where Messages
	// is empty, asks a short question.
	Request provider.Request

	Text       string          // TextReply: the whole reply. DropMidStream, Stall: what arrives when streaming
	ToolCalls  []chat.ToolCall // ToolCallReply; an empty ID stands for any
	CutOff     string          // CutOffCall: what comes of the arguments when streaming; whole JSON where the API sends no other
	RetryAfter time.Duration   // RateLimited; 0 if the far end does not say

	// WaitIdle returns nil as soon as the far end serves no request, or ctx's
	// error. Nil if the provider holds nothing that has to be released.
	WaitIdle func(ctx context.Context) error
}

// Case says how [Run] tests one provider.
type Case struct {
	// New returns a provider whose far end is in scenario s. It is called once
	// for each test and registers its clean-up with t.
	New func(t *testing.T, s Scenario) Subject

	// Skip names the scenarios that the provider cannot get into, each with the
	// reason. TextReply cannot be skipped.
	Skip map[Scenario]string
}

// Run runs the suite as subtests of t.
func Run(t *testing.T, c Case) {
	t.Helper()
	for s, reason := range c.Skip {
		if s == TextReply || reason == "" || !slices.Contains(Scenarios(), s) {
			t.Fatalf("Case.Skip[%q] = %q: want a scenario other than %s, and a reason", s, reason, TextReply)
		}
	}
	for _, check := range checks {
		t.Run(check.name, func(t *testing.T) {
			if reason, ok := c.Skip[check.scenario]; ok {
				t.Skipf("%s: %s", check.scenario, reason)
			}
			check.run(t, c.New(t, check.scenario))
		})
	}
}
