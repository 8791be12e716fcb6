package bedrock

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/providertest/wiretest"
)

func chunks(t *testing.T, s wiretest.Reply, stream bool, history ...chat.Message) ([]provider.Chunk, error) {
	t.Helper()
	srv := newServer(t, s)
	req := provider.Request{Model: oldClaude, Stream: stream, Messages: append([]chat.Message{user("a")}, history...)}
	var got []provider.Chunk
	var failed error
	providertest.Collect(t, func(yield func(provider.Chunk, error) bool) {
		for c, err := range srv.client(nil).Chat(t.Context(), req) {
			if err != nil {
				failed = err
			} else {
				got = append(got, c)
			}
			if !yield(c, err) {
				return
			}
		}
	})
	return got, failed
}

func text(s string) provider.Chunk { return provider.Chunk{Kind: provider.Text, Text: s} }

func reasoning(s, signature string) provider.Chunk {
	return provider.Chunk{Kind: provider.Reasoning, Text: s, Signature: signature}
}

func call(id, name, arguments string) provider.Chunk {
	return provider.Chunk{Kind: provider.ToolCall, ToolCall: chat.ToolCall{ID: id, Name: name, Arguments: arguments}}
}

func ended(stop chat.StopReason, u chat.Usage) provider.Chunk {
	return provider.Chunk{Kind: provider.End, Stop: stop, Usage: u}
}

func TestTranscripts(t *testing.T) {
	usage := chat.Usage{InputTokens: 4610, CachedInputTokens: 4000, CacheWriteTokens: 600, OutputTokens: 80}
	for _, tt := range []struct {
		file string
		want []provider.Chunk
	}{
		{"thinking_and_tools", []provider.Chunk{
			reasoning("The user wants ", ""), reasoning("two cities.", ""), reasoning("", ownSignature("EqoBCkgIARAB")),
			reasoning("", redactedSignature([]byte("secret"))), reasoning("", redactedSignature([]byte("more"))),
			text("Let me "), text("look."),
			call("tooluse_1", "weather", `{"city": "Paris"}`), call("tooluse_2", "weather", `{"city": "Rome <b>"}`),
			ended(chat.StopToolCalls, usage),
		}},
		{"text_blocks", []provider.Chunk{
			text("One."), text("Two."), ended(chat.StopLength, chat.Usage{InputTokens: 5, OutputTokens: 4}),
		}},
		{"unsigned_reasoning", []provider.Chunk{ // as DeepSeek-R1 sends it
			reasoning("Hm.", ""), text("Yes."), ended(chat.StopEnd, chat.Usage{InputTokens: 9, OutputTokens: 6}),
		}},
		{"server_tool", []provider.Chunk{ // what the server calls itself is not for us
			text("It rains."), ended(chat.StopEnd, chat.Usage{InputTokens: 9, OutputTokens: 6}),
		}},
		{"no_metadata", []provider.Chunk{
			text("Hello"), ended(chat.StopFiltered, chat.Usage{InputTokens: 6, OutputTokens: 2, Estimated: true}),
		}},
	} {
		t.Run(tt.file, func(t *testing.T) {
			lines, err := os.ReadFile(filepath.Join("testdata", tt.file+".stream"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := chunks(t, streamed(transcript(string(lines))), true)
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("error %v, chunks (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestWholeReply(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		want       []provider.Chunk
	}{
		{
			"everything", `{"output":{"message":{"role":"assistant","content":[
			{"reasoningContent":{"reasoningText":{"text":"Hm.","signature":"sig"}}},{"reasoningContent":{"redactedContent":"AQID"}},
			{"text":"One."},{"citationsContent":{"content":[{"text":"Two."}],"citations":[]}},{"sdkUnknown":{}},
			{"toolUse":{"toolUseId":"t","name":"f","input":{"z":"<a>","n":12345678901234567890}}},{"sdkUnknown":{}},{"another":{}}]}},
			"stopReason":"tool_use","usage":{"inputTokens":10,"outputTokens":20,"totalTokens":33,"cacheReadInputTokens":3}}`,
			[]provider.Chunk{
				reasoning("Hm.", ""), reasoning("", ownSignature("sig")), reasoning("", redactedSignature([]byte{1, 2, 3})), text("One."), text("Two."),
				call("t", "f", `{"n":12345678901234567890,"z":"<a>"}`),
				ended(chat.StopToolCalls, chat.Usage{InputTokens: 13, CachedInputTokens: 3, OutputTokens: 20}),
			},
		},
		{
			"calls_without_ids", `{"output":{"message":{"role":"assistant","content":[{"toolUse":{"name":"f"}},{"toolUse":{"toolUseId":"","name":"f","input":{"a":1}}},
			{"toolUse":{"toolUseId":"call_2","name":"g","input":{}}}]}},"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}`,
			[]provider.Chunk{
				call("call_1", "f", "{}"), call("call_3", "f", `{"a":1}`), call("call_2", "g", "{}"),
				ended(chat.StopToolCalls, chat.Usage{InputTokens: 1, OutputTokens: 1}),
			},
		},
		{
			"loop", `{"output":{"message":{"role":"assistant","content":[` + strings.Repeat(`{"toolUse":{"name":"f","input":{}}},`, 5) +
				`{"toolUse":{"name":"g","input":{}}}]}},"stopReason":"tool_use","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}`,
			[]provider.Chunk{
				call("call_1", "f", "{}"), call("call_2", "f", "{}"), call("call_3", "f", "{}"), call("call_4", "g", "{}"),
				ended(chat.StopToolCalls, chat.Usage{InputTokens: 1, OutputTokens: 1}),
			},
		},
		{
			"nothing", `{"output":{"message":{"role":"assistant","content":[]}},"stopReason":"malformed_model_output","usage":{"inputTokens":1,"outputTokens":0,"totalTokens":1}}`,
			[]provider.Chunk{ended(chat.StopOther, chat.Usage{InputTokens: 1})},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := chunks(t, wiretest.Status(200, tt.body), false)
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("error %v, chunks (-want +got):\n%s", err, diff)
			}
		})
	}
}

// What a model signed comes back to it as it was.
func TestReasoningRoundTrip(t *testing.T) {
	for _, p := range []chat.Part{
		{Type: chat.ReasoningPart, Text: "Hm.", Signature: ownSignature("sig")},
		{Type: chat.ReasoningPart, Signature: ownSignature("sig")}, // its text is not shown
		{Type: chat.ReasoningPart, Signature: redactedSignature([]byte("x"))},
	} {
		if reasoningBlock(p) == nil {
			t.Errorf("%+v is not sent back", p)
		}
	}
}

func TestFailures(t *testing.T) {
	partial := transcript(textStart)
	cut := event("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"lost"}}`)
	damaged := bytes.Clone(cut)
	damaged[len(damaged)-6] ^= 1
	for _, tt := range []struct {
		name   string
		reply  wiretest.Reply
		kind   provider.ErrorKind
		words  string
		stream bool
		text   bool // the text before the failure has to be there
	}{
		{"throttled_in_stream", streamed(slices.Concat(partial, exceptionFrame("throttlingException", "Too many tokens, please wait."))), provider.RateLimited, "Too many tokens, please wait.", true, true},
		{"model_failed", streamed(slices.Concat(partial, exceptionFrame("modelStreamErrorException", "The model broke."))), provider.Transient, "The model broke.", true, true},
		{"service_failed", streamed(slices.Concat(partial, exceptionFrame("internalServerException", "Oops."))), provider.Transient, "Oops.", true, true},
		{"invalid_in_stream", streamed(slices.Concat(partial, exceptionFrame("validationException", "Bad tool name."))), provider.Invalid, "Bad tool name.", true, true},
		{"too_long_in_stream", streamed(exceptionFrame("validationException", "Input is too long for requested model.")), provider.ContextOverflow, "too long", true, false},
		{"unknown_exception", streamed(slices.Concat(partial, exceptionFrame("novelException", "What is this?"))), provider.Transient, "What is this? (type: novelException)", true, true},
		{"error_message", streamed(slices.Concat(partial, frame("", ":message-type", "error", ":error-code", "AccessDenied", ":error-message", "Not yours."))), provider.Authentication, "Not yours.", true, true},
		{"damaged_frame", streamed(slices.Concat(partial, damaged)), provider.BadReply, "", true, true},
		{"cut_frame", streamed(slices.Concat(partial, cut[:len(cut)/2])), provider.Transient, "", true, true},
		{"no_message_stop", streamed(partial), provider.Transient, "", true, true},
		{"empty_stream", streamed(nil), provider.Transient, "", true, false},
		{"not_json_in_frame", streamed(slices.Concat(partial, event("contentBlockDelta", "{"))), provider.BadReply, "", true, true},
		{"frame_without_type", streamed(slices.Concat(partial, frame("{}"))), provider.BadReply, "", true, true},
		{"error_document_for_stream", wiretest.Status(200, `{"message":"The model is overloaded."}`), "", "", true, false},
		{"expired", wiretest.Status(403, `{"message":"The security token included in the request is expired"}`), provider.Authentication, "expired", true, false},
		{"too_long", wiretest.Status(400, `{"message":"Input is too long for requested model."}`), provider.ContextOverflow, "too long", false, false},
		{"unknown_model", wiretest.Status(400, `{"message":"The provided model identifier is invalid."}`), provider.Invalid, "model identifier", true, false},
		{"model_error", wiretest.Status(424, `{"message":"The model failed.","originalStatusCode":500}`), provider.Transient, "The model failed.", false, false},
		{"unavailable", wiretest.Status(503, `{"message":"Try later."}`), provider.Transient, "Try later.", false, false},
		{"no_message", wiretest.Status(200, `{"stopReason":"end_turn"}`), provider.BadReply, "", false, false},
		{"not_json", wiretest.Status(200, `{"output":`), provider.BadReply, "", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := chunks(t, tt.reply, tt.stream)
			e, ok := errors.AsType[*provider.Error](err)
			if !ok {
				t.Fatalf("error %v (%T), chunks %+v", err, err, got)
			}
			if tt.kind != "" && e.Kind != tt.kind || !strings.Contains(e.Error(), tt.words) {
				t.Errorf("%s: %v, want %s with %q", e.Kind, e, tt.kind, tt.words)
			}
			if diff := cmp.Diff([]provider.Chunk{text("Hel"), text("lo")}, got); tt.text && diff != "" {
				t.Errorf("chunks before the failure (-want +got):\n%s", diff)
			}
			for _, secret := range []string{testSecret, testToken} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error %v tells a secret", err)
				}
			}
		})
	}
}

// A failure after the reply is complete costs nothing but the usage.
func TestFailureAfterTheEnd(t *testing.T) {
	stream := transcript(textStart + "contentBlockStop {\"contentBlockIndex\":0}\nmessageStop {\"stopReason\":\"end_turn\"}\n")
	got, err := chunks(t, wiretest.Then(streamed(stream), wiretest.Drop), true)
	want := []provider.Chunk{text("Hel"), text("lo"), ended(chat.StopEnd, chat.Usage{InputTokens: 6, OutputTokens: 2, Estimated: true})}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, chunks (-want +got):\n%s", err, diff)
	}
}

// A server that keeps a finished stream open does not hold the reply back.
func TestStreamKeptOpen(t *testing.T) {
	got, err := chunks(t, wiretest.Then(streamed(transcript(textStart+textEnd)), wiretest.Hang), true)
	want := []provider.Chunk{text("Hel"), text("lo"), ended(chat.StopEnd, chat.Usage{InputTokens: 7, OutputTokens: 2})}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, chunks (-want +got):\n%s", err, diff)
	}
}

// What can never be sent is not worth another try.
func TestRefusedByTheSDK(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"token_without_tls": func(o *Options) {
			o.AccessKeyID, o.SecretAccessKey, o.APIKey = nil, nil, func() (string, error) { return "key", nil }
		},
		"region": func(o *Options) { o.Region, o.APIBase = "eu central/1", "" },
	} {
		for _, stream := range []bool{true, false} {
			c := newServer(t, wiretest.Hang).client(change)
			r := providertest.Collect(t, c.Chat(t.Context(), provider.Request{Model: llama, Stream: stream, Messages: []chat.Message{user("a")}}))
			if e, ok := errors.AsType[*provider.Error](r.Err); !ok || e.Kind != provider.Invalid {
				t.Errorf("%s: %v", name, r.Err)
			}
		}
	}
}

// Some gateways answer in one piece, whatever they are asked for.
func TestWholeReplyToAStream(t *testing.T) {
	srv := newServer(t, wiretest.Status(200, callWhole))
	r := providertest.Collect(t, srv.client(nil).Chat(t.Context(), provider.Request{Model: oldClaude, Stream: true, Messages: []chat.Message{user("a")}}))
	if r.Err != nil || len(r.ToolCalls) != 2 || r.Stop != chat.StopToolCalls || r.Usage.OutputTokens != 12 {
		t.Errorf("%+v", r)
	}
	if n := len(srv.Requests()); n != 1 {
		t.Errorf("%d requests were sent", n)
	}
}

// Without wire's client failures come from the SDK itself.
func TestOtherHTTPClient(t *testing.T) {
	for _, tt := range []struct {
		name  string
		reply wiretest.Reply
		kind  provider.ErrorKind
	}{
		{"throttled", wiretest.Status(429, `{"message":"Slow down."}`, "X-Amzn-ErrorType", "ThrottlingException:http://internal.amazon.com/"), provider.RateLimited},
		{"at_once", wiretest.Status(429, `{"message":"Too many concurrent requests."}`, "X-Amzn-ErrorType", "ThrottlingException"), provider.RateLimited},
		{"denied", wiretest.Status(403, `{"message":"Not yours."}`, "X-Amzn-ErrorType", "AccessDeniedException"), provider.Authentication},
		{"dropped", wiretest.Drop, provider.Transient},
		{"dropped_in_stream", wiretest.Then(streamed(transcript(textStart)), wiretest.Drop), provider.Transient},
	} {
		srv := newServer(t, tt.reply)
		c := srv.client(func(o *Options) { o.HTTP = srv.Client() })
		r := providertest.Collect(t, c.Chat(t.Context(), provider.Request{Model: llama, Stream: true, Messages: []chat.Message{user("a")}}))
		if e, ok := errors.AsType[*provider.Error](r.Err); !ok || e.Kind != tt.kind || e.Rate != (tt.name == "throttled") {
			t.Errorf("%s: %+v, want %s", tt.name, r.Err, tt.kind)
		}
	}
}

// The connection of a reply that has been read is used again.
func TestConnectionIsReused(t *testing.T) {
	srv := newServer(t, streamed(transcript(textStart+textEnd)))
	c := srv.client(nil)
	for range 3 {
		providertest.Collect(t, c.Chat(t.Context(), provider.Request{Model: oldClaude, Stream: true, Messages: []chat.Message{user("a")}}))
	}
	if r := srv.Requests(); len(r) != 3 || r[0].Remote != r[1].Remote || r[1].Remote != r[2].Remote {
		t.Errorf("requests %v, want one connection", r)
	}
}

func FuzzStream(f *testing.F) {
	for _, name := range []string{"thinking_and_tools", "text_blocks", "server_tool"} {
		lines, err := os.ReadFile(filepath.Join("testdata", name+".stream"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(transcript(string(lines)))
	}
	f.Add(slices.Concat(transcript(textStart), exceptionFrame("throttlingException", "wait")))
	f.Add([]byte("\x00\x00\x00\x10\x00\x00\x00\x00"))
	f.Add(event("contentBlockStop", `{"contentBlockIndex":-5}`))
	c, err := New(Options{
		Options: client.Options{Name: "aws", HTTP: &http.Client{Transport: canned{}}},
		Region:  testRegion, AccessKeyID: wiretest.Key("a"), SecretAccessKey: wiretest.Key("b"),
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		ctx := context.WithValue(t.Context(), cannedKey{}, stream)
		providertest.Collect(t, c.Chat(ctx, provider.Request{Model: oldClaude, Stream: true, Messages: []chat.Message{user("a")}}))
	})
}

// FuzzEvents fuzzes the payloads within frames that are in order.
func FuzzEvents(f *testing.F) {
	files, err := filepath.Glob("testdata/*.stream")
	if err != nil || len(files) == 0 {
		f.Fatal("no transcripts", err)
	}
	for _, name := range files {
		lines, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(lines))
	}
	f.Add(`contentBlockDelta {"contentBlockIndex":-1,"delta":{"reasoningContent":{"signature":"x"}}}`)
	c, err := New(Options{
		Options: client.Options{Name: "aws", HTTP: &http.Client{Transport: canned{}}},
		Region:  testRegion, AccessKeyID: wiretest.Key("a"), SecretAccessKey: wiretest.Key("b"),
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, lines string) {
		for line := range strings.Lines(lines) {
			if typ, _, _ := strings.Cut(line, " "); len(typ) > 200 || typ == "" {
				t.Skip("no header is that long, or empty")
			}
		}
		ctx := context.WithValue(t.Context(), cannedKey{}, transcript(lines))
		providertest.Collect(t, c.Chat(ctx, provider.Request{Model: oldClaude, Stream: true, Messages: []chat.Message{user("a")}}))
	})
}
