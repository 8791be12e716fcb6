package bedrock

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/providertest/wiretest"
	"loki/internal/llm/provider/wire"
)

const (
	oldClaude  = "us.anthropic.claude-sonnet-4-20250514-v1:0"
	newClaude  = "global.anthropic.claude-opus-4-6-v1"
	llama      = "meta.llama3-3-70b-instruct-v1:0"
	pixel      = "data:image/png;base64,iVBORw0KGgo="
	pixelBytes = "iVBORw0KGgo="
)

// ask sends req to a server that answers and returns what it received.
func ask(t *testing.T, req provider.Request, change func(*Options)) wiretest.Request {
	t.Helper()
	srv := newServer(t, wiretest.Either(streamed(transcript(textStart+textEnd)), wiretest.Status(200, textWhole)))
	if r := providertest.Collect(t, srv.client(change).Chat(t.Context(), req)); r.Err != nil {
		t.Fatal(r.Err)
	}
	return srv.Last()
}

func wantJSON(t *testing.T, got, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("%v in %s", err, want)
	}
	if !reflect.DeepEqual(g, w) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func user(text string) chat.Message { return chat.Text(chat.User, text) }

func number(f float64) *float64 { return &f }

func TestRequestBody(t *testing.T) {
	weather := chat.Tool{Name: "weather", Description: "Tells it.", Parameters: json.RawMessage(`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer","maximum":12345678901234567890}}}`)}
	calls := chat.Message{
		Role: chat.Assistant,
		Parts: []chat.Part{
			{Type: chat.ReasoningPart, Text: "hm", Signature: ownSignature("sig==")},
			{Type: chat.ReasoningPart, Signature: redactedSignature([]byte{1, 2, 3})},
			{Type: chat.ReasoningPart, Text: "foreign", Signature: "xyz"},
			{Type: chat.ReasoningPart, Text: "unsigned"},
			{Type: chat.TextPart, Text: "I look."},
		},
		ToolCalls: []chat.ToolCall{{ID: "t1", Name: "weather", Arguments: `{"z":"Paris","a":1}`}, {ID: "functions.weather:0", Name: "wea ther", Arguments: `{"z":`}},
	}
	result := func(id, text string) chat.Message {
		m := chat.Text(chat.ToolRole, text)
		m.ToolCallID = id
		return m
	}
	failed := result("functions.weather:0", "no such city")
	failed.Failed = true
	for _, tt := range []struct {
		name string
		req  provider.Request
		want string
	}{
		{
			"question",
			provider.Request{Model: llama, Messages: []chat.Message{user("Hi")}},
			`{"inferenceConfig":{},"messages":[{"role":"user","content":[{"text":"Hi"}]}]}`,
		},
		{
			"system_and_parameters",
			provider.Request{
				Model: llama, Messages: []chat.Message{chat.Text(chat.System, "Be brief."), user("Hi")},
				Sampling: chat.Sampling{Temperature: number(0.7), TopP: number(0.9)}, MaxOutputTokens: 100,
			},
			`{"inferenceConfig":{"temperature":0.7,"topP":0.9,"maxTokens":100},"system":[{"text":"Be brief."}],
			"messages":[{"role":"user","content":[{"text":"Hi"}]}]}`,
		},
		{
			"constraints",
			provider.Request{Model: llama, Messages: []chat.Message{user("Hi")}, Tools: []chat.Tool{{Name: "f"}}, Constraints: chat.Constraints{Stop: []string{"END", "\n", "a", "b", "c", "d", "e"}, Seed: new(int64(7)), FrequencyPenalty: 0.5, PresencePenalty: 1, Choice: chat.ToolChoice{Required: true, Name: "f"}}},
			`{"inferenceConfig":{"stopSequences":["END","a","b","c"]},"messages":[{"role":"user","content":[{"text":"Hi"}]}],
			"toolConfig":{"tools":[{"toolSpec":{"name":"f","inputSchema":{"json":{"type":"object","properties":{}}}}}],"toolChoice":{"tool":{"name":"f"}}}}`,
		},
		{
			"history", // neighbours merge, thinking and blank texts go
			provider.Request{Model: llama, Messages: []chat.Message{
				user("a"), user("b"), chat.Text(chat.Assistant, " <think>x</think>\n\nc"), user("  "), user("d"),
			}},
			`{"inferenceConfig":{},"messages":[{"role":"user","content":[{"text":"a"},{"text":"b"}]},
			{"role":"assistant","content":[{"text":"c"}]},{"role":"user","content":[{"text":"d"}]}]}`,
		},
		{
			"started_answer", // the model goes on with it
			provider.Request{Model: llama, Messages: []chat.Message{user("a"), chat.Text(chat.Assistant, "<think>x</think> It is \n")}},
			`{"inferenceConfig":{},"messages":[{"role":"user","content":[{"text":"a"}]},{"role":"assistant","content":[{"text":"<think>x</think> It is"}]}]}`,
		},
		{
			"image",
			provider.Request{Model: llama, Messages: []chat.Message{{
				Role: chat.User, Parts: []chat.Part{{Type: chat.TextPart, Text: "What?"}, {Type: chat.ImagePart, URL: pixel}},
			}}},
			`{"inferenceConfig":{},"messages":[{"role":"user","content":[{"text":"What?"},{"image":{"format":"png","source":{"bytes":"` + pixelBytes + `"}}}]}]}`,
		},
		{
			"cache_points_of_claude",
			provider.Request{Model: oldClaude, Tools: []chat.Tool{weather}, Messages: []chat.Message{chat.Text(chat.System, "S"), user("a")}},
			`{"inferenceConfig":{},"system":[{"text":"S"},{"cachePoint":{"type":"default"}}],
			"messages":[{"role":"user","content":[{"text":"a"},{"cachePoint":{"type":"default"}}]}],
			"toolConfig":{"tools":[{"toolSpec":{"name":"weather","description":"Tells it.","inputSchema":{"json":` + string(weather.Parameters) + `}}},{"cachePoint":{"type":"default"}}]}}`,
		},
		{
			"cache_points_of_nova", // none behind tools
			provider.Request{Model: "amazon.nova-pro-v1:0", Tools: []chat.Tool{{Name: "now"}}, Messages: []chat.Message{chat.Text(chat.System, "S"), user("a")}},
			`{"inferenceConfig":{},"system":[{"text":"S"},{"cachePoint":{"type":"default"}}],
			"messages":[{"role":"user","content":[{"text":"a"},{"cachePoint":{"type":"default"}}]}],
			"toolConfig":{"tools":[{"toolSpec":{"name":"now","inputSchema":{"json":{"type":"object","properties":{}}}}}]}}`,
		},
		{
			"no_cache_points_for_one_question",
			provider.Request{Model: oldClaude, Messages: []chat.Message{chat.Text(chat.System, "S"), user("a")}},
			`{"inferenceConfig":{},"system":[{"text":"S"}],"messages":[{"role":"user","content":[{"text":"a"}]}]}`,
		},
		{
			"tool_round",
			provider.Request{Model: "anthropic.claude-3-haiku-20240307-v1:0", Messages: []chat.Message{
				user("a"), calls, result("t1", `{"degrees":21}`), failed,
			}},
			`{"inferenceConfig":{},"messages":[{"role":"user","content":[{"text":"a"}]},
			{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"hm","signature":"sig=="}}},{"reasoningContent":{"redactedContent":"AQID"}},{"text":"I look."},
			{"toolUse":{"toolUseId":"t1","name":"weather","input":{"z":"Paris","a":1}}},
			{"toolUse":{"toolUseId":"` + callID("functions.weather:0") + `","name":"wea_ther","input":{"malformed_arguments":"{\"z\":"}}}]},
			{"role":"user","content":[{"toolResult":{"toolUseId":"t1","content":[{"json":{"degrees":21}}]}},
			{"toolResult":{"toolUseId":"` + callID("functions.weather:0") + `","content":[{"text":"no such city"}],"status":"error"}}]}],
			"toolConfig":{"tools":[{"toolSpec":{"name":"weather","description":"` + withdrawn + `","inputSchema":{"json":{"type":"object","properties":{}}}}},
			{"toolSpec":{"name":"wea_ther","description":"` + withdrawn + `","inputSchema":{"json":{"type":"object","properties":{}}}}}]}}`,
		},
		{
			"tool_outputs", // no status for models that do not know it
			provider.Request{Model: llama, Tools: []chat.Tool{{Name: "f"}}, Messages: []chat.Message{
				user("a"),
				{Role: chat.Assistant, ToolCalls: []chat.ToolCall{{ID: "1", Name: "f"}, {ID: "2", Name: "f", Arguments: "null"}}},
				{Role: chat.ToolRole, ToolCallID: "1", Failed: true, Parts: []chat.Part{{Type: chat.TextPart, Text: "[1]"}, {Type: chat.ImagePart, URL: pixel}}},
				{Role: chat.ToolRole, ToolCallID: "2"},
			}},
			`{"inferenceConfig":{},"messages":[{"role":"user","content":[{"text":"a"}]},
			{"role":"assistant","content":[{"toolUse":{"toolUseId":"1","name":"f","input":{}}},{"toolUse":{"toolUseId":"2","name":"f","input":{}}}]},
			{"role":"user","content":[{"toolResult":{"toolUseId":"1","content":[{"text":"[1]"},{"image":{"format":"png","source":{"bytes":"` + pixelBytes + `"}}}]}},
			{"toolResult":{"toolUseId":"2","content":[{"text":"(no output)"}]}}]}],
			"toolConfig":{"tools":[{"toolSpec":{"name":"f","inputSchema":{"json":{"type":"object","properties":{}}}}}]}}`,
		},
		{
			"budget", // sampling parameters are not for thinking models
			provider.Request{Model: oldClaude, Sampling: chat.Sampling{Effort: provider.MediumEffort, Temperature: number(0), TopP: number(1)}, Messages: []chat.Message{user("a")}},
			`{"inferenceConfig":{},"messages":[{"role":"user","content":[{"text":"a"}]}],
			"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":16000}}}`,
		},
		{
			"budget_within_limit",
			provider.Request{Model: oldClaude, Sampling: chat.Sampling{Effort: provider.HighEffort}, MaxOutputTokens: 8000, Messages: []chat.Message{user("a")}},
			`{"inferenceConfig":{"maxTokens":8000},"messages":[{"role":"user","content":[{"text":"a"}]}],
			"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":4000}}}`,
		},
		{
			"no_room_for_thinking",
			provider.Request{Model: oldClaude, Sampling: chat.Sampling{Effort: provider.HighEffort, Temperature: number(0.5)}, MaxOutputTokens: 2000, Messages: []chat.Message{user("a")}},
			`{"inferenceConfig":{"maxTokens":2000,"temperature":0.5},"messages":[{"role":"user","content":[{"text":"a"}]}]}`,
		},
		{
			"adaptive",
			provider.Request{Model: newClaude, Sampling: chat.Sampling{Effort: provider.MinimalEffort}, Messages: []chat.Message{user("a")}},
			`{"inferenceConfig":{},"messages":[{"role":"user","content":[{"text":"a"}]}],
			"additionalModelRequestFields":{"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"low"}}}`,
		},
		{
			"adaptive_by_itself",
			provider.Request{Model: "anthropic.claude-opus-5-5", Sampling: chat.Sampling{Temperature: number(1)}, Messages: []chat.Message{user("a")}},
			`{"inferenceConfig":{},"messages":[{"role":"user","content":[{"text":"a"}]}],
			"additionalModelRequestFields":{"thinking":{"type":"adaptive","display":"summarized"}}}`,
		},
		{
			"not_by_itself",
			provider.Request{Model: newClaude, Messages: []chat.Message{user("a")}},
			`{"inferenceConfig":{},"messages":[{"role":"user","content":[{"text":"a"}]}]}`,
		},
		{
			"adaptive_xhigh",
			provider.Request{Model: "anthropic.claude-sonnet-5", Sampling: chat.Sampling{Effort: provider.XHighEffort}, Messages: []chat.Message{user("a")}},
			`{"inferenceConfig":{},"messages":[{"role":"user","content":[{"text":"a"}]}],
			"additionalModelRequestFields":{"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"xhigh"}}}`,
		},
		{
			"effort_none",
			provider.Request{Model: newClaude, Sampling: chat.Sampling{Effort: provider.NoEffort}, Messages: []chat.Message{user("a")}},
			`{"inferenceConfig":{},"messages":[{"role":"user","content":[{"text":"a"}]}]}`,
		},
		{
			"effort_of_others",
			provider.Request{Model: llama, Sampling: chat.Sampling{Effort: provider.HighEffort}, Messages: []chat.Message{user("a")}},
			`{"inferenceConfig":{},"messages":[{"role":"user","content":[{"text":"a"}]}]}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			whole := ask(t, tt.req, nil)
			wantJSON(t, whole.Text(), tt.want)
			tt.req.Stream = true
			if streamed := ask(t, tt.req, nil); streamed.Text() != whole.Text() {
				t.Errorf("streamed %s\nnot      %s", streamed.Text(), whole.Text())
			}
		})
	}
}

// The bytes of a prompt have to be the same each time, else the cache misses.
func TestSchemaKeepsOrderAndNumbers(t *testing.T) {
	schema := `{"type":"object","properties":{"z":{"maximum":12345678901234567890},"a":{},"m":{},"b":{},"y":{}}}`
	req := provider.Request{Model: oldClaude, Messages: []chat.Message{user("a")}, Tools: []chat.Tool{{Name: "f", Parameters: json.RawMessage(schema)}}}
	if body := ask(t, req, nil).Text(); !strings.Contains(body, schema) {
		t.Errorf("the body %s does not hold the schema as it is", body)
	}
}

func TestURL(t *testing.T) {
	names := func(name string) wire.Model {
		return wire.Model{RealName: "arn:aws:bedrock:eu-central-1:1:inference-profile/eu." + name}
	}
	got := ask(t, provider.Request{Model: "m:1", Messages: []chat.Message{user("a")}}, func(o *Options) { o.Model = names })
	if want := "/model/arn%3Aaws%3Abedrock%3Aeu-central-1%3A1%3Ainference-profile%2Feu.m%3A1/converse"; got.Path != want {
		t.Errorf("path %s, want %s", got.Path, want)
	}
	if got := got.Header.Get("User-Agent"); got != "loki/test" {
		t.Errorf("user agent %q", got)
	}
}

func TestUnsendableImages(t *testing.T) {
	srv := newServer(t, wiretest.Status(200, textWhole))
	req := provider.Request{Model: llama, Messages: []chat.Message{{Role: chat.User, Parts: []chat.Part{
		{Type: chat.ImagePart, URL: "https://example.org/a.png?key=secret"},
		{Type: chat.ImagePart, URL: "data:image/tiff;base64,AAAA"},
		{Type: chat.ImagePart, URL: "data:image/png;base64,?"},
		{Type: chat.ImagePart, URL: pixel},
	}}}}
	err := providertest.Collect(t, srv.client(nil).Chat(t.Context(), req)).Err
	e, ok := errors.AsType[*provider.Error](err)
	if !ok || e.Kind != provider.Invalid {
		t.Fatalf("error %v", err)
	}
	for _, want := range []string{"https://example.org/a.png", "data:image/tiff;base64,…", "data:image/png;base64,…"} {
		if !strings.Contains(e.Msg, want) {
			t.Errorf("%q does not name %s", e.Msg, want)
		}
	}
	if strings.Contains(e.Msg, "secret") || len(srv.Requests()) != 0 {
		t.Errorf("%q after %d requests", e.Msg, len(srv.Requests()))
	}
}

func TestImageURLs(t *testing.T) {
	for in, want := range map[string]string{
		"data:image/jpg;base64,AQID":         "jpeg \x01\x02\x03",
		"DATA:image/WEBP;base64,AQ==":        "webp \x01",
		"data:image/gif;base64,AQ%3D%3D":     "gif \x01",
		"data:image/png,a%20b":               "png a b",
		"data:image/png;name=x;base64,AQID":  "png \x01\x02\x03",
		"data:text/plain;base64,AQID":        "",
		"data:image/png;base64":              "",
		"data:;base64,AQID":                  "",
		"file:///tmp/a.png":                  "",
		"data:image/png;base64,%zz":          "",
		"data:image/svg+xml;utf8,<svg></sv>": "",
	} {
		format, data, err := parseImage(in)
		if got := string(format) + " " + string(data); err == nil && got != want || err != nil && want != "" {
			t.Errorf("%s: %q, %v, want %q", in, got, err, want)
		}
	}
}

func TestPatchesAreSigned(t *testing.T) {
	req := provider.Request{Model: "alias", Messages: []chat.Message{user("a")}}
	got := ask(t, req, func(o *Options) {
		o.Model = func(string) wire.Model {
			return wire.Model{RealName: "real", Patch: wire.Patch{Body: providertest.Object(map[string]any{
				"inferenceConfig": map[string]any{"topP": 0.5}, "performanceConfig": map[string]any{"latency": "optimized"},
			})}}
		}
		o.Patches = wire.Patches{wire.ChatCompletions: {
			{Pattern: "real", Patch: wire.Patch{Body: providertest.Object(map[string]any{"wrong": true})}},
			{Pattern: "al.*", Patch: wire.Patch{
				URL: "http://127.0.0.1:1/elsewhere", Headers: []wire.Header{{Name: "X-Amzn-Trace", Value: new("on")}, {Name: "x-custom", Value: new("é  b")}},
				Body: providertest.Object(map[string]any{"inferenceConfig": map[string]any{"topP": nil, "maxTokens": 5}}),
			}},
		}}
	})
	wantJSON(t, got.Text(), `{"inferenceConfig":{"maxTokens":5},"performanceConfig":{"latency":"optimized"},"messages":[{"role":"user","content":[{"text":"a"}]}]}`)
	if !strings.Contains(got.Header.Get("Authorization"), "x-custom") || got.Header.Get("X-Amzn-Trace") != "on" {
		t.Errorf("headers %v", got.Header)
	}
	if got.Path != "/model/real/converse" {
		t.Errorf("path %s: the URL of a patch has no effect", got.Path)
	}
}

func TestFamilies(t *testing.T) {
	for name, want := range map[string]family{
		"anthropic.claude-3-7-sonnet-20250219-v1:0":                                     {claude: 307},
		"us.anthropic.claude-sonnet-4-20250514-v1:0":                                    {claude: 400},
		"eu.anthropic.claude-opus-4-5-20251101-v1:0":                                    {claude: 405},
		"arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-4-6-v1": {claude: 406},
		"anthropic.claude-sonnet-5":                                                     {claude: 500},
		"anthropic.claude-v2:1":                                                         {claude: 100},
		"anthropic.claude-instant-v1":                                                   {},
		"us.amazon.nova-2-lite-v1:0":                                                    {nova: true},
		"amazon.titan-text-express-v1":                                                  {},
		"my-claude-4-6":                                                                 {claude: 406},
		"arn:aws:bedrock:x:application-inference-profile/abc1":                          {},
	} {
		if got := familyOf(name); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if got := familyOf("arn:aws:bedrock:x:application-inference-profile/ab", "claude-opus-4-6"); !got.adaptive() {
		t.Errorf("%+v: the configured name counts if the real one says nothing", got)
	}
}
