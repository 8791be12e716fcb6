package openai_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/openai"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/providertest/openaitest"
	"loki/internal/llm/provider/providertest/wiretest"
	"loki/internal/llm/provider/wire"
)

// needsResponses is how OpenAI rejects tools of a model that reasons, as documented.
const needsResponses = `{"error":{"message":"Function tools with reasoning_effort are not supported for gpt-5.6-sol in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.","type":"invalid_request_error","param":"reasoning_effort","code":null}}`

// sent is where a request went and the effort that it asked for.
func sent(r wiretest.Request) string {
	body := r.JSON()
	effort := body["reasoning_effort"]
	if reasoning, ok := body["reasoning"].(map[string]any); ok {
		effort = reasoning["effort"]
	}
	return strings.TrimSpace(fmt.Sprint(r.Path, " ", effort))
}

// TestToolsAreRouted: a model that reasons with tools only in the responses format is asked
// there, and only then.
func TestToolsAreRouted(t *testing.T) {
	missing := wiretest.Status(404, `{"error":{"message":"Resource not found"}}`)
	rejected := wiretest.Status(400, needsResponses)
	ok := openaitest.Text("ok")
	listed := wire.Model{ToolsAPI: "responses"}
	patched := func(patch string) wire.Model {
		return wire.Model{ToolsAPI: "responses", Patch: wire.Patch{Body: providertest.Object(json.RawMessage(patch))}}
	}
	const (
		chats     = "/chat/completions "
		responses = "/responses "
		azure     = "/openai/deployments/m/chat/completions?api-version=2024-12-01-preview "
		azureV1   = "/openai/v1/responses "
	)
	for _, tt := range []struct {
		name   string
		client string
		api    string
		model  wire.Model
		tools  bool
		effort provider.Effort
		script []wiretest.Reply // of the first of two equal requests
		first  []string
		second string
		note   string // what the user is shown
	}{
		{"listed", "openai", "", listed, true, "", nil, []string{responses + "<nil>"}, responses + "<nil>", ""},
		{"listed_effort", "openai", "", listed, true, "high", nil, []string{responses + "high"}, responses + "high", ""},
		{"without_tools", "openai", "", listed, false, "high", nil, []string{chats + "high"}, chats + "high", ""},
		{"without_reasoning", "openai", "", listed, true, "none", nil, []string{chats + "none"}, chats + "none", ""},
		{"patched_effort", "openai", "", patched(`{"reasoning_effort":"low"}`), true, "", nil, []string{responses + "low"}, responses + "low", ""},
		{"patched_none", "openai", "", patched(`{"reasoning_effort":"none"}`), true, "", nil, []string{chats + "none"}, chats + "none", ""},
		{"effort_beats_patch", "openai", "", patched(`{"reasoning_effort":"none"}`), true, "high", nil, []string{responses + "high"}, responses + "high", ""},
		{"effort_beats_patch_of_responses", "openai", "responses", patched(`{"reasoning":{"effort":"none"}}`), true, "high", nil, []string{responses + "high"}, responses + "high", ""},
		{"effort_beats_patch_without_tools", "openai", "", patched(`{"reasoning_effort":"none","seed":1}`), false, "max", nil, []string{chats + "max"}, chats + "max", ""},
		{"client_keeps_to_chats", "openai", "chat_completions", listed, true, "high", nil, []string{chats + "high"}, chats + "high", ""},
		{"model_keeps_to_responses", "openai", "", wire.Model{API: "responses"}, false, "", nil, []string{responses + "<nil>"}, responses + "<nil>", ""},
		{"learned", "openai", "", wire.Model{}, true, "", []wiretest.Reply{rejected}, []string{chats + "<nil>", responses + "<nil>"}, responses + "<nil>", ""},
		{"learned_with_effort", "compatible", "", wire.Model{}, true, "low", []wiretest.Reply{rejected}, []string{chats + "low", responses + "low"}, responses + "low", ""},
		{"no_responses", "compatible", "", listed, true, "high", []wiretest.Reply{missing}, []string{responses + "high", chats + "none"}, chats + "none", "does not reason"},
		{"learned_no_responses", "openai", "", wire.Model{}, true, "", []wiretest.Reply{rejected, missing}, []string{chats + "<nil>", responses + "<nil>", chats + "none"}, chats + "none", ""},
		{"learned_no_responses_effort", "openai", "", wire.Model{}, true, "low", []wiretest.Reply{rejected, missing}, []string{chats + "low", responses + "low", chats + "none"}, chats + "none", "does not reason"},
		{"azure", "azure", "", listed, true, "", nil, []string{azureV1 + "<nil>"}, azureV1 + "<nil>", ""},
		{"azure_without_tools", "azure", "", listed, false, "", nil, []string{azure + "<nil>"}, azure + "<nil>", ""},
		{"azure_learned", "azure", "", wire.Model{}, true, "", []wiretest.Reply{rejected}, []string{azure + "<nil>", azureV1 + "<nil>"}, azureV1 + "<nil>", ""},
		{"azure_responses", "azure", "responses", wire.Model{}, false, "", nil, []string{azureV1 + "<nil>"}, azureV1 + "<nil>", ""},
		{"azure_v1", "azure_v1", "", listed, false, "", nil, []string{"/openai/v1/chat/completions <nil>"}, "/openai/v1/chat/completions <nil>", ""},
		{"azure_v1_tools", "azure_v1", "", listed, true, "", nil, []string{azureV1 + "<nil>"}, azureV1 + "<nil>", ""},
		{"nearest", "openai", "", wire.Model{Efforts: []provider.Effort{"low", "medium", "high"}}, false, "max", nil, []string{chats + "high"}, chats + "high", "effort max is not available, so high is used"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := openaitest.New(t)
			server.Script(tt.script...)
			server.Always(ok)
			o := client.Options{
				Name: "test", APIBase: server.URL(), API: tt.api, APIKey: wiretest.Key("sk-test"),
				Model: func(string) wire.Model { return tt.model },
			}
			var c provider.Chat
			var err error
			switch tt.client {
			case "openai":
				c, err = openai.New(o)
			case "compatible":
				c, err = openai.NewCompatible(o)
			case "azure_v1":
				o.APIBase += "/openai/v1/"
				fallthrough
			case "azure":
				c, err = openai.NewAzure(o)
			}
			if err != nil {
				t.Fatal(err)
			}
			req := question()
			req.Effort = tt.effort
			if tt.tools {
				req.Tools = []chat.Tool{{Name: "f"}}
			}
			for range 2 {
				r := collect(t, c, req)
				if r.Text != "ok" {
					t.Fatalf("text %q, error %v", r.Text, r.Err)
				}
				if note := strings.Join(r.Notes, "|"); (note == "") != (tt.note == "") || !strings.Contains(note, tt.note) {
					t.Errorf("notes %q, want %q", note, tt.note)
				}
			}
			var got []string
			for _, r := range server.Requests() {
				got = append(got, sent(r))
				if (r.JSON()["tools"] != nil) != tt.tools || r.JSON()["model"] != "m" {
					t.Errorf("body %s", r.Body)
				}
			}
			if want := append(tt.first, tt.second); !slices.Equal(got, want) {
				t.Errorf("requests %q\nwant     %q", got, want)
			}
		})
	}
}

// TestToolsAreRoutedBack: an error of the other format that is not about the format is
// shown, and the request is not sent again and again.
func TestToolsAreRoutedBack(t *testing.T) {
	server := openaitest.New(t)
	server.Script(wiretest.Status(400, needsResponses), wiretest.Status(404, `{"error":{"message":"no model m"}}`))
	server.Always(wiretest.Status(404, `{"error":{"message":"no model m"}}`))
	c, err := openai.New(client.Options{Name: "test", APIBase: server.URL(), APIKey: wiretest.Key("sk-test")})
	if err != nil {
		t.Fatal(err)
	}
	req := question()
	req.Tools = []chat.Tool{{Name: "f"}}
	if r := collect(t, c, req); r.Err == nil || !strings.Contains(r.Err.Error(), "no model m") || len(server.Requests()) != 3 {
		t.Errorf("error %v after %d requests", r.Err, len(server.Requests()))
	}
}

// TestCacheKey: the requests of one conversation have one key, others another, and a
// single question, or a server that is not OpenAI's, gets none.
func TestCacheKey(t *testing.T) {
	const rejection = `{"error":{"message":"Unrecognized request argument supplied: prompt_cache_key"}}`
	server := openaitest.New(t)
	server.Always(openaitest.Text("ok"))
	o := client.Options{Name: "test", APIBase: server.URL(), APIKey: wiretest.Key("sk-test")}
	c, err := openai.New(o)
	if err != nil {
		t.Fatal(err)
	}
	key := func(c provider.Chat, req provider.Request) any {
		t.Helper()
		if r := collect(t, c, req); r.Text != "ok" {
			t.Fatalf("text %q, error %v", r.Text, r.Err)
		}
		requests := server.Requests()
		return requests[len(requests)-1].JSON()["prompt_cache_key"]
	}
	withTools := question()
	withTools.Tools = []chat.Tool{{Name: "f"}}
	loop := withTools
	loop.Messages = append(slices.Clone(loop.Messages), round("", chat.ToolCall{ID: "c", Name: "f", Arguments: "{}"})...)
	other := withTools
	other.Messages = []chat.Message{chat.Text(chat.User, "Another?")}
	first := key(c, withTools)
	if first == nil || key(c, loop) != first || key(c, other) == first || strings.Contains(fmt.Sprint(first), "Question") {
		t.Errorf("keys %v, %v, %v", first, key(c, loop), key(c, other))
	}
	if got := key(c, question()); got != nil {
		t.Errorf("a single question has key %v", got)
	}
	compatible, err := openai.NewCompatible(o)
	if err != nil {
		t.Fatal(err)
	}
	if got := key(compatible, withTools); got != nil {
		t.Errorf("a compatible server gets key %v", got)
	}
	if got := server.Requests()[0].Header.Get("X-Grok-Conv-Id"); got != "" {
		t.Errorf("OpenAI gets the conversation %q", got)
	}
	o.Name = "xai"
	if compatible, err = openai.NewCompatible(o); err != nil {
		t.Fatal(err)
	}
	for _, req := range []provider.Request{withTools, question()} {
		body := key(compatible, req)
		requests := server.Requests()
		if id := requests[len(requests)-1].Header.Get("X-Grok-Conv-Id"); (id != "") != (req.Tools != nil) || body != nil {
			t.Errorf("xAI gets the conversation %q and the key %v", id, body)
		}
	}
	server.Script(wiretest.Status(400, rejection))
	if got := key(c, withTools); got != nil {
		t.Errorf("key %v after a rejection", got)
	}
	if before := len(server.Requests()); key(c, withTools) != nil || len(server.Requests()) != before+1 {
		t.Error("the rejection is not remembered")
	}
}
