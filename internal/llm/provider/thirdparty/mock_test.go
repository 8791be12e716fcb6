package thirdparty_test

import (
	"cmp"
	"errors"
	"testing"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/providertest"
)

// dialogue is what a client says to the mock and what it has to hear, see mock.mjs.
type dialogue struct {
	name, prompt string
	tools        bool

	text, reasoning string
	calls           []chat.ToolCall
	stop            chat.StopReason
	fails           provider.ErrorKind // empty if there is a reply
}

func dialogues() []dialogue {
	return []dialogue{
		{name: "text", prompt: "hello", text: "Hello, Größe! \U0001F600 <b>& so on.", stop: chat.StopEnd},
		{name: "length", prompt: "a long story", text: "Half a sen", stop: chat.StopLength},
		{name: "reasoning", prompt: "think", text: "Forty-two.", reasoning: "Let me see: six times seven.", stop: chat.StopEnd},
		{name: "text_and_call", prompt: "look and tell", tools: true, text: "I look it up.", calls: []chat.ToolCall{
			{ID: "toolu_look000001", Name: "weather", Arguments: "{}"},
		}, stop: chat.StopToolCalls},
		{name: "rate_limit", prompt: "too often", fails: provider.RateLimited},
		{name: "overload", prompt: "overloaded", fails: provider.Transient},
		{name: "bad_key", prompt: "who am I", fails: provider.Authentication},
	}
}

// weatherCalls are the calls that the mock makes when it is asked for the weather.
func weatherCalls() []chat.ToolCall {
	return []chat.ToolCall{
		{ID: "toolu_0123456789", Name: "weather", Arguments: `{"city":"Zürich","days":2}`},
		{ID: "toolu_abcdefghij", Name: "weather", Arguments: `{"city":"Oslo"}`},
	}
}

const weatherReport = "It is 18 degrees in Zürich: \U0001F324."

// check compares a reply with what d says.
func (d dialogue) check(t *testing.T, r providertest.Reply) {
	t.Helper()
	if d.fails != "" {
		if e, ok := errors.AsType[*provider.Error](r.Err); !ok || e.Kind != d.fails {
			t.Errorf("error %v, want one of kind %s", r.Err, d.fails)
		}
		return
	}
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	if r.Text != d.text {
		t.Errorf("text %q, want %q", r.Text, d.text)
	}
	if d.reasoning != "" && r.Reasoning != d.reasoning {
		t.Errorf("reasoning %q, want %q", r.Reasoning, d.reasoning)
	}
	checkCalls(t, r.ToolCalls, d.calls)
	if r.Stop != d.stop {
		t.Errorf("stop reason %s, want %s", r.Stop, d.stop)
	}
	if r.Usage.OutputTokens == 0 {
		t.Errorf("usage %+v", r.Usage)
	}
}

func checkCalls(t *testing.T, got, want []chat.ToolCall) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("calls %+v, want %+v", got, want)
	}
	for i, c := range want {
		if got[i].Name != c.Name || got[i].ID == "" || !sameJSON(got[i].Arguments, c.Arguments) {
			t.Errorf("call %+v, want %+v", got[i], c)
		}
	}
}

// toolLoop asks for the weather, answers the calls and expects the report.
func toolLoop(t *testing.T, client provider.Chat, model string, stream bool) {
	t.Helper()
	req := weatherRequest(model, stream)
	first := providertest.Collect(t, client.Chat(t.Context(), req))
	checkWeather(t, first)
	req.Messages = append(req.Messages, first.Message())
	for _, c := range first.ToolCalls {
		req.Messages = append(req.Messages, chat.Message{
			Role: chat.ToolRole, ToolCallID: c.ID, ToolName: c.Name, Parts: []chat.Part{{Type: chat.TextPart, Text: "18 degrees"}},
		})
	}
	dialogue{text: weatherReport, stop: chat.StopEnd}.check(t, providertest.Collect(t, client.Chat(t.Context(), req)))
}

func weatherRequest(model string, stream bool) provider.Request {
	return provider.Request{
		Model: model, Stream: stream, Tools: weatherTools(), MaxOutputTokens: 4000,
		Messages: []chat.Message{chat.Text(chat.System, "Be brief."), user("What is the weather?")},
	}
}

// checkWeather compares a reply with [weatherCalls].
func checkWeather(t *testing.T, r providertest.Reply) {
	t.Helper()
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	checkCalls(t, r.ToolCalls, weatherCalls())
	if r.Stop != chat.StopToolCalls {
		t.Errorf("stop reason %s", r.Stop)
	}
}

// modes are the two ways to get a reply.
func modes() map[string]bool { return map[string]bool{"whole": false, "stream": true} }

// TestMock has all our clients talk to aimock, and the official SDKs too, which then
// have to have heard the same.
func TestMock(t *testing.T) {
	w := newWorkshop(t)
	url := w.serve(t, "mock.mjs")
	type talk struct {
		name string
		dialogue
		api api
		job job
	}
	var talks []talk
	var jobs []job
	for _, a := range apis() {
		if _, unknown := notInMock()[a.name]; unknown {
			continue
		}
		for mode, stream := range modes() {
			t.Run(a.name+"/tool_loop/"+mode, func(t *testing.T) { toolLoop(t, a.client(t, url), a.mockedModel(), stream) })
			for _, d := range dialogues() {
				if _, unknown := notInMock()[a.name+"/"+d.name]; !unknown {
					t.Run(a.name+"/"+d.name+"/"+mode, func(t *testing.T) { d.check(t, d.ask(t, a, url, stream)) })
				}
			}
			for _, d := range append(dialogues(), dialogue{name: "calls", prompt: "weather", tools: true}) {
				if _, has := recordings()[a.name]; !has || d.fails != "" {
					continue
				}
				j := job{SDK: a.name, Base: url, Model: a.mockedModel(), Stream: stream, Prompt: d.prompt, Tool: d.tools}
				talks, jobs = append(talks, talk{a.name + "/" + d.name + "/official_sdk/" + mode, d, a, j}), append(jobs, j)
			}
		}
	}
	var results []assembled
	w.run(t, "assemble.mjs", jobs, &results)
	for i, k := range talks {
		t.Run(k.name, func(t *testing.T) { compare(t, k.ask(t, k.api, url, k.job.Stream), results[i]) })
	}
}

// notInMock names what aimock 1.43 does not play, and why.
func notInMock() map[string]string {
	return map[string]string{
		"vertex_claude":           "of Vertex AI it plays Google's own models only",
		"vertex_mistral":          "of Vertex AI it plays Google's own models only",
		"openai_responses/length": "it says that the reply is incomplete, and not why",
		"cohere/reasoning":        "it sends the reasoning as text",
	}
}

func (a api) mockedModel() string { return cmp.Or(a.mocked, a.models[0]) }

// ask sends the prompt of d to the server at url.
func (d dialogue) ask(t *testing.T, a api, url string, stream bool) providertest.Reply {
	t.Helper()
	req := provider.Request{Model: a.mockedModel(), Stream: stream, Messages: []chat.Message{user(d.prompt)}}
	if d.tools {
		req.Tools = weatherTools()
	}
	return providertest.Collect(t, a.client(t, url).Chat(t.Context(), req))
}
