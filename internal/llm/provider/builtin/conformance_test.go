package builtin

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/providertest"
)

// scenarios are the rule files that bring the scenarios of the suite about.
var scenarios = map[providertest.Scenario]string{
	providertest.TextReply: "default: {reasoning: Let me think., reply: It is fine today.}",
	providertest.ToolCallReply: `default:
  tool_calls:
    - {name: weather, arguments: {city: Rome}}
    - {name: raw, arguments: "{broken", id: mine}`,
	providertest.CutOffCall: `default:
  stop: length
  tool_calls:
    - {name: raw, arguments: '{"path": "build"'}`,
	providertest.RateLimited:   "default: {error: {kind: rate_limited, status: 429, retry_after: 7s}}",
	providertest.DropMidStream: "default: {reply: It is never said., error: {kind: transient, after_chunks: 2}}",
	providertest.Garbage:       "default: {error: {kind: bad_reply}}",
	providertest.Hang:          "default: {reply: too late, delay: 1h}",
	providertest.Stall:         "default: {reply: It is, chunk_delay: 1h}",
}

func TestScriptConforms(t *testing.T) {
	texts := map[providertest.Scenario]string{
		providertest.TextReply:     "It is fine today.",
		providertest.DropMidStream: "It is ",
		providertest.Stall:         "It ",
	}
	providertest.Run(t, providertest.Case{New: func(t *testing.T, s providertest.Scenario) providertest.Subject {
		return providertest.Subject{
			Chat:       New(Options{ScriptFile: writeScript(t, scenarios[s])}),
			Request:    provider.Request{Model: Script},
			Text:       texts[s],
			RetryAfter: 7 * time.Second,
			CutOff:     `{"path": "build"`,
			ToolCalls: []chat.ToolCall{
				{ID: "call_1", Name: "weather", Arguments: `{"city":"Rome"}`},
				{ID: "mine", Name: "raw", Arguments: "{broken"},
			},
		}
	}})
}

func TestEchoConforms(t *testing.T) {
	conforms(t, Echo, "What is it like?")
}

func TestExtractConforms(t *testing.T) {
	conforms(t, Extract, "What is it like?")
}

func TestHashConforms(t *testing.T) {
	providertest.RunEmbedder(t, New(Options{}), Hash)
}

// conforms runs the suite for a model that can only answer.
func conforms(t *testing.T, model, text string) {
	const never = "the model only ever answers, and at once"
	providertest.Run(t, providertest.Case{
		New: func(*testing.T, providertest.Scenario) providertest.Subject {
			return providertest.Subject{Chat: New(Options{}), Request: provider.Request{Model: model}, Text: text}
		},
		Skip: map[providertest.Scenario]string{
			providertest.ToolCallReply: never,
			providertest.CutOffCall:    never,
			providertest.RateLimited:   never,
			providertest.DropMidStream: never,
			providertest.Garbage:       never,
			providertest.Hang:          never,
			providertest.Stall:         never,
		},
	})
}

// writeScript writes a rule file and returns its path.
func writeScript(t *testing.T, rules string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// noSleep returns a sleep that takes no time and notes what it was asked for.
func noSleep(noted *[]time.Duration) func(context.Context, time.Duration) error {
	return func(_ context.Context, d time.Duration) error {
		*noted = append(*noted, d)
		return nil
	}
}
