package thirdparty_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/providertest"
)

// job is a request to a server through an official SDK, see assemble.mjs.
type job struct {
	SDK    string `json:"sdk"` // the name of an api
	Base   string `json:"base"`
	Model  string `json:"model"`
	Stream bool   `json:"stream"`
	Prompt string `json:"prompt"`
	Tool   bool   `json:"tool"`
}

// assembled is what the SDK makes of the reply.
type assembled struct {
	Texts     []string
	Reasoning string
	Calls     []struct{ ID, Name, Arguments string }
	Stop      string // in the API's words

	Input, Output, Cached, Written, Thinking int // in tokens

	Error string // empty if there is a reply
}

// stops says in our terms why replies end. What is missing is none of the ordinary
// reasons.
func stops() map[string]chat.StopReason {
	return map[string]chat.StopReason{
		// https://platform.openai.com/docs/api-reference/chat/object
		"stop": chat.StopEnd, "length": chat.StopLength, "tool_calls": chat.StopToolCalls, "content_filter": chat.StopFiltered,
		// https://platform.openai.com/docs/api-reference/responses/object
		"completed": chat.StopEnd, "max_output_tokens": chat.StopLength,
		// https://docs.claude.com/en/api/messages, and Bedrock's Converse
		"end_turn": chat.StopEnd, "stop_sequence": chat.StopEnd, "max_tokens": chat.StopLength, "tool_use": chat.StopToolCalls,
		"refusal": chat.StopFiltered, "model_context_window_exceeded": chat.StopLength, "guardrail_intervened": chat.StopFiltered,
		// https://ai.google.dev/api/generate-content
		"STOP": chat.StopEnd, "MAX_TOKENS": chat.StopLength, "SAFETY": chat.StopFiltered,
		"FUNCTION_CALL": chat.StopToolCalls, // which only mocks say
		// https://docs.cohere.com/v2/reference/chat, which shares MAX_TOKENS
		"COMPLETE": chat.StopEnd, "STOP_SEQUENCE": chat.StopEnd, "TOOL_CALL": chat.StopToolCalls,
	}
}

// compare reports how our reply differs from that of the SDK.
func compare(t *testing.T, ours providertest.Reply, sdk assembled) {
	t.Helper()
	if sdk.Error != "" {
		t.Errorf("the SDK rejects the reply (%s), we have %+v", sdk.Error, ours)
		return
	}
	if e, ok := errors.AsType[*provider.Error](ours.Err); ok && e.Kind == provider.Refused && strings.Contains(strings.Join(sdk.Texts, ""), e.Msg) {
		return // a refusal is a failure here and a text there
	}
	if ours.Err != nil {
		t.Errorf("we reject the reply (%v), the SDK has %+v", ours.Err, sdk)
		return
	}
	// Blank lines set blocks apart, which are pieces of a list in the SDKs.
	joined := func(s string) string { return strings.ReplaceAll(s, "\n\n", "") }
	if got, want := joined(ours.Text), joined(strings.Join(sdk.Texts, "")); got != want {
		t.Errorf("text %q, the SDK has %q", got, want)
	}
	if got, want := joined(ours.Reasoning), joined(sdk.Reasoning); sdk.Reasoning != "" && got != want {
		t.Errorf("reasoning %q, the SDK has %q", got, want)
	}
	if len(ours.ToolCalls) != len(sdk.Calls) {
		t.Errorf("calls %+v, the SDK has %+v", ours.ToolCalls, sdk.Calls)
		return
	}
	for i, c := range sdk.Calls {
		got := ours.ToolCalls[i]
		if got.Name != c.Name || c.ID != "" && got.ID != c.ID || !sameJSON(got.Arguments, c.Arguments) {
			t.Errorf("call %+v, the SDK has %+v", got, c)
		}
	}
	want, known := stops()[sdk.Stop]
	if !known {
		want = chat.StopOther
	}
	if want == chat.StopEnd && len(sdk.Calls) > 0 { // not all APIs have a reason of its own
		want = chat.StopToolCalls
	}
	if ours.Stop != want {
		t.Errorf("stop reason %s, the SDK has %s", ours.Stop, sdk.Stop)
	}
	if sdk.Input+sdk.Output == 0 {
		if !ours.Usage.Estimated {
			t.Errorf("usage %+v, the SDK has none", ours.Usage)
		}
		return
	}
	usage := chat.Usage{
		InputTokens: sdk.Input, OutputTokens: sdk.Output, CachedInputTokens: sdk.Cached, CacheWriteTokens: sdk.Written,
		ReasoningTokens: ours.Usage.ReasoningTokens,
	}
	if sdk.Thinking > 0 {
		usage.ReasoningTokens = sdk.Thinking
	}
	if ours.Usage != usage {
		t.Errorf("usage %+v, the SDK has %+v", ours.Usage, usage)
	}
}

// sameJSON compares arguments, of which the SDKs tell some parsed. Integers that a
// float64 cannot hold are rounded there, and so here.
func sameJSON(a, b string) bool {
	decode := func(s string) (v any) {
		if strings.TrimSpace(s) == "" {
			s = "{}"
		}
		if json.Unmarshal([]byte(s), &v) != nil {
			return s
		}
		return v
	}
	return reflect.DeepEqual(decode(a), decode(b))
}

// recordings are the recorded replies, of the wire tests of our providers, that are in
// the form which the official SDK knows. The others are what gateways and other makers
// send, or failures, or say [DONE] in the middle of a text, where Cohere's SDK stops
// reading. Those of responses are here, since the SDK wants every event of the API.
func recordings() map[string][]string {
	return map[string][]string{
		"openai_chat": {
			"replies/openai_text.json", "replies/openai_text.sse", "replies/openai_tools.sse", "replies/azure_content_filter.sse",
			"replies/refusal.sse", "replies/unknown_reason.json", "replies/openrouter_comments.sse",
			"transcripts/chat_tools.txt#1", "transcripts/chat_tools.txt#2", "transcripts/chat_stream.txt#1", "transcripts/chat_text.txt#1",
		},
		"openai_responses": {
			"responses_text.json", "responses_text.sse", "responses_calls.json", "responses_calls.sse",
			"responses_incomplete.json", "responses_incomplete.sse",
		},
		"anthropic": {
			"replies/text.json", "replies/text.sse", "replies/thinking_and_calls.json", "replies/thinking_and_calls.sse",
			"replies/thinking_omitted.sse", "replies/refusal.sse", "replies/interleaved.json", "replies/window_exceeded.json",
		},
		"gemini": {
			"replies/text.json", "replies/text.sse", "replies/thoughts_and_calls.sse", "replies/max_tokens.sse", "replies/several_parts.json",
			"replies/signed_text.sse", "replies/safety_mid_reply.sse", "replies/unknown_reason.json", "replies/other_candidates.json",
		},
		"bedrock": {"thinking_and_tools.stream", "text_blocks.stream", "no_metadata.stream"},
		"cohere":  {"text.sse", "tools.sse", "tool_round.txt#1", "tool_round.txt#2"},
	}
}

// sameEnvelope compares the requests of the SDK, which came first, and of our client:
// where they went, by whom and in which version of the API.
func sameEnvelope(t *testing.T, requests []received) {
	t.Helper()
	if len(requests) != 2 {
		t.Errorf("%d requests", len(requests))
		return
	}
	sdk, ours := requests[0], requests[1]
	if ours.target != sdk.target {
		t.Errorf("request to %s, the SDK's was to %s", ours.target, sdk.target)
	}
	for _, name := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Anthropic-Version", "Content-Type"} {
		got, want := ours.header.Get(name), sdk.header.Get(name)
		if name == "Authorization" && strings.HasPrefix(want, "AWS4-HMAC-SHA256 ") {
			got, _, _ = strings.Cut(got, "/") // what follows depends on the time
			want, _, _ = strings.Cut(want, "/")
		}
		if got != want {
			t.Errorf("header %s is %q, the SDK's was %q", name, got, want)
		}
	}
}

// TestOfficialSDKsReadRepliesAsWeDo plays recorded replies to the official SDKs and to
// our clients.
func TestOfficialSDKsReadRepliesAsWeDo(t *testing.T) {
	w := newWorkshop(t)
	type pair struct {
		name string
		api  api
		job  job
		far  *player
	}
	var pairs []pair
	var jobs []job
	for _, a := range apis() {
		dir, _, _ := strings.Cut(a.name, "_")
		for _, file := range recordings()[a.name] {
			path := filepath.Join("..", dir, "testdata", filepath.FromSlash(file))
			if a.name == "openai_responses" {
				path = filepath.Join("testdata", "replies", file)
			}
			reply := readRecording(t, path)
			server := newPlayer(t, reply)
			j := job{
				SDK: a.name, Base: server.url, Model: a.models[0], Prompt: "Hello.",
				Stream: strings.Contains(reply.contentType, "stream"),
			}
			pairs = append(pairs, pair{a.name + "/" + file, a, j, server})
			jobs = append(jobs, j)
		}
	}
	var results []assembled
	w.run(t, "assemble.mjs", jobs, &results)
	for i, p := range pairs {
		t.Run(p.name, func(t *testing.T) {
			compare(t, providertest.Collect(t, p.api.client(t, p.job.Base).Chat(t.Context(), provider.Request{
				Model: p.job.Model, Stream: p.job.Stream, Messages: []chat.Message{user(p.job.Prompt)},
			})), results[i])
			sameEnvelope(t, p.far.got(t))
		})
	}
}
