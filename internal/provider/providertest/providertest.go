// Package providertest is the suite that every implementation of [provider.Chat]
// passes.
//
// A scenario is a situation at the far end of the provider: it answers, it asks to
// slow down, it drops the line. The test of a provider says with a [Case] how each
// scenario is brought about, with a scripted server or a scripted model, and [Run]
// checks that the provider turns it into what the contract promises. [Collect]
// checks the rules of a single reply and serves other tests as well.
package providertest

import (
	"context"
	"slices"
	"testing"
	"time"

	"loki/internal/chat"
	"loki/internal/provider"
)

// Scenario names a situation at the far end. Streamed requests and requests for
// the reply in one piece meet the same situation.
type Scenario string

// The scenarios. A far end in one of them answers any number of requests, also at
// the same time, always in the same way.
const (
	TextReply     Scenario = "text_reply"      // answers Subject.Text and is done
	ToolCallReply Scenario = "tool_call_reply" // makes the calls Subject.ToolCalls
	RateLimited   Scenario = "rate_limited"    // declines and asks to wait Subject.RetryAfter
	DropMidStream Scenario = "drop_mid_stream" // sends Subject.Text and then loses the connection
	Garbage       Scenario = "garbage"         // answers what no reply looks like
	Hang          Scenario = "hang"            // takes the request and never says anything
	Stall         Scenario = "stall"           // sends Subject.Text and then never anything more
)

// Scenarios returns all scenarios.
func Scenarios() []Scenario {
	return []Scenario{TextReply, ToolCallReply, RateLimited, DropMidStream, Garbage, Hang, Stall}
}

// Subject is a provider whose far end is in one scenario.
type Subject struct {
	Chat provider.Chat

	// Request brings the scenario about. The suite sets Stream and, where Messages
	// is empty, asks a short question.
	Request provider.Request

	Text       string          // TextReply: the whole reply. DropMidStream, Stall: what arrives when streaming
	ToolCalls  []chat.ToolCall // ToolCallReply; an empty ID stands for any
	RetryAfter time.Duration   // RateLimited; 0 if the far end does not say

	// WaitIdle returns nil as soon as the far end serves no request, or ctx's
	// error. Nil if the provider holds nothing that has to be released.
	WaitIdle func(ctx context.Context) error
}

// Case tells [Run] how to test one provider.
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
