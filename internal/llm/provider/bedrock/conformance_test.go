package bedrock

import (
	"testing"
	"time"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/providertest/wiretest"
)

const (
	textStart = `messageStart {"role":"assistant"}
contentBlockDelta {"contentBlockIndex":0,"delta":{"text":"Hel"}}
contentBlockDelta {"contentBlockIndex":0,"delta":{"text":"lo"}}
`
	textEnd = `contentBlockStop {"contentBlockIndex":0}
messageStop {"stopReason":"end_turn"}
metadata {"usage":{"inputTokens":7,"outputTokens":2,"totalTokens":9},"metrics":{"latencyMs":311}}
`
	textWhole = `{"output":{"message":{"role":"assistant","content":[{"text":"Hello"}]}},"stopReason":"end_turn",
"usage":{"inputTokens":7,"outputTokens":2,"totalTokens":9},"metrics":{"latencyMs":311}}`

	callStream = `messageStart {"role":"assistant"}
contentBlockStart {"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"tooluse_a","name":"weather"}}}
contentBlockDelta {"contentBlockIndex":0,"delta":{"toolUse":{"input":"{\"city\":"}}}
contentBlockDelta {"contentBlockIndex":0,"delta":{"toolUse":{"input":"\"Paris\"}"}}}
contentBlockStop {"contentBlockIndex":0}
contentBlockStart {"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"tooluse_b","name":"time"}}}
contentBlockStop {"contentBlockIndex":1}
messageStop {"stopReason":"tool_use"}
metadata {"usage":{"inputTokens":30,"outputTokens":12,"totalTokens":42}}
`
	callWhole = `{"output":{"message":{"role":"assistant","content":[
{"toolUse":{"toolUseId":"tooluse_a","name":"weather","input":{"city":"Paris"}}},
{"toolUse":{"toolUseId":"tooluse_b","name":"time","input":{}}}]}},"stopReason":"tool_use","usage":{"inputTokens":30,"outputTokens":12,"totalTokens":42}}`

	cutOffStream = `messageStart {"role":"assistant"}
contentBlockStart {"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"tooluse_a","name":"del"}}}
contentBlockDelta {"contentBlockIndex":0,"delta":{"toolUse":{"input":"{\"path\":\"build\""}}}
contentBlockStop {"contentBlockIndex":0}
messageStop {"stopReason":"max_tokens"}
metadata {"usage":{"inputTokens":9,"outputTokens":6,"totalTokens":15}}
`
	cutOffWhole = `{"output":{"message":{"role":"assistant","content":[
{"toolUse":{"toolUseId":"tooluse_a","name":"del","input":{"path":"build"}}}]}},"stopReason":"max_tokens","usage":{"inputTokens":9,"outputTokens":6,"totalTokens":15}}`
)

func TestConformance(t *testing.T) {
	calls := []chat.ToolCall{
		{ID: "tooluse_a", Name: "weather", Arguments: `{"city":"Paris"}`},
		{ID: "tooluse_b", Name: "time", Arguments: `{}`},
	}
	page := func(w string) wiretest.Reply {
		return wiretest.Status(200, w, "Content-Type", "text/html")
	}
	scripts := map[providertest.Scenario]wiretest.Reply{
		providertest.TextReply:     wiretest.Either(streamed(transcript(textStart+textEnd)), wiretest.Status(200, textWhole)),
		providertest.ToolCallReply: wiretest.Either(streamed(transcript(callStream)), wiretest.Status(200, callWhole)),
		providertest.CutOffCall:    wiretest.Either(streamed(transcript(cutOffStream)), wiretest.Status(200, cutOffWhole)),
		providertest.RateLimited: wiretest.Status(429, `{"message":"Too many requests, please wait before trying again."}`,
			"X-Amzn-ErrorType", "ThrottlingException", "Retry-After", "3"),
		providertest.DropMidStream: wiretest.Then(streamed(transcript(textStart)), wiretest.Drop),
		providertest.Garbage:       wiretest.Either(page("<html>gateway</html>"), page("<html>gateway</html>")),
		providertest.Hang:          wiretest.Hang,
		providertest.Stall:         wiretest.Then(streamed(transcript(textStart)), wiretest.Hang),
	}
	providertest.Run(t, providertest.Case{New: func(t *testing.T, s providertest.Scenario) providertest.Subject {
		srv := newServer(t, scripts[s])
		return providertest.Subject{
			Chat: srv.client(nil), Request: provider.Request{Model: "us.anthropic.claude-sonnet-4-20250514-v1:0"},
			Text: "Hello", ToolCalls: calls, RetryAfter: 3 * time.Second, WaitIdle: srv.WaitIdle, CutOff: `{"path":"build"`,
		}
	}})
}
